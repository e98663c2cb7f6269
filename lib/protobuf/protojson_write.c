/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "protobuf/protojson_internal.h"

#define MAX_NUMBER_BYTES 32
#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))
#define MAX_FLOAT_DIGITS 9 /* a float that is read back from so many is the same */

struct writer {
    struct arena *arena;
    struct protojson_options options;
};

static struct json write_message(struct writer *w, const ProtobufCMessage *m);

/* Each byte that begins no character becomes U+FFFD, as in Go. */
static struct str replace_bad_bytes(struct arena *a, struct str s)
{
    static const struct str replacement = STR("\xef\xbf\xbd");
    char *text = arena_alloc(a, s.n * replacement.n + 1), *p = text;
    for (size_t i = 0; i < s.n;) {
        size_t n = 1;
        while (n <= 4 && !(i + n <= s.n && str_is_utf8(str_sub(s, i, i + n))))
            n++;
        bool is_bad = n > 4;
        p = is_bad ? mempcpy(p, replacement.p, replacement.n) : mempcpy(p, s.p + i, n);
        i += is_bad ? 1 : n;
    }
    return str_range(text, (size_t) (p - text));
}

static struct json write_text(struct writer *w, struct str s)
{
    return json_string(str_is_utf8(s) ? s : replace_bad_bytes(w->arena, s));
}

static struct json write_double(double d)
{
    if (isnan(d))
        return json_string(STR("NaN"));
    if (isinf(d))
        return json_string(d > 0 ? STR("Infinity") : STR("-Infinity"));
    return json_double(d);
}

/* The double whose shortest text is that of the float: 0.1, not 0.10000000149011612. Any decimal of
 * FLT_DIG digits survives a normal float, so the search starts there. */
static struct json write_float(float f)
{
    if (!isfinite(f))
        return write_double((double) f);
    char text[MAX_NUMBER_BYTES];
    double d = 0;
    int precision = fabsf(f) < FLT_MIN ? 1 : FLT_DIG;
    do {
        (void) snprintf(text, sizeof(text), "%.*g", precision, (double) f);
        d = strtod(text, NULL);
    } while (precision++ < MAX_FLOAT_DIGITS && (float) d != f);
    return json_double(d);
}

static struct json write_enum(const ProtobufCEnumDescriptor *d, int32_t number)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(d, number);
    return v ? json_string(str_of(v->name)) : json_int(number);
}

static struct json write_value(struct writer *w, const ProtobufCFieldDescriptor *f,
                               const void *value)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_int(*(const int32_t *) value);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_int(*(const uint32_t *) value);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return json_string(arena_printf(w->arena, "%" PRId64, *(const int64_t *) value));
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return json_string(arena_printf(w->arena, "%" PRIu64, *(const uint64_t *) value));
    case PROTOBUF_C_TYPE_FLOAT:
        return write_float(*(const float *) value);
    case PROTOBUF_C_TYPE_DOUBLE:
        return write_double(*(const double *) value);
    case PROTOBUF_C_TYPE_BOOL:
        return json_bool(*(const protobuf_c_boolean *) value);
    case PROTOBUF_C_TYPE_ENUM:
        return write_enum(f->descriptor, *(const int32_t *) value);
    case PROTOBUF_C_TYPE_STRING:
        return write_text(w, pb_text(*(char *const *) value));
    case PROTOBUF_C_TYPE_BYTES: {
        struct str bytes = pb_bytes(*(const ProtobufCBinaryData *) value);
        return json_string(base64_encode(w->arena, bytes, BASE64_STANDARD));
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        return write_message(w, *(ProtobufCMessage *const *) value);
    }
    return json_null();
}

static struct json write_list(struct writer *w, const ProtobufCMessage *m,
                              const ProtobufCFieldDescriptor *f)
{
    struct json list = json_array();
    for (size_t i = 0; i < pb_n_values(m, f); i++)
        json_push(w->arena, &list, write_value(w, f, pb_value_at(m, f, i)));
    return list;
}

/* ---- maps --------------------------------------------------------------------------------- */

struct entry {
    const ProtobufCMessage *message;
    struct str key; /* as it is written */
    size_t position;
};

/* Numbers by value, texts by bytes. */
static int compare_keys(const struct entry *a, const struct entry *b)
{
    const ProtobufCFieldDescriptor *f = &a->message->descriptor->fields[0];
    const void *x = pb_slot(a->message, f), *y = pb_slot(b->message, f);
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return str_cmp(a->key, b->key);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return ORDER(*(const int32_t *) x, *(const int32_t *) y);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return ORDER(*(const int64_t *) x, *(const int64_t *) y);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return ORDER(*(const uint64_t *) x, *(const uint64_t *) y);
    default:
        return ORDER(*(const uint32_t *) x, *(const uint32_t *) y);
    }
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int by_key = compare_keys(x, y);
    return by_key ? by_key : ORDER(x->position, y->position);
}

