/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into the index. */
#include "device/onboarding_index_internal.h"

/* Users are told again of what repeats after this long. */
#define TELL_AGAIN_US ((int64_t) 600 * 1000000)

static void fill(struct arena *a, const struct index_entry *e, struct index_found *ret)
{
    *ret = (struct index_found){.kind = e->kind,
                                .namespace = arena_str(a, e->namespace),
                                .name = arena_str(a, e->name),
                                .uid = arena_str(a, e->uid),
                                .is_approved = e->is_approved,
                                .is_denied = e->is_denied,
                                .is_spent = e->is_spent};
}

static struct str hash_str(const unsigned char hash[SHA256_BYTES])
{
    return str_range((const char *) hash, SHA256_BYTES);
}

bool onboarding_index_is_synced(struct onboarding_index *x)
{
    (void) pthread_rwlock_rdlock(&x->lock);
    const bool is_synced = x->is_synced;
    (void) pthread_rwlock_unlock(&x->lock);
    return is_synced;
}

static bool find_in(struct onboarding_index *x, const struct map *m, struct arena *a,
                    struct str key, struct index_found *ret)
{
    (void) pthread_rwlock_rdlock(&x->lock);
    const struct index_entry *e = map_get(m, key);
    if (e)
        fill(a, e, ret);
    (void) pthread_rwlock_unlock(&x->lock);
    return e != NULL;
}

bool onboarding_index_by_certificate(struct onboarding_index *x, struct arena *a,
                                     const struct index_query *q, struct index_found *ret)
{
    return find_in(x, &x->by_certificate, a, hash_str(q->certificate_hash), ret);
}

bool onboarding_index_enrollment(struct onboarding_index *x, struct arena *a,
                                 const struct index_query *q, struct index_found *ret)
{
    return find_in(x, &x->enrollments, a, hash_str(q->certificate_hash), ret);
}

/* ---- Devices by what they say of themselves ------------------------------------------------- */

static const struct index_entry *free_one(const struct index_entry *chain)
{
    for (const struct index_entry *e = chain; e; e = e->next[INDEX_BY_IDENTITY])
        if (!e->at[INDEX_BY_CERTIFICATE].p)
            return e;
    return chain;
}

bool onboarding_index_by_identity(struct onboarding_index *x, struct arena *a,
                                  const struct index_query *q, struct index_found *ret)
{
    /* The most exact first; the machine's own serial number before that of its installation. */
    const struct {
        enum index_identity form;
        struct str serial;
        bool is_asked;
    } forms[] = {
        {INDEX_EXACT, q->serial, true},
        {INDEX_EXACT, q->soft_serial, q->soft_serial.n > 0},
        {INDEX_ONBOARD_ONLY, STR(""), true},
        {INDEX_SERIAL_ONLY, q->serial, q->serial.n > 0},
        {INDEX_SERIAL_ONLY, q->soft_serial, q->soft_serial.n > 0},
    };
    const struct index_entry *e = NULL;
    (void) pthread_rwlock_rdlock(&x->lock);
    for (size_t i = 0; !e && i < N_ELEMENTS(forms); i++)
        if (forms[i].is_asked)
            e = free_one(
                map_get(&x->by_identity,
                        onboarding_identity(a, forms[i].form, q->onboard_hash, forms[i].serial)));
    if (e)
        fill(a, e, ret);
    (void) pthread_rwlock_unlock(&x->lock);
    return e != NULL;
}

/* ---- what lets devices in ------------------------------------------------------------------- */

bool onboarding_index_authority(struct onboarding_index *x, struct arena *a, enum index_kind kind,
                                const struct index_query *q, struct index_found *ret)
{
    const struct pki_cert *c = kind == INDEX_DEVICE_CA ? q->certificate : q->onboard;
    const struct index_entry *found = NULL;
    if (pki_cert_not_after(c) <= q->now_s)
        return false;
    (void) pthread_rwlock_rdlock(&x->lock);
    for (const struct index_entry *e = x->authorities[kind]; e && !found;
         e = e->next[INDEX_BY_AUTHORITY])
        if (pki_cert_not_after(e->authority) > q->now_s && pki_cert_is_signed_by(c, e->authority))
            found = e;
    if (found)
        fill(a, found, ret);
    (void) pthread_rwlock_unlock(&x->lock);
    return found != NULL;
}

