/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of annexes: made on worker threads, sent on the loop. A stream is pulled piece by piece,
 * one read under way at a time, none while the peer has not taken what there was. */
#include "api/annex.h"

#include <errno.h>

#include "api/visit.h"
#include "base/alloc.h"

/* Of one read, and how much may wait for the peer before the next. */
#define PIECE_BYTES ((size_t) 64 * 1024)

/* One answer in the making, on its loop's thread but for what the worker does. */
struct annex_run {
    struct list link; /* streams of the door */
    struct visit *visit;
    struct annex_request request;
    struct annex_answer answer;
    struct status status;
    int result;
    /* of a stream */
    struct buf piece;
    enum annex_read last;
    bool is_reading, is_woken, is_waiting;
    bool is_over; /* no more is to be sent */
};

/* ---- before rights are asked for ----------------------------------------------------------- */

int annex_claim(struct visit *v, struct status *st)
{
    struct door *door = v->door;
    for (size_t i = 0; i < door->n_annexes; i++) {
        const struct annex *annex = &door->annexes[i];
        struct request_path resource = {0};
        enum verb verb = v->in.verb;
        int r = annex->claim(annex->ctx, v->arena, v->path, http_request(v->exchange)->method,
                             &resource, &verb, st);
        if (r == -ENOENT)
            continue;
        v->annex = annex;
        visit_outlive(v);
        v->method = arena_str(v->arena, v->method);
        v->path = arena_str(v->arena, v->path);
        if (resource.is_resource) {
            v->in.path = resource;
            v->in.verb = verb;
            v->has_verb = true;
        }
        return r;
    }
    return 0;
}

bool annex_is_open(const struct visit *v)
{
    const struct annex *annex = v->annex;
    return annex && annex->is_open &&
           annex->is_open(annex->ctx, v->path, http_request(v->exchange)->peer->address);
}

bool annex_wants_stream(const struct visit *v)
{
    const struct http_request *r = http_request(v->exchange);
    return str_eq_nocase(http_request_header(r, STR("x-stream")), STR("true")) ||
           request_flag(&v->in.query, "follow");
}

/* ---- streams ------------------------------------------------------------------------------- */

static void pump(struct annex_run *run);

static void run_free(void *arg)
{
    struct annex_run *run = arg;
    buf_done(&run->piece);
    visit_free(run->visit); /* its memory is the run's too */
}

static void close_on_worker(void *arg)
{
    struct annex_run *run = arg;
    struct annex_stream *stream = run->answer.stream;
    if (run->is_waiting)
        stream->cancel(stream);
    stream->close(stream);
    loop_post(run->visit->door->loop, run_free, run);
}

/* Nothing reads: the stream goes, then the rest. */
static void close_stream(struct annex_run *run)
{
    struct visit *v = run->visit;
    list_remove(&run->link);
    visit_end_stream(v);
    if (workers_run(v->door->annex_workers, close_on_worker, run) < 0)
        close_on_worker(run);
}

static void end_stream(struct annex_run *run)
{
    struct http_exchange *x = TAKE(run->visit->exchange);
    run->is_over = true;
    if (x)
        http_end(x);
    if (!run->is_reading)
        close_stream(run);
}

static void on_stream_peer_gone(void *arg)
{
    struct annex_run *run = arg;
    run->visit->exchange = NULL;
    if (!run->is_over)
        end_stream(run);
}

static void on_drained(void *arg)
{
    pump(arg);
}

static void on_woken(void *arg)
{
    struct annex_run *run = arg;
    run->is_woken = true;
    if (run->is_over || run->is_reading)
        return;
    run->is_waiting = false;
    run->answer.stream->cancel(run->answer.stream);
    pump(run);
}

static void wake(void *arg)
{
    struct annex_run *run = arg;
    loop_post(run->visit->door->loop, on_woken, run);
}

static void on_read(void *arg)
{
    struct annex_run *run = arg;
    struct visit *v = run->visit;
    run->is_reading = false;
    if (run->is_over) {
        close_stream(run);
        return;
    }
    if (run->piece.n) {
        size_t n = run->piece.n;
        struct slice s = slice_adopt(buf_take(&run->piece), n);
        http_send(v->exchange, &s, 1);
    }
    if (run->last == ANNEX_END)
        end_stream(run);
    else if (run->last == ANNEX_MORE)
        pump(run);
    else if (run->is_woken)
        on_woken(run);
}

