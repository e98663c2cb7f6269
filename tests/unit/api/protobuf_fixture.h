/* SPDX-License-Identifier: Apache-2.0 */
/* A small writer of protobuf's wire format, for tests. */
#pragma once

#include "base/buf.h"

void wire_varint(struct buf *b, uint64_t value);
/* Fields: a number and a value. */
void wire_int(struct buf *b, uint32_t number, int64_t value);
void wire_double(struct buf *b, uint32_t number, double value);
void wire_bytes(struct buf *b, uint32_t number, struct str bytes);
/* An entry of a map from strings to strings. */
void wire_entry(struct buf *b, uint32_t number, const char *key, const char *value);
/* The message `inner`, which is emptied for reuse. */
void wire_message(struct buf *b, uint32_t number, struct buf *inner);
