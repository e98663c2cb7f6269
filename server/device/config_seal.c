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
static struct pki_public *device_key(struct config_settling *s, struct str cert_hash)
{
    struct device_state state = {0};
    struct status st;
    status_init(&st, s->arena);
    if (device_state_load(s->api->client, s->arena, s->device, &state, &st) < 0)
        return NULL;
    const Eve__Attest__ZAttestReq *sent =
        PB_UNPACK(s->arena, eve__attest__zattest_req, state.certificates);
    for (size_t i = 0; sent && i < sent->n_certs; i++) {
        CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
        if (str_eq(pb_bytes(sent->certs[i]->certhash), cert_hash) &&
            pki_cert_parse(pb_bytes(sent->certs[i]->cert), &cert) == 0)
            return pki_cert_public(cert);
    }
    return NULL;
}

static int reseal_context(struct config_settling *s, Eve__Config__EdgeDevConfig *config,
                          const struct controller_old_key *old, struct str device_hash)
{
    const struct controller_set *set = s->set;
    struct cipher_pair from, to;
    CLEANUP(pki_public_freep) struct pki_public *key = device_key(s, device_hash);
    if (!key || cipher_pair(s->arena, old->key, old->cert_hash, key, device_hash, &from) < 0 ||
        cipher_pair(s->arena, set->ecdh_key, set->ecdh_cert_hash, key, device_hash, &to) < 0 ||
        cipher_reseal(s->arena, config, &from, &to) < 0) {
        s->reason = STR("encrypted parts of the DeviceConfig cannot be sealed anew: they were not "
                        "made for this device");
        return -EBADMSG;
    }
    return 0;
}

int config_reseal(struct config_settling *s, Eve__Config__EdgeDevConfig *config)
{
    /* Each replaces its context in the list, which keeps its length. */
    for (size_t i = 0; i < config->n_ciphercontexts; i++) {
        const Eve__Common__CipherContext *context = config->ciphercontexts[i];
        const struct controller_old_key *old =
            old_key(s->set, pb_bytes(context->controllercerthash));
        int r = old ? reseal_context(s, config, old, pb_bytes(context->devicecerthash)) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}
