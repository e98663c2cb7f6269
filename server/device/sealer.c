/* SPDX-License-Identifier: Apache-2.0 */
#include "device/sealer.h"

#include <errno.h>

#include "device/attest_internal.h"
#include "eve/cipher.h"

/* The sealing for one device, in the arena of its composition. */
struct sealer {
    struct device_api *api;
    const struct json *device;
    bool is_opened;
    int result; /* of opening: 0, or why nothing can be sealed */
    struct cipher_pair pair;
    const Eve__Common__CipherContext *context;
};

/* The part of a device that finds its state. */
static struct device owner_of(const struct json *device)
{
    const struct json *metadata = json_get(device, STR("metadata"));
    return (struct device){.namespace = json_get_str(metadata, STR("namespace")),
                           .name = json_get_str(metadata, STR("name")),
                           .uid = json_get_str(metadata, STR("uid"))};
}

static int make_pair(struct sealer *s, struct arena *a, const Eve__Certs__ZCert *sent)
{
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    int r = pki_cert_parse(pb_bytes(sent->cert), &cert);
    if (r < 0)
        return r;
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(cert);
    struct controller_set *set = controller_certs_get(s->api->certs);
    r = cipher_pair(a, set->ecdh_key, set->ecdh_cert_hash, key, pb_bytes(sent->certhash), &s->pair);
    bytes_unref(&set->bytes);
    return r;
}

static int open_pair(struct sealer *s, struct arena *a)
{
    const struct device owner = owner_of(s->device);
    struct device_state state = {0};
    struct status st;
    status_init(&st, a);
    int r = device_state_load(s->api->client, a, &owner, &state, &st);
    if (r < 0)
        return r;
    const Eve__Certs__ZCert *sent =
        attest_find_cert(a, &state, EVE__CERTS__ZCERT_TYPE__CERT_TYPE_DEVICE_ECDH_EXCHANGE);
    if (!sent)
        return -EAGAIN;
    r = make_pair(s, a, sent);
    if (r == 0)
        s->context = cipher_context(a, &s->pair);
    return r;
}

static int seal(void *ctx, struct arena *a, struct str identity, struct str plaintext,
                struct compose_sealed *ret)
{
    struct sealer *s = ctx;
    unsigned char iv[CIPHER_IV_BYTES];
    if (!s->is_opened) {
        s->result = open_pair(s, a);
        s->is_opened = true;
    }
    if (s->result < 0)
        return s->result;
    cipher_synthetic_iv(a, &s->pair, identity, plaintext, iv);
    *ret = (struct compose_sealed){cipher_seal(a, &s->pair, plaintext, iv), s->context};
    return 0;
}

int sealer_open(void *device_api, struct arena *a, const struct json *device,
                compose_seal **ret_seal, void **ret_ctx, struct status *st)
{
    (void) st;
    struct sealer *s = ARENA_NEW(a, struct sealer);
    *s = (struct sealer){.api = device_api, .device = device};
    *ret_seal = seal;
    *ret_ctx = s;
    return 0;
}
