/* SPDX-License-Identifier: Apache-2.0 */
#include "api/write.h"

#include <errno.h>
#include <inttypes.h>

#include "api/admission/admission.h"
#include "api/codec.h"
#include "api/forecast.h"
#include "api/native.h"
#include "api/object_meta.h"
#include "api/scale.h"
#include "base/random.h"
#include "schema/managed.h"

#define WRITE_MAX_ATTEMPTS 64
#define FIELD_MANAGER_MAX_BYTES 128
#define GENERATED_SUFFIX 5
#define GENERATED_BASE_MAX 58 /* a generated name fits a 63 byte label */

/* ---- options ------------------------------------------------------------------------------ */

static void check_manager(struct call *c, struct causes *causes, bool is_apply)
{
    struct str manager = request_parameter(&c->in.query, "fieldManager");
    struct field_path at = FIELD_NAME(NULL, STR("fieldManager"));
    struct json value = json_string(manager.p ? manager : STR(""));
    if (!manager.n && is_apply)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "is required for apply patch");
    if (manager.n > FIELD_MANAGER_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at, &value, "may not be more than %d bytes",
                   FIELD_MANAGER_MAX_BYTES);
    for (size_t i = 0; i < manager.n; i++) {
        unsigned char byte = (unsigned char) manager.p[i];
        if (byte < 0x20 || byte == 0x7f) {
            causes_add(causes, CAUSE_INVALID, &at, &value,
                       "invalid character U+%04X (at position %zu)", byte, i);
            break;
        }
    }
}

int write_check_options(struct call *c, const char *options_kind, bool is_apply)
{
    static const struct str dry_run_values[] = {{"All", 3}};
    static const struct str validations[] = {{"", 0}, {"Ignore", 6}, {"Strict", 6}, {"Warn", 4}};
    struct causes causes;
    causes_init(&causes, c->arena);
    struct str dry_run = request_parameter(&c->in.query, "dryRun");
    struct str validation = request_parameter(&c->in.query, "fieldValidation");
    bool is_patch = str_is(str_of(options_kind), "PatchOptions");

    c->is_dry_run = str_is(dry_run, "All");
    if (dry_run.p && !c->is_dry_run) {
        struct json value = json_array();
        (void) json_push(c->arena, &value, json_string(dry_run));
        causes_add_not_supported(&causes, &FIELD_NAME(NULL, STR("dryRun")), &value, dry_run_values,
                                 1);
    }
    bool known = !validation.n;
    for (size_t i = 0; i < N_ELEMENTS(validations); i++)
        known |= str_eq(validation, validations[i]);
    if (!known) {
        struct json value = json_string(validation);
        causes_add_not_supported(&causes, &FIELD_NAME(NULL, STR("fieldValidation")), &value,
                                 validations, N_ELEMENTS(validations));
    }
    check_manager(c, &causes, is_apply);
    if (is_patch && !is_apply && request_parameter(&c->in.query, "force").p)
        causes_add(&causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, STR("force")), NULL,
                   "may not be specified for non-apply patch");
    return causes.n ? status_invalid(&c->status, STR("meta.k8s.io"), str_of(options_kind), STR(""),
                                     &causes)
                    : 0;
}

struct str write_manager(struct call *c)
{
    struct str given = request_parameter(&c->in.query, "fieldManager");
    if (given.n)
        return given;
    ptrdiff_t slash = str_find(c->in.user_agent, '/');
    struct str name = slash < 0 ? c->in.user_agent : str_sub(c->in.user_agent, 0, (size_t) slash);
    return name.n ? str_sub(name, 0, FIELD_MANAGER_MAX_BYTES) : STR("unknown");
}

/* ---- identity ----------------------------------------------------------------------------- */

int write_check_names(struct call *c, const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    struct str namespace = json_get_str(meta, STR("namespace"));
    struct str name = json_get_str(meta, STR("name"));
    if (c->in.verb != VERB_CREATE) {
        if (!name.n)
            return status_bad_request(
                &c->status,
                "the name of the object (%.*s based on URL) was undeterminable: name "
                "must be provided",
                STR_ARG(c->in.path.name));
        if (!str_eq(name, c->in.path.name))
            return status_bad_request(
                &c->status,
                "the name of the object (%.*s) does not match the name on the URL (%.*s)",
                STR_ARG(name), STR_ARG(c->in.path.name));
    }
    if (namespace.n && !str_eq(namespace, c->in.path.namespace))
        return status_bad_request(&c->status,
                                  "the namespace of the provided object does not match the "
                                  "namespace sent on the request");
    return 0;
}

