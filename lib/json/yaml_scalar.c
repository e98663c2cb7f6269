/* SPDX-License-Identifier: Apache-2.0 */
/* Which type a YAML scalar has, by the table and the order of attempts of go-yaml v2. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "json/yaml_internal.h"

static const struct word {
    const char *text;
    struct json value;
} words[] = {
    {"", {.type = JSON_NULL}},
    {"~", {.type = JSON_NULL}},
    {"null", {.type = JSON_NULL}},
    {"Null", {.type = JSON_NULL}},
    {"NULL", {.type = JSON_NULL}},
    {"true", {.type = JSON_BOOL, .b = true}},
    {"True", {.type = JSON_BOOL, .b = true}},
    {"TRUE", {.type = JSON_BOOL, .b = true}},
    {"y", {.type = JSON_BOOL, .b = true}},
    {"Y", {.type = JSON_BOOL, .b = true}},
    {"yes", {.type = JSON_BOOL, .b = true}},
    {"Yes", {.type = JSON_BOOL, .b = true}},
    {"YES", {.type = JSON_BOOL, .b = true}},
    {"on", {.type = JSON_BOOL, .b = true}},
    {"On", {.type = JSON_BOOL, .b = true}},
    {"ON", {.type = JSON_BOOL, .b = true}},
    {"false", {.type = JSON_BOOL}},
    {"False", {.type = JSON_BOOL}},
    {"FALSE", {.type = JSON_BOOL}},
    {"n", {.type = JSON_BOOL}},
    {"N", {.type = JSON_BOOL}},
    {"no", {.type = JSON_BOOL}},
    {"No", {.type = JSON_BOOL}},
    {"NO", {.type = JSON_BOOL}},
    {"off", {.type = JSON_BOOL}},
    {"Off", {.type = JSON_BOOL}},
    {"OFF", {.type = JSON_BOOL}},
    {".nan", {.type = JSON_DOUBLE, .d = NAN}},
    {".NaN", {.type = JSON_DOUBLE, .d = NAN}},
    {".NAN", {.type = JSON_DOUBLE, .d = NAN}},
    {".inf", {.type = JSON_DOUBLE, .d = INFINITY}},
    {".Inf", {.type = JSON_DOUBLE, .d = INFINITY}},
    {".INF", {.type = JSON_DOUBLE, .d = INFINITY}},
    {"+.inf", {.type = JSON_DOUBLE, .d = INFINITY}},
    {"+.Inf", {.type = JSON_DOUBLE, .d = INFINITY}},
    {"+.INF", {.type = JSON_DOUBLE, .d = INFINITY}},
    {"-.inf", {.type = JSON_DOUBLE, .d = -INFINITY}},
    {"-.Inf", {.type = JSON_DOUBLE, .d = -INFINITY}},
    {"-.INF", {.type = JSON_DOUBLE, .d = -INFINITY}},
};
#define LONGEST_WORD 5

static bool find_word(struct str text, struct json *ret_value)
{
    if (text.n > LONGEST_WORD)
        return false;
    for (size_t i = 0; i < N_ELEMENTS(words); i++) {
        if (str_is(text, words[i].text)) {
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) tolower((unsigned char) c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Strips 0x, 0b, 0o and the plain 0 of octal numbers. */
static int take_base(const char **p)
{
    if (**p != '0' || !(*p)[1])
        return 10;
    int letter = tolower((unsigned char) (*p)[1]);
    int base = letter == 'x' ? 16 : letter == 'b' ? 2 : letter == 'o' ? 8 : 0;
    *p += base ? 2 : 1;
    return base ? base : 8;
}

/* Beyond int64 the value is a double, as it is after the trip through JSON. */
static bool parse_int(const char *p, struct json *ret_value)
{
    bool is_negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    int base = take_base(&p);
    if (!*p)
        return false;
    uint64_t magnitude = 0;
    double approximate = 0;
    bool is_large = false;
    for (; *p; p++) {
        int digit = digit_value(*p);
        if (digit >= base)
            return false;
        approximate = approximate * base + digit;
        is_large = is_large || __builtin_mul_overflow(magnitude, (uint64_t) base, &magnitude) ||
                   __builtin_add_overflow(magnitude, (uint64_t) digit, &magnitude);
    }
    uint64_t limit = is_negative ? (uint64_t) INT64_MAX + 1 : INT64_MAX;
    if (is_large && base == 10)
        return false; /* read again as a float, with correct rounding */
    if (!is_large)
        approximate = (double) magnitude;
    if (is_large || magnitude > limit)
        *ret_value = json_double(is_negative ? -approximate : approximate);
    else
        *ret_value = json_int((int64_t) (is_negative ? 0 - magnitude : magnitude));
    return true;
}

