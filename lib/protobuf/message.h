/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf messages in arenas: unpacked from bytes of outside within limits, packed, walked. Over
 * protobuf-c's descriptors, so that one function serves every message. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

/* Nesting of messages that outside bytes may have. */
#define PB_MAX_DEPTH 64
/* Values (fields, elements) in one message with all below it. */
#define PB_MAX_VALUES ((size_t) 1024 * 1024)
/* Memory that one unpacked message may take: two bytes of an empty message become a whole struct.
 */
#define PB_MAX_UNPACKED_BYTES ((size_t) 128 * 1024 * 1024)

/* In the arena; never freed singly. NULL: these bytes are no such message, or are beyond a limit.
 * Strings that are not UTF-8 and numbers no enum knows are taken as they are, but a NUL in a string
 * becomes U+FFFD; unknown fields are kept and packed again. */
ProtobufCMessage *pb_unpack(struct arena *a, const ProtobufCMessageDescriptor *d, struct str bytes);
struct str pb_pack(struct arena *a, const ProtobufCMessage *m);
/* Gives one message the field of that number of another of its type. What the field points at is
 * then of both. */
void pb_share_field(ProtobufCMessage *to, const ProtobufCMessage *from, unsigned number);
/* Unknown fields of the message and all below it. */
size_t pb_count_unknown(const ProtobufCMessage *m);

static inline struct str pb_bytes(ProtobufCBinaryData b)
{
    return str_range(b.data ? (const char *) b.data : "", b.len);
}
static inline ProtobufCBinaryData pb_data(struct str s)
{
    return (ProtobufCBinaryData){s.n, (uint8_t *) (uintptr_t) s.p};
}
/* The text of a string field, which is never NULL. */
static inline struct str pb_text(const char *field)
{
    return str_of(field ? field : "");
}

/* Typed: PB_UNPACK(a, eve__config__config_request, bytes) -> ProtobufCMessage * to cast. */
#define PB_UNPACK(a, prefix, bytes) ((void *) pb_unpack((a), &prefix##__descriptor, (bytes)))
/* Calls fn for every message in m (m first, then depth first) whose descriptor is d. */
void pb_visit(ProtobufCMessage *m, const ProtobufCMessageDescriptor *d,
              void (*fn)(void *ctx, ProtobufCMessage *found), void *ctx);