int write_check_identity(struct call *c, struct json *object)
{
    int r = write_check_names(c, object);
    if (r < 0)
        return r;
    struct json *meta = json_ensure_object(c->arena, object, STR("metadata"));
    if (c->kind->is_namespaced)
        (void) json_set(c->arena, meta, STR("namespace"), json_string(c->in.path.namespace));
    else
        (void) json_remove(meta, STR("namespace"));
    return 0;
}

static void set_meta(struct call *c, struct json *meta, const char *key, struct json value)
{
    (void) json_set(c->arena, meta, str_of(key), value);
}

static struct json now_text(struct call *c)
{
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(api_clock(c->api)->wall_us(api_clock(c->api)), text);
    return json_string(arena_str(c->arena, str_of(text)));
}

/* A name from generateName, new with every attempt. */
static void generate_name(struct call *c, struct json *meta)
{
    struct str prefix = json_get_str(meta, STR("generateName"));
    if (json_get_str(meta, STR("name")).n || !prefix.n)
        return;
    char suffix[GENERATED_SUFFIX + 1];
    random_name(suffix, GENERATED_SUFFIX);
    set_meta(c, meta, "name",
             json_string(arena_printf(c->arena, "%.*s%s",
                                      STR_ARG(str_sub(prefix, 0, GENERATED_BASE_MAX)), suffix)));
}

/* What only the server decides about a new object is not there yet while it is admitted. */
static void wipe_metadata(struct call *c, struct json *object)
{
    static const char *const unset[] = {"deletionTimestamp", "deletionGracePeriodSeconds",
                                        "selfLink",          "generation",
                                        "resourceVersion",   "uid",
                                        "creationTimestamp"};
    struct json *meta = json_ensure_object(c->arena, object, STR("metadata"));
    for (size_t i = 0; i < N_ELEMENTS(unset); i++)
        (void) json_remove(meta, str_of(unset[i]));
}

static void begin_metadata(struct call *c, struct json *object)
{
    struct json *meta = json_ensure_object(c->arena, object, STR("metadata"));
    generate_name(c, meta);
    char uid[UUID_TEXT_BYTES];
    random_uuid(uid);
    set_meta(c, meta, "uid", json_string(arena_str(c->arena, str_of(uid))));
    set_meta(c, meta, "creationTimestamp", now_text(c));
    if (c->kind->has_generation)
        set_meta(c, meta, "generation", json_int(1));
}

/* What a writer may leave out or not change. */
static void carry_metadata(struct call *c, const struct json *old, struct json *object)
{
    static const char *const kept[] = {"creationTimestamp", "generation", "selfLink"};
    static const char *const kept_if_absent[] = {"uid", "deletionTimestamp",
                                                 "deletionGracePeriodSeconds"};
    struct json *meta = json_ensure_object(c->arena, object, STR("metadata"));
    const struct json *old_meta = json_get(old, STR("metadata"));
    for (size_t i = 0; i < N_ELEMENTS(kept); i++) {
        const struct json *value = json_get(old_meta, str_of(kept[i]));
        if (value)
            set_meta(c, meta, kept[i], *value);
        else
            (void) json_remove(meta, str_of(kept[i]));
    }
    for (size_t i = 0; i < N_ELEMENTS(kept_if_absent); i++) {
        const struct json *value = json_get(old_meta, str_of(kept_if_absent[i]));
        const struct json *given = json_get(meta, str_of(kept_if_absent[i]));
        if (value && (!given || given->type == JSON_NULL))
            set_meta(c, meta, kept_if_absent[i], *value);
    }
}

/* ---- sharing with the current object ------------------------------------------------------ */

static bool has_behaviour(const struct kind *kind)
{
    return kind->is_native || kind->hooks || kind->to_stored;
}

void write_unshare(struct call *c, struct json *object)
{
    if (has_behaviour(c->kind)) {
        *object = json_clone(c->arena, object);
        return;
    }
    json_unshare(c->arena, object, /* n_more= */ 2);
    struct json *meta = json_get(object, STR("metadata"));
    if (json_is(meta, JSON_OBJECT))
        json_unshare(c->arena, meta, /* n_more= */ 4);
}

/* The one deep comparison of a write: what did not change is shared from here on, and all who
 * compare the two see it at once. */