static struct str key_text(struct writer *w, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *f = &entry->descriptor->fields[0];
    struct json key = write_value(w, f, pb_slot(entry, f));
    return key.type == JSON_STRING ? json_str(&key) : json_text(w->arena, &key);
}

/* An entry without a value has the default one, also when that is a message. */
static struct json entry_value(struct writer *w, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *f = &entry->descriptor->fields[1];
    if (pb_n_values(entry, f) > 0)
        return write_value(w, f, pb_slot(entry, f));
    return write_message(w, pb_new(w->arena, f->descriptor));
}

/* Sorted by key; of entries with one key the last counts. */
static struct json write_map(struct writer *w, const ProtobufCMessage *m,
                             const ProtobufCFieldDescriptor *f)
{
    size_t n = pb_n_values(m, f);
    struct entry *entries = ARENA_ARRAY(w->arena, struct entry, n);
    for (size_t i = 0; i < n; i++) {
        const ProtobufCMessage *entry = *(ProtobufCMessage **) pb_value_at(m, f, i);
        entries[i] = (struct entry){entry, key_text(w, entry), i};
    }
    qsort(entries, n, sizeof(*entries), compare_entries);
    struct json map = json_object();
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || !str_eq(entries[i].key, entries[i + 1].key))
            json_append_member(w->arena, &map, entries[i].key, entry_value(w, entries[i].message));
    }
    return map;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* A field that is not there by being zero; a negative zero is there. */
static bool is_zero(const ProtobufCFieldDescriptor *f, const void *value)
{
    static const char zeros[sizeof(uint64_t)];
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return pb_text(*(char *const *) value).n == 0;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *) value)->len == 0;
    default:
        return memcmp(value, zeros, pb_value_bytes(f->type)) == 0;
    }
}

static bool is_written(const struct writer *w, const ProtobufCMessage *m,
                       const ProtobufCFieldDescriptor *f)
{
    if (pb_is_in_oneof(f))
        return pb_n_values(m, f) > 0;
    if (w->options.write_defaults)
        return true;
    if (pb_is_repeated(f) || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return pb_n_values(m, f) > 0;
    return !is_zero(f, pb_slot(m, f));
}

static struct json write_field(struct writer *w, const ProtobufCMessage *m,
                               const ProtobufCFieldDescriptor *f)
{
    if (protojson_is_map(m->descriptor, f))
        return write_map(w, m, f);
    if (pb_is_repeated(f))
        return write_list(w, m, f);
    return pb_n_values(m, f) > 0 ? write_value(w, f, pb_slot(m, f)) : json_null();
}

static struct str field_name(struct writer *w, const ProtobufCFieldDescriptor *f)
{
    struct str name = str_of(f->name);
    bool is_same = w->options.use_proto_names || str_find(name, '_') < 0;
    return is_same ? name : protojson_name(w->arena, name);
}

/* A message with nothing else in it has them as its wire form. */
static struct json write_unknown(struct writer *w, const ProtobufCMessage *m)
{
    ProtobufCMessage *alone = pb_new(w->arena, m->descriptor);
    alone->n_unknown_fields = m->n_unknown_fields;
    alone->unknown_fields = m->unknown_fields;
    return json_string(base64_encode(w->arena, pb_pack(w->arena, alone), BASE64_STANDARD));
}

static struct json write_message(struct writer *w, const ProtobufCMessage *m)
{
    if (protojson_is_timestamp(m->descriptor))
        return json_string(protojson_timestamp_text(w->arena, m));
    struct json object = json_object();
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (is_written(w, m, f))
            json_append_member(w->arena, &object, field_name(w, f), write_field(w, m, f));
    }
    if (w->options.keep_unknown && m->n_unknown_fields)
        json_append_member(w->arena, &object, STR(PROTOJSON_UNKNOWN), write_unknown(w, m));
    return object;
}

struct json *protojson_value(struct arena *a, const ProtobufCMessage *m,
                             const struct protojson_options *options)
{
    struct writer w = {.arena = a};
    if (options)
        w.options = *options;
    return json_new(a, write_message(&w, m));
}

void protojson_write(struct buf *to, const ProtobufCMessage *m,
                     const struct protojson_options *options)
{
    ARENA_AUTO a = arena_new();
    json_write(to, protojson_value(a, m, options));
}
