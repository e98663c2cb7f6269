/* SPDX-License-Identifier: Apache-2.0 */
#include "api/selector.h"

#include <errno.h>

#include "api/names.h"

/* ---- lexing, as k8s.io/apimachinery/pkg/labels splits --------------------------------------- */

enum token {
    TOKEN_END,
    TOKEN_IDENTIFIER,
    TOKEN_COMMA,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_NOT,
    TOKEN_EQUALS,
    TOKEN_NOT_EQUALS,
    TOKEN_GREATER,
    TOKEN_LESS,
    TOKEN_IN,
    TOKEN_NOT_IN,
    TOKEN_OTHER, /* runs of symbols that mean nothing, such as "=<" */
};

struct lexer {
    struct arena *arena;
    struct str rest;
    enum token token;
    struct str text;
    struct str error;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_symbol(char c)
{
    return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static enum token symbol_token(struct str s)
{
    static const struct {
        const char *text;
        enum token token;
    } symbols[] = {
        {")", TOKEN_CLOSE},       {",", TOKEN_COMMA},  {"!", TOKEN_NOT},
        {"==", TOKEN_EQUALS},     {"=", TOKEN_EQUALS}, {">", TOKEN_GREATER},
        {"!=", TOKEN_NOT_EQUALS}, {"<", TOKEN_LESS},   {"(", TOKEN_OPEN},
    };
    for (size_t i = 0; i < N_ELEMENTS(symbols); i++)
        if (str_is(s, symbols[i].text))
            return symbols[i].token;
    return TOKEN_OTHER;
}

/* The longest known symbol at the start, but at least one character. */
static size_t symbol_length(struct str s)
{
    size_t n = 0;
    while (n < s.n && is_symbol(s.p[n]))
        n++;
    for (size_t length = MIN(n, (size_t) 2); length > 1; length--)
        if (symbol_token(str_sub(s, 0, length)) != TOKEN_OTHER)
            return length;
    return 1;
}

static void lex_next(struct lexer *l, bool is_value)
{
    while (l->rest.n && is_space(l->rest.p[0]))
        l->rest = str_from(l->rest, 1);
    if (!l->rest.n) {
        l->token = TOKEN_END;
        l->text = STR("");
        return;
    }
    size_t n = 0;
    if (is_symbol(l->rest.p[0])) {
        n = symbol_length(l->rest);
        l->token = symbol_token(str_sub(l->rest, 0, n));
    } else {
        while (n < l->rest.n && !is_space(l->rest.p[n]) && !is_symbol(l->rest.p[n]))
            n++;
        struct str word = str_sub(l->rest, 0, n);
        bool is_keyword = !is_value && (str_is(word, "in") || str_is(word, "notin"));
        l->token = !is_keyword ? TOKEN_IDENTIFIER : word.n == 2 ? TOKEN_IN : TOKEN_NOT_IN;
    }
    l->text = str_sub(l->rest, 0, n);
    l->rest = str_from(l->rest, n);
}

static int fail(struct lexer *l, const char *format, ...) PRINTF_LIKE(2, 3);
static int fail(struct lexer *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    l->error = arena_vprintf(l->arena, format, args);
    va_end(args);
    return -EINVAL;
}

/* ---- label requirements ------------------------------------------------------------------- */

static void add_value(struct arena *a, struct requirement *r, struct str value)
{
    r->values = arena_grow(a, r->values, r->n_values, sizeof(*r->values));
    r->values[r->n_values++] = value;
}

/* `( a, b )`, where a missing value between commas is the empty one. */
static int parse_value_set(struct lexer *l, struct requirement *r)
{
    lex_next(l, true);
    if (l->token != TOKEN_OPEN)
        return fail(l, "unable to parse requirement: found '%.*s' expected: '('", STR_ARG(l->text));
    lex_next(l, true);
    bool expects_value = true;
    for (;; lex_next(l, true)) {
        if (l->token == TOKEN_IDENTIFIER && expects_value) {
            add_value(l->arena, r, l->text);
            expects_value = false;
        } else if (l->token == TOKEN_COMMA) {
            if (expects_value)
                add_value(l->arena, r, STR(""));
            expects_value = true;
        } else if (l->token == TOKEN_CLOSE) {
            if (expects_value)
                add_value(l->arena, r, STR(""));
            return 0;
        } else {
            return fail(l, "unable to parse requirement: found '%.*s', expected: ',' or ')'",
                        STR_ARG(l->text));
        }
    }
}

static int check_key(struct lexer *l, struct str key)
{
    struct str wrong = name_check_qualified(l->arena, key);
    if (!wrong.n)
        return 0;
    return fail(l, "unable to parse requirement: <nil>: Invalid value: \"%.*s\": %.*s",
                STR_ARG(key), STR_ARG(wrong));
}

static int check_values(struct lexer *l, struct requirement *r)
{
    if (r->op == SELECT_GREATER || r->op == SELECT_LESS) {
        if (str_to_i64(r->values[0], &r->bound) < 0)
            return fail(
                l,
                "unable to parse requirement: values[0]: Invalid value: \"%.*s\": for 'Gt', "
                "'Lt' operators, the value must be an integer",
                STR_ARG(r->values[0]));
        return 0;
    }
    for (size_t i = 0; i < r->n_values; i++) {
        struct str wrong = name_check_label_value(l->arena, r->values[i]);
        if (wrong.n)
            return fail(
                l, "unable to parse requirement: values[%zu][%.*s]: Invalid value: \"%.*s\": %.*s",
                i, STR_ARG(r->key), STR_ARG(r->values[i]), STR_ARG(wrong));
    }
    return 0;
}

static int parse_operator(struct lexer *l, struct requirement *r)
{
    switch (l->token) {
    case TOKEN_IN:
    case TOKEN_NOT_IN:
        r->op = l->token == TOKEN_IN ? SELECT_IN : SELECT_NOT_IN;
        return parse_value_set(l, r);
    case TOKEN_EQUALS:
    case TOKEN_NOT_EQUALS:
    case TOKEN_GREATER:
    case TOKEN_LESS:
        r->op = l->token == TOKEN_EQUALS       ? SELECT_IN
                : l->token == TOKEN_NOT_EQUALS ? SELECT_NOT_IN
                : l->token == TOKEN_GREATER    ? SELECT_GREATER
                                               : SELECT_LESS;
        break;
    default:
        return fail(
            l, "unable to parse requirement: found '%.*s', expected: in, notin, =, ==, !=, gt, lt",
            STR_ARG(l->text));
    }
    /* A value may be left out: "a=" and "a=,b" ask for the empty one. */
    struct lexer ahead = *l;
    lex_next(&ahead, true);
    if (ahead.token == TOKEN_IDENTIFIER) {
        *l = ahead;
        add_value(l->arena, r, l->text);
    } else {
        add_value(l->arena, r, STR(""));
        if (ahead.token != TOKEN_COMMA && ahead.token != TOKEN_END)
            return fail(l, "unable to parse requirement: found '%.*s', expected: identifier",
                        STR_ARG(ahead.text));
    }
    return 0;
}

/* One requirement; leaves the lexer on its last token. */
static int parse_requirement(struct lexer *l, struct requirement *r)
{
    bool is_negated = l->token == TOKEN_NOT;
    if (is_negated)
        lex_next(l, false);
    if (l->token != TOKEN_IDENTIFIER && l->token != TOKEN_IN && l->token != TOKEN_NOT_IN)
        return fail(l, "unable to parse requirement: found '%.*s', expected: identifier",
                    STR_ARG(l->text));
    r->key = l->text;
    int code = check_key(l, r->key);
    if (code < 0)
        return code;
    struct lexer ahead = *l;
    lex_next(&ahead, false);
    if (is_negated || ahead.token == TOKEN_END || ahead.token == TOKEN_COMMA) {
        r->op = is_negated ? SELECT_NOT_EXISTS : SELECT_EXISTS;
        return 0;
    }
    *l = ahead;
    code = parse_operator(l, r);
    return code < 0 ? code : check_values(l, r);
}

int selector_parse_labels(struct arena *a, struct str text, struct selector *ret,
                          struct str *ret_error)
{
    struct lexer l = {.arena = a, .rest = text};
    int code = 0;
    for (lex_next(&l, false); l.token != TOKEN_END; lex_next(&l, false)) {
        bool begins = l.token == TOKEN_IDENTIFIER || l.token == TOKEN_NOT || l.token == TOKEN_IN ||
                      l.token == TOKEN_NOT_IN;
        if (!begins) {
            code = fail(&l, "found '%.*s', expected: !, identifier, or 'end of string'",
                        STR_ARG(l.text));
            break;
        }
        ret->labels = arena_grow(a, ret->labels, ret->n_labels, sizeof(*ret->labels));
        struct requirement *r = &ret->labels[ret->n_labels++];
        *r = (struct requirement){0};
        code = parse_requirement(&l, r);
        if (code < 0)
            break;
        lex_next(&l, false);
        if (l.token == TOKEN_END)
            break;
        if (l.token != TOKEN_COMMA) {
            code = fail(&l, "found '%.*s', expected: ',' or 'end of string'", STR_ARG(l.text));
            break;
        }
        struct lexer ahead = l;
        lex_next(&ahead, false);
        if (ahead.token != TOKEN_IDENTIFIER && ahead.token != TOKEN_NOT &&
            ahead.token != TOKEN_IN && ahead.token != TOKEN_NOT_IN) {
            code = fail(&l, "found '%.*s', expected: identifier after ','", STR_ARG(ahead.text));
            break;
        }
    }
    if (code < 0)
        *ret_error = l.error;
    return code;
}

/* ---- field requirements ------------------------------------------------------------------- */

/* Splits at commas that no backslash escapes. */
static bool next_term(struct str *rest, struct str *ret_term)
{
    if (!rest->n)
        return false;
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ',')
        n += rest->p[n] == '\\' && n + 1 < rest->n ? 2 : 1;
    *ret_term = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n + 1);
    return true;
}

