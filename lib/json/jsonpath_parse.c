/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of client-go's util/jsonpath, inside its braces. Its brackets end at the first `]`
 * and its filters at the first `)` outside quotes, so filters and unions do not nest and recursion
 * here is shallow. */
#include <errno.h>
#include <stdlib.h>

#include "json/json_internal.h"
#include "json/jsonpath_internal.h"

struct parser {
    struct arena *arena;
    struct str text;
    size_t at;
    struct step *first, **end;
    bool is_simple;
    struct str *ret_error;
};

static int parse_steps(struct arena *a, struct str text, struct jsonpath *ret_path,
                       struct str *ret_error);

static int fail(struct parser *p, struct str error)
{
    *p->ret_error = error;
    return -EINVAL;
}

static int peek(const struct parser *p)
{
    return p->at < p->text.n ? (unsigned char) p->text.p[p->at] : -1;
}

static bool starts_with(const struct parser *p, struct str prefix)
{
    return str_starts_with(str_from(p->text, p->at), prefix);
}

static struct step *add_step(struct parser *p, enum step_type type)
{
    struct step *s = ARENA_NEW(p->arena, struct step);
    s->type = type;
    *p->end = s;
    p->end = &s->next;
    return s;
}

static void add_steps(struct parser *p, struct step *steps)
{
    *p->end = steps;
    while (*p->end)
        p->end = &(*p->end)->next;
}

/* ---- names -------------------------------------------------------------------------------- */

static bool ends_name(int c)
{
    return c < 0 || memchr(" \t\r\n.,[]$@{}", c, 12);
}

static struct str without_backslashes(struct arena *a, struct str s)
{
    char *p = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '\\')
            p[n++] = s.p[i];
    }
    p[n] = '\0';
    return str_range(p, n);
}

/* Up to an unescaped terminator. */
static void parse_field(struct parser *p)
{
    size_t from = p->at;
    while (!ends_name(peek(p)))
        p->at = MIN(p->at + (peek(p) == '\\' ? 2 : 1), p->text.n);
    struct str name = str_sub(p->text, from, p->at);
    if (str_is(name, "*")) {
        (void) add_step(p, STEP_WILDCARD);
        p->is_simple = false;
        return;
    }
    struct step *s = add_step(p, STEP_FIELD);
    s->name = without_backslashes(p->arena, name);
    p->is_simple = p->is_simple && name.n > 0;
}

static bool is_alphanumeric(int c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c >= 0x80;
}

static int parse_recursive(struct parser *p)
{
    const struct step *last = p->first ? CONTAINER_OF(p->end, struct step, next) : NULL;
    if (last && last->type == STEP_RECURSIVE)
        return fail(p, STR("invalid multiple recursive descent"));
    p->at += 2;
    p->is_simple = false;
    (void) add_step(p, STEP_RECURSIVE);
    if (is_alphanumeric(peek(p)))
        parse_field(p);
    return 0;
}

/* ---- brackets ----------------------------------------------------------------------------- */

static bool is_slice_part(struct str s)
{
    for (size_t i = s.n > 0 && s.p[0] == '-'; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    }
    return true;
}

/* Takes the digits up to the next colon off *rest, and that colon; *ret_more tells whether it was
 * there. */
static struct str take_slice_part(struct str *rest, bool *ret_more)
{
    ptrdiff_t colon = str_find(*rest, ':');
    *ret_more = colon >= 0;
    struct str part = colon < 0 ? *rest : str_sub(*rest, 0, (size_t) colon);
    *rest = str_from(*rest, colon < 0 ? rest->n : (size_t) colon + 1);
    return part;
}

static int parse_slice(struct parser *p, struct str text)
{
    int64_t values[3] = {0};
    bool is_known[3] = {false}, more = true;
    struct str rest = text;
    size_t n = 0;
    for (; more && n < 3; n++) {
        struct str part = take_slice_part(&rest, &more);
        if (!is_slice_part(part))
            return fail(p, arena_printf(p->arena, "invalid array index %.*s", STR_ARG(text)));
        is_known[n] = part.n > 0;
        if (part.n > 0 && str_to_i64(part, &values[n]) < 0)
            return fail(p,
                        arena_printf(p->arena, "array index %.*s is not a number", STR_ARG(part)));
    }
    if (more)
        return fail(p, arena_printf(p->arena, "invalid array index %.*s", STR_ARG(text)));
    struct step *s = add_step(p, STEP_SLICE);
    s->slice.from = values[0];
    s->slice.to = values[1];
    s->slice.step = values[2];
    s->slice.has_to = is_known[1];
    s->slice.has_step = is_known[2];
    s->slice.is_index = n == 1;
    return 0;
}

