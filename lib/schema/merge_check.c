/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "schema/merge.h"
#include "schema/patch.h"

#define MAX_COMPLAINTS 100 /* of one configuration */
#define SHORT_LIST 16      /* items up to which comparing each pair beats sorting */

/* One of the three; written down only when there is something to complain of. */
struct step {
    const struct step *up;
    struct str name;           /* of a member, or ... */
    const struct schema *list; /* of an item by its key: its list and ... */
    const struct json *item;   /* ... the item itself, or ... */
    size_t index;              /* of an item */
};

struct check {
    struct arena *arena;
    struct buf complaints; /* one per line, each behind two blanks */
    size_t n;
};

static void write_path(struct check *c, const struct step *at)
{
    if (!at)
        return;
    struct str element;
    write_path(c, at->up);
    if (at->name.p)
        buf_printf(&c->complaints, ".%.*s", STR_ARG(at->name));
    else if (at->list && element_of_item(c->arena, at->list, at->item, &element, NULL) == 0)
        element_write(c->arena, &c->complaints, element);
    else
        buf_printf(&c->complaints, "[%zu]", at->index);
}

static void complain(struct check *c, const struct step *at, struct str message)
{
    if (c->n++ >= MAX_COMPLAINTS)
        return;
    buf_append_str(&c->complaints, STR("\n  "));
    write_path(c, at);
    buf_append_str(&c->complaints, at ? STR(": ") : STR(""));
    buf_append_str(&c->complaints, message);
}

static void check_value(struct check *c, const struct step *at, const struct schema *schema,
                        const struct json *value, unsigned depth);

/* ---- scalars ------------------------------------------------------------------------------ */

static struct str go_type(const struct json *value)
{
    static const char *const names[] = {
        [JSON_NULL] = "<nil>",
        [JSON_BOOL] = "bool",
        [JSON_INT] = "int64",
        [JSON_DOUBLE] = "float64",
        [JSON_STRING] = "string",
        [JSON_ARRAY] = "[]interface {}",
        [JSON_OBJECT] = "map[string]interface {}",
    };
    return str_of(names[value->type]);
}

static void check_scalar(struct check *c, const struct step *at, const struct schema *schema,
                         const struct json *value)
{
    struct arena *a = c->arena;
    bool is_number = json_is_number(value), is_string = json_is(value, JSON_STRING);
    if (json_is(value, JSON_NULL))
        return;
    if (schema->int_or_string) {
        if (!is_number && !is_string && !json_is(value, JSON_BOOL))
            complain(c, at,
                     arena_printf(a, "expected any scalar, got &{%.*s}",
                                  STR_ARG(patch_go_text(a, value))));
    } else if (schema->type == SCHEMA_STRING && !is_string) {
        complain(c, at,
                 arena_printf(a, "expected string, got &value.valueUnstructured{Value:%.*s}",
                              STR_ARG(patch_go_syntax(a, value))));
    } else if ((schema->type == SCHEMA_INTEGER || schema->type == SCHEMA_NUMBER) && !is_number) {
        complain(
            c, at,
            arena_printf(a, "expected numeric (int or float), got %.*s", STR_ARG(go_type(value))));
    } else if (schema->type == SCHEMA_BOOLEAN && !json_is(value, JSON_BOOL)) {
        complain(
            c, at,
            arena_printf(a, "expected boolean, got &{%.*s}", STR_ARG(patch_go_text(a, value))));
    }
}

/* ---- lists -------------------------------------------------------------------------------- */

static void complain_of_kind(struct check *c, const struct step *at, const char *expected,
                             const struct json *value)
{
    complain(c, at,
             arena_printf(c->arena, "expected %s, got &{%.*s}", expected,
                          STR_ARG(patch_go_text(c->arena, value))));
}

static int compare_strs(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    return str_cmp(*x, *y);
}

static void complain_of_duplicates(struct check *c, const struct step *at, struct str *elements,
                                   size_t n)
{
    qsort(elements, n, sizeof(*elements), compare_strs);
    for (size_t i = 1; i < n && c->n < MAX_COMPLAINTS; i++) {
        if (!str_eq(elements[i], elements[i - 1]))
            continue;
        BUF_AUTO key = {0};
        element_write(c->arena, &key, elements[i]);
        complain(c, at,
                 arena_printf(c->arena, "duplicate entries for key %.*s", STR_ARG(buf_str(&key))));
    }
}

