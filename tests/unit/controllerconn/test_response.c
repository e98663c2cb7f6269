/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <zlib.h>

#include "base/alloc.h"
#include "controllerconn/response.h"
#include "test.h"

#define LIMIT 64

/* Whole, and byte by byte: an answer is the same however it comes. Returns what the last call did.
 */
static int feed(struct uplink_response *a, struct str bytes, size_t step)
{
    int r = 0;
    uplink_response_init(a, LIMIT);
    for (size_t at = 0; at < bytes.n && r == 0; at += step)
        r = uplink_response_feed(a, str_sub(bytes, at, MIN(at + step, bytes.n)));
    return r != 0 ? r : uplink_response_end(a);
}

static void check(const char *text, int expected, int status, const char *body)
{
    const size_t steps[] = {1, 3, 4096};
    for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
        struct uplink_response a;
        const int r = feed(&a, str_of(text), steps[i]);
        if (r != expected)
            fail_msg("%s: %d, not %d", text, r, expected);
        if (expected == 1) {
            assert_int_equal(a.status, status);
            assert_true(str_eq(buf_str(&a.body), str_of(body)));
        }
        uplink_response_done(&a);
    }
}

TEST(answers_of_every_framing)
{
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 1, 200, "hi");
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more", 1, 200, "hi");
    check("HTTP/1.1 304 Not Modified\r\n\r\n", 1, 304, "");
    check("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 1, 204, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", 1,
          200, "hi!");
    check("HTTP/1.0 200 OK\r\n\r\nuntil the end", 1, 200, "until the end");
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 1, 201,
          "");
}

TEST(what_is_cut_off_is_no_answer)
{
    check("", -ECONNRESET, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Le", -ECONNRESET, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", -ECONNRESET, 0, "");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", -ECONNRESET, 0, "");
    check("HTTP/1.1 100 Continue\r\n\r\n", -ECONNRESET, 0, "");
}

TEST(what_is_not_http_is_refused)
{
    check("SSH-2.0-OpenSSH_9.2\r\n", -EBADMSG, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi", -EBADMSG, 0, "");
    check("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi", -EBADMSG, 0,
          "");
}

TEST(head_and_body_have_limits)
{
    struct uplink_response a;
    BUF_AUTO text = {0};
    buf_printf(&text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LIMIT);
    for (size_t i = 0; i < LIMIT; i++)
        buf_append_char(&text, 'x');
    assert_int_equal(feed(&a, buf_str(&text), 4096), 1);
    assert_int_equal(a.body.n, LIMIT);
    uplink_response_done(&a);

    buf_reset(&text);
    buf_printf(&text, "HTTP/1.0 200 OK\r\n\r\n");
    for (size_t i = 0; i <= LIMIT; i++)
        buf_append_char(&text, 'x');
    assert_int_equal(feed(&a, buf_str(&text), 4096), -EMSGSIZE);
    uplink_response_done(&a);

    buf_reset(&text);
    buf_printf(&text, "HTTP/1.1 200 OK\r\n");
    while (text.n <= 2 * UPLINK_RESPONSE_MAX_HEAD_BYTES)
        buf_printf(&text, "X-Filler: %0200d\r\n", 0);
    assert_int_equal(feed(&a, buf_str(&text), 4096), -EMSGSIZE);
    uplink_response_done(&a);
}

static void append_gzip(struct buf *to, const char *p, size_t n)
{
    z_stream z = {.next_in = (unsigned char *) p, .avail_in = (unsigned) n};
    unsigned char packed[4096];
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = packed;
    z.avail_out = sizeof(packed);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    buf_printf(to,
               "HTTP/1.1 200 OK\r\ncontent-encoding: GZIP\r\nContent-Type: text/plain\r\n"
               "Location: /there\r\nContent-Length: %lu\r\n\r\n",
               z.total_out);
    buf_append(to, packed, z.total_out);
    (void) deflateEnd(&z);
}

TEST(bodies_may_be_zipped_and_inflate_to_no_more_than_the_limit)
{
    char plain[LIMIT + 1];
    memset(plain, 'y', sizeof(plain));
    for (size_t n = LIMIT; n <= LIMIT + 1; n++) {
        BUF_AUTO text = {0};
        append_gzip(&text, plain, n);
        for (size_t step = 1; step <= 1024; step *= 4) {
            struct uplink_response a;
            assert_int_equal(feed(&a, buf_str(&text), step), n == LIMIT ? 1 : -EMSGSIZE);
            assert_true(str_is(buf_str(&a.content_type), "text/plain"));
            assert_true(str_is(buf_str(&a.location), "/there"));
            if (n == LIMIT)
                assert_true(str_eq(buf_str(&a.body), str_range(plain, n)));
            uplink_response_done(&a);
        }
    }
}
