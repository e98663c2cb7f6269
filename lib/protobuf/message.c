/* SPDX-License-Identifier: Apache-2.0 */
#include "protobuf/message_internal.h"

size_t pb_value_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return 4;
    }
}

size_t pb_n_values(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (pb_is_repeated(f))
        return *pb_count(m, f);
    if (pb_is_in_oneof(f) && *pb_case(m, f) != f->id)
        return 0;
    return f->type != PROTOBUF_C_TYPE_MESSAGE || *(void **) pb_slot(m, f);
}

void *pb_value_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i)
{
    void *slot = pb_slot(m, f);
    return pb_is_repeated(f) ? *(char **) slot + i * pb_value_bytes(f->type) : slot;
}

ProtobufCMessage *pb_new(struct arena *a, const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = arena_zalloc(a, d->sizeof_message);
    protobuf_c_message_init(d, m);
    return m;
}

void *pb_append(struct arena *a, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    size_t n_bytes = pb_value_bytes(f->type);
    void **array = pb_slot(m, f);
    size_t *n = pb_count(m, f);
    *array = arena_grow(a, *array, *n, n_bytes);
    return memset((char *) *array + (*n)++ * n_bytes, 0, n_bytes);
}

void *pb_choose(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    void *slot = pb_slot(m, f);
    if (*pb_case(m, f) != f->id)
        memset(slot, 0, pb_value_bytes(f->type));
    *pb_case(m, f) = f->id;
    return slot;
}

void pb_share_field(ProtobufCMessage *to, const ProtobufCMessage *from, unsigned number)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(from->descriptor, number);
    if (pb_is_repeated(f))
        *pb_count(to, f) = *pb_count(from, f);
    else if (pb_is_in_oneof(f))
        *pb_case(to, f) = *pb_case(from, f);
    memcpy(pb_slot(to, f), pb_slot(from, f),
           pb_is_repeated(f) ? sizeof(void *) : pb_value_bytes(f->type));
}

struct str pb_pack(struct arena *a, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *packed = arena_alloc(a, n);
    return str_range((const char *) packed, protobuf_c_message_pack(m, packed));
}

/* Calls fn for m and every message below it, depth first. */
static void walk(ProtobufCMessage *m, void (*fn)(void *ctx, ProtobufCMessage *found), void *ctx)
{
    fn(ctx, m);
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        for (size_t k = 0; k < pb_n_values(m, f); k++)
            walk(*(ProtobufCMessage **) pb_value_at(m, f, k), fn, ctx);
    }
}

struct search {
    const ProtobufCMessageDescriptor *descriptor;
    void (*fn)(void *ctx, ProtobufCMessage *found);
    void *ctx;
};

static void visit_if_sought(void *ctx, ProtobufCMessage *found)
{
    struct search *s = ctx;
    if (found->descriptor == s->descriptor)
        s->fn(s->ctx, found);
}

void pb_visit(ProtobufCMessage *m, const ProtobufCMessageDescriptor *d,
              void (*fn)(void *ctx, ProtobufCMessage *found), void *ctx)
{
    struct search s = {d, fn, ctx};
    walk(m, visit_if_sought, &s);
}

static void add_unknown(void *ctx, ProtobufCMessage *found)
{
    *(size_t *) ctx += found->n_unknown_fields;
}

size_t pb_count_unknown(const ProtobufCMessage *m)
{
    size_t n = 0;
    walk((ProtobufCMessage *) (uintptr_t) m, add_unknown, &n);
    return n;
}
