/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "client_http2.h"
#include "fixture.h"
#include "test.h"

#define CLIENT CLEANUP(client_freep) struct client *

static struct client *open_client(struct fixture *f)
{
    return client_new(fake_stream_open(f->loop, f->server, "h2"), /* no_window_update= */ false);
}

static int32_t get(struct client *c, const char *path)
{
    int32_t id = client_request(c, "GET", path, STR_NONE, NULL, 0);
    client_run(c);
    return id;
}

TEST(requests_of_many_streams_are_answered)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t ids[50];
    for (size_t i = 0; i < N_ELEMENTS(ids); i++)
        ids[i] = client_request(c, "GET", "/hello?x", STR_NONE, NULL, 0);
    client_run(c);
    assert_int_equal(f.n_requests, N_ELEMENTS(ids));
    assert_string_equal(f.last, "GET /hello?x ");
    for (size_t i = 0; i < N_ELEMENTS(ids); i++) {
        struct client_answer *a = client_answer(c, ids[i]);
        assert_string_equal(a->status, "200");
        assert_string_equal(a->headers, "content-type=text/plain;content-length=5;");
        assert_str(buf_str(&a->body), "hello");
        assert_true(a->is_closed && a->error_code == NGHTTP2_NO_ERROR);
    }
    assert_int_equal(http_server_exchanges(f.server), 0);
}

TEST(body_is_gathered)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    char big[300 * 1024];
    memset(big, 'u', sizeof(big));
    int32_t id = client_request(c, "POST", "/echo", str_range(big, sizeof(big)), NULL, 0);
    client_run(c);
    struct client_answer *a = client_answer(c, id);
    assert_string_equal(a->status, "200");
    assert_int_equal(a->body.n, sizeof(big));
    assert_memory_equal(a->body.p, big, sizeof(big));
}

static struct str seen_cookie, seen_authority;

static void look_at_headers(void *ctx, struct http_exchange *x)
{
    struct arena *a = ctx;
    const struct http_request *r = http_request(x);
    assert_true(r->is_http2);
    seen_cookie = arena_str(a, http_request_header(r, STR("cookie")));
    seen_authority = arena_str(a, r->authority);
    http_reply(x, 204, NULL, 0, NULL, 0);
}

TEST(cookie_crumbs_become_one)
{
    ARENA_AUTO arena = arena_new();
    struct loop *loop = fake_loop_new();
    struct http_server *server = http_server_new(
        &(struct http_server_options){.loop = loop, .on_request = look_at_headers, .ctx = arena});
    {
        CLIENT c = client_new(fake_stream_open(loop, server, "h2"), false);
        const struct http_header crumbs[] = {{STR("cookie"), STR("a=1")},
                                             {STR("x-other"), STR("o")},
                                             {STR("cookie"), STR("b=2")},
                                             {STR("cookie"), STR("c")}};
        int32_t id = client_request(c, "GET", "/", STR_NONE, crumbs, N_ELEMENTS(crumbs));
        client_run(c);
        assert_string_equal(client_answer(c, id)->status, "204");
    }
    assert_str(seen_cookie, "a=1; b=2; c");
    assert_str(seen_authority, "a");
    http_server_free(server);
    fake_loop_turn(loop);
    fake_loop_free(loop);
}

/* Its value is the query. */
static void answer_unique(void *ctx, struct http_exchange *x)
{
    (void) ctx;
    const struct http_header header = {STR("X-Id"), http_request(x)->query, .is_unique = true};
    http_reply(x, 204, &header, 1, NULL, 0);
}

TEST(unique_values_take_no_room_in_the_header_table)
{
    struct loop *loop = fake_loop_new();
    struct http_server *server =
        http_server_new(&(struct http_server_options){.loop = loop, .on_request = answer_unique});
    {
        CLIENT c = client_new(fake_stream_open(loop, server, "h2"), false);
        assert_string_equal(client_answer(c, get(c, "/?first"))->headers, "x-id=first;");
        size_t n_bytes = nghttp2_session_get_hd_inflate_dynamic_table_size(c->session);
        assert_string_equal(client_answer(c, get(c, "/?second"))->headers, "x-id=second;");
        assert_int_equal(nghttp2_session_get_hd_inflate_dynamic_table_size(c->session), n_bytes);
    }
    http_server_free(server);
    fake_loop_turn(loop);
    fake_loop_free(loop);
}

