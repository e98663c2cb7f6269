/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "fixture.h"
#include "test.h"

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* The server's words with its date taken out, which is the same length always. */
static struct str said(struct arena *a, struct stream *s)
{
    struct buf b = {0};
    struct str rest = fake_stream_state(s).output;
    ptrdiff_t at;
    while ((at = str_find_str(rest, STR("Date: "))) >= 0) {
        buf_append_str(&b, str_sub(rest, 0, (size_t) at));
        rest = str_from(rest, (size_t) at + sizeof("Date: Mon, 02 Jan 2006 15:04:05 GMT\r\n") - 1);
    }
    buf_append_str(&b, rest);
    struct str out = arena_str(a, buf_str(&b));
    buf_done(&b);
    fake_stream_forget_output(s);
    return out;
}

static struct stream *open_stream(struct fixture *f)
{
    return fake_stream_open(f->loop, f->server, "http/1.1");
}

static void feed(struct stream *s, const char *text)
{
    fake_stream_feed(s, str_of(text));
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

TEST(keep_alive_serves_one_request_after_another)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    for (int i = 0; i < 3; i++) {
        feed(s, GET("/hello?x=1"));
        assert_str(said(a, s), HELLO);
        assert_string_equal(f.last, "GET /hello?x=1 ");
    }
    assert_true(fake_stream_state(s).is_open);
    assert_int_equal(http_server_connections(f.server), 1);
    assert_int_equal(http_server_exchanges(f.server), 0);
}

TEST(date_is_sent)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/hello"));
    struct str out = fake_stream_state(s).output;
    ptrdiff_t at = str_find_str(out, STR("\r\nDate: "));
    assert_true(at > 0);
    assert_str(str_sub(out, (size_t) at + 8 + 25, (size_t) at + 8 + 31), " GMT\r\n");
}

TEST(pipelined_requests_are_answered_in_order)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s,
         GET("/hold") "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc" GET("/hello"));
    assert_int_equal(f.n_requests, 1);
    assert_str(said(a, s), "");
    struct slice body = slice_static(STR("first"));
    http_reply(f.held, 200, NULL, 0, &body, 1);
    fake_loop_turn(f.loop);
    assert_int_equal(f.n_requests, 3);
    assert_str(said(a, s),
               "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
               "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc" HELLO);
}

TEST(pipelining_stops_reading_while_too_much_waits)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/hold"));
    size_t n_sent = 0;
    for (; !fake_stream_state(s).is_paused && n_sent < 10000; n_sent++)
        feed(s, GET("/hello"));
    assert_true(n_sent < 10000);
    assert_int_equal(f.n_requests, 1);
    http_reply(f.held, 204, NULL, 0, NULL, 0);
    fake_loop_turn(f.loop);
    assert_int_equal(f.n_requests, 1 + n_sent);
    assert_false(fake_stream_state(s).is_paused);
}

TEST(head_and_204_have_no_body)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "HEAD /hello HTTP/1.1\r\n" HOST "\r\n" GET("/none"));
    assert_str(said(a, s),
               "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n"
               "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(connection_close_is_obeyed)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "GET /none HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" GET("/hello"));
    assert_str(said(a, s), "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    assert_true(fake_stream_state(s).is_closed && fake_stream_state(s).was_flushed);
    assert_int_equal(f.n_requests, 1);
}

TEST(http10_is_answered_and_closed_unless_kept)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "GET /none HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_str(said(a, s), "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
    assert_true(fake_stream_state(s).is_open);
    feed(s, "GET /none HTTP/1.0\r\n\r\n");
    assert_str(said(a, s), "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    assert_true(fake_stream_state(s).is_closed);
}

TEST(expectation_is_answered_before_the_body)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_str(said(a, s), "HTTP/1.1 100 Continue\r\n\r\n");
    feed(s, "ok");
    assert_str(said(a, s),
               "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok");
}

TEST(refused_request_is_answered_and_the_connection_closed)
{
    ARENA_AUTO a = arena_new();
    static const struct http_limits limits = {.header_bytes = 1024,
                                              .headers = 100,
                                              .body_bytes = 10,
                                              .header_timeout_ms = 1000,
                                              .body_timeout_ms = 1000,
                                              .idle_timeout_ms = 1000};
    static const struct {
        const char *request, *status_line, *body;
    } cases[] = {
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n",
         "HTTP/1.1 413 Request Entity Too Large\r\n",
         "\r\n\r\nrefused: 413 request body too large"},
        {"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n",
         "\r\n\r\nrefused: 400 malformed method"},
        {"GET nowhere HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 Bad Request\r\n", ""},
        {"GET * HTTP/1.1\r\n" HOST "\r\n" GET("/hello"), "HTTP/1.1 400 Bad Request\r\n",
         "\r\n\r\nrefused: 400 malformed request target"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        FIXTURE f;
        fixture_init(&f, &limits);
        struct stream *s = open_stream(&f);
        feed(s, cases[i].request);
        struct str answer = said(a, s);
        assert_true(str_starts_with(answer, str_of(cases[i].status_line)));
        assert_true(str_ends_with(answer, str_of(cases[i].body)));
        assert_true(str_find_str(answer, STR("\r\nConnection: close\r\n")) > 0);
        assert_true(str_find_str(answer, STR("\r\nContent-Type: text/x-error\r\n")) > 0);
        assert_true(fake_stream_state(s).is_closed && fake_stream_state(s).was_flushed);
        assert_int_equal(f.n_requests, 0);
    }
}

