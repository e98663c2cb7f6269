/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format into protobuf-c's structs. protobuf-c's own decoder knows no limits, keeps its
 * work space until the end, refuses the message for one field whose wire type is another than it
 * knows, and loses unknown fields of a message it merges; this one stops where a limit is met, and
 * otherwise reads as the specification and Go's decoder do. */
#include "protobuf/message_internal.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_64BIT = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_32BIT = 5,
};
#define MAX_FIELD_NUMBER ((1U << 29) - 1)
#define MAX_VARINT_BYTES 10

/* One field as it stands in the bytes. */
struct wire {
    uint32_t number;
    enum wire_type type;
    uint64_t integer;  /* WIRE_VARINT, WIRE_64BIT, WIRE_32BIT */
    struct str bytes;  /* WIRE_BYTES */
    struct str behind; /* all that follows the tag */
};

struct decoder {
    struct arena *arena;
    size_t used_before;
    size_t n_values;
};

static bool has_room(const struct decoder *d, size_t n_bytes)
{
    size_t used = arena_used(d->arena) - d->used_before;
    return used <= PB_MAX_UNPACKED_BYTES && n_bytes <= PB_MAX_UNPACKED_BYTES - used;
}

static bool take_varint(struct str *in, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < in->n && i < MAX_VARINT_BYTES; i++) {
        uint8_t byte = (uint8_t) in->p[i];
        if (i == MAX_VARINT_BYTES - 1 && byte > 1)
            return false;
        v |= (uint64_t) (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *in = str_from(*in, i + 1);
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool take_fixed(struct str *in, size_t n, uint64_t *ret)
{
    if (in->n < n)
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t) (uint8_t) in->p[i] << (8 * i);
    *in = str_from(*in, n);
    *ret = v;
    return true;
}

static bool take_bytes(struct str *in, struct str *ret)
{
    uint64_t n = 0;
    if (!take_varint(in, &n) || n > in->n)
        return false;
    *ret = str_sub(*in, 0, (size_t) n);
    *in = str_from(*in, (size_t) n);
    return true;
}

static bool take_field(struct str *in, unsigned depth, struct wire *ret);

/* Nobody sends groups any more; they are skipped so that they can be kept. */
static bool skip_group(struct str *in, uint32_t number, unsigned depth)
{
    if (depth > PB_MAX_DEPTH)
        return false;
    for (;;) {
        struct wire w;
        if (!take_field(in, depth, &w))
            return false;
        if (w.type == WIRE_GROUP_END)
            return w.number == number;
    }
}

static bool take_value(struct str *in, unsigned depth, struct wire *w)
{
    switch (w->type) {
    case WIRE_VARINT:
        return take_varint(in, &w->integer);
    case WIRE_64BIT:
        return take_fixed(in, 8, &w->integer);
    case WIRE_32BIT:
        return take_fixed(in, 4, &w->integer);
    case WIRE_BYTES:
        return take_bytes(in, &w->bytes);
    case WIRE_GROUP:
        return skip_group(in, w->number, depth + 1);
    case WIRE_GROUP_END:
        return true;
    default:
        return false;
    }
}

static bool take_field(struct str *in, unsigned depth, struct wire *ret)
{
    uint64_t tag = 0;
    if (!take_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER)
        return false;
    *ret = (struct wire){.number = (uint32_t) (tag >> 3), .type = tag & 7};
    const char *start = in->p;
    if (!take_value(in, depth, ret))
        return false;
    ret->behind = str_range(start, (size_t) (in->p - start));
    return true;
}

static enum wire_type wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static void store_32(void *slot, uint32_t v)
{
    memcpy(slot, &v, sizeof(v));
}

static void store_64(void *slot, uint64_t v)
{
    memcpy(slot, &v, sizeof(v));
}

static void store_number(void *slot, ProtobufCType type, uint64_t v)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *) slot = v != 0;
        break;
    case PROTOBUF_C_TYPE_SINT32:
        store_32(slot, ((uint32_t) v >> 1) ^ (0 - ((uint32_t) v & 1)));
        break;
    case PROTOBUF_C_TYPE_SINT64:
        store_64(slot, (v >> 1) ^ (0 - (v & 1)));
        break;
    default:
        if (pb_value_bytes(type) == sizeof(uint64_t))
            store_64(slot, v);
        else
            store_32(slot, (uint32_t) v);
    }
}

/* C strings cannot hold a NUL. What stands behind one must not vanish, so each becomes U+FFFD. */
static char *replace_nuls(struct decoder *d, struct str s)
{
    static const struct str replacement = STR("\xef\xbf\xbd");
    if (s.n > PB_MAX_UNPACKED_BYTES || !has_room(d, s.n * replacement.n + 1))
        return NULL;
    char *text = arena_alloc(d->arena, s.n * replacement.n + 1), *p = text;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i])
            *p++ = s.p[i];
        else
            p = mempcpy(p, replacement.p, replacement.n);
    }
    *p = '\0';
    return text;
}

