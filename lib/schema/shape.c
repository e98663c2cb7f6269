/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as owners of fields see them: which values are one field, which have fields below, and
 * what differs between two objects. */
#include <stdlib.h>

#include "schema/fieldset_internal.h"
#include "schema/schema_internal.h"

/* ---- shapes ------------------------------------------------------------------------------- */

bool shape_is_deduced(const struct schema *schema)
{
    if (!schema)
        return true;
    if (schema->type == SCHEMA_ANY)
        return !schema->int_or_string && schema->n_properties == 0 &&
               !schema->additional_properties;
    return schema->type == SCHEMA_OBJECT && schema->n_properties == 0 &&
           !schema->additional_properties && !schema->embedded_resource && !schema->map_is_atomic;
}

static enum shape deduced_shape(const struct json *value)
{
    return value->type == JSON_OBJECT || value->type == JSON_NULL ? SHAPE_MAP : SHAPE_LEAF;
}

/* A value of another type than the schema's is one field: validation refuses it later. */
enum shape shape_of(const struct schema *schema, const struct json *value, unsigned depth)
{
    if (depth >= FIELDSET_MAX_DEPTH)
        return SHAPE_LEAF;
    if (shape_is_deduced(schema))
        return deduced_shape(value);
    bool is_null = value->type == JSON_NULL;
    if (schema->type == SCHEMA_OBJECT || schema->type == SCHEMA_ANY)
        return !schema->map_is_atomic && !schema->int_or_string &&
                       (is_null || value->type == JSON_OBJECT)
                   ? SHAPE_MAP
                   : SHAPE_LEAF;
    if (schema->type == SCHEMA_ARRAY && schema->list_type != SCHEMA_LIST_ATOMIC)
        return is_null || value->type == JSON_ARRAY ? SHAPE_LIST : SHAPE_LEAF;
    return SHAPE_LEAF;
}

const struct schema *shape_find(const struct schema *schema, struct str name, bool is_root,
                                bool *ret_is_named)
{
    if ((is_root || (schema && schema->embedded_resource)) && schema_is_meta_name(name)) {
        *ret_is_named = true;
        return str_is(name, "metadata") ? schema_object_meta() : schema_member(schema, name);
    }
    const struct schema *property = schema ? schema_property(schema, name) : NULL;
    *ret_is_named = property != NULL;
    return property ? property : schema ? schema->additional_properties : NULL;
}

const struct schema *shape_member(const struct schema *schema, struct str name, bool is_root)
{
    bool is_named = false;
    return shape_find(schema, name, is_root, &is_named);
}

bool shape_names_member(const struct schema *schema, struct str name, bool is_root)
{
    bool is_named = false;
    (void) shape_find(schema, name, is_root, &is_named);
    return is_named;
}

/* ---- the fields of one object -------------------------------------------------------------- */

struct walk {
    struct arena *arena;
    bool takes_all; /* every field with others below it is a member too */
};

struct item {
    struct str element;
    const struct json *value;
};

static void collect(const struct walk *w, const struct schema *schema, const struct json *value,
                    unsigned depth, struct fieldset *out);

static bool is_empty_map(const struct json *value)
{
    return value->type == JSON_NULL || (value->type == JSON_OBJECT && value->n == 0);
}

static void collect_child(const struct walk *w, const struct schema *schema,
                          const struct json *value, unsigned depth, struct fieldset_node node,
                          struct fieldset *out)
{
    struct fieldset below = {0};
    enum shape shape = shape_of(schema, value, depth);
    node.is_member |= w->takes_all || shape == SHAPE_LEAF || is_empty_map(value);
    if (shape != SHAPE_LEAF)
        collect(w, schema, value, depth, &below);
    if (below.n) {
        node.children = fieldset_new(w->arena);
        *node.children = below;
    }
    if (node.is_member || node.children)
        *fieldset_append(w->arena, out, node.element) = node;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = element_compare(x->element, y->element);
    return order ? order : x->value < y->value ? -1 : x->value > y->value;
}

/* The items that have an element, sorted by it; equal ones in the order of the list. */
static size_t sorted_items(struct arena *a, const struct schema *list, const struct json *value,
                           struct item **ret_items)
{
    size_t n = 0;
    struct item *items = ARENA_ARRAY(a, struct item, json_count(value) + 1);
    JSON_FOR_EACH_ITEM (value, v) {
        if (element_of_item(a, list, v, &items[n].element, NULL) == 0)
            items[n++].value = v;
    }
    if (n > 1)
        qsort(items, n, sizeof(*items), compare_items);
    *ret_items = items;
    return n;
}

