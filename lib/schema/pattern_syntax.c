/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Go's regular expression syntax and writes PCRE2's. What the two disagree on is written out
 * in a form that only has one meaning; what Go refuses is refused in its words. */
#include <ctype.h>
#include <errno.h>

#include "schema/pattern.h"

#define MAX_REPEAT 1000
#define MAX_GROUPS 200 /* open at once; PCRE2's own limit is 250 */
#define MAX_RUNE 0x10ffff

struct reader {
    struct arena *arena;
    struct str whole;
    size_t at;
    struct buf *out;
    struct str error;
    size_t n_open;
    bool has_operand;     /* something stands before that may be repeated */
    size_t repeat_from;   /* where the repetition just read began ... */
    bool is_after_repeat; /* ... if the last thing was one */
};

static int fail(struct reader *r, const char *what, struct str excerpt)
{
    r->error = arena_printf(r->arena, "error parsing regexp: %s: `%.*s`", what, STR_ARG(excerpt));
    return -EINVAL;
}

static struct str since(const struct reader *r, size_t from)
{
    return str_sub(r->whole, from, r->at);
}

static bool is_end(const struct reader *r)
{
    return r->at >= r->whole.n;
}

/* The byte `ahead` of the position, NUL behind the end. */
static char peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->whole.n ? r->whole.p[r->at + ahead] : '\0';
}

static uint32_t next_rune(struct reader *r)
{
    unsigned char c = (unsigned char) r->whole.p[r->at++];
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    uint32_t rune = more ? c & (0x3fu >> more) : c;
    for (; more && !is_end(r); more--)
        rune = rune << 6 | ((unsigned char) r->whole.p[r->at++] & 0x3f);
    return rune;
}

static void emit_rune(struct reader *r, uint32_t rune)
{
    if (rune < 0x80 && isalnum((int) rune))
        buf_append_char(r->out, (char) rune);
    else
        buf_printf(r->out, "\\x{%x}", rune);
}

/* ---- escapes ------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    return isxdigit((unsigned char) c)
               ? (isdigit((unsigned char) c) ? c - '0' : (c | 0x20) - 'a' + 10)
               : -1;
}

/* The next character as a hexadecimal digit; it is read even if it is none, as the excerpt shows
 * it. */
static int next_hex(struct reader *r)
{
    int digit = hex_digit(peek(r, 0));
    if (!is_end(r))
        (void) next_rune(r);
    return digit;
}

/* Behind \x: two digits, or any number in braces. */
static bool read_hex(struct reader *r, uint32_t *ret_rune)
{
    if (peek(r, 0) != '{') {
        int high = next_hex(r), low = high < 0 ? -1 : next_hex(r);
        *ret_rune = (uint32_t) (high * 16 + low);
        return low >= 0;
    }
    r->at++;
    uint32_t rune = 0;
    size_t n_digits = 0;
    for (; peek(r, 0) != '}'; n_digits++) {
        int digit = next_hex(r);
        if (digit < 0)
            return false;
        rune = rune << 4 | (uint32_t) digit;
        if (rune > MAX_RUNE)
            return false;
    }
    r->at++;
    *ret_rune = rune;
    return n_digits > 0;
}

static bool read_octal(struct reader *r, char first, uint32_t *ret_rune)
{
    bool more = peek(r, 0) >= '0' && peek(r, 0) <= '7';
    if (first != '0' && !more) /* a back reference */
        return false;
    *ret_rune = (uint32_t) (first - '0');
    for (int i = 0; i < 2 && peek(r, 0) >= '0' && peek(r, 0) <= '7'; i++, r->at++)
        *ret_rune = *ret_rune * 8 + (uint32_t) (peek(r, 0) - '0');
    return true;
}

/* An escape that means one character; r->at is at the backslash. */
static int read_escape(struct reader *r, uint32_t *ret_rune)
{
    static const char letters[] = "afnrtv", meanings[] = "\a\f\n\r\t\v";
    size_t from = r->at++;
    if (is_end(r))
        return fail(r, "trailing backslash at end of expression", STR(""));
    uint32_t c = next_rune(r);
    const char *letter = c < 0x80 && c ? strchr(letters, (int) c) : NULL;
    bool good = true;
    if (letter)
        *ret_rune = (unsigned char) meanings[letter - letters];
    else if (c >= '0' && c <= '7')
        good = read_octal(r, (char) c, ret_rune);
    else if (c == 'x')
        good = read_hex(r, ret_rune);
    else if (c < 0x80 && !isalnum((int) c))
        *ret_rune = c;
    else
        good = false;
    return good ? 0 : fail(r, "invalid escape sequence", since(r, from));
}

