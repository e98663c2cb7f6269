/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"
#include "eve/attest.pb-c.h"
#include "eve/quote.h"
#include "roster/state.h"
#include "world.h"

#define CODE(name) EVE__ATTEST__ZATTEST_RESPONSE_CODE__Z_ATTEST_RESPONSE_CODE_##name
#define KEYS_CODE(name) \
    EVE__ATTEST__ATTEST_STORAGE_KEYS_RESPONSE_CODE__ATTEST_STORAGE_KEYS_RESPONSE_CODE_##name
#define N_PCRS 16

enum { TYPE_QUOTE = 11, TYPE_EK = 12, TYPE_ECDH = 13 };

struct fixture {
    struct world w;
    struct identity identity;    /* the device's */
    struct identity quote, ecdh; /* signed by it */
    struct device *device;
    int status; /* of the last request */
};

static void open_fixture(struct fixture *f)
{
    world_open(&f->w);
    identity_init(&f->w, &f->identity, "EVE", NULL, 3650);
    identity_init(&f->w, &f->quote, "quote", &f->identity, 3650);
    identity_init(&f->w, &f->ecdh, "ecdh", &f->identity, 3650);
    world_create(&f->w, "devices", "site", "d1", "'spec':{'certificate':'%s'}", f->identity.pem.p);
    f->device = world_device(&f->w, &f->identity);
    assert_non_null(f->device);
}

static void close_fixture(struct fixture *f)
{
    device_unref(f->device);
    identity_done(&f->identity);
    identity_done(&f->quote);
    identity_done(&f->ecdh);
    world_close(&f->w);
}
#define FIXTURE(f) \
    CLEANUP(close_fixture) struct fixture f; \
    open_fixture(&f)

/* The answer, or NULL when it is none of 201; in the world's arena. Bare, as on v1. */
static const Eve__Attest__ZAttestResponse *post(struct fixture *f,
                                                const Eve__Attest__ZAttestReq *req)
{
    struct device_call c = {.api = &f->w.api,
                            .arena = f->w.arena,
                            .device = f->device,
                            .payload = pb_pack(f->w.arena, &req->base),
                            .is_v1 = true};
    (void) device_attest(&c);
    f->status = c.status;
    return c.status == 201 ? PB_UNPACK(f->w.arena, eve__attest__zattest_response, c.body) : NULL;
}

static struct device_state state_of(struct fixture *f)
{
    struct device_state s;
    struct status st;
    status_init(&st, f->w.arena);
    assert_int_equal(device_state_load(f->w.user, f->w.arena, f->device, &s, &st), 0);
    return s;
}

/* ---- certificates ---------------------------------------------------------------------------- */

static Eve__Certs__ZCert *zcert(struct fixture *f, const struct identity *i, int type)
{
    Eve__Certs__ZCert *c = ARENA_NEW(f->w.arena, Eve__Certs__ZCert);
    unsigned char *hash = arena_alloc(f->w.arena, SHA256_BYTES);
    eve__certs__zcert__init(c);
    pki_sha256(i->pem, hash);
    c->type = (Eve__Certs__ZCertType) type;
    c->hashalgo = EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_16BYTES;
    c->certhash = pb_data(str_range((const char *) hash, 16));
    c->cert = pb_data(i->pem);
    return c;
}

static int send_certs(struct fixture *f, Eve__Certs__ZCert **certs, size_t n)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    req.reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_CERT;
    req.certs = certs;
    req.n_certs = n;
    const Eve__Attest__ZAttestResponse *r = post(f, &req);
    if (r)
        assert_int_equal(r->resptype, EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_CERT);
    return f->status;
}

static int send_cert(struct fixture *f, const struct identity *i, int type)
{
    Eve__Certs__ZCert *c = zcert(f, i, type);
    return send_certs(f, &c, 1);
}

static size_t count_certs(struct fixture *f)
{
    const struct device_state s = state_of(f);
    const Eve__Attest__ZAttestReq *r =
        PB_UNPACK(f->w.arena, eve__attest__zattest_req, s.certificates);
    return r->n_certs;
}

