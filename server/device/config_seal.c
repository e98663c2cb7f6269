/* SPDX-License-Identifier: Apache-2.0 */
#include "device/config_seal.h"

#include <errno.h>

#include "eve/attest.pb-c.h"
#include "eve/cipher.h"
#include "roster/state.h"

static const struct controller_old_key *old_key(const struct controller_set *set,
                                                struct str cert_hash)
{
    for (size_t i = 0; i < set->n_old_keys; i++)
        if (str_eq(set->old_keys[i].cert_hash, cert_hash))
            return &set->old_keys[i];
    return NULL;
}

/* The key of the device's certificate with this hash, as it told us when it attested. */
static struct pki_public *device_key(struct device_call *c, struct str cert_hash)
{
    struct device_state state = {0};
    struct status st;
    status_init(&st, c->arena);
    if (device_state_load(c->api->client, c->arena, c->device, &state, &st) < 0)
        return NULL;
    const Eve__Attest__ZAttestReq *sent =
        PB_UNPACK(c->arena, eve__attest__zattest_req, state.certificates);
    for (size_t i = 0; sent && i < sent->n_certs; i++) {
        CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
        if (str_eq(pb_bytes(sent->certs[i]->certhash), cert_hash) &&
            pki_cert_parse(pb_bytes(sent->certs[i]->cert), &cert) == 0)
            return pki_cert_public(cert);
    }
    return NULL;
}

static int reseal_context(struct device_call *c, Eve__Config__EdgeDevConfig *config,
                          const struct controller_set *set, const struct controller_old_key *old,
                          struct str device_hash)
{
    struct cipher_pair from, to;
    CLEANUP(pki_public_freep) struct pki_public *key = device_key(c, device_hash);
    if (!key || cipher_pair(c->arena, old->key, old->cert_hash, key, device_hash, &from) < 0 ||
        cipher_pair(c->arena, set->ecdh_key, set->ecdh_cert_hash, key, device_hash, &to) < 0 ||
        cipher_reseal(c->arena, config, &from, &to) < 0) {
        c->reason = STR("encrypted parts of the DeviceConfig cannot be sealed anew: they were not "
                        "made for this device");
        return -EBADMSG;
    }
    return 0;
}

int config_reseal(struct device_call *c, Eve__Config__EdgeDevConfig *config,
                  const struct controller_set *set)
{
    /* Each replaces its context in the list, which keeps its length. */
    for (size_t i = 0; i < config->n_ciphercontexts; i++) {
        const Eve__Common__CipherContext *context = config->ciphercontexts[i];
        const struct controller_old_key *old = old_key(set, pb_bytes(context->controllercerthash));
        int r = old ? reseal_context(c, config, set, old, pb_bytes(context->devicecerthash)) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}
