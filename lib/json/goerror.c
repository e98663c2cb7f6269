/* SPDX-License-Identifier: Apache-2.0 */
/* Why a text is no JSON, in the words of Go's encoding/json, which is what clients of Kubernetes
 * know. Runs only after yyjson has refused the text, so it is written to be clear, not fast. */
#include <assert.h>

#include "json/json_internal.h"

struct scan {
    struct str text;
    size_t at;
    const char *context; /* of the first fault; NULL: none yet */
    bool is_short;       /* the fault is the end of the text */
};

/* The byte here, or -1 at the end. */
static int peek(const struct scan *s)
{
    return s->at < s->text.n ? (unsigned char) s->text.p[s->at] : -1;
}

static bool fail(struct scan *s, const char *context)
{
    s->context = context;
    s->is_short = s->at >= s->text.n;
    return false;
}

static void skip_blanks(struct scan *s)
{
    while (s->at < s->text.n && memchr(" \t\r\n", s->text.p[s->at], 4))
        s->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(struct scan *s, const char *context)
{
    if (!is_digit(peek(s)))
        return fail(s, context);
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool scan_number(struct scan *s)
{
    if (peek(s) == '-')
        s->at++;
    if (peek(s) == '0')
        s->at++;
    else if (!scan_digits(s, "in numeric literal"))
        return false;
    if (peek(s) == '.') {
        s->at++;
        if (!scan_digits(s, "after decimal point in numeric literal"))
            return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-')
            s->at++;
        return scan_digits(s, "in exponent of numeric literal");
    }
    return true;
}

static bool is_hex(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool scan_escape(struct scan *s)
{
    int c = peek(s);
    if (c < 0 || !memchr("\"\\/bfnrtu", c, 9))
        return fail(s, "in string escape code");
    s->at++;
    for (int i = 0; c == 'u' && i < 4; i++, s->at++) {
        if (!is_hex(peek(s)))
            return fail(s, "in \\u hexadecimal character escape");
    }
    return true;
}

static bool scan_string(struct scan *s)
{
    s->at++;
    for (;;) {
        int c = peek(s);
        if (c < 0x20)
            return fail(s, "in string literal");
        s->at++;
        if (c == '"')
            return true;
        if (c == '\\' && !scan_escape(s))
            return false;
    }
}

static const struct literal {
    const char *text;
    const char *faults[5]; /* by position */
} literals[] = {
    {"true",
     {NULL, "in literal true (expecting 'r')", "in literal true (expecting 'u')",
      "in literal true (expecting 'e')"}},
    {"false",
     {NULL, "in literal false (expecting 'a')", "in literal false (expecting 'l')",
      "in literal false (expecting 's')", "in literal false (expecting 'e')"}},
    {"null",
     {NULL, "in literal null (expecting 'u')", "in literal null (expecting 'l')",
      "in literal null (expecting 'l')"}},
};

static bool scan_literal(struct scan *s)
{
    for (size_t i = 0; i < N_ELEMENTS(literals); i++) {
        const char *text = literals[i].text;
        if (peek(s) != text[0])
            continue;
        for (size_t j = 0; text[j]; j++, s->at++) {
            if (peek(s) != text[j])
                return fail(s, literals[i].faults[j]);
        }
        return true;
    }
    return fail(s, "looking for beginning of value");
}

static bool scan_scalar(struct scan *s)
{
    int c = peek(s);
    if (c == '"')
        return scan_string(s);
    if (c == '-' || is_digit(c))
        return scan_number(s);
    return scan_literal(s);
}

/* A key and its colon; the value is next. */
static bool scan_key(struct scan *s)
{
    skip_blanks(s);
    if (peek(s) != '"')
        return fail(s, "looking for beginning of object key string");
    if (!scan_string(s))
        return false;
    skip_blanks(s);
    if (peek(s) != ':')
        return fail(s, "after object key");
    s->at++;
    return true;
}

/* Goes down through opening brackets to a scalar or an empty container. False on a fault. */
static bool scan_down(struct scan *s, char *open, size_t *depth)
{
    for (;;) {
        skip_blanks(s);
        int c = peek(s);
        if (c != '{' && c != '[')
            return scan_scalar(s);
        s->at++;
        assert(*depth < JSON_MAX_DEPTH);
        skip_blanks(s);
        if (peek(s) == (c == '{' ? '}' : ']')) {
            s->at++;
            return true;
        }
        open[(*depth)++] = (char) c;
        if (c == '{' && !scan_key(s))
            return false;
    }
}

/* Behind a value: closes what closes here. False on a fault; else another value follows, or depth
 * is 0. */
static bool scan_up(struct scan *s, const char *open, size_t *depth)
{
    for (;;) {
        skip_blanks(s);
        if (*depth == 0)
            return s->at >= s->text.n || fail(s, "after top-level value");
        bool is_object = open[*depth - 1] == '{';
        int c = peek(s);
        if (c == ',') {
            s->at++;
            return !is_object || scan_key(s);
        }
        if (c != (is_object ? '}' : ']'))
            return fail(s, is_object ? "after object key:value pair" : "after array element");
        s->at++;
        (*depth)--;
    }
}

/* A byte as strconv.Quote writes it, in single quotes. Go takes the byte for a code point. */
static struct str quote_byte(struct arena *a, unsigned char c)
{
    static const char *const names[256] = {
        ['\a'] = "\\a", ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n",  ['\r'] = "\\r",
        ['\t'] = "\\t", ['\v'] = "\\v", ['\''] = "\\'", ['\\'] = "\\\\",
    };
    if (names[c])
        return arena_printf(a, "'%s'", names[c]);
    if (c < 0x20 || c == 0x7f)
        return arena_printf(a, "'\\x%02x'", c);
    if (c < 0x80)
        return arena_printf(a, "'%c'", c);
    if (c <= 0xa0 || c == 0xad)
        return arena_printf(a, "'\\u%04x'", c);
    return arena_printf(a, "'%c%c'", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

bool json_go_error(struct arena *a, struct str text, struct str *ret_error, size_t *ret_at)
{
    struct scan s = {.text = text};
    char open[JSON_MAX_DEPTH];
    size_t depth = 0;
    while (scan_down(&s, open, &depth) && scan_up(&s, open, &depth) && depth > 0)
        ;
    if (!s.context)
        return false;
    *ret_at = s.at;
    if (s.is_short) {
        *ret_error = STR("unexpected end of JSON input");
        return true;
    }
    struct str quoted = quote_byte(a, (unsigned char) text.p[s.at]);
    *ret_error = arena_printf(a, "invalid character %.*s %s", STR_ARG(quoted), s.context);
    return true;
}