static void share_unchanged(struct call *c, const struct json *old, struct json *object)
{
    if (has_behaviour(c->kind))
        return;
    JSON_FOR_EACH_MEMBER (object, m) {
        const struct json *was = json_get(old, json_str(&m->key));
        if (was && !str_is(json_str(&m->key), "metadata"))
            (void) json_share(&m->value, was);
    }
}

static void set_defaults(struct call *c, const struct json *old, struct json *object)
{
    /* Native objects are not defaulted again when they are read. */
    schema_default_over(c->arena, c->kind->schema, object, c->kind->is_native ? NULL : old);
}

/* ---- the parts a write may touch ---------------------------------------------------------- */

static bool is_status_write(const struct call *c)
{
    return c->subresource && c->subresource->writes_status;
}

/* A write to the object leaves status alone; one to /status leaves all else alone. */
static void keep_untouchable(struct call *c, const struct json *old, struct json *object)
{
    if (is_status_write(c)) {
        struct json status = json_null();
        const struct json *given = json_get(object, STR("status"));
        const struct json *managed = json_at(object, "metadata", "managedFields", NULL);
        if (given)
            status = *given;
        struct json kept = *old;
        write_unshare(c, &kept);
        struct json *meta = json_ensure_object(c->arena, &kept, STR("metadata"));
        if (c->kind->is_native)
            *meta = *json_get(object, STR("metadata"));
        else if (managed)
            set_meta(c, meta, "managedFields", *managed);
        else
            (void) json_remove(meta, STR("managedFields"));
        if (given)
            (void) json_set(c->arena, &kept, STR("status"), status);
        else
            (void) json_remove(&kept, STR("status"));
        *object = kept;
        return;
    }
    if (!c->kind->has_status)
        return;
    const struct json *old_status = json_get(old, STR("status"));
    if (old_status)
        (void) json_set(c->arena, object, STR("status"), *old_status);
    else
        (void) json_remove(object, STR("status"));
}

static bool is_outside_spec(struct str key, bool has_status)
{
    return str_is(key, "metadata") || str_is(key, "apiVersion") || str_is(key, "kind") ||
           (has_status && str_is(key, "status"));
}

/* The members whose change makes a new generation; their values stay shared. */
static struct json spec_of(struct arena *a, const struct json *object, bool has_status)
{
    struct json spec = json_object();
    JSON_FOR_EACH_MEMBER (object, m) {
        struct str key = json_str(&m->key);
        if (!is_outside_spec(key, has_status))
            (void) json_append_member(a, &spec, key, m->value);
    }
    return spec;
}

static bool has_same_spec(struct arena *a, const struct json *old, const struct json *object,
                          bool has_status)
{
    struct json before = spec_of(a, old, has_status), after = spec_of(a, object, has_status);
    return json_equal(&before, &after);
}

static void advance_generation(struct call *c, const struct json *old, struct json *object)
{
    if (!c->kind->has_generation || is_status_write(c) ||
        has_same_spec(c->arena, old, object, c->kind->has_status))
        return;
    int64_t generation = json_get_int(json_get(old, STR("metadata")), STR("generation"), 0);
    set_meta(c, json_get(object, STR("metadata")), "generation", json_int(generation + 1));
}

/* ---- the pipeline ------------------------------------------------------------------------- */

/* The fields that this write leaves alone whatever it says. */
static const char *const *reset_fields(const struct call *c)
{
    static const char *const status_reset[] = {"status", NULL};
    const struct kind_hooks *hooks = c->kind->hooks;
    if (hooks && hooks->reset_fields)
        return hooks->reset_fields(c->subresource ? c->subresource->name : STR(""));
    return c->kind->has_status && !c->subresource ? status_reset : NULL;
}

struct managed_options write_managed_options(struct call *c)
{
    return (struct managed_options){
        .manager = write_manager(c),
        .subresource = c->subresource ? c->subresource->name : STR(""),
        .api_version = c->kind->api_version,
        .time = json_str(json_new(c->arena, now_text(c))),
        .schema = c->kind->schema,
        .reset_fields = reset_fields(c),
        .only_status = is_status_write(c),
        .zero = c->kind->is_native ? json_new(c->arena, native_zero(c->arena, c->kind)) : NULL,
    };
}

static void update_managed(struct call *c, const struct json *old, struct json *object)
{
    struct managed_options options = write_managed_options(c);
    managed_update(c->arena, old, object, &options);
}

