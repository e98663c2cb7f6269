/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <yyjson.h>

#include "json/json_internal.h"

struct convert {
    struct arena *arena;
    struct json_duplicates *duplicates; /* NULL: the caller trusts the text */
};

static struct json convert_value(const struct convert *c, yyjson_val *v,
                                 const struct field_path *path);

/* How many bytes open a container, strings or not; eight at a time, for it is on every parse's way.
 */
static size_t count_openers(struct str text)
{
    const uint64_t ones = 0x0101010101010101u, lows = ones * 0x7f;
    size_t n = 0, i = 0;
    for (; i + 8 <= text.n; i += 8) {
        uint64_t x;
        memcpy(&x, text.p + i, 8);
        x = (x | ones * 0x20) ^ (ones * '{'); /* a zero byte for each '{' and '[' */
        uint64_t zeros = ~(((x & lows) + lows) | x | lows) >> 7;
        n += zeros * ones >> 56; /* the sum of its bytes, each 0 or 1 */
    }
    for (; i < text.n; i++)
        n += (text.p[i] | 0x20) == '{';
    return n;
}

/* yyjson has no depth limit and would spend 16 bytes on each bracket, so this looks first. Brackets
 * in strings do not count. */
static bool is_too_deep(struct str text)
{
    if (count_openers(text) <= JSON_MAX_DEPTH)
        return false;
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_MAX_DEPTH)
                return true;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

static struct json convert_number(yyjson_val *v)
{
    if (yyjson_is_sint(v))
        return json_int(yyjson_get_sint(v));
    if (yyjson_is_real(v))
        return json_double(yyjson_get_real(v));
    uint64_t u = yyjson_get_uint(v);
    return u <= INT64_MAX ? json_int((int64_t) u) : json_double((double) u);
}

static struct json convert_array(const struct convert *c, yyjson_val *v,
                                 const struct field_path *path)
{
    size_t n = yyjson_arr_size(v);
    struct json array = json_array();
    if (n == 0)
        return array;
    array.items = arena_alloc(c->arena, n * sizeof(*array.items));
    array.n = (uint32_t) n;
    yyjson_val *item = yyjson_arr_get_first(v);
    for (size_t i = 0; i < n; i++, item = unsafe_yyjson_get_next(item)) {
        struct field_path here = FIELD_INDEX(path, (int64_t) i);
        array.items[i] = convert_value(c, item, &here);
    }
    return array;
}

static struct json convert_object(const struct convert *c, yyjson_val *v,
                                  const struct field_path *path)
{
    size_t n = yyjson_obj_size(v);
    struct json object = json_object();
    if (n == 0)
        return object;
    object.members = arena_alloc(c->arena, n * sizeof(*object.members));
    CLEANUP(json_keys_done) struct json_keys keys = {.object = &object};
    yyjson_val *key = unsafe_yyjson_get_first(v);
    for (size_t i = 0; i < n; i++, key = unsafe_yyjson_get_next(key + 1)) {
        struct str name = str_range(unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key));
        struct field_path here = FIELD_NAME(path, name);
        struct json_member *m = c->duplicates ? json_keys_find(&keys, name) : NULL;
        if (m)
            json_duplicates_add(c->arena, c->duplicates, &here, STR_NONE);
        else
            m = &object.members[object.n++];
        m->key = json_string(name);
        m->value = convert_value(c, key + 1, &here);
    }
    return object;
}

/* Recursion is bounded: is_too_deep() has counted. */
static struct json convert_value(const struct convert *c, yyjson_val *v,
                                 const struct field_path *path)
{
    switch (yyjson_get_type(v)) {
    case YYJSON_TYPE_BOOL:
        return json_bool(yyjson_get_bool(v));
    case YYJSON_TYPE_NUM:
        return convert_number(v);
    case YYJSON_TYPE_STR:
        return json_string(str_range(unsafe_yyjson_get_str(v), unsafe_yyjson_get_len(v)));
    case YYJSON_TYPE_ARR:
        return convert_array(c, v, path);
    case YYJSON_TYPE_OBJ:
        return convert_object(c, v, path);
    default:
        return json_null();
    }
}

/* yyjson unescapes in place and keeps pointing into this copy. */
static yyjson_doc *read_text(struct arena *a, struct str text, yyjson_read_err *ret_error)
{
    char *copy = arena_alloc(a, text.n + YYJSON_PADDING_SIZE);
    if (text.n)
        memcpy(copy, text.p, text.n);
    memset(copy + text.n, 0, YYJSON_PADDING_SIZE);
    return yyjson_read_opts(copy, text.n, YYJSON_READ_INSITU, NULL, ret_error);
}

static void explain(struct arena *a, struct str text, const yyjson_read_err *e,
                    struct json_parse_result *ret)
{
    if (json_go_error(a, text, &ret->error, &ret->error_at))
        return;
    ret->error = str_of(e->msg); /* a static text */
    ret->error_at = e->pos;
}

int json_parse(struct arena *a, struct str text, struct json_parse_result *ret)
{
    *ret = (struct json_parse_result){0};
    if (text.n > JSON_MAX_TEXT_BYTES) {
        ret->error = STR("json: text too large");
        return -E2BIG;
    }
    if (is_too_deep(text)) {
        ret->error = STR("exceeded max depth");
        return -E2BIG;
    }
    yyjson_read_err error = {0};
    yyjson_doc *doc = read_text(a, text, &error);
    if (!doc) {
        explain(a, text, &error, ret);
        return -EINVAL;
    }
    struct json_duplicates duplicates = {0};
    struct convert c = {a, &duplicates};
    ret->value = json_new(a, convert_value(&c, yyjson_doc_get_root(doc), NULL));
    ret->duplicates = duplicates.first;
    yyjson_doc_free(doc);
    return 0;
}

struct json *json_parse_quick(struct arena *a, struct str text)
{
    if (text.n > JSON_MAX_TEXT_BYTES || is_too_deep(text))
        return NULL;
    yyjson_doc *doc = read_text(a, text, NULL);
    if (!doc)
        return NULL;
    struct convert c = {a, NULL};
    struct json *v = json_new(a, convert_value(&c, yyjson_doc_get_root(doc), NULL));
    yyjson_doc_free(doc);
    return v;
}