TEST(certificates_are_kept_as_they_were_sent)
{
    FIXTURE(f);
    Eve__Certs__ZCert *certs[] = {zcert(&f, &f.ecdh, TYPE_ECDH), zcert(&f, &f.quote, TYPE_QUOTE),
                                  zcert(&f, &f.quote, 77)};
    assert_int_equal(send_certs(&f, certs, N_ELEMENTS(certs)), 201);
    const struct device_state s = state_of(&f);
    const Eve__Attest__ZAttestReq *r =
        PB_UNPACK(f.w.arena, eve__attest__zattest_req, s.certificates);
    assert_int_equal(r->n_certs, 3);
    assert_true(str_eq(pb_bytes(r->certs[0]->cert), f.ecdh.pem));
    assert_true(str_eq(pb_bytes(r->certs[0]->certhash), pb_bytes(certs[0]->certhash)));
    assert_int_equal((int) r->certs[2]->type, 77);
    assert_false(s.has_tpm);
    const struct json *secret = world_get(&f.w, "secrets", "site", "d1.eve-device");
    const struct str revision = json_str(json_at(secret, "metadata", "resourceVersion", NULL));
    assert_str(json_get_str(secret, STR("type")), DEVICE_STATE_TYPE);
    assert_str(
        json_get_str(&json_at(secret, "metadata", "ownerReferences", NULL)->items[0], STR("kind")),
        "Device");
    /* A repeat is accepted and writes nothing. */
    assert_int_equal(send_certs(&f, certs, 1), 201);
    secret = world_get(&f.w, "secrets", "site", "d1.eve-device");
    assert_true(str_eq(json_str(json_at(secret, "metadata", "resourceVersion", NULL)), revision));
    assert_int_equal(count_certs(&f), 3);
}

TEST(an_immutable_certificate_is_not_replaced)
{
    FIXTURE(f);
    IDENTITY_AUTO other;
    identity_init(&f.w, &other, "another", &f.identity, 1);
    assert_int_equal(send_cert(&f, &f.ecdh, TYPE_ECDH), 201);
    assert_int_equal(send_cert(&f, &other, TYPE_ECDH), 403);
    assert_int_equal(count_certs(&f), 1);
    assert_int_equal(send_cert(&f, &other, TYPE_QUOTE), 201);
    assert_int_equal(count_certs(&f), 2);
}

TEST(a_mutable_certificate_is_replaced)
{
    FIXTURE(f);
    IDENTITY_AUTO other;
    identity_init(&f.w, &other, "another", &f.identity, 1);
    Eve__Certs__ZCertAttr attributes = EVE__CERTS__ZCERT_ATTR__INIT;
    attributes.is_mutable = true;
    Eve__Certs__ZCert *c = zcert(&f, &f.ecdh, TYPE_ECDH);
    c->attributes = &attributes;
    assert_int_equal(send_certs(&f, &c, 1), 201);
    assert_int_equal(send_cert(&f, &other, TYPE_ECDH), 201);
    const struct device_state s = state_of(&f);
    const Eve__Attest__ZAttestReq *r =
        PB_UNPACK(f.w.arena, eve__attest__zattest_req, s.certificates);
    assert_int_equal(r->n_certs, 1);
    assert_true(str_eq(pb_bytes(r->certs[0]->cert), other.pem));
    assert_int_equal(send_cert(&f, &f.ecdh, TYPE_ECDH), 403);
}

/* None of these codes may make the device drop the message: only 401, 403, 429 and 5xx do not. */
TEST(bad_certificates_are_refused_and_not_dropped)
{
    FIXTURE(f);
    IDENTITY_AUTO stranger;
    identity_init(&f.w, &stranger, "stranger", NULL, 1);
    assert_int_equal(send_cert(&f, &stranger, TYPE_ECDH), 403);
    Eve__Certs__ZCert *c = zcert(&f, &f.ecdh, TYPE_ECDH);
    c->certhash = zcert(&f, &f.quote, TYPE_ECDH)->certhash;
    assert_int_equal(send_certs(&f, &c, 1), 403);
    c = zcert(&f, &f.ecdh, TYPE_ECDH);
    c->hashalgo = EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_32BYTES;
    assert_int_equal(send_certs(&f, &c, 1), 403);
    const struct identity garbled = {.pem = STR("-----BEGIN CERTIFICATE-----\n")};
    assert_int_equal(send_cert(&f, &garbled, TYPE_ECDH), 403);
    assert_int_equal(send_certs(&f, NULL, 0), 422);
    f.w.faulty.failing = "secrets";
    assert_int_equal(send_cert(&f, &f.ecdh, TYPE_ECDH), 503);
    f.w.faulty.failing = NULL;
    assert_null(world_get(&f.w, "secrets", "site", "d1.eve-device"));
    assert_int_equal(send_cert(&f, &f.ecdh, TYPE_ECDH), 201);
}