TEST(absolute_target_names_the_authority)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "GET http://other:8080/hello?q HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(f.last, "GET /hello?q ");
    feed(s, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(f.last, "OPTIONS *? ");
}

TEST(streamed_answer_is_chunked_once_per_turn)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/stream"));
    assert_str(said(a, s), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    fixture_send(&f, "one");
    assert_str(said(a, s), "3\r\none\r\n");
    struct slice two[] = {slice_static(STR("two")), slice_static(STR("")),
                          slice_copy(STR("three"))};
    http_send(f.held, two, 2);
    http_send(f.held, two + 2, 1);
    assert_int_equal(http_pending(f.held), 8);
    fake_loop_turn(f.loop);
    assert_int_equal(http_pending(f.held), 0);
    assert_str(said(a, s), "8\r\ntwothree\r\n");
    http_end(f.held);
    fake_loop_turn(f.loop);
    assert_str(said(a, s), "0\r\n\r\n");
    assert_int_equal(f.n_closed, 0);
    assert_true(f.n_drained >= 2);
    feed(s, GET("/hello"));
    assert_str(said(a, s), HELLO);
}

TEST(streamed_answer_to_http10_ends_with_the_connection)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    fixture_send(&f, "one");
    http_end(f.held);
    fake_loop_turn(f.loop);
    assert_str(said(a, s), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none");
    assert_true(fake_stream_state(s).is_closed);
}

TEST(streamed_head_has_no_body)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, "HEAD /stream HTTP/1.1\r\n" HOST "\r\n");
    fixture_send(&f, "one");
    http_end(f.held);
    fake_loop_turn(f.loop);
    assert_str(said(a, s), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_true(fake_stream_state(s).is_open);
}

TEST(large_answer_waits_for_its_reader)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    fake_stream_set_appetite(s, 1000);
    feed(s, GET("/big") GET("/hello"));
    assert_int_equal(f.n_requests, 1);
    assert_true(stream_pending(s) < 300 * 1024);
    assert_int_equal(http_server_exchanges(f.server), 1);
    fake_stream_set_appetite(s, SIZE_MAX);
    fake_loop_turn(f.loop);
    assert_int_equal(f.n_requests, 2);
    struct str out = fake_stream_state(s).output;
    assert_true(out.n > FIXTURE_BIG_BYTES);
    assert_true(str_ends_with(out, STR("\r\n\r\nhello")));
}

TEST(peer_that_leaves_closes_the_exchange)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/hold"));
    assert_non_null(f.held);
    fake_stream_hang_up(s);
    assert_int_equal(f.n_closed, 1);
    assert_int_equal(http_server_exchanges(f.server), 0);
    assert_int_equal(http_server_connections(f.server), 0);
}

TEST(answer_to_a_connection_being_closed_is_dropped)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/hold"));
    struct http_exchange *x = f.held;
    stream_close(s, false);
    struct slice body = slice_copy(STR("late"));
    http_abort(x);
    http_reply(x, 200, NULL, 0, &body, 1);
    fake_loop_turn(f.loop);
    assert_int_equal(f.n_closed, 0);
    assert_int_equal(http_server_connections(f.server), 0);
}

TEST(abort_closes_without_an_answer)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/stream"));
    http_abort(f.held);
    fake_loop_turn(f.loop);
    assert_true(fake_stream_state(s).is_closed && !fake_stream_state(s).was_flushed);
    assert_int_equal(f.n_closed, 0);
}

/* ---- time --------------------------------------------------------------------------------- */

TEST(silent_connection_is_closed_without_a_word)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    fake_loop_advance(f.loop, 31 * 1000);
    assert_true(fake_stream_state(s).is_open);
    fake_loop_advance(f.loop, 3 * 1000);
    assert_true(fake_stream_state(s).is_closed);
    assert_int_equal(fake_stream_state(s).output.n, 0);
}

