/* SPDX-License-Identifier: Apache-2.0 */
/* Options of devices: the nearest wins. */
#include "roster/roster_internal.h"
#include "settings/settings.h"

/* A key that is no namespace: eve-system may hold devices, too. */
#define GLOBAL_KEY STR("*")

static const struct json *options_data(const struct roster *r, struct str key)
{
    const struct options_map *m = map_get(&r->option_maps, key);
    return m ? m->data : NULL;
}

void roster_read_options(struct roster *r, struct device *d)
{
    ARENA_AUTO a = arena_new();
    (void) pthread_mutex_lock(&d->lock);
    const struct json *annotations = d->annotations.n ? json_parse_quick(a, d->annotations) : NULL;
    (void) pthread_mutex_unlock(&d->lock);
    struct settings_sources from = {.annotations = annotations,
                                    .namespace = options_data(r, d->namespace),
                                    .global = options_data(r, GLOBAL_KEY)};
    atomic_store(&d->attestation, (unsigned) settings_attestation(&from));
    atomic_store(&d->poll_s, settings_poll_interval_s(&from));
    atomic_store(&d->retention_s, settings_retention_s(&from, 0));
    roster_changed(r, d);
}

/* Of one namespace, or all. */
static void read_options_again(struct roster *r, struct str namespace, bool is_global)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&r->by_name, &i, &e);) {
        struct device *d = e.value;
        if (is_global || str_eq(d->namespace, namespace))
            roster_read_options(r, d);
    }
}

static struct options_map *options_map_new(struct str key, struct str text)
{
    struct arena *a = arena_new();
    struct options_map *m = ARENA_NEW(a, struct options_map);
    const struct json *object = json_parse_quick(a, arena_str(a, text));
    m->arena = a;
    m->key = arena_str(a, key);
    m->data = json_get(object, STR("data"));
    return m;
}

static void free_option_map(struct options_map *m)
{
    arena_free(m->arena); /* it lies in its own arena */
}

void roster_on_options(struct roster *r, const struct kube_event *e)
{
    bool is_global = str_is(e->name, SETTINGS_GLOBAL_NAME);
    struct str key = is_global ? GLOBAL_KEY : e->namespace;
    (void) pthread_rwlock_wrlock(&r->lock);
    struct options_map *old = map_remove(&r->option_maps, key);
    if (e->type != KUBE_DELETED) {
        struct options_map *m = options_map_new(key, e->text);
        (void) map_put(&r->option_maps, m->key, m);
    }
    if (old)
        free_option_map(old);
    read_options_again(r, e->namespace, is_global);
    (void) pthread_rwlock_unlock(&r->lock);
}

void roster_free_options(struct roster *r)
{
    struct map_entry e;
    for (size_t i = 0; map_next(&r->option_maps, &i, &e);)
        free_option_map(e.value);
    map_done(&r->option_maps);
}