/* ---- quotes ---------------------------------------------------------------------------------- */

static struct str ask_nonce(struct fixture *f)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    req.reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_NONCE;
    const Eve__Attest__ZAttestResponse *r = post(f, &req);
    assert_non_null(r);
    assert_int_equal(r->resptype, EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_NONCE);
    return pb_bytes(r->nonce->nonce);
}

static void put(struct buf *b, uint64_t value, int n_bytes)
{
    while (n_bytes-- > 0)
        buf_append_char(b, (char) (value >> 8 * n_bytes));
}

/* As short as it can be: one of 256 begins with a zero. */
static void put_integer(struct buf *b, const unsigned char *p)
{
    size_t n = 32;
    for (; n > 1 && p[0] == 0; n--)
        p++;
    put(b, 0x02, 1);
    put(b, n + (p[0] >> 7), 1);
    if (p[0] >> 7)
        put(b, 0, 1);
    buf_append(b, p, n);
}

/* A TPM's own form of an ECDSA signature. */
static struct str sign_der(struct fixture *f, const struct pki_key *key, struct str message)
{
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES];
    BUF_AUTO body = {0}, der = {0};
    assert_int_equal(pki_sign_raw(key, message, raw), 0);
    put_integer(&body, raw);
    put_integer(&body, raw + 32);
    put(&der, 0x30, 1);
    put(&der, body.n, 1);
    buf_append_str(&der, buf_str(&body));
    return arena_str(f->w.arena, buf_str(&der));
}

static void fill_pcr(unsigned char value[QUOTE_PCR_BYTES], unsigned index)
{
    memset(value, (int) (0x10 + index), QUOTE_PCR_BYTES);
}

/* TPMS_ATTEST over the first 16 registers. */
static struct str attest_data(struct fixture *f, struct str nonce)
{
    unsigned char values[N_PCRS * QUOTE_PCR_BYTES], digest[SHA256_BYTES];
    for (unsigned i = 0; i < N_PCRS; i++)
        fill_pcr(values + (size_t) i * QUOTE_PCR_BYTES, i);
    pki_sha256(str_range((const char *) values, sizeof(values)), digest);
    BUF_AUTO b = {0};
    put(&b, 0xff544347, 4);
    put(&b, 0x8018, 2);
    put(&b, 0, 2);
    put(&b, nonce.n, 2);
    buf_append_str(&b, nonce);
    put(&b, 1234, 8);
    put(&b, 1, 4);
    put(&b, 2, 4);
    put(&b, 1, 1);
    put(&b, 7, 8);
    put(&b, 1, 4);
    put(&b, 0x000b, 2);
    put(&b, 3, 1);
    put(&b, 0xffff00, 3);
    put(&b, SHA256_BYTES, 2);
    buf_append(&b, digest, sizeof(digest));
    return arena_str(f->w.arena, buf_str(&b));
}

