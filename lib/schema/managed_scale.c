/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/managed_internal.h"

#define SCALE_API_VERSION "autoscaling/v1"

static struct fieldset *one_path(struct arena *a, struct str path)
{
    struct fieldset *set = fieldset_new(a);
    fieldset_add_path(a, set, path);
    return set;
}

static bool has_all(struct managed_list *list, struct managed_entry *e, const struct fieldset *set)
{
    return fieldset_is_empty(fieldset_difference(list->arena, set, managed_set(list, e)));
}

/* The same manager in the other object: of the appliers' kind of identity, without the version. */
static struct managed_entry *counterpart(struct managed_list *list, const struct managed_entry *of)
{
    for (size_t i = 0; i < list->n; i++) {
        struct managed_entry *e = &list->entries[i];
        if (e->is_apply == of->is_apply && str_eq(e->manager, of->manager) &&
            str_eq(e->subresource, of->subresource))
            return e;
    }
    return NULL;
}

static void read_or_empty(struct arena *a, const struct json *managed, struct managed_list *ret)
{
    if (managed_read(a, managed, /* is_canonical= */ true, ret) < 0)
        *ret = (struct managed_list){.arena = a};
}

struct json managed_to_scale(struct arena *a, const struct json *parent_managed,
                             struct str replicas_path)
{
    struct managed_list parent, scale = {.arena = a};
    struct fieldset *replicas = one_path(a, replicas_path);
    read_or_empty(a, parent_managed, &parent);
    for (size_t i = 0; i < parent.n; i++) {
        struct managed_entry e = parent.entries[i];
        if (!has_all(&parent, &parent.entries[i], replicas) || counterpart(&scale, &e))
            continue;
        e.api_version = STR(SCALE_API_VERSION);
        managed_set_fields(&e, one_path(a, STR("spec.replicas")));
        managed_add(&scale, e);
    }
    return managed_write(&scale);
}

struct json managed_from_scale(struct arena *a, const struct json *parent_managed,
                               const struct json *scale_managed, struct str replicas_path,
                               struct str api_version)
{
    struct managed_list parent, scale;
    const struct fieldset *replicas = one_path(a, replicas_path);
    const struct fieldset *in_scale = one_path(a, STR("spec.replicas"));
    read_or_empty(a, parent_managed, &parent);
    read_or_empty(a, scale_managed, &scale);
    for (size_t i = parent.n; i-- > 0;) {
        struct managed_entry *e = &parent.entries[i], *kept = NULL;
        if (!has_all(&parent, e, replicas))
            continue;
        kept = counterpart(&scale, e);
        if (kept) {
            managed_remove(&scale, kept);
            continue;
        }
        managed_set_fields(e, fieldset_difference(a, managed_set(&parent, e), replicas));
        if (fieldset_is_empty(e->set))
            managed_remove(&parent, e);
    }
    /* What is left was written through the Scale just now; Kubernetes gives it no time. */
    for (size_t i = 0; i < scale.n; i++) {
        struct managed_entry e = scale.entries[i];
        if (!has_all(&scale, &scale.entries[i], in_scale))
            continue;
        e.api_version = api_version;
        e.time = STR_NONE;
        managed_set_fields(&e, one_path(a, replicas_path));
        managed_add(&parent, e);
    }
    return managed_write(&parent);
}