/* How many from i on have the same element. */
static size_t run_length(const struct item *items, size_t i, size_t n)
{
    size_t end = i + 1;
    while (end < n && str_eq(items[end].element, items[i].element))
        end++;
    return end - i;
}

static void collect_items(const struct walk *w, const struct schema *list, const struct json *value,
                          unsigned depth, struct fieldset *out)
{
    struct item *items = NULL;
    size_t n = sorted_items(w->arena, list, value, &items), run = 0;
    for (size_t i = 0; i < n; i += run) {
        run = run_length(items, i, n);
        struct fieldset_node node = {.element = items[i].element, .is_member = true};
        /* Of items that share a key only the key is owned. */
        if (run == 1)
            collect_child(w, list->items, items[i].value, depth + 1, node, out);
        else
            *fieldset_append(w->arena, out, node.element) = node;
    }
}

static void collect(const struct walk *w, const struct schema *schema, const struct json *value,
                    unsigned depth, struct fieldset *out)
{
    if (value->type == JSON_ARRAY) {
        collect_items(w, schema, value, depth, out);
        return;
    }
    fieldset_reserve(w->arena, out, (uint32_t) json_count(value));
    JSON_FOR_EACH_MEMBER (value, m) {
        struct str name = json_str(&m->key);
        struct fieldset_node node = {.element = element_of_field(w->arena, name)};
        bool is_named = false;
        const struct schema *child = shape_find(schema, name, depth == 0, &is_named);
        node.is_member = !is_named;
        collect_child(w, child, &m->value, depth + 1, node, out);
    }
    fieldset_sort(out);
}

struct fieldset *fieldset_of(struct arena *a, const struct json *value, const struct schema *schema)
{
    const struct walk w = {.arena = a};
    struct fieldset *set = fieldset_new(a);
    if (json_is(value, JSON_OBJECT))
        collect(&w, schema, value, 0, set);
    return set;
}

static struct fieldset *with_named(struct arena *a, const struct fieldset *set,
                                   const struct schema *schema, bool is_root)
{
    struct fieldset *out = fieldset_new(a);
    for (uint32_t i = 0; i < set->n; i++) {
        struct fieldset_node node = set->nodes[i];
        if (node.children && element_is_field(node.element)) {
            struct str name = element_field_name(node.element);
            node.is_member |= shape_names_member(schema, name, is_root);
            node.children =
                with_named(a, node.children, shape_member(schema, name, is_root), false);
        } else if (node.children) {
            node.children = with_named(a, node.children, schema ? schema->items : NULL, false);
        }
        *fieldset_append(a, out, node.element) = node;
    }
    return out;
}

struct fieldset *fieldset_with_named(struct arena *a, const struct fieldset *set,
                                     const struct schema *schema)
{
    return set ? with_named(a, set, schema, /* is_root= */ true) : fieldset_new(a);
}

/* Whether the schema makes one field of the value that has this element below it. */
static bool is_one_field(const struct schema *schema, struct str element)
{
    if (shape_is_deduced(schema))
        return !element_is_field(element);
    if (schema->type == SCHEMA_ARRAY)
        return schema->list_type == SCHEMA_LIST_ATOMIC;
    return (schema->type != SCHEMA_OBJECT && schema->type != SCHEMA_ANY) || schema->map_is_atomic;
}

static const struct schema *below(const struct schema *schema, struct str element, bool is_root)
{
    return element_is_field(element) ? shape_member(schema, element_field_name(element), is_root)
           : schema                  ? schema->items
                                     : NULL;
}

static struct fieldset *reconcile(struct arena *a, struct fieldset *set,
                                  const struct schema *schema, bool is_root)
{
    struct fieldset *out = set;
    for (uint32_t i = 0; i < set->n; i++) {
        struct fieldset_node node = set->nodes[i];
        if (!node.children)
            continue;
        const struct schema *at = below(schema, node.element, is_root);
        if (is_one_field(at, node.children->nodes[0].element)) {
            node.children = NULL;
            node.is_member = true;
        } else {
            node.children = reconcile(a, node.children, at, false);
        }
        if (node.children == set->nodes[i].children)
            continue;
        if (out == set)
            out = fieldset_copy(a, set);
        out->nodes[i] = node;
    }
    return out;
}

struct fieldset *fieldset_reconcile(struct arena *a, struct fieldset *set,
                                    const struct schema *schema)
{
    return reconcile(a, set, schema, /* is_root= */ true);
}

/* The first element below the field; NULL: there is none. */
static const struct json *first_below(const struct json *fields)
{
    JSON_FOR_EACH_MEMBER (fields, m) {
        if (!str_is(json_str(&m->key), "."))
            return &m->key;
    }
    return NULL;
}

