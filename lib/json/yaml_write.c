/* SPDX-License-Identifier: Apache-2.0 */
#include "json/yaml_write.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/yaml_internal.h"

#define BEST_WIDTH 80        /* where long lines are folded at a blank */
#define SIMPLE_KEY_BYTES 128 /* longer keys are written `? key` */
#define INDENT 2
#define LONG_NUMBER_BYTES 128

struct writer {
    struct buf *b;
    size_t column; /* characters on this line */
    struct arena *arena;
};

static void put(struct writer *w, char c)
{
    buf_append_char(w->b, c);
    if (((unsigned char) c & 0xc0) != 0x80)
        w->column++;
}

static void put_text(struct writer *w, const char *text)
{
    for (; *text; text++)
        put(w, *text);
}

static void new_line(struct writer *w, size_t indent)
{
    buf_append_char(w->b, '\n');
    w->column = 0;
    for (size_t i = 0; i < indent; i++)
        put(w, ' ');
}

/* ---- what a string allows ----------------------------------------------------------------- */

enum style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL };

/* Bytes of the character at p, or 0 when it must be escaped. */
static size_t printable_width(struct str s, size_t at)
{
    const unsigned char *p = (const unsigned char *) s.p + at;
    const size_t left = s.n - at;
    if (p[0] == '\n' || (p[0] >= 0x20 && p[0] <= 0x7e))
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return left > 1 && !(p[0] == 0xc2 && p[1] < 0xa0) ? 2 : 0;
    if (p[0] < 0xe0 || p[0] > 0xef || left < 3)
        return 0;
    const unsigned code = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    const bool is_break = code == 0x2028 || code == 0x2029;
    const bool is_special = code == 0xfeff || code >= 0xfffe || (code >= 0xd800 && code < 0xe000);
    return is_break || is_special ? 0 : 3;
}

static bool is_blank_or_end(struct str s, size_t at)
{
    return at >= s.n || s.p[at] == ' ' || s.p[at] == '\n';
}

/* Characters with a meaning in block style. */
static bool has_indicator(struct str s)
{
    if (str_starts_with(s, STR("---")) || str_starts_with(s, STR("...")))
        return true;
    const char first = s.p[0];
    if (strchr("#,[]{}&*!|>'\"%@`", first))
        return true;
    if ((first == '-' || first == '?' || first == ':') && is_blank_or_end(s, 1))
        return true;
    for (size_t i = 1; i < s.n; i++)
        if ((s.p[i] == ':' && is_blank_or_end(s, i + 1)) ||
            (s.p[i] == '#' && is_blank_or_end(s, i - 1)))
            return true;
    return false;
}

static bool is_all_printable(struct str s)
{
    for (size_t i = 0, width; i < s.n; i += width) {
        width = printable_width(s, i);
        if (width == 0)
            return false;
    }
    return true;
}

static size_t skip_digits(struct str s, size_t at, size_t max)
{
    size_t n = 0;
    while (n < max && at + n < s.n && isdigit((unsigned char) s.p[at + n]))
        n++;
    return n;
}

/* 2006-1-2, alone or with a time behind: go-yaml reads these as times. */
static bool looks_like_time(struct str s)
{
    size_t at = skip_digits(s, 0, 4);
    for (int part = 0; part < 2; part++) {
        if ((part == 0 && at != 4) || at >= s.n || s.p[at] != '-')
            return false;
        const size_t n = skip_digits(s, ++at, 2);
        if (n == 0)
            return false;
        at += n;
    }
    if (at == s.n)
        return true;
    if (s.p[at] != 'T' && s.p[at] != 't' && s.p[at] != ' ')
        return false;
    const size_t n = skip_digits(s, at + 1, 2);
    return n > 0 && at + 1 + n < s.n && s.p[at + 1 + n] == ':';
}

/* 1:30:00, a number to base 60 in YAML 1.1. */
static bool looks_like_base60(struct str s)
{
    size_t at = s.p[0] == '-' || s.p[0] == '+';
    if (skip_digits(s, at, 1) == 0 || str_find(s, ':') < 0)
        return false;
    for (; at < s.n; at++)
        if (!isdigit((unsigned char) s.p[at]) && !strchr("_:.", s.p[at]))
            return false;
    return true;
}

/* Digits without end: our reader takes them for a string, go-yaml for a double. */
static bool looks_like_long_number(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!char_is_in(s.p[i], "0123456789+-._eE"))
            return false;
    return s.n >= LONG_NUMBER_BYTES;
}

/* Would the text, unquoted, read back as something else than a string? */
static bool reads_as_other(struct writer *w, struct str s)
{
    if (s.n == 0 || str_is(s, "<<"))
        return true;
    if (!strchr("+-.0123456789yYnNtTfFoO~", s.p[0]))
        return false;
    struct json value;
    struct str error;
    const struct yaml_scalar scalar = {.text = s, .tag = STR_NONE, .is_implicit = true};
    if (yaml_resolve(w->arena, &scalar, &value, &error) < 0 || value.type != JSON_STRING)
        return true;
    return looks_like_time(s) || looks_like_base60(s) || looks_like_long_number(s);
}

