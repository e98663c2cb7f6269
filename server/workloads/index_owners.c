/* SPDX-License-Identifier: Apache-2.0 */
/* Owners and Devices in the index. */
#include "base/alloc.h"
#include "settings/settings.h"
#include "workloads/index_internal.h"
#include "workloads/labels.h"

/* ---- owners -------------------------------------------------------------------------------- */

/* Everything that is nobody's, or might be this owner's, is placed again. */
static void place_orphans(struct workload_index *ix, struct list *from)
{
    struct list all;
    list_init(&all);
    for (struct list *item = list_pop_first(from); item; item = list_pop_first(from))
        list_append(&all, item);
    for (struct list *item = list_pop_first(&all); item; item = list_pop_first(&all))
        index_orphan_place(ix, CONTAINER_OF(item, struct app, link));
}

static void judge_applications(struct owner *o)
{
    LIST_FOR_EACH (&o->applications, item) {
        struct app *app = CONTAINER_OF(item, struct app, link);
        app->is_ours = index_fits(o, app);
    }
}

/* The selector cannot be changed, so this is done once, mostly. */
static bool read_selector(struct owner *o, struct arena *a, const struct json *object)
{
    const struct json *selector = json_at(object, "spec", "selector", NULL);
    const struct str text = selector ? json_text(a, selector) : STR("");
    if (o->selector_text && str_eq(text, str_of(o->selector_text)))
        return false;
    mem_free(o->selector_text);
    arena_free(o->arena);
    o->selector_text = str_dup(text);
    o->arena = arena_new();
    o->selector = (struct selector){0};
    const struct json *kept = json_parse_quick(o->arena, text);
    if (!kept || selector_from_json(o->arena, kept, &o->selector) < 0)
        o->selector = (struct selector){0};
    return true;
}

static void meet(struct workload_index *ix, struct owner *o, enum workload_kind kind,
                 const struct kube_event *e)
{
    struct buf key = {0};
    o->is_known = true;
    o->kind = kind;
    buf_printf(&key, "%s/%.*s/%.*s", workload_kinds[kind].kind, STR_ARG(e->namespace),
               STR_ARG(e->name));
    o->key = buf_take(&key);
    o->name = str_dup(e->name);
    o->space = index_space(ix, e->namespace);
    list_append(&o->space->owners, &o->link);
}

static void part(struct workload_index *ix, struct owner *o)
{
    struct list candidates;
    list_init(&candidates);
    list_remove(&o->link);
    o->is_known = false;
    for (struct list *item = list_pop_first(&o->candidates); item;
         item = list_pop_first(&o->candidates))
        list_append(&candidates, item);
    place_orphans(ix, &candidates);
    mem_free(TAKE(o->key));
    mem_free(TAKE(o->name));
    index_space_drop(ix, TAKE(o->space));
    index_owner_drop(ix, o);
}

void index_owner_event(struct workload_index *ix, enum workload_kind kind,
                       const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    struct owner *o = map_get(&ix->owners, e->uid);
    if (e->type == KUBE_DELETED) {
        if (o && o->is_known)
            part(ix, o);
        return;
    }
    const struct json *object = kube_event_object(e, a);
    const int64_t generation =
        json_get_int(json_get(object, STR("metadata")), STR("generation"), 0);
    o = index_owner(ix, e->uid);
    const bool is_new = !o->is_known;
    if (is_new)
        meet(ix, o, kind, e);
    /* What it says of itself in its status is our own word. */
    const bool has_changed = is_new || o->generation != generation;
    o->generation = generation;
    o->is_deleting = e->is_deleting;
    if (read_selector(o, a, object)) {
        judge_applications(o);
        place_orphans(ix, &o->space->orphans);
    }
    if (has_changed)
        ix->wake(ix->ctx, str_of(o->key), 0);
}

/* ---- devices ------------------------------------------------------------------------------- */

/* Out of touch: silent, or never seen. */
static bool is_out_of_touch(const struct json *object)
{
    JSON_FOR_EACH_ITEM (json_at(object, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), "Ready"))
            return str_is(json_get_str(c, STR("status")), "Unknown");
    return true;
}

static void wake_daemon_sets(struct workload_index *ix, const struct space *s)
{
    LIST_FOR_EACH (&s->owners, item) {
        const struct owner *o = CONTAINER_OF(item, struct owner, link);
        if (o->kind == WORKLOAD_DAEMON_SET)
            index_wake(ix, o);
    }
}

static void wake_owners(struct workload_index *ix, const struct device *d)
{
    LIST_FOR_EACH (&d->applications, item) {
        const struct app *app = CONTAINER_OF(item, struct app, device_link);
        if (app->place == APP_OF_OWNER)
            index_wake(ix, app->owner);
    }
}

static void set_device(struct workload_index *ix, struct device *d, const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    const struct json *labels = json_get(meta, STR("labels"));
    const bool is_active =
                   !str_is(json_get_str(json_get(meta, STR("annotations")), STR(SETTINGS_ACTIVATE)),
                           "false"),
               is_offline = is_out_of_touch(object), is_new = !d->is_known;
    const bool is_same = !is_new && d->is_active == is_active && d->is_offline == is_offline &&
                         labels_equal(d->labels, labels);
    if (is_same)
        return;
    if (is_new)
        list_append(&d->space->devices, &d->link);
    d->is_known = true;
    d->is_active = is_active;
    d->is_offline = is_offline;
    labels_free(d->labels);
    d->labels = labels_pack(labels);
    wake_owners(ix, d);
    wake_daemon_sets(ix, d->space);
}

static void drop_device(struct workload_index *ix, struct device *d)
{
    if (!d->is_known)
        return;
    d->is_known = false;
    list_remove(&d->link);
    wake_owners(ix, d);
    wake_daemon_sets(ix, d->space);
}

void index_device_event(struct workload_index *ix, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    struct device *d = index_device(ix, e->namespace, e->name);
    const struct json *object =
        e->type == KUBE_DELETED || e->is_deleting ? NULL : kube_event_object(e, a);
    if (object)
        set_device(ix, d, object);
    else
        drop_device(ix, d);
    index_device_drop(ix, d);
}
