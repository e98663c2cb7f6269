/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/view.h"

#include "base/alloc.h"
#include "scheduling/view_internal.h"

/* So many Devices are looked at before others have their turn. */
#define PASS_DEVICES 64
/* Messages of those that wait follow what changes after so long, for each that has to be told. */
#define RETELL_MS 1000
#define RETELL_EACH_MS 10

static const struct watched {
    const char *collection;
    void (*on_event)(struct tenant *t, const struct kube_event *e);
} watched[] = {
    {"applications.eve.lfedge.org", view_application_on_event},
    {"devices.eve.lfedge.org", view_device_on_event},
    {"devicenetworks.eve.lfedge.org", view_network_on_event},
    {"volumes.eve.lfedge.org", view_volume_on_event},
};

struct str view_text_keep(struct str s)
{
    return s.n ? str_range(mem_dup(s.p, s.n), s.n) : STR("");
}

void view_text_drop(struct str *s)
{
    if (s->n)
        mem_free((char *) s->p);
    *s = STR("");
}

/* ---- tenants --------------------------------------------------------------------------------- */

struct tenant *view_tenant_find(struct view *v, struct str namespace, bool is_made)
{
    struct tenant *t = map_get(&v->tenants, namespace);
    if (t || !is_made)
        return t;
    t = NEW(struct tenant);
    t->name = view_text_keep(namespace);
    t->view = v;
    t->version = 1;
    list_init(&t->anywhere);
    list_init(&t->touched);
    list_init(&t->touched_wishes);
    (void) map_put(&v->tenants, t->name, t);
    return t;
}

void view_tenant_wake(struct tenant *t, struct str name, int64_t delay_ms)
{
    struct view *v = t->view;
    const struct str parts[] = {t->name, STR("/"), name};
    v->wake(v->wake_ctx, arena_join(v->scratch, parts, N_ELEMENTS(parts)), delay_ms);
}

/* A copy of the values: what is freed leaves the map. */
static void **values_of(struct arena *a, const struct map *m, size_t *ret_n)
{
    void **values = ARENA_ARRAY(a, void *, m->n_items + 1);
    struct map_entry e;
    size_t n = 0;
    for (size_t at = 0; map_next(m, &at, &e);)
        values[n++] = e.value;
    *ret_n = n;
    return values;
}

/* Applications hold wishes, and these claims; groups hold Devices. */
static void tenant_free(struct tenant *t)
{
    struct arena *a = t->view->scratch;
    size_t n;
    void **values = values_of(a, &t->applications, &n);
    while (n > 0)
        view_application_free(values[--n]);
    values = values_of(a, &t->volumes, &n);
    while (n > 0)
        view_volume_free(t, values[--n]);
    values = values_of(a, &t->networks, &n);
    while (n > 0)
        view_network_free(t, values[--n]);
    values = values_of(a, &t->devices, &n);
    while (n > 0)
        view_device_free(values[--n]);
    struct map *maps[] = {&t->applications, &t->volumes, &t->networks, &t->devices,
                          &t->claims,       &t->wishes,  &t->groups};
    for (size_t i = 0; i < N_ELEMENTS(maps); i++)
        map_done(maps[i]);
    pointers_done(&t->present);
    view_text_drop(&t->name);
    mem_free(t);
}