/* \d \s \w and their opposites, inside a class or not; false when it is none. */
static bool read_perl_class(struct reader *r, bool in_class)
{
    char c = peek(r, 0) == '\\' ? peek(r, 1) : '\0';
    if (!char_is_in(c, "dDsSwW"))
        return false;
    /* PCRE2's \s has the vertical tab as well, which Go's has not. */
    if (c == 's')
        buf_printf(r->out, in_class ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]");
    else if (c == 'S' && in_class)
        buf_printf(r->out, "\\x{0}-\\x{8}\\x{b}\\x{e}-\\x{1f}\\x{21}-\\x{10ffff}");
    else if (c == 'S')
        buf_printf(r->out, "[^\\t\\n\\f\\r\\x20]");
    else
        buf_printf(r->out, "\\%c", c);
    r->at += 2;
    return true;
}

static bool is_class_name(struct str name)
{
    if (!name.n)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!isalnum((unsigned char) name.p[i]) && name.p[i] != '_')
            return false;
    return true;
}

/* \pL \p{Greek} \P{^Lu}. Returns 1 when there was one, 0 when there is none. */
static int read_unicode_class(struct reader *r)
{
    if (peek(r, 0) != '\\' || (peek(r, 1) | 0x20) != 'p')
        return 0;
    size_t from = r->at;
    bool negated = peek(r, 1) == 'P';
    r->at += 2;
    struct str name = {0};
    if (peek(r, 0) == '{') {
        ptrdiff_t end = str_find(str_from(r->whole, r->at), '}');
        if (end < 0)
            return fail(r, "invalid character class range", str_from(r->whole, from));
        name = str_sub(r->whole, r->at + 1, r->at + (size_t) end);
        r->at += (size_t) end + 1;
    } else if (!is_end(r)) {
        size_t start = r->at;
        (void) next_rune(r);
        name = since(r, start);
    }
    if (name.n && name.p[0] == '^') {
        negated = !negated;
        name = str_from(name, 1);
    }
    if (!is_class_name(name))
        return fail(r, "invalid character class range", since(r, from));
    /* A script means the script itself in Go, its extensions too in PCRE2. */
    bool is_script = name.n > 2 && !str_is(name, "Any");
    buf_printf(r->out, "\\%c{%s%.*s}", negated ? 'P' : 'p', is_script ? "sc:" : "", STR_ARG(name));
    return 1;
}

/* ---- character classes -------------------------------------------------------------------- */

