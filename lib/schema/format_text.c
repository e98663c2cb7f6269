/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "schema/format_internal.h"

#define HOSTNAME_MAX_BYTES 255
#define LABEL_MAX_BYTES 63

static bool is_alnum(char c)
{
    return isalnum((unsigned char) c) && (unsigned char) c < 0x80;
}

/* ---- URIs --------------------------------------------------------------------------------- */

static bool is_hex(char c)
{
    return isxdigit((unsigned char) c) && (unsigned char) c < 0x80;
}

/* Every % opens an escape. */
static bool has_good_escapes(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '%' && (i + 2 >= s.n || !is_hex(s.p[i + 1]) || !is_hex(s.p[i + 2])))
            return false;
    return true;
}

/* The length of the scheme before a colon; 0: none, -1: malformed. */
static ptrdiff_t scheme_length(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (isalpha((unsigned char) c) && (unsigned char) c < 0x80)
            continue;
        if (c == ':')
            return i == 0 ? -1 : (ptrdiff_t) i;
        if (!is_alnum(c) && c != '+' && c != '-' && c != '.')
            return 0;
        if (i == 0)
            return 0;
    }
    return 0;
}

static bool is_port(struct str s)
{
    if (!s.n)
        return true;
    if (s.p[0] != ':')
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

static bool is_host_char(char c)
{
    return (unsigned char) c >= 0x80 || is_alnum(c) || char_is_in(c, "-._~!$&'()*+,;=:[]<>\"%");
}

static bool is_host(struct str host)
{
    struct str name = host, port = STR("");
    if (str_starts_with(host, STR("["))) {
        ptrdiff_t end = str_find_last(host, ']');
        if (end < 0)
            return false;
        name = str_sub(host, 0, (size_t) end + 1);
        port = str_from(host, (size_t) end + 1);
    } else if (str_find_last(host, ':') >= 0) {
        size_t colon = (size_t) str_find_last(host, ':');
        name = str_sub(host, 0, colon);
        port = str_from(host, colon);
    }
    for (size_t i = 0; i < name.n; i++)
        if (!is_host_char(name.p[i]))
            return false;
    return is_port(port) && has_good_escapes(name);
}

static bool is_user_info(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && !char_is_in(s.p[i], "-._:~!$&'()*+,;=%@"))
            return false;
    return has_good_escapes(s);
}

bool format_is_uri(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char) s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    if (!s.n || str_is(s, "*"))
        return s.n != 0;
    ptrdiff_t scheme = scheme_length(s);
    if (scheme < 0)
        return false;
    struct str rest = scheme ? str_from(s, (size_t) scheme + 1) : s;
    ptrdiff_t query = str_find(rest, '?');
    if (query >= 0)
        rest = str_sub(rest, 0, (size_t) query);
    if (!str_starts_with(rest, STR("/")))
        return scheme > 0; /* opaque: mailto:a@b */
    if (scheme && str_starts_with(rest, STR("//"))) {
        struct str authority = str_from(rest, 2);
        ptrdiff_t slash = str_find(authority, '/');
        rest = slash >= 0 ? str_from(authority, (size_t) slash) : STR("");
        authority = slash >= 0 ? str_sub(authority, 0, (size_t) slash) : authority;
        ptrdiff_t at = str_find_last(authority, '@');
        if (at >= 0 && !is_user_info(str_sub(authority, 0, (size_t) at)))
            return false;
        if (!is_host(at >= 0 ? str_from(authority, (size_t) at + 1) : authority))
            return false;
    }
    return has_good_escapes(rest);
}

/* ---- mail addresses ----------------------------------------------------------------------- */

static bool is_atom_char(char c)
{
    return (unsigned char) c >= 0x80 || is_alnum(c) || char_is_in(c, "!#$%&'*+-/=?^_`{|}~");
}

/* Atoms with single dots between them. */
static bool is_dot_atom(struct str s)
{
    if (!s.n || s.p[0] == '.' || s.p[s.n - 1] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_atom_char(s.p[i]) && (s.p[i] != '.' || s.p[i - 1] == '.'))
            return false;
    return true;
}

/* The bytes of the quoted string that s begins with, 0 when it has no end. */
static size_t quoted_length(struct str s)
{
    for (size_t i = 1; i < s.n; i++) {
        unsigned char c = (unsigned char) s.p[i];
        if (c == '"')
            return i + 1;
        if (c == '\\')
            i++;
        else if (c < 0x20 && c != '\t')
            return 0;
    }
    return 0;
}

static bool is_address(struct str s)
{
    size_t local = 0;
    if (str_starts_with(s, STR("\""))) {
        local = quoted_length(s);
        if (local < 3)
            return false;
    } else {
        ptrdiff_t at = str_find(s, '@');
        if (at < 0 || !is_dot_atom(str_sub(s, 0, (size_t) at)))
            return false;
        local = (size_t) at;
    }
    if (local >= s.n || s.p[local] != '@')
        return false;
    struct str domain = str_from(s, local + 1);
    if (str_starts_with(domain, STR("[")))
        return domain.n > 2 && domain.p[domain.n - 1] == ']';
    return is_dot_atom(domain);
}

