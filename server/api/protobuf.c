/* SPDX-License-Identifier: Apache-2.0 */
#include "api/protobuf.h"

#include <errno.h>
#include <math.h>

#include "api/timestamp.h"
#include "base/base64.h"
#include "base/map.h"

#define MICROS_PER_SECOND 1000000
#define NANOS_PER_SECOND 1000000000
#define SECONDS_YEAR_1 (-62135596800) /* Go's zero time */
#define SECONDS_YEAR_10000 253402300800
#define EXACT_DOUBLE 9007199254740992.0 /* 2^53: whole numbers below it are exact */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

/* One decoding. The first error stays; reading then finds every cursor at its end. */
struct decoder {
    struct arena *arena;
    struct str error;
    unsigned depth;
};

struct cursor {
    struct decoder *decoder;
    struct str rest;
};

struct key {
    uint32_t number;
    enum wire wire;
};

static void PRINTF_LIKE(2, 3) fail(struct cursor *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (c->decoder->error.n == 0)
        c->decoder->error = arena_vprintf(c->decoder->arena, format, args);
    va_end(args);
    c->rest = STR("");
}

/* ---- wire --------------------------------------------------------------------------------- */

static struct str take(struct cursor *c, uint64_t n)
{
    if (n > c->rest.n) {
        fail(c, "unexpected EOF");
        return STR("");
    }
    const struct str taken = str_sub(c->rest, 0, (size_t) n);
    c->rest = str_from(c->rest, (size_t) n);
    return taken;
}

static uint64_t read_varint(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const struct str byte = take(c, 1);
        if (byte.n == 0)
            return 0;
        value |= (uint64_t) (byte.p[0] & 0x7f) << shift;
        if (!(byte.p[0] & 0x80))
            return value;
    }
    fail(c, "proto: integer overflow");
    return 0;
}

static struct str read_bytes(struct cursor *c)
{
    return take(c, read_varint(c));
}

static uint64_t read_fixed64(struct cursor *c)
{
    const struct str bytes = take(c, 8);
    uint64_t value = 0;
    for (size_t i = bytes.n; i > 0; i--)
        value = value << 8 | (uint8_t) bytes.p[i - 1];
    return value;
}

/* False at the end and after an error. */
static bool read_key(struct cursor *c, struct key *ret)
{
    if (c->decoder->error.n > 0 || c->rest.n == 0)
        return false;
    const uint64_t key = read_varint(c);
    const uint64_t number = key >> 3;
    if (c->decoder->error.n > 0)
        return false;
    if (number == 0 || number > PROTOBUF_MAX_NUMBER) {
        fail(c, "proto: illegal tag %lld (wire type %d)", (long long) number, (int) (key & 7));
        return false;
    }
    *ret = (struct key){(uint32_t) number, (enum wire)(key & 7)};
    return true;
}

static void skip(struct cursor *c, enum wire wire)
{
    switch (wire) {
    case WIRE_VARINT:
        (void) read_varint(c);
        return;
    case WIRE_FIXED64:
        (void) take(c, 8);
        return;
    case WIRE_LENGTH:
        (void) read_bytes(c);
        return;
    case WIRE_FIXED32:
        (void) take(c, 4);
        return;
    }
    fail(c, "proto: illegal wireType %d", (int) wire);
}

static bool expect_wire(struct cursor *c, const struct key *key, enum wire wire, struct str name)
{
    if (key->wire == wire)
        return true;
    fail(c, "proto: wrong wireType = %d for field %.*s", (int) key->wire, STR_ARG(name));
    return false;
}

/* ---- scalars ------------------------------------------------------------------------------ */

static enum wire wire_of(enum protobuf_type type)
{
    switch (type) {
    case PROTOBUF_BOOL:
    case PROTOBUF_INT32:
    case PROTOBUF_INT64:
        return WIRE_VARINT;
    case PROTOBUF_DOUBLE:
        return WIRE_FIXED64;
    default:
        return WIRE_LENGTH;
    }
}

