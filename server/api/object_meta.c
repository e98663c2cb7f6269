/* SPDX-License-Identifier: Apache-2.0 */
#include "api/object_meta.h"

#include <ctype.h>
#include <stdlib.h>

#define ANNOTATIONS_MAX_BYTES (256 * 1024)
#define MANAGER_MAX_BYTES 128
#define SUBRESOURCE_MAX_BYTES 256
#define FINALIZER_ORPHAN "orphan"
#define FINALIZER_FOREGROUND "foregroundDeletion"

/* ---- shared ------------------------------------------------------------------------------- */

struct str object_meta_mask_prefix(struct arena *a, struct str name, bool is_prefix)
{
    if (!is_prefix || name.n < 2 || name.p[name.n - 1] != '-')
        return name;
    return arena_printf(a, "%.*sa", STR_ARG(str_sub(name, 0, name.n - 2)));
}

void object_meta_add_errors(struct causes *causes, const struct field_path *at, struct str value,
                            const struct name_errors *errors)
{
    const struct json shown = json_string(value);
    for (size_t i = 0; i < errors->n; i++)
        causes_add(causes, CAUSE_INVALID, at, &shown, "%.*s", STR_ARG(errors->text[i]));
}

void object_meta_check_immutable(struct causes *causes, const struct field_path *at,
                                 const struct json *old, const struct json *value)
{
    const struct json nothing = json_null();
    if (!old)
        old = &nothing;
    if (!value)
        value = &nothing;
    if (!json_equal(old, value))
        causes_add(causes, CAUSE_INVALID, at, value, "field is immutable");
}

/* ---- names -------------------------------------------------------------------------------- */

static struct name_errors check_name(struct hook_context *h, struct str name, bool is_prefix)
{
    const struct kind_hooks *hooks = h->kind->hooks;
    if (hooks && hooks->check_name)
        return hooks->check_name(h->arena, name, is_prefix);
    return name_subdomain(h->arena, object_meta_mask_prefix(h->arena, name, is_prefix));
}

static void validate_names(struct hook_context *h, const struct json *meta,
                           const struct field_path *at, struct causes *causes)
{
    const struct field_path at_name = FIELD_NAME(at, STR("name"));
    const struct field_path at_prefix = FIELD_NAME(at, STR("generateName"));
    const struct str name = json_get_str(meta, STR("name"));
    const struct str prefix = json_get_str(meta, STR("generateName"));
    if (prefix.n > 0) {
        const struct name_errors errors = check_name(h, prefix, true);
        object_meta_add_errors(causes, &at_prefix, prefix, &errors);
    }
    if (name.n == 0) {
        causes_add(causes, CAUSE_REQUIRED, &at_name, NULL, "name or generateName is required");
    } else {
        const struct name_errors errors = check_name(h, name, false);
        object_meta_add_errors(causes, &at_name, name, &errors);
    }
}

static void validate_namespace(struct hook_context *h, const struct json *meta,
                               const struct field_path *at, struct causes *causes)
{
    const struct field_path at_namespace = FIELD_NAME(at, STR("namespace"));
    const struct str name = json_get_str(meta, STR("namespace"));
    if (!h->kind->is_namespaced) {
        if (name.n > 0)
            causes_add(causes, CAUSE_FORBIDDEN, &at_namespace, NULL, "not allowed on this type");
        return;
    }
    if (name.n == 0) {
        causes_add(causes, CAUSE_REQUIRED, &at_namespace, NULL, "%s", "");
        return;
    }
    const struct name_errors errors = name_label(h->arena, name);
    object_meta_add_errors(causes, &at_namespace, name, &errors);
}

/* ---- labels and annotations --------------------------------------------------------------- */

static void validate_labels(struct arena *a, const struct json *labels, const struct field_path *at,
                            struct causes *causes)
{
    const struct field_path at_labels = FIELD_NAME(at, STR("labels"));
    JSON_FOR_EACH_MEMBER (labels, m) {
        const struct str key = json_str(&m->key), value = json_str(&m->value);
        const struct name_errors key_errors = name_qualified(a, key);
        object_meta_add_errors(causes, &at_labels, key, &key_errors);
        const struct name_errors value_errors = name_label_value(a, value);
        object_meta_add_errors(causes, &at_labels, value, &value_errors);
    }
}

static struct str lower_case(struct arena *a, struct str s)
{
    char *copy = arena_strz(a, s);
    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char) tolower((unsigned char) copy[i]);
    return str_range(copy, s.n);
}

