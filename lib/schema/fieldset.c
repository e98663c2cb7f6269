/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fieldset.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "schema/fieldset_internal.h"

#define SMALL_SET 32 /* nodes that are sorted on the stack */

/* ---- nodes -------------------------------------------------------------------------------- */

struct fieldset *fieldset_new(struct arena *a)
{
    return ARENA_NEW(a, struct fieldset);
}

struct fieldset_node *fieldset_append(struct arena *a, struct fieldset *set, struct str element)
{
    if (set->n == set->capacity) {
        uint32_t capacity = set->capacity ? set->capacity * 2 : 4;
        set->nodes = arena_realloc(a, set->nodes, set->capacity * sizeof(*set->nodes),
                                   capacity * sizeof(*set->nodes));
        set->capacity = capacity;
    }
    struct fieldset_node *node = &set->nodes[set->n++];
    *node = (struct fieldset_node){.element = element};
    return node;
}

void fieldset_reserve(struct arena *a, struct fieldset *set, uint32_t n)
{
    set->nodes = arena_alloc(a, n * sizeof(*set->nodes));
    set->capacity = n;
}

struct fieldset *fieldset_copy(struct arena *a, const struct fieldset *set)
{
    struct fieldset *copy = fieldset_new(a);
    copy->nodes = arena_alloc(a, (set->n + 1) * sizeof(*copy->nodes));
    copy->n = set->n;
    copy->capacity = set->n + 1;
    if (set->n)
        memcpy(copy->nodes, set->nodes, set->n * sizeof(*copy->nodes));
    return copy;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct fieldset_node *x = a, *y = b;
    return element_compare(x->element, y->element);
}

/* The first bytes of a field's name, in the order of bytes: they mostly decide alone. */
static uint64_t sort_key(struct str element)
{
    uint64_t bytes = 0;
    if (element.n >= 2 + sizeof(bytes)) {
        memcpy(&bytes, element.p + 2, sizeof(bytes));
        return be64toh(bytes);
    }
    for (size_t i = 2; i < element.n; i++)
        bytes = bytes << 8 | (unsigned char) element.p[i];
    return element.n > 2 ? bytes << 8 * (2 + sizeof(bytes) - element.n) : 0;
}

struct place {
    uint64_t key;
    uint32_t at;
};

/* Fields of a small set, which is nearly every one. */
static void sort_fields(struct fieldset *set)
{
    struct fieldset_node nodes[SMALL_SET];
    struct place places[SMALL_SET];
    bool is_sorted = true;
    for (uint32_t i = 0; i < set->n; i++) {
        struct place one = {sort_key(set->nodes[i].element), i};
        uint32_t to = i;
        for (; to > 0 && places[to - 1].key >= one.key; to--) {
            if (places[to - 1].key == one.key &&
                compare_nodes(&set->nodes[places[to - 1].at], &set->nodes[i]) <= 0)
                break;
            places[to] = places[to - 1];
        }
        places[to] = one;
        is_sorted &= to == i;
    }
    if (is_sorted)
        return;
    memcpy(nodes, set->nodes, set->n * sizeof(*nodes));
    for (uint32_t i = 0; i < set->n; i++)
        set->nodes[i] = nodes[places[i].at];
}

static bool has_fields_only(const struct fieldset *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (!element_is_field(set->nodes[i].element))
            return false;
    }
    return true;
}

void fieldset_sort(struct fieldset *set)
{
    if (set->n < 2)
        return;
    if (set->n <= SMALL_SET && has_fields_only(set)) {
        sort_fields(set);
        return;
    }
    for (uint32_t i = 1; i < set->n; i++) {
        if (compare_nodes(&set->nodes[i - 1], &set->nodes[i]) > 0) {
            qsort(set->nodes, set->n, sizeof(*set->nodes), compare_nodes);
            return;
        }
    }
}

