/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door.h"

#include <errno.h>

#include "api/call_blocking.h"
#include "api/release.h"
#include "api/token/token_issuer.h"
#include "api/visit.h"

void door_on_refused(void *door, struct http_exchange *x, int status, struct str reason)
{
    (void) door;
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{400, "BadRequest"},
                   {408, "Timeout"},
                   {413, "RequestEntityTooLarge"},
                   {414, "RequestURITooLong"},
                   {431, "RequestHeaderFieldsTooLarge"}};
    struct status st;
    status_init(&st, http_arena(x));
    const char *word = "BadRequest";
    for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
        if (reasons[i].status == status)
            word = reasons[i].reason;
    if (status == 413)
        (void) status_fail(&st, status, word, "Request entity too large: limit is %zu",
                           http_default_limits.body_bytes);
    else
        (void) status_fail(&st, status, word, "%.*s", STR_ARG(reason));
    answer_refused(x, &st);
}

/* ---- calls -------------------------------------------------------------------------------- */

static void begin_call(struct visit *v);
static void run_on_worker(struct visit *v);

/* What became of a call whose peer is gone: a write is recorded as done when it is, though its
 * answer was never made. 0: nothing was decided. */
static int unanswered_code(const struct call *c)
{
    if (c->status.code)
        return c->status.code;
    if (c->reply.code)
        return c->reply.code;
    if (!c->write.committed || c->write.result < 0)
        return 0;
    return c->in.verb == VERB_CREATE ? 201 : 200;
}

static void end_call(struct visit *v)
{
    if (v->exchange)
        visit_reply_call(v);
    else
        visit_finish(v, unanswered_code(&v->call), 0);
    visit_free(v);
}

static void on_call_done(struct call *c)
{
    struct visit *v = CONTAINER_OF(c, struct visit, call);
    if (c->must_block)
        run_on_worker(v);
    else
        end_call(v);
}

static void on_resumed(void *arg)
{
    struct visit *v = arg;
    if (v->exchange)
        call_continue(&v->call);
    else
        end_call(v);
}

static void resume(struct call *c)
{
    struct visit *v = CONTAINER_OF(c, struct visit, call);
    loop_post(v->door->loop, on_resumed, v);
}

static void begin_call(struct visit *v)
{
    v->call = (struct call){.api = v->door->api,
                            .arena = v->arena,
                            .in = v->in,
                            .on_done = on_call_done,
                            .resume = resume};
}

/* ---- calls that meet a webhook ------------------------------------------------------------- */

static void on_worker_done(void *arg)
{
    end_call(arg);
}

static void work(void *arg)
{
    struct visit *v = arg;
    call_run_blocking(&v->call);
    loop_post(v->door->loop, on_worker_done, v);
}

/* Again from the beginning, on a thread that may wait. Nothing has been written yet. */
static void run_on_worker(struct visit *v)
{
    struct status st;
    call_done(&v->call);
    v->in.body = arena_str(v->arena, v->in.body); /* the peer may go meanwhile */
    begin_call(v);
    if (workers_run(v->door->workers, work, v) == 0)
        return;
    status_init(&st, v->arena);
    (void) status_fail(&st, 429, "TooManyRequests",
                       "too many requests wait for admission webhooks, please try again later.");
    st.retry_after_s = 1;
    visit_refuse(v, &st);
}

/* ---- routing ------------------------------------------------------------------------------ */

static bool serves_native(const struct registry *r, struct str group, struct str version)
{
    const struct registry_group *g = registry_group(r, group);
    for (size_t i = 0; g && i < g->n_versions; i++)
        if (str_eq(g->versions[i].version, version))
            return g->versions[i].n_kinds && g->versions[i].kinds[0]->is_native;
    return false;
}