static bool fields_fit(const struct json *fields, const struct schema *schema, bool is_root)
{
    JSON_FOR_EACH_MEMBER (fields, m) {
        const struct json *first = first_below(&m->value);
        if (!first)
            continue;
        const struct schema *at = below(schema, json_str(&m->key), is_root);
        if (is_one_field(at, json_str(first)) || !fields_fit(&m->value, at, false))
            return false;
    }
    return true;
}

bool fieldset_json_fits(const struct json *fields_v1, const struct schema *schema)
{
    return fields_fit(fields_v1, schema, /* is_root= */ true);
}

/* ---- the difference of two ----------------------------------------------------------------- */

/* One field on both sides; NULL: absent there. */
struct pair {
    const struct schema *schema;
    const struct json *old, *new;
    unsigned depth;
    const struct fieldset *ignored; /* below this field; may be NULL */
};

struct outcome {
    bool is_changed, is_removed;      /* the field itself */
    struct fieldset changed, removed; /* below it */
};

struct run {
    const struct item *items; /* all of one element */
    size_t n;
};

static void compare(const struct walk *w, const struct pair *p, struct outcome *ret);

static void record_in(struct arena *a, struct fieldset *set, struct str element, bool is_member,
                      const struct fieldset *below)
{
    if (!is_member && !below->n)
        return;
    struct fieldset_node *node = fieldset_append(a, set, element);
    node->is_member = is_member;
    if (below->n) {
        node->children = fieldset_new(a);
        *node->children = *below;
    }
}

static void record(struct arena *a, struct outcome *into, struct str element,
                   const struct outcome *child)
{
    record_in(a, &into->changed, element, child->is_changed, &child->changed);
    record_in(a, &into->removed, element, child->is_removed, &child->removed);
}

static bool is_difference(const struct outcome *o)
{
    return o->is_changed || o->is_removed || o->changed.n || o->removed.n;
}

/* Surely no difference, whatever the schema says. */
static bool is_same_value(const struct json *old, const struct json *new_value)
{
    return json_is_shared(old, new_value) ||
           (!json_is_container(old) && json_identical(old, new_value));
}

static void compare_member(const struct walk *w, const struct pair *map,
                           const struct json_member *old, const struct json_member *new_member,
                           struct outcome *ret)
{
    if (old && new_member && is_same_value(&old->value, &new_member->value))
        return;
    struct str name = json_str(old ? &old->key : &new_member->key);
    const struct fieldset_node *node = fieldset_find_field(map->ignored, name);
    if (node && node->is_member)
        return;
    const struct pair p = {
        .schema = shape_member(map->schema, name, map->depth == 0),
        .old = old ? &old->value : NULL,
        .new = new_member ? &new_member->value : NULL,
        .depth = map->depth + 1,
        .ignored = node ? node->children : NULL,
    };
    struct outcome child = {0};
    compare(w, &p, &child);
    if (is_difference(&child))
        record(w->arena, ret, element_of_field(w->arena, name), &child);
}

static int compare_names(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp(json_str(&(*x)->key), json_str(&(*y)->key));
}

static const struct json_member **sorted_members(struct arena *a, const struct json *object)
{
    size_t n = json_count(object);
    const struct json_member **sorted = ARENA_ARRAY(a, const struct json_member *, n + 1);
    bool is_sorted = true;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &object->members[i];
        is_sorted = is_sorted && (i == 0 || compare_names(&sorted[i - 1], &sorted[i]) < 0);
    }
    if (!is_sorted)
        qsort(sorted, n, sizeof(*sorted), compare_names);
    return sorted;
}

/* The usual case: an object read, changed and written back. */
static bool has_same_names(const struct json *a, const struct json *b)
{
    if (json_count(a) != json_count(b))
        return false;
    for (size_t i = 0; i < json_count(a); i++) {
        if (!str_eq(json_str(&a->members[i].key), json_str(&b->members[i].key)))
            return false;
    }
    return true;
}

static void compare_maps(const struct walk *w, const struct pair *p, struct outcome *ret)
{
    size_t n_old = json_count(p->old), n_new = json_count(p->new), i = 0, j = 0;
    if (has_same_names(p->old, p->new)) {
        for (; i < n_old; i++)
            compare_member(w, p, &p->old->members[i], &p->new->members[i], ret);
        fieldset_sort(&ret->changed);
        fieldset_sort(&ret->removed);
        return;
    }
    const struct json_member **x = sorted_members(w->arena, p->old);
    const struct json_member **y = sorted_members(w->arena, p->new);
    while (i < n_old || j < n_new) {
        int order = i == n_old ? 1 : j == n_new ? -1 : compare_names(&x[i], &y[j]);
        const struct json_member *left = order <= 0 ? x[i++] : NULL;
        const struct json_member *right = order >= 0 ? y[j++] : NULL;
        compare_member(w, p, left, right, ret);
    }
}

