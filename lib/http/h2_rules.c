/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h2_rules.h"

enum seen {
    SEEN_METHOD = 1 << 0,
    SEEN_SCHEME = 1 << 1,
    SEEN_PATH = 1 << 2,
    SEEN_AUTHORITY = 1 << 3,
    SEEN_HOST = 1 << 4,
};

/* ---- characters ---------------------------------------------------------------------------- */

/* What a character may be part of. */
enum { NAME = 1, METHOD = 2, VALUE = 4, PATH = 8, AUTHORITY = 16, SCHEME = 32 };

#define LOWER (NAME | METHOD | VALUE | PATH | AUTHORITY | SCHEME)
#define UPPER (METHOD | VALUE | PATH | AUTHORITY | SCHEME)
#define DIGIT (NAME | METHOD | VALUE | PATH | AUTHORITY | SCHEME)
#define TOKEN (NAME | METHOD | VALUE | PATH)

static const unsigned char may[256] = {
    ['\t'] = VALUE,
    [' '] = VALUE,
    [0x80 ... 0xff] = VALUE | PATH,
    ['0' ... '9'] = DIGIT,
    ['A' ... 'Z'] = UPPER,
    ['a' ... 'z'] = LOWER,
    ['!'] = TOKEN | AUTHORITY,
    ['#'] = TOKEN,
    ['$'] = TOKEN | AUTHORITY,
    ['%'] = TOKEN | AUTHORITY,
    ['&'] = TOKEN | AUTHORITY,
    ['\''] = TOKEN | AUTHORITY,
    ['*'] = TOKEN | AUTHORITY,
    ['+'] = TOKEN | AUTHORITY | SCHEME,
    ['-'] = TOKEN | AUTHORITY | SCHEME,
    ['.'] = TOKEN | AUTHORITY | SCHEME,
    ['^'] = TOKEN,
    ['_'] = TOKEN | AUTHORITY,
    ['`'] = TOKEN,
    ['|'] = TOKEN,
    ['~'] = TOKEN | AUTHORITY,
    ['"'] = VALUE | PATH,
    ['/'] = VALUE | PATH,
    ['<'] = VALUE | PATH,
    ['>'] = VALUE | PATH,
    ['?'] = VALUE | PATH,
    ['\\'] = VALUE | PATH,
    ['{'] = VALUE | PATH,
    ['}'] = VALUE | PATH,
    ['('] = VALUE | PATH | AUTHORITY,
    [')'] = VALUE | PATH | AUTHORITY,
    [','] = VALUE | PATH | AUTHORITY,
    [':'] = VALUE | PATH | AUTHORITY,
    [';'] = VALUE | PATH | AUTHORITY,
    ['='] = VALUE | PATH | AUTHORITY,
    ['@'] = VALUE | PATH | AUTHORITY,
    ['['] = VALUE | PATH | AUTHORITY,
    [']'] = VALUE | PATH | AUTHORITY,
};

static bool is_all(struct str s, unsigned what)
{
    unsigned all = what;
    for (size_t i = 0; i < s.n; i++)
        all &= may[(unsigned char) s.p[i]];
    return all;
}

typedef unsigned char lanes __attribute__((vector_size(16)));

static lanes load_lanes(const char *p)
{
    lanes x;
    memcpy(&x, p, sizeof(x));
    return x;
}

/* Not zero where a byte is a control character, a tab among them. */
static lanes controls(lanes x)
{
    return (lanes) ((x < 0x20) | (x == 0x7f));
}

static bool has_control(struct str v)
{
    uint64_t halves[2];
    lanes found = controls(load_lanes(v.p + v.n - sizeof(lanes)));
    for (size_t i = 0; i + sizeof(lanes) <= v.n; i += sizeof(lanes))
        found |= controls(load_lanes(v.p + i));
    memcpy(halves, &found, sizeof(found));
    return halves[0] | halves[1];
}

/* Values are long and plain: many bytes at a time, looking closer only when something shows. */
static bool is_value(struct str v)
{
    if (v.n && (may[(unsigned char) v.p[0]] == VALUE || may[(unsigned char) v.p[v.n - 1]] == VALUE))
        return false; /* a blank at either end */
    return (v.n >= sizeof(lanes) && !has_control(v)) || is_all(v, VALUE);
}

/* ---- headers ------------------------------------------------------------------------------- */

static void expect(struct h2_rules *r, bool is_so)
{
    r->is_broken |= !is_so;
}