/* What stands between [ and ], without commas. */
static int parse_bracket(struct parser *p, struct str text)
{
    if (str_is(text, "*"))
        return parse_slice(p, STR(":"));
    struct str inner = str_sub(text, 1, text.n - 1);
    bool is_quoted =
        text.n >= 2 && text.p[0] == '\'' && text.p[text.n - 1] == '\'' && str_find(inner, '\'') < 0;
    if (!is_quoted)
        return parse_slice(p, text);
    struct jsonpath path;
    struct str dotted = arena_printf(p->arena, ".%.*s", STR_ARG(inner));
    int error = parse_steps(p->arena, dotted, &path, p->ret_error);
    if (error)
        return error;
    add_steps(p, path.steps);
    return 0;
}

static int parse_alternative(struct parser *p, struct str text, struct step **ret_steps)
{
    struct parser inner = *p;
    *ret_steps = NULL;
    inner.end = ret_steps;
    inner.first = NULL;
    return parse_bracket(&inner, text);
}

static int parse_union(struct parser *p, struct str text)
{
    struct step *s = add_step(p, STEP_UNION);
    for (;;) {
        ptrdiff_t comma = str_find(text, ',');
        struct str part = comma < 0 ? text : str_sub(text, 0, (size_t) comma);
        int error = parse_alternative(p, str_trim(part), &s->alternative.path);
        if (error)
            return error;
        if (comma < 0)
            return 0;
        text = str_from(text, (size_t) comma + 1);
        s->alternative.other = ARENA_NEW(p->arena, struct step);
        s = s->alternative.other;
        s->type = STEP_UNION;
    }
}

static int parse_array(struct parser *p)
{
    p->is_simple = false;
    struct str rest = str_from(p->text, p->at + 1);
    ptrdiff_t close = str_find(rest, ']'), newline = str_find(rest, '\n');
    if (close < 0 || (newline >= 0 && newline < close))
        return fail(p, STR("unterminated array"));
    p->at += (size_t) close + 2;
    struct str text = str_sub(rest, 0, (size_t) close);
    return str_find(text, ',') < 0 ? parse_bracket(p, text) : parse_union(p, text);
}

/* ---- filters ------------------------------------------------------------------------------ */

/* The text up to the `)` that ends the filter, which is then skipped together with its `]`. */
static int take_filter(struct parser *p, struct str *ret_text)
{
    size_t from = p->at;
    int quote = 0;
    for (;; p->at++) {
        int c = peek(p);
        if (c < 0 || c == '\n')
            return fail(p, STR("unterminated filter"));
        if (quote) {
            if (c == '\\' && p->at + 1 < p->text.n)
                p->at++;
            else if (c == quote)
                quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == ')') {
            break;
        }
    }
    *ret_text = str_sub(p->text, from, p->at++);
    if (peek(p) != ']')
        return fail(p, STR("unclosed array expect ]"));
    p->at++;
    return 0;
}

static int unquote(struct parser *p, struct str text, struct json *ret_value)
{
    char quote = text.p[0];
    char *out = arena_alloc(p->arena, text.n);
    size_t n = 0, i = 1;
    for (; i < text.n && text.p[i] != quote; i++) {
        if (text.p[i] == '\\' && i + 1 < text.n)
            i++;
        out[n++] = text.p[i];
    }
    if (i + 1 != text.n)
        return fail(p, i >= text.n
                           ? STR("unterminated quoted string")
                           : arena_printf(p->arena, "unquote string %.*s error invalid syntax",
                                          STR_ARG(text)));
    *ret_value = json_string(str_range(out, n));
    return 0;
}

static int parse_number(struct parser *p, struct str text, struct json *ret_value)
{
    struct str digits = text.p[0] == '+' ? str_from(text, 1) : text;
    int64_t i = 0;
    if (str_to_i64(digits, &i) == 0) {
        *ret_value = json_int(i);
        return 0;
    }
    char *z = arena_strz(p->arena, text), *end = NULL;
    double d = strtod(z, &end);
    if (*end || strspn(z + 1, "0123456789.") != text.n - 1) /* strtod() knows more forms */
        return fail(p, arena_printf(p->arena, "cannot parse number %.*s", STR_ARG(text)));
    *ret_value = json_double(d);
    return 0;
}