static enum style choose_style(struct writer *w, struct str s, bool is_key)
{
    const bool has_break = str_find(s, '\n') >= 0;
    if (s.n == 0 || !is_all_printable(s))
        return STYLE_DOUBLE;
    if (has_break) {
        const bool is_ragged = s.p[s.n - 1] == ' ' || str_find_str(s, STR(" \n")) >= 0;
        return is_key || is_ragged ? STYLE_DOUBLE : STYLE_LITERAL;
    }
    if (reads_as_other(w, s))
        return STYLE_DOUBLE;
    const bool has_edge = s.p[0] == ' ' || s.p[s.n - 1] == ' ';
    return has_edge || has_indicator(s) ? STYLE_SINGLE : STYLE_PLAIN;
}

/* ---- strings ------------------------------------------------------------------------------ */

static bool folds_here(const struct writer *w, struct str s, size_t at, bool after_blank)
{
    return s.p[at] == ' ' && !after_blank && w->column > BEST_WIDTH && at > 0 && at + 1 < s.n;
}

static void write_plain(struct writer *w, struct str s, size_t indent, bool is_key)
{
    bool after_blank = false;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_key && folds_here(w, s, i, after_blank) && s.p[i + 1] != ' ')
            new_line(w, indent);
        else
            put(w, s.p[i]);
        after_blank = s.p[i] == ' ';
    }
}

static void write_single(struct writer *w, struct str s, size_t indent, bool is_key)
{
    put(w, '\'');
    bool after_blank = false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            put(w, '\'');
        if (!is_key && folds_here(w, s, i, after_blank) && s.p[i + 1] != ' ')
            new_line(w, indent);
        else
            put(w, s.p[i]);
        after_blank = s.p[i] == ' ';
    }
    put(w, '\'');
}

/* Decodes one character of UTF-8 that is known to be well formed, or takes a stray byte as it is.
 */
static size_t decode(struct str s, size_t at, unsigned *ret_code)
{
    const unsigned char *p = (const unsigned char *) s.p + at;
    const size_t width = p[0] < 0xc0 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (width == 1 || at + width > s.n) {
        *ret_code = p[0];
        return 1;
    }
    unsigned code = p[0] & (0x7fu >> width);
    for (size_t i = 1; i < width; i++)
        code = code << 6 | (p[i] & 63u);
    *ret_code = code;
    return width;
}

static size_t write_escape(struct writer *w, struct str s, size_t at)
{
    static const char letters[] = "0......abtnvfr.............e"; /* by code */
    unsigned code;
    const size_t width = decode(s, at, &code);
    char text[16];
    if (code == '"' || code == '\\')
        (void) snprintf(text, sizeof(text), "\\%c", (char) code);
    else if (code < sizeof(letters) - 1 && letters[code] != '.')
        (void) snprintf(text, sizeof(text), "\\%c", letters[code]);
    else if (code == 0x85 || code == 0xa0)
        (void) snprintf(text, sizeof(text), "\\%c", code == 0x85 ? 'N' : '_');
    else if (code == 0x2028 || code == 0x2029)
        (void) snprintf(text, sizeof(text), "\\%c", code == 0x2028 ? 'L' : 'P');
    else
        (void) snprintf(text, sizeof(text),
                        code < 0x100     ? "\\x%02X"
                        : code < 0x10000 ? "\\u%04X"
                                         : "\\U%08X",
                        code);
    put_text(w, text);
    return width;
}

static void write_double(struct writer *w, struct str s, size_t indent, bool is_key)
{
    put(w, '"');
    bool after_blank = false;
    for (size_t i = 0, width; i < s.n; i += width) {
        width = printable_width(s, i);
        if (width == 0 || s.p[i] == '"' || s.p[i] == '\\' || s.p[i] == '\n') {
            width = write_escape(w, s, i);
            after_blank = false;
            continue;
        }
        if (!is_key && folds_here(w, s, i, after_blank)) {
            new_line(w, indent);
            if (s.p[i + 1] == ' ')
                put(w, '\\');
        } else {
            for (size_t k = 0; k < width; k++)
                put(w, s.p[i + k]);
        }
        after_blank = s.p[i] == ' ';
    }
    put(w, '"');
}

/* Indented also at the top, where libyaml would take a first line without indent for the end. */
static void write_literal(struct writer *w, struct str s, size_t outer)
{
    const size_t indent = MAX(outer, (size_t) INDENT);
    put(w, '|');
    if (s.p[0] == ' ' || s.p[0] == '\n')
        put(w, (char) ('0' + INDENT));
    if (s.p[s.n - 1] != '\n')
        put(w, '-');
    else if (s.n == 1 || s.p[s.n - 2] == '\n')
        put(w, '+');
    const struct str body = s.p[s.n - 1] == '\n' ? str_sub(s, 0, s.n - 1) : s;
    size_t begin = 0;
    for (size_t i = 0; i <= body.n; i++) {
        if (i < body.n && body.p[i] != '\n')
            continue;
        new_line(w, i > begin ? indent : 0);
        for (size_t k = begin; k < i; k++)
            put(w, body.p[k]);
        begin = i + 1;
    }
}

