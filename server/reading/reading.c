/* SPDX-License-Identifier: Apache-2.0 */
#include "reading/reading.h"

#include <errno.h>

#include "api/media.h"
#include "base/clock.h"
#include "reading/stream.h"

#define GROUP STR("eve.lfedge.org")
#define VERSION STR("v1beta1")
#define RESOURCE STR("devices")

/* ---- paths ----------------------------------------------------------------------------------- */

/* "/edgenode/<uuid>/<what>". */
static bool split_path(struct str path, struct str *ret_uuid, enum reading_what *ret_what)
{
    struct str prefix = STR("/edgenode/");
    if (!str_starts_with(path, prefix))
        return false;
    struct str rest = str_from(path, prefix.n);
    ptrdiff_t slash = str_find(rest, '/');
    if (slash < 0)
        return false;
    *ret_uuid = str_sub(rest, 0, (size_t) slash);
    *ret_what = reading_what(str_from(rest, (size_t) slash + 1));
    return *ret_what < READING_WHATS;
}

static struct device *device_of(struct reading *r, struct str uuid)
{
    struct uuid u;
    return uuid_parse(uuid, &u) == 0 ? roster_by_uuid(r->roster, &u) : NULL;
}

static bool is_subresource(const struct request_path *p)
{
    return p->is_resource && !p->is_watch && str_eq(p->group, GROUP) &&
           str_eq(p->version, VERSION) && str_eq(p->resource, RESOURCE) && p->namespace.n &&
           p->name.n && p->extra.n == 0 && reading_what(p->subresource) < READING_WHATS;
}

/* Rights on /edgenode are those on the Device. Of a UUID that is no device's nothing is said before
 * the user has shown to have rights on the path. */
static int claim_edgenode(struct reading *r, struct arena *a, struct str path,
                          struct request_path *resource, enum verb *verb)
{
    struct str uuid;
    enum reading_what what;
    if (!split_path(path, &uuid, &what))
        return -ENOENT;
    CLEANUP(device_unrefp) struct device *d = device_of(r, uuid);
    if (!d)
        return 0;
    *resource = (struct request_path){.is_resource = true,
                                      .group = GROUP,
                                      .version = VERSION,
                                      .resource = RESOURCE,
                                      .subresource = reading_what_name(what),
                                      .namespace = arena_str(a, d->namespace),
                                      .name = arena_str(a, d->name)};
    *verb = VERB_GET;
    return 0;
}

static int claim(void *ctx, struct arena *a, struct str path, enum http_method method,
                 struct request_path *resource, enum verb *verb, struct status *st)
{
    struct request_path p = {0};
    request_parse_path(path, &p);
    if (is_subresource(&p)) {
        *resource = p;
        *verb = VERB_GET;
    } else {
        int r = claim_edgenode(ctx, a, path, resource, verb);
        if (r < 0)
            return r;
    }
    return method == HTTP_GET ? 0 : status_no_method(st);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct device *find(struct reading *r, const struct annex_request *q,
                           enum reading_what *ret_what, struct status *st)
{
    struct device *d = NULL;
    struct request_path p = {0};
    struct str uuid = STR("");
    request_parse_path(q->path, &p);
    if (is_subresource(&p)) {
        *ret_what = reading_what(p.subresource);
        d = roster_by_name(r->roster, p.namespace, p.name);
        if (!d)
            (void) status_fail(st, 404, "NotFound",
                               "devices.eve.lfedge.org %.*s not found, or no device has registered "
                               "as it yet",
                               STR_ARG(status_quote(st->arena, p.name)));
    } else if (split_path(q->path, &uuid, ret_what)) {
        d = device_of(r, uuid);
        if (!d)
            (void) status_fail(st, 404, "NotFound", "no device has the UUID %.*s",
                               STR_ARG(status_quote(st->arena, uuid)));
    }
    return d;
}

static int answer_last_seen(const struct annex_request *q, const struct device *d,
                            struct annex_answer *ret)
{
    int64_t us = atomic_load(&d->last_seen_us);
    char seen[CLOCK_MICROS_BYTES];
    clock_format_micros(us, seen);
    ret->code = 200;
    ret->content_type = STR("application/json");
    ret->body = arena_printf(
        q->arena, "{\"device\":\"%.*s\",\"uuid\":\"%s\",\"lastSeen\":%s%s%s}\n", STR_ARG(d->name),
        d->uuid_text, us ? "\"" : "", us ? seen : "null", us ? "\"" : "");
    return 0;
}

enum form { FORM_JSON, FORM_BINARY, FORM_NONE };

/* What the client likes best of what we have. Nothing said, or anything: JSON. */
static enum form choose_form(const struct annex_request *q, enum reading_what what)
{
    struct media_range *ranges = NULL;
    size_t n = media_parse_accept(q->arena, q->accept, &ranges);
    for (size_t i = 0; i < n; i++) {
        const struct media_range *range = &ranges[i];
        if (range->quality == 0)
            continue;
        if (media_range_matches(range, STR("application"), STR("json")) ||
            media_range_matches(range, STR("application"), STR("x-ndjson")))
            return FORM_JSON;
        if (what != READING_REQUESTS &&
            media_range_matches(range, STR("application"), STR("x-proto-binary")))
            return FORM_BINARY;
    }
    return n == 0 ? FORM_JSON : FORM_NONE;
}

static int answer_stream(struct reading *r, const struct annex_request *q, struct device *d,
                         enum reading_what what, struct annex_answer *ret, struct status *st)
{
    struct reading_query query;
    int error = reading_query_parse(&q->query, what, &query, st);
    if (error < 0)
        return error;
    enum form form = choose_form(q, what);
    if (form == FORM_NONE)
        return status_fail(st, 406, "NotAcceptable",
                           "only the following media types are accepted: application/json%s",
                           what == READING_REQUESTS ? "" : ", application/x-proto-binary");
    query.is_binary = form == FORM_BINARY;
    query.is_following = query.is_following || q->wants_stream;
    if (query.is_following && query.end_us)
        return status_bad_request(st, "the parameter end excludes the header X-Stream: true");
    ret->stream = reading_stream_new(r->telemetry, d, &query, st);
    if (!ret->stream)
        return -ENOENT;
    ret->code = 200;
    ret->content_type =
        query.is_binary ? STR("application/x-proto-binary") : STR("application/x-ndjson");
    return 0;
}

static int answer(void *ctx, const struct annex_request *q, struct annex_answer *ret,
                  struct status *st)
{
    enum reading_what what = READING_WHATS;
    CLEANUP(device_unrefp) struct device *d = find(ctx, q, &what, st);
    if (!d)
        return -ENOENT;
    if (what != READING_LAST_SEEN)
        return answer_stream(ctx, q, d, what, ret, st);
    struct reading_query none;
    int r = reading_query_parse(&q->query, what, &none, st);
    return r < 0 ? r : answer_last_seen(q, d, ret);
}

struct annex reading_annex(struct reading *r)
{
    return (struct annex){.ctx = r, .claim = claim, .answer = answer};
}
