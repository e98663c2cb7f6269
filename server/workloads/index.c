/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/index.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "scheduling/selector.h"
#include "workloads/index_internal.h"

/* ---- life ---------------------------------------------------------------------------------- */

struct workload_index *workload_index_new(workload_wake *wake, void *ctx)
{
    struct workload_index *ix = NEW(struct workload_index);
    (void) pthread_mutex_init(&ix->lock, NULL);
    ix->wake = wake;
    ix->ctx = ctx;
    return ix;
}

static void wake_nobody(void *ctx, struct str key, int64_t delay_ms)
{
    (void) ctx;
    (void) key;
    (void) delay_ms;
}

/* Any record of the map; NULL when there is none. */
static void *any_of(const struct map *m)
{
    struct map_entry e;
    size_t at = 0;
    return map_next(m, &at, &e) ? e.value : NULL;
}

static void forget_owners(struct workload_index *ix)
{
    for (struct owner *o = any_of(&ix->owners); o; o = any_of(&ix->owners)) {
        list_remove(&o->link);
        o->is_known = false;
        index_owner_drop(ix, o);
    }
}

void workload_index_free(struct workload_index *ix)
{
    if (!ix)
        return;
    ix->wake = wake_nobody;
    for (struct app *app = any_of(&ix->apps); app; app = any_of(&ix->apps))
        index_app_free(ix, app);
    for (struct revision *r = any_of(&ix->revisions); r; r = any_of(&ix->revisions))
        index_revision_free(ix, r);
    forget_owners(ix);
    for (struct device *d = any_of(&ix->devices); d; d = any_of(&ix->devices)) {
        list_remove(&d->link);
        d->is_known = false;
        index_device_drop(ix, d);
    }
    map_done(&ix->spaces);
    map_done(&ix->owners);
    map_done(&ix->devices);
    map_done(&ix->apps);
    map_done(&ix->revisions);
    (void) pthread_mutex_destroy(&ix->lock);
    mem_free(ix);
}

/* ---- events -------------------------------------------------------------------------------- */

void workload_index_event(struct workload_index *ix, const struct kube_event *e)
{
    const enum workload_kind kind = workload_kind_of_collection(e->collection);
    (void) pthread_mutex_lock(&ix->lock);
    if (str_is(e->collection, "applications." WORKLOAD_GROUP))
        index_application_event(ix, e);
    else if (str_is(e->collection, "devices." WORKLOAD_GROUP))
        index_device_event(ix, e);
    else if (str_is(e->collection, "controllerrevisions.apps"))
        index_revision_event(ix, e);
    else if (kind != WORKLOAD_KINDS)
        index_owner_event(ix, kind, e);
    (void) pthread_mutex_unlock(&ix->lock);
}

/* ---- doubts and memory --------------------------------------------------------------------- */

void workload_index_doubt(struct workload_index *ix, struct str owner_uid, struct str name)
{
    (void) pthread_mutex_lock(&ix->lock);
    struct owner *o = map_get(&ix->owners, owner_uid);
    bool is_there = false;
    for (size_t i = 0; o && i < o->n_doubts; i++)
        is_there |= str_is(name, o->doubts[i]);
    if (o && !is_there) {
        o->doubts = mem_realloc_array(o->doubts, o->n_doubts + 1, sizeof(char *));
        o->doubts[o->n_doubts++] = str_dup(name);
    }
    (void) pthread_mutex_unlock(&ix->lock);
}

void workload_index_clear_doubts(struct workload_index *ix, struct str owner_uid)
{
    (void) pthread_mutex_lock(&ix->lock);
    struct owner *o = map_get(&ix->owners, owner_uid);
    while (o && o->n_doubts)
        mem_free(o->doubts[--o->n_doubts]);
    (void) pthread_mutex_unlock(&ix->lock);
}

void workload_index_remember(struct workload_index *ix, struct str owner_uid,
                             const struct index_memory *m)
{
    (void) pthread_mutex_lock(&ix->lock);
    struct owner *o = map_get(&ix->owners, owner_uid);
    if (o)
        o->memory = *m;
    (void) pthread_mutex_unlock(&ix->lock);
}

