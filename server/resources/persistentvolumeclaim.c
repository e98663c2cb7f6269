/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/eve_references.h"
#include "resources/go_struct.h"
#include "resources/resources.h"
#include "resources/volume.h"

#define FINALIZER "kubernetes.io/pvc-protection"
#define ANNOTATION_CLASS "volume.beta.kubernetes.io/storage-class"

/* ---- preparing ---------------------------------------------------------------------------- */

/* Only these were ever possible in dataSource; anything else belongs into dataSourceRef. */
static bool is_old_source(const struct json *source)
{
    const struct str group = json_get_str(source, STR("apiGroup")),
                     kind = json_get_str(source, STR("kind"));
    return (group.n == 0 && str_is(kind, "PersistentVolumeClaim")) ||
           (str_is(group, "snapshot.storage.k8s.io") && str_is(kind, "VolumeSnapshot"));
}

/* The same reference in both fields, whichever was given. */
static void copy_source(struct arena *a, struct json *spec, struct str from, struct str to)
{
    static const char *const members[] = {"apiGroup", "kind", "name"};
    const struct json *source = json_get(spec, from);
    if (!json_is(source, JSON_OBJECT) || json_is(json_get(spec, to), JSON_OBJECT))
        return;
    struct json copy = json_object();
    for (size_t i = 0; i < N_ELEMENTS(members); i++) {
        const struct json *v = json_get(source, str_of(members[i]));
        if (v)
            (void) json_append_member(a, &copy, str_of(members[i]), *v);
    }
    (void) json_set(a, spec, to, copy);
}

static void normalize_sources(struct arena *a, const struct json *old_spec, struct json *spec)
{
    struct json *reference = json_get(spec, STR("dataSourceRef"));
    if (json_is(reference, JSON_OBJECT))
        (void) json_remove(reference, STR("namespace"));
    const bool had_source =
        json_get(old_spec, STR("dataSource")) || json_get(old_spec, STR("dataSourceRef"));
    if (!had_source && json_get(spec, STR("dataSource")) &&
        !is_old_source(json_get(spec, STR("dataSource"))))
        (void) json_remove(spec, STR("dataSource"));
    copy_source(a, spec, STR("dataSourceRef"), STR("dataSource"));
    copy_source(a, spec, STR("dataSource"), STR("dataSourceRef"));
}

/* `group: eve.lfedge.org/v1beta1`, `kind: image`: the same in other words. */
static void set_defaults(struct hook_context *h, struct json *object)
{
    struct json *source = json_at(object, "spec", "dataSourceRef", NULL);
    const bool is_image = eve_source_image(source).n > 0;
    if (!json_is(source, JSON_OBJECT))
        return;
    (void) json_remove(source, STR("group"));
    if (!is_image)
        return;
    (void) json_set(h->arena, source, STR("apiGroup"), json_string(STR("eve.lfedge.org")));
    (void) json_set(h->arena, source, STR("kind"), json_string(STR("Image")));
}

static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    if (str_is(h->subresource, "status"))
        return;
    struct json *spec = json_ensure_object(h->arena, object, STR("spec"));
    normalize_sources(h->arena, json_get(old, STR("spec")), spec);
    if (old)
        return;
    struct json status = json_object();
    (void) json_append_member(h->arena, &status, STR("phase"), json_string(STR("Pending")));
    (void) json_set(h->arena, object, STR("status"), status);
    volume_add_finalizer(h->arena, object, STR(FINALIZER));
}

/* ---- rules -------------------------------------------------------------------------------- */

static void check_modes(struct causes *causes, const struct field_path *at_spec,
                        const struct json *modes)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("accessModes"));
    if (json_count(modes) == 0)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "at least 1 access mode is required");
    volume_check_modes(causes, &at, modes);
}

