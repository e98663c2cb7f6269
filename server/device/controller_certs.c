/* SPDX-License-Identifier: Apache-2.0 */
#include "device/controller_certs.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/controller_certs_internal.h"

struct controller_certs {
    const struct clock *clock;
    char *data_dir;
    char *signing_cert_file, *signing_key_file, *ecdh_cert_file, *ecdh_key_file;
    int64_t lifetime_s;
    pthread_mutex_t lock; /* of the pointer, not of what it points to */
    struct controller_set *set;
    int64_t signing_due_s, ecdh_due_s; /* when it should be replaced */
};

static int64_t now_s(const struct controller_certs *c)
{
    return c->clock->wall_us(c->clock) / 1000000;
}

static bool is_own(const struct controller_certs *c, const struct controller_role *role)
{
    return (role == &controller_signing ? c->signing_cert_file : c->ecdh_cert_file)[0] == '\0';
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_given(const struct controller_certs *c, const struct controller_role *role,
                      const struct pki_chain *roots, struct controller_pair *ret, char **ret_error)
{
    bool is_signing = role == &controller_signing;
    const char *cert_file = is_signing ? c->signing_cert_file : c->ecdh_cert_file,
               *key_file = is_signing ? c->signing_key_file : c->ecdh_key_file, *reason = NULL;
    int r = controller_pair_read(cert_file, key_file, ret);
    if (r < 0)
        return error_set(ret_error, r, "cannot read the %s %s with its key %s: %s", role->what,
                         cert_file, key_file[0] ? key_file : "in the same file", strerror(-r));
    r = controller_pair_check(ret, roots, now_s(c), &reason);
    if (r < 0)
        return error_set(ret_error, r,
                         "devices would refuse the %s %s: %s; they trust the roots in "
                         "root-certificate.pem and device-roots.pem of %s/pki",
                         role->what, cert_file, reason, c->data_dir);
    return 0;
}

/* Our own that no device would believe any longer is made anew; one that cannot be read is not: it
 * may be the only copy of a key. */
static int read_own(struct arena *a, const struct controller_certs *c,
                    const struct controller_role *role, const struct pki_chain *roots,
                    struct controller_pair *ret, char **ret_error)
{
    const char *path = controller_path(a, c->data_dir, role->file), *reason = "there is none";
    int r = controller_pair_read(path, "", ret);
    if (r < 0 && r != -ENOENT)
        return error_set(ret_error, r,
                         "cannot read the %s %s: %s; restore it, or remove it and a new one "
                         "is made",
                         role->what, path, strerror(-r));
    if (r == 0 && controller_pair_check(ret, roots, now_s(c), &reason) == 0)
        return 0;
    if (r == 0 && role == &controller_ecdh) {
        r = controller_archive(a, c->data_dir, ret, ret_error);
        if (r < 0)
            return r;
    }
    controller_pair_done(ret);
    log_info("making a certificate for devices", LOG_TEXT("path", path), LOG_TEXT("why", reason));
    r = controller_make(a, c->data_dir, role, c->lifetime_s, ret_error);
    if (r == 0)
        r = controller_pair_read(path, "", ret);
    if (r == 0)
        r = controller_pair_check(ret, roots, now_s(c), &reason);
    return r < 0 && !*ret_error
               ? error_set(ret_error, r, "the new %s %s is not good: %s", role->what, path, reason)
               : r;
}

static int read_pair(struct arena *a, const struct controller_certs *c,
                     const struct controller_role *role, const struct pki_chain *roots,
                     struct controller_pair *ret, char **ret_error)
{
    return is_own(c, role) ? read_own(a, c, role, roots, ret, ret_error)
                           : read_given(c, role, roots, ret, ret_error);
}

static void parts_done(struct controller_parts *p)
{
    controller_pair_done(&p->signing);
    controller_pair_done(&p->ecdh);
    for (size_t i = 0; i < p->n_old; i++)
        pki_key_free(p->old[i].key);
}

/* Every ECDH key is kept from its first use on, so that nothing later can lose it. */
static int read_parts(struct arena *a, const struct controller_certs *c, struct controller_parts *p,
                      char **ret_error)
{
    PKI_CHAIN_AUTO roots = {0};
    int r = controller_read_roots(a, c->data_dir, &roots, ret_error);
    if (r == 0)
        r = read_pair(a, c, &controller_signing, &roots, &p->signing, ret_error);
    if (r == 0)
        r = read_pair(a, c, &controller_ecdh, &roots, &p->ecdh, ret_error);
    if (r == 0)
        r = controller_archive(a, c->data_dir, &p->ecdh, ret_error);
    if (r < 0)
        return r;
    p->root_not_after_s = pki_cert_not_after(roots.certs[0]);
    p->n_old = controller_read_archive(a, c->data_dir,
                                       controller_cert_hash(a, p->ecdh.chain.certs[0]), &p->old);
    return 0;
}

/* A third before its end: of the life ours are given, or of the one an operator gave theirs. */
static int64_t due_s(const struct controller_certs *c, const struct controller_role *role,
                     const struct pki_cert *cert)
{
    int64_t end_s = pki_cert_not_after(cert);
    int64_t life_s = is_own(c, role) ? c->lifetime_s : end_s - pki_cert_not_before(cert);
    return end_s - life_s / 3;
}

static bool is_same(const struct controller_set *x, const struct controller_set *y)
{
    return str_eq(x->config_hash, y->config_hash) && x->n_old_keys == y->n_old_keys;
}

static void swap(struct controller_certs *c, struct controller_set *fresh)
{
    pthread_mutex_lock(&c->lock);
    struct controller_set *old = c->set;
    c->set = fresh;
    pthread_mutex_unlock(&c->lock);
    if (old)
        bytes_unref(&old->bytes);
}

int controller_certs_reload(struct controller_certs *c, bool *ret_changed, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(parts_done) struct controller_parts p = {0};
    *ret_changed = false;
    int r = read_parts(a, c, &p, ret_error);
    if (r < 0)
        return r;
    int64_t signing_s = due_s(c, &controller_signing, p.signing.chain.certs[0]),
            ecdh_s = due_s(c, &controller_ecdh, p.ecdh.chain.certs[0]);
    struct controller_set *fresh = controller_set_new(&p);
    if (!fresh)
        return error_set(ret_error, -EIO, "the signing key cannot sign");
    c->signing_due_s = signing_s;
    c->ecdh_due_s = ecdh_s;
    if (c->set && is_same(c->set, fresh)) {
        bytes_unref(&fresh->bytes);
        return 0;
    }
    *ret_changed = true;
    swap(c, fresh);
    return 0;
}

/* ---- renewing ------------------------------------------------------------------------------- */

static bool is_due(const struct controller_certs *c, const struct controller_role *role)
{
    int64_t since_s = now_s(c) - (role == &controller_signing ? c->signing_due_s : c->ecdh_due_s);
    if (since_s > 0 && !is_own(c, role))
        log_warning("a certificate for devices is in the last third of its life; replace its files",
                    LOG_TEXT("which", role->what));
    return since_s > 0 && is_own(c, role);
}

int controller_certs_renew(struct controller_certs *c, bool *ret_changed, char **ret_error)
{
    bool has_changed = false;
    unsigned due = 0;
    int r = controller_certs_reload(c, ret_changed, ret_error);
    if (r < 0)
        return r;
    due |= is_due(c, &controller_signing) ? CONTROLLER_SIGNING : 0;
    due |= is_due(c, &controller_ecdh) ? CONTROLLER_ECDH : 0;
    if (!due)
        return 0;
    r = controller_certs_rotate(c->data_dir, due, c->lifetime_s, ret_error);
    if (r == 0)
        r = controller_certs_reload(c, &has_changed, ret_error);
    *ret_changed |= has_changed;
    return r;
}

/* The old key is kept before the new one takes its place. */
static int keep_old(struct arena *a, const char *data_dir, char **ret_error)
{
    CONTROLLER_PAIR_AUTO old = {0};
    const char *path = controller_path(a, data_dir, controller_ecdh.file);
    int r = controller_pair_read(path, "", &old);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return error_set(ret_error, r, "cannot read the %s %s: %s; restore or remove it",
                         controller_ecdh.what, path, strerror(-r));
    return controller_archive(a, data_dir, &old, ret_error);
}

int controller_certs_rotate(const char *data_dir, unsigned which, int64_t lifetime_s,
                            char **ret_error)
{
    ARENA_AUTO a = arena_new();
    int r = 0;
    if (which & CONTROLLER_ECDH)
        r = keep_old(a, data_dir, ret_error);
    if (r == 0 && (which & CONTROLLER_ECDH))
        r = controller_make(a, data_dir, &controller_ecdh, lifetime_s, ret_error);
    if (r == 0 && (which & CONTROLLER_SIGNING))
        r = controller_make(a, data_dir, &controller_signing, lifetime_s, ret_error);
    return r;
}

/* ---- life ----------------------------------------------------------------------------------- */

static char *copy(const char *text)
{
    return mem_strdup(text ? text : "");
}

int controller_certs_open(const struct controller_certs_options *o, struct controller_certs **ret,
                          char **ret_error)
{
    struct controller_certs *c = NEW(struct controller_certs);
    bool has_changed = false;
    *c = (struct controller_certs){.clock = o->clock,
                                   .data_dir = copy(o->data_dir),
                                   .signing_cert_file = copy(o->signing_cert_file),
                                   .signing_key_file = copy(o->signing_key_file),
                                   .ecdh_cert_file = copy(o->ecdh_cert_file),
                                   .ecdh_key_file = copy(o->ecdh_key_file),
                                   .lifetime_s = o->lifetime_s};
    pthread_mutex_init(&c->lock, NULL);
    int r = controller_certs_reload(c, &has_changed, ret_error);
    if (r < 0) {
        controller_certs_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void controller_certs_free(struct controller_certs *c)
{
    if (!c)
        return;
    if (c->set)
        bytes_unref(&c->set->bytes);
    pthread_mutex_destroy(&c->lock);
    mem_free(c->data_dir);
    mem_free(c->signing_cert_file);
    mem_free(c->signing_key_file);
    mem_free(c->ecdh_cert_file);
    mem_free(c->ecdh_key_file);
    mem_free(c);
}

struct controller_set *controller_certs_get(struct controller_certs *c)
{
    pthread_mutex_lock(&c->lock);
    struct controller_set *set = c->set;
    bytes_ref(&set->bytes);
    pthread_mutex_unlock(&c->lock);
    return set;
}