static struct str unescape(struct arena *a, struct str s)
{
    if (str_find(s, '\\') < 0)
        return s;
    char *out = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        out[n++] = s.p[i] == '\\' && i + 1 < s.n ? s.p[++i] : s.p[i];
    return str_range(out, n);
}

/* "key=value", "key==value", "key!=value"; the first operator found splits. */
static bool split_term(struct arena *a, struct str term, struct requirement *r)
{
    for (size_t i = 0; i < term.n; i++) {
        if (term.p[i] == '\\') {
            i++;
            continue;
        }
        bool is_not = term.p[i] == '!' && i + 1 < term.n && term.p[i + 1] == '=';
        bool is_double = term.p[i] == '=' && i + 1 < term.n && term.p[i + 1] == '=';
        if (!is_not && term.p[i] != '=')
            continue;
        r->op = is_not ? SELECT_NOT_IN : SELECT_IN;
        r->key = str_sub(term, 0, i);
        add_value(a, r, unescape(a, str_from(term, i + (is_not || is_double ? 2 : 1))));
        return true;
    }
    return false;
}

static bool resolve_field(const struct kind *kind, struct requirement *r)
{
    if (str_is(r->key, "metadata.name") || str_is(r->key, "metadata.namespace"))
        return true;
    for (size_t i = 0; i < kind->n_selectable; i++) {
        if (str_eq(kind->selectable[i].path, r->key)) {
            r->field = &kind->selectable[i];
            return true;
        }
    }
    return false;
}

