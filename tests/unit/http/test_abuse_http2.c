/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 as nobody should speak it. */
#include "base/alloc.h"
#include "client_http2.h"
#include "fixture.h"
#include "test.h"

#define CLIENT CLEANUP(client_freep) struct client *
#define FRAME_HEAD_BYTES 9

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

/* ---- requests ----------------------------------------------------------------------------- */

TEST(malformed_requests_are_reset)
{
    static const struct {
        const char *path;
        struct http_header header;
    } cases[] = {
        {"/", {STR("connection"), STR("keep-alive")}},
        {"/", {STR("transfer-encoding"), STR("chunked")}},
        {"/", {STR("upgrade"), STR("websocket")}},
        {"/", {STR("keep-alive"), STR("1")}},
        {"/", {STR("proxy-connection"), STR("close")}},
        {"/", {STR("te"), STR("chunked")}},
        {"/", {STR(":path"), STR("/other")}},
        {"/", {STR(":method"), STR("POST")}},
        {"/", {STR(":authority"), STR("b")}},
        {"/", {STR(":status"), STR("200")}},
        {"/", {STR(":protocol"), STR("websocket")}},
        {"/", {STR(":unknown"), STR("x")}},
        {"/", {STR("content-length"), STR("5")}},
        {"/", {STR("content-length"), STR("x")}},
        {"/", {STR("x"), STR("a\r\nimpersonate-user: admin")}},
        {"/", {STR("x"), STR("a\nb")}},
        {"/", {STR("x"), STR("a\rb")}},
        {"/", {STR("x"), {"a\0b", 3}}},
        {"/", {STR("x\r\ny"), STR("a")}},
        {"/", {STR("x y"), STR("a")}},
        {"/", {STR("x:"), STR("a")}},
        {"/", {STR(""), STR("a")}},
        {"*", {STR("x"), STR("a")}},
        {"", {STR("x"), STR("a")}},
        {"api/v1", {STR("x"), STR("a")}},
        {"https://a/", {STR("x"), STR("a")}},
    };
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int32_t id = client_request(c, "GET", cases[i].path, STR_NONE, &cases[i].header, 1);
        client_run(c);
        if (client_answer(c, id)->error_code != NGHTTP2_PROTOCOL_ERROR || f.n_requests)
            fail_msg("case %zu: served", i);
        assert_int_equal(http_server_exchanges(f.server), 0);
    }
    assert_string_equal(client_answer(c, get(c, "/hello"))->status, "200");
}

TEST(too_many_headers_are_refused)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    static struct http_header many[1100];
    for (size_t i = 0; i < N_ELEMENTS(many); i++)
        many[i] = (struct http_header){STR("x"), STR("")};
    int32_t some = client_request(c, "GET", "/", STR_NONE, many, 900);
    int32_t all = client_request(c, "GET", "/", STR_NONE, many, N_ELEMENTS(many));
    client_run(c);
    assert_string_equal(client_answer(c, some)->status, "200");
    assert_string_equal(client_answer(c, all)->status, "431");
}

/* ---- floods ------------------------------------------------------------------------------- */

/* How many of them the connection stands before it ends, at most n. */
static size_t count_resets(struct fixture *f, struct client *c, size_t n)
{
    size_t i = 0;
    for (; i < n && fake_stream_state(c->stream).is_open && c->n_goaways == 0; i++) {
        int32_t id = client_request(c, "GET", "/stream", STR_NONE, NULL, 0);
        client_run(c);
        (void) nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        client_run(c);
    }
    assert_int_equal(http_server_exchanges(f->server), 0);
    return i;
}

TEST(rapid_resets_of_a_stranger_end_the_connection)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    assert_in_range(count_resets(&f, c, 1900), 1000, 1001);
    assert_int_equal(c->n_goaways, 1);
    fake_loop_turn(f.loop);
    assert_true(fake_stream_state(c->stream).is_closed);
}

TEST(resets_are_forgiven_with_time)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    assert_int_equal(count_resets(&f, c, 900), 900);
    fake_loop_advance(f.loop, 20 * 1000);
    assert_int_equal(count_resets(&f, c, 700), 700);
    assert_true(fake_stream_state(c->stream).is_open);
}

TEST(streams_that_we_are_made_to_reset_count_as_well)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    const struct http_header bad = {STR("connection"), STR("close")};
    size_t n = 0;
    for (; n < 1900 && c->n_goaways == 0; n++) {
        (void) client_request(c, "GET", "/", STR_NONE, &bad, 1);
        client_run(c);
    }
    assert_in_range(n, 1000, 1002);
}

static void append_frame(struct buf *b, uint8_t type, uint8_t flags, uint8_t stream,
                         struct str payload)
{
    const unsigned char head[FRAME_HEAD_BYTES] = {
        0,     (unsigned char) (payload.n >> 8), (unsigned char) payload.n, type, flags, 0, 0, 0,
        stream};
    buf_append(b, head, sizeof(head));
    buf_append_str(b, payload);
}

