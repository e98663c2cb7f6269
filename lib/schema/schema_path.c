/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema_path.h"

#include "base/buf.h"

/* Takes the next token: one of . [ ] or the text between; quoted text is one token. */
static bool next_token(struct str *rest, struct str *ret_token)
{
    size_t n = 0;
    if (!rest->n)
        return false;
    bool quoted = rest->p[0] == '\'';
    for (; n < rest->n; n++) {
        char c = rest->p[n];
        if (quoted && n > 0 && c == '\'' && rest->p[n - 1] != '\\') {
            n++;
            break;
        }
        if (!quoted && (c == '.' || c == '[' || c == ']')) {
            n += n == 0;
            break;
        }
    }
    *ret_token = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return true;
}

static bool unquote(struct arena *a, struct str quoted, struct str *ret_text, struct str *ret_error)
{
    static const char letters[] = "abfnrtv'\\", meanings[] = "\a\b\f\n\r\t\v'\\";
    if (quoted.n < 2 || quoted.p[0] != '\'' || quoted.p[quoted.n - 1] != '\'') {
        *ret_error = arena_printf(a, "expected single quoted string but got %.*s", STR_ARG(quoted));
        return false;
    }
    struct str inner = str_sub(quoted, 1, quoted.n - 1);
    BUF_AUTO text = {0};
    for (size_t i = 0; i < inner.n; i++) {
        const char *letter = NULL;
        if (inner.p[i] == '\\' && i + 1 < inner.n) {
            letter = inner.p[i + 1] ? strchr(letters, inner.p[i + 1]) : NULL;
            if (!letter) {
                *ret_error = arena_printf(a, "invalid string literal: invalid escape char \\%c",
                                          inner.p[i + 1]);
                return false;
            }
            i++;
        }
        buf_append_char(&text, letter ? meanings[letter - letters] : inner.p[i]);
    }
    *ret_text = arena_str(a, buf_str(&text));
    return true;
}

/* One step down, by member or by map key. */
static const struct json *descend(const struct json *schema, struct str name, struct str *ret_error)
{
    const struct json *properties = json_get(schema, STR("properties"));
    const struct json *more = json_get(schema, STR("additionalProperties"));
    const struct json *found = json_count(properties) ? json_get(properties, name) : more;
    if (json_is(found, JSON_OBJECT))
        return found;
    *ret_error = STR("does not refer to a valid field");
    return NULL;
}

/* What stands behind '[': a quoted name and ']'. */
static const struct json *descend_brackets(struct arena *a, const struct json *schema,
                                           struct str *rest, struct str *ret_error)
{
    struct str token = {0}, name = {0};
    if (!next_token(rest, &token)) {
        *ret_error = STR("unexpected end of JSON path");
        return NULL;
    }
    if (!unquote(a, token, &name, ret_error))
        return NULL;
    const struct json *found = descend(schema, name, ret_error);
    if (!found)
        return NULL;
    if (!next_token(rest, &token)) {
        *ret_error = STR("unexpected end of JSON path");
        return NULL;
    }
    if (str_is(token, "]"))
        return found;
    *ret_error = arena_printf(a, "expected ] but got %.*s", STR_ARG(token));
    return NULL;
}

const struct json *schema_path_find(struct arena *a, const struct json *schema, struct str path,
                                    bool allow_brackets, struct str *ret_error)
{
    struct str token = {0};
    while (schema && next_token(&path, &token)) {
        if (str_is(token, "[") && !allow_brackets) {
            *ret_error = STR("array notation is not allowed");
            return NULL;
        }
        if (str_is(token, "[")) {
            schema = descend_brackets(a, schema, &path, ret_error);
        } else if (!str_is(token, ".")) {
            *ret_error = arena_printf(a, "expected [ or . but got: %.*s", STR_ARG(token));
            return NULL;
        } else if (!next_token(&path, &token)) {
            *ret_error = STR("unexpected end of JSON path");
            return NULL;
        } else {
            schema = descend(schema, token, ret_error);
        }
    }
    return schema;
}
