/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 (RFC 9112) without I/O: bytes in, one whole request at a time out; and the words of an
 * answer. Strict: what could be read in two ways is refused. */
#pragma once

#include "http/message.h"

struct h1;

struct h1_limits {
    size_t header_bytes;
    size_t headers;
    size_t body_bytes;
};

enum h1_progress {
    H1_IDLE,    /* nothing of a request has come */
    H1_HEAD,    /* within its head */
    H1_BODY,    /* within its body */
    H1_REQUEST, /* it is complete */
    H1_REFUSED, /* see h1_refusal(); the connection cannot go on */
};

struct h1 *h1_new(const struct h1_limits *limits);
void h1_free(struct h1 *h);
/* The next request is gathered in m, which is empty. */
void h1_begin(struct h1 *h, struct message *m);
/* Reads up to the end of the request, at most all; after H1_REQUEST comes h1_begin(), after
 * H1_REFUSED nothing. */
enum h1_progress h1_feed(struct h1 *h, struct str bytes, size_t *ret_consumed);
/* The status to answer with, and why. */
int h1_refusal(const struct h1 *h, struct str *ret_reason);

/* Of the request being or last read. True once when the client waits for "100 Continue" before its
 * body. */
bool h1_take_expect_continue(struct h1 *h);
bool h1_keeps_alive(const struct h1 *h);
bool h1_is_http10(const struct h1 *h);

/* ---- answers ------------------------------------------------------------------------------ */

enum h1_framing {
    H1_NO_BODY,     /* 1xx, 204, 304 */
    H1_LENGTH,      /* content-length */
    H1_CHUNKED,     /* HTTP/1.1 streams */
    H1_UNTIL_CLOSE, /* HTTP/1.0 streams */
};

struct h1_answer {
    int status;
    const struct http_header *headers;
    size_t n_headers;
    enum h1_framing framing;
    uint64_t length;
    struct str date;      /* as in the header; "" none */
    bool closes;          /* says so */
    bool says_keep_alive; /* HTTP/1.0 must be told */
};

/* Framing headers of the caller are left out: this knows them. Control characters in values become
 * spaces. */
void h1_write_head(struct buf *out, const struct h1_answer *a);
#define H1_CHUNK_HEAD_BYTES 18
/* "<size>\r\n" in hexadecimal; returns its length. */
size_t h1_chunk_head(size_t n_bytes, char out[H1_CHUNK_HEAD_BYTES]);
#define H1_CHUNK_END STR("\r\n")
#define H1_LAST_CHUNK STR("0\r\n\r\n")
#define H1_CONTINUE STR("HTTP/1.1 100 Continue\r\n\r\n")
