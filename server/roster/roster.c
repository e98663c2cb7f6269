/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "roster/roster_internal.h"

/* ---- devices ------------------------------------------------------------------------------- */

static void config_free(struct bytes *b)
{
    mem_free(CONTAINER_OF(b, struct device_config, bytes));
}

struct device_config *device_config_new(const struct config_mark *mark, struct str hash,
                                        struct str envelope)
{
    struct device_config *c = mem_alloc(sizeof(*c) + hash.n + envelope.n);
    char *text = (char *) (c + 1);
    *c = (struct device_config){.bytes = {.free = config_free},
                                .mark = *mark,
                                .hash = str_range(text, hash.n),
                                .envelope = str_range(text + hash.n, envelope.n)};
    atomic_init(&c->bytes.refs, 1);
    memcpy(text, hash.p, hash.n);
    memcpy(text + hash.n, envelope.p, envelope.n);
    return c;
}

struct device *device_ref(struct device *d)
{
    (void) bytes_ref(&d->bytes);
    return d;
}

void device_unref(struct device *d)
{
    if (d)
        bytes_unref(&d->bytes);
}

void device_forget_config(struct device *d)
{
    (void) pthread_mutex_lock(&d->lock);
    d->config_generation++;
    d->is_config_known = d->is_config_given = d->is_config_confirmed = false;
    if (d->config)
        bytes_unref(&TAKE(d->config)->bytes);
    (void) pthread_mutex_unlock(&d->lock);
}

void device_raise_floor(struct device *d, int64_t version, int64_t rendered_s)
{
    (void) pthread_mutex_lock(&d->lock);
    d->floor_version = MAX(d->floor_version, version);
    d->floor_rendered_s = MAX(d->floor_rendered_s, rendered_s);
    (void) pthread_mutex_unlock(&d->lock);
}

void device_set_token(struct device *d, struct str token, bool has_tpm)
{
    (void) pthread_mutex_lock(&d->lock);
    mem_free((char *) d->integrity_token.p);
    d->integrity_token = str_range(mem_dup(token.p ? token.p : "", token.n), token.n);
    d->has_tpm = has_tpm;
    (void) pthread_mutex_unlock(&d->lock);
}

/* ---- the roster ---------------------------------------------------------------------------- */

struct roster *roster_new(const struct roster_options *o)
{
    struct roster *r = NEW(struct roster);
    r->options = *o;
    r->started_us = o->clock->wall_us(o->clock);
    (void) pthread_rwlock_init(&r->lock, NULL);
    return r;
}

void roster_free(struct roster *r)
{
    if (!r)
        return;
    struct map_entry e;
    for (size_t i = 0; map_next(&r->by_name, &i, &e);)
        device_unref(e.value);
    map_done(&r->by_name);
    map_done(&r->by_uuid);
    map_done(&r->by_certificate);
    roster_free_notes(r);
    roster_free_options(r);
    (void) pthread_rwlock_destroy(&r->lock);
    mem_free(r);
}

static struct device *find(struct roster *r, const struct map *m, struct str key)
{
    (void) pthread_rwlock_rdlock(&r->lock);
    struct device *d = map_get(m, key);
    if (d)
        (void) device_ref(d);
    (void) pthread_rwlock_unlock(&r->lock);
    return d;
}

struct device *roster_by_certificate(struct roster *r, struct str hash)
{
    if (hash.n != SHA256_BYTES && hash.n != KEY_BYTES)
        return NULL;
    struct device *d = find(r, &r->by_certificate, str_range(hash.p, KEY_BYTES));
    if (!d || memcmp(d->certificate_hash, hash.p, hash.n) == 0)
        return d;
    device_unref(d);
    return NULL;
}

struct device *roster_by_uuid(struct roster *r, const struct uuid *u)
{
    return find(r, &r->by_uuid, str_range((const char *) u->bytes, sizeof(u->bytes)));
}

struct device *roster_by_name(struct roster *r, struct str namespace, struct str name)
{
    BUF_AUTO key = {0};
    buf_append_str(&key, namespace);
    buf_append_char(&key, '/');
    buf_append_str(&key, name);
    return find(r, &r->by_name, buf_str(&key));
}

int64_t roster_started_us(const struct roster *r)
{
    return r->started_us;
}

size_t roster_count(struct roster *r)
{
    (void) pthread_rwlock_rdlock(&r->lock);
    size_t n = r->by_name.n_items;
    (void) pthread_rwlock_unlock(&r->lock);
    return n;
}

void roster_each(struct roster *r, void (*fn)(void *ctx, struct device *d), void *ctx)
{
    struct map_entry e;
    (void) pthread_rwlock_rdlock(&r->lock);
    for (size_t i = 0; map_next(&r->by_name, &i, &e);)
        fn(ctx, e.value);
    (void) pthread_rwlock_unlock(&r->lock);
}

static void forget_config_of(void *ctx, struct device *d)
{
    (void) ctx;
    device_forget_config(d);
}

void roster_forget_configs(struct roster *r)
{
    roster_each(r, forget_config_of, NULL);
}