static void read_on_worker(void *arg)
{
    struct annex_run *run = arg;
    struct annex_stream *stream = run->answer.stream;
    run->last = stream->read(stream, &run->piece, PIECE_BYTES);
    if (run->last == ANNEX_WAIT) {
        run->is_waiting = true;
        stream->wait(stream, wake, run);
    }
    loop_post(run->visit->door->loop, on_read, run);
}

/* Reads on unless somebody does, or the peer has not taken what there was. */
static void pump(struct annex_run *run)
{
    struct visit *v = run->visit;
    if (run->is_reading || run->is_over || run->is_waiting ||
        http_pending(v->exchange) > PIECE_BYTES)
        return;
    run->is_reading = true;
    run->is_woken = false;
    if (workers_run(v->door->annex_workers, read_on_worker, run) == 0)
        return;
    run->is_reading = false;
    http_abort(TAKE(v->exchange)); /* the client resumes where it was */
    end_stream(run);
}

static void begin_stream(struct annex_run *run)
{
    struct visit *v = run->visit;
    visit_begin_stream(v);
    list_append(&v->door->annex_streams, &run->link);
    http_on_closed(v->exchange, on_stream_peer_gone, run);
    http_on_drained(v->exchange, on_drained, run);
    visit_start_stream(v, run->answer.content_type);
    pump(run);
}

void annex_drain(struct door *door)
{
    LIST_FOR_EACH (&door->annex_streams, link) {
        struct annex_run *run = CONTAINER_OF(link, struct annex_run, link);
        if (!run->is_over)
            end_stream(run);
    }
}

/* ---- answers ------------------------------------------------------------------------------- */

/* A stream nobody waits for any more. */
static void drop_stream(struct annex_run *run)
{
    struct annex_stream *stream = run->answer.stream;
    if (stream)
        stream->close(stream);
}

static void on_answered(void *arg)
{
    struct annex_run *run = arg;
    struct visit *v = run->visit;
    if (!v->exchange) {
        drop_stream(run);
        visit_finish(v, run->result < 0 ? run->status.code : run->answer.code, 0);
        run_free(run);
    } else if (run->result < 0) {
        visit_reply_status(v, &run->status);
        run_free(run);
    } else if (run->answer.stream) {
        begin_stream(run);
    } else {
        visit_reply_text(v, run->answer.code, run->answer.content_type, run->answer.body);
        run_free(run);
    }
}

static void answer_on_worker(void *arg)
{
    struct annex_run *run = arg;
    struct visit *v = run->visit;
    run->result = v->annex->answer(v->annex->ctx, &run->request, &run->answer, &run->status);
    loop_post(v->door->loop, on_answered, run);
}

static void fill_request(struct annex_run *run)
{
    struct visit *v = run->visit;
    const struct http_request *r = http_request(v->exchange);
    struct arena *a = v->arena;
    call_input_copy(a, &v->in);
    run->request = (struct annex_request){
        .arena = a,
        .method = r->method,
        .path = v->path,
        .query = v->in.query,
        .resource = v->in.path,
        .user = v->in.user,
        .accept = arena_str(a, http_request_header(r, STR("accept"))),
        .content_type = arena_str(a, http_request_header(r, STR("content-type"))),
        .body = arena_str(a, r->body),
        .wants_stream = annex_wants_stream(v),
        .source = arena_str(a, r->peer->address)};
}

void annex_handle(struct visit *v)
{
    struct annex_run *run = ARENA_NEW(v->arena, struct annex_run);
    run->visit = v;
    v->call = (struct call){.api = v->door->api, .arena = v->arena};
    v->call.registry = api_registry(v->door->api);
    if (v->in.path.is_resource)
        v->call.kind = registry_find(v->call.registry, v->in.path.group, v->in.path.version,
                                     v->in.path.resource);
    status_init(&run->status, v->arena);
    fill_request(run);
    if (workers_run(v->door->annex_workers, answer_on_worker, run) == 0)
        return;
    (void) status_fail(&run->status, 429, "TooManyRequests",
                       "too many requests wait to be answered, please try again later.");
    run->status.retry_after_s = 1;
    visit_refuse(v, &run->status);
}
