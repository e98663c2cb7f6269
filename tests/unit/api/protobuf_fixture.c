/* SPDX-License-Identifier: Apache-2.0 */
#include "protobuf_fixture.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

void wire_varint(struct buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_append_char(b, (char) (value | 0x80));
    buf_append_char(b, (char) value);
}

static void wire_key(struct buf *b, uint32_t number, unsigned wire)
{
    wire_varint(b, (uint64_t) number << 3 | wire);
}

void wire_int(struct buf *b, uint32_t number, int64_t value)
{
    wire_key(b, number, VARINT);
    wire_varint(b, (uint64_t) value);
}

void wire_double(struct buf *b, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    wire_key(b, number, FIXED64);
    for (int i = 0; i < 8; i++)
        buf_append_char(b, (char) (bits >> (8 * i)));
}

void wire_bytes(struct buf *b, uint32_t number, struct str bytes)
{
    wire_key(b, number, LENGTH);
    wire_varint(b, bytes.n);
    buf_append_str(b, bytes);
}

void wire_entry(struct buf *b, uint32_t number, const char *key, const char *value)
{
    BUF_AUTO entry = {0};
    wire_bytes(&entry, 1, str_of(key));
    wire_bytes(&entry, 2, str_of(value));
    wire_bytes(b, number, buf_str(&entry));
}

void wire_message(struct buf *b, uint32_t number, struct buf *inner)
{
    wire_bytes(b, number, buf_str(inner));
    buf_reset(inner);
}