static bool runs_equal(const struct run *a, const struct run *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        if (!json_equal(a->items[i].value, b->items[i].value))
            return false;
    }
    return a->n == b->n;
}

/* Either run may be empty. Several items that share an element are owned by the element alone. */
static void compare_runs(const struct walk *w, const struct pair *list, const struct run *old,
                         const struct run *new_run, struct outcome *ret)
{
    struct pair p = {.schema = list->schema->items, .depth = list->depth + 1};
    struct outcome child = {0};
    p.old = old->n == 1 ? old->items->value : NULL;
    p.new = new_run->n == 1 ? new_run->items->value : NULL;
    if (p.old || p.new)
        compare(w, &p, &child);
    else
        child.is_changed = new_run->n && !runs_equal(old, new_run);
    if (new_run->n > 1 && old->n <= 1)
        child.is_changed = true;
    child.is_removed = new_run->n == 0;
    if (is_difference(&child))
        record(w->arena, ret, old->n ? old->items->element : new_run->items->element, &child);
}

static void compare_lists(const struct walk *w, const struct pair *p, struct outcome *ret)
{
    if (json_equal(p->old, p->new))
        return;
    struct item *x = NULL, *y = NULL;
    size_t n_old = sorted_items(w->arena, p->schema, p->old, &x);
    size_t n_new = sorted_items(w->arena, p->schema, p->new, &y);
    size_t i = 0, j = 0;
    while (i < n_old || j < n_new) {
        int order = i == n_old ? 1 : j == n_new ? -1 : element_compare(x[i].element, y[j].element);
        const struct run left = {x + i, order <= 0 ? run_length(x, i, n_old) : 0};
        const struct run right = {y + j, order >= 0 ? run_length(y, j, n_new) : 0};
        compare_runs(w, p, &left, &right, ret);
        i += left.n;
        j += right.n;
    }
}

/* A value that only one side has, or that has another shape there. */
static void compare_unlike(const struct walk *w, const struct pair *p, struct outcome *ret)
{
    ret->is_changed = p->new;
    ret->is_removed = !p->new;
    if (p->ignored) {
        struct pair maps = *p;
        maps.old = json_is(p->old, JSON_OBJECT) ? p->old : NULL;
        maps.new = json_is(p->new, JSON_OBJECT) ? p->new : NULL;
        compare_maps(w, &maps, ret);
        return;
    }
    if (p->old && shape_of(p->schema, p->old, p->depth) != SHAPE_LEAF)
        collect(w, p->schema, p->old, p->depth, &ret->removed);
    if (p->new &&shape_of(p->schema, p->new, p->depth) != SHAPE_LEAF)
        collect(w, p->schema, p->new, p->depth, &ret->changed);
}

static void compare(const struct walk *w, const struct pair *p, struct outcome *ret)
{
    if (p->old == p->new || (p->old && p->new &&is_same_value(p->old, p->new)))
        return;
    enum shape shape = p->old ? shape_of(p->schema, p->old, p->depth) : SHAPE_LEAF;
    if (!p->old || !p->new || shape != shape_of(p->schema, p->new, p->depth))
        compare_unlike(w, p, ret);
    else if (shape == SHAPE_LEAF || json_count(p->old) + json_count(p->new) == 0)
        ret->is_changed = !json_equal(p->old, p->new);
    else if (shape == SHAPE_LIST)
        compare_lists(w, p, ret);
    else
        compare_maps(w, p, ret);
}

struct fieldset_difference fieldset_compare(struct arena *a, const struct schema *schema,
                                            const struct json *old, const struct json *new_value,
                                            const struct fieldset *ignored)
{
    const struct walk w = {.arena = a, .takes_all = true};
    const struct pair root = {
        .schema = schema,
        .old = json_is(old, JSON_OBJECT) ? old : NULL,
        .new = json_is(new_value, JSON_OBJECT) ? new_value : NULL,
        .ignored = ignored,
    };
    struct outcome o = {0};
    if (root.old != root.new)
        compare_maps(&w, &root, &o);
    struct fieldset_difference d = {fieldset_new(a), fieldset_new(a)};
    *d.changed = o.changed;
    *d.removed = o.removed;
    return d;
}
