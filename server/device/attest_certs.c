/* SPDX-License-Identifier: Apache-2.0 */
/* The further certificates of a device, signed with its key: for quotes, for encryption, of its
 * TPM.
 *
 * A device whose certificates are refused goes into maintenance mode until some are accepted, and
 * drops the message for good on 4xx codes other than 401, 403, 407, 408 and 429. So what we cannot
 * accept is refused with 403: the device keeps it and asks again every few minutes, and comes out
 * by itself once an operator has removed what stands in its way. */
#include "device/attest_internal.h"

static const Eve__Attest__ZAttestReq *stored(struct arena *a, const struct device_state *s)
{
    return PB_UNPACK(a, eve__attest__zattest_req, s->certificates);
}

static bool is_same(const Eve__Certs__ZCert *a, const Eve__Certs__ZCert *b)
{
    return a->type == b->type && str_eq(pb_bytes(a->cert), pb_bytes(b->cert));
}

static bool is_mutable(const Eve__Certs__ZCert *c)
{
    return c->attributes && c->attributes->is_mutable;
}

/* ---- looking --------------------------------------------------------------------------------- */

const Eve__Certs__ZCert *attest_find_cert(struct arena *a, const struct device_state *s, int type)
{
    const Eve__Attest__ZAttestReq *kept = stored(a, s);
    for (size_t i = 0; kept && i < kept->n_certs; i++)
        if ((int) kept->certs[i]->type == type)
            return kept->certs[i];
    return NULL;
}

/* A certificate for quotes proves nothing: devices make one in software when they have no TPM. */
bool attest_certs_show_tpm(struct arena *a, const struct device_state *s)
{
    const Eve__Attest__ZAttestReq *kept = stored(a, s);
    for (size_t i = 0; kept && i < kept->n_certs; i++) {
        const Eve__Certs__ZCert *c = kept->certs[i];
        if (c->type == EVE__CERTS__ZCERT_TYPE__CERT_TYPE_DEVICE_ENDORSEMENT_RSA ||
            (c->attributes && c->attributes->is_tpm))
            return true;
    }
    return false;
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Over the PEM bytes exactly as they were sent. */
static bool has_good_hash(const Eve__Certs__ZCert *c)
{
    unsigned char hash[SHA256_BYTES];
    const struct str sent = pb_bytes(c->certhash);
    const size_t n = c->hashalgo == EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_16BYTES
                         ? ENVELOPE_SHORT_HASH_BYTES
                     : c->hashalgo == EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_32BYTES
                         ? ENVELOPE_HASH_BYTES
                         : 0;
    pki_sha256(pb_bytes(c->cert), hash);
    return n && sent.n == n && memcmp(sent.p, hash, n) == 0;
}

/* NULL, or what is wrong with it. */
static const char *problem_of(const struct device *d, const Eve__Certs__ZCert *c)
{
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    if (c->cert.len > ATTEST_MAX_CERT_BYTES)
        return "is too large";
    if (!has_good_hash(c))
        return "does not have the hash it comes with";
    if (pki_cert_parse(pb_bytes(c->cert), &cert) < 0)
        return "cannot be read";
    if (!pki_cert_is_signed_with(cert, d->key))
        return "is not signed by the device's key";
    return NULL;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Those that are to be kept: what there was, then what is new. */
struct keep {
    Eve__Certs__ZCert *certs[2 * ATTEST_MAX_CERTS];
    size_t n;
    bool is_changed;
};

static bool has(const struct keep *k, const Eve__Certs__ZCert *c)
{
    for (size_t i = 0; i < k->n; i++)
        if (is_same(k->certs[i], c))
            return true;
    return false;
}

/* False: it would take the place of one that must stay. n_old: how many of k were kept before. */
static bool make_room(struct keep *k, size_t *n_old, const Eve__Certs__ZCert *c)
{
    for (size_t i = 0; i < *n_old; i++) {
        if (k->certs[i]->type != c->type)
            continue;
        if (!is_mutable(k->certs[i]))
            return false;
        k->n--;
        (*n_old)--;
        memmove(&k->certs[i], &k->certs[i + 1], (k->n - i) * sizeof(k->certs[0]));
        i--;
    }
    return true;
}

/* NULL, or what is wrong. */
static const char *merge(struct keep *k, const Eve__Attest__ZAttestReq *req)
{
    size_t n_old = k->n;
    for (size_t i = 0; i < req->n_certs; i++) {
        Eve__Certs__ZCert *c = req->certs[i];
        if (has(k, c))
            continue;
        if (!make_room(k, &n_old, c))
            return "would replace one of the same type, which is not mutable; remove the key "
                   "\"certificates\" from the device's Secret to allow it";
        if (k->n == ATTEST_MAX_CERTS)
            return "is one too many";
        k->certs[k->n++] = c;
        k->is_changed = true;
    }
    return NULL;
}

static struct str pack(struct device_call *c, struct keep *k)
{
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    req.reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_CERT;
    req.n_certs = k->n;
    req.certs = k->certs;
    return pb_pack(c->arena, &req.base);
}

static void recall(struct device_call *c, const struct device_state *s, struct keep *k)
{
    const Eve__Attest__ZAttestReq *kept = stored(c->arena, s);
    *k = (struct keep){0};
    for (size_t i = 0; kept && i < MIN(kept->n_certs, (size_t) ATTEST_MAX_CERTS); i++)
        k->certs[k->n++] = kept->certs[i];
}

static int refuse(struct device_call *c, const Eve__Certs__ZCert *cert, const char *problem)
{
    return device_refuse(c, 403, "the device's certificate of type %d %s", (int) cert->type,
                         problem);
}

int attest_certs(struct device_call *c, const Eve__Attest__ZAttestReq *req)
{
    struct device_state state;
    struct keep keep;
    struct status st;
    status_init(&st, c->arena);
    if (!req->n_certs || req->n_certs > ATTEST_MAX_CERTS)
        return device_refuse(c, 422, "a request with certificates must have 1 to %d",
                             ATTEST_MAX_CERTS);
    for (size_t i = 0; i < req->n_certs; i++) {
        const char *problem = problem_of(c->device, req->certs[i]);
        if (problem)
            return refuse(c, req->certs[i], problem);
    }
    if (device_state_load(c->api->client, c->arena, c->device, &state, &st) < 0)
        return attest_put_off(c, &st);
    recall(c, &state, &keep);
    const char *problem = merge(&keep, req);
    if (problem)
        return device_refuse(c, 403, "a certificate of the device %s", problem);
    struct device_state change = {0};
    change.certificates = pack(c, &keep);
    if (change.certificates.n > ATTEST_MAX_CERTS_BYTES)
        return device_refuse(c, 403, "the device's certificates are too large");
    change.has_tpm = attest_certs_show_tpm(c->arena, &change);
    if (keep.is_changed && device_state_save(c->api->client, c->arena, c->device, &change, &st) < 0)
        return attest_put_off(c, &st);
    Eve__Attest__ZAttestResponse response = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    response.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_CERT;
    return attest_answer(c, &response);
}
