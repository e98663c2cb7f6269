/* SPDX-License-Identifier: Apache-2.0 */
#include "api/request.h"

#include <errno.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Percent-decodes; in a query '+' is a blank. */
static int unescape(struct arena *a, struct str raw, bool is_query, struct str *ret)
{
    if (str_find(raw, '%') < 0 && (!is_query || str_find(raw, '+') < 0)) {
        *ret = raw;
        return 0;
    }
    char *out = arena_alloc(a, raw.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];
        if (c == '%') {
            int high = i + 1 < raw.n ? hex_value(raw.p[i + 1]) : -1;
            int low = i + 2 < raw.n ? hex_value(raw.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -EINVAL;
            c = (char) (high << 4 | low);
            i += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        out[n++] = c;
    }
    *ret = str_range(out, n);
    return 0;
}

struct request_query request_parse_query(struct arena *a, struct str raw)
{
    struct request_query q = {0};
    struct str part = STR_NONE;
    while (str_split(&raw, '&', &part)) {
        /* A semicolon once separated parameters; a part with one is malformed. */
        if (!part.n || str_find(part, ';') >= 0 || q.n == REQUEST_MAX_PARAMETERS)
            continue;
        ptrdiff_t at = str_find(part, '=');
        struct str name = at < 0 ? part : str_sub(part, 0, (size_t) at);
        struct str value = at < 0 ? STR("") : str_from(part, (size_t) at + 1);
        struct request_parameter p = {0};
        if (unescape(a, name, true, &p.name) < 0 || unescape(a, value, true, &p.value) < 0)
            continue;
        q.parameters = arena_grow(a, q.parameters, q.n, sizeof(p));
        q.parameters[q.n++] = p;
    }
    return q;
}

struct str request_parameter(const struct request_query *q, const char *name)
{
    for (size_t i = 0; i < q->n; i++)
        if (str_is(q->parameters[i].name, name))
            return q->parameters[i].value;
    return STR_NONE;
}

bool request_flag(const struct request_query *q, const char *name)
{
    struct str v = request_parameter(q, name);
    return v.p && !str_is(v, "0") && !str_eq_nocase(v, STR("false"));
}

int request_decode_path(struct arena *a, struct str raw, struct str *ret_path)
{
    return unescape(a, raw, false, ret_path);
}

/* Takes the next segment off; false at the end. An empty segment is a segment: "/api//v1" is no
 * version. */
static bool next_segment(struct str *rest, struct str *ret)
{
    if (!rest->n)
        return false;
    ptrdiff_t at = str_find(*rest, '/');
    *ret = at < 0 ? *rest : str_sub(*rest, 0, (size_t) at);
    *rest = at < 0 ? STR("") : str_from(*rest, (size_t) at + 1);
    return true;
}

static void parse_in_namespace(struct str rest, struct request_path *p)
{
    (void) next_segment(&rest, &p->name);
    (void) next_segment(&rest, &p->subresource);
    p->extra = rest;
}

void request_parse_path(struct str path, struct request_path *ret)
{
    struct request_path p = {0};
    struct str rest = str_from(path, 1), root = STR_NONE;
    *ret = p;
    if (!next_segment(&rest, &root))
        return;
    if (str_is(root, "apis")) {
        if (!next_segment(&rest, &p.group) || !p.group.n)
            return;
    } else if (!str_is(root, "api")) {
        return;
    }
    p.group = p.group.p ? p.group : STR("");
    if (!next_segment(&rest, &p.version) || !p.version.n || !next_segment(&rest, &p.resource) ||
        !p.resource.n)
        return;
    if (str_is(p.resource, "watch")) {
        p.is_watch = true;
        if (!next_segment(&rest, &p.resource))
            return;
    }
    p.is_resource = true;
    struct str ahead = rest, namespace = STR_NONE, inner = STR_NONE;
    bool has_namespace = str_is(p.resource, "namespaces") && next_segment(&ahead, &namespace);
    bool has_inner = has_namespace && next_segment(&ahead, &inner) && inner.n;
    /* /namespaces/x/status and /finalize are the namespace's own; anything else is a kind inside
     * it. */
    bool is_own = str_is(inner, "status") || str_is(inner, "finalize");
    if (has_inner && !is_own) {
        p.namespace = namespace;
        p.resource = inner;
        rest = ahead;
    }
    parse_in_namespace(rest, &p);
    *ret = p;
}
