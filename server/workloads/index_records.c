/* SPDX-License-Identifier: Apache-2.0 */
/* Making, linking and freeing the records of the index. Owners and Devices that only others name
 * have a record, too: events of several collections come in no order at the start. */
#include "base/alloc.h"
#include "workloads/index_internal.h"
#include "workloads/labels.h"

/* What happens to many Applications of one owner is looked at together: a look costs as much as
 * they are. */
#define WAKE_PER_MS 10
#define WAKE_MAX_MS 1000

void index_wake(struct workload_index *ix, const struct owner *o)
{
    if (o && o->is_known)
        ix->wake(ix->ctx, str_of(o->key),
                 MIN((int64_t) (o->n_applications / WAKE_PER_MS), (int64_t) WAKE_MAX_MS));
}

/* ---- namespaces ---------------------------------------------------------------------------- */

struct space *index_space(struct workload_index *ix, struct str name)
{
    struct space *s = map_get(&ix->spaces, name);
    if (!s) {
        s = NEW(struct space);
        s->name = str_dup(name);
        list_init(&s->owners);
        list_init(&s->devices);
        list_init(&s->orphans);
        (void) map_put(&ix->spaces, str_of(s->name), s);
    }
    s->n_refs++;
    return s;
}

void index_space_drop(struct workload_index *ix, struct space *s)
{
    if (!s || --s->n_refs)
        return;
    (void) map_remove(&ix->spaces, str_of(s->name));
    mem_free(s->name);
    mem_free(s);
}

/* ---- owners -------------------------------------------------------------------------------- */

struct owner *index_owner(struct workload_index *ix, struct str uid)
{
    struct owner *o = map_get(&ix->owners, uid);
    if (o)
        return o;
    o = NEW(struct owner);
    o->uid = str_dup(uid);
    list_init(&o->link);
    list_init(&o->applications);
    list_init(&o->candidates);
    list_init(&o->revisions);
    (void) map_put(&ix->owners, str_of(o->uid), o);
    return o;
}

void index_owner_drop(struct workload_index *ix, struct owner *o)
{
    if (!o || o->is_known || !list_is_empty(&o->applications) || !list_is_empty(&o->revisions) ||
        !list_is_empty(&o->candidates))
        return;
    (void) map_remove(&ix->owners, str_of(o->uid));
    for (size_t i = 0; i < o->n_doubts; i++)
        mem_free(o->doubts[i]);
    mem_free(o->doubts);
    arena_free(o->arena);
    index_space_drop(ix, o->space);
    mem_free(o->selector_text);
    mem_free(o->key);
    mem_free(o->name);
    mem_free(o->uid);
    mem_free(o);
}

bool index_fits(const struct owner *o, const struct app *app)
{
    return o->is_known && !selector_is_empty(&o->selector) &&
           selector_matches_labels(&o->selector, app->labels);
}

/* ---- devices ------------------------------------------------------------------------------- */

struct device *index_device(struct workload_index *ix, struct str namespace, struct str name)
{
    BUF_AUTO key = {0};
    buf_printf(&key, "%.*s/%.*s", STR_ARG(namespace), STR_ARG(name));
    struct device *d = map_get(&ix->devices, buf_str(&key));
    if (d)
        return d;
    d = NEW(struct device);
    d->key = buf_take(&key);
    d->name = d->key + namespace.n + 1;
    list_init(&d->link);
    list_init(&d->applications);
    d->space = index_space(ix, namespace);
    (void) map_put(&ix->devices, str_of(d->key), d);
    return d;
}

void index_device_drop(struct workload_index *ix, struct device *d)
{
    if (!d || d->is_known || !list_is_empty(&d->applications))
        return;
    (void) map_remove(&ix->devices, str_of(d->key));
    index_space_drop(ix, d->space);
    labels_free(d->labels);
    mem_free(d->key);
    mem_free(d);
}

/* ---- Applications -------------------------------------------------------------------------- */

static bool may_adopt(const struct owner *o, const struct app *app)
{
    if (o->is_deleting || !index_fits(o, app))
        return false;
    return o->kind != WORKLOAD_STATEFUL_SET ||
           workload_ordinal(str_of(o->name), str_of(app->name)) >= 0;
}

void index_orphan_place(struct workload_index *ix, struct app *app)
{
    app->place = APP_ORPHAN;
    app->owner = NULL;
    LIST_FOR_EACH (&app->space->owners, item) {
        struct owner *o = CONTAINER_OF(item, struct owner, link);
        if (app->is_deleting || !may_adopt(o, app))
            continue;
        app->place = APP_CANDIDATE;
        app->owner = o;
        list_append(&o->candidates, &app->link);
        index_wake(ix, o);
        return;
    }
    list_append(&app->space->orphans, &app->link);
}

void index_app_unlink(struct workload_index *ix, struct app *app)
{
    struct owner *o = app->owner;
    struct device *d = app->device;
    list_remove(&app->link);
    list_remove(&app->device_link);
    if (app->place == APP_OF_OWNER && o)
        o->n_applications--;
    app->owner = NULL;
    app->device = NULL;
    index_device_drop(ix, d);
    index_owner_drop(ix, o);
}

void index_app_free(struct workload_index *ix, struct app *app)
{
    (void) map_remove(&ix->apps, str_of(app->uid));
    index_app_unlink(ix, app);
    index_space_drop(ix, app->space);
    labels_free(app->labels);
    mem_free(app->revision);
    mem_free(app->name);
    mem_free(app->uid);
    mem_free(app);
}

/* ---- revisions ----------------------------------------------------------------------------- */

void index_revision_free(struct workload_index *ix, struct revision *r)
{
    struct owner *o = r->owner;
    (void) map_remove(&ix->revisions, str_of(r->uid));
    list_remove(&r->link);
    mem_free(r->hash);
    mem_free(r->name);
    mem_free(r->uid);
    mem_free(r);
    index_owner_drop(ix, o);
}