static int validate(struct call *c, const struct json *old, struct json *object)
{
    struct hook_context h = call_hook_context(c, old ? WRITE_UPDATE : WRITE_CREATE);
    const struct kind_hooks *hooks = c->kind->hooks;
    struct causes causes;
    causes_init(&causes, c->arena);
    object_meta_validate(&h, object, &causes);
    if (old)
        object_meta_validate_update(&h, old, object, &causes);
    if (!c->kind->is_native)
        schema_validate(c->kind->schema, object, old, NULL, &causes);
    if (c->kind->scale)
        scale_validate(c->kind, object, &causes);
    if (hooks && hooks->validate)
        hooks->validate(&h, object, &causes);
    if (hooks && hooks->validate_update && old)
        hooks->validate_update(&h, old, object, &causes);
    if (!causes.n)
        return 0;
    struct str name = json_get_str(json_get(object, STR("metadata")), STR("name"));
    /* A kind read through another's collection is judged, and named, as that one. */
    const struct kind *stored = registry_collection(c->registry, c->kind->collection);
    return status_invalid(&c->status, stored->group, stored->kind, name, &causes);
}

/* As refusals name an object that may have no name yet. */
static struct str name_before(const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    struct str name = json_get_str(meta, STR("name")),
               prefix = json_get_str(meta, STR("generateName"));
    return name.n ? name : prefix.n ? prefix : STR("Unknown!");
}

/* From a decoded object to one that may be stored. */
static int complete(struct call *c, const struct write_plan *plan, const struct json *old,
                    struct json *object)
{
    struct hook_context h = call_hook_context(c, old ? WRITE_UPDATE : WRITE_CREATE);
    const struct kind_hooks *hooks = c->kind->hooks;
    h.name = json_get_str(json_get(object, STR("metadata")), STR("name"));
    struct admission admission = {
        .call = c, .old = old, .object = object, .name = name_before(object)};

    set_defaults(c, old, object);
    if (hooks && hooks->set_defaults)
        hooks->set_defaults(&h, object);
    if (old) {
        share_unchanged(c, old, object);
        carry_metadata(c, old, object);
    } else {
        wipe_metadata(c, object);
    }
    if (!plan->is_apply)
        update_managed(c, old, object);
    if (admission_admit(&admission) < 0)
        return -EPERM;
    if (!old)
        begin_metadata(c, object);
    keep_untouchable(c, old, object);
    if (hooks && hooks->prepare)
        hooks->prepare(&h, old, object);
    if (old) {
        advance_generation(c, old, object);
        managed_keep_times(c->arena, old, object);
    }
    if (validate(c, old, object) < 0)
        return -EINVAL;
    admission.name = json_get_str(json_get(object, STR("metadata")), STR("name"));
    return admission_validate(&admission);
}

/* Equal but for what the store writes itself. */
static bool is_unchanged(struct call *c, const struct json *old, struct json *object)
{
    struct json *meta = json_get(object, STR("metadata"));
    const struct json *revision = json_at(old, "metadata", "resourceVersion", NULL);
    if (revision)
        set_meta(c, meta, "resourceVersion", *revision);
    return json_equal(old, object);
}

/* Deleted, and nothing keeps it any more: this write is its end. */
static bool is_ending(const struct call *c, const struct json *object)
{
    const struct json *meta = json_get(object, STR("metadata"));
    const struct json *when = json_get(meta, STR("deletionTimestamp"));
    const struct kind_hooks *hooks = c->kind->hooks;
    if (!when || when->type == JSON_NULL || json_count(json_get(meta, STR("finalizers"))))
        return false;
    return !hooks || !hooks->must_stay || !hooks->must_stay(object);
}

struct write_state {
    struct write_plan plan;
    struct json *object;
    bool is_ending;
};

static void attempt(struct call *c);

static void reply_stored(struct call *c, int code, struct object *o)
{
    const struct write_state *w = c->verb_state;
    if (w->plan.on_changed) {
        w->plan.on_changed(c, o);
        return;
    }
    struct json *value =
        c->takes_value ? codec_stored_value(c->arena, c->kind, w->object, o->revision) : NULL;
    if (value)
        call_reply_value(c, code, value);
    else
        call_reply_object(c, code, o);
}