static void check_storage(struct causes *causes, const struct field_path *at_spec,
                          const struct json *spec)
{
    const struct field_path at_resources = FIELD_NAME(at_spec, STR("resources"));
    const struct field_path at = FIELD_KEY(&at_resources, STR("storage"));
    const struct json *storage = json_at(spec, "resources", "requests", "storage", NULL);
    if (!storage)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
    else
        check_positive(causes, &at, storage);
}

static void check_source(struct causes *causes, const struct field_path *at_spec,
                         const struct json *spec, const char *member)
{
    const struct field_path at = FIELD_NAME(at_spec, str_of(member));
    const struct json *source = json_get(spec, str_of(member));
    const struct str group = json_get_str(source, STR("apiGroup"));
    const struct json kind = shown(json_get_str(source, STR("kind")));
    if (!json_is(source, JSON_OBJECT))
        return;
    check_required(causes, &at, source, STR("name"));
    check_required(causes, &at, source, STR("kind"));
    if (group.n == 0 && !str_is(json_str(&kind), "PersistentVolumeClaim"))
        causes_add(causes, CAUSE_INVALID, &at, &kind,
                   "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    if (group.n > 0) {
        const struct name_errors errors = name_subdomain(causes->arena, group);
        object_meta_add_errors(causes, &FIELD_NAME(&at, STR("apiGroup")), group, &errors);
    }
}

static void check_sources(struct causes *causes, const struct field_path *at,
                          const struct json *spec)
{
    static const char *const members[] = {"apiGroup", "kind", "name"};
    const struct json *source = json_get(spec, STR("dataSource")),
                      *reference = json_get(spec, STR("dataSourceRef"));
    const struct json shown_path = json_object();
    check_source(causes, at, spec, "dataSource");
    check_source(causes, at, spec, "dataSourceRef");
    if (!json_is(source, JSON_OBJECT) || !json_is(reference, JSON_OBJECT))
        return;
    for (size_t i = 0; i < N_ELEMENTS(members); i++)
        if (!same_member(source, reference, str_of(members[i]))) {
            causes_add(causes, CAUSE_INVALID, at, &shown_path, "must match dataSourceRef");
            return;
        }
}

static void check_class(struct causes *causes, const struct field_path *at, const struct json *spec,
                        struct str member)
{
    const struct str name = json_get_str(spec, member);
    if (name.n == 0)
        return;
    const struct name_errors errors = name_subdomain(causes->arena, name);
    object_meta_add_errors(causes, &FIELD_NAME(at, member), name, &errors);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct json *spec = json_get(object, STR("spec"));
    if (str_is(h->subresource, "status"))
        return;
    check_modes(causes, &at, json_get(spec, STR("accessModes")));
    check_label_selector(causes, &FIELD_NAME(&at, STR("selector")),
                         json_get(spec, STR("selector")));
    check_storage(causes, &at, spec);
    check_class(causes, &at, spec, STR("storageClassName"));
    volume_check_volume_mode(causes, &at, spec);
    check_sources(causes, &at, spec);
    check_class(causes, &at, spec, STR("volumeAttributesClassName"));
}

/* ---- changes ------------------------------------------------------------------------------ */

static void set_or_remove(struct arena *a, struct json *object, struct str member,
                          const struct json *value)
{
    if (value)
        (void) json_set(a, object, member, *value);
    else
        (void) json_remove(object, member);
}

/* The server itself gives a claim another volume when the device with the first is gone. */
static bool may_rebind(const struct hook_context *h)
{
    return h->user && str_is(h->user->name, "system:apiserver");
}

/* Makes in `spec` the changes that are allowed undone, and in `old_spec` those that may happen once
 * done. */