/* ---- looking ------------------------------------------------------------------------------- */

static size_t length(const struct list *l)
{
    size_t n = 0;
    LIST_FOR_EACH (l, item)
        n++;
    return n;
}

static struct index_application view_app(struct arena *a, const struct app *app)
{
    return (struct index_application){
        .name = arena_str(a, str_of(app->name)),
        .uid = arena_str(a, str_of(app->uid)),
        .revision = arena_str(a, str_of(app->revision)),
        .device = app->device ? arena_str(a, str_of(app->device->name)) : STR(""),
        .created_us = app->created_us,
        .deleted_us = app->deleted_us,
        .ready_since_us = app->ready_since_us,
        .is_scheduled = app->is_scheduled,
        .is_ready = app->is_ready,
        .is_deleting = app->is_deleting,
        .is_offline = app->device && app->device->is_known && app->device->is_offline,
        .is_ours = app->is_ours};
}

static size_t view_apps(struct arena *a, const struct list *from, struct index_application **ret)
{
    size_t n = 0;
    *ret = ARENA_ARRAY(a, struct index_application, length(from) + 1);
    LIST_FOR_EACH (from, item) {
        const struct app *app = CONTAINER_OF(item, struct app, link);
        if (!app->is_gone)
            (*ret)[n++] = view_app(a, app);
    }
    return n;
}

static int by_number(const void *a, const void *b)
{
    const struct index_revision *x = a, *y = b;
    return x->number == y->number ? str_cmp(x->name, y->name) : x->number < y->number ? -1 : 1;
}

static void view_revisions(struct arena *a, const struct owner *o, struct index_view *v)
{
    v->revisions = ARENA_ARRAY(a, struct index_revision, length(&o->revisions) + 1);
    LIST_FOR_EACH (&o->revisions, item) {
        const struct revision *r = CONTAINER_OF(item, struct revision, link);
        struct index_revision *to = &v->revisions[v->n_revisions++];
        *to = (struct index_revision){.name = arena_str(a, str_of(r->name)),
                                      .uid = arena_str(a, str_of(r->uid)),
                                      .hash = arena_str(a, str_of(r->hash)),
                                      .number = r->number};
        memcpy(to->digest, r->digest, sizeof(to->digest));
    }
    qsort(v->revisions, v->n_revisions, sizeof(struct index_revision), by_number);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct index_device *) a)->name,
                   ((const struct index_device *) b)->name);
}

static void view_devices(struct arena *a, const struct space *s, const struct json *spec,
                         struct index_view *v)
{
    v->devices = ARENA_ARRAY(a, struct index_device, length(&s->devices) + 1);
    LIST_FOR_EACH (&s->devices, item) {
        const struct device *d = CONTAINER_OF(item, struct device, link);
        v->devices[v->n_devices++] = (struct index_device){
            .name = arena_str(a, str_of(d->name)),
            .does_fit = device_selector_matches(spec, str_of(d->name), d->labels),
            .is_active = d->is_active,
            .is_offline = d->is_offline};
    }
    qsort(v->devices, v->n_devices, sizeof(struct index_device), by_name);
}

bool workload_index_view(struct workload_index *ix, struct arena *a, struct str owner_uid,
                         const struct json *spec, struct index_view *ret)
{
    (void) pthread_mutex_lock(&ix->lock);
    const struct owner *o = map_get(&ix->owners, owner_uid);
    const bool is_known = o && o->is_known;
    if (is_known) {
        *ret = (struct index_view){.memory = o->memory};
        ret->n_applications = view_apps(a, &o->applications, &ret->applications);
        ret->n_candidates = view_apps(a, &o->candidates, &ret->candidates);
        view_revisions(a, o, ret);
        if (o->kind == WORKLOAD_DAEMON_SET)
            view_devices(a, o->space, spec, ret);
        ret->doubts = ARENA_ARRAY(a, struct str, o->n_doubts + 1);
        for (size_t i = 0; i < o->n_doubts; i++)
            ret->doubts[ret->n_doubts++] = arena_str(a, str_of(o->doubts[i]));
    }
    (void) pthread_mutex_unlock(&ix->lock);
    return is_known;
}