static void write_string(struct writer *w, struct str s, size_t indent, bool is_key)
{
    switch (choose_style(w, s, is_key)) {
    case STYLE_PLAIN:
        write_plain(w, s, indent, is_key);
        break;
    case STYLE_SINGLE:
        write_single(w, s, indent, is_key);
        break;
    case STYLE_DOUBLE:
        write_double(w, s, indent, is_key);
        break;
    case STYLE_LITERAL:
        write_literal(w, s, indent);
        break;
    }
}

/* ---- values ------------------------------------------------------------------------------- */

static int64_t take_number(struct str s, size_t at, size_t *ret_end)
{
    int64_t n = 0;
    for (; at < s.n && isdigit((unsigned char) s.p[at]); at++)
        n = n > INT64_MAX / 100 ? n : n * 10 + (s.p[at] - '0');
    *ret_end = at;
    return n;
}

static bool is_letter(char c)
{
    return isalpha((unsigned char) c) || (unsigned char) c >= 0x80;
}

/* Do equal digits before `at` make a number that a zero continues? */
static bool continues_number(struct str s, size_t at)
{
    while (at-- > 0 && isdigit((unsigned char) s.p[at]))
        if (s.p[at] != '0')
            return true;
    return false;
}

/* go-yaml's natural order: letters behind the rest, runs of digits by value. */
static int compare_keys(const void *a, const void *b)
{
    const struct str x = json_str(&(*(const struct json_member *const *) a)->key);
    const struct str y = json_str(&(*(const struct json_member *const *) b)->key);
    for (size_t i = 0; i < x.n && i < y.n; i++) {
        if (x.p[i] == y.p[i])
            continue;
        const bool x_letter = is_letter(x.p[i]), y_letter = is_letter(y.p[i]);
        if (x_letter != y_letter)
            return x_letter ? 1 : -1;
        size_t x_end = i, y_end = i;
        int64_t m = 0, n = 0;
        if (!x_letter) {
            m = take_number(x, i, &x_end);
            n = take_number(y, i, &y_end);
            if ((x.p[i] == '0' || y.p[i] == '0') && continues_number(x, i))
                m = n = 0;
        }
        if (m != n)
            return m < n ? -1 : 1;
        if (x_end != y_end)
            return x_end < y_end ? -1 : 1;
        return (unsigned char) x.p[i] < (unsigned char) y.p[i] ? -1 : 1;
    }
    return x.n == y.n ? 0 : x.n < y.n ? -1 : 1;
}

static void write_value(struct writer *w, const struct json *v, size_t indent);
static void write_block(struct writer *w, const struct json *v, size_t indent);

static bool is_block(const struct json *v)
{
    return json_count(v) > 0;
}

/* The value of a key or of `- `, on the same line. */
static void write_value(struct writer *w, const struct json *v, size_t indent)
{
    if (is_block(v))
        write_block(w, v, indent);
    else if (json_is(v, JSON_STRING))
        write_string(w, json_str(v), indent, /* is_key= */ false);
    else
        json_write(w->b, v);
}

static void write_member(struct writer *w, const struct json_member *m, size_t indent)
{
    const struct str key = json_str(&m->key);
    const bool is_simple = key.n <= SIMPLE_KEY_BYTES;
    if (!is_simple)
        put_text(w, "? ");
    write_string(w, key, indent + INDENT, /* is_key= */ true);
    if (!is_simple)
        new_line(w, indent);
    put(w, ':');
    if (is_simple && is_block(&m->value)) {
        const size_t depth = m->value.type == JSON_ARRAY ? indent : indent + INDENT;
        new_line(w, depth);
        write_block(w, &m->value, depth);
    } else {
        put(w, ' ');
        write_value(w, &m->value, indent + INDENT);
    }
}

/* The cursor stands where the first line begins. */
static void write_block(struct writer *w, const struct json *v, size_t indent)
{
    if (v->type == JSON_ARRAY) {
        for (size_t i = 0; i < v->n; i++) {
            if (i)
                new_line(w, indent);
            put_text(w, "- ");
            write_value(w, &v->items[i], indent + INDENT);
        }
        return;
    }
    const struct json_member **members = ARENA_ARRAY(w->arena, const struct json_member *, v->n);
    for (size_t i = 0; i < v->n; i++)
        members[i] = &v->members[i];
    qsort(members, v->n, sizeof(*members), compare_keys);
    for (size_t i = 0; i < v->n; i++) {
        if (i)
            new_line(w, indent);
        write_member(w, members[i], indent);
    }
}

void yaml_write(struct buf *b, const struct json *v)
{
    ARENA_AUTO arena = arena_new();
    struct writer w = {.b = b, .arena = arena};
    write_value(&w, v, 0);
    buf_append_char(b, '\n');
}