static void on_written(struct call *c)
{
    struct write_state *w = c->verb_state;
    int result = c->write.result;
    admission_release(c);
    bool is_create = c->write.condition == STORE_CREATE;
    /* Whoever named a resourceVersion is told by build() that it has moved on. */
    bool may_retry = result == -ESTALE || (result == -ENOENT && !is_create) ||
                     (result == -EEXIST && is_create && !w->plan.must_create);
    bool has_generated = w->plan.must_create && result == -EEXIST &&
                         json_at(w->object, "metadata", "generateName", NULL) && !c->in.path.name.n;
    if ((may_retry || has_generated) && c->n_attempts < WRITE_MAX_ATTEMPTS) {
        object_unref(TAKE(c->write.committed));
        attempt(c);
        return;
    }
    struct str name = json_get_str(json_get(w->object, STR("metadata")), STR("name"));
    if (result < 0) {
        if (result == -EEXIST && c->write.committed && c->write.committed->head.is_deleting) {
            (void) status_already_exists(&c->status, c->kind, name);
            c->status.message =
                arena_printf(c->arena, "object is being deleted: %.*s", STR_ARG(c->status.message));
        } else {
            (void) status_from_store(&c->status, c->kind, name, result);
        }
        call_fail(c);
        return;
    }
    if (w->is_ending)
        call_reply_json(c, 200, w->object);
    else
        reply_stored(c, is_create ? 201 : 200, c->write.committed);
}

static void submit(struct call *c, struct object *current)
{
    struct write_state *w = c->verb_state;
    c->write.condition = !current ? STORE_CREATE : w->is_ending ? STORE_REMOVE : STORE_REPLACE;
    c->write.expected_revision = current ? current->revision : 0;
    c->write.key = call_key(c, json_get_str(json_get(w->object, STR("metadata")), STR("name")));
    int r = 0;
    if (w->is_ending) {
        c->write.object = codec_farewell(current);
    } else {
        const struct kind *stored = registry_collection(c->registry, c->kind->collection);
        if (c->kind->to_stored)
            c->kind->to_stored(c->arena, w->object);
        r = codec_encode(stored, w->object, &c->write.object);
    }
    if (r < 0) {
        (void) status_from_store(&c->status, c->kind, c->in.path.name, r);
        call_fail(c);
        return;
    }
    call_submit(c, on_written);
}

/* A dry run ends here, with what would have been stored. */
static void reply_dry(struct call *c, const struct json *old)
{
    struct write_state *w = c->verb_state;
    /* The question also shows the revision that would be replaced. */
    const bool is_same = old && is_unchanged(c, old, w->object);
    if (!is_same && !forecast_dry_write(c, old, w->is_ending ? NULL : w->object)) {
        call_fail(c);
        return;
    }
    call_reply_json(c, old ? 200 : 201, w->object);
}

static int build(struct call *c, const struct json *old)
{
    struct write_state *w = c->verb_state;
    struct json *object = NULL;
    int r = w->plan.build(c, old, &object);
    if (r < 0)
        return r;
    /* A patch can make much from little; what is stored must be readable again. */
    if (!json_fits(object, WRITE_MAX_VALUES))
        return status_fail(&c->status, 413, "RequestEntityTooLarge",
                           "the object is nested deeper than %d or has more than %d values",
                           JSON_MAX_DEPTH, WRITE_MAX_VALUES);
    w->object = object;
    return complete(c, &w->plan, old, object);
}

static void attempt(struct call *c)
{
    struct write_state *w = c->verb_state;
    c->n_attempts++;
    CLEANUP(object_unrefp)
    struct object *current = w->plan.must_create ? NULL : store_get(api_store(c->api), c->key);
    if (!current && !w->plan.must_create && !w->plan.may_create) {
        (void) status_not_found(&c->status, c->kind, c->in.path.name);
        call_fail(c);
        return;
    }
    struct json *old = current ? codec_decode(c->arena, current, c->kind) : NULL;
    if (build(c, old) < 0) {
        call_fail(c);
        return;
    }
    w->is_ending = old && is_ending(c, w->object);
    if (c->is_dry_run)
        reply_dry(c, old);
    else if (old && !w->is_ending && is_unchanged(c, old, w->object))
        reply_stored(c, 200, current);
    else
        submit(c, current);
}

void write_run(struct call *c, const struct write_plan *plan)
{
    struct write_state *w = ARENA_NEW(c->arena, struct write_state);
    w->plan = *plan;
    c->verb_state = w;
    attempt(c);
}
