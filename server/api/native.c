/* SPDX-License-Identifier: Apache-2.0 */
#include "api/native.h"

#include <ctype.h>
#include <errno.h>

#include "api/quantity.h"
#include "api/timestamp.h"
#include "base/base64.h"

struct decoder {
    struct arena *arena;
    bool is_zero; /* only defaults that are Go's zero values */
    struct str error;
};

/* Where a value stands: the JSON path of names and the Go struct around it, for messages alone. */
struct place {
    const struct place *parent;
    struct str name;
    struct str in_struct;
};

static int decode_value(struct decoder *d, const struct schema *s, struct json *v,
                        const struct place *at);

/* ---- messages ----------------------------------------------------------------------------- */

static struct str go_type(struct arena *a, const struct schema *s, struct str name)
{
    switch (s->type) {
    case SCHEMA_STRING:
        return STR("string");
    case SCHEMA_INTEGER:
        return str_is(s->format, "int32") ? STR("int32") : STR("int64");
    case SCHEMA_NUMBER:
        return STR("float64");
    case SCHEMA_BOOLEAN:
        return STR("bool");
    case SCHEMA_ARRAY:
        return arena_printf(a, "[]%.*s",
                            STR_ARG(s->items ? go_type(a, s->items, name) : STR("interface {}")));
    case SCHEMA_OBJECT:
        if (s->additional_properties)
            return arena_printf(a, "map[string]%.*s",
                                STR_ARG(go_type(a, s->additional_properties, name)));
        return arena_printf(a, "v1.%c%.*s", name.n ? toupper(name.p[0]) : 'X',
                            STR_ARG(str_from(name, 1)));
    case SCHEMA_ANY:
        break;
    }
    return STR("interface {}");
}

static struct str place_path(struct arena *a, const struct place *at)
{
    if (!at->parent || at->parent->name.n == 0)
        return at->name;
    return arena_printf(a, "%.*s.%.*s", STR_ARG(place_path(a, at->parent)), STR_ARG(at->name));
}

static int fail_type(struct decoder *d, const struct schema *s, const struct json *v,
                     const struct place *at)
{
    static const char *const words[] = {
        [JSON_NULL] = "null",     [JSON_BOOL] = "bool",     [JSON_INT] = "number",
        [JSON_DOUBLE] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };
    d->error = arena_printf(
        d->arena, "json: cannot unmarshal %s into Go struct field %.*s.%.*s of type %.*s",
        words[v->type], STR_ARG(at->in_struct), STR_ARG(place_path(d->arena, at)),
        STR_ARG(go_type(d->arena, s, at->name)));
    return -EINVAL;
}

/* ---- scalars ------------------------------------------------------------------------------ */

