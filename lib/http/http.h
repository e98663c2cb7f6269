/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: one face over HTTP/1.1 (llhttp), HTTP/2 (nghttp2) and WebSocket (wslay). A
 * request arrives whole (its body is bounded and gathered first); its answer is sent whole or
 * streamed piece by piece. Everything about an exchange happens on its connection's loop. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "http/header.h"
#include "loop/loop.h"
#include "net/stream.h"

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER
};

struct http_request {
    enum http_method method;
    struct str method_text;
    struct str path;  /* as sent, percent-encoded, without the query */
    struct str query; /* as sent, without '?' */
    struct str authority;
    const struct http_header *headers;
    size_t n_headers;
    struct str body;
    const struct stream_peer *peer;
    bool is_http2;
};

/* First value of a header given in lower case; STR_NONE when absent. */
struct str http_request_header(const struct http_request *r, struct str lower_name);
/* True when the request is a well-formed WebSocket handshake (RFC 6455; HTTP/1.1 only). */
bool http_request_wants_websocket(const struct http_request *r);

struct http_exchange;

const struct http_request *http_request(const struct http_exchange *x);
/* Lives as long as the exchange; the request's strings are in it. */
struct arena *http_arena(struct http_exchange *x);
struct loop *http_loop(struct http_exchange *x);

/* The peer has shown who it is (a client certificate speaks for itself): its connection may reset
 * as many streams as the limits say, which a stranger's may not. */
void http_trust_peer(struct http_exchange *x);

/* The whole answer. Headers are copied; slices are taken over. content-length is added; HEAD sends
 * no body. The exchange is over afterwards: do not touch it. */
void http_reply(struct http_exchange *x, int status, const struct http_header *headers,
                size_t n_headers, struct slice *body, size_t n_slices);

/* A streamed answer: start, send ..., end. Chunked on HTTP/1.1. */
void http_start(struct http_exchange *x, int status, const struct http_header *headers,
                size_t n_headers);
/* As http_start(), but accepts the WebSocket handshake with this sub-protocol ("" none): each
 * http_send() is then one text message. So it is in kube-apiserver's watches whatever the
 * sub-protocol, base64.binary.k8s.io included: clients that ask for it parse the message as JSON.
 */
void http_start_websocket(struct http_exchange *x, struct str protocol);
/* Takes the slices over. They go out at the end of the loop's turn, as flow control allows. */
void http_send(struct http_exchange *x, struct slice *slices, size_t n_slices);
void http_end(struct http_exchange *x);
/* Bytes queued that the peer has not taken; a streaming handler looks at it to judge a slow reader.
 */
size_t http_pending(const struct http_exchange *x);
/* Ends the exchange at once, unfinished (RST_STREAM, or the connection on HTTP/1.1). on_closed is
 * not called. */
void http_abort(struct http_exchange *x);

/* At most one of each; called on the loop's thread. on_closed: the peer is gone or has cancelled,
 * before http_reply() or http_end() was called: the exchange is dead after the callback, and up to
 * it every call on the exchange is safe. A handler that answers later than in on_request therefore
 * always sets it. on_drained: pending has come to 0. */
void http_on_closed(struct http_exchange *x, void (*on_closed)(void *arg), void *arg);
void http_on_drained(struct http_exchange *x, void (*on_drained)(void *arg), void *arg);

/* ---- the server --------------------------------------------------------------------------- */

struct http_server; /* one per loop */

struct http_limits {
    size_t header_bytes; /* 64 KiB */
    size_t headers;      /* how many: 1000 */
    size_t body_bytes;   /* 3 MiB */
    uint32_t streams;    /* concurrent, per HTTP/2 connection: 250 */
    /* HTTP/2 streams that a known peer may have reset, at once and then by the second: 20,000 and
     * 2,000. A client ends a watch by a reset, and a controller that restarts ends many at once. */
    uint32_t reset_burst, resets_per_second;
    int64_t
        header_timeout_ms;   /* from the first byte (or the handshake) to complete headers: 32 s */
    int64_t body_timeout_ms; /* 60 s */
    int64_t idle_timeout_ms; /* no exchange open: 180 s */
};
extern const struct http_limits http_default_limits;

struct http_server_options {
    struct loop *loop;
    const struct http_limits *limits;
    /* A request is complete. The handler answers now or later. */
    void (*on_request)(void *ctx, struct http_exchange *x);
    /* A request was refused before it was whole: 400 bad request, 408, 413 body too large, 414,
     * 431. Answers with http_reply() at once. NULL: plain text. */
    void (*on_refused)(void *ctx, struct http_exchange *x, int status, struct str reason);
    void *ctx;
};
struct http_server *http_server_new(const struct http_server_options *o);
/* For listener_options.on_accept: the stream's events and ctx of a new connection. */
void *http_server_accept(struct http_server *h, struct stream *s,
                         const struct stream_events **ret_events);
/* Graceful end: GOAWAY on HTTP/2, `connection: close` on HTTP/1.1, idle connections close now,
 * others when their exchanges are over. on_drained when none is left. */
void http_server_drain(struct http_server *h, void (*on_drained)(void *arg), void *arg);
size_t http_server_connections(const struct http_server *h);
size_t http_server_exchanges(const struct http_server *h);
/* Closes what is left at once, after on_closed of every open exchange; its memory goes with the
 * last stream. Allowed in the drain's on_drained. */
void http_server_free(struct http_server *h);
