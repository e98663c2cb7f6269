/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/messages.h"

#include <errno.h>

#include "base/base64.h"
#include "eve/attest.pb-c.h"
#include "protobuf/message.h"

#define REQUEST(name) EVE__ATTEST__ZATTEST_REQ_TYPE__##name
#define RESPONSE(name) EVE__ATTEST__ZATTEST_RESP_TYPE__##name
#define CODE(name) EVE__ATTEST__ZATTEST_RESPONSE_CODE__Z_ATTEST_RESPONSE_CODE_##name
#define STORED(name) \
    EVE__ATTEST__ATTEST_STORAGE_KEYS_RESPONSE_CODE__ATTEST_STORAGE_KEYS_RESPONSE_CODE_##name
#define CERT(name) EVE__CERTS__ZCERT_TYPE__CERT_TYPE_DEVICE_##name

/* ---- bytes in JSON -------------------------------------------------------------------------- */

/* A []byte of Go: base64, or null. */
static int get_bytes(struct arena *a, const struct json *object, struct str key,
                     ProtobufCBinaryData *ret)
{
    const struct json *value = json_get(object, key);
    struct str bytes = STR("");
    if (value && value->type != JSON_NULL &&
        (value->type != JSON_STRING ||
         base64_decode(a, json_str(value), BASE64_STANDARD, &bytes, NULL) < 0))
        return -EBADMSG;
    *ret = pb_data(bytes);
    return 0;
}

/* ---- nonce, escrow -------------------------------------------------------------------------- */

struct str attest_nonce_request(struct arena *a)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    req.reqtype = REQUEST(ATTEST_REQ_NONCE);
    return pb_pack(a, &req.base);
}

struct str attest_escrow_request(struct arena *a, struct str token, struct str key)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    Eve__Attest__AttestStorageKeys keys = EVE__ATTEST__ATTEST_STORAGE_KEYS__INIT;
    Eve__Attest__AttestVolumeKey one = EVE__ATTEST__ATTEST_VOLUME_KEY__INIT, *all[] = {&one};
    one.key_type = EVE__ATTEST__ATTEST_VOLUME_KEY_TYPE__ATTEST_VOLUME_KEY_TYPE_VSK;
    one.key = pb_data(key);
    keys.integrity_token = pb_data(token);
    keys.n_keys = N_ELEMENTS(all);
    keys.keys = all;
    req.reqtype = REQUEST(Z_ATTEST_REQ_TYPE_STORE_KEYS);
    req.storage_keys = &keys;
    return pb_pack(a, &req.base);
}

/* ---- quote ---------------------------------------------------------------------------------- */

static int read_pcr(struct arena *a, const struct json *pcr, Eve__Attest__TpmPCRValue **ret)
{
    Eve__Attest__TpmPCRValue *v = ARENA_NEW(a, Eve__Attest__TpmPCRValue);
    eve__attest__tpm_pcrvalue__init(v);
    const int64_t algo = json_get_int(pcr, STR("Algo"), 0);
    const int64_t index = json_get_int(pcr, STR("Index"), -1);
    if (index < 0 || index > UINT8_MAX)
        return -EBADMSG;
    v->index = (uint32_t) index;
    /* The topic numbers them as the message does. */
    if (algo != EVE__ATTEST__TPM_HASH_ALGO__TPM_HASH_ALGO_SHA1 &&
        algo != EVE__ATTEST__TPM_HASH_ALGO__TPM_HASH_ALGO_SHA256)
        return -EBADMSG;
    v->hash_algo = (Eve__Attest__TpmHashAlgo) algo;
    *ret = v;
    return get_bytes(a, pcr, STR("Digest"), &v->value);
}

static int add_pcrs(struct arena *a, const struct json *list, Eve__Attest__ZAttestQuote *q)
{
    q->pcr_values = ARENA_ARRAY(a, Eve__Attest__TpmPCRValue *, json_count(list) + 1);
    JSON_FOR_EACH_ITEM (list, pcr) {
        const int r = read_pcr(a, pcr, &q->pcr_values[q->n_pcr_values++]);
        if (r < 0)
            return r;
    }
    return 0;
}

