/* SPDX-License-Identifier: Apache-2.0 */
#include "api/health.h"

#include <assert.h>

#include "api/request.h"
#include "api/status.h"
#include "base/log.h"

static const struct {
    struct str name;
    enum health_endpoint endpoint;
} endpoints[] = {
    {STR("healthz"), HEALTH_HEALTHZ},
    {STR("livez"), HEALTH_LIVEZ},
    {STR("readyz"), HEALTH_READYZ},
};

void health_init(struct health *h)
{
    h->n_checks = 0;
    health_add(h, &(struct health_check){.name = STR("ping"), .endpoints = HEALTH_ALL});
    health_add(h, &(struct health_check){.name = STR("log"), .endpoints = HEALTH_ALL});
}

void health_add(struct health *h, const struct health_check *check)
{
    assert(h->n_checks < HEALTH_MAX_CHECKS);
    h->checks[h->n_checks++] = *check;
}

bool health_has_path(struct str path)
{
    struct str rest = str_from(path, 1), first = STR_NONE;
    if (!path.n || !str_split(&rest, '/', &first))
        return false;
    for (size_t i = 0; i < N_ELEMENTS(endpoints); i++)
        if (str_eq(first, endpoints[i].name))
            return true;
    return false;
}

static bool ask(const struct health_check *c, char reason[HEALTH_REASON_BYTES])
{
    reason[0] = '\0';
    return !c->is_healthy || c->is_healthy(c->ctx, reason);
}

static void reply_text(struct document_reply *ret, int status, bool no_sniff, struct str text)
{
    *ret = (struct document_reply){
        .status = status,
        .content_type = STR("text/plain; charset=utf-8"),
        .no_sniff = no_sniff,
        .body = slice_copy(text),
    };
}

/* ---- one check ---------------------------------------------------------------------------- */

static bool reply_single(struct arena *a, const struct health *h, enum health_endpoint endpoint,
                         struct str name, struct document_reply *ret)
{
    for (size_t i = 0; i < h->n_checks; i++) {
        const struct health_check *c = &h->checks[i];
        if (!(c->endpoints & endpoint) || !str_eq(c->name, name))
            continue;
        char reason[HEALTH_REASON_BYTES];
        if (ask(c, reason))
            reply_text(ret, 200, /* no_sniff= */ false, STR("ok"));
        else
            reply_text(ret, 500, /* no_sniff= */ true,
                       arena_printf(a, "internal server error: %s\n", reason));
        return true;
    }
    return false;
}

/* ---- all checks --------------------------------------------------------------------------- */

static size_t take_excluded(struct arena *a, const struct request_query *q, struct str **ret)
{
    struct str *names = ARENA_ARRAY(a, struct str, q->n);
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        if (str_is(q->parameters[i].name, "exclude"))
            names[n++] = q->parameters[i].value;
    *ret = names;
    return n;
}

/* Strikes the name out of the list, so that what is left over can be reported. */
static bool strike(struct str *names, size_t *n, struct str name)
{
    bool is_struck = false;
    for (size_t i = 0; i < *n;) {
        if (str_eq(names[i], name)) {
            names[i] = names[--*n];
            is_struck = true;
        } else {
            i++;
        }
    }
    return is_struck;
}

static bool append_check(struct buf *b, const struct health_check *c, struct str endpoint)
{
    char reason[HEALTH_REASON_BYTES];
    const bool is_ok = ask(c, reason);
    if (is_ok) {
        buf_printf(b, "[+]%.*s ok\n", STR_ARG(c->name));
    } else {
        buf_printf(b, "[-]%.*s failed: reason withheld\n", STR_ARG(c->name));
        log_warning("health check failed", LOG_STR("endpoint", endpoint), LOG_STR("check", c->name),
                    LOG_TEXT("reason", reason));
    }
    return is_ok;
}

static void append_left_over(struct arena *a, struct buf *b, const struct str *names, size_t n)
{
    if (n == 0)
        return;
    buf_append_str(b, STR("warn: some health checks cannot be excluded: no matches for "));
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_append_str(b, STR(", "));
        buf_append_str(b, status_quote(a, names[i]));
    }
    buf_append_char(b, '\n');
}

static void reply_all(struct arena *a, const struct health *h, size_t endpoint,
                      const struct document_request *q, struct document_reply *ret)
{
    const struct request_query query = request_parse_query(a, q->query);
    struct str *excluded;
    size_t n_excluded = take_excluded(a, &query, &excluded);
    const struct str name = endpoints[endpoint].name;
    bool is_ok = true;
    BUF_AUTO b = {0};
    for (size_t i = 0; i < h->n_checks; i++) {
        const struct health_check *c = &h->checks[i];
        if (!(c->endpoints & endpoints[endpoint].endpoint))
            continue;
        if (strike(excluded, &n_excluded, c->name))
            buf_printf(&b, "[+]%.*s excluded: ok\n", STR_ARG(c->name));
        else
            is_ok = append_check(&b, c, name) && is_ok;
    }
    append_left_over(a, &b, excluded, n_excluded);
    buf_printf(&b, "%.*s check %s\n", STR_ARG(name), is_ok ? "passed" : "failed");
    const bool is_verbose = !is_ok || request_parameter(&query, "verbose").p;
    reply_text(ret, is_ok ? 200 : 500, /* no_sniff= */ true, is_verbose ? buf_str(&b) : STR("ok"));
}

bool health_get(struct arena *a, const struct health *h, const struct document_request *q,
                struct document_reply *ret_reply)
{
    const struct str path = str_from(q->path, 1);
    for (size_t i = 0; i < N_ELEMENTS(endpoints); i++) {
        const struct str name = endpoints[i].name;
        if (str_eq(path, name)) {
            reply_all(a, h, i, q, ret_reply);
            return true;
        }
        if (str_starts_with(path, name) && path.p[name.n] == '/')
            return reply_single(a, h, endpoints[i].endpoint, str_from(path, name.n + 1), ret_reply);
    }
    return false;
}

size_t health_paths(struct arena *a, const struct health *h, struct str **ret_paths)
{
    struct str *paths = ARENA_ARRAY(a, struct str, N_ELEMENTS(endpoints) * (h->n_checks + 1));
    size_t n = 0;
    for (size_t i = 0; i < N_ELEMENTS(endpoints); i++) {
        const struct str name = endpoints[i].name;
        paths[n++] = arena_printf(a, "/%.*s", STR_ARG(name));
        for (size_t c = 0; c < h->n_checks; c++)
            if (h->checks[c].endpoints & endpoints[i].endpoint)
                paths[n++] =
                    arena_printf(a, "/%.*s/%.*s", STR_ARG(name), STR_ARG(h->checks[c].name));
    }
    *ret_paths = paths;
    return n;
}
