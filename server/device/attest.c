/* SPDX-License-Identifier: Apache-2.0 */
/* POST attest: the device's certificates, a nonce, its quote, keys to be kept for it. */
#include "base/alloc.h"
#include "device/attest_internal.h"

#define RETRY_AFTER_S 5

int attest_put_off(struct device_call *c, const struct status *st)
{
    c->retry_after_s = RETRY_AFTER_S;
    return device_refuse(c, 503, "the device's state cannot be reached: %.*s",
                         STR_ARG(st->message));
}

int attest_answer(struct device_call *c, Eve__Attest__ZAttestResponse *r)
{
    return device_answer(c, 201, &r->base);
}

/* ---- nonce ----------------------------------------------------------------------------------- */

/* One at a time: a new one takes the place of the last. In memory alone: after a restart the device
 * is told that its nonce is another, and asks again. */
static int give_nonce(struct device_call *c, const Eve__Attest__ZAttestReq *req)
{
    (void) req;
    struct device *d = c->device;
    unsigned char *nonce = arena_alloc(c->arena, DEVICE_NONCE_BYTES);
    random_bytes(nonce, DEVICE_NONCE_BYTES);
    (void) pthread_mutex_lock(&d->lock);
    memcpy(d->nonce, nonce, DEVICE_NONCE_BYTES);
    d->nonce_n = DEVICE_NONCE_BYTES;
    d->nonce_made_us = c->api->clock->monotonic_us(c->api->clock);
    (void) pthread_mutex_unlock(&d->lock);

    Eve__Attest__ZAttestNonceResp answer = EVE__ATTEST__ZATTEST_NONCE_RESP__INIT;
    Eve__Attest__ZAttestResponse response = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    answer.nonce = pb_data(str_range((const char *) nonce, DEVICE_NONCE_BYTES));
    response.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__ATTEST_RESP_NONCE;
    response.nonce = &answer;
    return attest_answer(c, &response);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int answer_keys(struct device_call *c, Eve__Attest__AttestStorageKeysResponseCode code)
{
    Eve__Attest__AttestStorageKeysResp answer = EVE__ATTEST__ATTEST_STORAGE_KEYS_RESP__INIT;
    Eve__Attest__ZAttestResponse response = EVE__ATTEST__ZATTEST_RESPONSE__INIT;
    answer.response = code;
    response.resptype = EVE__ATTEST__ZATTEST_RESP_TYPE__Z_ATTEST_RESP_TYPE_STORE_KEYS;
    response.storage_keys_resp = &answer;
    return attest_answer(c, &response);
}

/* The keys are sealed to the device's TPM: they go in and out as they are. The token is not theirs.
 */
static struct str pack_keys(struct device_call *c, const Eve__Attest__AttestStorageKeys *sent)
{
    Eve__Attest__AttestStorageKeys keys = EVE__ATTEST__ATTEST_STORAGE_KEYS__INIT;
    keys.n_keys = sent->n_keys;
    keys.keys = sent->keys;
    return pb_pack(c->arena, &keys.base);
}

/* A device that was told SUCCESS may delete its own copy: not before the keys are on disk. */
static int store_keys(struct device_call *c, const Eve__Attest__ZAttestReq *req)
{
    const Eve__Attest__AttestStorageKeys *sent = req->storage_keys;
    struct device_state state;
    struct status st;
    status_init(&st, c->arena);
    if (!sent || sent->n_keys > ATTEST_MAX_KEYS)
        return device_refuse(c, 422, "a request to store keys must have some, at most %d",
                             ATTEST_MAX_KEYS);
    if (device_state_load(c->api->client, c->arena, c->device, &state, &st) < 0)
        return attest_put_off(c, &st);
    const struct str token = pb_bytes(sent->integrity_token);
    if (!token.n || !str_eq(token, state.integrity_token))
        return answer_keys(
            c,
            EVE__ATTEST__ATTEST_STORAGE_KEYS_RESPONSE_CODE__ATTEST_STORAGE_KEYS_RESPONSE_CODE_ITOKEN_MISMATCH);
    const struct device_state change = {.storage_keys = pack_keys(c, sent)};
    /* None would wipe out those that are kept. */
    if (!sent->n_keys || change.storage_keys.n > ATTEST_MAX_KEYS_BYTES)
        return answer_keys(
            c,
            EVE__ATTEST__ATTEST_STORAGE_KEYS_RESPONSE_CODE__ATTEST_STORAGE_KEYS_RESPONSE_CODE_INVALID);
    if (device_state_save(c->api->client, c->arena, c->device, &change, &st) < 0)
        return attest_put_off(c, &st);
    return answer_keys(
        c,
        EVE__ATTEST__ATTEST_STORAGE_KEYS_RESPONSE_CODE__ATTEST_STORAGE_KEYS_RESPONSE_CODE_SUCCESS);
}

/* ---------------------------------------------------------------------------------------------- */

int device_attest(struct device_call *c)
{
    static attest_handler *const handlers[] = {
        [EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_CERT] = attest_certs,
        [EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_NONCE] = give_nonce,
        [EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_QUOTE] = attest_quote,
        [EVE__ATTEST__ZATTEST_REQ_TYPE__Z_ATTEST_REQ_TYPE_STORE_KEYS] = store_keys,
    };
    const Eve__Attest__ZAttestReq *req = PB_UNPACK(c->arena, eve__attest__zattest_req, c->payload);
    if (!req)
        return device_refuse(c, 422, "the payload is no ZAttestReq");
    const size_t type = (size_t) req->reqtype;
    if (type >= N_ELEMENTS(handlers) || !handlers[type])
        return device_refuse(c, 422, "no such type of request: %d", (int) req->reqtype);
    /* What is kept is read, judged and written as one. */
    (void) pthread_mutex_lock(&c->device->attest_lock);
    (void) handlers[type](c, req);
    (void) pthread_mutex_unlock(&c->device->attest_lock);
    return 0;
}