static Eve__Attest__ZAttestQuote *new_quote(struct fixture *f, struct str nonce)
{
    struct arena *a = f->w.arena;
    Eve__Attest__ZAttestQuote *q = ARENA_NEW(a, Eve__Attest__ZAttestQuote);
    eve__attest__zattest_quote__init(q);
    q->attestdata = pb_data(attest_data(f, nonce));
    q->signature = pb_data(sign_der(f, f->quote.key, pb_bytes(q->attestdata)));
    q->pcr_values = ARENA_ARRAY(a, Eve__Attest__TpmPCRValue *, QUOTE_PCRS);
    for (unsigned i = 0; i < QUOTE_PCRS; i++) {
        Eve__Attest__TpmPCRValue *v = ARENA_NEW(a, Eve__Attest__TpmPCRValue);
        eve__attest__tpm_pcrvalue__init(v);
        unsigned char *value = arena_alloc(a, QUOTE_PCR_BYTES);
        fill_pcr(value, i);
        v->index = i;
        v->hash_algo = EVE__ATTEST__TPM_HASH_ALGO__TPM_HASH_ALGO_SHA256;
        v->value = pb_data(str_range((const char *) value, QUOTE_PCR_BYTES));
        q->pcr_values[q->n_pcr_values++] = v;
    }
    q->versions = ARENA_ARRAY(a, Eve__Attest__AttestVersionInfo *, 1);
    q->versions[0] = ARENA_NEW(a, Eve__Attest__AttestVersionInfo);
    eve__attest__attest_version_info__init(q->versions[0]);
    q->versions[0]->version_type = EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_EVE;
    q->versions[0]->version = (char *) "14.5.0";
    q->n_versions = 1;
    q->tpm_binary_event_log = pb_data(STR("\x1f\x8b log"));
    return q;
}

static const Eve__Attest__ZAttestQuoteResp *send_quote(struct fixture *f,
                                                       Eve__Attest__ZAttestQuote *q)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    req.reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_QUOTE;
    req.quote = q;
    const Eve__Attest__ZAttestResponse *r = post(f, &req);
    if (!r)
        return NULL;
    assert_int_equal(r->resptype, EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_QUOTE_RESP);
    if (r->quoteresp->response != CODE(SUCCESS)) {
        assert_int_equal(r->quoteresp->integrity_token.len, 0);
        assert_int_equal(r->quoteresp->n_keys, 0);
    }
    return r->quoteresp;
}

static int judge(struct fixture *f)
{
    return (int) send_quote(f, new_quote(f, ask_nonce(f)))->response;
}

static void give_quote_cert(struct fixture *f)
{
    assert_int_equal(send_cert(f, &f->quote, TYPE_QUOTE), 201);
}

TEST(a_good_quote_earns_a_token)
{
    FIXTURE(f);
    give_quote_cert(&f);
    const Eve__Attest__ZAttestQuoteResp *r = send_quote(&f, new_quote(&f, ask_nonce(&f)));
    assert_int_equal(r->response, CODE(SUCCESS));
    assert_true(r->integrity_token.len >= 32);
    assert_int_equal(r->n_keys, 0);
    const struct device_state s = state_of(&f);
    assert_true(str_eq(s.integrity_token, pb_bytes(r->integrity_token)));
    assert_true(str_eq(f.device->integrity_token, s.integrity_token));
    assert_true(s.has_tpm);
    assert_true(f.device->has_tpm);
    assert_str(s.event_log, "\x1f\x8b log");
    const Eve__Attest__ZAttestQuote *kept =
        PB_UNPACK(f.w.arena, eve__attest__zattest_quote, s.pcrs);
    assert_int_equal(kept->n_pcr_values, QUOTE_PCRS);
    assert_int_equal(kept->attestdata.len, 0);
    const struct str first = s.integrity_token;
    assert_int_equal(judge(&f), CODE(SUCCESS));
    assert_false(str_eq(state_of(&f).integrity_token, first));
    /* After a restart the roster learns it from the Secret. */
    world_settle(&f.w);
    assert_true(str_eq(f.device->integrity_token, state_of(&f).integrity_token));
}

