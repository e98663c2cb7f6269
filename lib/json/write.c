/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/json_internal.h"

#define MAX_NUMBER_BYTES 32
#define MAX_ESCAPE_BYTES 6
#define STRING_CHUNK 512 /* bytes of a string for which the worst case is reserved at once */

/* ---- strings ------------------------------------------------------------------------------ */

/* The letter after the backslash; 'u': \u00xx; 0: as it is. */
static const char escapes[256] = {
    [0 ... 7] = 'u', ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',          [0x0b] = 'u',
    ['\f'] = 'f',    ['\r'] = 'r', ['"'] = '"',  [0x0e ... 0x1f] = 'u', ['\\'] = '\\',
};

/* Nonzero when one of eight bytes is a quote, a backslash or a control character. */
static uint64_t needs_escape(uint64_t bytes)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = bytes ^ (ones * '"'), backslash = bytes ^ (ones * '\\');
    return ((bytes - ones * 0x20) | (quote - ones) | (backslash - ones)) & ~bytes & highs;
}

static char *put_escape(char *to, unsigned char c)
{
    *to++ = '\\';
    *to++ = escapes[c];
    if (escapes[c] != 'u')
        return to;
    *to++ = '0';
    *to++ = '0';
    *to++ = (char) ('0' + (c >> 4));
    *to++ = "0123456789abcdef"[c & 15];
    return to;
}

/* Writes to memory that is large enough for every byte escaped. */
static char *put_escaped(char *to, const char *p, const char *end)
{
    while (p < end) {
        uint64_t bytes;
        while (end - p >= 8 && (memcpy(&bytes, p, 8), !needs_escape(bytes))) {
            memcpy(to, &bytes, 8);
            to += 8;
            p += 8;
        }
        while (p < end && !escapes[(unsigned char) *p])
            *to++ = *p++;
        if (p < end)
            to = put_escape(to, (unsigned char) *p++);
    }
    return to;
}

/* buf_reserve() without the call while there is room; this is the hot path of every write. */
static inline char *reserve(struct buf *b, size_t n_more)
{
    return b->n + n_more < b->capacity ? b->p + b->n : buf_reserve(b, n_more);
}

static inline void put_char(struct buf *b, char c)
{
    *reserve(b, 1) = c;
    b->n++;
}

/* Copies n bytes; false when one of them needs an escape, and the copy is then no good. Loads may
 * overlap, so that no string ends in a loop over single bytes. */
static bool put_clean(char *to, const char *p, size_t n)
{
    uint64_t found = 0, bytes = 0;
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8) {
            memcpy(&bytes, p + i, 8);
            found |= needs_escape(bytes);
            memcpy(to + i, &bytes, 8);
        }
        memcpy(&bytes, p + n - 8, 8);
        memcpy(to + n - 8, &bytes, 8);
        return !(found | needs_escape(bytes));
    }
    if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + n - 4, &last, 4);
        return !needs_escape((uint64_t) last << 32 | first);
    }
    for (size_t i = 0; i < n; i++) {
        found |= (unsigned char) escapes[(unsigned char) p[i]];
        to[i] = p[i];
    }
    return !found;
}

/* Copies what needs no escapes; most strings are too short to be worth a call. */
static inline char *put_bytes(char *to, const char *p, size_t n)
{
    uint64_t first, last;
    if (n > 16)
        return mempcpy(to, p, n);
    if (n >= 8) {
        memcpy(&first, p, 8);
        memcpy(&last, p + n - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + n - 8, &last, 8);
    } else if (n >= 4) {
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + n - 4, &last, 4);
    } else if (n > 0) {
        char middle = p[n / 2], end = p[n - 1];
        to[0] = p[0];
        to[n / 2] = middle;
        to[n - 1] = end;
    }
    return to + n;
}

static void write_escaped(struct buf *b, const char *p, size_t n)
{
    while (n > 0) {
        size_t chunk = MIN(n, (size_t) STRING_CHUNK);
        char *to = reserve(b, chunk * MAX_ESCAPE_BYTES);
        b->n += (size_t) (put_escaped(to, p, p + chunk) - to);
        p += chunk;
        n -= chunk;
    }
}

static void write_str(struct buf *b, const char *p, size_t n)
{
    char *to = reserve(b, n + 2);
    *to = '"';
    if (put_clean(to + 1, p, n)) {
        to[n + 1] = '"';
        b->n += n + 2;
        return;
    }
    b->n++;
    write_escaped(b, p, n);
    put_char(b, '"');
}

