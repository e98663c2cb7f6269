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

/* ---- copying what changes ------------------------------------------------------------------ */

/* The elements of a container while it is walked. Other trees may share them, so the first change
 * copies them. */
struct kept {
    struct pruning *pruning;
    struct json *container;
    uint32_t n;
    bool is_own;
};

static void kept_own(struct kept *k)
{
    if (!k->is_own)
        json_unshare(k->pruning->arena, k->container, 0);
    k->is_own = true;
}

static void keep_member(struct kept *k, const struct json_member *m, bool is_changed)
{
    if (is_changed)
        kept_own(k);
    if (k->is_own)
        k->container->members[k->n] = *m;
    k->n++;
}

static void set_item(struct kept *k, uint32_t at, const struct json *item)
{
    kept_own(k);
    k->container->items[at] = *item;
}

/* ---- metadata ----------------------------------------------------------------------------- */

/* Leaves of metadata what ObjectMeta has. True when something went. */
static bool prune_meta(struct pruning *p, const struct schema *s, struct json *value,
                       const struct field_path *at, struct unknown_list *list)
{
    if (!s || s->preserve_unknown_fields || !json_is_container(value))
        return false;
    struct kept kept = {.pruning = p, .container = value};
    if (value->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < value->n; i++) {
            struct field_path here = FIELD_INDEX(at, i);
            struct json item = value->items[i];
            if (prune_meta(p, s->items, &item, &here, list))
                set_item(&kept, i, &item);
        }
        return kept.is_own;
    }
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member m = value->members[i];
        const struct schema *child = schema_member(s, json_str(&m.key));
        struct field_path here = FIELD_NAME(at, json_str(&m.key));
        if (!child) {
            note(p, list, at, json_str(&m.key));
            kept_own(&kept);
            continue;
        }
        keep_member(&kept, &m, prune_meta(p, child, &m.value, &here, list));
    }
    value->n = kept.n;
    return kept.is_own;
}

static void prune_meta_of(struct kept *resource, const struct field_path *at)
{
    struct pruning *p = resource->pruning;
    const struct json *metadata = json_get(resource->container, STR("metadata"));
    struct field_path here = FIELD_NAME(at, STR("metadata"));
    struct json value = json_is(metadata, JSON_OBJECT) ? *metadata : json_null();
    if (!prune_meta(p, schema_object_meta(), &value, &here, at ? &p->embedded_meta : &p->meta))
        return;
    kept_own(resource);
    *json_get(resource->container, STR("metadata")) = value;
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* True when something went. */
static bool prune(struct pruning *p, const struct schema *s, struct json *value,
                  const struct field_path *at, bool is_resource);

static bool prune_array(struct pruning *p, const struct schema *s, struct json *value,
                        const struct field_path *at)
{
    /* Items of a list that preserves are not specified by that: only what their own schema says
     * goes. */
    bool preserves = s && s->preserve_unknown_fields;
    struct kept kept = {.pruning = p, .container = value};
    if (preserves && !s->items)
        return false;
    for (uint32_t i = 0; i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, i);
        struct schema preserving;
        const struct schema *items = s ? s->items : NULL;
        if (preserves && !items->preserve_unknown_fields) {
            preserving = *items;
            preserving.preserve_unknown_fields = true;
            items = &preserving;
        }
        struct json item = value->items[i];
        if (prune(p, items, &item, &here, items && items->embedded_resource))
            set_item(&kept, i, &item);
    }
    return kept.is_own;
}

/* What the schema makes of a member. */
struct fate {
    bool goes;
    bool is_changed;
};

static struct fate prune_member(struct pruning *p, const struct schema *s, struct json_member *m,
                                const struct field_path *at, bool is_resource)
{
    struct fate stays = {0};
    struct str name = json_str(&m->key);
    if (is_resource && schema_is_meta_name(name))
        return stays;
    const struct schema *child = s ? schema_property(s, name) : NULL;
    bool is_specified = child || (s && s->rules->additional != ADDITIONAL_UNSET);
    if (!is_specified) {
        if (s && s->preserve_unknown_fields)
            return stays;
        note(p, &p->fields, at, name);
        return (struct fate){.goes = true};
    }
    if (!child)
        child = s->additional_properties; /* NULL where it is only true: nothing is known below */
    if (!json_is_container(&m->value))
        return stays;
    struct field_path here = FIELD_NAME(at, name);
    stays.is_changed = prune(p, child, &m->value, &here, child && child->embedded_resource);
    return stays;
}

static bool prune_object(struct pruning *p, const struct schema *s, struct json *value,
                         const struct field_path *at, bool is_resource)
{
    struct kept kept = {.pruning = p, .container = value};
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member m = value->members[i];
        struct fate fate = prune_member(p, s, &m, at, is_resource);
        if (fate.goes)
            kept_own(&kept);
        else
            keep_member(&kept, &m, fate.is_changed);
    }
    value->n = kept.n;
    if (is_resource)
        prune_meta_of(&kept, at);
    return kept.is_own;
}

static bool prune(struct pruning *p, const struct schema *s, struct json *value,
                  const struct field_path *at, bool is_resource)
{
    if (value->type == JSON_OBJECT)
        return prune_object(p, s, value, at, is_resource);
    return value->type == JSON_ARRAY && prune_array(p, s, value, at);
}

void schema_prune(struct arena *a, const struct schema *schema, struct json *value,
                  struct unknown_field **ret_unknown)
{
    struct pruning p = {.arena = a, .lists = ret_unknown != NULL};
    (void) prune(&p, schema, value, NULL, /* is_resource= */ true);
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
    (void) prune(&p, schema, value, NULL, schema->embedded_resource);
}
