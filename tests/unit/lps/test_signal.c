/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of a local profile server: as bytes, and as a stream over a wire of the test. */
#include "lps/signal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controllerconn/uplink.h"
#include "loop/loop.h"
#include "test.h"

#define ENDPOINT(name) EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_##name

/* ---- bytes ---------------------------------------------------------------------------------- */

/* All lines, each in brackets; a rest in parentheses. */
static struct str lines_of(struct arena *a, struct str bytes, size_t step, int *ret)
{
    struct signal_lines l = {0};
    BUF_AUTO all = {0};
    struct str line;
    int r = 0;
    for (size_t at = 0; at < bytes.n && r == 0; at += step) {
        struct str piece = str_sub(bytes, at, MIN(at + step, bytes.n));
        while ((r = signal_lines_next(&l, &piece, &line)) > 0)
            buf_printf(&all, "[%.*s]", STR_ARG(line));
    }
    if (signal_lines_rest(&l).n)
        buf_printf(&all, "(%.*s)", STR_ARG(signal_lines_rest(&l)));
    signal_lines_done(&l);
    *ret = r;
    return arena_str(a, buf_str(&all));
}

TEST(lines_are_the_same_however_they_come)
{
    ARENA_AUTO a = arena_new();
    for (size_t step = 1; step < 16; step++) {
        int r;
        assert_str(lines_of(a, STR("one\n\n\r\ntwo\nthree"), step, &r), "[one][][\r][two](three)");
        assert_int_equal(r, 0);
    }
}

TEST(a_line_has_a_limit_in_one_piece_or_many)
{
    static const size_t steps[] = {1, 4096, SIGNAL_MAX_LINE_BYTES * 2};
    ARENA_AUTO a = arena_new();
    char *bytes = arena_alloc(a, SIGNAL_MAX_LINE_BYTES + 2);
    memset(bytes, 'x', SIGNAL_MAX_LINE_BYTES + 2);
    for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
        int r;
        bytes[SIGNAL_MAX_LINE_BYTES] = '\n';
        assert_int_equal(lines_of(a, str_range(bytes, SIGNAL_MAX_LINE_BYTES + 1), steps[i], &r).n,
                         SIGNAL_MAX_LINE_BYTES + 2);
        assert_int_equal(r, 0);
        bytes[SIGNAL_MAX_LINE_BYTES] = 'x';
        (void) lines_of(a, str_range(bytes, SIGNAL_MAX_LINE_BYTES + 1), steps[i], &r);
        assert_int_equal(r, -EMSGSIZE);
    }
}

static struct str signal_with(struct arena *a, size_t n)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("{\"pendingChanges\":["));
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s5", i ? "," : "");
    buf_append_str(&b, STR("]}"));
    return arena_str(a, buf_str(&b));
}

TEST(signals_are_read_leniently)
{
    static const struct {
        const char *line;
        size_t n;
        int first;
    } good[] = {
        {"{}", 0, 0},
        {"{\"pendingChanges\":[]}", 0, 0},
        {"{\"pendingChanges\":null}", 0, 0},
        {"{\"pendingChanges\":[\"CONFIG_ENDPOINT_NETWORK\",1]}\r", 2, ENDPOINT(NETWORK)},
        {"{\"pending_changes\":[\"CONFIG_ENDPOINT_RADIO\"]}", 1, ENDPOINT(RADIO)},
        {" {\"later\":{\"a\":[1]},\"pendingChanges\":[\"CONFIG_ENDPOINT_APP_INFO\"]} ", 1,
         ENDPOINT(APP_INFO)},
        {"{\"pendingChanges\":[\"CONFIG_ENDPOINT_OF_TOMORROW\",\"CONFIG_ENDPOINT_DEV_INFO\"]}", 1,
         ENDPOINT(DEV_INFO)},
        {"{\"pendingChanges\":[77]}", 1, 77},
    };
    static const char *const bad[] = {"x",
                                      "[]",
                                      "\"\"",
                                      "{\"pendingChanges\":1}",
                                      "{\"pendingChanges\":[{}]}",
                                      "{\"pendingChanges\":[1]",
                                      "{} {}",
                                      "{\"a\":\"\xff\"}"};
    ARENA_AUTO a = arena_new();
    const Eve__Profile__Signal *s = NULL;
    for (size_t i = 0; i < N_ELEMENTS(good); i++) {
        assert_int_equal(signal_read(a, str_of(good[i].line), &s), 0);
        assert_int_equal(s->n_pending_changes, good[i].n);
        if (good[i].n)
            assert_int_equal(s->pending_changes[0], good[i].first);
    }
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_int_equal(signal_read(a, str_of(bad[i]), &s), -EBADMSG);
    assert_int_equal(signal_read(a, signal_with(a, SIGNAL_MAX_ENDPOINTS), &s), 0);
    assert_int_equal(signal_read(a, signal_with(a, SIGNAL_MAX_ENDPOINTS + 1), &s), -E2BIG);
}

