/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "scheduling/view_internal.h"

/* ---- records --------------------------------------------------------------------------------- */

static struct application *application_of(struct tenant *t, struct str name)
{
    struct application *app = map_get(&t->applications, name);
    if (app)
        return app;
    app = NEW(struct application);
    app->name = view_text_keep(name);
    app->tenant = t;
    list_init(&app->in_wish);
    list_init(&app->waiting);
    list_init(&app->on_device);
    (void) map_put(&t->applications, app->name, app);
    return app;
}

void view_application_wake(struct application *app, int64_t delay_ms)
{
    view_tenant_wake(app->tenant, app->name, delay_ms);
}

/* ---- where it counts ------------------------------------------------------------------------- */

/* What it claims may be made elsewhere now. */
static void release_claims(const struct wish *w)
{
    for (uint32_t i = 0; i < w->claims.n; i++) {
        const struct pointers *wishes = &((struct claim *) w->claims.items[i])->wishes;
        for (uint32_t j = 0; j < wishes->n; j++)
            view_wish_touch_waiting(wishes->items[j]);
    }
}

static void leave_device(struct application *app)
{
    struct device *d = app->device;
    if (!d)
        return;
    list_remove(&app->on_device);
    d->n_applications--;
    d->used_memory_kib -= app->wish->demand.memory_kib;
    d->used_cpu_milli -= app->wish->demand.cpu_milli;
    app->device = NULL;
    view_device_touch(d);
    view_device_unref(d);
    release_claims(app->wish);
}

void view_application_place(struct application *app, struct device *d)
{
    if (app->device == d)
        return;
    leave_device(app);
    if (!d)
        return;
    view_device_ref(d);
    app->device = d;
    list_append(&d->applications, &app->on_device);
    d->n_applications++;
    d->used_memory_kib += app->wish->demand.memory_kib;
    d->used_cpu_milli += app->wish->demand.cpu_milli;
    d->tenant->version++;
}

static void set_wish(struct application *app, struct wish *w)
{
    struct wish *old = app->wish;
    struct device *d = app->device;
    if (old == w)
        return;
    if (d)
        view_device_ref(d);
    if (old) {
        view_wish_stop_waiting(app);
        leave_device(app);
        list_remove(&app->in_wish);
    }
    app->wish = w;
    if (w)
        list_append(&w->applications, &app->in_wish);
    if (old)
        view_wish_drop_if_unused(old);
    if (w && d)
        view_application_place(app, d);
    if (d)
        view_device_unref(d);
}

static void set_seen(struct application *app, struct str name)
{
    struct device *old = app->seen;
    app->seen = name.n ? view_device_find(app->tenant, name, /* is_made= */ true) : NULL;
    if (app->seen)
        view_device_ref(app->seen);
    if (old)
        view_device_unref(old);
}

void view_application_free(struct application *app)
{
    (void) map_remove(&app->tenant->applications, app->name);
    set_wish(app, NULL);
    set_seen(app, STR_NONE);
    view_text_drop(&app->name);
    mem_free(app);
}

/* ---- what is known --------------------------------------------------------------------------- */

static int64_t revision_of(const struct json *object)
{
    int64_t revision = 0;
    (void) str_to_i64(json_str(json_at(object, "metadata", "resourceVersion", NULL)), &revision);
    return revision;
}

/* Another object of the same name: nothing of the old one counts. */
static void begin_anew(struct application *app, uint64_t uid)
{
    app->uid = uid;
    app->is_assumed = false;
    app->is_deleting = false;
    if (app->wish) {
        view_wish_stop_waiting(app);
        leave_device(app);
    }
}

/* What a choice may depend on, as it was known before. */
static bool is_same(const struct application *app, const struct application *before)
{
    return app->wish == before->wish && app->seen == before->seen && app->told == before->told &&
           app->fault == before->fault && app->is_deleting == before->is_deleting &&
           app->uid == before->uid;
}

bool view_application_saw(struct application *app, const struct json *object)
{
    struct arena *a = app->tenant->view->scratch;
    const struct json *meta = json_get(object, STR("metadata"));
    const uint64_t uid = map_hash(json_get_str(meta, STR("uid")));
    const int64_t revision = revision_of(object);
    const struct application before = *app;
    struct demand demand;
    if (app->wish && revision <= app->revision)
        return false;
    if (app->uid != uid)
        begin_anew(app, uid);
    app->revision = revision;
    app->fault = demand_of(a, object, &demand);
    app->is_deleting = json_get_str(meta, STR("deletionTimestamp")).n > 0;
    app->told = view_outcome_hash_of(object);
    set_wish(app, view_wish_of(app->tenant, &demand));
    set_seen(app, json_str(json_at(object, "status", "device", NULL)));
    /* What is being written is not undone by what was there before. */
    if (!app->is_assumed)
        view_application_place(app, app->seen);
    return !is_same(app, &before);
}

void view_application_on_event(struct tenant *t, const struct kube_event *e)
{
    struct application *app = map_get(&t->applications, e->name);
    if (e->type != KUBE_DELETED) {
        const struct json *object = kube_event_object(e, t->view->scratch);
        app = application_of(t, e->name);
        if (view_application_saw(app, object))
            view_application_wake(app, /* delay_ms= */ 0);
    } else if (app && app->uid == map_hash(e->uid)) {
        view_application_free(app);
    }
}