static const char *skip_digits(const char *p)
{
    while (isdigit((unsigned char) *p))
        p++;
    return p;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_like_float(const char *p)
{
    if (*p == '-' || *p == '+')
        p++;
    const char *whole = p;
    p = skip_digits(p);
    bool has_whole = p > whole;
    if (*p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p);
        if (!has_whole && p == fraction)
            return false;
    } else if (!has_whole) {
        return false;
    }
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '-' || p[1] == '+' ? 2 : 1;
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent)
            return false;
    }
    return !*p;
}

static bool parse_number(struct arena *a, struct str text, struct json *ret_value)
{
    char first = text.p[0];
    bool may_be_int = isdigit((unsigned char) first) || first == '-' || first == '+';
    if ((!may_be_int && first != '.') || memchr(text.p, 0, text.n))
        return false;
    char *plain = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '_' || first == '.')
            plain[n++] = text.p[i];
    }
    plain[n] = '\0';
    if (may_be_int && parse_int(plain, ret_value))
        return true;
    double d = looks_like_float(plain) ? strtod(plain, NULL) : INFINITY;
    if (!isfinite(d))
        return false;
    *ret_value = json_double(d);
    return true;
}

static struct json resolve_plain(struct arena *a, struct str text)
{
    struct json value;
    if (find_word(text, &value) || parse_number(a, text, &value))
        return value;
    return json_string(arena_str(a, text));
}

static const char *tag_name(uint8_t type)
{
    static const char *const names[] = {
        [JSON_NULL] = "!!null",    [JSON_BOOL] = "!!bool",  [JSON_INT] = "!!int",
        [JSON_DOUBLE] = "!!float", [JSON_STRING] = "!!str",
    };
    return names[type];
}

static int resolve_binary(struct arena *a, struct str text, struct json *ret_value,
                          struct str *ret_error)
{
    struct str bytes;
    if (base64_decode(a, text, BASE64_STANDARD, &bytes, NULL) < 0 || !str_is_utf8(bytes)) {
        *ret_error = STR("yaml: !!binary value contains invalid base64 data");
        return -EINVAL;
    }
    *ret_value = json_string(bytes);
    return 0;
}

/* `tag` is one of the core types, other than str. */
static int resolve_tagged(struct arena *a, struct str text, struct str tag, struct json *ret_value,
                          struct str *ret_error)
{
    struct json value = resolve_plain(a, text);
    if (str_is(tag, "!!float") && value.type == JSON_INT)
        value = json_double((double) value.i);
    if (!str_is(tag, tag_name(value.type))) {
        *ret_error = arena_printf(a, "yaml: cannot decode %s `%.*s` as a %.*s",
                                  tag_name(value.type), STR_ARG(text), STR_ARG(tag));
        return -EINVAL;
    }
    *ret_value = value;
    return 0;
}

int yaml_resolve(struct arena *a, const struct yaml_scalar *scalar, struct json *ret_value,
                 struct str *ret_error)
{
    static const char *const core[] = {"!!null", "!!bool", "!!int", "!!float"};
    const struct str prefix = STR("tag:yaml.org,2002:");
    if (!scalar->tag.n && scalar->is_implicit) {
        *ret_value = resolve_plain(a, scalar->text);
        return 0;
    }
    if (str_starts_with(scalar->tag, prefix)) {
        struct str name = str_from(scalar->tag, prefix.n);
        struct str tag = arena_printf(a, "!!%.*s", STR_ARG(name));
        if (str_is(tag, "!!binary"))
            return resolve_binary(a, scalar->text, ret_value, ret_error);
        for (size_t i = 0; i < N_ELEMENTS(core); i++) {
            if (str_is(tag, core[i]))
                return resolve_tagged(a, scalar->text, tag, ret_value, ret_error);
        }
    }
    *ret_value = json_string(arena_str(a, scalar->text));
    return 0;
}

/* As Go's FormatFloat(d, 'g', -1, 32): the fewest digits that name the same float. */
static struct str float_key_text(struct arena *a, double d)
{
    char text[64];
    int precision = 0;
    do {
        (void) snprintf(text, sizeof(text), "%.*e", precision, d);
    } while (precision++ < 8 && strtof(text, NULL) != (float) d);
    const char *e = strchr(text, 'e');
    if (!e) /* infinities and NaN */
        return isnan(d) ? STR(".nan") : d > 0 ? STR(".inf") : STR("-.inf");
    int exponent = (int) strtol(e + 1, NULL, 10);
    if (exponent < -4 || exponent >= 6)
        return arena_str(a, str_of(text));
    return arena_printf(a, "%.*f", MAX(precision - 1 - exponent, 0), strtod(text, NULL));
}

struct str yaml_key_text(struct arena *a, const struct json *key)
{
    switch (key->type) {
    case JSON_STRING:
        return json_str(key);
    case JSON_BOOL:
        return key->b ? STR("true") : STR("false");
    case JSON_INT:
        return arena_printf(a, "%lld", (long long) key->i);
    case JSON_DOUBLE:
        return float_key_text(a, key->d);
    default:
        return STR_NONE;
    }
}
