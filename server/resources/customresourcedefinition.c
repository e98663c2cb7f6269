/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/customresourcedefinition.h"

#include <ctype.h>

#include "api/object_meta.h"
#include "schema/schema.h"

#define CLEANUP_FINALIZER "customresourcecleanup.apiextensions.k8s.io"
#define APPROVAL "api-approved.kubernetes.io"
#define APPROVAL_SEE "see https://github.com/kubernetes/enhancements/pull/1111"

static bool is_status_write(const struct hook_context *h)
{
    return str_is(h->subresource, "status");
}

struct str crd_storage_version(const struct json *spec)
{
    JSON_FOR_EACH_ITEM (json_get(spec, STR("versions")), version)
        if (json_get_bool(version, STR("storage"), false))
            return json_get_str(version, STR("name"));
    return STR_NONE;
}

static bool has_item(const struct json *list, struct str text)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_str(item), text))
            return true;
    return false;
}

/* ---- defaults ----------------------------------------------------------------------------- */

static struct str to_lower(struct arena *a, struct str s)
{
    char *lower = arena_strz(a, s);
    for (size_t i = 0; i < s.n; i++)
        lower[i] = (char) tolower((unsigned char) lower[i]);
    return str_range(lower, s.n);
}

static void default_names(struct arena *a, struct json *spec)
{
    struct json *names = json_get(spec, STR("names"));
    struct str kind = json_get_str(names, STR("kind"));
    if (!kind.n)
        return;
    if (!json_get_str(names, STR("singular")).n)
        (void) json_set(a, names, STR("singular"), json_string(to_lower(a, kind)));
    if (!json_get_str(names, STR("listKind")).n)
        (void) json_set(a, names, STR("listKind"),
                        json_string(arena_printf(a, "%.*sList", STR_ARG(kind))));
}

static void default_stored_versions(struct arena *a, struct json *object)
{
    struct str stored = crd_storage_version(json_get(object, STR("spec")));
    struct json *status = json_ensure_object(a, object, STR("status"));
    if (!stored.p || json_count(json_get(status, STR("storedVersions"))))
        return;
    struct json versions = json_array();
    (void) json_push(a, &versions, json_string(stored));
    (void) json_set(a, status, STR("storedVersions"), versions);
}

static void warn_unknown(void *ctx, struct str path)
{
    struct hook_context *h = ctx;
    h->warn(h, arena_printf(h->arena, "unknown field \"%.*s\"", STR_ARG(path)));
}

static void normalize_schemas(struct hook_context *h, struct json *spec)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_versions = FIELD_NAME(&at_spec, STR("versions"));
    struct json *versions = json_get(spec, STR("versions"));
    for (size_t i = 0; i < json_count(versions); i++) {
        const struct field_path at_version = FIELD_INDEX(&at_versions, (int64_t) i);
        const struct field_path at_schema = FIELD_NAME(&at_version, STR("schema"));
        const struct field_path at = FIELD_NAME(&at_schema, STR("openAPIV3Schema"));
        struct json *schema = json_at(&versions->items[i], "schema", "openAPIV3Schema", NULL);
        if (schema)
            schema_normalize(h->arena, schema, &at, warn_unknown, h);
    }
}

static void set_defaults(struct hook_context *h, struct json *object)
{
    struct json *spec = json_get(object, STR("spec"));
    if (is_status_write(h)) {
        default_stored_versions(h->arena, object);
        return;
    }
    default_names(h->arena, spec);
    normalize_schemas(h, spec);
    if (json_is(spec, JSON_OBJECT) && !json_get(spec, STR("conversion"))) {
        struct json conversion = json_object();
        (void) json_set(h->arena, &conversion, STR("strategy"), json_string(STR("None")));
        (void) json_set(h->arena, spec, STR("conversion"), conversion);
    }
}

/* ---- preparing ---------------------------------------------------------------------------- */

static void begin_status(struct arena *a, struct json *object)
{
    struct json names = json_object();
    (void) json_append_member(a, &names, STR("plural"), json_string(STR("")));
    (void) json_append_member(a, &names, STR("kind"), json_string(STR("")));
    struct json status = json_object();
    (void) json_append_member(a, &status, STR("conditions"), json_null());
    (void) json_append_member(a, &status, STR("acceptedNames"), names);
    (void) json_append_member(a, &status, STR("storedVersions"), json_null());
    (void) json_set(a, object, STR("status"), status);
}

static bool has_rules(const struct json *v)
{
    if (json_count(json_get(v, STR("x-kubernetes-validations"))))
        return true;
    JSON_FOR_EACH_MEMBER (v, m)
        if (has_rules(&m->value))
            return true;
    JSON_FOR_EACH_ITEM (v, item)
        if (has_rules(item))
            return true;
    return false;
}

