/* SPDX-License-Identifier: Apache-2.0 */
/* Composes what a device is told and writes it down: first what was derived, so that no counter is
 * counted twice, then the DeviceConfig, then what became of it. Nothing is written that is so
 * already. */
#include "fleet/composing.h"

#include <errno.h>

#include "base/buf.h"
#include "controllers/conditions.h"
#include "controllers/objects.h"
#include "fleet/fleet_internal.h"
#include "fleet/overrides.h"
#include "protobuf/protojson.h"
#include "settings/settings.h"

/* Each waits for its writes most of the time, and what waits together is synced together. */
#define WORKERS 24
/* What changes together arrives within moments. */
#define SETTLE_MS 100
#define MAX_YIELDS 8
#define MAX_MESSAGE_BYTES 4096

struct composing {
    const struct controller_context *ctx;
    struct arena *arena;
    struct str namespace, name;
    struct compose_inputs in;
    struct compose_result result;
    struct json *config; /* as applied */
    struct json *object; /* the DeviceConfig as it is stored; NULL: there is none yet */
    struct status *st;
};

/* ---- requests -------------------------------------------------------------------------------- */

static int ask(struct composing *w, struct kube_request *r, struct json **ret)
{
    r->group = STR(FLEET_GROUP);
    r->version = STR("v1beta1");
    r->namespace = w->namespace;
    status_init(w->st, w->arena);
    return kube_request(w->ctx->client, w->arena, r, ret, w->st);
}

static int read_object(struct composing *w)
{
    struct kube_request r = {.verb = VERB_GET, .resource = STR("deviceconfigs"), .name = w->name};
    const int error = ask(w, &r, &w->object);
    return error == -ENOENT ? 0 : error;
}

/* ---- what was derived ----------------------------------------------------------------------- */

static void add_operation(struct arena *a, struct json *patch, const char *path, struct json value)
{
    struct json op = json_object();
    (void) json_append_member(a, &op, STR("op"), json_string(STR("add")));
    (void) json_append_member(a, &op, STR("path"), json_string(str_of(path)));
    (void) json_append_member(a, &op, STR("value"), value);
    (void) json_push(a, patch, op);
}

/* As device_apps counts them, who then need not write. */
static int64_t count_wanted(const struct composing *w)
{
    int64_t n = 0;
    for (size_t i = 0; i < w->in.applications.n; i++) {
        const struct json *application = w->in.applications.items[i];
        n += !object_is_deleting(application) &&
             json_get_bool(json_get(application, STR("spec")), STR("activate"), true);
    }
    return n;
}

static int keep_derived(struct composing *w)
{
    struct json patch = json_array();
    if (w->in.previous && json_equal(w->in.previous, w->result.derived))
        return 0;
    add_operation(w->arena, &patch, "/status/derived", *w->result.derived);
    if (json_at(w->in.device, "status", "apps", NULL))
        add_operation(w->arena, &patch, "/status/apps/wanted", json_int(count_wanted(w)));
    struct kube_request r = {.verb = VERB_PATCH,
                             .resource = STR("devices"),
                             .name = w->name,
                             .subresource = STR("status"),
                             .content_type = STR("application/json-patch+json"),
                             .body = &patch};
    return ask(w, &r, NULL);
}

/* ---- the DeviceConfig ----------------------------------------------------------------------- */

static struct json owner_of(struct arena *a, const struct json *device)
{
    struct json owner = json_object(), owners = json_array();
    const struct {
        const char *key;
        struct str value;
    } members[] = {{"apiVersion", STR(FLEET_GROUP "/v1beta1")},
                   {"kind", STR("Device")},
                   {"name", object_meta_text(device, "name")},
                   {"uid", object_meta_text(device, "uid")}};
    for (size_t i = 0; i < N_ELEMENTS(members); i++)
        (void) json_append_member(a, &owner, str_of(members[i].key), json_string(members[i].value));
    (void) json_append_member(a, &owner, STR("controller"), json_bool(true));
    (void) json_push(a, &owners, owner);
    return owners;
}