TEST(a_nonce_is_new_used_once_and_expires)
{
    FIXTURE(f);
    give_quote_cert(&f);
    const struct str first = ask_nonce(&f), second = ask_nonce(&f);
    assert_int_equal(first.n, DEVICE_NONCE_BYTES);
    assert_false(str_eq(first, second));
    /* Of two, only the last counts, and a wrong one uses it up. */
    assert_int_equal(send_quote(&f, new_quote(&f, first))->response, CODE(NONCE_MISMATCH));
    assert_int_equal(send_quote(&f, new_quote(&f, second))->response, CODE(NONCE_MISMATCH));
    Eve__Attest__ZAttestQuote *good = new_quote(&f, ask_nonce(&f));
    assert_int_equal(send_quote(&f, good)->response, CODE(SUCCESS));
    /* The same quote again. */
    assert_int_equal(send_quote(&f, good)->response, CODE(NONCE_MISMATCH));
    (void) ask_nonce(&f);
    assert_int_equal(send_quote(&f, good)->response, CODE(NONCE_MISMATCH));
    const struct str late = ask_nonce(&f);
    f.w.clock.now_us += (int64_t) 301 * 1000000;
    assert_int_equal(send_quote(&f, new_quote(&f, late))->response, CODE(NONCE_MISMATCH));
}

TEST(each_bad_quote_has_its_code)
{
    FIXTURE(f);
    assert_int_equal(judge(&f), CODE(NO_CERT_FOUND));
    give_quote_cert(&f);
    Eve__Attest__ZAttestQuote *q = new_quote(&f, ask_nonce(&f));
    q->pcr_values[3]->value = q->pcr_values[4]->value;
    assert_int_equal(send_quote(&f, q)->response, CODE(QUOTE_FAILED));
    q = new_quote(&f, ask_nonce(&f));
    q->signature = pb_data(sign_der(&f, f.ecdh.key, pb_bytes(q->attestdata)));
    assert_int_equal(send_quote(&f, q)->response, CODE(INVALID));
    q = new_quote(&f, ask_nonce(&f));
    q->attestdata.len--;
    assert_int_equal(send_quote(&f, q)->response, CODE(INVALID));
    q = new_quote(&f, ask_nonce(&f));
    q->signature.len = 0;
    assert_int_equal(send_quote(&f, q)->response, CODE(INVALID));
    q = new_quote(&f, ask_nonce(&f));
    q->n_pcr_values = 3;
    assert_int_equal(send_quote(&f, q)->response, CODE(QUOTE_FAILED));
    assert_int_equal(state_of(&f).integrity_token.n, 0);
    assert_int_equal(f.device->integrity_token.n, 0);
    const struct json *e = world_event(&f.w, "site", "d1", "AttestationFailed");
    assert_non_null(e);
    assert_str(json_get_str(e, STR("type")), "Warning");
}

/* ---- templates ------------------------------------------------------------------------------- */

#define HEX_4 "1414141414141414141414141414141414141414141414141414141414141414"
#define HEX_20 "2424242424242424242424242424242424242424242424242424242424242424"

TEST(registers_are_compared_with_templates)
{
    static const struct {
        const char *templates;
        int code;
    } cases[] = {
        {"[{\"eveVersion\":\"14.5.0\",\"PCRValues\":[{\"index\":4,\"value\":\"" HEX_4 "\"}]}]",
         CODE(SUCCESS)},
        {"[{\"eveVersion\":\"14.5.0\",\"PCRValues\":[{\"index\":4,\"value\":\"" HEX_20 "\"}]}]",
         CODE(QUOTE_FAILED)},
        {"[{\"eveVersion\":\"14.5.0\",\"PCRValues\":[{\"index\":5,\"value\":\"*\"},"
         "{\"index\":6,\"value\":\"\"},{\"index\":20,\"value\":\"" HEX_20 "\"}]}]",
         CODE(SUCCESS)},
        {"[{\"eveVersion\":\"14.5.0\",\"PCRValues\":[{\"index\":20,\"value\":\"" HEX_4 "\"}]}]",
         CODE(QUOTE_FAILED)},
        {"[{\"eveVersion\":\"14.5.0\",\"PCRValues\":[{\"index\":40,\"value\":\"" HEX_4 "\"}]}]",
         CODE(QUOTE_FAILED)},
        {"[{\"eveVersion\":\"14.4.0\",\"PCRValues\":[]}]", CODE(INVALID)},
        {"[{\"eveVersion\":\"14.5.0\",\"firmwareVersion\":\"9\",\"PCRValues\":[]}]", CODE(INVALID)},
        /* One that fits is enough. */
        {"[{\"eveVersion\":\"14.5.0\",\"PCRValues\":[{\"index\":4,\"value\":\"" HEX_20 "\"}]},"
         "{\"eveVersion\":\"14.5.0\",\"PCRValues\":[]}]",
         CODE(SUCCESS)},
        {"[]", CODE(SUCCESS)},
        {"not JSON", CODE(INVALID)},
    };
    FIXTURE(f);
    give_quote_cert(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        world_create(&f.w, "configmaps", "eve-system", "pcr-templates",
                     "'data':{'templates.json':'%s'}", cases[i].templates);
        if (judge(&f) != cases[i].code)
            fail_msg("case %zu is not judged %d", i, cases[i].code);
        world_delete(&f.w, "configmaps", "eve-system", "pcr-templates");
    }
    world_create(&f.w, "configmaps", "eve-system", "pcr-templates",
                 "'data':{'enforce':'false','templates.json':'%s'}", cases[1].templates);
    assert_int_equal(judge(&f), CODE(SUCCESS));
}

