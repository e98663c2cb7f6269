/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>

#include "base/base64.h"
#include "protobuf/protojson_scalar.h"
#include "json/fieldpath.h"

/* Of a name in an error message. */
#define MAX_QUOTED_BYTES 100

struct reader {
    struct arena *arena;
    size_t used_before;
    enum protojson_unknown unknown;
    size_t n_values;
    size_t n_ignored;
    struct str error;
};

static int fail(struct reader *r, const struct field_path *path, const char *format, ...)
    PRINTF_LIKE(3, 4);

static int fail(struct reader *r, const struct field_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str what = arena_vprintf(r->arena, format, args);
    va_end(args);
    struct str place = field_path_text(r->arena, path);
    r->error = path ? arena_printf(r->arena, "%.*s: %.*s", STR_ARG(place), STR_ARG(what)) : what;
    return -EINVAL;
}

static int check_room(struct reader *r, size_t n_bytes, const struct field_path *path)
{
    size_t used = arena_used(r->arena) - r->used_before;
    if (used <= PB_MAX_UNPACKED_BYTES && n_bytes <= PB_MAX_UNPACKED_BYTES - used)
        return 0;
    return fail(r, path, "the message takes more than %zu bytes", PB_MAX_UNPACKED_BYTES);
}

static int read_object(struct reader *r, ProtobufCMessage *m, const struct json *value,
                       const struct field_path *path, unsigned depth);

static int read_message(struct reader *r, const ProtobufCMessageDescriptor *d,
                        const struct json *value, const struct field_path *path, unsigned depth,
                        ProtobufCMessage **ret_message)
{
    if (depth > PB_MAX_DEPTH)
        return fail(r, path, "nested deeper than %d messages", PB_MAX_DEPTH);
    int n = check_room(r, d->sizeof_message, path);
    if (n < 0)
        return n;
    ProtobufCMessage *m = pb_new(r->arena, d);
    if (!protojson_is_timestamp(d))
        n = read_object(r, m, value, path, depth);
    else if (!json_is(value, JSON_STRING) || protojson_timestamp_parse(json_str(value), m) < 0)
        n = fail(r, path, "expected an RFC 3339 time");
    *ret_message = m;
    return n;
}

/* 0: the name is unknown and to be ignored. */
static int read_enum_name(struct reader *r, const ProtobufCEnumDescriptor *d, struct str name,
                          const struct field_path *path, int32_t *ret_number)
{
    for (unsigned i = 0; i < d->n_value_names; i++) {
        if (str_is(name, d->values_by_name[i].name)) {
            *ret_number = d->values[d->values_by_name[i].index].value;
            return 1;
        }
    }
    if (r->unknown == PROTOJSON_IGNORE_UNKNOWN) {
        r->n_ignored++;
        return 0;
    }
    name.n = MIN(name.n, (size_t) MAX_QUOTED_BYTES);
    return fail(r, path, "unknown value \"%.*s\" of %s", STR_ARG(name), d->short_name);
}

/* 1: *ret_value is the value. 0: it is to be left out. */
static int read_value(struct reader *r, const ProtobufCFieldDescriptor *f, const struct json *value,
                      const struct field_path *path, unsigned depth,
                      union protojson_scalar *ret_value)
{
    if (++r->n_values > PB_MAX_VALUES)
        return fail(r, path, "the message has more than %zu values", PB_MAX_VALUES);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        int n = read_message(r, f->descriptor, value, path, depth + 1, &ret_value->message);
        return n < 0 ? n : 1;
    }
    if (f->type == PROTOBUF_C_TYPE_ENUM && json_is(value, JSON_STRING))
        return read_enum_name(r, f->descriptor, json_str(value), path, &ret_value->i32);
    if (json_is(value, JSON_STRING)) {
        int n = check_room(r, value->n, path);
        if (n < 0)
            return n;
    }
    const char *expected = protojson_scalar_read(r->arena, f->type, value, ret_value);
    return expected ? fail(r, path, "expected %s", expected) : 1;
}

/* The array may double. */
static int append_value(struct reader *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                        const struct field_path *path, const union protojson_scalar *value)
{
    size_t n_bytes = pb_value_bytes(f->type);
    int n = check_room(r, (*pb_count(m, f) + 1) * 2 * n_bytes, path);
    if (n < 0)
        return n;
    memcpy(pb_append(r->arena, m, f), value, n_bytes);
    return 0;
}

static int read_list(struct reader *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                     const struct json *list, const struct field_path *path, unsigned depth)
{
    if (!json_is(list, JSON_ARRAY))
        return fail(r, path, "expected an array");
    for (size_t i = 0; i < list->n; i++) {
        struct field_path at = FIELD_INDEX(path, (int64_t) i);
        union protojson_scalar value = {0};
        int n = read_value(r, f, &list->items[i], &at, depth, &value);
        if (n > 0)
            n = append_value(r, m, f, path, &value);
        if (n < 0)
            return n;
    }
    return 0;
}

/* 0: the value is to be left out, and its key with it. */
static int read_entry(struct reader *r, ProtobufCMessage *entry, const struct json_member *member,
                      const struct field_path *path, unsigned depth)
{
    const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;
    union protojson_scalar key = {0}, value = {0};
    if (!protojson_key_read(r->arena, fields[0].type, json_str(&member->key), &key))
        return fail(r, path, "a bad key for this map");
    int n = read_value(r, &fields[1], &member->value, path, depth, &value);
    if (n <= 0)
        return n;
    memcpy(pb_slot(entry, &fields[0]), &key, pb_value_bytes(fields[0].type));
    memcpy(pb_slot(entry, &fields[1]), &value, pb_value_bytes(fields[1].type));
    return 1;
}

