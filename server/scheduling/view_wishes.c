/* SPDX-License-Identifier: Apache-2.0 */
/* Applications that ask for the same are judged together: what one of them does not find, none of
 * them does. */
#include "base/alloc.h"
#include "scheduling/view_internal.h"

/* ---- records --------------------------------------------------------------------------------- */

/* A line for each part; none of them holds a line's end. */
static struct str key_of(struct arena *a, const struct demand *d)
{
    return arena_printf(a, "%.*s\n%.*s\n%.*s\n%lld %lld", STR_ARG(d->selection),
                        STR_ARG(d->networks), STR_ARG(d->claims), (long long) d->memory_kib,
                        (long long) d->cpu_milli);
}

static void bind_networks(struct wish *w)
{
    struct str rest = w->demand.networks, name;
    while (str_split(&rest, ',', &name)) {
        struct network *n = view_network_find(w->tenant, name, /* is_made= */ true);
        pointers_remove(&n->wishes, w); /* of a name that stands twice */
        pointers_remove(&w->networks, n);
        pointers_add(&n->wishes, w);
        pointers_add(&w->networks, n);
    }
}

static void bind_claims(struct wish *w)
{
    struct str rest = w->demand.claims, name;
    while (str_split(&rest, ',', &name)) {
        struct claim *c = view_claim_find(w->tenant, name, /* is_made= */ true);
        pointers_remove(&c->wishes, w);
        pointers_remove(&w->claims, c);
        pointers_add(&c->wishes, w);
        pointers_add(&w->claims, c);
    }
}

struct wish *view_wish_of(struct tenant *t, const struct demand *d)
{
    const struct str key = key_of(t->view->scratch, d);
    struct wish *w = map_get(&t->wishes, key);
    if (w)
        return w;
    w = NEW(struct wish);
    w->key = view_text_keep(key);
    w->tenant = t;
    struct str rest = w->key;
    w->demand = *d;
    (void) str_split(&rest, '\n', &w->demand.selection);
    (void) str_split(&rest, '\n', &w->demand.networks);
    (void) str_split(&rest, '\n', &w->demand.claims);
    list_init(&w->applications);
    list_init(&w->waiting);
    list_init(&w->anywhere);
    list_init(&w->touched);
    (void) map_put(&t->wishes, w->key, w);
    bind_networks(w);
    bind_claims(w);
    return w;
}

void view_wish_drop_if_unused(struct wish *w)
{
    struct tenant *t = w->tenant;
    if (!list_is_empty(&w->applications))
        return;
    (void) map_remove(&t->wishes, w->key);
    list_remove(&w->touched);
    for (uint32_t i = 0; i < w->networks.n; i++) {
        struct network *n = w->networks.items[i];
        pointers_remove(&n->wishes, w);
        view_network_drop_if_unused(t, n);
    }
    for (uint32_t i = 0; i < w->claims.n; i++) {
        struct claim *c = w->claims.items[i];
        pointers_remove(&c->wishes, w);
        view_claim_drop_if_unused(t, c);
    }
    pointers_done(&w->networks);
    pointers_done(&w->claims);
    view_text_drop(&w->key);
    mem_free(w);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Only Devices that could do wake it. */
static void register_waiting(struct wish *w)
{
    struct arena *a = w->tenant->view->scratch;
    struct group **groups = NULL;
    size_t n = 0;
    if (!view_groups_of(w->tenant, json_parse_quick(a, w->demand.selection), /* is_made= */ true,
                        &groups, &n)) {
        list_append(&w->tenant->anywhere, &w->anywhere);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        pointers_add(&groups[i]->waiting, w);
        pointers_add(&w->waits_in, groups[i]);
    }
}

static void unregister_waiting(struct wish *w)
{
    list_remove(&w->anywhere);
    while (w->waits_in.n) {
        struct group *g = w->waits_in.items[w->waits_in.n - 1];
        pointers_remove(&w->waits_in, g);
        pointers_remove(&g->waiting, w);
        view_group_drop_if_unused(w->tenant, g);
    }
}

void view_wish_wait(struct application *app)
{
    struct wish *w = app->wish;
    if (app->is_waiting)
        return;
    app->is_waiting = true;
    list_append(&w->waiting, &app->waiting);
    w->tenant->n_waiting++;
    if (w->n_waiting++ == 0)
        register_waiting(w);
}

void view_wish_stop_waiting(struct application *app)
{
    struct wish *w = app->wish;
    if (!app->is_waiting)
        return;
    app->is_waiting = false;
    list_remove(&app->waiting);
    w->tenant->n_waiting--;
    if (--w->n_waiting == 0)
        unregister_waiting(w);
}

void view_wish_touch(struct wish *w)
{
    LIST_FOR_EACH (&w->applications, link) {
        struct application *app = CONTAINER_OF(link, struct application, in_wish);
        if (!app->is_waiting)
            view_application_wake(app, /* delay_ms= */ 0);
    }
    view_wish_touch_waiting(w);
}

void view_wish_touch_waiting(struct wish *w)
{
    if (!w->n_waiting || w->is_touched)
        return;
    w->is_touched = true;
    list_append(&w->tenant->touched_wishes, &w->touched);
    view_tenant_wake(w->tenant, STR(""), /* delay_ms= */ 0);
}
