/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any type with random content that has one JSON text: good UTF-8, times within range,
 * no key twice, no payload in a NaN, no negative zero (the JSON parser reads one as zero). */
#pragma once

#include "protobuf/message.h"

struct source {
    uint64_t state;
};
uint64_t source_next(struct source *r);
/* In [0, limit). */
size_t source_below(struct source *r, size_t limit);

/* Nested at most max_depth below this one. The same source gives the same message. */
ProtobufCMessage *random_message(struct arena *a, const ProtobufCMessageDescriptor *d,
                                 struct source *r, unsigned max_depth);
