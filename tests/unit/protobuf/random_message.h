/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any type with random content that has one JSON text: good UTF-8, times within range,
 * no key twice, no payload in a NaN. */
#pragma once

#include "protobuf/message.h"

struct random_source {
    uint64_t state;
};
uint64_t random_next(struct random_source *r);
/* In [0, limit). */
size_t random_below(struct random_source *r, size_t limit);

/* Nested at most max_depth below this one. The same source gives the same message. */
ProtobufCMessage *random_message(struct arena *a, const ProtobufCMessageDescriptor *d,
                                 struct random_source *r, unsigned max_depth);