TEST(three_at_once_then_one_in_three_seconds)
{
    struct signal_limiter l = {0};
    const int64_t begin_ms = 1000;
    for (int i = 0; i < SIGNAL_BURST; i++)
        assert_true(signal_limiter_allows(&l, begin_ms));
    assert_false(signal_limiter_allows(&l, begin_ms));
    assert_false(signal_limiter_allows(&l, begin_ms + SIGNAL_INTERVAL_MS - 1));
    /* What was refused costs nothing. */
    assert_true(signal_limiter_allows(&l, begin_ms + SIGNAL_INTERVAL_MS));
    assert_false(signal_limiter_allows(&l, begin_ms + SIGNAL_INTERVAL_MS));
    /* However long nothing came, no more than three. */
    for (int i = 0; i < SIGNAL_BURST; i++)
        assert_true(signal_limiter_allows(&l, begin_ms + 1000 * SIGNAL_INTERVAL_MS));
    assert_false(signal_limiter_allows(&l, begin_ms + 1000 * SIGNAL_INTERVAL_MS));
}

/* ---- a wire of the test --------------------------------------------------------------------- */

#define MAX_ASKED 32

struct bench {
    struct uplink_wire wire;
    struct loop *loop;
    struct loop_deferred turn;
    int n_turns;
    struct clock_virtual clock;
    struct uplink_metrics *metrics;
    struct uplink *uplink;
    struct places places;
    struct signal_stream *stream;
    int http[2];                  /* of each place; 0: nobody answers, 200: a stream */
    struct uplink_transfer *open; /* that is held */
    size_t asked[MAX_ASKED];      /* which place, */
    int64_t asked_ms[MAX_ASKED];  /* and when */
    size_t n_asked, wanted;
    struct buf pending; /* endpoints in their order */
    size_t n_pending;
};

struct uplink_transfer {
    struct loop_deferred finish;
    struct bench *bench;
    int http;
    void (*on_data)(void *arg, struct str piece);
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

static void on_finish(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, finish);
    const struct uplink_reply r = {.fault = t->http ? UPLINK_FAULT_NONE : UPLINK_FAULT_REFUSED,
                                   .http_status = t->http};
    if (t->http == 200) {
        t->bench->open = t;
        t->on_data(t->arg, STR(""));
        return;
    }
    t->on_done(t->arg, &r);
    mem_free(t);
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct bench *b = CONTAINER_OF(wire, struct bench, wire);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    const size_t place = str_is(x->url, "http://10.1.0.2:8888/api/v1/signal") ? 0 : 1;
    if (place == 1)
        assert_str(x->url, "http://10.1.0.3:8888/api/v1/signal");
    assert_str(x->source, place == 0 ? "10.1.0.1" : "10.1.0.9");
    assert_int_equal(x->keepalive_s, SIGNAL_KEEPALIVE_S);
    assert_false(x->is_post);
    assert_in_range(b->n_asked, 0, MAX_ASKED - 1);
    b->asked[b->n_asked] = place;
    b->asked_ms[b->n_asked++] = loop_now_ms(b->loop);
    if (b->n_asked == b->wanted)
        loop_stop(b->loop);
    *t = (struct uplink_transfer){.finish.fn = on_finish,
                                  .bench = b,
                                  .http = b->http[place],
                                  .on_data = x->on_data,
                                  .on_done = on_done,
                                  .arg = arg};
    loop_defer(b->loop, &t->finish);
    return t;
}

static void cancel(struct uplink_transfer *t)
{
    loop_undefer(t->bench->loop, &t->finish);
    if (t->bench->open == t)
        t->bench->open = NULL;
    mem_free(t);
}

static const struct uplink_wire_ops ops = {.start = start, .cancel = cancel};

static void on_pending(void *arg, Eve__Profile__ConfigEndpoint e)
{
    struct bench *b = arg;
    buf_printf(&b->pending, "%d ", (int) e);
    b->n_pending++;
}

static void set_ports(struct bench *b)
{
    struct uplink_port ports[2];
    for (size_t i = 0; i < b->places.n; i++)
        ports[i] = (struct uplink_port){.name = b->places.items[i].bridge,
                                        .is_management = true,
                                        .is_l3 = true,
                                        .addresses = &b->places.items[i].source,
                                        .n_addresses = 1};
    struct uplink_ports *all = uplink_ports_new(1, ports, b->places.n);
    uplink_set_ports(b->uplink, all);
    uplink_ports_unref(all);
}

