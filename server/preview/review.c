/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/review.h"

#include <errno.h>

#include "settings/settings.h"

#define GROUP STR("eve.lfedge.org")
#define VERSION STR("v1beta1")

static int read_object(const struct preview *p, const struct review *r, struct str resource,
                       struct json **ret, struct status *st)
{
    const struct kube_request q = {.verb = VERB_GET,
                                   .group = GROUP,
                                   .version = VERSION,
                                   .resource = resource,
                                   .namespace = r->namespace,
                                   .name = r->name};
    return kube_request(p->client, r->arena, &q, ret, st);
}

static void take_device_config(struct review *r, struct json *object)
{
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    r->device_config = object;
    r->is_whole = str_is(json_get_str(annotations, STR(SETTINGS_COMPOSED)), "false");
    r->overrides = object && overrides_are_possible(object) ? overrides_of(r->arena, object) : NULL;
}

int review_open(struct review *r, const struct preview *p, struct status *st)
{
    struct json *object = NULL;
    struct status absent;
    r->registry = kube_kinds(p->client);
    r->schema = snapshot_schema(r->registry);
    int error = read_object(p, r, STR("devices"), &object, st);
    if (error < 0)
        return error;
    status_init(&absent, r->arena);
    object = NULL;
    error = read_object(p, r, STR("deviceconfigs"), &object, &absent);
    if (error < 0 && error != -ENOENT) {
        *st = absent;
        return error;
    }
    take_device_config(r, object);
    return 0;
}

void review_done(struct review *r)
{
    registry_unref(TAKE(r->registry));
}

/* ---- composing ----------------------------------------------------------------------------- */

static int make(struct review *r, const struct preview *p, size_t n_changes, struct snapshot *ret,
                struct status *st)
{
    const struct snapshot_question q = {.schema = r->schema,
                                        .namespace = r->namespace,
                                        .name = r->name,
                                        .device_config = r->device_config,
                                        .changes = r->changes,
                                        .n_changes = n_changes};
    const int error = snapshot_make(p->fleet, r->arena, &q, ret, st);
    if (error == -ENOENT && !st->code)
        return status_fail(st, 404, "NotFound", "devices.eve.lfedge.org %.*s not found",
                           STR_ARG(status_quote(r->arena, r->name)));
    return error;
}

/* To own an item or a message is not to own all that is in it; but of a message that is given up
 * there stays what somebody owns. Items go with what was composed of them. */
static const struct override *kept_by(const struct review *r, const struct difference_change *c)
{
    const bool is_item = str_ends_with(c->place, STR("]"));
    for (const struct override *o = r->overrides; o; o = o->next)
        if (str_eq(o->path, c->place) || (!c->new && !is_item &&place_is_within(o->path, c->place)))
            return o;
    return NULL;
}

static void compare(struct review *r)
{
    struct difference effective = {0};
    r->difference = difference_make(r->arena, r->schema, r->base, r->then.config);
    r->kept_by = ARENA_ARRAY(r->arena, const struct override *, r->difference.n + 1);
    for (size_t i = 0; i < r->difference.n; i++) {
        const struct difference_change *c = &r->difference.items[i];
        r->kept_by[i] = kept_by(r, c);
        if (r->kept_by[i])
            continue;
        effective.items = arena_grow(r->arena, effective.items, effective.n, sizeof(*c));
        effective.items[effective.n++] = *c;
    }
    if (!r->then.is_gone)
        r->effects = effects_find(r->arena, r->schema, r->base, r->then.config, &effective);
}

int review_now(struct review *r, const struct preview *p, struct status *st)
{
    return make(r, p, 0, &r->then, st);
}

int review_changes(struct review *r, const struct preview *p, struct status *st)
{
    int error = make(r, p, 0, &r->now, st);
    if (error == 0)
        error = make(r, p, r->n_changes, &r->then, st);
    if (error < 0)
        return error;
    r->has_now = true;
    r->base = r->now.config;
    if (!r->is_whole)
        compare(r);
    return 0;
}

int review_pending(struct review *r, const struct preview *p, struct status *st)
{
    const int error = make(r, p, 0, &r->then, st);
    if (error < 0)
        return error;
    r->base =
        snapshot_config(r->arena, r->schema, json_at(r->device_config, "spec", "config", NULL));
    if (!r->is_whole)
        compare(r);
    return 0;
}
