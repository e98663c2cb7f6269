/* SPDX-License-Identifier: Apache-2.0 */
#include "api/scale.h"

#include <errno.h>

#include "api/codec.h"
#include "api/write.h"
#include "schema/patch.h"
#include "json/yaml.h"

#define SCALE_VERSION "autoscaling/v1"

static int64_t int_at(const struct jsonpath *path, const struct json *object)
{
    const struct json *v = path ? jsonpath_first(path, object) : NULL;
    return json_is(v, JSON_INT) ? v->i : 0;
}

/* ".spec.replicas" without its first dot. */
static struct str replicas_path(const struct call *c)
{
    return str_from(c->kind->scale->spec_replicas_text, 1);
}

struct json *scale_view(struct call *c, const struct json *object)
{
    static const char *const shown[] = {"name", "namespace", "uid", "resourceVersion",
                                        "creationTimestamp"};
    struct arena *a = c->arena;
    const struct kind_scale *k = c->kind->scale;
    struct json *scale = json_new(a, json_object());
    (void) json_set(a, scale, STR("kind"), json_string(STR("Scale")));
    (void) json_set(a, scale, STR("apiVersion"), json_string(STR(SCALE_VERSION)));
    struct json *meta = json_ensure_object(a, scale, STR("metadata"));
    for (size_t i = 0; i < N_ELEMENTS(shown); i++) {
        const struct json *value = json_at(object, "metadata", shown[i], NULL);
        if (value)
            (void) json_set(a, meta, str_of(shown[i]), *value);
    }
    struct json *spec = json_ensure_object(a, scale, STR("spec"));
    (void) json_set(a, spec, STR("replicas"), json_int(int_at(k->spec_replicas, object)));
    struct json *status = json_ensure_object(a, scale, STR("status"));
    (void) json_set(a, status, STR("replicas"), json_int(int_at(k->status_replicas, object)));
    const struct json *selector =
        k->label_selector ? jsonpath_first(k->label_selector, object) : NULL;
    if (json_str(selector).n)
        (void) json_set(a, status, STR("selector"), *selector);
    return scale;
}

void scale_reply(struct call *c, struct object *o)
{
    call_reply_json(c, 200, scale_view(c, codec_decode(c->arena, o, c->kind)));
}

/* Sets the number at a plain path such as ".spec.replicas", making objects on the way. */
static void set_replicas(struct arena *a, struct json *object, struct str path, int64_t replicas)
{
    struct str rest = str_from(path, 1), name = STR_NONE;
    struct json *at = object;
    while (str_split(&rest, '.', &name)) {
        if (!rest.n) {
            (void) json_set(a, at, name, json_int(replicas));
            return;
        }
        at = json_ensure_object(a, at, name);
    }
}

/* Go's word for the type of a value it wanted to look into, and the value as it prints it. */
static struct str accessor_text(struct arena *a, const struct json *v)
{
    const char *type = json_is(v, JSON_STRING)  ? "string"
                       : json_is(v, JSON_INT)   ? "int64"
                       : json_is(v, JSON_ARRAY) ? "[]interface {}"
                       : json_is(v, JSON_BOOL)  ? "bool"
                                                : "float64";
    return arena_printf(a, "%.*s is of the type %s", STR_ARG(patch_go_text(a, v)), type);
}

static void validate_replicas(struct str path, const struct json *object, struct causes *causes)
{
    struct field_path at = FIELD_NAME(NULL, path);
    struct str rest = str_from(path, 1), name = STR_NONE;
    struct json shown = json_int(0);
    while (object && object->type != JSON_NULL && str_split(&rest, '.', &name)) {
        if (object->type != JSON_OBJECT) {
            causes_add(causes, CAUSE_INVALID, &at, &shown,
                       "%.*s accessor error: %.*s, expected map[string]interface{}", STR_ARG(path),
                       STR_ARG(accessor_text(causes->arena, object)));
            return;
        }
        object = json_get(object, name);
    }
    if (!object || object->type == JSON_NULL)
        return;
    if (object->type != JSON_INT)
        causes_add(causes, CAUSE_INVALID, &at, &shown, "%.*s accessor error: %.*s, expected int64",
                   STR_ARG(path), STR_ARG(accessor_text(causes->arena, object)));
    else if (object->i < 0)
        causes_add(causes, CAUSE_INVALID, &at, object, "should be a non-negative integer");
    else if (object->i > INT32_MAX)
        causes_add(causes, CAUSE_INVALID, &at, object, "should be less than or equal to %d",
                   INT32_MAX);
}