static void write_string(struct buf *b, const struct json *v)
{
    if (!v->is_plain) {
        write_str(b, v->s, v->n);
        return;
    }
    char *to = reserve(b, (size_t) v->n + 2);
    *to = '"';
    to = put_bytes(to + 1, v->s, v->n);
    *to = '"';
    b->n += (size_t) v->n + 2;
}

/* With the comma before it and the colon behind it. */
static void write_key(struct buf *b, const struct json *key, bool is_first)
{
    if (!key->is_plain) {
        if (!is_first)
            put_char(b, ',');
        write_str(b, key->s, key->n);
        put_char(b, ':');
        return;
    }
    char *start = reserve(b, (size_t) key->n + 4), *to = start;
    *to = ',';
    to += !is_first;
    *to++ = '"';
    to = put_bytes(to, key->s, key->n);
    *to++ = '"';
    *to++ = ':';
    b->n += (size_t) (to - start);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static void write_int(struct buf *b, int64_t i)
{
    char digits[MAX_NUMBER_BYTES];
    char *end = digits + sizeof(digits), *p = end;
    uint64_t u = i < 0 ? 0 - (uint64_t) i : (uint64_t) i;
    do {
        *--p = (char) ('0' + u % 10);
        u /= 10;
    } while (u > 0);
    if (i < 0)
        *--p = '-';
    size_t n = (size_t) (end - p);
    memcpy(reserve(b, n), p, n);
    b->n += n;
}

/* The fewest digits that read back as the same double, as d.ddde±xx. Any decimal of 15 digits
 * survives a normal double, so the search starts there; subnormals hold fewer. */
static void shortest_digits(double d, char text[MAX_NUMBER_BYTES])
{
    int precision = fabs(d) < 0x1p-1022 ? 0 : 14;
    do {
        (void) snprintf(text, MAX_NUMBER_BYTES, "%.*e", precision, d);
    } while (precision++ < 16 && strtod(text, NULL) != d);
}

/* "123" with the point after `point` digits (which may lie outside them), as Go's format 'f'. */
static char *put_plain(char *to, const char *digits, int n_digits, int point)
{
    if (point <= 0) {
        to = mempcpy(to, "0.", 2);
        memset(to, '0', (size_t) -point);
        return mempcpy(to - point, digits, (size_t) n_digits);
    }
    int before = MIN(point, n_digits);
    to = mempcpy(to, digits, (size_t) before);
    memset(to, '0', (size_t) (point - before));
    to += point - before;
    if (before < n_digits) {
        *to++ = '.';
        to = mempcpy(to, digits + before, (size_t) (n_digits - before));
    }
    return to;
}

static char *put_scientific(char *to, const char *digits, int n_digits, int exponent)
{
    *to++ = digits[0];
    if (n_digits > 1) {
        *to++ = '.';
        to = mempcpy(to, digits + 1, (size_t) (n_digits - 1));
    }
    return to + snprintf(to, 8, "e%+d", exponent);
}

/* A number with a few decimals, as people write them: digits such that digits / 10^n_decimals is d.
 * Up to 15 digits no other decimal as short reads back as d, and both operands of the division are
 * exact, so it rounds as reading does. False: not such a number. */
static bool few_decimals(double d, int64_t *ret_digits, int *ret_n_decimals)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    for (int n = 1; n < (int) N_ELEMENTS(powers) && d * powers[n] < 1e15; n++) {
        int64_t digits = (int64_t) (d * powers[n] + 0.5);
        if ((double) digits / powers[n] != d)
            continue;
        *ret_digits = digits;
        *ret_n_decimals = n;
        return true;
    }
    return false;
}

static void write_decimals(struct buf *b, int64_t digits, int n_decimals)
{
    char text[MAX_NUMBER_BYTES];
    char *end = text + sizeof(text), *p = end;
    for (int i = 0; i < n_decimals; i++, digits /= 10)
        *--p = (char) ('0' + digits % 10);
    *--p = '.';
    write_int(b, digits);
    size_t n = (size_t) (end - p);
    memcpy(reserve(b, n), p, n);
    b->n += n;
}

/* As Go's encoding/json: plain within [1e-6, 1e21), scientific outside. JSON has no infinities.
 * Whole numbers that read back as integers are written exactly: Go pads them with zeros beyond
 * 2^53, which is another number then. */