/* Go's strings may hold anything; its JSON has U+FFFD for each byte that is no part of a
 * character. */
static struct str read_text(struct cursor *c)
{
    struct str rest = read_bytes(c);
    if (str_is_utf8(rest))
        return rest;
    BUF_AUTO out = {0};
    while (rest.n > 0) {
        size_t n = 1;
        while (n <= 4 && n <= rest.n && !str_is_utf8(str_sub(rest, 0, n)))
            n++;
        const bool is_character = n <= 4 && n <= rest.n;
        buf_append_str(&out, is_character ? str_sub(rest, 0, n) : STR("\xef\xbf\xbd"));
        rest = str_from(rest, is_character ? n : 1);
    }
    return arena_str(c->decoder->arena, buf_str(&out));
}

/* As the number would be read from JSON text. */
static struct json read_double(struct cursor *c)
{
    const uint64_t bits = read_fixed64(c);
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value)) {
        fail(c, "json: unsupported value: a number that is not finite");
        return json_null();
    }
    if (fabs(value) < EXACT_DOUBLE && value == trunc(value))
        return json_int((int64_t) value);
    return json_double(value);
}

/* Null for Go's zero time, which is sent as an empty message. */
static struct json read_time(struct cursor *c, enum timestamp_precision precision)
{
    struct cursor in = {c->decoder, read_bytes(c)};
    int64_t seconds = in.rest.n > 0 ? 0 : SECONDS_YEAR_1;
    int32_t nanos = 0;
    struct key key;
    while (read_key(&in, &key)) {
        if (key.number == 1 && expect_wire(&in, &key, WIRE_VARINT, STR("Seconds")))
            seconds = (int64_t) read_varint(&in);
        else if (key.number == 2 && expect_wire(&in, &key, WIRE_VARINT, STR("Nanos")))
            nanos = (int32_t) read_varint(&in);
        else
            skip(&in, key.wire);
    }
    if (seconds < SECONDS_YEAR_1 || seconds >= SECONDS_YEAR_10000 || nanos < 0 ||
        nanos >= NANOS_PER_SECOND) {
        fail(c, "Time.MarshalJSON: year outside of range [0,9999]");
        return json_null();
    }
    if (precision == TIMESTAMP_SECONDS)
        nanos = 0; /* as metav1.Time has it */
    if (seconds == SECONDS_YEAR_1 && nanos == 0)
        return json_null();
    const int64_t wall_us = seconds * MICROS_PER_SECOND + nanos / 1000;
    return json_string(timestamp_text(c->decoder->arena, wall_us, precision));
}

static struct json read_json(struct cursor *c, struct str name)
{
    const struct str text = read_bytes(c);
    struct json_parse_result parsed;
    if (text.n == 0)
        return json_null();
    if (json_parse(c->decoder->arena, text, &parsed) < 0) {
        fail(c, "field %.*s: %.*s", STR_ARG(name), STR_ARG(parsed.error));
        return json_null();
    }
    return *parsed.value;
}

/* ---- messages ----------------------------------------------------------------------------- */

static void read_fields(struct cursor *c, const struct protobuf_message *m, struct json *object);

static struct json read_message(struct cursor *c, const struct protobuf_message *m)
{
    struct json object = json_object();
    struct cursor in = {c->decoder, read_bytes(c)};
    read_fields(&in, m, &object);
    for (size_t i = 0; m->is_union && i < m->n_fields; i++) {
        const struct json *value = json_get(&object, m->fields[i].name);
        if (value)
            return *value;
    }
    return m->is_union ? json_null() : object;
}

