/* SPDX-License-Identifier: Apache-2.0 */
#include "gnostic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct reader {
    const unsigned char *p, *end;
};

static uint64_t read_varint(struct reader *r)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        assert_true(r->p < r->end);
        const unsigned char c = *r->p++;
        v |= (uint64_t) (c & 0x7f) << shift;
        if (c < 0x80)
            return v;
    }
    fail_msg("varint too long");
    return 0;
}

static struct str read_bytes(struct reader *r)
{
    const uint64_t n = read_varint(r);
    assert_true(n <= (uint64_t) (r->end - r->p));
    const struct str s = str_range((const char *) r->p, n);
    r->p += n;
    return s;
}

static double read_double(struct reader *r)
{
    assert_true(r->end - r->p >= 8);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t) r->p[i] << (8 * i);
    r->p += 8;
    double d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

static const struct gnostic_field *find_field(const struct gnostic_field *table,
                                              const char *message, int number)
{
    for (; table->message; table++)
        if (table->number == number && strcmp(table->message, message) == 0)
            return table;
    fail_msg("message %s has no field %d", message, number);
    return NULL;
}

static struct json decode(struct arena *a, const struct gnostic_field *table, const char *message,
                          struct str bytes);

static struct json decode_value(struct arena *a, const struct gnostic_field *table,
                                const struct gnostic_field *f, struct reader *r, int wire)
{
    if (strcmp(f->type, "bool") == 0 || strcmp(f->type, "int64") == 0) {
        assert_int_equal(wire, 0);
        const uint64_t v = read_varint(r);
        return f->type[0] == 'b' ? json_bool(v != 0) : json_int((int64_t) v);
    }
    if (strcmp(f->type, "double") == 0) {
        assert_int_equal(wire, 1);
        return json_double(read_double(r));
    }
    assert_int_equal(wire, 2);
    const struct str bytes = read_bytes(r);
    return strcmp(f->type, "string") == 0 ? json_string(bytes) : decode(a, table, f->type, bytes);
}

/* Messages that only stand around a value. */
static bool is_wrapper(const struct gnostic_field *table, const char *message)
{
    static const char *const names[] = {"ItemsItem",
                                        "SchemaItem",
                                        "AdditionalPropertiesItem",
                                        "TypeItem",
                                        "NonBodyParameter",
                                        "ParametersItem",
                                        "ResponseValue",
                                        "StringArray",
                                        "SecurityDefinitionsItem",
                                        "SchemaOrReference",
                                        "ResponseOrReference",
                                        "ParameterOrReference",
                                        "DefaultType",
                                        "RequestBodyOrReference",
                                        "SecuritySchemeOrReference"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (strcmp(names[i], message) == 0)
            return true;
    return table == gnostic_v2 && strcmp(message, "Parameter") == 0;
}

static struct json unwrap(const char *message, const struct json *fields)
{
    if (fields->n == 0) {
        const bool is_list = strcmp(message, "StringArray") == 0;
        return is_list ? json_array() : json_object();
    }
    assert_int_equal(fields->n, 1);
    struct json v = fields->members[0].value;
    /* One type, one schema of items: JSON has them without the list. */
    if (v.type == JSON_ARRAY && v.n == 1 && strcmp(message, "StringArray") != 0)
        v = v.items[0];
    return v;
}

/* {name, value} pairs become members. */
static bool is_named(const struct gnostic_field *f)
{
    return f->is_repeated && strncmp(f->type, "Named", 5) == 0;
}

static void add_field(struct arena *a, struct json *out, const struct gnostic_field *f,
                      struct json value)
{
    if (is_named(f)) {
        assert_int_equal(value.n, 2);
        const struct str name = json_get_str(&value, STR("name"));
        assert_null(json_get(out, name));
        json_append_member(a, out, name, *json_get(&value, STR("value")));
    } else if (f->is_repeated) {
        struct json *list = json_get(out, str_of(f->key));
        if (!list)
            list = json_append_member(a, out, str_of(f->key), json_array());
        json_push(a, list, value);
    } else {
        assert_null(json_get(out, str_of(f->key)));
        json_append_member(a, out, str_of(f->key), value);
    }
}

static struct json decode(struct arena *a, const struct gnostic_field *table, const char *message,
                          struct str bytes)
{
    struct reader r = {(const unsigned char *) bytes.p, (const unsigned char *) bytes.p + bytes.n};
    struct json out = json_object();
    while (r.p < r.end) {
        const uint64_t tag = read_varint(&r);
        const struct gnostic_field *f = find_field(table, message, (int) (tag >> 3));
        add_field(a, &out, f, decode_value(a, table, f, &r, (int) (tag & 7)));
    }
    if (strcmp(message, "Any") == 0) {
        const struct json *v = json_parse_quick(a, json_get_str(&out, STR("yaml")));
        assert_non_null(v);
        return *v;
    }
    return is_wrapper(table, message) ? unwrap(message, &out) : out;
}

struct json gnostic_decode(struct arena *a, const struct gnostic_field *table, struct str bytes)
{
    return decode(a, table, "Document", bytes);
}
