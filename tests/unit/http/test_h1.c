/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1.h"

#include "test.h"

static const struct h1_limits limits = {.header_bytes = 1024, .headers = 20, .body_bytes = 64};

struct fixture {
    struct h1 *h1;
    struct message m;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.h1 = h1_new(&limits), .m = {.arena = arena_new()}};
    h1_begin(f->h1, &f->m);
}

static void fixture_done(struct fixture *f)
{
    struct arena *a = f->m.arena;
    message_done(&f->m);
    arena_free(a);
    h1_free(f->h1);
}

#define FIXTURE CLEANUP(fixture_done) struct fixture
#define HOST "Host: a\r\n"

static enum h1_progress feed_all(struct fixture *f, struct str bytes)
{
    size_t n = 0;
    return h1_feed(f->h1, bytes, &n);
}

TEST(request_is_gathered_from_single_bytes)
{
    FIXTURE f;
    fixture_init(&f);
    struct str text =
        STR("POST /a/b?c=d HTTP/1.1\r\nHost: example\r\nX-Empty:\r\nContent-Type:  text/x \t\r\n"
            "Content-Length: 5\r\n\r\nhello");
    for (size_t i = 0; i < text.n; i++) {
        size_t n = 0;
        enum h1_progress p = h1_feed(f.h1, str_sub(text, i, i + 1), &n);
        assert_int_equal(n, 1);
        assert_int_equal(p == H1_REQUEST, i == text.n - 1);
    }
    assert_str(f.m.method, "POST");
    assert_str(f.m.target, "/a/b?c=d");
    assert_str(f.m.authority, "example");
    assert_int_equal(f.m.n_headers, 4);
    assert_str(message_header(&f.m, STR("content-type")), "text/x");
    assert_str(message_header(&f.m, STR("x-empty")), "");
    assert_null(message_header(&f.m, STR("absent")).p);
    assert_str(buf_str(&f.m.body), "hello");
    assert_true(h1_keeps_alive(f.h1));
}

TEST(any_method_is_let_through)
{
    static const char *const methods[] = {"GET", "NOPE", "get", "X-1", "CONNECT", "PRI"};
    for (size_t i = 0; i < N_ELEMENTS(methods); i++) {
        FIXTURE f;
        fixture_init(&f);
        assert_int_equal(feed_all(&f, STR("\r\n\r")), H1_IDLE);
        struct str text =
            arena_printf(f.m.arena, "\n%s /a HTTP/1.1\r\n" HOST "\r\nnext", methods[i]);
        size_t n = 0;
        assert_int_equal(h1_feed(f.h1, text, &n), H1_REQUEST);
        assert_str(f.m.method, methods[i]);
        assert_str(f.m.target, "/a");
        assert_str(str_from(text, n), "next");
    }
}

