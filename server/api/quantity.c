/* SPDX-License-Identifier: Apache-2.0 */
#include "api/quantity.h"

#include <errno.h>
#include <stdlib.h>

#define NANO (-9)
#define MAX_DIGITS \
    36 /* of the mantissa without zeros at its ends: 10^38 still fits, which leaves room for two \
          more */
#define MAX_KEPT_DIGITS 18 /* kube-apiserver keeps no longer text as it was */
#define MAX_SCALE 1000

static const struct str error_format = STR(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
static const struct str error_numeric = STR("unable to parse numeric part of quantity");
static const struct str error_suffix = STR("unable to parse quantity's suffix");

struct suffix {
    const char *text;
    int exponent; /* of 10, or of 2 */
};

static const struct suffix decimal_suffixes[] = {
    {"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
    {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18},
};
static const struct suffix binary_suffixes[] = {
    {"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60},
};

/* ---- taking the text apart ---------------------------------------------------------------- */

struct parts {
    bool is_negative;
    struct str whole; /* digits before the point, without leading zeros; "0" when there are none */
    struct str fraction; /* digits behind it */
    struct str suffix;
};

static size_t count_digits(struct str s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

static struct str take(struct str *rest, size_t n)
{
    const struct str part = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return part;
}

static bool is_suffix_shape(struct str suffix)
{
    size_t i = 0;
    while (i < suffix.n && char_is_in(suffix.p[i], "eEinumkKMGTP"))
        i++;
    if (i < suffix.n && (suffix.p[i] == '+' || suffix.p[i] == '-'))
        i++;
    return i + count_digits(str_from(suffix, i)) == suffix.n;
}

static bool split(struct str text, struct parts *p)
{
    struct str rest = text;
    *p = (struct parts){.is_negative = str_starts_with(rest, STR("-"))};
    if (p->is_negative || str_starts_with(rest, STR("+")))
        (void) take(&rest, 1);
    size_t n_zeros = 0;
    while (n_zeros < rest.n && rest.p[n_zeros] == '0')
        n_zeros++;
    (void) take(&rest, n_zeros);
    p->whole = take(&rest, count_digits(rest));
    if (p->whole.n == 0)
        p->whole = STR("0");
    if (str_starts_with(rest, STR("."))) {
        (void) take(&rest, 1);
        p->fraction = take(&rest, count_digits(rest));
    }
    p->suffix = rest;
    return is_suffix_shape(rest);
}

static bool interpret_suffix(struct str text, enum quantity_format *ret_format, int *ret_exponent)
{
    for (size_t i = 0; i < N_ELEMENTS(decimal_suffixes); i++)
        if (str_is(text, decimal_suffixes[i].text)) {
            *ret_format = QUANTITY_DECIMAL;
            *ret_exponent = decimal_suffixes[i].exponent;
            return true;
        }
    for (size_t i = 0; i < N_ELEMENTS(binary_suffixes); i++)
        if (str_is(text, binary_suffixes[i].text)) {
            *ret_format = QUANTITY_BINARY;
            *ret_exponent = binary_suffixes[i].exponent;
            return true;
        }
    int64_t exponent;
    if (text.n < 2 || (text.p[0] != 'e' && text.p[0] != 'E') ||
        str_to_i64(str_from(text, 1), &exponent) < 0)
        return false;
    if (exponent < -2 * MAX_SCALE || exponent > 2 * MAX_SCALE)
        return false;
    *ret_format = QUANTITY_EXPONENT;
    *ret_exponent = (int) exponent;
    return true;
}

/* ---- arithmetic --------------------------------------------------------------------------- */

/* Drops digits below 10^scale, rounding away from zero. */
static void round_up(struct quantity *q, int scale)
{
    bool has_rest = false;
    while (q->scale < scale && q->mantissa != 0) {
        has_rest |= q->mantissa % 10 != 0;
        const bool is_last = q->scale + 1 == scale;
        const int sign = q->mantissa < 0 ? -1 : 1;
        q->mantissa /= 10;
        if (q->mantissa == 0) {
            q->mantissa = sign;
            q->scale = scale;
            return;
        }
        if (is_last && has_rest)
            q->mantissa += sign;
        q->scale++;
    }
    if (q->mantissa == 0)
        q->scale = 0;
}

static void strip_zeros(struct quantity *q)
{
    if (q->mantissa == 0)
        q->scale = 0;
    while (q->mantissa != 0 && q->mantissa % 10 == 0) {
        q->mantissa /= 10;
        q->scale++;
    }
}

static __int128 digits_value(__int128 value, struct str digits)
{
    for (size_t i = 0; i < digits.n; i++)
        value = value * 10 + (digits.p[i] - '0');
    return value;
}

/* Is the text already canonical enough for kube-apiserver to keep it? */
static bool is_kept(const struct parts *p, enum quantity_format format, int exponent)
{
    const size_t n_digits = p->whole.n + p->fraction.n;
    if (format == QUANTITY_BINARY)
        return p->fraction.n == 0 && 14 - (int) n_digits - exponent * 3 / 10 >= 0 &&
               (digits_value(0, p->whole) & 7) != 0;
    const struct str tail = p->fraction.n > 0 ? p->fraction : p->whole;
    if (n_digits > MAX_KEPT_DIGITS)
        return false;
    size_t n_zeros = 0;
    while (n_zeros < tail.n && tail.p[tail.n - 1 - n_zeros] == '0')
        n_zeros++;
    if (n_zeros == tail.n && p->fraction.n > 0)
        while (n_zeros < n_digits && p->whole.p[n_digits - 1 - n_zeros] == '0')
            n_zeros++;
    return (exponent - (int) p->fraction.n) % 3 == 0 && n_zeros < 3 && p->whole.p[0] != '0';
}

/* The digits of both parts as one number; zeros at its end only count in the scale, so that what we
 * print can be read again. */
static bool read_digits(const struct parts *p, struct quantity *q)
{
    char digits[QUANTITY_MAX_BYTES];
    size_t n = 0, begin = 0;
    memcpy(digits, p->whole.p, p->whole.n);
    n = p->whole.n;
    if (p->fraction.n > 0)
        memcpy(digits + n, p->fraction.p, p->fraction.n);
    n += p->fraction.n;
    q->scale = -(int) p->fraction.n;
    while (begin < n && digits[begin] == '0')
        begin++;
    for (; n > begin && digits[n - 1] == '0'; n--)
        q->scale++;
    if (n - begin > MAX_DIGITS)
        return false;
    q->mantissa = digits_value(0, str_range(digits + begin, n - begin));
    return true;
}

/* Binary amounts end at the largest int64. */
static void scale_binary(struct quantity *q, int exponent)
{
    const struct quantity limit = {.mantissa = (__int128) 1 << (63 - exponent)};
    if (quantity_compare(q, &limit) >= 0) {
        q->mantissa = INT64_MAX;
        q->scale = 0;
        return;
    }
    if (q->scale < NANO)
        round_up(q, NANO);
    q->mantissa <<= exponent;
}

int quantity_parse(struct str text, struct quantity *ret, struct str *ret_error)
{
    struct parts p;
    int exponent;
    struct quantity q = {0};
    if (text.n == 0 || text.n > QUANTITY_MAX_BYTES || !split(text, &p)) {
        *ret_error = error_format;
        return -EINVAL;
    }
    if (!interpret_suffix(p.suffix, &q.format, &exponent)) {
        *ret_error = error_suffix;
        return -EINVAL;
    }
    if (!read_digits(&p, &q)) {
        *ret_error = error_numeric;
        return -EINVAL;
    }
    const bool is_kept_scale = exponent - (int) p.fraction.n >= NANO || q.format == QUANTITY_BINARY;
    const bool keeps_text = q.mantissa != 0 && is_kept_scale && is_kept(&p, q.format, exponent);
    if (q.format == QUANTITY_BINARY)
        scale_binary(&q, exponent);
    else
        q.scale += exponent;
    if (q.scale > MAX_SCALE) {
        *ret_error = error_suffix;
        return -EINVAL;
    }
    if (p.is_negative)
        q.mantissa = -q.mantissa;
    round_up(&q, NANO);
    q.text = keeps_text || str_is(text, "0") ? text : STR_NONE;
    *ret = q;
    return 0;
}

/* What is no finer than that keeps its text. */
static void coarsen(struct quantity *q, int scale)
{
    if (q->scale >= scale)
        return;
    struct quantity rounded = *q;
    strip_zeros(&rounded);
    if (rounded.scale >= scale)
        return;
    round_up(&rounded, scale);
    rounded.text = STR_NONE;
    *q = rounded;
}

void quantity_round_milli(struct quantity *q)
{
    coarsen(q, -3);
}

void quantity_round_whole(struct quantity *q)
{
    coarsen(q, 0);
}

int quantity_sign(const struct quantity *q)
{
    return (q->mantissa > 0) - (q->mantissa < 0);
}

/* Decimal digits of a positive value. */
static int magnitude(__int128 value)
{
    int n = 0;
    for (; value != 0; value /= 10)
        n++;
    return n;
}

static int compare_positive(struct quantity a, struct quantity b)
{
    strip_zeros(&a);
    strip_zeros(&b);
    const int size_a = magnitude(a.mantissa) + a.scale, size_b = magnitude(b.mantissa) + b.scale;
    if (size_a != size_b)
        return size_a < size_b ? -1 : 1;
    /* Of equal size, so the longer one bounds the digits of both. */
    for (; a.scale > b.scale; a.scale--)
        a.mantissa *= 10;
    for (; b.scale > a.scale; b.scale--)
        b.mantissa *= 10;
    return (a.mantissa > b.mantissa) - (a.mantissa < b.mantissa);
}

int quantity_compare(const struct quantity *a, const struct quantity *b)
{
    const int sign_a = quantity_sign(a), sign_b = quantity_sign(b);
    if (sign_a != sign_b || sign_a == 0)
        return (sign_a > sign_b) - (sign_a < sign_b);
    struct quantity x = *a, y = *b;
    if (sign_a > 0)
        return compare_positive(x, y);
    x.mantissa = -x.mantissa;
    y.mantissa = -y.mantissa;
    return -compare_positive(x, y);
}

/* To a finer scale; false when that has too many digits. */
static bool refine(struct quantity *q, int scale)
{
    for (; q->scale > scale && q->mantissa != 0; q->scale--)
        if (__builtin_mul_overflow(q->mantissa, (__int128) 10, &q->mantissa))
            return false;
    q->scale = scale;
    return true;
}

struct quantity quantity_add(const struct quantity *a, const struct quantity *b)
{
    struct quantity x = *a, y = *b;
    const int scale = MIN(a->scale, b->scale);
    if (!refine(&x, scale) || !refine(&y, scale) ||
        __builtin_add_overflow(x.mantissa, y.mantissa, &x.mantissa))
        return quantity_compare(a, b) < 0 ? *b : *a;
    x.format = quantity_sign(a) == 0 ? b->format : a->format;
    x.text = STR_NONE;
    return x;
}

bool quantity_is_integer(const struct quantity *q)
{
    struct quantity stripped = *q;
    strip_zeros(&stripped);
    return stripped.scale >= 0;
}

struct quantity quantity_from_int(int64_t value)
{
    return (struct quantity){.mantissa = value};
}

double quantity_double(const struct quantity *q)
{
    double value = (double) q->mantissa;
    for (int i = q->scale; i > 0; i--)
        value *= 10;
    for (int i = q->scale; i < 0; i++)
        value /= 10;
    return value;
}

/* ---- canonical form ----------------------------------------------------------------------- */

static struct str number_text(struct arena *a, __int128 value, struct str suffix)
{
    char digits[48];
    size_t at = sizeof(digits);
    const bool is_negative = value < 0;
    unsigned __int128 rest = is_negative ? -(unsigned __int128) value : (unsigned __int128) value;
    do {
        digits[--at] = (char) ('0' + (int) (rest % 10));
        rest /= 10;
    } while (rest != 0);
    if (is_negative)
        digits[--at] = '-';
    return arena_printf(a, "%.*s%.*s", (int) (sizeof(digits) - at), digits + at, STR_ARG(suffix));
}

static struct str decimal_text(struct arena *a, struct quantity q)
{
    strip_zeros(&q);
    for (; q.scale % 3 != 0; q.scale--)
        q.mantissa *= 10;
    if (q.format != QUANTITY_EXPONENT)
        for (size_t i = 0; i < N_ELEMENTS(decimal_suffixes); i++)
            if (decimal_suffixes[i].exponent == q.scale)
                return number_text(a, q.mantissa, str_of(decimal_suffixes[i].text));
    if (q.scale == 0)
        return number_text(a, q.mantissa, STR(""));
    return number_text(a, q.mantissa, arena_printf(a, "e%d", q.scale));
}

/* q is an integer of at least 1024 in size; at most INT64_MAX, by the cap. */
static struct str binary_text(struct arena *a, struct quantity q)
{
    for (; q.scale > 0; q.scale--)
        q.mantissa *= 10;
    for (; q.scale < 0; q.scale++)
        q.mantissa /= 10;
    size_t n = 0;
    for (; n < N_ELEMENTS(binary_suffixes) && q.mantissa % 1024 == 0; n++)
        q.mantissa /= 1024;
    return number_text(a, q.mantissa, n > 0 ? str_of(binary_suffixes[n - 1].text) : STR(""));
}

struct str quantity_text(struct arena *a, const struct quantity *q)
{
    if (q->text.p)
        return arena_str(a, q->text);
    if (q->mantissa == 0)
        return STR("0");
    if (q->format != QUANTITY_BINARY || !quantity_is_integer(q))
        return decimal_text(a, *q);
    struct quantity size = *q;
    const struct quantity kilo = {.mantissa = 1024};
    if (size.mantissa < 0)
        size.mantissa = -size.mantissa;
    return quantity_compare(&size, &kilo) < 0 ? decimal_text(a, *q) : binary_text(a, *q);
}