static void handle_resource(struct visit *v)
{
    struct call_input *in = &v->in;
    const struct http_request *r = http_request(v->exchange);
    struct status st;
    status_init(&st, v->arena);
    CLEANUP(registry_unrefp) struct registry *registry = api_registry(v->door->api);
    const struct kind *kind =
        registry_find(registry, in->path.group, in->path.version, in->path.resource);
    if (!kind && in->path.group.n && !serves_native(registry, in->path.group, in->path.version)) {
        visit_reply_not_found_text(v);
        visit_free(v);
        return;
    }
    if (!v->has_verb) {
        bool has_path = kind && (!in->path.name.n || kind_has_items(kind));
        (void) (has_path ? status_no_method(&st) : status_no_resource(&st));
        visit_refuse(v, &st);
        return;
    }
    in->accept = http_request_header(r, STR("accept"));
    in->content_type = http_request_header(r, STR("content-type"));
    in->user_agent = http_request_header(r, STR("user-agent"));
    in->body = r->body;
    if (v->own_arena) {
        call_input_copy(v->own_arena, in);
        v->real = user_copy(v->own_arena, &v->real);
    }
    begin_call(v);
    call_run(&v->call);
}

static int get_metrics(struct door *door, const struct document_request *q,
                       struct document_reply *ret, struct status *st)
{
    struct buf b = {0};
    if (q->method != HTTP_GET && q->method != HTTP_HEAD)
        return status_no_method(st);
    api_metrics_text(door->metrics, &b);
    size_t n = b.n;
    *ret = (struct document_reply){.status = 200,
                                   .content_type = STR(API_METRICS_CONTENT_TYPE),
                                   .body = slice_adopt(buf_take(&b), n)};
    return 0;
}

/* The documents of the server, tried in turn. -ENOENT: the path is nobody's. */
static int find_document(struct visit *v, struct document_reply *ret, struct status *st)
{
    struct door *door = v->door;
    const struct http_request *r = http_request(v->exchange);
    struct arena *a = http_arena(v->exchange);
    struct str path = v->path;
    struct document_request q = {
        .method = r->method,
        .path = path,
        .query = r->query,
        .accept = http_request_header(r, STR("accept")),
        .accept_encoding = http_request_header(r, STR("accept-encoding")),
        .if_none_match = http_request_header(r, STR("if-none-match")),
        .now_s = api_clock(door->api)->wall_us(api_clock(door->api)) / 1000000,
    };
    if (health_get(a, door->health, &q, ret))
        return 0;
    if (str_is(path, "/version") || str_is(path, "/version/"))
        return release_get(&q, ret, st);
    if (str_is(path, "/metrics"))
        return get_metrics(door, &q, ret, st);
    const struct token_issuer *issuer = api_token_issuer(door->api);
    if (issuer && token_issuer_has_document(issuer, path))
        return token_issuer_document(issuer, &q, ret, st);
    CLEANUP(documents_unrefp) struct documents *d = api_server_documents(door->server);
    if (openapi_get(a, d->openapi, &q, ret))
        return 0;
    return discovery_get(a, d->discovery, &q, ret, st);
}

/* Below /api and the versions of native kinds a missing thing is a Status, elsewhere a missing
 * page. */
static bool is_below_native(struct door *door, struct str path)
{
    struct str rest = str_from(path, 6), group = STR_NONE, version = STR_NONE;
    if (str_starts_with(path, STR("/api/")))
        return true;
    if (!str_starts_with(path, STR("/apis/")) || !str_split(&rest, '/', &group) ||
        !str_split(&rest, '/', &version))
        return false;
    CLEANUP(registry_unrefp) struct registry *registry = api_registry(door->api);
    return serves_native(registry, group, version);
}

static void handle_path(struct visit *v)
{
    struct status st;
    struct document_reply d = {0};
    status_init(&st, v->arena);
    int r = find_document(v, &d, &st);
    if (r < 0 && !st.code && is_below_native(v->door, v->path))
        (void) status_no_resource(&st);
    if (r == 0)
        visit_reply_document(v, &d);
    else if (st.code)
        visit_reply_status(v, &st);
    else
        visit_reply_not_found_text(v);
    visit_free(v);
}

void visit_handle(struct visit *v)
{
    if (v->annex)
        annex_handle(v);
    else if (v->in.path.is_resource)
        handle_resource(v);
    else
        handle_path(v);
}
