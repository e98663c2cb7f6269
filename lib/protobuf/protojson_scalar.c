/* SPDX-License-Identifier: Apache-2.0 */
#include "protobuf/protojson_scalar.h"

#include <math.h>

#include "base/base64.h"

#define MAX_EXACT 0x1p53 /* below, a double is the number that was written */

/* ---- integers ----------------------------------------------------------------------------- */

struct integer {
    bool is_negative;
    uint64_t magnitude;
};

static bool integer_of_digits(struct str s, struct integer *ret)
{
    struct integer n = {.is_negative = s.n > 0 && s.p[0] == '-'};
    struct str digits = str_from(s, n.is_negative);
    if (digits.n == 0 || (digits.n > 1 && digits.p[0] == '0'))
        return false;
    for (size_t i = 0; i < digits.n; i++) {
        unsigned digit = (unsigned char) digits.p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(n.magnitude, 10, &n.magnitude) ||
            __builtin_add_overflow(n.magnitude, digit, &n.magnitude))
            return false;
    }
    *ret = n;
    return true;
}

/* A number such as 1.0 or 1e3 is an integer too. Beyond 2^53 the text must have been a string: what
 * is left of it here may be another number. */
static bool integer_of_number(const struct json *v, struct integer *ret)
{
    if (json_is(v, JSON_INT)) {
        uint64_t bits = (uint64_t) v->i;
        *ret = (struct integer){v->i < 0, v->i < 0 ? 0 - bits : bits};
        return true;
    }
    if (!json_is(v, JSON_DOUBLE) || fabs(v->d) > MAX_EXACT || v->d != (double) (int64_t) v->d)
        return false;
    *ret = (struct integer){v->d < 0, (uint64_t) fabs(v->d)};
    return true;
}

/* The JSON number that a string holds, or NULL. */
static const struct json *number_in(struct arena *a, struct str s)
{
    bool is_bare = s.n > 0 && str_trim(s).n == s.n;
    const struct json *v = is_bare ? json_parse_quick(a, s) : NULL;
    return json_is_number(v) ? v : NULL;
}

static bool read_integer(struct arena *a, const struct json *v, struct integer *ret)
{
    if (!json_is(v, JSON_STRING))
        return integer_of_number(v, ret);
    return integer_of_digits(json_str(v), ret) || integer_of_number(number_in(a, json_str(v)), ret);
}

static bool fits_signed(struct integer n, uint64_t max)
{
    return n.magnitude <= max + n.is_negative;
}

static bool fits_unsigned(struct integer n, uint64_t max)
{
    return n.magnitude <= max && (!n.is_negative || n.magnitude == 0);
}

static uint64_t bits_of(struct integer n)
{
    return n.is_negative ? 0 - n.magnitude : n.magnitude;
}

static bool store_integer(ProtobufCType type, struct integer n, union protojson_scalar *ret)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        ret->u32 = (uint32_t) n.magnitude;
        return fits_unsigned(n, UINT32_MAX);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        ret->u64 = n.magnitude;
        return fits_unsigned(n, UINT64_MAX);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        ret->i64 = (int64_t) bits_of(n);
        return fits_signed(n, INT64_MAX);
    default:
        ret->i32 = (int32_t) (uint32_t) bits_of(n);
        return fits_signed(n, INT32_MAX);
    }
}

/* ---- others ------------------------------------------------------------------------------- */

static bool read_double(struct arena *a, const struct json *v, double *ret)
{
    struct str s = json_str(v);
    if (json_is(v, JSON_STRING) && str_is(s, "NaN")) {
        *ret = (double) NAN;
        return true;
    }
    if (json_is(v, JSON_STRING) && (str_is(s, "Infinity") || str_is(s, "-Infinity"))) {
        *ret = s.p[0] == '-' ? (double) -INFINITY : (double) INFINITY;
        return true;
    }
    const struct json *number = json_is(v, JSON_STRING) ? number_in(a, s) : v;
    if (!json_is_number(number))
        return false;
    *ret = number->type == JSON_INT ? (double) number->i : number->d;
    return isfinite(*ret);
}