/* An entry is a message too, and counts as one where nesting is limited. */
static int read_map(struct reader *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                    const struct json *map, const struct field_path *path, unsigned depth)
{
    const ProtobufCMessageDescriptor *d = f->descriptor;
    if (!json_is(map, JSON_OBJECT))
        return fail(r, path, "expected an object");
    if (depth >= PB_MAX_DEPTH)
        return fail(r, path, "nested deeper than %d messages", PB_MAX_DEPTH);
    JSON_FOR_EACH_MEMBER (map, member) {
        struct field_path at = FIELD_KEY(path, json_str(&member->key));
        int n = check_room(r, d->sizeof_message + member->key.n + 1, &at);
        if (n < 0)
            return n;
        union protojson_scalar entry = {.message = pb_new(r->arena, d)};
        n = read_entry(r, entry.message, member, &at, depth + 1);
        if (n > 0)
            n = append_value(r, m, f, path, &entry);
        if (n < 0)
            return n;
    }
    return 0;
}

static int read_singular(struct reader *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                         const struct json *v, const struct field_path *path, unsigned depth)
{
    if (pb_is_in_oneof(f) && *pb_case(m, f) != 0)
        return fail(r, path, "another field of the same oneof is set too");
    union protojson_scalar value = {0};
    int n = read_value(r, f, v, path, depth, &value);
    if (n <= 0)
        return n;
    void *slot = pb_is_in_oneof(f) ? pb_choose(m, f) : pb_slot(m, f);
    memcpy(slot, &value, pb_value_bytes(f->type));
    return 0;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *d,
                                                  struct str key)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        if (protojson_is_name_of(&d->fields[i], key))
            return &d->fields[i];
    }
    return NULL;
}

/* A field may stand under both its names, which are different if one has underscores. */
static bool has_other_name(struct reader *r, const struct json *object,
                           const ProtobufCFieldDescriptor *f, struct str key)
{
    if (str_find(key, '_') < 0)
        return false;
    return json_get(object, protojson_name(r->arena, str_of(f->name))) != NULL;
}

/* Known fields in there are not taken: they have names. */
static int read_unknown(struct reader *r, ProtobufCMessage *m, const struct json *value,
                        const struct field_path *path)
{
    struct str bytes = STR_NONE;
    const ProtobufCMessage *unpacked = NULL;
    if (json_is(value, JSON_STRING) && check_room(r, value->n, path) < 0)
        return -EINVAL;
    if (json_is(value, JSON_STRING) &&
        base64_decode(r->arena, json_str(value), BASE64_STANDARD, &bytes, NULL) == 0)
        unpacked = pb_unpack(r->arena, m->descriptor, bytes);
    if (!unpacked)
        return fail(r, path, "expected base64 of fields in their wire form");
    m->n_unknown_fields = unpacked->n_unknown_fields;
    m->unknown_fields = unpacked->unknown_fields;
    return check_room(r, 0, path);
}

static int read_member(struct reader *r, ProtobufCMessage *m, const struct json *object,
                       const struct json_member *member, const struct field_path *path,
                       unsigned depth)
{
    struct str key = json_str(&member->key);
    const ProtobufCFieldDescriptor *f = find_field(m->descriptor, key);
    if (!f && str_is(key, PROTOJSON_UNKNOWN))
        return read_unknown(r, m, &member->value, path);
    if (!f && r->unknown == PROTOJSON_REFUSE_UNKNOWN)
        return fail(r, path, "unknown field");
    if (!f) {
        r->n_ignored++;
        return 0;
    }
    if (has_other_name(r, object, f, key))
        return fail(r, path, "the field stands twice, under both its names");
    if (json_is(&member->value, JSON_NULL))
        return 0;
    if (protojson_is_map(m->descriptor, f))
        return read_map(r, m, f, &member->value, path, depth);
    if (pb_is_repeated(f))
        return read_list(r, m, f, &member->value, path, depth);
    return read_singular(r, m, f, &member->value, path, depth);
}

static int read_object(struct reader *r, ProtobufCMessage *m, const struct json *value,
                       const struct field_path *path, unsigned depth)
{
    if (!json_is(value, JSON_OBJECT))
        return fail(r, path, "expected an object");
    JSON_FOR_EACH_MEMBER (value, member) {
        struct field_path at = FIELD_NAME(path, json_str(&member->key));
        int n = read_member(r, m, value, member, &at, depth);
        if (n < 0)
            return n;
    }
    return 0;
}

ProtobufCMessage *protojson_read(struct arena *a, const ProtobufCMessageDescriptor *d,
                                 const struct json *value, enum protojson_unknown unknown,
                                 size_t *ret_n_ignored, struct str *ret_error)
{
    struct reader r = {.arena = a, .used_before = arena_used(a), .unknown = unknown};
    ProtobufCMessage *m = NULL;
    if (read_message(&r, d, value, NULL, 1, &m) < 0) {
        if (ret_error)
            *ret_error = r.error;
        return NULL;
    }
    if (ret_n_ignored)
        *ret_n_ignored = r.n_ignored;
    return m;
}