static void add_version(struct arena *a, Eve__Attest__ZAttestQuote *q,
                        Eve__Attest__AttestVersionType type, struct str text)
{
    if (!text.n)
        return;
    Eve__Attest__AttestVersionInfo *v = ARENA_NEW(a, Eve__Attest__AttestVersionInfo);
    eve__attest__attest_version_info__init(v);
    v->version_type = type;
    v->version = arena_strz(a, text);
    q->versions[q->n_versions++] = v;
}

int attest_quote_request(struct arena *a, const struct json *quote, struct attest_versions versions,
                         struct str event_log, struct str *ret)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    Eve__Attest__ZAttestQuote q;
    Eve__Attest__AttestVersionInfo *room[2];
    eve__attest__zattest_quote__init(&q);
    q.versions = room;
    if (get_bytes(a, quote, STR("Quote"), &q.attestdata) < 0 ||
        get_bytes(a, quote, STR("Signature"), &q.signature) < 0 ||
        add_pcrs(a, json_get(quote, STR("PCRs")), &q) < 0)
        return -EBADMSG;
    add_version(a, &q, EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_EVE, versions.eve);
    add_version(a, &q, EVE__ATTEST__ATTEST_VERSION_TYPE__ATTEST_VERSION_TYPE_FIRMWARE,
                versions.firmware);
    q.tpm_binary_event_log = pb_data(event_log);
    req.reqtype = REQUEST(ATTEST_REQ_QUOTE);
    req.quote = &q;
    *ret = pb_pack(a, &req.base);
    if (ret->n > ATTEST_MAX_QUOTE_BYTES && event_log.n) {
        q.tpm_binary_event_log = pb_data(STR(""));
        *ret = pb_pack(a, &req.base);
    }
    return 0;
}

/* ---- certificates --------------------------------------------------------------------------- */

static Eve__Certs__ZCertType cert_type(int64_t type)
{
    switch (type) {
    case EDGE_NODE_CERT_ONBOARDING:
        return CERT(ONBOARDING);
    case EDGE_NODE_CERT_QUOTE:
        return CERT(RESTRICTED_SIGNING);
    case EDGE_NODE_CERT_ENDORSEMENT:
        return CERT(ENDORSEMENT_RSA);
    case EDGE_NODE_CERT_ECDH:
        return CERT(ECDH_EXCHANGE);
    default:
        return EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_NONE;
    }
}

static int add_meta_data(struct arena *a, const struct json *list, Eve__Certs__ZCert *c)
{
    c->meta_data_items = ARENA_ARRAY(a, Eve__Certs__ZCertMetaData *, json_count(list) + 1);
    JSON_FOR_EACH_ITEM (list, item) {
        Eve__Certs__ZCertMetaData *m = ARENA_NEW(a, Eve__Certs__ZCertMetaData);
        eve__certs__zcert_meta_data__init(m);
        m->type = (Eve__Certs__ZCertMetaDataType) json_get_int(item, STR("Type"), 0);
        if (get_bytes(a, item, STR("Data"), &m->meta_data) < 0)
            return -EBADMSG;
        c->meta_data_items[c->n_meta_data_items++] = m;
    }
    return 0;
}

static Eve__Certs__ZCert *read_cert(struct arena *a, const struct json *value)
{
    Eve__Certs__ZCert *c = ARENA_NEW(a, Eve__Certs__ZCert);
    eve__certs__zcert__init(c);
    c->type = cert_type(json_get_int(value, STR("CertType"), 0));
    c->hashalgo = (Eve__Common__HashAlgorithm) json_get_int(value, STR("HashAlgo"), 0);
    if (c->type == EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_NONE ||
        get_bytes(a, value, STR("CertID"), &c->certhash) < 0 ||
        get_bytes(a, value, STR("Cert"), &c->cert) < 0 || !c->cert.len ||
        add_meta_data(a, json_get(value, STR("MetaDataItems")), c) < 0)
        return NULL;
    return c;
}

int attest_certs_request(struct arena *a, const struct json *const *certs, size_t n,
                         struct str *ret)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    Eve__Certs__ZCert *all[ATTEST_MAX_CERTS];
    req.reqtype = REQUEST(ATTEST_REQ_CERT);
    req.certs = all;
    for (size_t i = 0; i < n && req.n_certs < N_ELEMENTS(all); i++) {
        all[req.n_certs] = read_cert(a, certs[i]);
        req.n_certs += all[req.n_certs] != NULL;
    }
    if (!req.n_certs)
        return -ENOENT;
    *ret = pb_pack(a, &req.base);
    return 0;
}