static void warn_of_rules(struct hook_context *h, const struct json *object)
{
    const struct json *versions = json_at(object, "spec", "versions", NULL);
    for (size_t i = 0; i < json_count(versions); i++)
        if (has_rules(json_get(&versions->items[i], STR("schema"))))
            h->warn(h, arena_printf(
                           h->arena,
                           "spec.versions[%zu].schema.openAPIV3Schema: x-kubernetes-validations "
                           "are stored and served but not enforced yet",
                           i));
}

static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    if (is_status_write(h))
        return;
    if (!old)
        begin_status(h->arena, object);
    default_stored_versions(h->arena, object);
    struct str stored = crd_storage_version(json_get(object, STR("spec")));
    const struct json *known = json_at(object, "status", "storedVersions", NULL);
    if (!stored.p || has_item(known, stored))
        return;
    /* The status is the old object's own: it is shared, so it is copied before it grows. */
    struct json status = json_clone(h->arena, json_get(object, STR("status")));
    (void) json_push(h->arena, json_get(&status, STR("storedVersions")), json_string(stored));
    (void) json_set(h->arena, object, STR("status"), status);
}

/* ---- deleting ----------------------------------------------------------------------------- */

static struct json terminating(struct hook_context *h)
{
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(h->now_us, now);
    const struct {
        const char *key;
        struct str value;
    } fields[] = {
        {"type", STR("Terminating")},
        {"status", STR("True")},
        {"lastTransitionTime", arena_str(h->arena, str_of(now))},
        {"reason", STR("InstanceDeletionPending")},
        {"message", STR("CustomResourceDefinition marked for deletion; CustomResource deletion "
                        "will begin soon")},
    };
    struct json c = json_object();
    for (size_t i = 0; i < N_ELEMENTS(fields); i++)
        (void) json_append_member(h->arena, &c, str_of(fields[i].key),
                                  json_string(fields[i].value));
    return c;
}

static struct json *ensure_array(struct arena *a, struct json *object, struct str key)
{
    struct json *there = json_get(object, key);
    return json_is(there, JSON_ARRAY) ? there : json_set(a, object, key, json_array());
}

/* The first delete hands it to the controller, which deletes the objects before it. */
static void prepare_delete(struct hook_context *h, struct json *object)
{
    struct json *status = json_ensure_object(h->arena, object, STR("status"));
    struct json *conditions = ensure_array(h->arena, status, STR("conditions"));
    struct json *meta = json_get(object, STR("metadata"));
    (void) json_remove(meta, STR("deletionGracePeriodSeconds"));
    struct json *finalizers = ensure_array(h->arena, meta, STR("finalizers"));
    if (has_item(finalizers, STR(CLEANUP_FINALIZER)))
        return;
    (void) json_push(h->arena, finalizers, json_string(STR(CLEANUP_FINALIZER)));
    for (size_t i = 0; i < conditions->n; i++)
        if (str_is(json_get_str(&conditions->items[i], STR("type")), "Terminating"))
            json_remove_at(conditions, i--);
    (void) json_push(h->arena, conditions, terminating(h));
}

static bool must_stay(const struct json *object)
{
    return !json_str(json_at(object, "metadata", "deletionTimestamp", NULL)).n;
}

/* ---- rules -------------------------------------------------------------------------------- */

static void check_name(const struct json *object, struct causes *causes)
{
    const struct json *name = json_at(object, "metadata", "name", NULL);
    const struct json *spec = json_get(object, STR("spec"));
    struct str plural = json_str(json_at(spec, "names", "plural", NULL));
    struct str wanted = arena_printf(causes->arena, "%.*s.%.*s", STR_ARG(plural),
                                     STR_ARG(json_get_str(spec, STR("group"))));
    const struct field_path at_meta = FIELD_NAME(NULL, STR("metadata"));
    const struct field_path at = FIELD_NAME(&at_meta, STR("name"));
    if (name && !str_eq(json_str(name), wanted))
        causes_add(causes, CAUSE_INVALID, &at, name, "must be spec.names.plural+\".\"+spec.group");
}

static void check_stored_versions(const struct json *object, struct causes *causes)
{
    const struct field_path at_status = FIELD_NAME(NULL, STR("status"));
    const struct field_path at = FIELD_NAME(&at_status, STR("storedVersions"));
    const struct json nothing = json_null();
    const struct json *stored = json_at(object, "status", "storedVersions", NULL);
    const struct json *versions = json_at(object, "spec", "versions", NULL);
    if (!json_count(stored)) {
        causes_add(causes, CAUSE_INVALID, &at, stored ? stored : &nothing,
                   "must have at least one stored version");
        return;
    }
    JSON_FOR_EACH_ITEM (versions, version) {
        struct str name = json_get_str(version, STR("name"));
        if (json_get_bool(version, STR("storage"), false) && !has_item(stored, name))
            causes_add(causes, CAUSE_INVALID, &at, stored, "must have the storage version %.*s",
                       STR_ARG(name));
    }
    for (size_t i = 0; i < stored->n; i++) {
        const struct field_path here = FIELD_INDEX(&at, (int64_t) i);
        struct str name = json_str(&stored->items[i]);
        bool is_there = false;
        JSON_FOR_EACH_ITEM (versions, version)
            is_there |= str_eq(json_get_str(version, STR("name")), name);
        if (!is_there)
            causes_add(
                causes, CAUSE_INVALID, &here, &stored->items[i],
                "missing from spec.versions; %.*s was previously a storage version, and must "
                "remain "
                "in spec.versions until a storage migration ensures no data remains persisted in "
                "%.*s and removes %.*s from status.storedVersions",
                STR_ARG(name), STR_ARG(name), STR_ARG(name));
    }
}