static void forgive(struct hook_context *h, const struct json *object, struct json *old_spec,
                    struct json *spec)
{
    struct arena *a = h->arena;
    const bool is_bound = str_is(json_str(json_at(object, "status", "phase", NULL)), "Bound");
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    const struct json *annotated = json_get(annotations, STR(ANNOTATION_CLASS));
    const struct json *class = json_get(spec, STR("storageClassName"));
    if (json_get_str(old_spec, STR("volumeName")).n == 0 || may_rebind(h))
        set_or_remove(a, old_spec, STR("volumeName"), json_get(spec, STR("volumeName")));
    if (class && !json_get(old_spec, STR("storageClassName")) &&
        (!annotated || str_eq(json_str(annotated), json_str(class))))
        (void) json_remove(spec, STR("storageClassName"));
    struct json *requests = json_at(spec, "resources", "requests", NULL);
    if (is_bound && json_is(requests, JSON_OBJECT))
        set_or_remove(a, requests, STR("storage"),
                      json_at(old_spec, "resources", "requests", "storage", NULL));
    set_or_remove(a, spec, STR("volumeAttributesClassName"),
                  json_get(old_spec, STR("volumeAttributesClassName")));
}

static void check_spec(struct hook_context *h, const struct json *old, const struct json *object,
                       struct causes *causes)
{
    const struct schema *schema = schema_member(h->kind->schema, STR("spec"));
    struct json before = json_clone(h->arena, json_get(old, STR("spec")));
    struct json after = json_clone(h->arena, json_get(object, STR("spec")));
    forgive(h, object, &before, &after);
    const struct json x = go_struct_of(h->arena, schema, &before, STR("")),
                      y = go_struct_of(h->arena, schema, &after, STR(""));
    if (json_equal(&x, &y))
        return;
    causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, STR("spec")), NULL,
               "spec is immutable after creation except resources.requests and "
               "volumeAttributesClassName for bound "
               "claims\n%.*s",
               STR_ARG(go_struct_diff(h->arena, &x, &y)));
}

/* A claim may shrink again only down to what it already has. */
static void check_shrink(const struct json *old, const struct json *object, struct causes *causes)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_resources = FIELD_NAME(&at_spec, STR("resources"));
    const struct field_path at_requests = FIELD_NAME(&at_resources, STR("requests"));
    const struct quantity before =
        check_quantity(json_at(old, "spec", "resources", "requests", "storage", NULL));
    const struct quantity after =
        check_quantity(json_at(object, "spec", "resources", "requests", "storage", NULL));
    const struct quantity actual =
        check_quantity(json_at(old, "status", "capacity", "storage", NULL));
    if (quantity_compare(&after, &before) < 0 && quantity_compare(&after, &actual) <= 0)
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(&at_requests, STR("storage")), NULL,
                   "field can not be less than status.capacity");
}

static void check_attributes_class(const struct json *old, const struct json *object,
                                   struct causes *causes)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at = FIELD_NAME(&at_spec, STR("volumeAttributesClassName"));
    const struct json *before = json_at(old, "spec", "volumeAttributesClassName", NULL);
    const struct json *after = json_at(object, "spec", "volumeAttributesClassName", NULL);
    if (!before || (after && str_eq(json_str(before), json_str(after))))
        return;
    if (!after)
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "update from non-nil value to nil is forbidden");
    else if (after->n == 0)
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "update from non-nil value to an empty string is forbidden");
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    if (str_is(h->subresource, "status"))
        return;
    check_spec(h, old, object, causes);
    check_shrink(old, object, causes);
    object_meta_check_immutable(causes, &FIELD_NAME(NULL, STR("volumeMode")),
                                json_at(old, "spec", "volumeMode", NULL),
                                json_at(object, "spec", "volumeMode", NULL));
    check_attributes_class(old, object, causes);
}

static void refer(struct reference_list *l, const struct json *object)
{
    eve_refer_claim_spec(l, &FIELD_NAME(NULL, STR("spec")), eve_namespace_of(object),
                         json_get(object, STR("spec")), /* is_ours= */ false);
}

const struct kind_hooks persistentvolumeclaim_hooks = {
    .group = STR(""),
    .plural = STR("persistentvolumeclaims"),
    .set_defaults = set_defaults,
    .prepare = prepare,
    .validate = validate,
    .validate_update = validate_update,
    .returns_deleted = true,
    .refer = refer,
    .has_users = true,
};