TEST(head_and_204_have_no_body)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t head = client_request(c, "HEAD", "/hello", STR_NONE, NULL, 0);
    int32_t none = client_request(c, "GET", "/none", STR_NONE, NULL, 0);
    client_run(c);
    assert_string_equal(client_answer(c, head)->headers,
                        "content-type=text/plain;content-length=5;");
    assert_int_equal(client_answer(c, head)->body.n, 0);
    assert_string_equal(client_answer(c, none)->status, "204");
    assert_string_equal(client_answer(c, none)->headers, "");
}

static const struct http_limits small_limits = {.header_bytes = 1000,
                                                .headers = 20,
                                                .reset_burst = 100,
                                                .resets_per_second = 10,
                                                .body_bytes = 1000,
                                                .streams = 4,
                                                .header_timeout_ms = 10000,
                                                .body_timeout_ms = 10000,
                                                .idle_timeout_ms = 10000};

TEST(too_large_requests_are_answered_and_the_rest_of_them_stopped)
{
    FIXTURE f;
    fixture_init(&f, &small_limits);
    CLIENT c = open_client(&f);
    char big[200 * 1024];
    memset(big, 'u', sizeof(big));
    int32_t body = client_request(c, "POST", "/echo", str_range(big, sizeof(big)), NULL, 0);
    client_run(c);
    assert_string_equal(client_answer(c, body)->status, "413");
    assert_str(buf_str(&client_answer(c, body)->body), "refused: 413 request body too large");
    assert_true(client_answer(c, body)->is_closed);
    assert_int_equal(client_answer(c, body)->error_code, NGHTTP2_NO_ERROR);

    int32_t endless = client_request(c, "POST", "/echo", str_range(big, 2000), NULL, 0);
    client_answer(c, endless)->is_stuck = true;
    client_run(c);
    assert_string_equal(client_answer(c, endless)->status, "413");
    assert_true(client_answer(c, endless)->has_ended);
    assert_false(client_answer(c, endless)->is_closed);
    for (int i = 0; i < 11; i++) {
        fake_loop_advance(f.loop, 1000);
        client_run(c);
    }
    assert_true(client_answer(c, endless)->is_closed);
    assert_int_equal(client_answer(c, endless)->error_code, NGHTTP2_NO_ERROR);

    const struct http_header length = {STR("content-length"), STR("1001")};
    int32_t told = client_request(c, "POST", "/echo", str_range(big, 1001), &length, 1);
    client_run(c);
    assert_string_equal(client_answer(c, told)->status, "413");

    const struct http_header large = {STR("x"), str_range(big, 2000)};
    int32_t head = client_request(c, "GET", "/", STR_NONE, &large, 1);
    client_run(c);
    assert_string_equal(client_answer(c, head)->status, "431");
    assert_string_equal(client_answer(c, get(c, "/hello"))->status, "200");
    assert_int_equal(f.n_requests, 1);
}

TEST(streams_beyond_the_limit_wait)
{
    FIXTURE f;
    fixture_init(&f, &small_limits);
    CLIENT c = open_client(&f);
    for (int i = 0; i < 10; i++)
        (void) client_request(c, "GET", "/hold", STR_NONE, NULL, 0);
    client_run(c);
    assert_int_equal(f.n_requests, 4);
}

TEST(streamed_answer_flows_and_ends)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t id = get(c, "/stream");
    struct client_answer *a = client_answer(c, id);
    assert_string_equal(a->status, "200");
    fixture_send(&f, "one");
    client_run(c);
    assert_str(buf_str(&a->body), "one");
    assert_int_equal(f.n_drained, 1);
    struct slice more[] = {slice_static(STR(" two")), slice_copy(STR(" three"))};
    http_send(f.held, more, 2);
    assert_int_equal(http_pending(f.held), 10);
    http_end(f.held);
    fake_loop_turn(f.loop);
    client_run(c);
    assert_str(buf_str(&a->body), "one two three");
    assert_true(a->has_ended && a->is_closed);
    assert_int_equal(f.n_closed, 0);
}

