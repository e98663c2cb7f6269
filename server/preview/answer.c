/* SPDX-License-Identifier: Apache-2.0 */
/* What was found, as JSON. */
#include "preview/place.h"
#include "preview/review.h"

static void set_text(struct arena *a, struct json *object, const char *key, struct str value)
{
    if (value.n)
        (void) json_append_member(a, object, str_of(key), json_string(value));
}

static void set(struct arena *a, struct json *object, const char *key, struct json value)
{
    (void) json_append_member(a, object, str_of(key), value);
}

static struct json *head(const struct review *r, const char *kind)
{
    struct json *o = json_new(r->arena, json_object());
    struct json meta = json_object();
    set_text(r->arena, &meta, "name", r->name);
    set_text(r->arena, &meta, "namespace", r->namespace);
    set_text(r->arena, o, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    set_text(r->arena, o, "kind", str_of(kind));
    set(r->arena, o, "metadata", meta);
    return o;
}

/* ---- problems ------------------------------------------------------------------------------ */

static bool is_same_problem(const struct compose_problem *a, const struct compose_problem *b)
{
    const struct json *x = json_at(a->object, "metadata", "name", NULL);
    const struct json *y = json_at(b->object, "metadata", "name", NULL);
    return str_eq(a->field, b->field) && str_eq(a->message, b->message) &&
           str_eq(json_str(x), json_str(y)) &&
           str_eq(json_get_str(a->object, STR("kind")), json_get_str(b->object, STR("kind")));
}

static bool is_new_problem(const struct review *r, const struct compose_problem *p)
{
    for (size_t i = 0; i < r->now.result.n_problems; i++)
        if (is_same_problem(&r->now.result.problems[i], p))
            return false;
    return r->has_now;
}

static struct json problems_json(const struct review *r)
{
    struct arena *a = r->arena;
    struct json list = json_array();
    for (size_t i = 0; i < r->then.result.n_problems; i++) {
        const struct compose_problem *p = &r->then.result.problems[i];
        const struct json *meta = json_get(p->object, STR("metadata"));
        struct json one = json_object();
        set_text(a, &one, "apiVersion", json_get_str(p->object, STR("apiVersion")));
        set_text(a, &one, "kind", json_get_str(p->object, STR("kind")));
        set_text(a, &one, "namespace", json_get_str(meta, STR("namespace")));
        set_text(a, &one, "name", json_get_str(meta, STR("name")));
        set_text(a, &one, "field", p->field);
        set_text(a, &one, "message", p->message);
        if (is_new_problem(r, p))
            set(a, &one, "isNew", json_bool(true));
        (void) json_push(a, &list, one);
    }
    return list;
}

/* ---- notes --------------------------------------------------------------------------------- */

static void note(struct arena *a, struct json *notes, struct str text)
{
    (void) json_push(a, notes, json_string(text));
}

/* What applies to no device yet, or only by what a controller makes of it. */
static void note_change(const struct review *r, const struct fleet_change *c, struct json *notes)
{
    struct arena *a = r->arena;
    const struct str kind = json_get_str(c->object, STR("kind"));
    const struct str device = json_str(json_at(c->object, "status", "device", NULL));
    const struct str wanted = json_str(json_at(c->object, "spec", "nodeSelector", "name", NULL));
    if (str_is(kind, "ApplicationDeployment") || str_is(kind, "ApplicationDaemonSet") ||
        str_is(kind, "ApplicationStatefulSet"))
        note(a, notes,
             arena_printf(a, "%.*s %.*s: the Applications that it makes are not part of this",
                          STR_ARG(kind), STR_ARG(c->name)));
    else if (str_is(kind, "Application") && !device.n && !str_eq(wanted, r->name))
        note(a, notes,
             arena_printf(a,
                          "Application %.*s: no device is chosen yet, and it does not name this "
                          "one (spec.nodeSelector.name)",
                          STR_ARG(c->name)));
}

static struct json notes_json(const struct review *r)
{
    struct json notes = json_array();
    if (r->is_whole)
        note(r->arena, &notes,
             STR("nothing is composed: the DeviceConfig is its writer's alone (annotation "
                 "eve.lfedge.org/composed)"));
    if (r->then.is_gone)
        note(r->arena, &notes, STR("the Device is gone: it is told nothing any more"));
    for (size_t i = 0; i < r->n_changes; i++)
        if (r->changes[i].object)
            note_change(r, &r->changes[i], &notes);
    return notes;
}

/* ---- changes ------------------------------------------------------------------------------- */

static bool is_changed(const struct review *r, const struct json *object)
{
    for (size_t i = 0; i < r->n_changes; i++)
        if (r->changes[i].object == object)
            return true;
    return false;
}

/* Of several that explain a place as well, one that is to be changed. */
static bool find_source(const struct review *r, const struct difference_change *c, struct json *ret)
{
    const struct snapshot *s = c->new || !r->has_now ? &r->then : &r->now;
    size_t *sources = NULL;
    const size_t n = snapshot_explain(r->arena, s, c->place, &sources);
    size_t best = 0;
    for (size_t i = 0; i < n; i++)
        if (is_changed(r, s->result.sources[sources[i]].object)) {
            best = i;
            break;
        }
    if (n)
        *ret = snapshot_source(r->arena, s, sources[best]);
    return n > 0;
}

static struct json change_json(const struct review *r, size_t i)
{
    const struct difference_change *c = &r->difference.items[i];
    struct arena *a = r->arena;
    struct json source = json_null(), one = json_object();
    set_text(a, &one, "path", c->place);
    if (c->is_order)
        set(a, &one, "isOrder", json_bool(true));
    set(a, &one, "old", c->old ? *c->old : json_null());
    set(a, &one, "new", c->new ? *c->new : json_null());
    if (find_source(r, c, &source))
        set(a, &one, "source", source);
    if (r->kept_by[i])
        set_text(a, &one, "overriddenBy", r->kept_by[i]->manager);
    return one;
}

static struct json effect_names(const struct review *r, enum effect_kind kind)
{
    struct json names = json_array();
    for (size_t i = 0; i < r->effects.n; i++)
        if (r->effects.items[i].kind == kind)
            (void) json_push(r->arena, &names, json_string(r->effects.items[i].name));
    return names;
}

struct json *review_preview_json(const struct review *r)
{
    struct arena *a = r->arena;
    struct json *o = head(r, "DevicePreview");
    struct json effects = json_array(), changes = json_array();
    for (size_t i = 0; i < r->effects.n; i++)
        (void) json_push(a, &effects, json_string(effect_text(a, &r->effects.items[i])));
    for (size_t i = 0; i < r->difference.n; i++)
        (void) json_push(a, &changes, change_json(r, i));
    set(a, o, "effects", effects);
    set(a, o, "restarts", effect_names(r, EFFECT_RESTART));
    set(a, o, "purges", effect_names(r, EFFECT_PURGE));
    set(a, o, "reboots",
        json_bool(effects_count(&r->effects, EFFECT_REBOOT) ||
                  effects_count(&r->effects, EFFECT_UPDATE)));
    set(a, o, "changes", changes);
    set(a, o, "problems", problems_json(r));
    set(a, o, "notes", notes_json(r));
    return o;
}

/* ---- provenance ---------------------------------------------------------------------------- */

static struct json overrides_json(const struct review *r, struct str place)
{
    struct arena *a = r->arena;
    struct json list = json_array();
    for (const struct override *o = r->overrides; o; o = o->next) {
        if (!place_is_within(o->path, place) && !place_is_within(place, o->path))
            continue;
        struct json one = json_object();
        set_text(a, &one, "path", o->path);
        set_text(a, &one, "manager", o->manager);
        (void) json_push(a, &list, one);
    }
    return list;
}

static struct json sources_json(const struct review *r, struct str place)
{
    struct arena *a = r->arena;
    struct json list = json_array();
    size_t *sources = NULL;
    if (!place.n)
        return *compose_sources_json(a, &r->then.result, /* is_full= */ true);
    const size_t n = snapshot_explain(a, &r->then, place, &sources);
    for (size_t i = 0; i < n; i++)
        (void) json_push(a, &list, snapshot_source(a, &r->then, sources[i]));
    return list;
}

struct json *review_provenance_json(const struct review *r, struct str path)
{
    struct arena *a = r->arena;
    const struct str place = place_of_path(a, r->schema, r->then.config, path);
    const struct json *value = place_value(a, r->schema, r->then.config, place);
    struct json *o = head(r, "DeviceProvenance");
    set_text(a, o, "path", place);
    if (place.n && value)
        set(a, o, "value", *value);
    set(a, o, "sources", r->is_whole ? json_array() : sources_json(r, place));
    set(a, o, "overrides", overrides_json(r, place));
    set(a, o, "problems", r->is_whole ? json_array() : problems_json(r));
    set(a, o, "notes", notes_json(r));
    return o;
}
