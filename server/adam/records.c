/* SPDX-License-Identifier: Apache-2.0 */
/* /admin/device/{uuid}/logs and its like: everything there is, or everything new from now on. */
#include "adam/records.h"

#include "adam/adam_internal.h"
#include "base/alloc.h"

struct records {
    struct annex_stream stream;
    struct telemetry *telemetry;
    struct device *device; /* when it is gone, so is the stream */
    struct uuid app;
    struct telemetry_query query;
    struct telemetry_cursor *cursor;
    struct telemetry_record record;
    struct lines lines;
    struct telemetry_waiter *waiter;
    bool is_following, is_binary;
};

static struct records *records_of(struct annex_stream *s)
{
    return CONTAINER_OF(s, struct records, stream);
}

/* ---- the stream ------------------------------------------------------------------------------ */

static enum annex_read read_more(struct annex_stream *s, struct buf *to, size_t room)
{
    struct records *r = records_of(s);
    struct line line;
    while (to->n < room) {
        if (r->lines.record && lines_next(&r->lines, &line)) {
            adam_write_line(&line, r->is_binary, to);
            continue;
        }
        lines_close(&r->lines);
        const int n = telemetry_next(r->cursor, &r->record);
        if (n < 0)
            return ANNEX_END;
        if (n == 0)
            return r->is_following && !atomic_load(&r->device->is_gone) ? ANNEX_WAIT : ANNEX_END;
        lines_open(&r->lines, &r->record);
    }
    return ANNEX_MORE;
}

static void wait_for_more(struct annex_stream *s, void (*wake)(void *arg), void *arg)
{
    struct records *r = records_of(s);
    r->query.after = MAX(r->query.after, telemetry_cursor_position(r->cursor));
    r->waiter = telemetry_wait(r->telemetry, &r->query, wake, arg);
}

static void cancel(struct annex_stream *s)
{
    telemetry_cancel(TAKE(records_of(s)->waiter));
}

static void close_records(struct annex_stream *s)
{
    struct records *r = records_of(s);
    lines_done(&r->lines);
    telemetry_cursor_free(r->cursor);
    device_unref(r->device);
    mem_free(r);
}

/* ---- the endpoints --------------------------------------------------------------------------- */

static int answer(struct adam_call *c, enum telemetry_stream stream, const struct uuid *app)
{
    struct records *r = NEW(struct records);
    r->stream = (struct annex_stream){read_more, wait_for_more, cancel, close_records};
    r->telemetry = c->adam->options.telemetry;
    r->device = device_ref(c->device);
    r->query = (struct telemetry_query){.device = &r->device->uuid, .streams = 1u << stream};
    if (app) {
        r->app = *app;
        r->query.app = &r->app;
    }
    r->is_following = c->request->wants_stream;
    r->is_binary = adam_wants_binary(c->request->accept);
    if (r->is_following)
        r->query.after = telemetry_last_id(r->telemetry);
    r->cursor = telemetry_read(r->telemetry, &r->query);
    *c->answer = (struct annex_answer){
        .code = 200, .content_type = r->is_binary ? ADAM_BINARY : ADAM_JSON, .stream = &r->stream};
    return 0;
}

int adam_records_logs(struct adam_call *c)
{
    return answer(c, TELEMETRY_LOG, NULL);
}

int adam_records_info(struct adam_call *c)
{
    return answer(c, TELEMETRY_INFO, NULL);
}

int adam_records_metrics(struct adam_call *c)
{
    return answer(c, TELEMETRY_METRICS, NULL);
}

int adam_records_requests(struct adam_call *c)
{
    return answer(c, TELEMETRY_REQUESTS, NULL);
}

int adam_records_flowlogs(struct adam_call *c)
{
    return answer(c, TELEMETRY_FLOWLOG, NULL);
}

int adam_records_app_logs(struct adam_call *c)
{
    struct uuid app;
    if (uuid_parse(c->arguments[1], &app) < 0)
        return adam_refuse(c, 400, "bad UUID: %.*s", STR_ARG(c->arguments[1]));
    return answer(c, TELEMETRY_APP_LOG, &app);
}
