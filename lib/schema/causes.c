/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/causes.h"

#include <stdlib.h>

/* Go's %q keeps printable runes; of the others these are what JSON text can carry into a message.
 */
static const struct {
    uint32_t first, last;
} unprintable[] = {
    {0x80, 0xa0},     {0xad, 0xad},       {0x600, 0x605},      {0x61c, 0x61c},   {0x6dd, 0x6dd},
    {0x70f, 0x70f},   {0x1680, 0x1680},   {0x180e, 0x180e},    {0x2000, 0x200f}, {0x2028, 0x202f},
    {0x205f, 0x206f}, {0x3000, 0x3000},   {0xd800, 0xf8ff},    {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
    {0xfffe, 0xffff}, {0x110bd, 0x110bd}, {0xe0000, 0x10ffff},
};

static bool is_printable(uint32_t rune)
{
    for (size_t i = 0; i < N_ELEMENTS(unprintable); i++)
        if (rune >= unprintable[i].first && rune <= unprintable[i].last)
            return false;
    return true;
}

/* The rune at p, which has n bytes of valid UTF-8 from there on; *ret_n is how many it takes. */
static uint32_t rune_at(const unsigned char *p, size_t n, size_t *ret_n)
{
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 1;
    *ret_n = MIN(length, n);
    uint32_t rune = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < *ret_n; i++)
        rune = rune << 6 | (p[i] & 0x3f);
    return rune;
}

static void quote_ascii(struct buf *b, unsigned char c)
{
    static const char names[] = "abtnvfr"; /* of 7 to 13 */
    if (c == '"' || c == '\\')
        buf_printf(b, "\\%c", c);
    else if (c >= 7 && c <= 13)
        buf_printf(b, "\\%c", names[c - 7]);
    else if (c < 0x20 || c == 0x7f)
        buf_printf(b, "\\x%02x", c);
    else
        buf_append_char(b, (char) c);
}

void causes_quote(struct buf *b, struct str s)
{
    buf_append_char(b, '"');
    for (size_t i = 0, n = 0; i < s.n; i += n) {
        const unsigned char *p = (const unsigned char *) s.p + i;
        uint32_t rune = rune_at(p, s.n - i, &n);
        if (rune < 0x80)
            quote_ascii(b, (unsigned char) rune);
        else if (is_printable(rune))
            buf_append(b, p, n);
        else
            buf_printf(b, rune > 0xffff ? "\\U%08x" : "\\u%04x", rune);
    }
    buf_append_char(b, '"');
}

/* Go's encoder also escapes what HTML would take for markup. */
static void write_go_string(struct buf *b, struct str s)
{
    BUF_AUTO plain = {0};
    json_write_str(&plain, s);
    for (size_t i = 0; i < plain.n; i++) {
        char c = plain.p[i];
        if (c == '<' || c == '>' || c == '&')
            buf_printf(b, "\\u%04x", c);
        else
            buf_append_char(b, c);
    }
}

static int compare_members(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp(json_str(&(*x)->key), json_str(&(*y)->key));
}

void causes_write_json(struct arena *a, struct buf *b, const struct json *v, size_t max_bytes)
{
    if (b->n > max_bytes)
        return;
    if (json_is(v, JSON_ARRAY)) {
        buf_append_char(b, '[');
        JSON_FOR_EACH_ITEM (v, item) {
            if (item != v->items)
                buf_append_char(b, ',');
            causes_write_json(a, b, item, max_bytes);
        }
        buf_append_char(b, ']');
    } else if (json_is(v, JSON_OBJECT)) {
        const struct json_member **sorted = ARENA_ARRAY(a, const struct json_member *, v->n + 1);
        for (size_t i = 0; i < v->n; i++)
            sorted[i] = &v->members[i];
        qsort(sorted, v->n, sizeof(*sorted), compare_members);
        buf_append_char(b, '{');
        for (size_t i = 0; i < v->n; i++) {
            if (i)
                buf_append_char(b, ',');
            write_go_string(b, json_str(&sorted[i]->key));
            buf_append_char(b, ':');
            causes_write_json(a, b, &sorted[i]->value, max_bytes);
        }
        buf_append_char(b, '}');
    } else if (json_is(v, JSON_STRING)) {
        write_go_string(b, json_str(v));
    } else {
        json_write(b, v);
    }
}

/* At most n bytes, and whole runes. */
static struct str cut(struct str s, size_t n)
{
    if (s.n <= n)
        return s;
    while (n > 0 && ((unsigned char) s.p[n] & 0xc0) == 0x80)
        n--;
    return str_sub(s, 0, n);
}