const struct fieldset_node *fieldset_find(const struct fieldset *set, struct str element)
{
    size_t low = 0, high = set ? set->n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = element_compare(set->nodes[middle].element, element);
        if (order == 0)
            return &set->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct fieldset_node *fieldset_find_field(const struct fieldset *set, struct str name)
{
    size_t low = 0, high = set ? set->n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct str element = set->nodes[middle].element;
        int order = element_is_field(element) ? str_cmp(element_field_name(element), name) : 1;
        if (order == 0)
            return &set->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct fieldset_node *fieldset_add_path(struct arena *a, struct fieldset *set, struct str dotted)
{
    struct fieldset_node *node = NULL;
    struct str name;
    while (str_split(&dotted, '.', &name)) {
        if (node && !node->children)
            node->children = fieldset_new(a);
        struct fieldset *at = node ? node->children : set;
        if (!fieldset_find_field(at, name)) {
            fieldset_append(a, at, element_of_field(a, name));
            fieldset_sort(at);
        }
        node = (struct fieldset_node *) fieldset_find_field(at, name);
    }
    if (node)
        node->is_member = true;
    return node;
}

bool fieldset_is_empty(const struct fieldset *set)
{
    return !set || set->n == 0;
}

bool fieldset_equal(const struct fieldset *a, const struct fieldset *b)
{
    if (a == b)
        return true;
    if (fieldset_is_empty(a) || fieldset_is_empty(b))
        return fieldset_is_empty(a) && fieldset_is_empty(b);
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct fieldset_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->is_member != y->is_member || !str_eq(x->element, y->element) ||
            !fieldset_equal(x->children, y->children))
            return false;
    }
    return true;
}

/* ---- algebra ------------------------------------------------------------------------------ */

/* What becomes of a node that only one of the sets has, and of one that both have. */
struct algebra {
    bool keeps_left, keeps_right;
    bool (*is_member)(bool left, bool right);
};

static struct fieldset *combine(struct arena *a, const struct algebra *how,
                                const struct fieldset *x, const struct fieldset *y);

static void combine_nodes(struct arena *a, const struct algebra *how, struct fieldset *out,
                          const struct fieldset_node *x, const struct fieldset_node *y)
{
    bool is_member = how->is_member(x->is_member, y->is_member);
    struct fieldset *children = combine(a, how, x->children, y->children);
    if (!is_member && !children)
        return;
    struct fieldset_node *node = fieldset_append(a, out, x->element);
    node->is_member = is_member;
    node->children = children;
}

/* NULL when empty. */
static struct fieldset *combine(struct arena *a, const struct algebra *how,
                                const struct fieldset *x, const struct fieldset *y)
{
    if (fieldset_is_empty(y))
        return how->keeps_left && !fieldset_is_empty(x) ? (struct fieldset *) x : NULL;
    if (fieldset_is_empty(x))
        return how->keeps_right ? (struct fieldset *) y : NULL;
    struct fieldset *out = fieldset_new(a);
    uint32_t i = 0, j = 0;
    while (i < x->n || j < y->n) {
        int order = i == x->n   ? 1
                    : j == y->n ? -1
                                : element_compare(x->nodes[i].element, y->nodes[j].element);
        const struct fieldset_node *left = order <= 0 ? &x->nodes[i++] : NULL;
        const struct fieldset_node *right = order >= 0 ? &y->nodes[j++] : NULL;
        if (left && right)
            combine_nodes(a, how, out, left, right);
        else if (left && how->keeps_left)
            *fieldset_append(a, out, left->element) = *left;
        else if (right && how->keeps_right)
            *fieldset_append(a, out, right->element) = *right;
    }
    return out->n ? out : NULL;
}

static struct fieldset *never_null(struct arena *a, struct fieldset *set)
{
    return set ? set : fieldset_new(a);
}

static bool in_either(bool left, bool right)
{
    return left || right;
}

static bool in_both(bool left, bool right)
{
    return left && right;
}

static bool in_left_only(bool left, bool right)
{
    return left && !right;
}

struct fieldset *fieldset_union(struct arena *a, const struct fieldset *x, const struct fieldset *y)
{
    static const struct algebra how = {
        .keeps_left = true, .keeps_right = true, .is_member = in_either};
    return never_null(a, combine(a, &how, x, y));
}

struct fieldset *fieldset_intersection(struct arena *a, const struct fieldset *x,
                                       const struct fieldset *y)
{
    static const struct algebra how = {.is_member = in_both};
    return never_null(a, combine(a, &how, x, y));
}

struct fieldset *fieldset_difference(struct arena *a, const struct fieldset *x,
                                     const struct fieldset *y)
{
    static const struct algebra how = {.keeps_left = true, .is_member = in_left_only};
    return never_null(a, combine(a, &how, x, y));
}

static struct fieldset *without_trees(struct arena *a, const struct fieldset *set,
                                      const struct fieldset *roots)
{
    if (fieldset_is_empty(set) || fieldset_is_empty(roots))
        return fieldset_is_empty(set) ? NULL : (struct fieldset *) set;
    struct fieldset *out = fieldset_new(a);
    for (uint32_t i = 0; i < set->n; i++) {
        struct fieldset_node node = set->nodes[i];
        const struct fieldset_node *root = fieldset_find(roots, node.element);
        if (root && root->is_member)
            continue;
        if (root)
            node.children = without_trees(a, node.children, root->children);
        if (node.is_member || node.children)
            *fieldset_append(a, out, node.element) = node;
    }
    return out->n ? out : NULL;
}

