/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <yyjson.h>

#include "json/json_internal.h"

/* yyjson has no depth limit and spends 16 bytes on each bracket. Longer texts are looked at before
 * it gets them; for a short one it is cheaper to find out afterwards. */
#define SHORT_TEXT_BYTES ((size_t) 64 * 1024)

struct convert {
    struct arena *arena;
    struct json_duplicates *duplicates; /* NULL: the caller trusts the text */
    int depth;
    bool is_too_deep;
};

static struct json convert_container(struct convert *c, yyjson_val *v,
                                     const struct field_path *path);

/* Brackets in strings do not count. */
static bool is_too_deep(struct str text)
{
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

static inline struct json convert_string(yyjson_val *v)
{
    return (struct json){.type = JSON_STRING,
                         .is_plain = (unsafe_yyjson_get_subtype(v) & YYJSON_SUBTYPE_NOESC) != 0,
                         .n = (uint32_t) unsafe_yyjson_get_len(v),
                         .s = unsafe_yyjson_get_str(v)};
}

static inline struct json convert_scalar(yyjson_val *v)
{
    switch (unsafe_yyjson_get_type(v)) {
    case YYJSON_TYPE_BOOL:
        return json_bool(unsafe_yyjson_get_bool(v));
    case YYJSON_TYPE_NUM:
        return convert_number(v);
    case YYJSON_TYPE_STR:
        return convert_string(v);
    default:
        return json_null();
    }
}

/* The commonest value needs no call. */
static inline struct json convert_any(struct convert *c, yyjson_val *v, const struct field_path *at)
{
    return unsafe_yyjson_is_ctn(v) ? convert_container(c, v, at) : convert_scalar(v);
}

static struct json convert_array(struct convert *c, yyjson_val *v, const struct field_path *path)
{
    size_t n = unsafe_yyjson_get_len(v);
    struct json array = json_array();
    array.items = arena_alloc(c->arena, n * sizeof(*array.items));
    array.n = (uint32_t) n;
    yyjson_val *item = unsafe_yyjson_get_first(v);
    for (size_t i = 0; i < n; i++, item = unsafe_yyjson_get_next(item)) {
        struct field_path here = FIELD_INDEX(path, (int64_t) i);
        array.items[i] = convert_any(c, item, &here);
    }
    return array;
}

/* Of a text that is trusted: no key stands twice, no path is asked for. */
static struct json convert_trusted(struct convert *c, yyjson_val *v)
{
    size_t n = unsafe_yyjson_get_len(v);
    struct json object = json_object();
    object.members = arena_alloc(c->arena, n * sizeof(*object.members));
    object.n = (uint32_t) n;
    yyjson_val *key = unsafe_yyjson_get_first(v);
    for (size_t i = 0; i < n; i++, key = unsafe_yyjson_get_next(key + 1)) {
        struct json_member *m = &object.members[i];
        m->key = convert_string(key);
        m->value = convert_any(c, key + 1, NULL);
    }
    return object;
}

static struct json convert_object(struct convert *c, yyjson_val *v, const struct field_path *path)
{
    size_t n = unsafe_yyjson_get_len(v);
    struct json object = json_object();
    object.members = arena_alloc(c->arena, n * sizeof(*object.members));
    CLEANUP(json_keys_done) struct json_keys keys = {.object = &object};
    yyjson_val *key = unsafe_yyjson_get_first(v);
    for (size_t i = 0; i < n; i++, key = unsafe_yyjson_get_next(key + 1)) {
        struct str name = str_range(unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key));
        struct field_path here = FIELD_NAME(path, name);
        struct json_member *m = json_keys_find(&keys, name);
        if (m)
            json_duplicates_add(c->arena, c->duplicates, &here, STR_NONE);
        else
            m = &object.members[object.n++];
        m->key = convert_string(key);
        m->value = convert_any(c, key + 1, &here);
    }
    return object;
}

static struct json convert_container(struct convert *c, yyjson_val *v,
                                     const struct field_path *path)
{
    bool is_array = unsafe_yyjson_is_arr(v);
    if (c->depth == JSON_MAX_DEPTH) {
        c->is_too_deep = true;
        return json_null();
    }
    if (unsafe_yyjson_get_len(v) == 0)
        return is_array ? json_array() : json_object();
    c->depth++;
    struct json value = is_array        ? convert_array(c, v, path)
                        : c->duplicates ? convert_object(c, v, path)
                                        : convert_trusted(c, v);
    c->depth--;
    return value;
}

static struct json convert_value(struct convert *c, yyjson_val *v)
{
    return convert_any(c, v, NULL);
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

static int fail_depth(struct json_parse_result *ret)
{
    *ret = (struct json_parse_result){.error = STR("exceeded max depth")};
    return -E2BIG;
}

int json_parse(struct arena *a, struct str text, struct json_parse_result *ret)
{
    *ret = (struct json_parse_result){0};
    if (text.n > JSON_MAX_TEXT_BYTES) {
        ret->error = STR("json: text too large");
        return -E2BIG;
    }
    if (text.n > SHORT_TEXT_BYTES && is_too_deep(text))
        return fail_depth(ret);
    yyjson_read_err error = {0};
    yyjson_doc *doc = read_text(a, text, &error);
    if (!doc && is_too_deep(text))
        return fail_depth(ret);
    if (!doc) {
        explain(a, text, &error, ret);
        return -EINVAL;
    }
    struct json_duplicates duplicates = {0};
    struct convert c = {.arena = a, .duplicates = &duplicates};
    ret->value = json_new(a, convert_value(&c, yyjson_doc_get_root(doc)));
    ret->duplicates = duplicates.first;
    yyjson_doc_free(doc);
    return c.is_too_deep ? fail_depth(ret) : 0;
}

struct json *json_parse_quick(struct arena *a, struct str text)
{
    if (text.n > JSON_MAX_TEXT_BYTES || (text.n > SHORT_TEXT_BYTES && is_too_deep(text)))
        return NULL;
    yyjson_doc *doc = read_text(a, text, NULL);
    if (!doc)
        return NULL;
    struct convert c = {.arena = a};
    struct json *v = json_new(a, convert_value(&c, yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
    return c.is_too_deep ? NULL : v;
}
