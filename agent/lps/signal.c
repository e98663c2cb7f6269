/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/signal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "controllerconn/uplink.h"
#include "loop/loop.h"
#include "protobuf/protojson.h"

/* Of an answer that is no stream. */
#define MAX_REPLY_BYTES ((size_t) 4096)

struct signal_stream {
    struct signal_options o;
    struct uplink_call *call;
    struct loop_timer *timer;
    struct signal_lines lines;
    struct signal_limiter limiter;
    size_t place;    /* that is asked now */
    int64_t open_us; /* since then, if it is */
    bool is_open;
    int64_t wait_ms;    /* after the next failure */
    bool is_understood; /* else it was said */
};

/* ---- what is read --------------------------------------------------------------------------- */

void signal_lines_done(struct signal_lines *l)
{
    buf_done(&l->rest);
    *l = (struct signal_lines){0};
}

int signal_lines_next(struct signal_lines *l, struct str *piece, struct str *ret_line)
{
    if (l->is_handed_out)
        signal_lines_done(l);
    const ptrdiff_t end = str_find(*piece, '\n');
    const struct str part = end < 0 ? *piece : str_sub(*piece, 0, (size_t) end);
    if (part.n > SIGNAL_MAX_LINE_BYTES - l->rest.n)
        return -EMSGSIZE;
    *piece = str_from(*piece, end < 0 ? piece->n : (size_t) end + 1);
    if (end >= 0 && l->rest.n == 0) {
        *ret_line = part;
        return 1;
    }
    if (part.n > 0)
        buf_append_str(&l->rest, part);
    if (end < 0)
        return 0;
    l->is_handed_out = true;
    *ret_line = buf_str(&l->rest);
    return 1;
}

struct str signal_lines_rest(const struct signal_lines *l)
{
    return l->is_handed_out ? STR("") : buf_str(&l->rest);
}

int signal_read(struct arena *a, struct str line, const Eve__Profile__Signal **ret)
{
    struct json_parse_result parsed = {0};
    if (json_parse(a, line, &parsed) < 0)
        return -EBADMSG;
    const Eve__Profile__Signal *s = (const void *) protojson_read(
        a, &eve__profile__signal__descriptor, parsed.value, PROTOJSON_IGNORE_UNKNOWN, NULL, NULL);
    if (!s)
        return -EBADMSG;
    if (s->n_pending_changes > SIGNAL_MAX_ENDPOINTS)
        return -E2BIG;
    *ret = s;
    return 0;
}

bool signal_limiter_allows(struct signal_limiter *l, int64_t now_ms)
{
    const int64_t next_ms = MAX(l->next_ms, now_ms);
    if (next_ms - now_ms > (int64_t) (SIGNAL_BURST - 1) * SIGNAL_INTERVAL_MS)
        return false;
    l->next_ms = next_ms + SIGNAL_INTERVAL_MS;
    return true;
}

/* ---- while it is open ----------------------------------------------------------------------- */

static int64_t now_us(const struct signal_stream *s)
{
    return s->o.clock->monotonic_us(s->o.clock);
}

static void take_line(struct signal_stream *s, struct str line)
{
    ARENA_AUTO a = arena_new();
    const Eve__Profile__Signal *m = NULL;
    if (str_trim(line).n == 0)
        return;
    const int r = signal_read(a, line, &m);
    if (r < 0) {
        if (s->is_understood)
            log_warning("a signal of the local profile server is not understood, ignoring it",
                        LOG_ERRNO(r));
        s->is_understood = false;
        return;
    }
    s->is_understood = true;
    if (!signal_limiter_allows(&s->limiter, now_us(s) / 1000)) {
        log_debug("the local profile server signals too often, ignoring it");
        return;
    }
    for (size_t i = 0; i < m->n_pending_changes; i++)
        s->o.on_pending(s->o.arg, m->pending_changes[i]);
}

/* Twice as long as before, within limits. */
static void back_off(struct signal_stream *s)
{
    loop_timer_start(s->timer, s->wait_ms, /* repeat_ms= */ 0);
    s->wait_ms = MIN(2 * s->wait_ms, SIGNAL_MAX_WAIT_MS);
}

static void on_data(void *arg, struct str piece)
{
    struct signal_stream *s = arg;
    struct str line;
    int r;
    if (!s->is_open) {
        s->is_open = true;
        s->open_us = now_us(s);
        log_debug("the local profile server has a stream of signals",
                  LOG_STR("at", s->o.places->items[s->place].url));
    }
    while ((r = signal_lines_next(&s->lines, &piece, &line)) > 0)
        take_line(s, line);
    if (r == 0)
        return;
    log_warning("a signal of the local profile server is too long, leaving its stream");
    signal_lines_done(&s->lines);
    uplink_cancel(TAKE(s->call));
    back_off(s);
}

/* ---- opening and its end -------------------------------------------------------------------- */

static void on_end(void *arg, const struct uplink_answer *answer);

static void open_at(struct signal_stream *s, size_t place)
{
    ARENA_AUTO a = arena_new();
    const struct place *p = &s->o.places->items[place];
    const struct uplink_request r = {.url = arena_printf(a, "%.*s/api/v1/signal", STR_ARG(p->url)),
                                     .port = p->bridge,
                                     .source = p->source,
                                     .is_local = true,
                                     .max_reply_bytes = MAX_REPLY_BYTES,
                                     .budget_ms = s->o.open_timeout_ms,
                                     .on_data = on_data,
                                     .keepalive_s = SIGNAL_KEEPALIVE_S};
    s->place = place;
    s->is_open = false;
    s->call = uplink_send(s->o.uplink, &r, on_end, s);
}

/* One that ended as soon as it was open would be opened without end. */
static void open_again(struct signal_stream *s)
{
    take_line(s, signal_lines_rest(&s->lines));
    signal_lines_done(&s->lines);
    if (!s->is_open || now_us(s) - s->open_us < (int64_t) SIGNAL_FIRST_WAIT_MS * 1000) {
        back_off(s);
        return;
    }
    s->wait_ms = SIGNAL_FIRST_WAIT_MS;
    open_at(s, 0);
}

static void on_end(void *arg, const struct uplink_answer *answer)
{
    struct signal_stream *s = arg;
    s->call = NULL;
    if (answer->http_status == 200) {
        open_again(s);
    } else if (answer->http_status == 404) {
        log_debug("the local profile server has no stream of signals, asking again in an hour");
        s->wait_ms = SIGNAL_FIRST_WAIT_MS;
        loop_timer_start(s->timer, SIGNAL_THROTTLED_MS, /* repeat_ms= */ 0);
    } else if (s->place + 1 < s->o.places->n) {
        open_at(s, s->place + 1);
    } else {
        back_off(s);
    }
}

static void on_timer(void *arg)
{
    open_at(arg, 0);
}

struct signal_stream *signal_stream_new(const struct signal_options *o)
{
    struct signal_stream *s = NEW(struct signal_stream);
    s->o = *o;
    s->timer = loop_timer_new(o->loop, on_timer, s);
    s->wait_ms = SIGNAL_FIRST_WAIT_MS;
    s->is_understood = true;
    open_at(s, 0);
    return s;
}

void signal_stream_free(struct signal_stream *s)
{
    if (!s)
        return;
    if (s->call)
        uplink_cancel(s->call);
    loop_timer_free(s->timer);
    signal_lines_done(&s->lines);
    mem_free(s);
}