struct fieldset *fieldset_without_trees(struct arena *a, const struct fieldset *set,
                                        const struct fieldset *roots)
{
    return never_null(a, without_trees(a, set, roots));
}

/* ---- FieldsV1 ----------------------------------------------------------------------------- */

/* Two spellings of one element meet only now; the second adds to the first. */
static void join_repeated(struct arena *a, struct fieldset *set)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        struct fieldset_node *node = &set->nodes[i], *last = n ? &set->nodes[n - 1] : NULL;
        if (last && str_eq(last->element, node->element)) {
            last->is_member |= node->is_member;
            if (last->children || node->children)
                last->children = fieldset_union(a, last->children, node->children);
        } else {
            set->nodes[n++] = *node;
        }
    }
    set->n = n;
}

/* *ret_is_member: the value says that its own field is in the set. */
static int read_level(struct arena *a, const struct json *value, unsigned depth,
                      struct fieldset **ret_set, bool *ret_is_member)
{
    *ret_set = NULL;
    *ret_is_member = false;
    if (!json_is(value, JSON_OBJECT) || depth > FIELDSET_MAX_DEPTH)
        return -EINVAL;
    struct fieldset *set = fieldset_new(a);
    JSON_FOR_EACH_MEMBER (value, m) {
        struct str element, key = json_str(&m->key);
        if (str_is(key, ".")) {
            *ret_is_member = true;
            continue;
        }
        int r = element_parse(a, key, &element);
        if (r < 0)
            return r;
        struct fieldset_node node = {.element = element};
        if (r > 0)
            continue;
        r = read_level(a, &m->value, depth + 1, &node.children, &node.is_member);
        if (r < 0)
            return r;
        *fieldset_append(a, set, element) = node;
    }
    fieldset_sort(set);
    join_repeated(a, set);
    if (set->n)
        *ret_set = set;
    else
        *ret_is_member = true;
    return 0;
}

int fieldset_from_json(struct arena *a, const struct json *fields_v1, struct fieldset **ret_set)
{
    struct fieldset *set = NULL;
    bool is_member = false;
    int r = read_level(a, fields_v1, 0, &set, &is_member);
    if (r < 0)
        return r;
    *ret_set = never_null(a, set);
    return 0;
}

static struct json write_level(struct arena *a, const struct fieldset *set, bool is_member)
{
    struct json value = json_object();
    if (fieldset_is_empty(set))
        return value;
    value.members = arena_alloc(a, (set->n + 1) * sizeof(*value.members));
    if (is_member)
        value.members[value.n++] = (struct json_member){json_string(STR(".")), json_object()};
    for (uint32_t i = 0; i < set->n; i++) {
        const struct fieldset_node *node = &set->nodes[i];
        value.members[value.n++] = (struct json_member){
            json_string(node->element), write_level(a, node->children, node->is_member)};
    }
    return value;
}

struct json fieldset_node_to_json(struct arena *a, const struct fieldset_node *node)
{
    return write_level(a, node->children, node->is_member);
}

struct json fieldset_to_json(struct arena *a, const struct fieldset *set)
{
    return write_level(a, set, /* is_member= */ false);
}

/* ---- paths -------------------------------------------------------------------------------- */

struct leaves {
    struct arena *arena;
    struct buf path;
    void (*on_path)(void *ctx, struct str path);
    void *ctx;
};

/* All members of one level, then what is below, as structured-merge-diff lists them. */
static void visit_level(struct leaves *l, const struct fieldset *set)
{
    size_t n_prefix = l->path.n;
    for (uint32_t i = 0; i < set->n; i++) {
        if (!set->nodes[i].is_member)
            continue;
        element_write(l->arena, &l->path, set->nodes[i].element);
        l->on_path(l->ctx, arena_str(l->arena, buf_str(&l->path)));
        l->path.n = n_prefix;
    }
    for (uint32_t i = 0; i < set->n; i++) {
        if (!set->nodes[i].children)
            continue;
        element_write(l->arena, &l->path, set->nodes[i].element);
        visit_level(l, set->nodes[i].children);
        l->path.n = n_prefix;
    }
}

void fieldset_for_each_leaf(struct arena *a, const struct fieldset *set,
                            void (*on_path)(void *ctx, struct str path), void *ctx)
{
    struct leaves l = {.arena = a, .on_path = on_path, .ctx = ctx};
    if (!fieldset_is_empty(set))
        visit_level(&l, set);
    buf_done(&l.path);
}