TEST(a_device_that_boots_something_else_loses_its_token)
{
    FIXTURE(f);
    give_quote_cert(&f);
    assert_int_equal(judge(&f), CODE(SUCCESS));
    assert_true(f.device->integrity_token.n > 0);
    world_create(&f.w, "configmaps", "eve-system", "pcr-templates",
                 "'data':{'templates.json':'[{\\\"eveVersion\\\":\\\"1\\\"}]'}");
    assert_int_equal(judge(&f), CODE(INVALID));
    assert_int_equal(f.device->integrity_token.n, 0);
    assert_int_equal(state_of(&f).integrity_token.n, 0);
}

/* ---- without a TPM --------------------------------------------------------------------------- */

static Eve__Attest__ZAttestQuote *empty_quote(struct fixture *f)
{
    Eve__Attest__ZAttestQuote *q = ARENA_NEW(f->w.arena, Eve__Attest__ZAttestQuote);
    eve__attest__zattest_quote__init(q);
    return q;
}

TEST(no_quote_is_taken_from_a_device_that_never_had_a_tpm)
{
    FIXTURE(f);
    /* Devices without a TPM have a certificate for quotes all the same. */
    give_quote_cert(&f);
    assert_int_equal(send_quote(&f, empty_quote(&f))->response, CODE(NONCE_MISMATCH));
    (void) ask_nonce(&f);
    const Eve__Attest__ZAttestQuoteResp *r = send_quote(&f, empty_quote(&f));
    assert_int_equal(r->response, CODE(SUCCESS));
    assert_true(r->integrity_token.len > 0);
    (void) ask_nonce(&f);
    assert_int_equal(send_quote(&f, NULL)->response, CODE(SUCCESS));
    assert_false(state_of(&f).has_tpm);
    assert_int_equal(judge(&f), CODE(SUCCESS));
    (void) ask_nonce(&f);
    assert_int_equal(send_quote(&f, empty_quote(&f))->response, CODE(QUOTE_FAILED));
}

TEST(a_certificate_of_a_tpm_shows_that_there_is_one)
{
    FIXTURE(f);
    assert_int_equal(send_cert(&f, &f.ecdh, TYPE_EK), 201);
    assert_true(state_of(&f).has_tpm);
    (void) ask_nonce(&f);
    assert_int_equal(send_quote(&f, empty_quote(&f))->response, CODE(QUOTE_FAILED));
}