static void drop_if_empty(struct tenant *t)
{
    if (t->applications.n_items || t->devices.n_items || t->networks.n_items || t->volumes.n_items)
        return;
    (void) map_remove(&t->view->tenants, t->name);
    tenant_free(t);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct view *view_new(view_wake *wake, void *ctx)
{
    struct view *v = NEW(struct view);
    (void) pthread_mutex_init(&v->lock, NULL);
    v->scratch = arena_new();
    v->wake = wake;
    v->wake_ctx = ctx;
    return v;
}

static void wake_nobody(void *ctx, struct str key, int64_t delay_ms)
{
    (void) ctx;
    (void) key;
    (void) delay_ms;
}

void view_free(struct view *v)
{
    if (!v)
        return;
    struct map_entry e;
    v->wake = wake_nobody;
    for (size_t at = 0; map_next(&v->tenants, &at, &e);)
        tenant_free(e.value);
    map_done(&v->tenants);
    arena_free(v->scratch);
    (void) pthread_mutex_destroy(&v->lock);
    mem_free(v);
}

static void lock(struct view *v)
{
    (void) pthread_mutex_lock(&v->lock);
}

static void unlock(struct view *v)
{
    arena_reset(v->scratch);
    (void) pthread_mutex_unlock(&v->lock);
}

/* ---- what the controller calls --------------------------------------------------------------- */

void view_on_event(struct view *v, const struct kube_event *e)
{
    for (size_t i = 0; i < N_ELEMENTS(watched); i++)
        if (str_is(e->collection, watched[i].collection)) {
            lock(v);
            struct tenant *t = view_tenant_find(v, e->namespace, e->type != KUBE_DELETED);
            if (t) {
                watched[i].on_event(t, e);
                drop_if_empty(t);
            }
            unlock(v);
        }
}

static struct application *find(struct view *v, struct str namespace, struct str name)
{
    struct tenant *t = view_tenant_find(v, namespace, /* is_made= */ false);
    return t ? map_get(&t->applications, name) : NULL;
}

/* Keeps it where it is or finds it a place; it waits when there is none. */
static void choose(struct application *app)
{
    struct wish *w = app->wish;
    if (app->device && view_choice_holds(w, app->device))
        return;
    /* Where it was does not hold what it claims. */
    view_application_place(app, NULL);
    view_application_place(app, app->fault ? NULL : view_choice_make(w));
    if (app->device || app->fault)
        view_wish_stop_waiting(app);
    else
        view_wish_wait(app);
}

/* What is leaving stays where it is, and needs no place if it has none. */
static struct view_outcome judge(struct arena *a, struct application *app)
{
    if (app->is_deleting)
        view_application_place(app, app->seen);
    else
        choose(app);
    return view_choice_outcome(a, app);
}

static bool is_news(const struct application *app, const struct view_outcome *o)
{
    app->wish->is_retelling = false;
    return !app->is_deleting && view_outcome_hash(o) != app->told;
}

bool view_needs_work(struct view *v, struct str namespace, struct str name)
{
    lock(v);
    struct application *app = find(v, namespace, name);
    bool needs = false;
    if (app) {
        const struct view_outcome o = judge(v->scratch, app);
        needs = app->is_assumed = is_news(app, &o);
    }
    unlock(v);
    return needs;
}

bool view_choose(struct view *v, struct arena *a, const struct json *application,
                 struct view_outcome *ret)
{
    bool is_due = false;
    lock(v);
    const struct json *meta = json_get(application, STR("metadata"));
    struct application *app =
        find(v, json_get_str(meta, STR("namespace")), json_get_str(meta, STR("name")));
    /* What has no record is gone: an event said so. */
    if (app) {
        (void) view_application_saw(app, application);
        *ret = judge(a, app);
        is_due = app->is_assumed = is_news(app, ret);
    }
    unlock(v);
    return is_due;
}

void view_settle(struct view *v, struct str namespace, struct str name,
                 const struct json *application)
{
    lock(v);
    struct application *app = find(v, namespace, name);
    if (app && app->is_assumed) {
        app->is_assumed = false;
        if (application)
            (void) view_application_saw(app, application);
        if (app->device != app->seen)
            view_application_place(app, app->seen);
    }
    unlock(v);
}

/* ---- those that wait ------------------------------------------------------------------------- */

static struct application *first_waiting(struct wish *w)
{
    return list_is_empty(&w->waiting) ? NULL
                                      : CONTAINER_OF(w->waiting.next, struct application, waiting);
}

/* What they are told may have changed: that is looked at later and slowly, for it brings nobody to
 * run. */
static void retell(struct wish *w)
{
    if (w->is_retelling)
        return;
    w->is_retelling = true;
    LIST_FOR_EACH (&w->waiting, link)
        view_application_wake(CONTAINER_OF(link, struct application, waiting),
                              RETELL_MS + RETELL_EACH_MS * (int64_t) w->n_waiting);
}

/* One after the other while there is room. */
static void serve(struct wish *w)
{
    struct application *app;
    struct device *d;
    while ((app = first_waiting(w)) && (d = view_choice_make(w))) {
        view_application_place(app, d);
        view_wish_stop_waiting(app);
        app->is_assumed = true;
        view_application_wake(app, /* delay_ms= */ 0);
    }
    retell(w);
}

/* To look at one device costs less than to look at all. */
static void serve_by(struct wish *w, struct device *d)
{
    if (view_choice_fits(w, d))
        serve(w);
    else
        retell(w);
}

static void serve_device(struct device *d)
{
    struct tenant *t = d->tenant;
    list_remove(&d->touched);
    d->is_touched = false;
    for (uint32_t g = 0; g < d->groups.n; g++) {
        struct pointers *waiting = &((struct group *) d->groups.items[g])->waiting;
        /* Who is served leaves the set: from the end. */
        for (uint32_t i = waiting->n; i-- > 0;)
            if (i < waiting->n)
                serve_by(waiting->items[i], d);
    }
    LIST_FOR_EACH (&t->anywhere, link)
        serve_by(CONTAINER_OF(link, struct wish, anywhere), d);
}

bool view_pass(struct view *v, struct str namespace)
{
    lock(v);
    struct tenant *t = view_tenant_find(v, namespace, /* is_made= */ false);
    struct list *link;
    for (int i = 0; t && i < PASS_DEVICES && (link = list_pop_first(&t->touched_wishes)); i++) {
        struct wish *w = CONTAINER_OF(link, struct wish, touched);
        w->is_touched = false;
        serve(w);
    }
    for (int i = 0; t && i < PASS_DEVICES && !list_is_empty(&t->touched); i++)
        serve_device(CONTAINER_OF(t->touched.next, struct device, touched));
    const bool is_more = t && (!list_is_empty(&t->touched) || !list_is_empty(&t->touched_wishes));
    unlock(v);
    return is_more;
}