/* ---- answers -------------------------------------------------------------------------------- */

static int fail(const char **ret_problem, const char *problem)
{
    *ret_problem = problem;
    return -EBADMSG;
}

static int read_nonce(const Eve__Attest__ZAttestResponse *response, struct attest_answer *ret,
                      const char **ret_problem)
{
    if (response->resptype != RESPONSE(ATTEST_RESP_NONCE) || !response->nonce)
        return fail(ret_problem, "the answer holds no nonce");
    ret->nonce = pb_bytes(response->nonce->nonce);
    if (!ret->nonce.n || ret->nonce.n > ATTEST_MAX_NONCE_BYTES)
        return fail(ret_problem, "the nonce is empty or too long");
    ret->is_granted = true;
    return 0;
}

static const struct {
    int code;
    const char *problem;
} refusals[] = {
    {CODE(NONCE_MISMATCH), "the controller expects another nonce"},
    {CODE(NO_CERT_FOUND), "the controller has no certificate to verify the quote with"},
    {CODE(QUOTE_FAILED), "the controller does not accept the quote"},
};

static struct str key_of(const Eve__Attest__ZAttestQuoteResp *quote)
{
    for (size_t i = 0; i < quote->n_keys; i++) {
        const Eve__Attest__AttestVolumeKey *k = quote->keys[i];
        if (k->key_type == EVE__ATTEST__ATTEST_VOLUME_KEY_TYPE__ATTEST_VOLUME_KEY_TYPE_VSK &&
            k->key.len && k->key.len <= ATTEST_MAX_KEY_BYTES)
            return pb_bytes(k->key);
    }
    return STR("");
}

static int read_quote(const Eve__Attest__ZAttestResponse *response, struct attest_answer *ret,
                      const char **ret_problem)
{
    const Eve__Attest__ZAttestQuoteResp *quote = response->quoteresp;
    if (response->resptype != RESPONSE(ATTEST_RESP_QUOTE_RESP) || !quote)
        return fail(ret_problem, "the answer is none to a quote");
    for (size_t i = 0; i < N_ELEMENTS(refusals); i++)
        if ((int) quote->response == refusals[i].code)
            ret->problem = refusals[i].problem;
    ret->misses_certs = quote->response == CODE(NO_CERT_FOUND);
    if (ret->problem)
        return 0;
    if (quote->response != CODE(SUCCESS))
        return fail(ret_problem, "the controller calls the quote invalid");
    ret->is_granted = true;
    ret->token = pb_bytes(quote->integrity_token);
    ret->key = key_of(quote);
    return ret->token.n > ATTEST_MAX_TOKEN_BYTES
               ? fail(ret_problem, "the integrity token is too long")
               : 0;
}

static int read_escrow(const Eve__Attest__ZAttestResponse *response, struct attest_answer *ret,
                       const char **ret_problem)
{
    const Eve__Attest__AttestStorageKeysResp *stored = response->storage_keys_resp;
    if (response->resptype != RESPONSE(Z_ATTEST_RESP_TYPE_STORE_KEYS) || !stored)
        return fail(ret_problem, "the answer is none to an escrow");
    if (stored->response == STORED(ITOKEN_MISMATCH))
        ret->problem = "the controller expects another integrity token";
    else if (stored->response != STORED(SUCCESS))
        return fail(ret_problem, "the controller does not keep the key");
    ret->is_granted = stored->response == STORED(SUCCESS);
    return 0;
}

int attest_read_answer(struct arena *a, enum attest_answer_kind kind, struct str bytes,
                       struct attest_answer *ret, const char **ret_problem)
{
    const Eve__Attest__ZAttestResponse *response =
        PB_UNPACK(a, eve__attest__zattest_response, bytes);
    *ret = (struct attest_answer){.nonce = STR(""), .token = STR(""), .key = STR("")};
    if (!response)
        return fail(ret_problem, "the answer is no ZAttestResponse");
    return kind == ATTEST_ANSWER_NONCE   ? read_nonce(response, ret, ret_problem)
           : kind == ATTEST_ANSWER_QUOTE ? read_quote(response, ret, ret_problem)
                                         : read_escrow(response, ret, ret_problem);
}
