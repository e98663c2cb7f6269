/* SPDX-License-Identifier: Apache-2.0 */
/* Who the device is: its own certificate, made at the first start, and the onboarding one. */
#include <errno.h>

#include "base/alloc.h"
#include "node/node_internal.h"
#include "pki/chain.h"
#include "pki/openssl.h"

#define VALID_DAYS ((int64_t) 20 * 366)
#define KEY_MODE 0600
#define CERT_MODE 0644

struct files {
    const char *cert, *key;
};
static const struct files device_files = {"device.cert.pem", "device.key.pem"};
static const struct files onboarding_files = {"onboard.cert.pem", "onboard.key.pem"};

void node_identity_done(struct node_identity *i)
{
    mem_free((char *) i->cert_pem.p);
    pki_key_free(i->key);
    pki_cert_free(i->cert);
    uplink_tls_unref(i->tls);
    *i = (struct node_identity){0};
}

static int make_tls(const struct node_identity *i, struct uplink_trust *trust,
                    struct uplink_tls **ret)
{
    const struct uplink_tls_options o = {
        .trust = trust, .cert_pem = i->cert_pem, .key = pki_key_openssl(i->key)};
    return uplink_tls_new(&o, ret);
}

int node_identities_trust(struct node *n, struct uplink_trust *trust)
{
    struct node_identity *const both[] = {&n->identity, &n->onboarding};
    for (size_t i = 0; i < N_ELEMENTS(both); i++) {
        struct uplink_tls *tls = NULL;
        if (!both[i]->tls)
            continue;
        const int r = make_tls(both[i], trust, &tls);
        if (r < 0)
            return r;
        uplink_tls_unref(both[i]->tls);
        both[i]->tls = tls;
    }
    return 0;
}

/* Takes the key. */
static int fill(struct node *n, struct node_identity *i, struct str cert_pem, struct pki_key *key)
{
    i->key = key;
    i->cert_pem = str_range(mem_dup(cert_pem.p, cert_pem.n), cert_pem.n);
    int r = pki_cert_parse(i->cert_pem, &i->cert);
    if (r < 0)
        return r;
    pki_cert_fingerprint(i->cert, i->cert_hash);
    if (!pki_key_fits(key, i->cert))
        return -EKEYREJECTED;
    return make_tls(i, n->trust, &i->tls);
}

static int load(struct node *n, const struct files *f, struct node_identity *i,
                const char **ret_what)
{
    BUF_AUTO cert = {0};
    BUF_AUTO pem = {0};
    struct pki_key *key = NULL;
    *ret_what = f->cert;
    int r = node_file_read(n, NODE_CONFIG, str_of(f->cert), &cert);
    if (r < 0)
        return r;
    *ret_what = f->key;
    r = node_file_read(n, NODE_CONFIG, str_of(f->key), &pem);
    if (r == 0)
        r = pki_key_parse(buf_str(&pem), &key);
    /* Its absence is no absence of the identity. */
    if (r < 0)
        return r == -ENOENT ? -ENOKEY : r;
    *ret_what = f->cert;
    return fill(n, i, buf_str(&cert), key);
}

/* The certificate comes last: where it is, the key is. It signs those of the device's other keys.
 */
static int make(struct node *n, struct node_identity *i, const char **ret_what)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    const struct str organization = STR("The Linux Foundation");
    const struct pki_cert_options o = {.common_name = STR("EVE"),
                                       .organizations = &organization,
                                       .n_organizations = 1,
                                       .is_ca = true,
                                       .for_server = true,
                                       .for_client = true,
                                       .valid_days = VALID_DAYS};
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new(&o, key, NULL, NULL);
    if (!cert)
        return -EIO;
    const struct str pem = pki_cert_pem(a, cert);
    *ret_what = device_files.key;
    int r = node_file_write_mode(n, NODE_CONFIG, str_of(device_files.key), pki_key_pem(a, key),
                                 KEY_MODE);
    if (r < 0)
        return r;
    *ret_what = device_files.cert;
    r = node_file_write_mode(n, NODE_CONFIG, str_of(device_files.cert), pem, CERT_MODE);
    return r < 0 ? r : fill(n, i, pem, TAKE(key));
}

int node_identities_load(struct node *n, const char **ret_what)
{
    int r = load(n, &device_files, &n->identity, ret_what);
    if (r == -ENOENT)
        r = make(n, &n->identity, ret_what);
    if (r < 0)
        return r;
    r = load(n, &onboarding_files, &n->onboarding, ret_what);
    /* One without a key, as a device keeps it that needs it no more, is none. */
    if (r == -ENOKEY || r == -ENOENT) {
        node_identity_done(&n->onboarding);
        r = 0;
    }
    return r;
}