void scale_validate(const struct kind *kind, const struct json *object, struct causes *causes)
{
    validate_replicas(kind->scale->spec_replicas_text, object, causes);
    validate_replicas(kind->scale->status_replicas_text, object, causes);
}

static int check_replicas(struct call *c, const struct json *scale, int64_t *ret)
{
    const struct json *replicas = json_at(scale, "spec", "replicas", NULL);
    *ret = json_is(replicas, JSON_INT) ? replicas->i : 0;
    struct field_path at = FIELD_NAME(NULL, c->kind->scale->spec_replicas_text);
    struct causes causes;
    causes_init(&causes, c->arena);
    if (replicas && replicas->type != JSON_INT && replicas->type != JSON_NULL)
        return body_fail_patched(c, scale,
                                 arena_printf(c->arena, "spec.replicas: %.*s is no integer",
                                              STR_ARG(json_text(c->arena, replicas))));
    struct json shown = json_int(*ret);
    if (*ret < 0) {
        causes_add(&causes, CAUSE_INVALID, &at, &shown, "should be a non-negative integer");
        return status_invalid(&c->status, c->kind->group, c->kind->kind, c->in.path.name, &causes);
    }
    return 0;
}

int scale_take(struct call *c, struct json *object, const struct json *scale)
{
    int64_t replicas = 0;
    int r = check_replicas(c, scale, &replicas);
    if (r == 0)
        set_replicas(c->arena, object, c->kind->scale->spec_replicas_text, replicas);
    return r;
}

/* As scale_view(), with the owners of the replicas, which a write compares and moves. */
static struct json *managed_scale_of(struct call *c, const struct json *object)
{
    struct json *scale = scale_view(c, object);
    struct json managed = managed_to_scale(
        c->arena, json_at(object, "metadata", "managedFields", NULL), replicas_path(c));
    if (json_count(&managed))
        (void) json_set(c->arena, json_get(scale, STR("metadata")), STR("managedFields"), managed);
    return scale;
}

static struct managed_options scale_managed_options(struct call *c)
{
    return (struct managed_options){.manager = write_manager(c),
                                    .subresource = STR("scale"),
                                    .api_version = STR(SCALE_VERSION)};
}

static int check_scale(struct call *c, const struct json *old, const struct json *scale,
                       int64_t *ret_replicas)
{
    struct str given = json_str(json_at(scale, "metadata", "resourceVersion", NULL));
    struct str current = json_str(json_at(old, "metadata", "resourceVersion", NULL));
    struct str name = json_str(json_at(scale, "metadata", "name", NULL));
    if (name.n && !str_eq(name, c->in.path.name))
        return status_bad_request(
            &c->status, "the name of the object (%.*s) does not match the name on the URL (%.*s)",
            STR_ARG(name), STR_ARG(c->in.path.name));
    if (given.n && !str_is(given, "0") && !str_eq(given, current))
        return status_modified(&c->status, c->kind, c->in.path.name);
    return check_replicas(c, scale, ret_replicas);
}

/* From the Scale a client wants, its owners settled, to the object that shows it. */
static int object_for(struct call *c, const struct json *old, const struct json *scale,
                      struct json **ret_new)
{
    int64_t replicas = 0;
    int r = check_scale(c, old, scale, &replicas);
    if (r < 0)
        return r;
    struct json *object = json_new(c->arena, json_clone(c->arena, old));
    set_replicas(c->arena, object, c->kind->scale->spec_replicas_text, replicas);
    struct json managed = managed_from_scale(
        c->arena, json_at(old, "metadata", "managedFields", NULL),
        json_at(scale, "metadata", "managedFields", NULL), replicas_path(c), c->kind->api_version);
    (void) json_set(c->arena, json_get(object, STR("metadata")), STR("managedFields"), managed);
    *ret_new = object;
    return 0;
}