static void begin(struct bench *b, double speed)
{
    *b = (struct bench){.wire = {&ops}, .loop = loop_new(), .metrics = uplink_metrics_new()};
    b->places =
        (struct places){.items = {{STR("bn1"), STR("10.1.0.1"), STR("http://10.1.0.2:8888")},
                                  {STR("bn2"), STR("10.1.0.9"), STR("http://10.1.0.3:8888")}},
                        .n = 2};
    loop_set_speed(b->loop, speed);
    clock_virtual_init(&b->clock, 5000000);
    b->uplink = uplink_new(&(struct uplink_options){.loop = b->loop,
                                                    .wire = &b->wire,
                                                    .clock = &b->clock.clock,
                                                    .metrics = b->metrics,
                                                    .server = STR("")});
    set_ports(b);
}

static void follow(struct bench *b)
{
    b->stream = signal_stream_new(&(struct signal_options){.loop = b->loop,
                                                           .clock = &b->clock.clock,
                                                           .uplink = b->uplink,
                                                           .places = &b->places,
                                                           .open_timeout_ms = 1000,
                                                           .on_pending = on_pending,
                                                           .arg = b});
}

static void end(struct bench *b)
{
    signal_stream_free(b->stream);
    assert_null(b->open);
    uplink_free(b->uplink);
    uplink_metrics_free(b->metrics);
    loop_settle(b->loop);
    loop_free(b->loop);
    buf_done(&b->pending);
}

static void on_turn(struct loop_deferred *d)
{
    struct bench *b = CONTAINER_OF(d, struct bench, turn);
    if (b->n_turns-- == 0)
        loop_stop(b->loop);
    else
        loop_defer(b->loop, d);
}

/* None of them waits: no timer of a second comes. */
static void run_turns(struct bench *b)
{
    b->turn.fn = on_turn;
    b->n_turns = 20;
    loop_defer(b->loop, &b->turn);
    loop_run(b->loop);
}

static void run_until_asked(struct bench *b, size_t n)
{
    b->wanted = n;
    loop_run(b->loop);
    assert_true(b->n_asked >= n);
}

static void say(struct bench *b, struct str piece)
{
    assert_non_null(b->open);
    b->open->on_data(b->open->arg, piece);
}

static void hang_up(struct bench *b)
{
    struct uplink_transfer *t = TAKE(b->open);
    t->on_done(t->arg, &(struct uplink_reply){.http_status = 200});
    mem_free(t);
}

/* ---- streams -------------------------------------------------------------------------------- */

TEST(every_endpoint_of_a_signal_is_told)
{
    struct bench b;
    begin(&b, 1);
    b.http[0] = 200;
    follow(&b);
    run_turns(&b);
    say(&b, STR("{\"pendingChanges\":[\"CONFIG_ENDPOINT_DEV_INFO\",\"CONFIG_END"));
    assert_int_equal(b.n_pending, 0);
    say(&b, STR("POINT_NETWORK\"]}\n\n{broken}\n{\"pendingChanges\":[1]}\n{\"pendingCh"));
    assert_str(buf_str(&b.pending), "5 6 1 ");
    /* The last one need not end. */
    say(&b, STR("anges\":[2]}"));
    assert_int_equal(b.n_pending, 3);
    hang_up(&b);
    assert_str(buf_str(&b.pending), "5 6 1 2 ");
    end(&b);
}

TEST(too_many_signals_are_dropped_also_over_several_streams)
{
    struct bench b;
    begin(&b, 1);
    b.http[0] = 200;
    follow(&b);
    run_turns(&b);
    for (int i = 0; i < 10; i++)
        say(&b, STR("{\"pendingChanges\":[5,6]}\n"));
    assert_int_equal(b.n_pending, 2 * SIGNAL_BURST);
    b.clock.now_us += 2000000;
    hang_up(&b);
    run_turns(&b);
    assert_int_equal(b.n_asked, 2);
    say(&b, STR("{\"pendingChanges\":[5]}\n"));
    assert_int_equal(b.n_pending, 2 * SIGNAL_BURST);
    b.clock.now_us += 1000000;
    say(&b, STR("{\"pendingChanges\":[5]}\n"));
    assert_int_equal(b.n_pending, 2 * SIGNAL_BURST + 1);
    end(&b);
}

TEST(a_stream_that_lasted_is_opened_again_without_delay)
{
    struct bench b;
    begin(&b, 1);
    b.http[0] = 200;
    follow(&b);
    for (size_t i = 1; i < 5; i++) {
        run_turns(&b);
        assert_int_equal(b.n_asked, i);
        b.clock.now_us += (int64_t) SIGNAL_FIRST_WAIT_MS * 1000;
        hang_up(&b);
    }
    end(&b);
}