static bool allows(const struct index_entry *e, struct str serial)
{
    for (size_t i = 0; i < e->n_serials; i++)
        if (str_eq(e->serials[i], serial))
            return true;
    return e->allows_any;
}

bool onboarding_index_onboard(struct onboarding_index *x, struct arena *a,
                              const struct index_query *q, struct index_found *ret)
{
    const struct index_entry *found = NULL;
    struct str serial = q->serial;
    (void) pthread_rwlock_rdlock(&x->lock);
    const struct index_entry *chain = map_get(&x->by_onboard, hash_str(q->onboard_hash));
    for (const struct index_entry *e = chain; e && !found; e = e->next[INDEX_BY_ONBOARD]) {
        serial =
            allows(e, q->serial) && (q->serial.n || !q->soft_serial.n) ? q->serial : q->soft_serial;
        if (allows(e, serial))
            found = e;
    }
    if (found) {
        fill(a, found, ret);
        ret->serial = serial;
    }
    (void) pthread_rwlock_unlock(&x->lock);
    return found != NULL;
}

bool onboarding_index_is_open(struct onboarding_index *x, struct arena *a, struct str *ret_uid,
                              struct str *ret_namespace)
{
    (void) pthread_rwlock_rdlock(&x->lock);
    const bool is_open = x->options.is_open;
    if (is_open) {
        *ret_uid = arena_str(a, x->options.uid);
        *ret_namespace = arena_str(a, x->options.namespace);
    }
    (void) pthread_rwlock_unlock(&x->lock);
    return is_open;
}

/* ---- requests that wait ---------------------------------------------------------------------- */

bool onboarding_index_reserve(struct onboarding_index *x, size_t max)
{
    (void) pthread_rwlock_wrlock(&x->lock);
    const bool has_room = x->enrollments.n_items + x->n_reserved < max;
    if (has_room)
        x->n_reserved++;
    (void) pthread_rwlock_unlock(&x->lock);
    return has_room;
}

void onboarding_index_release(struct onboarding_index *x)
{
    (void) pthread_rwlock_wrlock(&x->lock);
    x->n_reserved--;
    (void) pthread_rwlock_unlock(&x->lock);
}

bool onboarding_index_may_tell(struct onboarding_index *x, const struct index_found *f,
                               enum index_notice notice, int64_t now_us, int64_t *ret_n)
{
    ARENA_AUTO a = arena_new();
    const struct str key =
        arena_printf(a, "%d/%.*s/%.*s", (int) f->kind, STR_ARG(f->namespace), STR_ARG(f->name));
    bool may_tell = false;
    (void) pthread_rwlock_wrlock(&x->lock);
    struct index_entry *e = map_get(&x->objects, key);
    if (e) {
        int64_t *told_us = &e->told_us[notice], *n_untold = &e->n_untold[notice];
        ++*n_untold;
        may_tell = !*told_us || now_us - *told_us >= TELL_AGAIN_US || now_us < *told_us;
        if (may_tell) {
            *ret_n = *n_untold;
            *told_us = now_us;
            *n_untold = 0;
        }
    }
    (void) pthread_rwlock_unlock(&x->lock);
    return may_tell;
}

void onboarding_index_each_approved(struct onboarding_index *x,
                                    void (*fn)(void *ctx, struct str namespace, struct str name),
                                    void *ctx)
{
    struct map_entry m;
    (void) pthread_rwlock_rdlock(&x->lock);
    for (size_t i = 0; map_next(&x->objects, &i, &m);) {
        const struct index_entry *e = m.value;
        if (e->kind == INDEX_ENROLLMENT && onboarding_wants_device(e))
            fn(ctx, e->namespace, e->name);
    }
    (void) pthread_rwlock_unlock(&x->lock);
}