/* What rounds to the largest float is within the range, as in Go. */
static bool read_float(struct arena *a, const struct json *v, float *ret)
{
    double d = 0;
    if (!read_double(a, v, &d))
        return false;
    *ret = (float) d;
    return isinf(d) || !isinf(*ret);
}

/* The URL alphabet's digits for those of the standard one. */
static struct str url_digits(struct arena *a, struct str text)
{
    char *digits = arena_strz(a, text);
    for (size_t i = 0; i < text.n; i++) {
        if (digits[i] == '+')
            digits[i] = '-';
        else if (digits[i] == '/')
            digits[i] = '_';
    }
    return str_range(digits, text.n);
}

/* One alphabet or the other but not both, with padding or without. */
static bool read_bytes(struct arena *a, const struct json *v, ProtobufCBinaryData *ret)
{
    if (!json_is(v, JSON_STRING))
        return false;
    struct str text = json_str(v), bytes = STR_NONE;
    bool may_be_padded = text.n % 4 == 0;
    for (int i = 0; i < 2 && may_be_padded && str_ends_with(text, STR("=")); i++)
        text.n--;
    bool is_url = str_find(text, '-') >= 0 || str_find(text, '_') >= 0;
    if (!is_url)
        text = url_digits(a, text);
    if (base64_decode(a, text, BASE64_URL, &bytes, NULL) < 0)
        return false;
    *ret = pb_data(bytes);
    return true;
}

/* A C string cannot hold a NUL. */
static bool read_text(struct arena *a, struct str s, char **ret)
{
    if (!s.p || str_find(s, '\0') >= 0)
        return false;
    *ret = arena_strz(a, s);
    return true;
}

static const char *expected_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return "an unsigned integer of 32 bits";
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return "an unsigned integer of 64 bits, as a string beyond 2^53";
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return "an integer of 64 bits";
    case PROTOBUF_C_TYPE_FLOAT:
        return "a number in the range of a float";
    case PROTOBUF_C_TYPE_DOUBLE:
        return "a number";
    case PROTOBUF_C_TYPE_BOOL:
        return "true or false";
    case PROTOBUF_C_TYPE_STRING:
        return "a string without NUL";
    case PROTOBUF_C_TYPE_BYTES:
        return "a string of base64";
    case PROTOBUF_C_TYPE_ENUM:
        return "the name of an enum's value or a number of 32 bits";
    default:
        return "an integer of 32 bits";
    }
}

static bool read_scalar(struct arena *a, ProtobufCType type, const struct json *v,
                        union protojson_scalar *ret)
{
    struct integer n;
    switch (type) {
    case PROTOBUF_C_TYPE_FLOAT:
        return read_float(a, v, &ret->f);
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_double(a, v, &ret->d);
    case PROTOBUF_C_TYPE_BOOL:
        ret->b = json_is(v, JSON_BOOL) && v->b;
        return json_is(v, JSON_BOOL);
    case PROTOBUF_C_TYPE_STRING:
        return read_text(a, json_str(v), &ret->text);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(a, v, &ret->bytes);
    default:
        return read_integer(a, v, &n) && store_integer(type, n, ret);
    }
}

const char *protojson_scalar_read(struct arena *a, ProtobufCType type, const struct json *value,
                                  union protojson_scalar *ret_value)
{
    return read_scalar(a, type, value, ret_value) ? NULL : expected_of(type);
}

bool protojson_key_read(struct arena *a, ProtobufCType type, struct str key,
                        union protojson_scalar *ret_value)
{
    struct integer n;
    if (type == PROTOBUF_C_TYPE_STRING)
        return read_text(a, key, &ret_value->text);
    if (type == PROTOBUF_C_TYPE_BOOL) {
        ret_value->b = str_is(key, "true");
        return ret_value->b || str_is(key, "false");
    }
    /* One text for each number, so that no key can stand twice. */
    bool is_zero_with_sign = str_is(key, "-0");
    return !is_zero_with_sign && integer_of_digits(key, &n) && store_integer(type, n, ret_value);
}