TEST(a_stream_that_ends_at_once_is_a_failure)
{
    struct bench b;
    begin(&b, 1);
    b.http[0] = 200;
    follow(&b);
    run_turns(&b);
    b.clock.now_us += (int64_t) SIGNAL_FIRST_WAIT_MS * 1000 - 1;
    hang_up(&b);
    run_turns(&b);
    assert_int_equal(b.n_asked, 1);
    loop_set_speed(b.loop, 1000);
    for (size_t i = 2; i < 5; i++) {
        run_until_asked(&b, i);
        hang_up(&b); /* still at the same time */
    }
    assert_true(b.asked_ms[1] - b.asked_ms[0] >= 1000);
    assert_true(b.asked_ms[2] - b.asked_ms[1] >= 2000);
    assert_true(b.asked_ms[3] - b.asked_ms[2] >= 4000);
    end(&b);
}

TEST(the_first_that_answers_is_followed)
{
    struct bench b;
    begin(&b, 1);
    b.http[0] = 0;
    b.http[1] = 200;
    follow(&b);
    run_turns(&b);
    assert_int_equal(b.n_asked, 2);
    assert_int_equal(b.asked[1], 1);
    say(&b, STR("{\"pendingChanges\":[3]}\n"));
    assert_int_equal(b.n_pending, 1);
    /* And the first of all is asked first again. */
    b.http[0] = 200;
    b.clock.now_us += 60000000;
    hang_up(&b);
    run_turns(&b);
    assert_int_equal(b.n_asked, 3);
    assert_int_equal(b.asked[2], 0);
    end(&b);
}

TEST(when_nobody_answers_it_waits_twice_as_long_up_to_a_limit)
{
    static const int64_t seconds[] = {1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30};
    struct bench b;
    begin(&b, 1000);
    b.http[0] = 503;
    follow(&b);
    run_until_asked(&b, 2 * (N_ELEMENTS(seconds) + 1));
    for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
        assert_int_equal(b.asked[2 * i], 0);
        assert_int_equal(b.asked[2 * i + 1], 1);
        assert_true(b.asked_ms[2 * i + 2] - b.asked_ms[2 * i + 1] >= seconds[i] * 1000);
    }
    /* Without the limit it would be more than two hours. */
    assert_true(b.asked_ms[2 * N_ELEMENTS(seconds)] - b.asked_ms[0] < (int64_t) 3600 * 1000);
    end(&b);
}

TEST(a_server_without_signals_is_asked_again_in_an_hour)
{
    struct bench b;
    begin(&b, 1);
    b.http[0] = 404;
    b.http[1] = 200;
    follow(&b);
    run_turns(&b);
    assert_int_equal(b.n_asked, 1); /* it has answered: the other one is the same server */
    loop_set_speed(b.loop, 100000);
    run_until_asked(&b, 2);
    assert_true(b.asked_ms[1] - b.asked_ms[0] >= (int64_t) 3600 * 1000);
    end(&b);
}

TEST(a_line_without_end_ends_the_stream)
{
    struct bench b;
    char bytes[4096];
    begin(&b, 1);
    b.http[0] = 200;
    follow(&b);
    run_turns(&b);
    memset(bytes, ' ', sizeof(bytes));
    for (size_t n = 0; n < SIGNAL_MAX_LINE_BYTES; n += sizeof(bytes))
        say(&b, str_range(bytes, sizeof(bytes)));
    b.clock.now_us += 60000000;
    say(&b, STR("x"));
    assert_null(b.open);
    run_turns(&b);
    assert_int_equal(b.n_asked, 1);
    loop_set_speed(b.loop, 1000);
    run_until_asked(&b, 2);
    /* Of what came before, nothing is left. */
    say(&b, STR("{\"pendingChanges\":[4]}\n"));
    assert_str(buf_str(&b.pending), "4 ");
    end(&b);
}

TEST(it_may_be_freed_at_any_time)
{
    static const int http[] = {0, 200, 404};
    for (size_t i = 0; i < N_ELEMENTS(http); i++) {
        for (int turns = 0; turns < 6; turns++) {
            struct bench b;
            begin(&b, 1);
            b.http[0] = b.http[1] = http[i];
            follow(&b);
            b.turn.fn = on_turn;
            b.n_turns = turns;
            loop_defer(b.loop, &b.turn);
            loop_run(b.loop);
            if (b.open)
                say(&b, STR("{\"pend"));
            end(&b);
        }
    }
}