static void write_double(struct buf *b, double d)
{
    if (!isfinite(d)) {
        buf_append_str(b, STR("null"));
        return;
    }
    if (fabs(d) < 0x1p63 && d == (double) (int64_t) d && !(d == 0 && signbit(d))) {
        write_int(b, (int64_t) d);
        return;
    }
    int64_t few = 0;
    int n_decimals = 0;
    if (d >= 1e-6 && few_decimals(d, &few, &n_decimals)) {
        write_decimals(b, few, n_decimals);
        return;
    }
    char text[MAX_NUMBER_BYTES], digits[MAX_NUMBER_BYTES];
    shortest_digits(fabs(d), text);
    int n_digits = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++) {
        if (*p != '.')
            digits[n_digits++] = *p;
    }
    while (n_digits > 1 && digits[n_digits - 1] == '0')
        n_digits--;
    int exponent = *p ? (int) strtol(p + 1, NULL, 10) : 0;
    char *to = reserve(b, 2 * MAX_NUMBER_BYTES), *start = to;
    if (signbit(d))
        *to++ = '-';
    bool is_plain = d == 0 || (exponent >= -6 && exponent < 21);
    to = d == 0     ? mempcpy(to, "0", 1)
         : is_plain ? put_plain(to, digits, n_digits, exponent + 1)
                    : put_scientific(to, digits, n_digits, exponent);
    b->n += (size_t) (to - start);
}

/* ---- values ------------------------------------------------------------------------------- */

static void write_literal(struct buf *b, struct str s)
{
    memcpy(reserve(b, s.n), s.p, s.n);
    b->n += s.n;
}

static void write_scalar(struct buf *b, const struct json *v)
{
    switch (v->type) {
    case JSON_BOOL:
        write_literal(b, v->b ? STR("true") : STR("false"));
        break;
    case JSON_INT:
        write_int(b, v->i);
        break;
    case JSON_DOUBLE:
        write_double(b, v->d);
        break;
    case JSON_STRING:
        write_string(b, v);
        break;
    default:
        write_literal(b, STR("null"));
    }
}

static void write_value(struct buf *b, const struct json *v)
{
    if (!json_is_container(v)) {
        write_scalar(b, v);
    } else if (v->n == 0) {
        write_literal(b, v->type == JSON_OBJECT ? STR("{}") : STR("[]"));
    } else if (v->type == JSON_OBJECT) {
        put_char(b, '{');
        for (uint32_t i = 0; i < v->n; i++) {
            write_key(b, &v->members[i].key, i == 0);
            write_value(b, &v->members[i].value);
        }
        put_char(b, '}');
    } else {
        put_char(b, '[');
        for (uint32_t i = 0; i < v->n; i++) {
            if (i > 0)
                put_char(b, ',');
            write_value(b, &v->items[i]);
        }
        put_char(b, ']');
    }
}

static void new_line(struct buf *b, size_t depth)
{
    char *to = reserve(b, 1 + 2 * depth);
    *to = '\n';
    memset(to + 1, ' ', 2 * depth);
    b->n += 1 + 2 * depth;
}

static void write_pretty(struct buf *b, const struct json *v, size_t depth)
{
    if (json_count(v) == 0) {
        write_value(b, v);
        return;
    }
    bool is_object = v->type == JSON_OBJECT;
    put_char(b, is_object ? '{' : '[');
    for (uint32_t i = 0; i < v->n; i++) {
        if (i > 0)
            put_char(b, ',');
        new_line(b, depth + 1);
        if (is_object) {
            write_str(b, v->members[i].key.s, v->members[i].key.n);
            write_literal(b, STR(": "));
        }
        write_pretty(b, is_object ? &v->members[i].value : &v->items[i], depth + 1);
    }
    new_line(b, depth);
    put_char(b, is_object ? '}' : ']');
}

/* The promise of buf.h, kept once per text and not per byte. */
static void terminate(struct buf *b)
{
    *reserve(b, 0) = '\0';
}

void json_write(struct buf *b, const struct json *v)
{
    write_value(b, v);
    terminate(b);
}

void json_write_str(struct buf *b, struct str s)
{
    write_str(b, s.p, s.n);
    terminate(b);
}

void json_write_pretty(struct buf *b, const struct json *v)
{
    write_pretty(b, v, 0);
    terminate(b);
}

struct str json_text(struct arena *a, const struct json *v)
{
    BUF_AUTO b = {0};
    json_write(&b, v);
    return arena_str(a, buf_str(&b));
}