static void append_value(struct arena *a, struct buf *b, const struct json *v)
{
    BUF_AUTO text = {0};
    if (json_is(v, JSON_STRING))
        causes_quote(&text, json_str(v));
    else
        causes_write_json(a, &text, v, CAUSE_VALUE_MAX_BYTES);
    buf_append_str(b, cut(buf_str(&text), CAUSE_VALUE_MAX_BYTES));
}

static const struct {
    const char *reason, *text;
    bool shows_value;
} kinds[] = {
    [CAUSE_REQUIRED] = {"FieldValueRequired", "Required value", false},
    [CAUSE_INVALID] = {"FieldValueInvalid", "Invalid value", true},
    [CAUSE_NOT_SUPPORTED] = {"FieldValueNotSupported", "Unsupported value", true},
    [CAUSE_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value", true},
    [CAUSE_FORBIDDEN] = {"FieldValueForbidden", "Forbidden", false},
    [CAUSE_TOO_LONG] = {"FieldValueTooLong", "Too long", false},
    [CAUSE_TOO_MANY] = {"FieldValueTooMany", "Too many", true},
    [CAUSE_TYPE_INVALID] = {"FieldValueTypeInvalid", "Invalid value", true},
    [CAUSE_NOT_FOUND] = {"FieldValueNotFound", "Not found", true},
    [CAUSE_INTERNAL] = {"InternalError", "Internal error", false},
    [CAUSE_MANAGER_CONFLICT] = {"FieldManagerConflict", "Conflict", false},
};

struct str cause_reason(enum cause_type type)
{
    return str_of(kinds[type].reason);
}

void causes_init(struct causes *c, struct arena *a)
{
    *c = (struct causes){.arena = a};
    c->last = &c->first;
}

bool causes_are_full(const struct causes *c)
{
    return c->n >= CAUSES_MAX || c->n_bytes >= CAUSES_MAX_BYTES;
}

struct causes_mark causes_mark(const struct causes *c)
{
    return (struct causes_mark){.last = c->last, .n = c->n, .n_bytes = c->n_bytes};
}

void causes_rewind(struct causes *c, struct causes_mark mark)
{
    c->last = mark.last;
    *c->last = NULL;
    c->n = mark.n;
    c->n_bytes = mark.n_bytes;
}

static void append(struct causes *c, enum cause_type type, struct str field, struct str message)
{
    struct cause *cause = ARENA_NEW(c->arena, struct cause);
    *cause = (struct cause){.type = type, .field = field, .message = message};
    c->n_bytes += field.n + message.n;
    *c->last = cause;
    c->last = &cause->next;
}

void causes_add_text(struct causes *c, enum cause_type type, struct str field,
                     const struct json *value, struct str detail)
{
    bool is_full = causes_are_full(c);
    c->n++;
    if (is_full)
        return;
    BUF_AUTO b = {0};
    buf_append_str(&b, str_of(kinds[type].text));
    if (value && kinds[type].shows_value) {
        buf_append_str(&b, STR(": "));
        append_value(c->arena, &b, value);
    }
    if (detail.n) {
        buf_append_str(&b, STR(": "));
        buf_append_str(&b, detail);
    }
    append(c, type, field, arena_str(c->arena, buf_str(&b)));
}

static struct str field_text(struct causes *c, const struct field_path *field)
{
    if (causes_are_full(c))
        return STR("");
    return field ? field_path_text(c->arena, field) : STR("<nil>");
}

void causes_add(struct causes *c, enum cause_type type, const struct field_path *field,
                const struct json *value, const char *detail, ...)
{
    BUF_AUTO text = {0};
    va_list args;
    va_start(args, detail);
    buf_vprintf(&text, detail, args);
    va_end(args);
    causes_add_text(c, type, field_text(c, field), value, buf_str(&text));
}

void causes_add_not_supported(struct causes *c, const struct field_path *field,
                              const struct json *value, const struct str *supported,
                              size_t n_supported)
{
    BUF_AUTO text = {0};
    causes_write_supported(&text, supported, n_supported);
    causes_add_text(c, CAUSE_NOT_SUPPORTED, field_text(c, field), value, buf_str(&text));
}

void causes_write_supported(struct buf *b, const struct str *supported, size_t n_supported)
{
    if (n_supported)
        buf_append_str(b, STR("supported values: "));
    for (size_t i = 0; i < n_supported; i++) {
        if (i)
            buf_append_str(b, STR(", "));
        causes_quote(b, supported[i]);
    }
}