TEST(pipelined_request_is_left_for_the_next_turn)
{
    FIXTURE f;
    fixture_init(&f);
    struct str first = STR("PUT /1 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    struct str both = STR("PUT /1 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok"
                          "GET /2 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    size_t n = 0;
    assert_int_equal(h1_feed(f.h1, both, &n), H1_REQUEST);
    assert_int_equal(n, first.n);
    assert_str(f.m.target, "/1");
    message_reset(&f.m);
    h1_begin(f.h1, &f.m);
    assert_int_equal(feed_all(&f, str_from(both, n)), H1_REQUEST);
    assert_str(f.m.target, "/2");
    assert_int_equal(f.m.body.n, 0);
    assert_false(h1_keeps_alive(f.h1));
}

TEST(chunked_body_is_joined_and_its_trailer_dropped)
{
    FIXTURE f;
    fixture_init(&f);
    assert_int_equal(
        feed_all(&f, STR("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                         "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: t\r\n\r\n")),
        H1_REQUEST);
    assert_str(buf_str(&f.m.body), "abcde");
    assert_null(message_header(&f.m, STR("x-trailer")).p);
}

TEST(expectation_is_taken_once_and_only_when_a_body_is_due)
{
    FIXTURE f;
    fixture_init(&f);
    assert_int_equal(feed_all(&f, STR("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                                      "Content-Length: 2\r\n\r\n")),
                     H1_BODY);
    assert_true(h1_take_expect_continue(f.h1));
    assert_false(h1_take_expect_continue(f.h1));
    assert_int_equal(feed_all(&f, STR("ok")), H1_REQUEST);
}

TEST(upgrade_request_is_an_ordinary_request)
{
    FIXTURE f;
    fixture_init(&f);
    size_t n = 0;
    struct str text = STR("GET / HTTP/1.1\r\n" HOST
                          "Connection: Upgrade\r\nUpgrade: x\r\n\r\nGET /2 HTTP/1.1\r\n");
    assert_int_equal(h1_feed(f.h1, text, &n), H1_REQUEST);
    assert_str(str_from(text, n), "GET /2 HTTP/1.1\r\n");
    message_reset(&f.m);
    h1_begin(f.h1, &f.m);
    assert_int_equal(feed_all(&f, STR("GET /2 HTTP/1.1\r\n")), H1_HEAD);
}

TEST(http10_closes_unless_it_asks_to_be_kept)
{
    FIXTURE f;
    fixture_init(&f);
    assert_int_equal(feed_all(&f, STR("GET / HTTP/1.0\r\n\r\n")), H1_REQUEST);
    assert_true(h1_is_http10(f.h1));
    assert_false(h1_keeps_alive(f.h1));
    FIXTURE g;
    fixture_init(&g);
    assert_int_equal(feed_all(&g, STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")),
                     H1_REQUEST);
    assert_true(h1_keeps_alive(g.h1));
}

TEST(ambiguous_and_oversized_requests_are_refused)
{
#define LONG_40 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_400 LONG_40 LONG_40 LONG_40 LONG_40 LONG_40 LONG_40 LONG_40 LONG_40 LONG_40 LONG_40
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 65\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n41\r\n" LONG_40 LONG_40,
         413},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nz\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 1\r\n\r\n", 417},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
        {"GET / HTTP/0.9\r\n" HOST "\r\n", 505},
        {"GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "A: b\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\n" HOST "\n", 400},
        {"BR(EW / HTTP/1.1\r\n" HOST "\r\n", 400},
        {"BREW\t/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {" / HTTP/1.1\r\n" HOST "\r\n", 400},
        {LONG_40 " / HTTP/1.1\r\n" HOST "\r\n", 400},
        {"CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", 400},
        /* What a proxy in front of us may read otherwise. */
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
         "chunked\r\n\r\n0\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\na", 400},
        {"GET / HTTP/1.1\r\n" HOST "A: b\nB: c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "A: b\rB: c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "A\tB: c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST ": c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n A: b\r\n" HOST "\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "\n\r\n", 400},
        {"GET /\x7f HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /\x80 HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET / x HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400},
        {"GET / http/1.1\r\n" HOST "\r\n", 400},
        {"GET /\r\n" HOST "\r\n", 505},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;x\na\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\nB: c\r\n\r\n",
         400},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"GET /" LONG_400 LONG_400 LONG_400 " HTTP/1.1\r\n" HOST "\r\n", 414},
        {"GET / HTTP/1.1\r\n" HOST "X: " LONG_400 LONG_400 LONG_400 "\r\n\r\n", 431},
        {"POST / HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " LONG_400 LONG_400 LONG_400 "\r\n\r\n",
         431},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        FIXTURE f;
        fixture_init(&f);
        struct str reason = STR_NONE;
        if (feed_all(&f, str_of(cases[i].text)) != H1_REFUSED)
            fail_msg("case %zu was not refused: %s", i, cases[i].text);
        int status = h1_refusal(f.h1, &reason);
        if (status != cases[i].status)
            fail_msg("case %zu: %d %.*s", i, status, STR_ARG(reason));
        assert_true(reason.n > 0);
    }
}

TEST(many_tiny_headers_reach_the_limit)
{
    FIXTURE f;
    fixture_init(&f);
    assert_int_equal(feed_all(&f, STR("GET / HTTP/1.1\r\n" HOST)), H1_HEAD);
    size_t n_headers = 0;
    while (feed_all(&f, STR("a:\r\n")) != H1_REFUSED)
        assert_true(++n_headers < 20);
    struct str reason;
    assert_int_equal(h1_refusal(f.h1, &reason), 431);
}

TEST(endless_chunk_extensions_are_refused)
{
    FIXTURE f;
    fixture_init(&f);
    (void) feed_all(&f, STR("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;"));
    size_t n_rounds = 0;
    while (feed_all(&f, STR(LONG_400)) != H1_REFUSED)
        assert_true(++n_rounds < 64);
}

TEST(head_of_an_answer)
{
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("text/plain")},
        {STR("content-length"), STR("99")},
        {STR("Warning"), STR("299 - \"a\r\nSet-Cookie: b\"")},
    };
    const struct h1_answer a = {
        .status = 404,
        .headers = headers,
        .n_headers = N_ELEMENTS(headers),
        .framing = H1_LENGTH,
        .length = 1234,
        .date = STR("now"),
        .closes = true,
    };
    BUF_AUTO out = {0};
    h1_write_head(&out, &a);
    assert_str(buf_str(&out), "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
                              "Warning: 299 - \"a  Set-Cookie: b\"\r\nDate: now\r\n"
                              "Content-Length: 1234\r\nConnection: close\r\n\r\n");
}

TEST(framing_of_an_answer)
{
    static const struct {
        struct h1_answer a;
        const char *text;
    } cases[] = {
        {{.status = 204, .framing = H1_NO_BODY}, "HTTP/1.1 204 No Content\r\n\r\n"},
        {{.status = 200, .framing = H1_CHUNKED},
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {{.status = 200, .framing = H1_UNTIL_CLOSE, .closes = true},
         "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"},
        {{.status = 200, .framing = H1_LENGTH, .says_keep_alive = true},
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"},
        {{.status = 299, .framing = H1_NO_BODY}, "HTTP/1.1 299 Status\r\n\r\n"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO out = {0};
        h1_write_head(&out, &cases[i].a);
        assert_str(buf_str(&out), cases[i].text);
    }
    char head[H1_CHUNK_HEAD_BYTES];
    assert_str(str_range(head, h1_chunk_head(0x1a2b, head)), "1a2b\r\n");
    assert_str(str_range(head, h1_chunk_head(SIZE_MAX, head)), "ffffffffffffffff\r\n");
}