static struct json read_value(struct cursor *c, const struct protobuf_field *f)
{
    switch (f->type) {
    case PROTOBUF_STRING:
        return json_string(read_text(c));
    case PROTOBUF_BYTES:
        return json_string(base64_encode(c->decoder->arena, read_bytes(c), BASE64_STANDARD));
    case PROTOBUF_BOOL:
        return json_bool(read_varint(c) != 0);
    case PROTOBUF_INT32:
        return json_int((int32_t) read_varint(c));
    case PROTOBUF_INT64:
        return json_int((int64_t) read_varint(c));
    case PROTOBUF_DOUBLE:
        return read_double(c);
    case PROTOBUF_TIME:
        return read_time(c, TIMESTAMP_SECONDS);
    case PROTOBUF_MICRO_TIME:
        return read_time(c, TIMESTAMP_MICROS);
    case PROTOBUF_JSON:
        return read_json(c, f->name);
    case PROTOBUF_MESSAGE:
        break;
    }
    return read_message(c, f->message);
}

static bool is_zero(const struct json *v)
{
    switch ((enum json_type) v->type) {
    case JSON_BOOL:
        return !v->b;
    case JSON_INT:
        return v->i == 0;
    case JSON_STRING:
        return v->n == 0;
    default:
        return false;
    }
}

static void set_member(struct cursor *c, const struct protobuf_field *f, struct json *object)
{
    const struct json value = read_value(c, f);
    if (value.type == JSON_NULL ||
        (f->form == PROTOBUF_PLAIN && f->type != PROTOBUF_MESSAGE && is_zero(&value)))
        (void) json_remove(object, f->name);
    else
        (void) json_set(c->decoder->arena, object, f->name, value);
}

static struct json *container(struct cursor *c, const struct protobuf_field *f, struct json *object,
                              struct json empty)
{
    struct json *found = json_get(object, f->name);
    return found ? found : json_append_member(c->decoder->arena, object, f->name, empty);
}

/* A value that was not sent: an empty one of its wire type. */
static struct json absent_value(struct cursor *c, const struct protobuf_field *f)
{
    struct cursor empty = {c->decoder, str_range("\0\0\0\0\0\0\0", 8)};
    return read_value(&empty, f);
}

/* An entry of a map is a message of a key and a value. */
static void add_entry(struct cursor *c, const struct protobuf_field *f, struct json *map)
{
    struct cursor in = {c->decoder, read_bytes(c)};
    struct str name = STR("");
    struct json value = json_null();
    bool has_value = false;
    struct key key;
    while (read_key(&in, &key)) {
        if (key.number == 1 && expect_wire(&in, &key, WIRE_LENGTH, f->name)) {
            name = read_text(&in);
        } else if (key.number == 2 && expect_wire(&in, &key, wire_of(f->type), f->name)) {
            value = read_value(&in, f);
            has_value = true;
        } else {
            skip(&in, key.wire);
        }
    }
    (void) json_append_member(c->decoder->arena, map, name, has_value ? value : absent_value(c, f));
}

static void read_field(struct cursor *c, const struct protobuf_field *f, struct json *object)
{
    switch (f->form) {
    case PROTOBUF_PLAIN:
    case PROTOBUF_OPTIONAL:
        set_member(c, f, object);
        return;
    case PROTOBUF_REPEATED: {
        struct json *array = container(c, f, object, json_array());
        (void) json_push(c->decoder->arena, array, read_value(c, f));
        return;
    }
    case PROTOBUF_MAP:
        add_entry(c, f, container(c, f, object, json_object()));
        return;
    case PROTOBUF_INLINE: {
        struct cursor in = {c->decoder, read_bytes(c)};
        read_fields(&in, f->message, object);
        return;
    }
    }
}

/* Of entries with the same key the last counts. Once per map, as looking for each key when it comes
 * would cost the square of their number. */
static void drop_repeated_keys(struct json *object)
{
    struct map seen = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < object->n; i++) {
        struct json_member *m = &object->members[i];
        struct json_member *earlier = map_get(&seen, json_str(&m->key));
        if (earlier) {
            earlier->value = m->value;
            continue;
        }
        object->members[n] = *m;
        (void) map_put(&seen, json_str(&m->key), &object->members[n++]);
    }
    object->n = n;
    map_done(&seen);
}