static struct str unknown_field(struct arena *a, const struct kind *kind, struct str key)
{
    if (kind->n_selectable)
        return arena_printf(a, "field label not supported: %.*s", STR_ARG(key));
    return arena_printf(a,
                        "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                        "\"metadata.namespace\"",
                        STR_ARG(key));
}

int selector_parse_fields(struct arena *a, struct str text, const struct kind *kind,
                          struct selector *ret, struct str *ret_error)
{
    struct str rest = text, term = STR_NONE;
    while (next_term(&rest, &term)) {
        if (!term.n)
            continue;
        struct requirement r = {0};
        if (!split_term(a, term, &r)) {
            *ret_error = arena_printf(a, "invalid selector: '%.*s'; can't understand '%.*s'",
                                      STR_ARG(text), STR_ARG(term));
            return -EINVAL;
        }
        ret->fields = arena_grow(a, ret->fields, ret->n_fields, sizeof(*ret->fields));
        ret->fields[ret->n_fields++] = r;
    }
    for (size_t i = 0; i < ret->n_fields; i++) {
        if (!resolve_field(kind, &ret->fields[i])) {
            *ret_error = unknown_field(a, kind, ret->fields[i].key);
            return -EINVAL;
        }
        ret->needs_parse |= ret->fields[i].field != NULL;
    }
    return 0;
}

/* ---- from JSON ---------------------------------------------------------------------------- */

