/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "schema/patch_internal.h"
#include "schema/patch_strategic.h"

#define RETAIN_KEYS "$retainKeys"
#define SET_ORDER "$setElementOrder"
#define DELETE_FROM "$deleteFromPrimitiveList"

int strategic_fail(struct strategic *s, int kind, struct str message)
{
    *s->error = (struct patch_error){.kind = kind, .message = message};
    return -EINVAL;
}

int strategic_fail_directive(struct strategic *s, const struct json *directive,
                             const struct json *in)
{
    return strategic_fail(s, PATCH_FAILED,
                          arena_printf(s->arena, "unknown patch type: %.*s in map: %.*s",
                                       STR_ARG(patch_go_text(s->arena, directive)),
                                       STR_ARG(patch_go_text(s->arena, in))));
}

static const struct schema *member_schema(const struct schema *schema, struct str name,
                                          unsigned depth)
{
    return depth == 0 && str_is(name, "metadata") ? schema_object_meta()
                                                  : schema_member(schema, name);
}

/* ---- directives --------------------------------------------------------------------------- */

/* "$setElementOrder/ports" is "ports", without a slash ""; STR_NONE when the key is of another
 * kind. */
static struct str list_of_directive(struct str key, struct str directive)
{
    if (!str_starts_with(key, directive))
        return STR_NONE;
    return key.n > directive.n && key.p[directive.n] == '/' ? str_from(key, directive.n + 1)
                                                            : STR("");
}

static bool is_directive(struct str key)
{
    return str_is(key, STRATEGIC_PATCH) || str_is(key, RETAIN_KEYS) ||
           str_starts_with(key, STR(SET_ORDER)) || str_starts_with(key, STR(DELETE_FROM));
}

struct json strategic_plain(struct arena *a, const struct json *value)
{
    struct json out = *value;
    if (json_count(value) == 0)
        return out;
    out.room = 0;
    out.n = 0;
    if (value->type == JSON_ARRAY) {
        out.items = arena_alloc(a, value->n * sizeof(*out.items));
        JSON_FOR_EACH_ITEM (value, item) {
            if (!json_get(item, STR(STRATEGIC_PATCH)))
                out.items[out.n++] = strategic_plain(a, item);
        }
        return out;
    }
    out.members = arena_alloc(a, value->n * sizeof(*out.members));
    JSON_FOR_EACH_MEMBER (value, m) {
        if (m->value.type != JSON_NULL && !json_get(&m->value, STR(STRATEGIC_PATCH)))
            out.members[out.n++] = (struct json_member){m->key, strategic_plain(a, &m->value)};
    }
    return out;
}

static bool holds(const struct json *names, struct str name)
{
    JSON_FOR_EACH_ITEM (names, item) {
        if (str_eq(json_str(item), name) && json_is(item, JSON_STRING))
            return true;
    }
    return false;
}

/* Drops what the list does not name; the patch may not speak of it either. */
static int retain_keys(struct strategic *s, struct json *object, const struct json *patch)
{
    const struct json *names = json_get(patch, STR(RETAIN_KEYS));
    if (!names)
        return 0;
    bool is_good = json_is(names, JSON_ARRAY) && names->n <= STRATEGIC_MAX_RETAINED;
    JSON_FOR_EACH_MEMBER (patch, m) {
        struct str key = json_str(&m->key);
        if (is_good && m->value.type != JSON_NULL && !is_directive(key))
            is_good = holds(names, key);
    }
    if (!is_good)
        return strategic_fail(s, PATCH_BAD_REQUEST, STR("invalid patch format of $retainKeys"));
    uint32_t n = 0;
    for (uint32_t i = 0; i < object->n; i++) {
        if (holds(names, json_str(&object->members[i].key)))
            object->members[n++] = object->members[i];
    }
    object->n = n;
    return 0;
}

/* ---- maps --------------------------------------------------------------------------------- */

/* The result in the making: members keep their places until the end, new ones come behind them. */
struct map_merge {
    struct strategic *s;
    const struct schema *schema;
    const struct json *patch;
    unsigned depth;
    struct json out;
    struct json_index in_out, in_patch; /* of what is large */
    bool has_orders, has_removed;
};

static void map_merge_done(struct map_merge *m)
{
    json_index_done(&m->in_out);
    json_index_done(&m->in_patch);
}