/* A Scale that a PUT or patch has written. */
static int object_for_update(struct call *c, const struct json *old, struct json *scale,
                             struct json **ret_new)
{
    int64_t ignored = 0;
    struct managed_options options = scale_managed_options(c);
    int r = check_scale(c, old, scale, &ignored);
    if (r < 0)
        return r;
    struct json *before = managed_scale_of(c, old);
    const struct json *managed = json_at(before, "metadata", "managedFields", NULL);
    struct json *meta = json_ensure_object(c->arena, scale, STR("metadata"));
    if (managed)
        (void) json_set(c->arena, meta, STR("managedFields"), *managed);
    managed_update(c->arena, before, scale, &options);
    return object_for(c, old, scale, ret_new);
}

static int build_update(struct call *c, const struct json *old, struct json **ret_new)
{
    return object_for_update(c, old, json_new(c->arena, json_clone(c->arena, c->patch)), ret_new);
}

static void on_changed(struct call *c, struct object *o)
{
    scale_reply(c, o);
}

void scale_update(struct call *c)
{
    struct json *scale = NULL;
    int r = body_document(
        c, protobuf_find(c->registry->protobuf, STR("autoscaling/v1"), STR("Scale")), &scale);
    struct str kind = json_get_str(scale, STR("kind"));
    if (r == 0 && (!json_is(scale, JSON_OBJECT) || (kind.n && !str_is(kind, "Scale"))))
        r = status_bad_request(&c->status,
                               "the object provided is unrecognized (must be of type Scale)");
    if (r < 0) {
        call_fail(c);
        return;
    }
    c->patch = scale;
    write_run(
        c, &(struct write_plan){.build = build_update, .is_apply = true, .on_changed = on_changed});
}

struct scale_patch {
    enum media_patch type;
    const struct json *patch;
};

static int build_applied(struct call *c, const struct json *old, struct json **ret_new)
{
    const struct scale_patch *p = c->patch;
    struct managed_options options = scale_managed_options(c);
    struct managed_conflict *conflicts = NULL;
    struct json *scale = NULL;
    struct str error = STR_NONE;
    int r =
        managed_apply(c->arena, managed_scale_of(c, old), p->patch,
                      request_flag(&c->in.query, "force"), &options, &scale, &conflicts, &error);
    if (r == -EEXIST)
        return patch_fail_conflicts(c, conflicts);
    if (r < 0)
        return status_bad_request(&c->status, "%.*s", STR_ARG(error));
    return object_for(c, old, scale, ret_new);
}

static int build_patched(struct call *c, const struct json *old, struct json **ret_new)
{
    const struct scale_patch *p = c->patch;
    struct json *scale = scale_view(c, old), *patched = NULL;
    struct patch_error error = {0};
    if (p->type == MEDIA_PATCH_APPLY)
        return build_applied(c, old, ret_new);
    int r = p->type == MEDIA_PATCH_JSON ? patch_json(c->arena, scale, p->patch, &patched, &error)
                                        : patch_merge(c->arena, scale, p->patch, &patched, &error);
    if (r < 0)
        return patch_fail(c, &error);
    return object_for_update(c, old, json_new(c->arena, json_clone(c->arena, patched)), ret_new);
}

void scale_patch(struct call *c, enum media_patch type, const struct json *patch)
{
    struct scale_patch *p = ARENA_NEW(c->arena, struct scale_patch);
    *p = (struct scale_patch){type, patch};
    c->patch = p;
    write_run(c, &(struct write_plan){
                     .build = build_patched, .is_apply = true, .on_changed = on_changed});
}
