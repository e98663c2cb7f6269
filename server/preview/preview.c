/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/preview.h"

#include <errno.h>

#include "api/media.h"
#include "preview/review.h"
#include "preview/trial.h"

#define PREVIEW "preview"
#define PROVENANCE "provenance"

/* ---- paths --------------------------------------------------------------------------------- */

static bool is_ours(const struct request_path *p)
{
    return p->is_resource && !p->is_watch && str_is(p->group, "eve.lfedge.org") &&
           str_is(p->version, "v1beta1") && str_is(p->resource, "devices") && p->namespace.n &&
           p->name.n && !p->extra.n &&
           (str_is(p->subresource, PREVIEW) || str_is(p->subresource, PROVENANCE));
}

static int claim(void *ctx, struct arena *a, struct str path, enum http_method method,
                 struct request_path *resource, enum verb *verb, struct status *st)
{
    struct request_path p = {0};
    (void) ctx;
    (void) a;
    request_parse_path(path, &p);
    if (!is_ours(&p))
        return -ENOENT;
    const bool is_post = method == HTTP_POST && str_is(p.subresource, PREVIEW);
    *resource = p;
    *verb = is_post ? VERB_CREATE : VERB_GET;
    return is_post || method == HTTP_GET ? 0 : status_no_method(st);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Text for who asks for it, JSON for all others. */
static bool wants_text(const struct annex_request *q)
{
    struct media_range *ranges = NULL;
    const struct str format = request_parameter(&q->query, "format");
    if (format.n)
        return str_is(format, "text");
    const size_t n = media_parse_accept(q->arena, q->accept, &ranges);
    for (size_t i = 0; i < n; i++) {
        if (media_range_matches(&ranges[i], STR("application"), STR("json")))
            return false;
        if (media_range_matches(&ranges[i], STR("text"), STR("plain")))
            return true;
    }
    return false;
}

static void reply(const struct annex_request *q, const struct json *value,
                  struct str (*text)(struct arena *a, const struct json *v),
                  struct annex_answer *ret)
{
    BUF_AUTO b = {0};
    const bool is_text = wants_text(q);
    ret->code = 200;
    ret->content_type = is_text ? STR("text/plain; charset=utf-8") : STR("application/json");
    if (is_text) {
        ret->body = text(q->arena, value);
        return;
    }
    json_write_pretty(&b, value);
    buf_append_char(&b, '\n');
    ret->body = arena_str(q->arena, buf_str(&b));
}

static int answer_provenance(struct preview *p, const struct annex_request *q, struct review *r,
                             struct annex_answer *ret, struct status *st)
{
    const struct str path = request_parameter(&q->query, "path");
    const int error = review_now(r, p, st);
    if (error == 0)
        reply(q, review_provenance_json(r, path.p ? path : STR("")), provenance_text, ret);
    return error;
}

/* What the objects of the body would be. */
static int try_objects(struct preview *p, const struct annex_request *q, struct review *r,
                       struct status *st)
{
    struct manifest *m = ARENA_NEW(q->arena, struct manifest);
    struct fleet_change *changes = NULL;
    const struct trial t = {.api = p->api,
                            .client = p->client,
                            .registry = r->registry,
                            .request = q,
                            .namespace = r->namespace,
                            .is_removal = request_flag(&q->query, "delete")};
    int error = manifest_read(q->arena, q->body, m, st);
    if (error == 0)
        error = trial_run(&t, m, &changes, st);
    r->changes = changes;
    r->n_changes = error == 0 ? m->n : 0;
    return error;
}

static int answer_preview(struct preview *p, const struct annex_request *q, struct review *r,
                          struct annex_answer *ret, struct status *st)
{
    int error = q->method == HTTP_POST ? try_objects(p, q, r, st) : review_pending(r, p, st);
    if (error == 0 && q->method == HTTP_POST)
        error = review_changes(r, p, st);
    if (error == 0)
        reply(q, review_preview_json(r), preview_text, ret);
    return error;
}

static int check_format(const struct annex_request *q, struct status *st)
{
    const struct str format = request_parameter(&q->query, "format");
    if (!format.n || str_is(format, "text") || str_is(format, "json"))
        return 0;
    return status_bad_request(st, "format must be json or text, not %.*s",
                              STR_ARG(status_quote(q->arena, format)));
}

static int answer(void *ctx, const struct annex_request *q, struct annex_answer *ret,
                  struct status *st)
{
    struct preview *p = ctx;
    CLEANUP(review_done)
    struct review r = {
        .arena = q->arena, .namespace = q->resource.namespace, .name = q->resource.name};
    int error = check_format(q, st);
    if (error == 0)
        error = review_open(&r, p, st);
    if (error < 0)
        return error;
    return str_is(q->resource.subresource, PREVIEW) ? answer_preview(p, q, &r, ret, st)
                                                    : answer_provenance(p, q, &r, ret, st);
}

struct annex preview_annex(struct preview *p)
{
    return (struct annex){.ctx = p, .claim = claim, .answer = answer};
}
