/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to gnostic's protobuf, by the tables of openapi_proto_v2.c and _v3.c. Only what gnostic
 * knows is written; a value of another type than the table's is left out, and so are zeros, which
 * proto3 does not send. */
#include "api/openapi_proto.h"

#include "api/openapi_internal.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

#define VARINT_MAX_BYTES 10

static size_t encode_varint(uint64_t v, unsigned char out[VARINT_MAX_BYTES])
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (unsigned char) (v | 0x80);
    out[n++] = (unsigned char) v;
    return n;
}

static void write_varint(struct buf *b, uint64_t v)
{
    unsigned char bytes[VARINT_MAX_BYTES];
    buf_append(b, bytes, encode_varint(v, bytes));
}

static void write_tag(struct buf *b, int number, enum wire wire)
{
    write_varint(b, (uint64_t) number << 3 | wire);
}

static void write_bytes(struct buf *b, int number, struct str s)
{
    write_tag(b, number, WIRE_BYTES);
    write_varint(b, s.n);
    buf_append_str(b, s);
}

/* A nested message: its length is only known at its end, and then moved in before it. */
static size_t begin_message(struct buf *b, int number)
{
    write_tag(b, number, WIRE_BYTES);
    return b->n;
}

static void end_message(struct buf *b, size_t begin)
{
    unsigned char length[VARINT_MAX_BYTES];
    const size_t body = b->n - begin;
    const size_t n = encode_varint(body, length);
    (void) buf_reserve(b, n);
    memmove(b->p + begin + n, b->p + begin, body);
    memcpy(b->p + begin, length, n);
    b->n += n;
}

static void write_message(struct buf *b, const struct proto_message *m, const struct json *v);
static void write_field(struct buf *b, const struct proto_field *f, const struct json *v);

/* ---- scalars ------------------------------------------------------------------------------ */

static void write_double(struct buf *b, int number, const struct json *v)
{
    const double d = v->type == JSON_INT ? (double) v->i : v->d;
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    if (bits == 0)
        return;
    write_tag(b, number, WIRE_FIXED64);
    for (int i = 0; i < 8; i++)
        buf_append_char(b, (char) (bits >> (8 * i)));
}

static void write_int(struct buf *b, int number, const struct json *v)
{
    const int64_t i = v->type == JSON_INT ? v->i : (int64_t) v->d;
    if (i == 0)
        return;
    write_tag(b, number, WIRE_VARINT);
    write_varint(b, (uint64_t) i);
}

static void write_bool(struct buf *b, int number, bool value)
{
    write_tag(b, number, WIRE_VARINT);
    write_varint(b, value);
}

/* openapi.Any: JSON is YAML too. */
static void write_any(struct buf *b, int number, const struct json *v)
{
    const size_t any = begin_message(b, number);
    const size_t yaml = begin_message(b, 2);
    json_write(b, v);
    buf_append_char(b, '\n');
    end_message(b, yaml);
    end_message(b, any);
}

/* ---- fields ------------------------------------------------------------------------------- */

static bool is_extension(const struct json_member *m)
{
    return str_starts_with(json_str(&m->key), STR("x-"));
}

static bool has_extensions(const struct proto_message *m)
{
    return m->n_fields && m->fields[m->n_fields - 1].type == PROTO_EXTENSIONS;
}

/* One message {1: name, 2: value} per member. */
static void write_named(struct buf *b, const struct proto_field *f, const struct json *object,
                        bool skip_extensions)
{
    JSON_FOR_EACH_MEMBER (object, m) {
        if (f->type == PROTO_EXTENSIONS ? !is_extension(m) : skip_extensions && is_extension(m))
            continue;
        const size_t named = begin_message(b, f->number);
        write_bytes(b, 1, json_str(&m->key));
        if (f->type == PROTO_NAMED) {
            const size_t value = begin_message(b, 2);
            write_message(b, f->message, &m->value);
            end_message(b, value);
        } else {
            write_any(b, 2, &m->value);
        }
        end_message(b, named);
    }
}