/* The words before <address>: atoms and quoted strings. */
static bool is_phrase(struct str s)
{
    while ((s = str_trim(s)).n) {
        size_t n = 0;
        if (s.p[0] == '"')
            n = quoted_length(s);
        else
            while (n < s.n && (is_atom_char(s.p[n]) || (s.p[n] == '.' && n)))
                n++;
        if (n == 0)
            return false;
        s = str_from(s, n);
    }
    return true;
}

bool format_is_email(struct str s)
{
    s = str_trim(s);
    if (!str_ends_with(s, STR(">")))
        return is_address(s);
    ptrdiff_t open = str_find_last(s, '<');
    if (open < 0)
        return false;
    return is_phrase(str_sub(s, 0, (size_t) open)) &&
           is_address(str_sub(s, (size_t) open + 1, s.n - 1));
}

/* ---- host names --------------------------------------------------------------------------- */

/* Letters, digits and (which is generous) everything beyond ASCII. */
static bool is_host_letter(char c)
{
    static const char symbols[] = "$+<=>^`|~"; /* Unicode's symbols below 0x80 */
    return (unsigned char) c >= 0x80 || is_alnum(c) || char_is_in(c, symbols);
}

static bool is_host_label(struct str s, bool is_last)
{
    if (!s.n || s.n > LABEL_MAX_BYTES || !is_host_letter(s.p[0]) || !is_host_letter(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool doubled = is_last && i && s.p[i] == '-' && s.p[i - 1] == '-';
        if (doubled || (!is_host_letter(s.p[i]) && s.p[i] != '-'))
            return false;
    }
    return true;
}

bool format_is_hostname(struct str s)
{
    if (!s.n || s.n > HOSTNAME_MAX_BYTES || s.p[s.n - 1] == '.')
        return false;
    ptrdiff_t dot = str_find_last(s, '.');
    if (dot < 0) {
        /* A single label may have one dash, and only behind its first character. */
        ptrdiff_t dash = str_find_last(s, '-');
        return is_host_label(s, true) && (dash < 0 || dash == 1);
    }
    struct str rest = str_sub(s, 0, (size_t) dot), last = str_from(s, (size_t) dot + 1);
    for (struct str label; str_split(&rest, '.', &label);)
        if (!is_host_label(label, false))
            return false;
    return s.p[dot - (dot > 0)] != '.' && last.n >= 2 && is_host_label(last, true);
}

/* ---- durations ---------------------------------------------------------------------------- */

static const char *const short_units[] = {"ns", "us", "\xc2\xb5s", "\xce\xbcs",
                                          "ms", "s",  "m",         "h"};
static const char *const long_units[] = {
    "ns",           "nano",  "nanos",  "nanosecond",  "nanoseconds",
    "us",           "micro", "micros", "microsecond", "microseconds",
    "\xc2\xb5s",    "ms",    "milli",  "millis",      "millisecond",
    "milliseconds", "s",     "sec",    "secs",        "second",
    "seconds",      "m",     "min",    "mins",        "minute",
    "minutes",      "h",     "hr",     "hrs",         "hour",
    "hours",        "d",     "day",    "days",        "w",
    "wk",           "wks",   "week",   "weeks",
};

static bool is_unit(struct str s, const char *const *units, size_t n_units)
{
    for (size_t i = 0; i < n_units; i++)
        if (str_is(s, units[i]))
            return true;
    return false;
}

static size_t span(struct str s, size_t at, bool (*is)(char c))
{
    size_t n = at;
    while (n < s.n && is(s.p[n]))
        n++;
    return n - at;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_unit_char(char c)
{
    return (unsigned char) c >= 0x80 || (isalpha((unsigned char) c) && (unsigned char) c < 0x80);
}

/* Takes a number with an optional fraction off s. */
static bool take_number(struct str *s)
{
    size_t whole = span(*s, 0, is_digit), n = whole, fraction = 0;
    if (n < s->n && s->p[n] == '.') {
        fraction = span(*s, n + 1, is_digit);
        n += 1 + fraction;
    }
    *s = str_from(*s, n);
    return whole + fraction > 0;
}

static bool is_pairs(struct str s, bool allow_blanks, const char *const *units, size_t n_units)
{
    if (!s.n)
        return false;
    while (s.n) {
        if (!take_number(&s))
            return false;
        if (allow_blanks)
            s = str_from(s, span(s, 0, is_blank));
        size_t n = span(s, 0, is_unit_char);
        if (!is_unit(str_sub(s, 0, n), units, n_units))
            return false;
        s = str_from(s, n);
        if (allow_blanks)
            s = str_from(s, span(s, 0, is_blank));
    }
    return true;
}

bool format_is_duration(struct str s)
{
    if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
        s = str_from(s, 1);
    if (str_is(s, "0"))
        return true;
    return is_pairs(s, false, short_units, N_ELEMENTS(short_units)) ||
           is_pairs(s, true, long_units, N_ELEMENTS(long_units));
}