static bool store_bytes(struct decoder *d, ProtobufCType type, void *slot, struct str bytes)
{
    if (bytes.n >= PB_MAX_UNPACKED_BYTES || !has_room(d, bytes.n + 1))
        return false;
    if (type == PROTOBUF_C_TYPE_BYTES) {
        *(ProtobufCBinaryData *) slot = pb_data(bytes.n ? arena_str(d->arena, bytes) : STR_NONE);
        return true;
    }
    bool has_nul = str_find(bytes, '\0') >= 0;
    char *text = has_nul ? replace_nuls(d, bytes) : arena_strz(d->arena, bytes);
    *(char **) slot = text;
    return text != NULL;
}

static bool unpack_into(struct decoder *d, ProtobufCMessage *m, struct str in, unsigned depth);

/* A message that occurs again is merged into the first. */
static bool store_message(struct decoder *d, const ProtobufCMessageDescriptor *type,
                          ProtobufCMessage **slot, struct str bytes, unsigned depth)
{
    if (!*slot) {
        if (!has_room(d, type->sizeof_message))
            return false;
        *slot = pb_new(d->arena, type);
    }
    return unpack_into(d, *slot, bytes, depth + 1);
}

static bool store_value(struct decoder *d, const ProtobufCFieldDescriptor *f, void *slot,
                        const struct wire *w, unsigned depth)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return store_message(d, f->descriptor, slot, w->bytes, depth);
    if (w->type == WIRE_BYTES)
        return store_bytes(d, f->type, slot, w->bytes);
    store_number(slot, f->type, w->integer);
    return true;
}

/* The array may double. */
static void *append(struct decoder *d, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    size_t n_bytes = (*pb_count(m, f) + 1) * 2 * pb_value_bytes(f->type);
    return has_room(d, n_bytes) ? pb_append(d->arena, m, f) : NULL;
}

static bool store_packed(struct decoder *d, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                         struct str in)
{
    struct wire w = {.type = wire_type_of(f->type)};
    while (in.n > 0) {
        if (++d->n_values > PB_MAX_VALUES || !take_value(&in, 0, &w))
            return false;
        void *slot = append(d, m, f);
        if (!slot)
            return false;
        store_number(slot, f->type, w.integer);
    }
    return true;
}

static bool keep_unknown(struct decoder *d, ProtobufCMessage *m, const struct wire *w)
{
    size_t n = m->n_unknown_fields;
    if (!has_room(d, w->behind.n + (n + 1) * 2 * sizeof(*m->unknown_fields)))
        return false;
    m->unknown_fields = arena_grow(d->arena, m->unknown_fields, n, sizeof(*m->unknown_fields));
    m->unknown_fields[m->n_unknown_fields++] = (ProtobufCMessageUnknownField){
        .tag = w->number,
        .wire_type = (ProtobufCWireType) w->type,
        .len = w->behind.n,
        .data = (uint8_t *) arena_strz(d->arena, w->behind),
    };
    return true;
}

static bool store_field(struct decoder *d, ProtobufCMessage *m, const struct wire *w,
                        unsigned depth)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(m->descriptor, w->number);
    if (!f)
        return keep_unknown(d, m, w);
    enum wire_type type = wire_type_of(f->type);
    if (pb_is_repeated(f) && w->type == WIRE_BYTES && type != WIRE_BYTES)
        return store_packed(d, m, f, w->bytes);
    if (w->type != type)
        return keep_unknown(d, m, w);
    void *slot = pb_is_repeated(f)   ? append(d, m, f)
                 : pb_is_in_oneof(f) ? pb_choose(m, f)
                                     : pb_slot(m, f);
    return slot && store_value(d, f, slot, w, depth);
}

static bool unpack_into(struct decoder *d, ProtobufCMessage *m, struct str in, unsigned depth)
{
    if (depth > PB_MAX_DEPTH)
        return false;
    while (in.n > 0) {
        struct wire w;
        if (++d->n_values > PB_MAX_VALUES || !take_field(&in, depth, &w) ||
            w.type == WIRE_GROUP_END || !store_field(d, m, &w, depth))
            return false;
    }
    return true;
}

ProtobufCMessage *pb_unpack(struct arena *a, const ProtobufCMessageDescriptor *type,
                            struct str bytes)
{
    struct decoder d = {.arena = a, .used_before = arena_used(a)};
    ProtobufCMessage *m = pb_new(a, type);
    return unpack_into(&d, m, bytes, 1) ? m : NULL;
}