TEST(attestation_that_is_off_asks_nothing)
{
    FIXTURE(f);
    atomic_store(&f.device->attestation, ATTESTATION_OFF);
    assert_int_equal(send_quote(&f, new_quote(&f, STR("whatever this is")))->response,
                     CODE(SUCCESS));
    assert_false(state_of(&f).has_tpm);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int store_keys(struct fixture *f, struct str token, struct str key)
{
    Eve__Attest__AttestVolumeKey volume = EVE__ATTEST__ATTEST_VOLUME_KEY__INIT;
    Eve__Attest__AttestVolumeKey *keys[] = {&volume};
    Eve__Attest__AttestStorageKeys sent = EVE__ATTEST__ATTEST_STORAGE_KEYS__INIT;
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    volume.key_type = EVE__ATTEST__ATTEST_VOLUME_KEY_TYPE__ATTEST_VOLUME_KEY_TYPE_VSK;
    volume.key = pb_data(key);
    sent.integrity_token = pb_data(token);
    sent.keys = keys;
    sent.n_keys = key.n ? 1 : 0;
    req.reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__Z_ATTEST_REQ_TYPE_STORE_KEYS;
    req.storage_keys = &sent;
    const Eve__Attest__ZAttestResponse *r = post(f, &req);
    return r ? (int) r->storage_keys_resp->response : -1;
}

TEST(keys_come_back_as_they_were_stored)
{
    FIXTURE(f);
    give_quote_cert(&f);
    const struct str key = STR("\0\x01\xff key \xfe");
    assert_int_equal(store_keys(&f, STR(""), key), KEYS_CODE(ITOKEN_MISMATCH));
    assert_int_equal(judge(&f), CODE(SUCCESS));
    const struct str token = state_of(&f).integrity_token;
    assert_int_equal(store_keys(&f, STR("another"), key), KEYS_CODE(ITOKEN_MISMATCH));
    assert_int_equal(store_keys(&f, token, key), KEYS_CODE(SUCCESS));
    assert_int_equal(store_keys(&f, token, STR("")), KEYS_CODE(INVALID));
    const Eve__Attest__ZAttestQuoteResp *r = send_quote(&f, new_quote(&f, ask_nonce(&f)));
    assert_int_equal(r->response, CODE(SUCCESS));
    assert_int_equal(r->n_keys, 1);
    assert_true(str_eq(pb_bytes(r->keys[0]->key), key));
    assert_int_equal(r->keys[0]->key_type, 1);
    /* The token of before is worth nothing now. */
    assert_int_equal(store_keys(&f, token, key), KEYS_CODE(ITOKEN_MISMATCH));
}

TEST(nothing_succeeds_that_is_not_on_disk)
{
    FIXTURE(f);
    give_quote_cert(&f);
    assert_int_equal(judge(&f), CODE(SUCCESS));
    const struct str token = state_of(&f).integrity_token;
    f.w.faulty.failing = "secrets";
    assert_int_equal(store_keys(&f, token, STR("key")), -1);
    assert_int_equal(f.status, 503);
    assert_null(send_quote(&f, new_quote(&f, ask_nonce(&f))));
    assert_int_equal(f.status, 503);
    assert_true(str_eq(f.device->integrity_token, token));
    f.w.faulty.failing = NULL;
    assert_int_equal(state_of(&f).storage_keys.n, 0);
}

/* ---- state ----------------------------------------------------------------------------------- */

TEST(a_namesake_inherits_nothing)
{
    FIXTURE(f);
    give_quote_cert(&f);
    assert_int_equal(judge(&f), CODE(SUCCESS));
    /* Nobody collects here: the Secret of the old Device stays. */
    world_delete(&f.w, "devices", "site", "d1");
    world_create(&f.w, "devices", "site", "d1", "'spec':{'certificate':'%s'}", f.identity.pem.p);
    device_unref(f.device);
    f.device = world_device(&f.w, &f.identity);
    assert_int_equal(state_of(&f).integrity_token.n, 0);
    assert_int_equal(state_of(&f).certificates.n, 0);
    assert_int_equal(send_cert(&f, &f.ecdh, TYPE_ECDH), 201);
    assert_int_equal(count_certs(&f), 1);
    assert_int_equal(state_of(&f).integrity_token.n, 0);
}

TEST(what_is_no_request_is_refused)
{
    FIXTURE(f);
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    assert_null(post(&f, &req));
    assert_int_equal(f.status, 422);
    req.reqtype = (Eve__Attest__ZAttestReqType) 9;
    assert_null(post(&f, &req));
    assert_int_equal(f.status, 422);
    struct device_call c = {.api = &f.w.api,
                            .arena = f.w.arena,
                            .device = f.device,
                            .payload = STR("\xff\xff\xff"),
                            .is_v1 = true};
    (void) device_attest(&c);
    assert_int_equal(c.status, 422);
}
