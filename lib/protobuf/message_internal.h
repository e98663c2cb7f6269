/* SPDX-License-Identifier: Apache-2.0 */
/* Where protobuf-c keeps a field of a message, by descriptor. Singular fields lie in the struct; a
 * repeated one is an array with its count beside it; members of a oneof share their place, and the
 * case beside it is the number of the one that is set. */
#pragma once

#include "protobuf/message.h"

static inline bool pb_is_repeated(const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED;
}
/* proto3's `optional` is a oneof of one member here. */
static inline bool pb_is_in_oneof(const ProtobufCFieldDescriptor *f)
{
    return (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}
/* The value of a singular field, or where the array of a repeated one is. */
static inline void *pb_slot(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (char *) (uintptr_t) m + f->offset;
}
static inline size_t *pb_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (size_t *) (void *) ((char *) (uintptr_t) m + f->quantifier_offset);
}
/* Which member of its oneof is set; 0: none. */
static inline uint32_t *pb_case(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (uint32_t *) (void *) ((char *) (uintptr_t) m + f->quantifier_offset);
}
/* Bytes of one value of that type, in the struct and in arrays. */
size_t pb_value_bytes(ProtobufCType type);
/* How many values the field has, and the place of each. 0 for a oneof's member that is not set and
 * for a message that is NULL; other singular fields always have one. */
size_t pb_n_values(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);
void *pb_value_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i);

/* An empty message in the arena. */
ProtobufCMessage *pb_new(struct arena *a, const ProtobufCMessageDescriptor *d);
/* The place of a further value of a repeated field, zeroed. The array is always grown by this. */
void *pb_append(struct arena *a, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);
/* Makes f the member of its oneof that is set. A member that was not is zero then. */
void *pb_choose(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);
