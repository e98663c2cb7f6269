/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "schema/schema_internal.h"

/* Unknown fields in the order of the walk. */
struct unknown_list {
    struct unknown_field *first, **last;
    size_t n;
};

struct pruning {
    struct arena *arena;
    bool lists;     /* the caller wants to know */
    size_t n_bytes; /* of the paths listed */
    struct unknown_list meta, fields, embedded_meta;
};

static void note(struct pruning *p, struct unknown_list *list, const struct field_path *at,
                 struct str name)
{
    if (!p->lists || list->n >= SCHEMA_MAX_UNKNOWN || p->n_bytes > SCHEMA_MAX_UNKNOWN_BYTES)
        return;
    struct field_path here = FIELD_NAME(at, name);
    struct unknown_field *u = ARENA_NEW(p->arena, struct unknown_field);
    u->path = schema_path_text(p->arena, &here);
    list->n++;
    p->n_bytes += u->path.n;
    *(list->last ? list->last : &list->first) = u;
    list->last = &u->next;
}

static int compare_unknown(const void *a, const void *b)
{
    const struct unknown_field *const *x = a, *const *y = b;
    return str_cmp((*x)->path, (*y)->path);
}

/* Links the list, sorted, behind *end; returns the new end. */
static struct unknown_field **append_sorted(struct arena *a, struct unknown_list *list,
                                            struct unknown_field **end)
{
    size_t n = list->n;
    struct unknown_field **all = ARENA_ARRAY(a, struct unknown_field *, n + 1);
    struct unknown_field *u = list->first;
    for (size_t i = 0; i < n; i++, u = u->next)
        all[i] = u;
    qsort(all, n, sizeof(struct unknown_field *), compare_unknown);
    for (size_t i = 0; i < n; i++) {
        *end = all[i];
        end = &all[i]->next;
    }
    *end = NULL;
    return end;
}

/* ---- metadata ----------------------------------------------------------------------------- */

/* Leaves of metadata what ObjectMeta has. */
static void prune_meta(struct pruning *p, const struct schema *s, struct json *value,
                       const struct field_path *at, struct unknown_list *list)
{
    if (!s || s->preserve_unknown_fields)
        return;
    if (value->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < value->n; i++) {
            struct field_path here = FIELD_INDEX(at, i);
            prune_meta(p, s->items, &value->items[i], &here, list);
        }
        return;
    }
    if (value->type != JSON_OBJECT)
        return;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member *m = &value->members[i];
        const struct schema *child = schema_member(s, json_str(&m->key));
        if (!child) {
            note(p, list, at, json_str(&m->key));
            continue;
        }
        struct field_path here = FIELD_NAME(at, json_str(&m->key));
        prune_meta(p, child, &m->value, &here, list);
        if (n_kept != i)
            value->members[n_kept] = *m;
        n_kept++;
    }
    value->n = n_kept;
}

static void prune_meta_of(struct pruning *p, struct json *resource, const struct field_path *at)
{
    struct json *metadata = json_get(resource, STR("metadata"));
    struct field_path here = FIELD_NAME(at, STR("metadata"));
    if (json_is(metadata, JSON_OBJECT))
        prune_meta(p, schema_object_meta(), metadata, &here, at ? &p->embedded_meta : &p->meta);
}

/* ---- the walk ----------------------------------------------------------------------------- */

static void prune(struct pruning *p, const struct schema *s, struct json *value,
                  const struct field_path *at, bool is_resource);

static void prune_array(struct pruning *p, const struct schema *s, struct json *value,
                        const struct field_path *at)
{
    /* Items of a list that preserves are not specified by that: only what their own schema says
     * goes. */
    bool preserves = s && s->preserve_unknown_fields;
    if (preserves && !s->items)
        return;
    for (uint32_t i = 0; i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, i);
        struct schema kept;
        const struct schema *items = s ? s->items : NULL;
        if (preserves && !items->preserve_unknown_fields) {
            kept = *items;
            kept.preserve_unknown_fields = true;
            items = &kept;
        }
        prune(p, items, &value->items[i], &here, items && items->embedded_resource);
    }
}

/* Prunes below a member that stays; false when it does not stay. */
static bool prune_member(struct pruning *p, const struct schema *s, struct json_member *m,
                         const struct field_path *at, bool is_resource)
{
    struct str name = json_str(&m->key);
    if (is_resource && schema_is_meta_name(name))
        return true;
    const struct schema *child = s ? schema_property(s, name) : NULL;
    bool is_specified = child || (s && s->rules->additional != ADDITIONAL_UNSET);
    if (!is_specified) {
        if (s && s->preserve_unknown_fields)
            return true;
        note(p, &p->fields, at, name);
        return false;
    }
    if (!child)
        child = s->additional_properties; /* NULL where it is only true: nothing is known below */
    if (m->value.type != JSON_OBJECT && m->value.type != JSON_ARRAY)
        return true;
    struct field_path here = FIELD_NAME(at, name);
    prune(p, child, &m->value, &here, child && child->embedded_resource);
    return true;
}

static void prune_object(struct pruning *p, const struct schema *s, struct json *value,
                         const struct field_path *at, bool is_resource)
{
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member *m = &value->members[i];
        if (!prune_member(p, s, m, at, is_resource))
            continue;
        if (n_kept != i)
            value->members[n_kept] = *m;
        n_kept++;
    }
    value->n = n_kept;
    if (is_resource)
        prune_meta_of(p, value, at);
}

static void prune(struct pruning *p, const struct schema *s, struct json *value,
                  const struct field_path *at, bool is_resource)
{
    if (value->type == JSON_OBJECT)
        prune_object(p, s, value, at, is_resource);
    else if (value->type == JSON_ARRAY)
        prune_array(p, s, value, at);
}

void schema_prune(struct arena *a, const struct schema *schema, struct json *value,
                  struct unknown_field **ret_unknown)
{
    struct pruning p = {.arena = a, .lists = ret_unknown != NULL};
    prune(&p, schema, value, NULL, /* is_resource= */ true);
    if (!ret_unknown)
        return;
    *ret_unknown = NULL;
    struct unknown_field **end = append_sorted(a, &p.meta, ret_unknown);
    end = append_sorted(a, &p.fields, end);
    (void) append_sorted(a, &p.embedded_meta, end);
}

void schema_prune_value(struct arena *a, const struct schema *schema, struct json *value)
{
    struct pruning p = {.arena = a};
    prune(&p, schema, value, NULL, schema->embedded_resource);
}
