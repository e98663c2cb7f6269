/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decode.h"

#include <errno.h>

#include "api/native.h"
#include "base/clock.h"

static const char *const type_words[] = {
    [JSON_NULL] = "null",     [JSON_BOOL] = "bool",     [JSON_INT] = "number",
    [JSON_DOUBLE] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
    [JSON_OBJECT] = "object",
};

static bool type_fits(const struct schema *s, const struct json *v)
{
    switch (s->type) {
    case SCHEMA_STRING:
        return v->type == JSON_STRING;
    case SCHEMA_INTEGER:
        return v->type == JSON_INT;
    case SCHEMA_NUMBER:
        return json_is_number(v);
    case SCHEMA_BOOLEAN:
        return v->type == JSON_BOOL;
    case SCHEMA_ARRAY:
        return v->type == JSON_ARRAY;
    case SCHEMA_OBJECT:
        return v->type == JSON_OBJECT;
    case SCHEMA_ANY:
        break;
    }
    return true;
}

static const char *go_type(const struct schema *s)
{
    switch (s->type) {
    case SCHEMA_STRING:
        return "string";
    case SCHEMA_INTEGER:
        return "int64";
    case SCHEMA_BOOLEAN:
        return "bool";
    case SCHEMA_ARRAY:
        return "[]v1.struct";
    default:
        return s->additional_properties ? "map[string]string" : "v1.ObjectMeta";
    }
}

static int check_meta(struct arena *a, const struct schema *s, const struct json *v,
                      const struct field_path *at, struct str *ret_error)
{
    int64_t ignored = 0;
    if (!s || v->type == JSON_NULL)
        return 0;
    if (!type_fits(s, v)) {
        *ret_error = arena_printf(
            a, "json: cannot unmarshal %s into Go struct field ObjectMeta.%.*s of type %s",
            type_words[v->type], STR_ARG(field_path_text(a, at)), go_type(s));
        return -EINVAL;
    }
    if (str_is(s->format, "date-time") && clock_parse(json_str(v), &ignored) < 0) {
        *ret_error = arena_printf(
            a,
            "parsing time \"%.*s\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"%.*s\" as "
            "\"2006\"",
            STR_ARG(json_str(v)), STR_ARG(json_str(v)));
        return -EINVAL;
    }
    JSON_FOR_EACH_MEMBER (v, m) {
        struct field_path inner = FIELD_NAME(at, json_str(&m->key));
        int r = check_meta(a, schema_member(s, json_str(&m->key)), &m->value, &inner, ret_error);
        if (r < 0)
            return r;
    }
    JSON_FOR_EACH_ITEM (v, item) {
        /* Go names the field, not the element. */
        int r = check_meta(a, s->items, item, at, ret_error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ObjectMeta leaves out every empty field. */
static void omit_empty(struct json *meta)
{
    for (size_t i = 0; i < meta->n;) {
        struct json_member *m = &meta->members[i];
        enum json_type type = m->value.type;
        bool is_container = type == JSON_ARRAY || type == JSON_OBJECT || type == JSON_STRING;
        if (type == JSON_NULL ||
            (is_container && m->value.n == 0 && !str_is(json_str(&m->key), "managedFields"))) {
            memmove(m, m + 1, (meta->n - i - 1) * sizeof(*m));
            meta->n--;
        } else {
            i++;
        }
    }
}

int decode_object(struct arena *a, const struct kind *kind, struct json *object,
                  struct str *ret_error)
{
    struct json *meta = json_get(object, STR("metadata"));
    struct field_path at = FIELD_NAME(NULL, STR("metadata"));
    if (meta) {
        int r = check_meta(a, schema_object_meta(), meta, &at, ret_error);
        if (r < 0)
            return r;
    }
    if (json_is(meta, JSON_OBJECT))
        omit_empty(meta);
    if (kind->is_native)
        return native_decode(a, kind, object, ret_error);
    *ret_error = schema_malformed(a, kind->schema, object);
    return ret_error->n ? -EINVAL : 0;
}