static struct json *applied_object(struct composing *w)
{
    struct arena *a = w->arena;
    struct json *object = json_new(a, json_object());
    struct json meta = json_object(), spec = json_object();
    (void) json_append_member(a, &meta, STR("name"), json_string(w->name));
    (void) json_append_member(a, &meta, STR("namespace"), json_string(w->namespace));
    (void) json_append_member(a, &meta, STR("ownerReferences"), owner_of(a, w->in.device));
    (void) json_append_member(a, &spec, STR("config"), *w->config);
    (void) json_append_member(a, object, STR("apiVersion"),
                              json_string(STR(FLEET_GROUP "/v1beta1")));
    (void) json_append_member(a, object, STR("kind"), json_string(STR("DeviceConfig")));
    (void) json_append_member(a, object, STR("metadata"), meta);
    (void) json_append_member(a, object, STR("spec"), spec);
    return object;
}

static int apply(struct composing *w)
{
    struct kube_request r = {.verb = VERB_PATCH,
                             .resource = STR("deviceconfigs"),
                             .name = w->name,
                             .query = STR("fieldManager=" COMPOSER_MANAGER),
                             .content_type = STR("application/apply-patch+yaml"),
                             .body = applied_object(w)};
    return ask(w, &r, &w->object);
}

/* Without force: what a user has taken over is yielded, field by field. */
static int apply_yielding(struct composing *w)
{
    int r = apply(w);
    for (unsigned i = 0; r == -ESTALE && w->st->causes && i < MAX_YIELDS; i++) {
        bool has_yielded = false;
        for (const struct cause *c = w->st->causes; c; c = c->next)
            has_yielded |= overrides_yield(w->config, c->field);
        if (!has_yielded)
            break;
        r = apply(w);
    }
    return r;
}

/* Fields of a user in what is not composed any more would leave half an application behind. */
static int drop_remains(struct composing *w)
{
    if (!overrides_are_possible(w->object) ||
        !overrides_drop_remains(json_at(w->object, "spec", "config", NULL)))
        return 0;
    struct kube_request r = {.verb = VERB_UPDATE,
                             .resource = STR("deviceconfigs"),
                             .name = w->name,
                             .query = STR("fieldManager=" COMPOSER_MANAGER),
                             .body = w->object};
    return ask(w, &r, &w->object);
}

static bool is_written(const struct composing *w)
{
    const struct json *stored = json_at(w->object, "spec", "config", NULL);
    return stored && !overrides_are_possible(w->object) && json_equal(stored, w->config);
}

static void note_config(struct composing *w, int64_t generation)
{
    fleet_note_config(w->ctx->fleet, w->namespace, w->name, generation);
}

/* The event of a write may come before its answer: which generation it makes is noted beforehand. A
 * user's write that makes it instead is part of what ours is applied to. */
static int apply_noted(struct composing *w)
{
    note_config(w, object_generation(w->object) + 1);
    const int r = apply_yielding(w);
    if (r < 0)
        note_config(w, 0);
    return r;
}

static int write_config(struct composing *w)
{
    w->config = protojson_value(w->arena, &w->result.config->message, NULL);
    int r = is_written(w) ? 0 : apply_noted(w);
    if (r == 0)
        r = drop_remains(w);
    if (r == 0)
        note_config(w, object_generation(w->object));
    return r;
}

/* ---- what became of it ---------------------------------------------------------------------- */

static void add_problem(struct buf *b, const struct compose_problem *p)
{
    if (b->n > MAX_MESSAGE_BYTES)
        return;
    buf_printf(b, "%s%.*s %.*s: %.*s: %.*s", b->n ? "; " : "",
               STR_ARG(json_get_str(p->object, STR("kind"))),
               STR_ARG(object_meta_text(p->object, "name")), STR_ARG(p->field),
               STR_ARG(p->message));
}