static bool type_fits(const struct schema *s, const struct json *v)
{
    if (s->int_or_string)
        return v->type == JSON_STRING || json_is_number(v);
    switch (s->type) {
    case SCHEMA_STRING:
        return v->type == JSON_STRING;
    case SCHEMA_INTEGER:
        return v->type == JSON_INT &&
               (!str_is(s->format, "int32") || (v->i >= INT32_MIN && v->i <= INT32_MAX));
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

static int decode_bytes(struct decoder *d, struct json *v)
{
    struct str bytes;
    size_t bad_at = 0;
    if (base64_decode(d->arena, json_str(v), BASE64_STANDARD, &bytes, &bad_at) < 0) {
        d->error = arena_printf(d->arena, "illegal base64 data at input byte %zu", bad_at);
        return -EINVAL;
    }
    /* The decoder skips line breaks; Go would not write them again. */
    if (str_find(json_str(v), '\n') >= 0 || str_find(json_str(v), '\r') >= 0)
        *v = json_string(base64_encode(d->arena, bytes, BASE64_STANDARD));
    return 0;
}

static int decode_time(struct decoder *d, struct json *v, enum timestamp_precision precision)
{
    int64_t wall_us;
    const int r = timestamp_parse(d->arena, json_str(v), precision, &wall_us, &d->error);
    if (r < 0)
        return r;
    *v = json_string(timestamp_text(d->arena, wall_us, precision));
    return 0;
}

static int decode_quantity(struct decoder *d, struct json *v)
{
    struct quantity q;
    const struct str text = v->type == JSON_STRING ? str_trim(json_str(v)) : json_text(d->arena, v);
    const int r = quantity_parse(text, &q, &d->error);
    if (r < 0)
        return r;
    quantity_round_milli(&q);
    *v = json_string(quantity_text(d->arena, &q));
    return 0;
}

static int decode_format(struct decoder *d, const struct schema *s, struct json *v)
{
    if (str_is(s->format, "quantity"))
        return decode_quantity(d, v);
    if (v->type != JSON_STRING)
        return 0;
    if (str_is(s->format, "byte"))
        return decode_bytes(d, v);
    if (str_is(s->format, "date-time"))
        return decode_time(d, v, TIMESTAMP_SECONDS);
    if (str_is(s->format, "micro-time"))
        return decode_time(d, v, TIMESTAMP_MICROS);
    return 0;
}

/* ---- containers --------------------------------------------------------------------------- */

/* Go's idea of a missing value: null, or empty where the field is no pointer. A struct that is
 * there stays. */
static bool is_absent(const struct schema *s, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        return true;
    if (v->type == JSON_OBJECT && !s->additional_properties)
        return false;
    return !s->nullable && json_is_empty(v);
}

/* What a missing value becomes, or NULL: it stays out. `default: null` means nothing to schemas,
 * but a null on the wire here. */
static const struct json *default_of(const struct decoder *d, const struct schema *s)
{
    const struct json *value =
        s->default_value ? s->default_value : json_get(s->source, STR("default"));
    return value && d->is_zero && !json_is_empty(value) ? NULL : value;
}

static int decode_field(struct decoder *d, const struct schema *s, const struct json *v,
                        const struct place *at, struct json *out)
{
    const bool is_missing = is_absent(s, v);
    const struct json *given = is_missing ? default_of(d, s) : v;
    if (!given)
        return 0;
    struct json value = is_missing ? json_clone(d->arena, given) : *given;
    const int r = value.type == JSON_NULL ? 0 : decode_value(d, s, &value, at);
    if (r < 0)
        return r;
    (void) json_append_member(d->arena, out, at->name, value);
    return 0;
}

static struct str struct_name(struct arena *a, const struct place *at)
{
    if (at->name.n == 0)
        return at->in_struct;
    return arena_printf(a, "%.*s%c%.*s", STR_ARG(at->in_struct), toupper(at->name.p[0]),
                        STR_ARG(str_from(at->name, 1)));
}

/* Members the schema does not know (apiVersion, kind and metadata among them) come first, as they
 * were. */
static int decode_struct(struct decoder *d, const struct schema *s, struct json *v,
                         const struct place *at)
{
    struct json out = json_object();
    JSON_FOR_EACH_MEMBER (v, m)
        if (!map_get(&s->properties, json_str(&m->key)))
            (void) json_append_member(d->arena, &out, json_str(&m->key), m->value);
    const struct str name = struct_name(d->arena, at);
    for (size_t i = 0; i < s->n_properties; i++) {
        const struct place inner = {at, s->property_names[i], name};
        const struct schema *member = map_get(&s->properties, inner.name);
        const int r = decode_field(d, member, json_get(v, inner.name), &inner, &out);
        if (r < 0)
            return r;
    }
    *v = out;
    return 0;
}

/* Null among the values of a map or list becomes the zero value. */
static void replace_null(const struct schema *s, struct json *v)
{
    if (v->type != JSON_NULL)
        return;
    if (s->type == SCHEMA_OBJECT)
        *v = json_object();
    else if (s->type == SCHEMA_STRING)
        *v = json_string(STR(""));
    else if (s->int_or_string)
        *v = json_string(STR("0"));
}

static int decode_map(struct decoder *d, const struct schema *s, struct json *v,
                      const struct place *at)
{
    struct json out = json_object();
    JSON_FOR_EACH_MEMBER (v, m) {
        struct json value = m->value;
        replace_null(s->additional_properties, &value);
        const int r = decode_value(d, s->additional_properties, &value, at);
        if (r < 0)
            return r;
        (void) json_append_member(d->arena, &out, json_str(&m->key), value);
    }
    json_sort_members(&out);
    *v = out;
    return 0;
}

static int decode_list(struct decoder *d, const struct schema *s, struct json *v,
                       const struct place *at)
{
    struct json out = json_array();
    JSON_FOR_EACH_ITEM (v, item) {
        struct json value = *item;
        replace_null(s->items, &value);
        const int r = decode_value(d, s->items, &value, at);
        if (r < 0)
            return r;
        (void) json_push(d->arena, &out, value);
    }
    *v = out;
    return 0;
}

static int decode_value(struct decoder *d, const struct schema *s, struct json *v,
                        const struct place *at)
{
    if (!type_fits(s, v))
        return fail_type(d, s, v, at);
    if (s->preserve_unknown_fields)
        return 0;
    if (v->type == JSON_OBJECT && s->n_properties > 0)
        return decode_struct(d, s, v, at);
    if (v->type == JSON_OBJECT && s->additional_properties)
        return decode_map(d, s, v, at);
    if (v->type == JSON_ARRAY && s->items)
        return decode_list(d, s, v, at);
    return decode_format(d, s, v);
}

int native_decode(struct arena *a, const struct kind *kind, struct json *object,
                  struct str *ret_error)
{
    struct decoder d = {.arena = a};
    const struct place root = {.in_struct = kind->kind};
    if (!kind->schema || decode_value(&d, kind->schema, object, &root) >= 0)
        return 0;
    *ret_error = d.error;
    return -EINVAL;
}

struct json native_zero(struct arena *a, const struct kind *kind)
{
    struct decoder d = {.arena = a, .is_zero = true};
    const struct place root = {.in_struct = kind->kind};
    struct json object = json_object();
    if (kind->schema)
        (void) decode_value(&d, kind->schema, &object, &root);
    return object;
}