static struct json *find(const struct json *object, const struct json_index *index, struct str name)
{
    return index->slots ? json_index_get(index, name) : json_get(object, name);
}

static struct json_member *member_of(struct json *value)
{
    return CONTAINER_OF(value, struct json_member, value);
}

/* A member that goes has no key until it is dropped. */
static bool is_removed(const struct json_member *m)
{
    return m->key.type != JSON_STRING;
}

static struct json *find_old(struct map_merge *m, struct str name)
{
    struct json *value = find(&m->out, &m->in_out, name);
    return value && !is_removed(member_of(value)) ? value : NULL;
}

static void set_member(struct map_merge *m, struct str name, struct json value)
{
    struct json *old = find_old(m, name);
    if (old)
        *old = value;
    else
        (void) json_append_member(m->s->arena, &m->out, name, value);
}

/* Merges each list for which an order is given, and puts it into that order. */
static int set_orders(struct map_merge *m)
{
    JSON_FOR_EACH_MEMBER (m->patch, order) {
        struct str name = list_of_directive(json_str(&order->key), STR(SET_ORDER));
        if (!name.p)
            continue;
        const struct json *old = find_old(m, name), *change = find(m->patch, &m->in_patch, name);
        bool is_list = name.n && order->value.type == JSON_ARRAY &&
                       (!old || old->type == JSON_ARRAY) && (!change || change->type == JSON_ARRAY);
        if (!is_list)
            return strategic_fail(m->s, PATCH_BAD_REQUEST,
                                  STR("invalid patch format of $setElementOrder"));
        m->has_orders = true;
        if (!old && !change)
            continue;
        struct json merged;
        int r = strategic_order_list(m->s, member_schema(m->schema, name, m->depth), old, change,
                                     &order->value, &merged);
        if (r < 0)
            return r;
        set_member(m, name, merged);
    }
    return 0;
}

/* The list was merged with its order already. */
static bool has_order(struct map_merge *m, struct str name)
{
    return m->has_orders && find(m->patch, &m->in_patch,
                                 arena_printf(m->s->arena, SET_ORDER "/%.*s", STR_ARG(name)));
}

static int delete_from(struct map_merge *m, struct str name, const struct json *gone)
{
    struct json *old = find_old(m, name);
    if (!name.n || (gone->type != JSON_ARRAY && gone->type != JSON_NULL))
        return strategic_fail(m->s, PATCH_BAD_REQUEST,
                              STR("invalid patch format of $deleteFromPrimitiveList"));
    if (json_is(old, JSON_ARRAY))
        *old = strategic_without(m->s->arena, old, gone);
    return 0;
}

static int merge_member(struct map_merge *m, struct str name, const struct json *change)
{
    struct json *old = find_old(m, name), merged;
    bool is_map = old && old->type == JSON_OBJECT && change->type == JSON_OBJECT;
    /* A directive that meets nothing to direct takes its place away. */
    if (change->type == JSON_NULL || (!is_map && json_get(change, STR(STRATEGIC_PATCH)))) {
        if (old)
            member_of(old)->key.type = JSON_NULL;
        m->has_removed = true;
        return 0;
    }
    int r = 0;
    const struct schema *schema = member_schema(m->schema, name, m->depth);
    if (is_map)
        r = strategic_merge_map(m->s, schema, old, change, m->depth + 1, &merged);
    else if (old && old->type == JSON_ARRAY && change->type == JSON_ARRAY)
        r = strategic_merge_list(m->s, schema, old, change, &merged);
    else
        merged = strategic_plain(m->s->arena, change);
    if (r == 0)
        set_member(m, name, merged);
    return r;
}

static int merge_members(struct map_merge *m)
{
    int r = 0;
    JSON_FOR_EACH_MEMBER (m->patch, change) {
        struct str key = json_str(&change->key), list = list_of_directive(key, STR(DELETE_FROM));
        if (list.p)
            r = delete_from(m, list, &change->value);
        else if (!is_directive(key) && !has_order(m, key))
            r = merge_member(m, key, &change->value);
        if (r < 0)
            return r;
    }
    return 0;
}

static void drop_removed(struct map_merge *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->out.n && m->has_removed; i++) {
        if (!is_removed(&m->out.members[i]))
            m->out.members[n++] = m->out.members[i];
    }
    if (m->has_removed)
        m->out.n = n;
}