TEST(end_without_data_ends_the_stream)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t id = get(c, "/stream");
    http_end(f.held);
    fake_loop_turn(f.loop);
    client_run(c);
    assert_true(client_answer(c, id)->has_ended);
}

TEST(cancelled_stream_closes_the_exchange)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t id = get(c, "/stream");
    (void) nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    client_run(c);
    assert_int_equal(f.n_closed, 1);
    assert_int_equal(http_server_exchanges(f.server), 0);
    assert_string_equal(client_answer(c, get(c, "/hello"))->status, "200");
}

TEST(many_cancelled_watches_do_not_end_the_connection)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    assert_string_equal(client_answer(c, get(c, "/login"))->status, "200");
    for (int i = 0; i < 1900; i++) {
        int32_t id = get(c, "/stream");
        (void) nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        client_run(c);
    }
    assert_int_equal(f.n_closed, 1900);
    assert_true(fake_stream_state(c->stream).is_open);
}

TEST(peer_that_leaves_closes_all_exchanges)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    (void) get(c, "/hold");
    (void) get(c, "/stream");
    fake_stream_hang_up(c->stream);
    assert_int_equal(f.n_closed, 2);
    assert_int_equal(http_server_exchanges(f.server), 0);
}

TEST(abort_resets_the_stream_alone)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t id = get(c, "/stream");
    http_abort(f.held);
    fake_loop_turn(f.loop);
    client_run(c);
    assert_int_equal(client_answer(c, id)->error_code, NGHTTP2_INTERNAL_ERROR);
    assert_int_equal(f.n_closed, 0);
    assert_string_equal(client_answer(c, get(c, "/hello"))->status, "200");
}

TEST(large_answers_respect_the_sockets_appetite)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    (void) nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
                                                 64 * 1024 * 1024);
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 8 * 1024 * 1024};
    (void) nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &window, 1);
    client_run(c);
    fake_stream_set_appetite(c->stream, 1);
    int32_t ids[4];
    for (size_t i = 0; i < N_ELEMENTS(ids); i++)
        ids[i] = get(c, "/big");
    assert_true(stream_pending(c->stream) < 300 * 1024);
    fake_stream_set_appetite(c->stream, SIZE_MAX);
    fake_loop_turn(f.loop);
    client_run(c);
    for (size_t i = 0; i < N_ELEMENTS(ids); i++)
        assert_int_equal(client_answer(c, ids[i])->body.n, FIXTURE_BIG_BYTES);
}

TEST(slow_reader_of_one_stream_does_not_stop_the_others)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = client_new(fake_stream_open(f.loop, f.server, "h2"), /* no_window_update= */ true);
    (void) nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
                                                 64 * 1024 * 1024);
    int32_t big = get(c, "/big");
    assert_int_equal(client_answer(c, big)->body.n, 65535);
    assert_string_equal(client_answer(c, get(c, "/hello"))->status, "200");
    assert_int_equal(http_server_exchanges(f.server), 1);
    /* It makes no progress: its stream is reset, the connection lives on. */
    for (int i = 0; i < 14; i++) {
        fake_loop_advance(f.loop, 5000);
        client_run(c);
    }
    assert_true(client_answer(c, big)->is_closed);
    assert_int_equal(http_server_exchanges(f.server), 0);
    assert_true(fake_stream_state(c->stream).is_open);
}

/* ---- time --------------------------------------------------------------------------------- */

TEST(slow_body_gets_408)
{
    FIXTURE f;
    fixture_init(&f, &small_limits);
    CLIENT c = open_client(&f);
    int32_t id = client_request(c, "POST", "/echo", STR("begin"), NULL, 0);
    client_answer(c, id)->is_stuck = true;
    client_run(c);
    for (int i = 0; i < 26; i++) {
        fake_loop_advance(f.loop, 1000);
        client_run(c);
    }
    assert_string_equal(client_answer(c, id)->status, "408");
    assert_true(client_answer(c, id)->is_closed);
}

