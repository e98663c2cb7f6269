/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "api/protobuf.h"
#include "base/buf.h"

enum wire { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

static void write_varint(struct buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_append_char(b, (char) (value | 0x80));
    buf_append_char(b, (char) value);
}

static void write_key(struct buf *b, uint32_t number, enum wire wire)
{
    write_varint(b, (uint64_t) number << 3 | wire);
}

static void write_bytes(struct buf *b, uint32_t number, struct str bytes)
{
    write_key(b, number, WIRE_LENGTH);
    write_varint(b, bytes.n);
    buf_append_str(b, bytes);
}

static void write_fields(struct buf *b, const struct protobuf_message *m,
                         const struct json *object);

static void write_value(struct buf *b, const struct protobuf_field *f, const struct json *v)
{
    BUF_AUTO inner = {0};
    switch (f->type) {
    case PROTOBUF_STRING:
        write_bytes(b, f->number, json_str(v));
        return;
    case PROTOBUF_INT32:
        write_key(b, f->number, WIRE_VARINT);
        write_varint(b, (uint64_t) v->i);
        return;
    default:
        assert(f->type == PROTOBUF_MESSAGE);
        write_fields(&inner, f->message, v);
        write_bytes(b, f->number, buf_str(&inner));
    }
}

static void write_fields(struct buf *b, const struct protobuf_message *m, const struct json *object)
{
    for (size_t i = 0; i < m->n_fields; i++) {
        const struct protobuf_field *f = &m->fields[i];
        const struct json *v = json_get(object, f->name);
        if (v && f->form == PROTOBUF_PLAIN)
            write_value(b, f, v);
        JSON_FOR_EACH_ITEM (v, item)
            write_value(b, f, item);
    }
}

void protobuf_write_status(struct buf *b, const struct protobuf *p, const struct json *status)
{
    BUF_AUTO inner = {0};
    buf_append_str(b, PROTOBUF_MAGIC);
    write_bytes(&inner, 1, json_get_str(status, STR("apiVersion")));
    write_bytes(&inner, 2, json_get_str(status, STR("kind")));
    write_bytes(b, 1, buf_str(&inner));
    buf_reset(&inner);
    write_fields(&inner, protobuf_find(p, STR("meta.k8s.io/v1"), STR("Status")), status);
    write_bytes(b, 2, buf_str(&inner));
}