static const struct protobuf_field *find_field(const struct protobuf_message *m, uint32_t number)
{
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

static void read_fields(struct cursor *c, const struct protobuf_message *m, struct json *object)
{
    if (++c->decoder->depth > PROTOBUF_MAX_DEPTH)
        fail(c, "exceeded max depth");
    struct key key;
    while (read_key(c, &key)) {
        const struct protobuf_field *f = find_field(m, key.number);
        if (!f)
            skip(c, key.wire);
        else if (expect_wire(c, &key, f->form == PROTOBUF_MAP ? WIRE_LENGTH : wire_of(f->type),
                             f->name))
            read_field(c, f, object);
    }
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].form == PROTOBUF_MAP &&
            json_count(json_get(object, m->fields[i].name)) > 1)
            drop_repeated_keys(json_get(object, m->fields[i].name));
    c->decoder->depth--;
}

/* ---- bodies ------------------------------------------------------------------------------- */

static void read_type(struct cursor *c, struct protobuf_envelope *e)
{
    struct cursor in = {c->decoder, read_bytes(c)};
    struct key key;
    while (read_key(&in, &key)) {
        if (key.number == 1 && expect_wire(&in, &key, WIRE_LENGTH, STR("APIVersion")))
            e->api_version = arena_str(c->decoder->arena, read_text(&in));
        else if (key.number == 2 && expect_wire(&in, &key, WIRE_LENGTH, STR("Kind")))
            e->kind = arena_str(c->decoder->arena, read_text(&in));
        else
            skip(&in, key.wire);
    }
}

/* The envelope is runtime.Unknown: the type, the object, how it is packed (not at all). */
static int read_envelope(struct cursor *c, struct protobuf_envelope *e)
{
    struct key key;
    struct str packed = STR("");
    while (read_key(c, &key)) {
        if (key.number == 1 && expect_wire(c, &key, WIRE_LENGTH, STR("TypeMeta")))
            read_type(c, e);
        else if (key.number == 2 && expect_wire(c, &key, WIRE_LENGTH, STR("Raw")))
            e->object = read_bytes(c);
        else if (key.number == 3 && expect_wire(c, &key, WIRE_LENGTH, STR("ContentEncoding")))
            packed = read_text(c);
        else
            skip(c, key.wire);
    }
    if (packed.n > 0)
        fail(c, "unable to decode content encoding \"%.*s\"", STR_ARG(packed));
    return c->decoder->error.n > 0 ? -EINVAL : 0;
}

int protobuf_open(struct arena *a, struct str body, struct protobuf_envelope *ret,
                  struct str *ret_error)
{
    struct decoder d = {.arena = a};
    struct cursor c = {&d, str_from(body, PROTOBUF_MAGIC.n)};
    struct protobuf_envelope e = {STR(""), STR(""), STR("")};
    if (body.n == 0)
        d.error = STR("empty data");
    else if (!str_starts_with(body, PROTOBUF_MAGIC))
        d.error = STR("provided data does not appear to be a protobuf message, expected prefix "
                      "[107 56 115 0]");
    else if (c.rest.n == 0)
        d.error = STR("empty body");
    if (d.error.n > 0 || read_envelope(&c, &e) < 0) {
        *ret_error = d.error;
        return -EINVAL;
    }
    *ret = e;
    return 0;
}

int protobuf_decode(struct arena *a, const struct protobuf_message *message, struct str bytes,
                    struct json *object, struct str *ret_error)
{
    struct decoder d = {.arena = a};
    struct cursor c = {&d, arena_str(a, bytes)};
    read_fields(&c, message, object);
    if (d.error.n == 0 && !json_fits(object, SIZE_MAX))
        d.error = STR("exceeded max depth");
    if (d.error.n == 0)
        return 0;
    *ret_error = d.error;
    return -EINVAL;
}