TEST(slow_head_and_slow_body_get_408)
{
    ARENA_AUTO a = arena_new();
    static const struct {
        const char *first;
        int64_t until_ms;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost:", 32 * 1000},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 500\r\n\r\n", 60 * 1000},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        FIXTURE f;
        fixture_init(&f, NULL);
        struct stream *s = open_stream(&f);
        feed(s, cases[i].first);
        for (int64_t t = 0; t < cases[i].until_ms - 1000; t += 1000) {
            fake_loop_advance(f.loop, 1000);
            feed(s, "x");
        }
        assert_true(fake_stream_state(s).is_open);
        fake_loop_advance(f.loop, 2000);
        assert_true(str_starts_with(said(a, s), STR("HTTP/1.1 408 Request Timeout\r\n")));
        assert_true(fake_stream_state(s).is_closed);
        assert_int_equal(f.n_requests, 0);
    }
}

TEST(idle_connection_is_closed_and_a_busy_one_is_not)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *idle = open_stream(&f);
    struct stream *busy = open_stream(&f);
    feed(idle, GET("/hello"));
    feed(busy, GET("/stream"));
    fake_loop_advance(f.loop, 170 * 1000);
    feed(idle, GET("/hello"));
    fake_loop_advance(f.loop, 170 * 1000);
    assert_true(fake_stream_state(idle).is_open);
    fake_loop_advance(f.loop, 12 * 1000);
    assert_true(fake_stream_state(idle).is_closed);
    assert_true(fake_stream_state(busy).is_open);
    assert_int_equal(f.n_closed, 0);
}

TEST(peer_that_reads_nothing_is_closed)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    fake_stream_set_appetite(s, 1000);
    feed(s, GET("/big"));
    for (int i = 0; i < 10; i++) {
        fake_loop_advance(f.loop, 30 * 1000);
        fake_stream_set_appetite(s, 40000);
        fake_loop_turn(f.loop);
    }
    assert_true(fake_stream_state(s).is_open);
    fake_loop_advance(f.loop, 70 * 1000);
    assert_true(fake_stream_state(s).is_closed);
}

/* A byte now and then is no reading. */
TEST(peer_that_reads_too_slowly_is_closed)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    fake_stream_set_appetite(s, 1000);
    feed(s, GET("/big"));
    int64_t seconds = 0;
    while (fake_stream_state(s).is_open && seconds < 1000) {
        fake_stream_set_appetite(s, 100);
        fake_loop_advance(f.loop, 1000);
        seconds++;
    }
    assert_in_range(seconds, 60, 130);
}

/* Little waits for it and it takes that, however slowly more comes. */
TEST(peer_of_a_quiet_stream_is_not_taken_for_slow)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/stream"));
    for (int i = 0; i < 300; i++) {
        fixture_send(&f, "event");
        fake_stream_set_appetite(s, i % 4 ? 0 : 100);
        fake_loop_advance(f.loop, 1000);
    }
    assert_true(fake_stream_state(s).is_open);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void on_server_drained(void *arg)
{
    struct fixture *f = arg;
    f->has_drained = true;
}

TEST(drain_closes_idle_connections_now_and_others_when_done)
{
    ARENA_AUTO a = arena_new();
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *fresh = open_stream(&f), *idle = open_stream(&f), *busy = open_stream(&f),
                  *half = open_stream(&f);
    feed(idle, GET("/hello"));
    feed(busy, GET("/hold"));
    feed(half, "GET /none HTTP/1.1\r\n");
    http_server_drain(f.server, on_server_drained, &f);
    fake_loop_turn(f.loop);
    assert_true(fake_stream_state(idle).is_closed && fake_stream_state(fresh).is_closed);
    assert_true(fake_stream_state(busy).is_open && fake_stream_state(half).is_open);
    assert_false(f.has_drained);
    assert_null(open_stream(&f));
    feed(half, HOST "\r\n");
    assert_str(said(a, half), "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    http_reply(f.held, 204, NULL, 0, NULL, 0);
    fake_loop_turn(f.loop);
    assert_str(said(a, busy), "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    assert_true(fake_stream_state(busy).is_closed && fake_stream_state(half).is_closed);
    assert_true(f.has_drained);
}

TEST(drain_of_nothing_is_done_at_once)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    http_server_drain(f.server, on_server_drained, &f);
    assert_false(f.has_drained);
    fake_loop_turn(f.loop);
    assert_true(f.has_drained);
}

TEST(free_cuts_what_is_open)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_stream(&f);
    feed(s, GET("/hold"));
    http_server_free(TAKE(f.server));
    assert_int_equal(f.n_closed, 1);
    fake_loop_turn(f.loop);
    assert_true(fake_stream_state(s).is_closed);
}