static struct condition composed_condition(struct composing *w)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < w->result.n_problems; i++)
        add_problem(&b, &w->result.problems[i]);
    if (!b.n)
        return (struct condition){"Composed", "True", STR("Complete"), STR("")};
    return (struct condition){"Composed", "False", STR("Incomplete"),
                              arena_str(w->arena, buf_str(&b))};
}

static struct condition overridden_condition(struct composing *w)
{
    BUF_AUTO b = {0};
    const struct override *first =
        overrides_are_possible(w->object) ? overrides_of(w->arena, w->object) : NULL;
    for (const struct override *o = first; o && b.n < MAX_MESSAGE_BYTES; o = o->next)
        buf_printf(&b, "%s%.*s by %.*s", b.n ? "; " : "", STR_ARG(o->path), STR_ARG(o->manager));
    if (!first)
        return (struct condition){"Overridden", "False", STR("AsComposed"), STR("")};
    return (struct condition){"Overridden", "True", STR("FieldsTaken"),
                              arena_str(w->arena, buf_str(&b))};
}

static int write_status(struct composing *w, const struct json *was)
{
    const struct fleet_options *o = &w->ctx->fleet->options;
    if (o->fill_delivery)
        (void) o->fill_delivery(o->devices, w->arena, w->namespace, w->name, w->object);
    if (json_equal(was, json_get(w->object, STR("status"))))
        return 0;
    struct kube_request r = {.verb = VERB_UPDATE,
                             .resource = STR("deviceconfigs"),
                             .name = w->name,
                             .subresource = STR("status"),
                             .query = STR("fieldManager=" COMPOSER_MANAGER),
                             .body = w->object};
    return ask(w, &r, NULL);
}

static const struct json *status_before(struct composing *w)
{
    const struct json *status = json_get(w->object, STR("status"));
    return json_new(w->arena, status ? json_clone(w->arena, status) : json_null());
}

static int tell_config(struct composing *w)
{
    const int64_t now_us = w->ctx->clock->wall_us(w->ctx->clock);
    const struct json *was = status_before(w);
    struct condition composed = composed_condition(w), overridden = overridden_condition(w);
    composed.generation = overridden.generation = object_generation(w->object);
    struct json *conditions = conditions_of(w->arena, w->object);
    (void) conditions_set(w->arena, conditions, &composed, now_us);
    (void) conditions_set(w->arena, conditions, &overridden, now_us);
    (void) json_set(w->arena, json_get(w->object, STR("status")), STR("sources"),
                    *compose_sources_json(w->arena, &w->result, /* is_full= */ false));
    return write_status(w, was);
}

/* ---- the applications ----------------------------------------------------------------------- */

static bool is_told(const struct composing *w, const struct json *application)
{
    const struct str uuid = json_str(json_at(application, "status", "uuid", NULL));
    const Eve__Config__EdgeDevConfig *config = w->result.config;
    for (size_t i = 0; uuid.n && i < config->n_apps; i++)
        if (str_eq(pb_text(config->apps[i]->uuidandversion->uuid), uuid))
            return true;
    return false;
}

static struct condition application_condition(struct composing *w, const struct json *application)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < w->result.n_problems; i++) {
        const struct compose_problem *p = &w->result.problems[i];
        if (p->object == application && b.n < MAX_MESSAGE_BYTES)
            buf_printf(&b, "%s%.*s: %.*s", b.n ? "; " : "", STR_ARG(p->field), STR_ARG(p->message));
    }
    if (b.n)
        return (struct condition){"Composed", "False",
                                  is_told(w, application) ? STR("KeptAsItWas") : STR("LeftOut"),
                                  arena_str(w->arena, buf_str(&b))};
    return (struct condition){"Composed", "True", STR("InConfiguration"), STR("")};
}