enum approval { APPROVAL_MISSING, APPROVAL_INVALID, APPROVAL_GIVEN };

static enum approval approval_of(const struct json *object)
{
    struct str text = json_str(json_at(object, "metadata", "annotations", APPROVAL, NULL));
    if (!text.n)
        return APPROVAL_MISSING;
    bool is_url = str_find_str(text, STR("://")) > 0;
    return is_url || str_starts_with(text, STR("unapproved")) ? APPROVAL_GIVEN : APPROVAL_INVALID;
}

/* The groups of the Kubernetes community are not for everybody. */
static void check_approval(const struct json *old, const struct json *object, struct causes *causes)
{
    struct str group = json_str(json_at(object, "spec", "group", NULL));
    bool is_protected = str_is(group, "k8s.io") || str_is(group, "kubernetes.io") ||
                        str_ends_with(group, STR(".k8s.io")) ||
                        str_ends_with(group, STR(".kubernetes.io"));
    enum approval now = approval_of(object);
    if (!is_protected || now == APPROVAL_GIVEN || (old && approval_of(old) == now))
        return;
    const struct field_path at_meta = FIELD_NAME(NULL, STR("metadata"));
    const struct field_path at_annotations = FIELD_NAME(&at_meta, STR("annotations"));
    const struct field_path at = FIELD_KEY(&at_annotations, STR(APPROVAL));
    if (now == APPROVAL_MISSING)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL,
                   "protected groups must have approval annotation \"" APPROVAL
                   "\", " APPROVAL_SEE);
    else
        causes_add(causes, CAUSE_INVALID, &at,
                   json_at(object, "metadata", "annotations", APPROVAL, NULL),
                   "protected groups must have approval annotation \"" APPROVAL
                   "\" with either a URL or a reason starting with \"unapproved\", " APPROVAL_SEE);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at_status = FIELD_NAME(NULL, STR("status"));
    const struct field_path at_names = FIELD_NAME(&at_status, STR("acceptedNames"));
    crd_check_names(json_at(object, "status", "acceptedNames", NULL), /* is_spec= */ false,
                    &at_names, causes);
    if (is_status_write(h))
        return;
    if (h->operation == WRITE_CREATE) {
        check_name(object, causes);
        check_approval(NULL, object, causes);
    }
    crd_check_spec(json_get(object, STR("spec")), causes);
    check_stored_versions(object, causes);
    if (causes->n == 0)
        warn_of_rules(h, object);
}

static bool is_established(const struct json *crd)
{
    JSON_FOR_EACH_ITEM (json_at(crd, "status", "conditions", NULL), condition)
        if (str_is(json_get_str(condition, STR("type")), "Established"))
            return str_is(json_get_str(condition, STR("status")), "True");
    return false;
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    if (is_status_write(h))
        return;
    const struct json *was = json_get(old, STR("spec")), *spec = json_get(object, STR("spec"));
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_names = FIELD_NAME(&at_spec, STR("names"));
    if (is_established(old)) {
        object_meta_check_immutable(causes, &FIELD_NAME(&at_spec, STR("scope")),
                                    json_get(was, STR("scope")), json_get(spec, STR("scope")));
        object_meta_check_immutable(causes, &FIELD_NAME(&at_names, STR("kind")),
                                    json_at(was, "names", "kind", NULL),
                                    json_at(spec, "names", "kind", NULL));
    }
    object_meta_check_immutable(causes, &FIELD_NAME(&at_spec, STR("group")),
                                json_get(was, STR("group")), json_get(spec, STR("group")));
    object_meta_check_immutable(causes, &FIELD_NAME(&at_names, STR("plural")),
                                json_at(was, "names", "plural", NULL),
                                json_at(spec, "names", "plural", NULL));
    check_approval(old, object, causes);
}

const struct kind_hooks customresourcedefinition_hooks = {
    .group = STR("apiextensions.k8s.io"),
    .plural = STR("customresourcedefinitions"),
    .set_defaults = set_defaults,
    .prepare = prepare,
    .validate = validate,
    .validate_update = validate_update,
    .prepare_delete = prepare_delete,
    .must_stay = must_stay,
    .needs_revision = true,
};