static void write_single(struct buf *b, const struct proto_field *f, const struct json *v)
{
    switch (f->type) {
    case PROTO_STRING:
        if (v->type == JSON_STRING && v->n)
            write_bytes(b, f->number, json_str(v));
        break;
    case PROTO_BOOL:
        if (v->type == JSON_BOOL && v->b)
            write_bool(b, f->number, true);
        break;
    case PROTO_INT64:
        if (json_is_number(v))
            write_int(b, f->number, v);
        break;
    case PROTO_DOUBLE:
        if (json_is_number(v))
            write_double(b, f->number, v);
        break;
    case PROTO_MESSAGE: {
        const size_t begin = begin_message(b, f->number);
        write_message(b, f->message, v);
        end_message(b, begin);
        break;
    }
    case PROTO_ANY:
        write_any(b, f->number, v);
        break;
    case PROTO_NAMED:
    case PROTO_EXTENSIONS:
        write_named(b, f, v, /* skip_extensions= */ false);
        break;
    }
}

static void write_field(struct buf *b, const struct proto_field *f, const struct json *v)
{
    if (!f->is_repeated || v->type != JSON_ARRAY) {
        write_single(b, f, v);
        return;
    }
    JSON_FOR_EACH_ITEM (v, item)
        write_single(b, f, item);
}

/* ---- messages ----------------------------------------------------------------------------- */

static void write_object(struct buf *b, const struct proto_message *m, const struct json *v)
{
    for (size_t i = 0; i < m->n_fields; i++) {
        const struct proto_field *f = &m->fields[i];
        if (!f->key) {
            write_named(b, f, v, has_extensions(m));
            continue;
        }
        const struct json *value = json_get(v, str_of(f->key));
        if (value)
            write_field(b, f, value);
    }
}

/* A parameter's message depends on where it stands; the last field is for all others. */
static void write_by_place(struct buf *b, const struct proto_message *m, const struct json *v)
{
    const struct str in = json_get_str(v, STR("in"));
    for (size_t i = 0; i < m->n_fields; i++) {
        if (m->fields[i].key && !str_is(in, m->fields[i].key))
            continue;
        write_field(b, &m->fields[i], v);
        return;
    }
}

/* Within a oneof the zero value is sent too. */
static void write_default(struct buf *b, const struct json *v)
{
    if (json_is_number(v)) {
        const double d = v->type == JSON_INT ? (double) v->i : v->d;
        uint64_t bits;
        memcpy(&bits, &d, sizeof(bits));
        write_tag(b, 1, WIRE_FIXED64);
        for (int i = 0; i < 8; i++)
            buf_append_char(b, (char) (bits >> (8 * i)));
    } else if (v->type == JSON_BOOL) {
        write_bool(b, 2, v->b);
    } else if (v->type == JSON_STRING) {
        write_bytes(b, 3, json_str(v));
    }
}

static void write_message(struct buf *b, const struct proto_message *m, const struct json *v)
{
    switch (m->shape) {
    case PROTO_OBJECT:
        write_object(b, m, v);
        break;
    case PROTO_WRAPPED:
        write_field(b, &m->fields[0], v);
        break;
    case PROTO_OR_REFERENCE:
        write_field(b, &m->fields[json_get(v, STR("$ref")) != NULL], v);
        break;
    case PROTO_OR_BOOL:
        if (v->type == JSON_BOOL)
            write_bool(b, m->fields[1].number, v->b);
        else
            write_field(b, &m->fields[0], v);
        break;
    case PROTO_BY_PLACE:
        write_by_place(b, m, v);
        break;
    case PROTO_DEFAULT:
        write_default(b, v);
        break;
    }
}

void openapi_proto_write(struct buf *out, enum openapi_version version, const struct json *document)
{
    write_message(
        out, version == OPENAPI_V2 ? &openapi_v2_document_message : &openapi_v3_document_message,
        document);
}
