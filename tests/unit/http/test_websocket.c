/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "fixture.h"
#include "test.h"

/* The handshake of RFC 6455 1.2. */
#define HANDSHAKE(lines) \
    "GET /websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, " \
    "Upgrade\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" lines "\r\n"
#define ACCEPTED \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

enum { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 };

/* A client's frame: final, masked with zeros. */
static void append_frame(struct buf *b, int opcode, struct str payload)
{
    buf_append_char(b, (char) (0x80 | opcode));
    if (payload.n < 126) {
        buf_append_char(b, (char) (0x80 | payload.n));
    } else {
        buf_append_char(b, (char) (0x80 | 127));
        for (int shift = 56; shift >= 0; shift -= 8)
            buf_append_char(b, (char) (payload.n >> shift));
    }
    buf_append(b, "\0\0\0", 4);
    buf_append_str(b, payload);
}

static void feed_frame(struct stream *s, int opcode, struct str payload)
{
    BUF_AUTO b = {0};
    append_frame(&b, opcode, payload);
    fake_stream_feed(s, buf_str(&b));
}

/* A server's short frame. */
static void assert_frame(struct stream *s, int opcode, struct str payload)
{
    struct str out = fake_stream_state(s).output;
    assert_int_equal(out.n, payload.n + 2);
    assert_int_equal((unsigned char) out.p[0], 0x80 | opcode);
    assert_int_equal((unsigned char) out.p[1], payload.n);
    assert_memory_equal(out.p + 2, payload.p, payload.n);
    fake_stream_forget_output(s);
}

static struct stream *open_websocket(struct fixture *f)
{
    struct stream *s = fake_stream_open(f->loop, f->server, "http/1.1");
    fake_stream_feed(s, STR(HANDSHAKE("Sec-WebSocket-Protocol: base64.binary.k8s.io\r\n")));
    assert_str(fake_stream_state(s).output,
               ACCEPTED "Sec-WebSocket-Protocol: base64.binary.k8s.io\r\n\r\n");
    fake_stream_forget_output(s);
    return s;
}

TEST(handshake_without_protocol)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = fake_stream_open(f.loop, f.server, "");
    fake_stream_feed(s, STR(HANDSHAKE("")));
    assert_str(fake_stream_state(s).output, ACCEPTED "\r\n");
}

TEST(only_good_handshakes_are_wanted)
{
    static const struct http_header good[] = {
        {{"connection", 10}, {"Upgrade", 7}},
        {{"upgrade", 7}, {"WebSocket", 9}},
        {{"sec-websocket-version", 21}, {"13", 2}},
        {{"sec-websocket-key", 17}, {"dGhlIHNhbXBsZSBub25jZQ==", 24}},
    };
    struct http_request r = {.method = HTTP_GET, .headers = good, .n_headers = N_ELEMENTS(good)};
    assert_true(http_request_wants_websocket(&r));
    for (size_t missing = 0; missing < N_ELEMENTS(good); missing++) {
        struct http_header some[N_ELEMENTS(good)];
        memcpy(some, good, sizeof(good));
        some[missing].value = STR("other");
        r.headers = some;
        assert_false(http_request_wants_websocket(&r));
    }
    r.headers = good;
    r.is_http2 = true;
    assert_false(http_request_wants_websocket(&r));
    r.is_http2 = false;
    r.method = HTTP_POST;
    assert_false(http_request_wants_websocket(&r));
}

TEST(each_send_is_one_text_message)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    struct slice parts[] = {slice_static(STR("{\"a\":")), slice_copy(STR("1}"))};
    http_send(f.held, parts, 2);
    fake_loop_turn(f.loop);
    assert_frame(s, TEXT, STR("{\"a\":1}"));
    assert_true(f.n_drained > 0);
    assert_int_equal(http_pending(f.held), 0);
}

TEST(frames_sent_along_with_the_handshake_are_read)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = fake_stream_open(f.loop, f.server, "http/1.1");
    BUF_AUTO b = {0};
    buf_append_str(&b, STR(HANDSHAKE("")));
    append_frame(&b, PING, STR("early"));
    fake_stream_feed(s, buf_str(&b));
    assert_true(str_ends_with(fake_stream_state(s).output, STR("\r\n\r\n\x8a\x05"
                                                               "early")));
}

TEST(pings_are_answered_and_data_ignored)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    feed_frame(s, TEXT, STR("what is this?"));
    assert_int_equal(fake_stream_state(s).output.n, 0);
    feed_frame(s, PING, STR("p"));
    assert_frame(s, PONG, STR("p"));
    assert_int_equal(f.n_closed, 0);
}

TEST(close_of_the_peer_is_answered)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    feed_frame(s, CLOSE, STR("\x03\xe8"));
    assert_int_equal(f.n_closed, 1);
    assert_frame(s, CLOSE, STR("\x03\xe8"));
    assert_true(fake_stream_state(s).is_closed && fake_stream_state(s).was_flushed);
    assert_int_equal(http_server_exchanges(f.server), 0);
}

TEST(end_closes_normally)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    http_end(f.held);
    fake_loop_turn(f.loop);
    assert_frame(s, CLOSE, STR("\x03\xe8"));
    assert_true(fake_stream_state(s).is_closed);
    assert_int_equal(f.n_closed, 0);
}

TEST(too_large_and_unmasked_messages_end_the_connection)
{
    static const char unmasked[] = {(char) 0x81, 1, 'x'};
    char *large = mem_zalloc(65 * 1024);
    for (int i = 0; i < 2; i++) {
        FIXTURE f;
        fixture_init(&f, NULL);
        struct stream *s = open_websocket(&f);
        if (i == 0)
            feed_frame(s, TEXT, str_range(large, 65 * 1024));
        else
            fake_stream_feed(s, str_range(unmasked, sizeof(unmasked)));
        assert_int_equal(f.n_closed, 1);
        assert_true(fake_stream_state(s).is_closed);
    }
    mem_free(large);
}

TEST(peer_that_does_not_read_is_not_read)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    fake_stream_set_appetite(s, 1);
    char text[64 * 1024 + 1];
    memset(text, 't', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 10; i++)
        fixture_send(&f, text);
    assert_true(http_pending(f.held) > 600 * 1024);
    assert_true(stream_pending(s) < 300 * 1024);
    assert_true(fake_stream_state(s).is_paused);
    fake_stream_set_appetite(s, SIZE_MAX);
    fake_loop_turn(f.loop);
    assert_int_equal(http_pending(f.held), 0);
    assert_false(fake_stream_state(s).is_paused);
}

TEST(silent_peer_is_pinged_and_given_up)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    fake_loop_advance(f.loop, 36 * 1000);
    assert_frame(s, PING, STR(""));
    feed_frame(s, PONG, STR(""));
    fake_loop_advance(f.loop, 36 * 1000);
    assert_frame(s, PING, STR(""));
    fake_loop_advance(f.loop, 20 * 1000);
    assert_true(fake_stream_state(s).is_closed);
    assert_int_equal(f.n_closed, 1);
}

TEST(peer_that_vanishes_closes_the_exchange)
{
    FIXTURE f;
    fixture_init(&f, NULL);
    struct stream *s = open_websocket(&f);
    fake_stream_hang_up(s);
    assert_int_equal(f.n_closed, 1);
}
