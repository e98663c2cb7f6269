/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/envelope.h"

#include <errno.h>

/* Fields of AuthContainer and of the AuthBody in its first. cipherContext and cipherData (6, 7)
 * have no meaning between device and controller and are skipped like fields that are unknown. */
enum field {
    FIELD_BODY = 1,
    FIELD_ALGORITHM = 2,
    FIELD_HASH = 3,
    FIELD_SIGNATURE = 4,
    FIELD_CERT = 5,
    BODY_PAYLOAD = 1,
};

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define ALGORITHM_SHA256_16BYTES 1
#define ALGORITHM_SHA256_32BYTES 2

/* ---- reading -------------------------------------------------------------------------------- */

struct cursor {
    struct str rest;
    bool failed;
};

struct token {
    uint64_t tag; /* number and wire type, as on the wire */
    uint64_t number;
    struct str bytes;
};

#define TAG(field, type) ((uint64_t) (field) << 3 | (type))

static struct str take(struct cursor *c, uint64_t n)
{
    if (c->failed || n > c->rest.n) {
        c->failed = true;
        return STR("");
    }
    struct str taken = str_range(c->rest.p, (size_t) n);
    c->rest = str_range(c->rest.p + n, c->rest.n - (size_t) n);
    return taken;
}

static uint64_t take_varint(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        struct str s = take(c, 1);
        if (c->failed)
            return 0;
        uint64_t byte = (unsigned char) s.p[0];
        /* The tenth byte has room for one bit. */
        if (shift == 63 && byte > 1)
            break;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    c->failed = true;
    return 0;
}

/* The next field; false at the end or after a failure. */
static bool take_field(struct cursor *c, struct token *ret)
{
    if (c->failed || c->rest.n == 0)
        return false;
    *ret = (struct token){.tag = take_varint(c), .bytes = STR("")};
    if (ret->tag >> 3 == 0 || ret->tag > UINT32_MAX)
        c->failed = true;
    switch (ret->tag & 7) {
    case WIRE_VARINT:
        ret->number = take_varint(c);
        break;
    case WIRE_FIXED64:
        ret->bytes = take(c, 8);
        break;
    case WIRE_BYTES:
        ret->bytes = take(c, take_varint(c));
        break;
    case WIRE_FIXED32:
        ret->bytes = take(c, 4);
        break;
    default:
        c->failed = true; /* groups, and what never was a type */
    }
    return !c->failed;
}

/* A body that stands twice is merged, as protobuf has it: one without a payload takes none away. */
static bool read_body(struct str body, struct str *payload)
{
    struct cursor c = {.rest = body};
    struct token t;
    while (take_field(&c, &t))
        if (t.tag == TAG(BODY_PAYLOAD, WIRE_BYTES))
            *payload = t.bytes;
    return !c.failed;
}

int envelope_parse(struct str bytes, struct envelope *ret)
{
    const struct str none = STR("");
    struct envelope e = {none, none, none, none, 0};
    struct cursor c = {.rest = bytes};
    struct token t;
    while (take_field(&c, &t)) {
        switch (t.tag) {
        case TAG(FIELD_BODY, WIRE_BYTES):
            if (!read_body(t.bytes, &e.payload))
                return -EBADMSG;
            break;
        case TAG(FIELD_ALGORITHM, WIRE_VARINT):
            e.algorithm = (int32_t) t.number;
            break;
        case TAG(FIELD_HASH, WIRE_BYTES):
            e.sender_hash = t.bytes;
            break;
        case TAG(FIELD_SIGNATURE, WIRE_BYTES):
            e.signature = t.bytes;
            break;
        case TAG(FIELD_CERT, WIRE_BYTES):
            e.sender_cert = t.bytes;
            break;
        default:
            break;
        }
    }
    if (c.failed)
        return -EBADMSG;
    *ret = e;
    return 0;
}

int envelope_check_form(const struct envelope *e)
{
    bool is_whole_hash =
        (e->algorithm == ALGORITHM_SHA256_16BYTES &&
         e->sender_hash.n == ENVELOPE_SHORT_HASH_BYTES) ||
        (e->algorithm == ALGORITHM_SHA256_32BYTES && e->sender_hash.n == ENVELOPE_HASH_BYTES);
    if (!is_whole_hash || e->signature.n == 0 || e->sender_cert.n > ENVELOPE_MAX_CERT_BYTES)
        return -EINVAL;
    return 0;
}

int envelope_verify(const struct envelope *e, const struct pki_public *key)
{
    return pki_verify_raw(key, e->payload, e->signature);
}

/* ---- writing -------------------------------------------------------------------------------- */

static size_t varint_bytes(uint64_t value)
{
    size_t n = 1;
    while (value >>= 7)
        n++;
    return n;
}

static unsigned char *put_varint(unsigned char *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (unsigned char) (value | 0x80);
    *to++ = (unsigned char) value;
    return to;
}

static unsigned char *put_head(unsigned char *to, enum field field, size_t n)
{
    *to++ = (unsigned char) TAG(field, WIRE_BYTES);
    return put_varint(to, n);
}

static unsigned char *put_bytes(unsigned char *to, enum field field, const void *p, size_t n)
{
    to = put_head(to, field, n);
    if (n)
        memcpy(to, p, n);
    return to + n;
}

struct str envelope_seal(struct arena *a, const struct envelope_signer *s, struct str payload)
{
    size_t n_body = payload.n ? 1 + varint_bytes(payload.n) + payload.n : 0;
    size_t n = 1 + varint_bytes(n_body) + n_body /* the payload in its body */
               + 2                               /* the algorithm */
               + 2 + ENVELOPE_HASH_BYTES         /* the hash */
               + 2 + PKI_RAW_SIGNATURE_BYTES     /* the signature */
               + (s->sender_cert.n ? 1 + varint_bytes(s->sender_cert.n) + s->sender_cert.n : 0);
    unsigned char signature[PKI_RAW_SIGNATURE_BYTES];
    if (pki_sign_raw(s->key, payload, signature) < 0)
        return STR_NONE;
    unsigned char *begin = arena_alloc(a, n), *to = put_head(begin, FIELD_BODY, n_body);
    if (n_body)
        to = put_bytes(to, BODY_PAYLOAD, payload.p, payload.n);
    *to++ = (unsigned char) TAG(FIELD_ALGORITHM, WIRE_VARINT);
    *to++ = ALGORITHM_SHA256_32BYTES;
    to = put_bytes(to, FIELD_HASH, s->cert_hash, sizeof(s->cert_hash));
    to = put_bytes(to, FIELD_SIGNATURE, signature, sizeof(signature));
    if (s->sender_cert.n)
        (void) put_bytes(to, FIELD_CERT, s->sender_cert.p, s->sender_cert.n);
    return str_range((char *) begin, n);
}