/* A map of its own, with the members of one that may be shared. */
static struct json copy_of(struct arena *a, const struct json *object, size_t n_more)
{
    struct json copy = json_object();
    copy.members = arena_alloc(a, (json_count(object) + n_more + 1) * sizeof(*copy.members));
    copy.n = (uint32_t) json_count(object);
    if (copy.n)
        memcpy(copy.members, object->members, copy.n * sizeof(*copy.members));
    return copy;
}

static int apply_directive(struct strategic *s, const struct json *directive,
                           const struct json *patch, struct json *ret)
{
    struct str what = json_str(directive);
    if (str_is(what, "delete") && what.p) {
        *ret = json_object();
        return 0;
    }
    if (!what.p || !str_is(what, "replace"))
        return strategic_fail_directive(s, directive, patch);
    *ret = copy_of(s->arena, patch, 0);
    (void) json_remove(ret, STR(STRATEGIC_PATCH));
    return 0;
}

int strategic_merge_map(struct strategic *s, const struct schema *schema, const struct json *old,
                        const struct json *patch, unsigned depth, struct json *ret)
{
    const struct json *directive = json_get(patch, STR(STRATEGIC_PATCH));
    if (directive)
        return apply_directive(s, directive, patch, ret);
    CLEANUP(map_merge_done)
    struct map_merge m = {.s = s, .schema = schema, .patch = patch, .depth = depth};
    m.out = copy_of(s->arena, old, json_count(patch));
    int r = retain_keys(s, &m.out, patch);
    if (r < 0)
        return r;
    if (m.out.n > PATCH_SMALL_MAP)
        json_index_init(&m.in_out, &m.out);
    if (patch->n > PATCH_SMALL_MAP)
        json_index_init(&m.in_patch, patch);
    r = set_orders(&m);
    if (r == 0)
        r = merge_members(&m);
    if (r < 0)
        return r;
    drop_removed(&m);
    *ret = m.out;
    return 0;
}

/* ---- the types of the result ---------------------------------------------------------------- */

static const char *go_reflect_kind(const struct json *value)
{
    static const char *const names[] = {
        [JSON_BOOL] = "bool",     [JSON_INT] = "int64",   [JSON_DOUBLE] = "float64",
        [JSON_STRING] = "string", [JSON_ARRAY] = "slice", [JSON_OBJECT] = "map",
    };
    return names[value->type];
}

static int check_types(struct arena *a, const struct schema *schema, const struct json *value,
                       struct str *ret_error)
{
    if (!schema || value->type == JSON_NULL)
        return 0;
    const char *expected = NULL;
    if (schema->type == SCHEMA_OBJECT && value->type != JSON_OBJECT)
        expected = schema->n_properties ? "struct from:" : "map from";
    if (schema->type == SCHEMA_ARRAY && value->type != JSON_ARRAY)
        expected = "slice from";
    if (expected) {
        *ret_error = arena_printf(a, "cannot restore %s %s", expected, go_reflect_kind(value));
        return -EINVAL;
    }
    int r = 0;
    JSON_FOR_EACH_MEMBER (value, m) {
        if (r == 0)
            r = check_types(a, schema_member(schema, json_str(&m->key)), &m->value, ret_error);
    }
    JSON_FOR_EACH_ITEM (value, item) {
        if (r == 0)
            r = check_types(a, schema->items, item, ret_error);
    }
    return r;
}

int patch_strategic(struct arena *a, const struct json *old, const struct json *patch,
                    const struct schema *schema, struct json **ret_new,
                    struct patch_error *ret_error)
{
    struct strategic s = {.arena = a, .error = ret_error};
    struct json merged;
    if (patch->type != JSON_OBJECT)
        return strategic_fail(&s, PATCH_BAD_REQUEST,
                              arena_printf(a,
                                           "json: cannot unmarshal %s into Go value of type "
                                           "map[string]interface {}",
                                           patch_go_kind(patch)));
    int r = strategic_merge_map(&s, schema, old, patch, 0, &merged);
    if (r < 0)
        return r;
    struct str why;
    if (check_types(a, schema, &merged, &why) < 0) {
        *ret_error = (struct patch_error){PATCH_WRONG_TYPE, why, patch_go_text(a, patch)};
        return -EINVAL;
    }
    *ret_new = json_new(a, merged);
    return 0;
}
