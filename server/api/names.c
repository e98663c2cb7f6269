/* SPDX-License-Identifier: Apache-2.0 */
#include "api/names.h"

#include "base/buf.h"

#define SUBDOMAIN_MAX 253
#define LABEL_MAX 63

#define SUBDOMAIN_TEXT \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " \
    "'.', and " \
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for " \
    "validation is " \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_TEXT \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " \
    "must start " \
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " \
    "validation is " \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define LABEL_1035_TEXT \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " \
    "alphabetic " \
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex " \
    "used for " \
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define QUALIFIED_TEXT \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " \
    "alphanumeric " \
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LABEL_VALUE_TEXT \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or " \
    "'.', and must " \
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', " \
    "regex used " \
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static void add(struct name_errors *e, struct str text)
{
    if (e->n < NAME_ERRORS_MAX)
        e->text[e->n++] = text;
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_dns_label(struct str s)
{
    if (!s.n || !is_lower_alnum(s.p[0]) || !is_lower_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_lower_alnum(s.p[i]) && s.p[i] != '-')
            return false;
    return true;
}

static bool is_subdomain(struct str s)
{
    size_t begin = 0;
    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '.')
            continue;
        if (!is_dns_label(str_sub(s, begin, i)))
            return false;
        begin = i + 1;
    }
    return true;
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool is_qualified_part(struct str s)
{
    if (!s.n || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return true;
}

struct name_errors name_subdomain(struct arena *a, struct str name)
{
    (void) a;
    struct name_errors e = {0};
    if (name.n > SUBDOMAIN_MAX)
        add(&e, STR("must be no more than 253 characters"));
    if (!is_subdomain(name))
        add(&e, STR(SUBDOMAIN_TEXT));
    return e;
}

struct name_errors name_label(struct arena *a, struct str name)
{
    (void) a;
    struct name_errors e = {0};
    if (name.n > LABEL_MAX)
        add(&e, STR("must be no more than 63 characters"));
    if (!is_dns_label(name))
        add(&e, STR(LABEL_TEXT));
    return e;
}

struct name_errors name_label_1035(struct arena *a, struct str name)
{
    (void) a;
    struct name_errors e = {0};
    if (name.n > LABEL_MAX)
        add(&e, STR("must be no more than 63 characters"));
    if (!is_dns_label(name) || (name.p[0] >= '0' && name.p[0] <= '9'))
        add(&e, STR(LABEL_1035_TEXT));
    return e;
}

static void check_prefix(struct arena *a, struct str prefix, struct name_errors *e)
{
    if (!prefix.n) {
        add(e, STR("prefix part must be non-empty"));
        return;
    }
    struct name_errors inner = name_subdomain(a, prefix);
    for (size_t i = 0; i < inner.n; i++)
        add(e, arena_printf(a, "prefix part %.*s", STR_ARG(inner.text[i])));
}

struct name_errors name_qualified(struct arena *a, struct str key)
{
    struct name_errors e = {0};
    struct str name = key;
    ptrdiff_t slash = str_find(key, '/');
    if (slash >= 0 && str_find(str_from(key, (size_t) slash + 1), '/') >= 0) {
        add(&e, STR("a qualified name " QUALIFIED_TEXT
                    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"));
        return e;
    }
    if (slash >= 0) {
        check_prefix(a, str_sub(key, 0, (size_t) slash), &e);
        name = str_from(key, (size_t) slash + 1);
    }
    if (!name.n)
        add(&e, STR("name part must be non-empty"));
    else if (name.n > LABEL_MAX)
        add(&e, STR("name part must be no more than 63 bytes"));
    if (!is_qualified_part(name))
        add(&e, STR("name part " QUALIFIED_TEXT));
    return e;
}

struct name_errors name_label_value(struct arena *a, struct str value)
{
    (void) a;
    struct name_errors e = {0};
    if (value.n > LABEL_MAX)
        add(&e, STR("must be no more than 63 bytes"));
    if (value.n && !is_qualified_part(value))
        add(&e, STR(LABEL_VALUE_TEXT));
    return e;
}

struct name_errors name_path_segment(struct arena *a, struct str name)
{
    struct name_errors e = {0};
    if (str_is(name, ".") || str_is(name, "..")) {
        add(&e, arena_printf(a, "may not be '%.*s'", STR_ARG(name)));
        return e;
    }
    if (str_find(name, '/') >= 0)
        add(&e, STR("may not contain '/'"));
    if (str_find(name, '%') >= 0)
        add(&e, STR("may not contain '%'"));
    return e;
}

struct str name_errors_text(struct arena *a, const struct name_errors *e)
{
    if (!e->n)
        return STR_NONE;
    BUF_AUTO b = {0};
    for (size_t i = 0; i < e->n; i++) {
        if (i)
            buf_append_str(&b, STR("; "));
        buf_append_str(&b, e->text[i]);
    }
    return arena_str(a, buf_str(&b));
}

struct str name_check_qualified(struct arena *a, struct str key)
{
    struct name_errors e = name_qualified(a, key);
    return name_errors_text(a, &e);
}

struct str name_check_label_value(struct arena *a, struct str value)
{
    struct name_errors e = name_label_value(a, value);
    return name_errors_text(a, &e);
}
