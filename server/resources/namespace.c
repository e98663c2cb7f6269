/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/resources.h"

#define LABEL_NAME "kubernetes.io/metadata.name"
#define FINALIZER_KUBERNETES "kubernetes"

/* ---- preparing ---------------------------------------------------------------------------- */

static void set_label(struct arena *a, struct json *object)
{
    struct json *meta = json_ensure_object(a, object, STR("metadata"));
    const struct str name = json_get_str(meta, STR("name"));
    if (name.n == 0)
        return;
    struct json *labels = json_ensure_object(a, meta, STR("labels"));
    (void) json_set(a, labels, STR(LABEL_NAME), json_string(name));
    json_sort_members(labels);
}

static void set_defaults(struct hook_context *h, struct json *object)
{
    set_label(h->arena, object);
}

static void begin(struct arena *a, struct json *object)
{
    struct json *spec = json_ensure_object(a, object, STR("spec"));
    struct json *finalizers = json_get(spec, STR("finalizers"));
    if (!json_is(finalizers, JSON_ARRAY))
        finalizers = json_set(a, spec, STR("finalizers"), json_array());
    if (!list_has(finalizers, STR(FINALIZER_KUBERNETES)))
        (void) json_push(a, finalizers, json_string(STR(FINALIZER_KUBERNETES)));
    struct json status = json_object();
    (void) json_append_member(a, &status, STR("phase"), json_string(STR("Active")));
    (void) json_set(a, object, STR("status"), status);
}

/* The label may not have been known when defaults were set: the name could still be generated then.
 */
static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    set_label(h->arena, object);
    if (!old) {
        begin(h->arena, object);
        return;
    }
    const bool may_finalize = str_is(h->subresource, "finalize");
    const struct json *kept = json_get(old, may_finalize ? STR("status") : STR("spec"));
    (void) json_set(h->arena, object, may_finalize ? STR("status") : STR("spec"),
                    kept ? *kept : json_object());
}

static void prepare_delete(struct hook_context *h, struct json *object)
{
    struct json *status = json_ensure_object(h->arena, object, STR("status"));
    (void) json_set(h->arena, status, STR("phase"), json_string(STR("Terminating")));
    /* Marked by its own storage in kube-apiserver, which knows no grace. */
    (void) json_remove(json_get(object, STR("metadata")), STR("deletionGracePeriodSeconds"));
}

/* ---- rules -------------------------------------------------------------------------------- */

static struct name_errors check_name(struct arena *a, struct str name, bool is_prefix)
{
    return name_label(a, object_meta_mask_prefix(a, name, is_prefix));
}

static void check_finalizer(struct causes *causes, const struct field_path *at, struct str name)
{
    static const char *const standard[] = {FINALIZER_KUBERNETES, "orphan", "foregroundDeletion"};
    const struct json value = shown(name);
    const struct name_errors errors = name_qualified(causes->arena, name);
    object_meta_add_errors(causes, at, name, &errors);
    bool is_known = str_find(name, '/') >= 0;
    for (size_t i = 0; i < N_ELEMENTS(standard); i++)
        is_known |= str_is(name, standard[i]);
    if (!is_known)
        causes_add(causes, CAUSE_INVALID, at, &value,
                   "name is neither a standard finalizer name nor is it fully qualified");
}

/* A create names the list, the finalize subresource the item. */
static void check_finalizers(struct hook_context *h, const struct json *object,
                             struct causes *causes)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at = FIELD_NAME(&at_spec, STR("finalizers"));
    const struct json *finalizers = json_at(object, "spec", "finalizers", NULL);
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (finalizers, item) {
        const struct field_path at_item = FIELD_INDEX(&at, i++);
        check_finalizer(causes, h->operation == WRITE_CREATE ? &at : &at_item, json_str(item));
    }
}

static void check_phase(const struct json *object, struct causes *causes)
{
    const struct field_path at_status = FIELD_NAME(NULL, STR("status"));
    const struct field_path at = FIELD_NAME(&at_status, STR("Phase"));
    const struct json *when = json_at(object, "metadata", "deletionTimestamp", NULL);
    const struct json phase = shown(json_str(json_at(object, "status", "phase", NULL)));
    const bool is_deleting = when && when->type != JSON_NULL;
    if (!is_deleting && !str_is(json_str(&phase), "Active"))
        causes_add(causes, CAUSE_INVALID, &at, &phase,
                   "may only be 'Active' if `deletionTimestamp` is empty");
    if (is_deleting && !str_is(json_str(&phase), "Terminating"))
        causes_add(causes, CAUSE_INVALID, &at, &phase,
                   "may only be 'Terminating' if `deletionTimestamp` is not empty");
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    if (h->operation == WRITE_CREATE || str_is(h->subresource, "finalize"))
        check_finalizers(h, object, causes);
    if (str_is(h->subresource, "status"))
        check_phase(object, causes);
}

static struct str check_delete(struct hook_context *h, const struct json *object)
{
    static const char *const immortal[] = {"default", "kube-system", "kube-public"};
    (void) h;
    const struct str name = json_str(json_at(object, "metadata", "name", NULL));
    for (size_t i = 0; i < N_ELEMENTS(immortal); i++)
        if (str_is(name, immortal[i]))
            return STR("this namespace may not be deleted");
    return STR_NONE;
}

static bool must_stay(const struct json *object)
{
    return json_count(json_at(object, "spec", "finalizers", NULL)) > 0;
}

const struct kind_hooks namespace_hooks = {
    .group = STR(""),
    .plural = STR("namespaces"),
    .set_defaults = set_defaults,
    .prepare = prepare,
    .validate = validate,
    .check_name = check_name,
    .check_delete = check_delete,
    .prepare_delete = prepare_delete,
    .must_stay = must_stay,
};