static bool is_posix_name(struct str name)
{
    static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    if (name.n && name.p[0] == '^')
        name = str_from(name, 1);
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

/* [:alpha:] within a class. Returns 1 when there was one, 0 when there is none. */
static int read_posix_class(struct reader *r)
{
    if (peek(r, 0) != '[' || peek(r, 1) != ':')
        return 0;
    struct str rest = str_from(r->whole, r->at);
    ptrdiff_t end = str_find_str(str_from(rest, 2), STR(":]"));
    if (end < 0)
        return 0;
    struct str all = str_sub(rest, 0, (size_t) end + 4);
    if (!is_posix_name(str_sub(rest, 2, (size_t) end + 2)))
        return fail(r, "invalid character class range", all);
    buf_append_str(r->out, all);
    r->at += all.n;
    return 1;
}

static int read_class_char(struct reader *r, size_t class_from, uint32_t *ret_rune)
{
    if (is_end(r))
        return fail(r, "missing closing ]", str_from(r->whole, class_from));
    if (peek(r, 0) == '\\')
        return read_escape(r, ret_rune);
    *ret_rune = next_rune(r);
    return 0;
}

/* One character or a range. */
static int read_class_range(struct reader *r, size_t class_from)
{
    size_t from = r->at;
    uint32_t low = 0, high = 0;
    if (read_class_char(r, class_from, &low) < 0)
        return -EINVAL;
    high = low;
    if (peek(r, 0) == '-' && r->at + 1 < r->whole.n && peek(r, 1) != ']') {
        r->at++;
        if (read_class_char(r, class_from, &high) < 0)
            return -EINVAL;
        if (high < low)
            return fail(r, "invalid character class range", since(r, from));
    }
    emit_rune(r, low);
    if (high != low) {
        buf_append_char(r->out, '-');
        emit_rune(r, high);
    }
    return 0;
}

static int read_class(struct reader *r)
{
    size_t from = r->at++;
    buf_append_char(r->out, '[');
    if (peek(r, 0) == '^') {
        buf_append_char(r->out, '^');
        r->at++;
    }
    for (bool first = true; first || is_end(r) || peek(r, 0) != ']'; first = false) {
        int found = read_posix_class(r);
        if (found == 0)
            found = read_unicode_class(r);
        if (found == 0)
            found = read_perl_class(r, /* in_class= */ true);
        if (found == 0)
            found = read_class_range(r, from);
        if (found < 0)
            return found;
    }
    r->at++;
    buf_append_char(r->out, ']');
    r->has_operand = true;
    return 0;
}

/* ---- groups and repetitions --------------------------------------------------------------- */

static int open_group(struct reader *r)
{
    if (++r->n_open > MAX_GROUPS)
        return fail(r, "expression nests too deeply", r->whole);
    r->has_operand = false;
    return 0;
}

static bool is_capture_name(struct str name)
{
    return is_class_name(name);
}

static int read_named_group(struct reader *r, size_t name_at)
{
    size_t from = r->at;
    ptrdiff_t end = str_find(str_from(r->whole, from), '>');
    if (end < 0)
        return fail(r, "invalid named capture", str_from(r->whole, from));
    struct str name = str_sub(r->whole, from + name_at, from + (size_t) end);
    r->at += (size_t) end + 1;
    if (!is_capture_name(name))
        return fail(r, "invalid named capture", since(r, from));
    buf_append_str(r->out, STR("(?:"));
    return open_group(r);
}

/* (?i) (?m-s) (?U: and so on. */
static int read_flags(struct reader *r)
{
    size_t from = r->at;
    bool negative = false, saw_flag = false;
    for (r->at += 2; !is_end(r);) {
        uint32_t c = next_rune(r);
        if (c == 'i' || c == 'm' || c == 's' || c == 'U') {
            saw_flag = true;
        } else if (c == '-' && !negative) {
            negative = true;
            saw_flag = false;
        } else if ((c == ':' || c == ')') && (!negative || saw_flag)) {
            buf_append_str(r->out, since(r, from));
            return c == ':' ? open_group(r) : 0;
        } else {
            break;
        }
    }
    return fail(r, "invalid or unsupported Perl syntax", since(r, from));
}

static int read_group(struct reader *r)
{
    if (peek(r, 1) == '?') {
        if (peek(r, 2) == 'P' && peek(r, 3) == '<')
            return read_named_group(r, 4);
        if (peek(r, 2) == '<')
            return read_named_group(r, 3);
        return read_flags(r);
    }
    buf_append_str(r->out, STR("(?:"));
    r->at++;
    return open_group(r);
}

static int close_group(struct reader *r)
{
    if (r->n_open == 0)
        return fail(r, "unexpected )", r->whole);
    r->n_open--;
    r->at++;
    buf_append_char(r->out, ')');
    r->has_operand = true;
    return 0;
}

/* The number at the position, -1 when there is none; too large ones end above MAX_REPEAT. */
static int read_count(struct reader *r)
{
    if (!isdigit((unsigned char) peek(r, 0)))
        return -1;
    int n = 0;
    for (; isdigit((unsigned char) peek(r, 0)); r->at++)
        n = MIN(n * 10 + (peek(r, 0) - '0'), MAX_REPEAT + 1);
    return n;
}

/* {n} {n,} {n,m} at the position; false, and nothing read, when it is none and so literal. */
static bool read_counts(struct reader *r, int *ret_min, int *ret_max)
{
    size_t from = r->at++;
    bool leads_with_zero = peek(r, 0) == '0' && isdigit((unsigned char) peek(r, 1));
    *ret_min = *ret_max = leads_with_zero ? -1 : read_count(r);
    if (*ret_min >= 0 && peek(r, 0) == ',') {
        r->at++;
        *ret_max = peek(r, 0) == '}' ? MAX_REPEAT : read_count(r);
    }
    if (*ret_min >= 0 && *ret_max >= 0 && peek(r, 0) == '}') {
        r->at++;
        return true;
    }
    r->at = from;
    return false;
}

static int read_literal(struct reader *r)
{
    emit_rune(r, next_rune(r));
    r->has_operand = true;
    return 0;
}

/* The repetition operator from `from` to the position, with the ? that makes it lazy. */
static int finish_repeat(struct reader *r, size_t from)
{
    if (!r->has_operand)
        return fail(r, "missing argument to repetition operator", since(r, from));
    if (peek(r, 0) == '?')
        r->at++;
    if (r->is_after_repeat)
        return fail(r, "invalid nested repetition operator", since(r, r->repeat_from));
    buf_append_str(r->out, since(r, from));
    r->repeat_from = from;
    return 1;
}

static int read_repeat(struct reader *r)
{
    size_t from = r->at;
    if (peek(r, 0) != '{') {
        r->at++;
        return finish_repeat(r, from);
    }
    int min = 0, max = 0;
    if (!read_counts(r, &min, &max))
        return read_literal(r);
    if (min > MAX_REPEAT || max > MAX_REPEAT || min > max)
        return fail(r, "invalid repeat count", since(r, from));
    return finish_repeat(r, from);
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* \A \b \B \z, and \Q...\E. Returns 1 when there was one, 0 when there is none. */
static int read_special_escape(struct reader *r)
{
    char c = peek(r, 1);
    if (c == 'A' || c == 'b' || c == 'B' || c == 'z') {
        buf_printf(r->out, "(?:\\%c)", c);
        r->at += 2;
        return 1;
    }
    if (c != 'Q')
        return 0;
    r->at += 2;
    ptrdiff_t end = str_find_str(str_from(r->whole, r->at), STR("\\E"));
    size_t stop = end < 0 ? r->whole.n : r->at + (size_t) end;
    while (r->at < stop)
        (void) read_literal(r);
    r->at = end < 0 ? stop : stop + 2;
    return 1;
}

static int read_backslash(struct reader *r)
{
    int found = read_special_escape(r);
    if (found == 0)
        found = read_unicode_class(r);
    if (found == 0)
        found = read_perl_class(r, /* in_class= */ false);
    if (found == 0) {
        uint32_t rune = 0;
        found = read_escape(r, &rune);
        if (found == 0)
            emit_rune(r, rune);
    }
    r->has_operand = true;
    return MIN(found, 0);
}

/* Reads one element. 1: it was a repetition. */
static int read_element(struct reader *r)
{
    switch (peek(r, 0)) {
    case '(':
        return read_group(r);
    case ')':
        return close_group(r);
    case '|':
        buf_append_char(r->out, '|');
        r->has_operand = false;
        r->at++;
        return 0;
    case '^':
    case '$':
        /* In a group of its own it may be repeated, as Go allows. */
        buf_printf(r->out, "(?:%c)", peek(r, 0));
        r->has_operand = true;
        r->at++;
        return 0;
    case '.':
        buf_append_char(r->out, '.');
        r->has_operand = true;
        r->at++;
        return 0;
    case '[':
        return read_class(r);
    case '*':
    case '+':
    case '?':
    case '{':
        return read_repeat(r);
    case '\\':
        return read_backslash(r);
    default:
        return read_literal(r);
    }
}

int pattern_translate(struct arena *a, struct str text, struct buf *out, struct str *ret_error)
{
    struct reader r = {.arena = a, .whole = text, .out = out};
    int found =
        text.n > PATTERN_MAX_BYTES ? fail(&r, "expression too large", str_sub(text, 0, 64)) : 0;
    while (found >= 0 && !is_end(&r)) {
        found = read_element(&r);
        r.is_after_repeat = found == 1;
    }
    if (found >= 0 && r.n_open > 0)
        found = fail(&r, "missing closing )", text);
    if (found < 0) {
        *ret_error = r.error;
        return -EINVAL;
    }
    return 0;
}
