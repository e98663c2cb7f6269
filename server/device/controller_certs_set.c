/* SPDX-License-Identifier: Apache-2.0 */
/* One generation of the certificates, with everything devices are told of them made once. */
#include "base/alloc.h"
#include "base/base64.h"
#include "device/controller_certs_internal.h"
#include "eve/certs.pb-c.h"
#include "protobuf/message.h"

struct owned_set {
    struct controller_set set;
    struct arena *arena;
    struct pki_key *signing_key, *ecdh_key;
    struct pki_key *old_keys[CONTROLLER_MAX_OLD_KEYS];
};

static void set_free(struct bytes *b)
{
    struct controller_set *set = CONTAINER_OF(b, struct controller_set, bytes);
    struct owned_set *o = CONTAINER_OF(set, struct owned_set, set);
    pki_key_free(o->signing_key);
    pki_key_free(o->ecdh_key);
    for (size_t i = 0; i < o->set.n_old_keys; i++)
        pki_key_free(o->old_keys[i]);
    arena_free(o->arena);
    mem_free(o);
}

/* ---- the message ---------------------------------------------------------------------------- */

static Eve__Certs__ZCert *message_of(struct arena *a, const struct pki_cert *c,
                                     Eve__Certs__ZCertType type)
{
    Eve__Certs__ZCert *m = ARENA_NEW(a, Eve__Certs__ZCert);
    eve__certs__zcert__init(m);
    m->hashalgo = EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_16BYTES;
    m->certhash = pb_data(controller_cert_hash(a, c));
    m->type = type;
    m->cert = pb_data(pki_cert_pem(a, c));
    return m;
}

static bool has_cert(const Eve__Certs__ZControllerCert *m, const Eve__Certs__ZCert *c)
{
    for (size_t i = 0; i < m->n_certs; i++)
        if (str_eq(pb_bytes(m->certs[i]->cert), pb_bytes(c->cert)))
            return true;
    return false;
}

/* What both leaves need is sent once. */
static void add_between(struct arena *a, Eve__Certs__ZControllerCert *m,
                        const struct pki_chain *chain)
{
    for (size_t i = 1; i < chain->n; i++) {
        Eve__Certs__ZCert *c = message_of(
            a, chain->certs[i], EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_INTERMEDIATE);
        if (!has_cert(m, c))
            m->certs[m->n_certs++] = c;
    }
}

static struct str certs_message(struct arena *a, const struct controller_parts *p)
{
    Eve__Certs__ZControllerCert m = EVE__CERTS__ZCONTROLLER_CERT__INIT;
    m.certs = ARENA_ARRAY(a, Eve__Certs__ZCert *, p->signing.chain.n + p->ecdh.chain.n);
    m.certs[m.n_certs++] = message_of(a, p->signing.chain.certs[0],
                                      EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING);
    m.certs[m.n_certs++] = message_of(a, p->ecdh.chain.certs[0],
                                      EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE);
    add_between(a, &m, &p->signing.chain);
    add_between(a, &m, &p->ecdh.chain);
    return pb_pack(a, &m.base);
}

/* ---- the set -------------------------------------------------------------------------------- */

static int64_t earliest_end(const struct controller_parts *p)
{
    int64_t end_s = p->root_not_after_s;
    for (size_t i = 0; i < p->signing.chain.n; i++)
        end_s = MIN(end_s, pki_cert_not_after(p->signing.chain.certs[i]));
    for (size_t i = 0; i < p->ecdh.chain.n; i++)
        end_s = MIN(end_s, pki_cert_not_after(p->ecdh.chain.certs[i]));
    return end_s;
}

static void take_keys(struct owned_set *o, struct controller_parts *p)
{
    o->signing_key = TAKE(p->signing.key);
    o->ecdh_key = TAKE(p->ecdh.key);
    o->set.old_keys = ARENA_ARRAY(o->arena, struct controller_old_key, p->n_old);
    for (; o->set.n_old_keys < p->n_old; o->set.n_old_keys++) {
        struct controller_old *old = &p->old[o->set.n_old_keys];
        o->old_keys[o->set.n_old_keys] = TAKE(old->key);
        o->set.old_keys[o->set.n_old_keys] =
            (struct controller_old_key){.key = o->old_keys[o->set.n_old_keys],
                                        .cert_hash = arena_str(o->arena, old->cert_hash)};
    }
    o->set.signer.key = o->signing_key;
    o->set.ecdh_key = o->ecdh_key;
}

struct controller_set *controller_set_new(struct controller_parts *p)
{
    struct owned_set *o = NEW(struct owned_set);
    struct controller_set *set = &o->set;
    unsigned char hash[SHA256_BYTES];
    o->arena = arena_new();
    atomic_init(&set->bytes.refs, 1);
    set->bytes.free = set_free;
    pki_sha256(pki_cert_pem(o->arena, p->signing.chain.certs[0]), set->signer.cert_hash);
    set->ecdh_cert_hash = controller_cert_hash(o->arena, p->ecdh.chain.certs[0]);
    set->certs_message = certs_message(o->arena, p);
    pki_sha256(set->certs_message, hash);
    set->config_hash =
        base64_encode(o->arena, str_range((const char *) hash, sizeof(hash)), BASE64_URL);
    set->not_after_s = earliest_end(p);
    take_keys(o, p);
    set->certs_envelope = envelope_seal(o->arena, &set->signer, set->certs_message);
    if (set->certs_envelope.p)
        return set;
    bytes_unref(&set->bytes);
    return NULL;
}