static int parse_operand(struct parser *p, struct str text, struct operand *ret_operand)
{
    text = str_trim(text);
    int c = text.n ? (unsigned char) text.p[0] : 0;
    struct json literal = json_null();
    int error = 0;
    if (c == '"' || c == '\'') {
        error = unquote(p, text, &literal);
    } else if (c == '-' || c == '+' || (c >= '0' && c <= '9')) {
        error = parse_number(p, text, &literal);
    } else if (str_is(text, "true") || str_is(text, "false")) {
        literal = json_bool(text.n == 4);
    } else {
        struct jsonpath path;
        error = parse_steps(p->arena, text, &path, p->ret_error);
        if (!error)
            ret_operand->path = path.steps;
        return error;
    }
    if (!error)
        ret_operand->literal = json_new(p->arena, literal);
    return error;
}

static int find_comparison(struct parser *p, struct str text, enum comparison *ret_comparison)
{
    static const char *const names[] = {
        [EQUAL] = "==",         [NOT_EQUAL] = "!=", [LESS] = "<",
        [LESS_OR_EQUAL] = "<=", [GREATER] = ">",    [GREATER_OR_EQUAL] = ">=",
    };
    for (size_t i = EQUAL; i < N_ELEMENTS(names); i++) {
        if (str_is(text, names[i])) {
            *ret_comparison = (enum comparison) i;
            return 0;
        }
    }
    return fail(p, arena_printf(p->arena, "unrecognized filter operator %.*s", STR_ARG(text)));
}

static size_t span(struct str s, size_t from, bool of_operators)
{
    while (from < s.n && (memchr("!<>=", s.p[from], 4) != NULL) == of_operators)
        from++;
    return from;
}

static int parse_filter(struct parser *p)
{
    p->at += 3;
    p->is_simple = false;
    struct str text;
    int error = take_filter(p, &text);
    if (error)
        return error;
    size_t operator_at = span(text, 0, false), right_at = span(text, operator_at, true);
    struct step *s = add_step(p, STEP_FILTER);
    s->filter.comparison = EXISTS;
    if (operator_at == 0 || operator_at == text.n || right_at == text.n)
        return parse_operand(p, text, &s->filter.left);
    error = find_comparison(p, str_sub(text, operator_at, right_at), &s->filter.comparison);
    if (!error)
        error = parse_operand(p, str_sub(text, 0, operator_at), &s->filter.left);
    if (!error)
        error = parse_operand(p, str_from(text, right_at), &s->filter.right);
    return error;
}

/* ---- paths -------------------------------------------------------------------------------- */

static int fail_character(struct parser *p)
{
    int c = peek(p);
    if (!is_alphanumeric(c))
        return fail(p, arena_printf(p->arena, "unrecognized character in action: U+%04X '%c'",
                                    (unsigned) c, c));
    size_t from = p->at;
    while (!ends_name(peek(p)))
        p->at++;
    struct str name = str_sub(p->text, from, p->at);
    return fail(p, arena_printf(p->arena, "unrecognized identifier %.*s", STR_ARG(name)));
}

static int parse_step(struct parser *p)
{
    int c = peek(p);
    if (c == ' ' || c == '@' || c == '$') { /* the current value */
        p->at++;
        p->is_simple = false;
        return 0;
    }
    if (c == '\r' || c == '\n')
        return fail(p, STR("unclosed action"));
    if (starts_with(p, STR("[?(")))
        return parse_filter(p);
    if (starts_with(p, STR("..")))
        return parse_recursive(p);
    if (c == '[')
        return parse_array(p);
    if (c != '.')
        return fail_character(p);
    p->at++;
    parse_field(p);
    return 0;
}

static int parse_steps(struct arena *a, struct str text, struct jsonpath *ret_path,
                       struct str *ret_error)
{
    struct parser p = {.arena = a, .text = text, .is_simple = text.n > 0, .ret_error = ret_error};
    p.end = &p.first;
    while (p.at < text.n) {
        int error = parse_step(&p);
        if (error)
            return error;
    }
    *ret_path = (struct jsonpath){.steps = p.first, .is_simple = p.is_simple};
    return 0;
}

int jsonpath_compile(struct arena *a, struct str text, struct jsonpath **ret_path,
                     struct str *ret_error)
{
    if (text.n > JSONPATH_MAX_TEXT_BYTES) {
        *ret_error = STR("path is too long");
        return -EINVAL;
    }
    struct jsonpath path;
    int error = parse_steps(a, text, &path, ret_error);
    if (error)
        return error;
    *ret_path = ARENA_NEW(a, struct jsonpath);
    **ret_path = path;
    return 0;
}