/* A short list whose items differ by their only key each, which needs no text to be seen. */
static bool is_surely_unique(const struct schema *list, const struct json *value)
{
    const struct json *keys[SHORT_LIST];
    if (value->n > SHORT_LIST)
        return false;
    for (uint32_t i = 0; i < value->n; i++) {
        keys[i] = element_only_key(list, &value->items[i]);
        for (uint32_t k = 0; keys[i] && k < i; k++) {
            if (json_identical(keys[k], keys[i]))
                return false;
        }
        if (!keys[i])
            return false;
    }
    return true;
}

static void check_keyed_items(struct check *c, const struct step *at, const struct schema *list,
                              const struct json *value, unsigned depth)
{
    if (is_surely_unique(list, value)) {
        JSON_FOR_EACH_ITEM (value, item)
            check_value(c, &(struct step){at, .list = list, .item = item}, list->items, item,
                        depth + 1);
        return;
    }
    struct str *elements = ARENA_ARRAY(c->arena, struct str, value->n + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (value, item) {
        struct str error = STR_NONE;
        if (element_of_item(c->arena, list, item, &elements[n], &error) < 0) {
            complain(c, at,
                     arena_printf(c->arena, "element %zu: %.*s", (size_t) (item - value->items),
                                  STR_ARG(error)));
            return;
        }
        check_value(c, &(struct step){at, .list = list, .item = item}, list->items, item,
                    depth + 1);
        n++;
    }
    complain_of_duplicates(c, at, elements, n);
}

static void check_list(struct check *c, const struct step *at, const struct schema *schema,
                       const struct json *value, unsigned depth)
{
    if (!json_is(value, JSON_ARRAY)) {
        complain_of_kind(c, at, "list", value);
        return;
    }
    if (schema->list_type != SCHEMA_LIST_ATOMIC) {
        check_keyed_items(c, at, schema, value, depth);
        return;
    }
    JSON_FOR_EACH_ITEM (value, item) {
        check_value(c, &(struct step){at, .index = (size_t) (item - value->items)}, schema->items,
                    item, depth + 1);
    }
}

/* ---- maps --------------------------------------------------------------------------------- */

static bool takes_unknown(const struct schema *schema)
{
    return schema->preserve_unknown_fields || schema->additional_properties;
}

static void check_map(struct check *c, const struct step *at, const struct schema *schema,
                      const struct json *value, unsigned depth)
{
    if (!json_is(value, JSON_OBJECT)) {
        complain_of_kind(c, at, "map", value);
        return;
    }
    JSON_FOR_EACH_MEMBER (value, m) {
        struct str name = json_str(&m->key);
        const struct step step = {at, .name = name};
        bool is_named = false;
        const struct schema *member = shape_find(schema, name, depth == 0, &is_named);
        if (!is_named && !takes_unknown(schema)) {
            complain(c, &step, STR("field not declared in schema"));
            return;
        }
        check_value(c, &step, member, &m->value, depth + 1);
    }
}

static void check_value(struct check *c, const struct step *at, const struct schema *schema,
                        const struct json *value, unsigned depth)
{
    if (shape_is_deduced(schema) || json_is(value, JSON_NULL) || c->n >= MAX_COMPLAINTS)
        return;
    if (schema->type == SCHEMA_ARRAY)
        check_list(c, at, schema, value, depth);
    else if (schema->type == SCHEMA_OBJECT ||
             (schema->type == SCHEMA_ANY && !schema->int_or_string))
        check_map(c, at, schema, value, depth);
    else
        check_scalar(c, at, schema, value);
}

int merge_check(struct arena *a, const struct schema *schema, const struct json *config,
                struct str *ret_error)
{
    struct check c = {.arena = a};
    if (schema)
        check_value(&c, NULL, schema, config, 0);
    if (c.n) {
        struct str text = arena_str(a, buf_str(&c.complaints));
        *ret_error = c.n == 1 ? str_from(text, 3) : arena_printf(a, "errors:%.*s", STR_ARG(text));
    }
    buf_done(&c.complaints);
    return c.n ? -EINVAL : 0;
}