static void validate_annotations(struct arena *a, const struct json *annotations,
                                 const struct field_path *at, struct causes *causes)
{
    const struct field_path at_annotations = FIELD_NAME(at, STR("annotations"));
    size_t n_bytes = 0;
    JSON_FOR_EACH_MEMBER (annotations, m) {
        const struct str key = json_str(&m->key);
        const struct name_errors errors = name_qualified(a, lower_case(a, key));
        object_meta_add_errors(causes, &at_annotations, key, &errors);
        n_bytes += key.n + json_str(&m->value).n;
    }
    if (n_bytes > ANNOTATIONS_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at_annotations, NULL, "may not be more than %d bytes",
                   ANNOTATIONS_MAX_BYTES);
}

/* ---- owners ------------------------------------------------------------------------------- */

/* The version of "v1" or "group/v1"; "" when there are more slashes. */
static struct str version_of(struct str api_version)
{
    const ptrdiff_t slash = str_find(api_version, '/');
    if (slash < 0)
        return api_version;
    const struct str version = str_from(api_version, (size_t) slash + 1);
    return str_find(version, '/') < 0 ? version : STR("");
}

static void require_member(const struct json *owner, struct str name, const struct field_path *at,
                           struct causes *causes)
{
    const struct field_path at_member = FIELD_NAME(at, name);
    const struct json empty = json_string(STR(""));
    if (json_get_str(owner, name).n == 0)
        causes_add(causes, CAUSE_INVALID, &at_member, &empty, "must not be empty");
}

static void validate_owner(const struct json *owner, const struct field_path *at,
                           struct causes *causes)
{
    const struct str api_version = json_get_str(owner, STR("apiVersion"));
    const struct str kind = json_get_str(owner, STR("kind"));
    const struct field_path at_version = FIELD_NAME(at, STR("apiVersion"));
    const struct json shown = json_string(api_version.p ? api_version : STR(""));
    if (version_of(api_version).n == 0)
        causes_add(causes, CAUSE_INVALID, &at_version, &shown, "version must not be empty");
    require_member(owner, STR("kind"), at, causes);
    require_member(owner, STR("name"), at, causes);
    require_member(owner, STR("uid"), at, causes);
    if (str_is(api_version, "v1") && str_is(kind, "Event"))
        causes_add(causes, CAUSE_INVALID, at, owner,
                   "/v1, Kind=Event is disallowed from being an owner");
}

static void validate_owners(const struct json *owners, const struct field_path *at,
                            struct causes *causes)
{
    const struct field_path at_owners = FIELD_NAME(at, STR("ownerReferences"));
    const struct json *controller = NULL;
    JSON_FOR_EACH_ITEM (owners, owner) {
        validate_owner(owner, &at_owners, causes);
        if (!json_get_bool(owner, STR("controller"), false))
            continue;
        if (controller)
            causes_add(causes, CAUSE_INVALID, &at_owners, owners,
                       "Only one reference can have Controller set to true. Found \"true\" in "
                       "references for "
                       "%.*s/%.*s and %.*s/%.*s",
                       STR_ARG(json_get_str(controller, STR("kind"))),
                       STR_ARG(json_get_str(controller, STR("name"))),
                       STR_ARG(json_get_str(owner, STR("kind"))),
                       STR_ARG(json_get_str(owner, STR("name"))));
        else
            controller = owner;
    }
}

/* ---- finalizers --------------------------------------------------------------------------- */

static bool has_string(const struct json *list, struct str wanted)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_str(item), wanted))
            return true;
    return false;
}

static void validate_finalizers(struct arena *a, const struct json *finalizers,
                                const struct field_path *at, struct causes *causes)
{
    const struct field_path at_finalizers = FIELD_NAME(at, STR("finalizers"));
    JSON_FOR_EACH_ITEM (finalizers, item) {
        const struct name_errors errors = name_qualified(a, json_str(item));
        object_meta_add_errors(causes, &at_finalizers, json_str(item), &errors);
    }
    if (has_string(finalizers, STR(FINALIZER_ORPHAN)) &&
        has_string(finalizers, STR(FINALIZER_FOREGROUND)))
        causes_add(causes, CAUSE_INVALID, &at_finalizers, finalizers,
                   "finalizer " FINALIZER_ORPHAN " and " FINALIZER_FOREGROUND
                   " cannot be both set");
}

static int compare_strings(const void *a, const void *b)
{
    return str_cmp(*(const struct str *) a, *(const struct str *) b);
}

/* Go's %#v of a sorted list of strings. */
static struct str go_strings(struct arena *a, struct str *list, size_t n)
{
    BUF_AUTO b = {0};
    qsort(list, n, sizeof(*list), compare_strings);
    buf_append_str(&b, STR("[]string{"));
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_append_str(&b, STR(", "));
        json_write_str(&b, list[i]);
    }
    buf_append_char(&b, '}');
    return arena_str(a, buf_str(&b));
}