static void see(struct h2_rules *r, enum seen what)
{
    expect(r, !(r->seen & what));
    r->seen |= what;
}

static void see_path(struct h2_rules *r, struct str path)
{
    see(r, SEEN_PATH);
    expect(r, path.n > 0 && is_all(path, PATH));
    r->is_path_absolute = path.n && path.p[0] == '/';
    r->is_path_asterisk = str_is(path, "*");
}

static void see_scheme(struct h2_rules *r, struct str scheme)
{
    see(r, SEEN_SCHEME);
    expect(r, scheme.n > 0 && is_all(scheme, SCHEME));
    r->is_http = str_eq_nocase(scheme, STR("https")) || str_eq_nocase(scheme, STR("http"));
}

static void see_method(struct h2_rules *r, struct str method)
{
    see(r, SEEN_METHOD);
    expect(r, method.n > 0 && is_all(method, METHOD));
    r->is_connect = str_is(method, "CONNECT");
    r->is_options = str_is(method, "OPTIONS");
}

static void pseudo(struct h2_rules *r, struct str name, struct str value)
{
    expect(r, !r->has_fields);
    if (str_eq(name, STR(":method"))) {
        see_method(r, value);
    } else if (str_eq(name, STR(":path"))) {
        see_path(r, value);
    } else if (str_eq(name, STR(":authority"))) {
        see(r, SEEN_AUTHORITY);
        expect(r, is_all(value, AUTHORITY) || !value.n);
    } else if (str_eq(name, STR(":scheme"))) {
        see_scheme(r, value);
    } else {
        r->is_broken = true;
    }
}

static void content_length(struct h2_rules *r, struct str value)
{
    int64_t length = 0;
    bool is_number = value.n > 0;
    for (size_t i = 0; i < value.n; i++)
        is_number &= value.p[i] >= '0' && value.p[i] <= '9';
    expect(r, !r->has_length && is_number && str_to_i64(value, &length) == 0);
    r->has_length = true;
    r->length = (uint64_t) length;
}

/* Those that HTTP/2 has no use for, or that say how long the body is. By length first: most names
 * are none of them. */
static void special(struct h2_rules *r, struct str name, struct str value)
{
    static const struct str forbidden[] = {{"connection", 10},
                                           {"keep-alive", 10},
                                           {"proxy-connection", 16},
                                           {"transfer-encoding", 17},
                                           {"upgrade", 7}};
    for (size_t i = 0; i < N_ELEMENTS(forbidden); i++)
        expect(r, !str_eq(name, forbidden[i]));
    if (str_eq(name, STR("te")))
        expect(r, str_eq_nocase(value, STR("trailers")));
    else if (str_eq(name, STR("content-length")))
        content_length(r, value);
    else if (str_eq(name, STR("host")))
        see(r, SEEN_HOST), expect(r, is_all(value, AUTHORITY) || !value.n);
}

void h2_rules_header(struct h2_rules *r, struct str name, struct str value)
{
    if (name.n && name.p[0] == ':') {
        pseudo(r, name, value);
        return;
    }
    r->has_fields = true;
    expect(r, name.n > 0 && is_all(name, NAME) && is_value(value));
    special(r, name, value);
}

void h2_rules_trailer(struct h2_rules *r, struct str name, struct str value)
{
    expect(r, name.n > 0 && is_all(name, NAME) && is_value(value));
}

static bool has_what_it_needs(const struct h2_rules *r)
{
    const unsigned needed = SEEN_METHOD | SEEN_SCHEME | SEEN_PATH;
    if (r->is_connect)
        return (r->seen & (needed | SEEN_AUTHORITY)) == (SEEN_METHOD | SEEN_AUTHORITY);
    if ((r->seen & needed) != needed || !(r->seen & (SEEN_AUTHORITY | SEEN_HOST)))
        return false;
    return !r->is_http || r->is_path_absolute || (r->is_options && r->is_path_asterisk);
}

void h2_rules_end_head(struct h2_rules *r)
{
    expect(r, has_what_it_needs(r));
}

/* ---- the body ------------------------------------------------------------------------------ */

void h2_rules_data(struct h2_rules *r, size_t n)
{
    r->received += n;
    expect(r, !r->has_length || r->received <= r->length);
}

void h2_rules_end(struct h2_rules *r)
{
    expect(r, !r->has_length || r->received == r->length);
}
