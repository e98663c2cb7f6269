/* SPDX-License-Identifier: Apache-2.0 */
#include "random_message.h"

#include <math.h>

#include "protobuf/protojson_internal.h"

#define MAX_ITEMS 4

/* xorshift64*: the seed must not be 0. */
uint64_t source_next(struct source *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * UINT64_C(2685821657736338717);
}

size_t source_below(struct source *r, size_t limit)
{
    return (size_t) ((source_next(r) >> 16) % limit);
}

/* Small numbers, the ends of the ranges and anything. */
static uint64_t random_bits(struct source *r)
{
    static const uint64_t ends[] = {0,         1,          UINT64_MAX,           INT64_MAX,
                                    INT32_MAX, UINT32_MAX, (uint64_t) INT64_MIN, 0x80000000};
    switch (source_below(r, 4)) {
    case 0:
        return ends[source_below(r, N_ELEMENTS(ends))];
    case 1:
        return source_next(r);
    default:
        return source_below(r, 1000);
    }
}

static double random_double(struct source *r)
{
    static const double some[] = {0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, -123456.75};
    switch (source_below(r, 4)) {
    case 0:
        return some[source_below(r, N_ELEMENTS(some))];
    case 1: {
        uint64_t bits = source_next(r);
        double d;
        memcpy(&d, &bits, sizeof(d));
        return isnan(d) ? (double) NAN : d;
    }
    case 2:
        return source_below(r, 2) ? (double) INFINITY : (double) NAN;
    default:
        return (double) source_below(r, 100000) / 100;
    }
}

static float random_float(struct source *r)
{
    uint32_t bits = (uint32_t) source_next(r);
    float f;
    memcpy(&f, &bits, sizeof(f));
    if (source_below(r, 2))
        f = (float) source_below(r, 1000) / 8;
    return isnan(f) ? NAN : f;
}

static char *random_text(struct arena *a, struct source *r)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "0",
                                         " ",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\x7f",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "</"};
    BUF_AUTO text = {0};
    for (size_t n = source_below(r, 8); n > 0; n--)
        buf_append_str(&text, str_of(pieces[source_below(r, N_ELEMENTS(pieces))]));
    return arena_strz(a, buf_str(&text));
}

static ProtobufCBinaryData random_bytes(struct arena *a, struct source *r)
{
    size_t n = source_below(r, 9);
    uint8_t *bytes = arena_alloc(a, n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t) source_next(r);
    return (ProtobufCBinaryData){n, n ? bytes : NULL};
}

static ProtobufCMessage *random_time(struct arena *a, const ProtobufCMessageDescriptor *d,
                                     struct source *r)
{
    static const int32_t units[] = {1, 1000, 1000000, 1000000000};
    ProtobufCMessage *m = pb_new(a, d);
    int64_t seconds = (int64_t) (source_next(r) % UINT64_C(315537897600)) - INT64_C(62135596800);
    int32_t nanos = (int32_t) source_below(r, 1000000000);
    nanos -= nanos % units[source_below(r, N_ELEMENTS(units))];
    memcpy(pb_slot(m, &d->fields[0]), &seconds, sizeof(seconds));
    memcpy(pb_slot(m, &d->fields[1]), &nanos, sizeof(nanos));
    return m;
}

static void fill_value(struct arena *a, const ProtobufCFieldDescriptor *f, void *slot,
                       struct source *r, unsigned max_depth)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *) slot = source_below(r, 2) == 1;
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *) slot = random_float(r);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *) slot = random_double(r);
        break;
    case PROTOBUF_C_TYPE_STRING:
        *(char **) slot = random_text(a, r);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *) slot = random_bytes(a, r);
        break;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumDescriptor *d = f->descriptor;
        *(int32_t *) slot = source_below(r, 8) ? d->values[source_below(r, d->n_values)].value
                                               : (int32_t) source_next(r);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **) slot = random_message(a, f->descriptor, r, max_depth - 1);
        break;
    default: {
        uint64_t bits = random_bits(r);
        memcpy(slot, &bits, pb_value_bytes(f->type));
    }
    }
}

/* Keys in ascending order, each once: false, true; 0, 1, 2 ...; "k0", "k1" ... A value that is a
 * message is there. */
static void fill_entry(struct arena *a, ProtobufCMessage *entry, size_t position, struct source *r,
                       unsigned max_depth)
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0];
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    if (key->type == PROTOBUF_C_TYPE_STRING) {
        *(const char **) pb_slot(entry, key) = arena_printf(a, "k%zu", position).p;
    } else {
        uint64_t number = position;
        memcpy(pb_slot(entry, key), &number, pb_value_bytes(key->type));
    }
    fill_value(a, value, pb_slot(entry, value), r, max_depth);
}

static void fill_field(struct arena *a, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                       struct source *r, unsigned max_depth)
{
    if (pb_is_in_oneof(f)) {
        fill_value(a, f, pb_choose(m, f), r, max_depth);
    } else if (!pb_is_repeated(f)) {
        fill_value(a, f, pb_slot(m, f), r, max_depth);
    } else if (protojson_is_map(m->descriptor, f)) {
        const ProtobufCMessageDescriptor *d = f->descriptor;
        bool is_bool = d->fields[0].type == PROTOBUF_C_TYPE_BOOL;
        for (size_t i = 0, n = source_below(r, is_bool ? 3 : MAX_ITEMS); i < n; i++) {
            ProtobufCMessage *entry = pb_new(a, d);
            fill_entry(a, entry, i, r, max_depth - 1);
            *(ProtobufCMessage **) pb_append(a, m, f) = entry;
        }
    } else {
        for (size_t n = source_below(r, MAX_ITEMS); n > 0; n--)
            fill_value(a, f, pb_append(a, m, f), r, max_depth);
    }
}

ProtobufCMessage *random_message(struct arena *a, const ProtobufCMessageDescriptor *d,
                                 struct source *r, unsigned max_depth)
{
    if (protojson_is_timestamp(d))
        return random_time(a, d, r);
    ProtobufCMessage *m = pb_new(a, d);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        bool fits = f->type != PROTOBUF_C_TYPE_MESSAGE || max_depth > 2;
        if (fits && source_below(r, 3) > 0)
            fill_field(a, m, f, r, max_depth);
    }
    return m;
}