static void check_new_finalizers(struct arena *a, const struct json *old_meta,
                                 const struct json *meta, const struct field_path *at,
                                 struct causes *causes)
{
    const struct field_path at_finalizers = FIELD_NAME(at, STR("finalizers"));
    const struct json *old = json_get(old_meta, STR("finalizers"));
    const struct json *given = json_get(meta, STR("finalizers"));
    const struct json *when = json_get(old_meta, STR("deletionTimestamp"));
    if (!when || when->type == JSON_NULL)
        return;
    struct str *extra = ARENA_ARRAY(a, struct str, json_count(given) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (given, item)
        if (!has_string(old, json_str(item)))
            extra[n++] = json_str(item);
    if (n > 0)
        causes_add(causes, CAUSE_FORBIDDEN, &at_finalizers, NULL,
                   "no new finalizers can be added if the object is being deleted, found new "
                   "finalizers %.*s",
                   STR_ARG(go_strings(a, extra, n)));
}

/* ---- managedFields ------------------------------------------------------------------------ */

static void validate_managed_entry(const struct json *entry, const struct field_path *at,
                                   struct causes *causes)
{
    const struct field_path at_operation = FIELD_NAME(at, STR("operation"));
    const struct field_path at_type = FIELD_NAME(at, STR("fieldsType"));
    const struct field_path at_manager = FIELD_NAME(at, STR("manager"));
    const struct field_path at_subresource = FIELD_NAME(at, STR("subresource"));
    const struct str operation = json_get_str(entry, STR("operation"));
    const struct str type = json_get_str(entry, STR("fieldsType"));
    const struct json shown_operation = json_string(operation.p ? operation : STR(""));
    const struct json shown_type = json_string(type.p ? type : STR(""));
    if (!str_is(operation, "Apply") && !str_is(operation, "Update"))
        causes_add(causes, CAUSE_INVALID, &at_operation, &shown_operation,
                   "must be `Apply` or `Update`");
    if (type.n > 0 && !str_is(type, "FieldsV1"))
        causes_add(causes, CAUSE_INVALID, &at_type, &shown_type, "must be `FieldsV1`");
    if (json_get_str(entry, STR("manager")).n > MANAGER_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at_manager, NULL, "may not be more than %d bytes",
                   MANAGER_MAX_BYTES);
    if (json_get_str(entry, STR("subresource")).n > SUBRESOURCE_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at_subresource, NULL, "may not be more than %d bytes",
                   SUBRESOURCE_MAX_BYTES);
}

static void validate_managed(const struct json *managed, const struct field_path *at,
                             struct causes *causes)
{
    const struct field_path at_managed = FIELD_NAME(at, STR("managedFields"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (managed, entry) {
        const struct field_path at_entry = FIELD_INDEX(&at_managed, i++);
        validate_managed_entry(entry, &at_entry, causes);
    }
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void validate_rest(struct hook_context *h, const struct json *meta,
                          const struct field_path *at, struct causes *causes)
{
    validate_labels(h->arena, json_get(meta, STR("labels")), at, causes);
    validate_annotations(h->arena, json_get(meta, STR("annotations")), at, causes);
    validate_owners(json_get(meta, STR("ownerReferences")), at, causes);
    validate_finalizers(h->arena, json_get(meta, STR("finalizers")), at, causes);
    validate_managed(json_get(meta, STR("managedFields")), at, causes);
}

void object_meta_validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("metadata"));
    const struct json *meta = json_get(object, STR("metadata"));
    if (h->operation == WRITE_UPDATE)
        return;
    validate_names(h, meta, &at, causes);
    validate_namespace(h, meta, &at, causes);
    validate_rest(h, meta, &at, causes);
}

static void validate_update_once(struct hook_context *h, const struct json *old,
                                 const struct json *object, struct causes *causes)
{
    static const char *const immutable[] = {"name",
                                            "namespace",
                                            "uid",
                                            "creationTimestamp",
                                            "deletionTimestamp",
                                            "deletionGracePeriodSeconds"};
    const struct field_path at = FIELD_NAME(NULL, STR("metadata"));
    const struct json *old_meta = json_get(old, STR("metadata"));
    const struct json *meta = json_get(object, STR("metadata"));
    check_new_finalizers(h->arena, old_meta, meta, &at, causes);
    for (size_t i = 0; i < N_ELEMENTS(immutable); i++) {
        const struct str name = str_of(immutable[i]);
        const struct field_path at_member = FIELD_NAME(&at, name);
        object_meta_check_immutable(causes, &at_member, json_get(old_meta, name),
                                    json_get(meta, name));
    }
    validate_rest(h, meta, &at, causes);
}

void object_meta_validate_update(struct hook_context *h, const struct json *old,
                                 const struct json *object, struct causes *causes)
{
    size_t n_before = causes->n;
    validate_update_once(h, old, object, causes);
    if (causes->n > n_before && (!h->kind->hooks || !h->kind->hooks->judges_meta_once))
        validate_update_once(h, old, object, causes);
}