/* A client's beginning, then the same frame over and over; true when the connection ends. */
static bool ends_flood(uint8_t type, uint8_t flags, uint8_t stream, struct str payload)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = fake_stream_open(f.loop, f.server, "h2");
    BUF_AUTO b = {0};
    buf_append_str(&b, STR(NGHTTP2_CLIENT_MAGIC));
    append_frame(&b, NGHTTP2_SETTINGS, 0, 0, STR(""));
    /* :method POST, :scheme https, :path / of the static table, :authority a. */
    append_frame(&b, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                 STR("\x83\x87\x84\x01\x01"
                     "a"));
    fake_stream_feed(s, buf_str(&b));
    assert_true(fake_stream_state(s).is_open);
    buf_reset(&b);
    for (int i = 0; i < 100; i++)
        append_frame(&b, type, flags, stream, payload);
    for (int i = 0; i < 300 && fake_stream_state(s).is_open; i++) {
        fake_stream_feed(s, buf_str(&b));
        fake_stream_forget_output(s);
    }
    return fake_stream_state(s).is_closed;
}

TEST(floods_of_frames_that_carry_nothing_end_the_connection)
{
    static const struct {
        const char *name;
        uint8_t type, flags, stream;
        struct str payload;
    } cases[] = {
        {"ping", NGHTTP2_PING, 0, 0, {"12345678", 8}},
        {"ping answers", NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, {"12345678", 8}},
        {"settings", NGHTTP2_SETTINGS, 0, 0, {"", 0}},
        {"settings that say something", NGHTTP2_SETTINGS, 0, 0, {"\0\4\0\0\xff\xff", 6}},
        {"window", NGHTTP2_WINDOW_UPDATE, 0, 1, {"\0\0\0\1", 4}},
        {"priority", NGHTTP2_PRIORITY, 0, 1, {"\0\0\0\0\1", 5}},
        {"empty data", NGHTTP2_DATA, 0, 1, {"", 0}},
        {"data of one byte", NGHTTP2_DATA, 0, 1, {"x", 1}},
        {"padding alone", NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, {"\4\0\0\0\0", 5}},
        {"resets", NGHTTP2_RST_STREAM, 0, 1, {"\0\0\0\10", 4}},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if (!ends_flood(cases[i].type, cases[i].flags, cases[i].stream, cases[i].payload))
            fail_msg("%s", cases[i].name);
}

/* A head without end: few pieces are allowed, whether they hold something or not. */
TEST(endless_heads_end_the_connection)
{
    for (int is_empty = 0; is_empty < 2; is_empty++) {
        FIXTURE f;
        fixture_init(&f, NULL);
        struct stream *s = fake_stream_open(f.loop, f.server, "h2");
        BUF_AUTO b = {0};
        buf_append_str(&b, STR(NGHTTP2_CLIENT_MAGIC));
        append_frame(&b, NGHTTP2_SETTINGS, 0, 0, STR(""));
        append_frame(&b, NGHTTP2_HEADERS, 0, 1,
                     STR("\x83\x87\x84\x01\x01"
                         "a"));
        for (int i = 0; i < 1000; i++)
            append_frame(&b, NGHTTP2_CONTINUATION, 0, 1, is_empty ? STR("") : STR("\0\1x\1y"));
        fake_stream_feed(s, buf_str(&b));
        assert_true(fake_stream_state(s).is_closed);
        assert_int_equal(f.n_requests, 0);
    }
}

/* It moves its windows for every few bytes it gets, for ever: that is what they are for. */
TEST(reader_of_many_small_events_is_served)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = open_client(&f);
    int32_t id = get(c, "/stream");
    for (int i = 0; i < 15000; i++) {
        fixture_send(&f, "event");
        client_run(c);
        (void) nghttp2_submit_window_update(c->session, NGHTTP2_FLAG_NONE, 0, 1);
        (void) nghttp2_submit_window_update(c->session, NGHTTP2_FLAG_NONE, id, 1);
        client_run(c);
    }
    assert_true(fake_stream_state(c->stream).is_open);
    assert_int_equal(client_answer(c, id)->body.n, 15000 * 5);
}

/* ---- slow readers ------------------------------------------------------------------------- */

TEST(answer_whose_reader_dribbles_is_reset)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    CLIENT c = client_new(fake_stream_open(f.loop, f.server, "h2"), /* no_window_update= */ true);
    int32_t id = get(c, "/big");
    int seconds = 0;
    for (; seconds < 1000 && !client_answer(c, id)->is_closed; seconds++) {
        (void) nghttp2_submit_window_update(c->session, NGHTTP2_FLAG_NONE, 0, 100);
        (void) nghttp2_submit_window_update(c->session, NGHTTP2_FLAG_NONE, id, 100);
        client_run(c);
        fake_loop_advance(f.loop, 1000);
        client_run(c);
    }
    assert_in_range(seconds, 60, 130);
    assert_int_equal(http_server_exchanges(f.server), 0);
}
