/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/bootstrap.h"

#include <errno.h>

#include "eve/envelope.h"
#include "pki/chain.h"
#include "protobuf/message.h"

#define SIGNING EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING
#define INTERMEDIATE EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_INTERMEDIATE

static int reject(const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return -EKEYREJECTED;
}

/* The signing certificate, then those that may stand between it and the root. */
static int make_chain(const Eve__Config__BootstrapConfig *b, struct pki_chain *chain,
                      struct str *ret_pem, const char **ret_reason)
{
    const int order[] = {SIGNING, INTERMEDIATE};
    for (size_t k = 0; k < N_ELEMENTS(order); k++)
        for (size_t i = 0; i < b->n_controller_certs; i++) {
            const Eve__Certs__ZCert *c = b->controller_certs[i];
            if ((int) c->type != order[k])
                continue;
            if (order[k] == SIGNING && chain->n)
                return reject("there is more than one signing certificate", ret_reason);
            if (chain->n == PKI_CHAIN_MAX)
                return reject("there are too many certificates", ret_reason);
            if (pki_cert_parse(pb_bytes(c->cert), &chain->certs[chain->n]) < 0)
                return reject("a certificate is damaged", ret_reason);
            if (order[k] == SIGNING)
                *ret_pem = pb_bytes(c->cert);
            chain->n++;
        }
    return ret_pem->p ? 0 : reject("there is no signing certificate", ret_reason);
}

static int check_signature(const struct pki_chain *chain, struct str pem, struct str packed,
                           struct envelope *ret, const char **ret_reason)
{
    unsigned char hash[SHA256_BYTES];
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(chain->certs[0]);
    if (!key || envelope_parse(packed, ret) < 0 || envelope_check_form(ret) < 0)
        return reject("the envelope is damaged", ret_reason);
    pki_sha256(pem, hash);
    if (!str_eq(ret->sender_hash, str_range((const char *) hash, ret->sender_hash.n)))
        return reject("it is signed by another certificate", ret_reason);
    return envelope_verify(ret, key) == 0 ? 0 : reject("the signature does not match", ret_reason);
}

int bootstrap_open(struct arena *a, struct str file, struct str roots_pem, int64_t at_s,
                   const Eve__Config__EdgeDevConfig **ret, const char **ret_reason)
{
    const Eve__Config__BootstrapConfig *b = PB_UNPACK(a, eve__config__bootstrap_config, file);
    PKI_CHAIN_AUTO chain = {0};
    PKI_CHAIN_AUTO roots = {0};
    PKI_CHAIN_AUTO between = {0};
    struct str pem = STR_NONE;
    struct envelope e;
    int r;
    *ret_reason = "it is no bootstrap configuration";
    if (!b || !b->signed_config)
        return -EBADMSG;
    r = make_chain(b, &chain, &pem, ret_reason);
    if (r < 0)
        return r;
    if (pki_chain_parse(roots_pem, &roots) < 0)
        return reject("root-certificate.pem is absent or damaged", ret_reason);
    r = pki_chain_verify(&chain, &roots, at_s, &between, ret_reason);
    if (r < 0)
        return r;
    r = check_signature(&chain, pem, pb_pack(a, &b->signed_config->base), &e, ret_reason);
    if (r < 0)
        return r;
    *ret = PB_UNPACK(a, eve__config__edge_dev_config, e.payload);
    if (*ret)
        return 0;
    *ret_reason = "it holds no configuration";
    return -EBADMSG;
}