TEST(silent_peer_is_pinged_and_given_up)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    (void) get(c, "/stream");
    for (int i = 0; i < 200; i++) {
        fake_loop_advance(f.loop, 1000);
        client_run(c);
    }
    assert_in_range(c->n_pings, 4, 7);
    assert_true(fake_stream_state(c->stream).is_open);
    c->is_deaf = true;
    fake_loop_advance(f.loop, 60 * 1000);
    assert_true(fake_stream_state(c->stream).is_closed);
    assert_int_equal(f.n_closed, 1);
}

TEST(idle_connection_says_goodbye)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    (void) get(c, "/hello");
    for (int i = 0; i < 185; i++) {
        fake_loop_advance(f.loop, 1000);
        client_run(c);
    }
    assert_int_equal(c->n_goaways, 1);
    assert_true(fake_stream_state(c->stream).is_closed && fake_stream_state(c->stream).was_flushed);
}

TEST(connection_without_a_preface_is_closed)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *silent = fake_stream_open(f.loop, f.server, "h2");
    struct stream *wrong = fake_stream_open(f.loop, f.server, "h2");
    fake_stream_feed(wrong, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_true(fake_stream_state(wrong).is_closed);
    fake_loop_advance(f.loop, 34 * 1000);
    assert_true(fake_stream_state(silent).is_closed);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void on_server_drained(void *arg)
{
    struct fixture *f = arg;
    f->has_drained = true;
}

TEST(drain_finishes_what_is_open)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT idle = open_client(&f);
    CLIENT busy = open_client(&f);
    (void) get(idle, "/hello");
    int32_t id = get(busy, "/hold");
    http_server_drain(f.server, on_server_drained, &f);
    fake_loop_turn(f.loop);
    client_run(idle);
    client_run(busy);
    assert_int_equal(idle->n_goaways, 1);
    assert_true(fake_stream_state(idle->stream).is_closed);
    assert_int_equal(busy->n_goaways, 1);
    assert_int_equal(busy->goaway_last_id, INT32_MAX);
    fake_loop_advance(f.loop, 3000);
    client_run(busy);
    assert_int_equal(busy->n_goaways, 2);
    assert_int_equal(busy->goaway_last_id, id);
    assert_true(fake_stream_state(busy->stream).is_open);
    http_reply(f.held, 204, NULL, 0, NULL, 0);
    fake_loop_turn(f.loop);
    client_run(busy);
    assert_string_equal(client_answer(busy, id)->status, "204");
    assert_true(fake_stream_state(busy->stream).is_closed &&
                fake_stream_state(busy->stream).was_flushed);
    assert_true(f.has_drained);
}

TEST(request_in_flight_at_the_notice_is_still_served)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    (void) get(c, "/hold");
    c->is_deaf = true;
    http_server_drain(f.server, on_server_drained, &f);
    fake_loop_turn(f.loop);
    int32_t late = get(c, "/hello");
    c->is_deaf = false;
    client_run(c);
    assert_string_equal(client_answer(c, late)->status, "200");
}

TEST(unanswered_bodies_of_a_connection_are_bounded)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    size_t n = 3 * 1024 * 1024 - 1;
    char *big = mem_zalloc(n);
    int32_t ids[14];
    for (size_t i = 0; i < N_ELEMENTS(ids); i++) {
        ids[i] = client_request(c, "POST", "/echo", str_range(big, n), NULL, 0);
        client_answer(c, ids[i])->is_stuck = true;
    }
    client_run(c);
    size_t n_refused = 0;
    for (size_t i = 0; i < N_ELEMENTS(ids); i++) {
        struct client_answer *a = client_answer(c, ids[i]);
        n_refused += a->is_closed && a->error_code == NGHTTP2_REFUSED_STREAM;
    }
    assert_in_range(n_refused, 3, 6);
    mem_free(big);
}