static bool operator_of(struct str name, enum selector_operator *ret)
{
    static const struct {
        const char *name;
        enum selector_operator op;
    } operators[] = {{"In", SELECT_IN},
                     {"NotIn", SELECT_NOT_IN},
                     {"Exists", SELECT_EXISTS},
                     {"DoesNotExist", SELECT_NOT_EXISTS}};
    for (size_t i = 0; i < N_ELEMENTS(operators); i++) {
        if (str_is(name, operators[i].name)) {
            *ret = operators[i].op;
            return true;
        }
    }
    return false;
}

int selector_from_json(struct arena *a, const struct json *source, struct selector *ret)
{
    const struct json *labels = json_get(source, STR("matchLabels")),
                      *conditions = json_get(source, STR("matchExpressions"));
    struct selector s = {.labels = ARENA_ARRAY(a, struct requirement,
                                               json_count(labels) + json_count(conditions) + 1)};
    JSON_FOR_EACH_MEMBER (labels, m) {
        struct requirement *r = &s.labels[s.n_labels++];
        *r = (struct requirement){.op = SELECT_IN, .key = json_str(&m->key)};
        add_value(a, r, json_str(&m->value));
    }
    JSON_FOR_EACH_ITEM (conditions, condition) {
        struct requirement *r = &s.labels[s.n_labels++];
        r->key = json_get_str(condition, STR("key"));
        if (!operator_of(json_get_str(condition, STR("operator")), &r->op))
            return -EINVAL;
        JSON_FOR_EACH_ITEM (json_get(condition, STR("values")), value)
            add_value(a, r, json_str(value));
    }
    *ret = s;
    return 0;
}

/* ---- matching ----------------------------------------------------------------------------- */

static bool has_value(const struct requirement *r, struct str value)
{
    for (size_t i = 0; i < r->n_values; i++)
        if (str_eq(r->values[i], value))
            return true;
    return false;
}

static bool requirement_holds(const struct requirement *r, bool exists, struct str value)
{
    int64_t number = 0;
    switch (r->op) {
    case SELECT_EXISTS:
        return exists;
    case SELECT_NOT_EXISTS:
        return !exists;
    case SELECT_IN:
        return exists && has_value(r, value);
    case SELECT_NOT_IN:
        return !exists || !has_value(r, value);
    case SELECT_GREATER:
        return exists && str_to_i64(value, &number) == 0 && number > r->bound;
    case SELECT_LESS:
        return exists && str_to_i64(value, &number) == 0 && number < r->bound;
    }
    return false;
}

static bool label_matches(const struct requirement *r, const struct object *o)
{
    for (size_t i = 0; i < o->head.n_labels; i++)
        if (str_eq(object_span(o, o->head.labels[i].key), r->key))
            return requirement_holds(r, true,
                                     str_range(o->text + o->head.labels[i].value.offset,
                                               o->head.labels[i].value.length));
    return requirement_holds(r, false, STR_NONE);
}

static bool field_matches(const struct requirement *r, const struct object *o, struct arena *a,
                          const struct json *parsed)
{
    struct str value = str_is(r->key, "metadata.name") ? object_span(o, o->head.name)
                       : str_is(r->key, "metadata.namespace")
                           ? object_span(o, o->head.namespace)
                           : kind_selectable_value(a, r->field, parsed);
    return requirement_holds(r, true, value);
}

bool selector_matches(const struct selector *s, const struct object *o)
{
    for (size_t i = 0; i < s->n_labels; i++)
        if (!label_matches(&s->labels[i], o))
            return false;
    if (!s->n_fields)
        return true;
    ARENA_AUTO a = s->needs_parse ? arena_new() : NULL;
    const struct json *parsed = s->needs_parse ? json_parse_quick(a, object_text(o)) : NULL;
    for (size_t i = 0; i < s->n_fields; i++)
        if (!field_matches(&s->fields[i], o, a, parsed))
            return false;
    return true;
}

bool selector_matches_labels(const struct selector *s, const struct json *labels)
{
    for (size_t i = 0; i < s->n_labels; i++) {
        const struct requirement *r = &s->labels[i];
        const struct json *value = json_get(labels, r->key);
        if (!requirement_holds(r, value != NULL, json_str(value)))
            return false;
    }
    return true;
}

static bool selects(void *ctx, const struct object *o)
{
    return selector_matches(ctx, o);
}

void selector_restrict(struct selector *s, struct store_range *range)
{
    if (selector_is_empty(s))
        return;
    range->filter = selects;
    range->ctx = s;
}