static int tell_application(struct composing *w, const struct json *application)
{
    struct condition c = application_condition(w, application);
    c.generation = object_generation(application);
    struct json *object = json_new(w->arena, json_clone(w->arena, application));
    const struct str name = object_meta_text(object, "name");
    if (!conditions_set(w->arena, conditions_of(w->arena, object), &c,
                        w->ctx->clock->wall_us(w->ctx->clock)))
        return 0;
    struct kube_request r = {.verb = VERB_UPDATE,
                             .resource = STR("applications"),
                             .name = name,
                             .subresource = STR("status"),
                             .body = object};
    const int error = ask(w, &r, NULL);
    return error == -ENOENT ? 0 : error;
}

static int tell_applications(struct composing *w)
{
    int r = 0;
    for (size_t i = 0; i < w->in.applications.n; i++) {
        const int error = tell_application(w, w->in.applications.items[i]);
        r = r < 0 ? r : error;
    }
    return r;
}

/* ---- whole configurations ------------------------------------------------------------------- */

static bool is_whole(const struct json *object)
{
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    return str_is(json_get_str(annotations, STR(SETTINGS_COMPOSED)), "false");
}

static int tell_whole(struct composing *w)
{
    const struct json *was = status_before(w);
    const int64_t now_us = w->ctx->clock->wall_us(w->ctx->clock);
    const int64_t generation = object_generation(w->object);
    const struct condition conditions[] = {
        {"Composed", "False", STR("WholeConfiguration"),
         STR("the annotation " SETTINGS_COMPOSED " says that nothing is composed"), generation},
        {"Overridden", "True", STR("WholeConfiguration"), STR("all of it"), generation}};
    for (size_t i = 0; i < N_ELEMENTS(conditions); i++)
        (void) conditions_set(w->arena, conditions_of(w->arena, w->object), &conditions[i], now_us);
    (void) json_remove(json_get(w->object, STR("status")), STR("sources"));
    fleet_note_config(w->ctx->fleet, w->namespace, w->name, 0);
    return write_status(w, was);
}

/* ---- the controller ------------------------------------------------------------------------- */

static int compose_and_write(struct composing *w)
{
    int r = fleet_inputs(w->ctx->fleet, w->arena, w->namespace, w->name, NULL, 0, &w->in, w->st);
    if (r == 0 && !object_is_deleting(w->in.device))
        r = read_object(w);
    if (r < 0 || object_is_deleting(w->in.device))
        return r;
    if (is_whole(w->object))
        return tell_whole(w);
    fleet_compose(w->arena, &w->in, w->object, &w->result);
    r = keep_derived(w);
    if (r == 0)
        r = write_config(w);
    if (r == 0)
        r = tell_config(w);
    const int told = r == 0 ? tell_applications(w) : 0;
    return r < 0 ? r : told;
}

int composing_run(const struct controller_context *ctx, struct str namespace, struct str name,
                  struct status *st)
{
    ARENA_AUTO a = arena_new();
    struct composing w = {.ctx = ctx, .arena = a, .namespace = namespace, .name = name, .st = st};
    pthread_mutex_t *turn = fleet_begin(ctx->fleet, name);
    const int r = compose_and_write(&w);
    fleet_end(turn);
    return r;
}

static void touch(void *ctx, struct str device_key)
{
    controller_enqueue(ctx, device_key, SETTLE_MS);
}

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) q;
    return ctx->fleet;
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    fleet_on_event(state, e, touch, q);
}

static void on_synced(void *state)
{
    fleet_set_synced(state);
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    struct status st;
    struct str name = key, namespace = STR_NONE;
    (void) str_split(&name, '/', &namespace);
    status_init(&st, a);
    const int r = composing_run(ctx, namespace, name, &st);
    return r == -ENOENT ? 0 : r;
}

const struct controller composing_controller = {.name = "composing",
                                                .start = start,
                                                .on_event = on_event,
                                                .on_synced = on_synced,
                                                .reconcile = reconcile,
                                                .n_workers = WORKERS};
