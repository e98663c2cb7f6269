/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of lib/http share: the server, its connections, their exchanges, and the table of
 * functions by which a protocol (HTTP/1.1, HTTP/2, WebSocket) is driven. */
#pragma once

#include "base/list.h"
#include "http/h1.h"
#include "http/h2.h"
#include "http/http.h"

/* Output goes from our queues to the stream while less than this waits there: with one frame on
 * top it fits the stream's spare buffers, while more would grow a buffer anew in every turn. */
#define HTTP_STREAM_PENDING_BYTES ((size_t) 40 * 1024)
/* A peer that takes less than this in this time, while more waits for it, is gone or means to hold
 * us up: one kilobyte a second. */
#define HTTP_STALL_TIMEOUT_MS ((int64_t) 60 * 1000)
#define HTTP_STALL_LEAST_BYTES ((size_t) 60 * 1024)
/* A silent peer is asked for a sign of life, and given up when none comes. */
#define HTTP_PING_AFTER_MS ((int64_t) 30 * 1000)
#define HTTP_PONG_TIMEOUT_MS ((int64_t) 15 * 1000)
/* How long the rest of a refused HTTP/2 request is dropped before its sender is stopped: curl up
 * to 7.88 takes that for the loss of the answer when it comes at once. */
#define HTTP_STOP_AFTER_MS ((int64_t) 2 * 1000)
/* Between the two GOAWAY of a drain: requests already on their way are still served. */
#define HTTP_SHUTDOWN_NOTICE_MS ((int64_t) 1000)

/* ---- exchanges ---------------------------------------------------------------------------- */

/* GATHERING -> OPEN -> STREAMING -> ENDED, where OPEN -> ENDED is a whole answer; any -> ENDED when
 * it is cut off. */
enum exchange_state {
    EXCHANGE_GATHERING, /* the request is on its way */
    EXCHANGE_OPEN,      /* the handler has it */
    EXCHANGE_STREAMING, /* the answer has begun */
    EXCHANGE_ENDED,     /* the handler is done; output may be left */
};

struct http_exchange {
    struct list link; /* of its connection's exchanges, or the server's spares */
    struct http_connection *connection;
    enum exchange_state state;
    struct http_request request;
    struct message in;
    struct slice_queue out;
    struct h2_stream h2;
    bool sends_body;   /* not for HEAD, 204 and 304 */
    int64_t since_ms;  /* begun, or last seen to progress */
    size_t seen_bytes; /* of out, then */
    void (*on_closed)(void *arg);
    void *closed_arg;
    void (*on_drained)(void *arg);
    void *drained_arg;
};

/* From the server's spares, added to the connection. */
struct http_exchange *exchange_acquire(struct http_connection *c);
void exchange_release(struct http_exchange *x);
void exchange_free(struct http_exchange *x);
/* The request is whole: hands it to the handler, or refuses it. */
void exchange_deliver(struct http_exchange *x);
/* Answers in the handler's place; an HTTP/1.1 connection ends with it. */
void exchange_refuse(struct http_exchange *x, int status, struct str reason);
/* The peer is gone: tells the handler unless it is done. Release follows. */
void exchange_cut(struct http_exchange *x);
void exchange_drained(struct http_exchange *x);

/* ---- protocols ---------------------------------------------------------------------------- */

struct answer {
    int status;
    const struct http_header *headers;
    size_t n_headers;
    bool allows_body; /* by its status: not 204, 304 */
    bool has_length;
    uint64_t length;
};

struct protocol {
    void (*on_bytes)(struct http_connection *c, struct str bytes);
    /* At the end of a turn in which conn_schedule() was called, and when the stream's output has
     * drained. */
    void (*on_turn)(struct http_connection *c);
    void (*on_drained)(struct http_connection *c);
    /* The head; the body is in out, and complete when the exchange is ended. The exchange may be
     * gone afterwards. */
    void (*answer)(struct http_exchange *x, const struct answer *a);
    /* One http_send(). Takes the slices over. */
    void (*send)(struct http_exchange *x, const struct slice *slices, size_t n);
    void (*end)(struct http_exchange *x);
    void (*abort)(struct http_exchange *x);
    size_t (*pending)(const struct http_exchange *x);
    /* A deadline has passed in this phase. */
    void (*on_timeout)(struct http_connection *c);
    /* Now and then while idle or busy. */
    void (*on_sweep)(struct http_connection *c, int64_t now_ms);
    void (*ping)(struct http_connection *c);  /* NULL: the protocol has none */
    void (*trust)(struct http_connection *c); /* NULL: it makes no difference */
    void (*drain)(struct http_connection *c);
    void (*done)(struct http_connection *c);
};

extern const struct protocol protocol_http1, protocol_http2, protocol_websocket;

void http1_open(struct http_connection *c);
void http2_open(struct http_connection *c);
/* Takes an HTTP/1.1 connection over; its request is a good handshake. */
void websocket_open(struct http_exchange *x, struct str protocol);

/* ---- connections -------------------------------------------------------------------------- */

/* clang-format off */
/*     HTTP/1.1   OPENING --> HEADER --> BODY --> BUSY --> IDLE --> HEADER ...
 *     HTTP/2     OPENING --> HEADER --> IDLE <--> BUSY
 *     both       any --> CLOSING
 * HEADER, BODY and IDLE have their deadlines (server.c). */
/* clang-format on */
enum connection_phase {
    PHASE_OPENING, /* the handshake, which the listener limits */
    PHASE_HEADER,
    PHASE_BODY,
    PHASE_BUSY, /* an exchange is open */
    PHASE_IDLE,
    PHASE_CLOSING, /* the stream is being closed */
    N_PHASES,
};

struct http1_state {
    struct h1 *parser;
    struct http_exchange *current;
    struct buf unparsed; /* behind the current request */
    enum h1_framing framing;
    bool closes;     /* after the current exchange */
    bool is_reading; /* within the loop that reads requests */
};

struct http_connection {
    struct list link; /* of the server's connections in this phase */
    struct http_server *server;
    struct stream *stream;
    const struct protocol *protocol; /* NULL until open */
    enum connection_phase phase;
    int64_t phase_since_ms;
    struct loop_deferred turn;
    struct list exchanges;
    size_t n_exchanges;
    int64_t received_ms, pinged_ms; /* pinged_ms 0: no ping is out */
    uint64_t n_written;             /* bytes to the stream */
    /* When last seen to progress: what the peer had taken, and what it is to take until the stall
     * timeout. */
    uint64_t seen_taken;
    size_t owed_bytes;
    int64_t seen_taken_ms;
    struct http1_state http1;
    struct h2 *h2;
    int64_t announced_ms; /* of the first GOAWAY; 0: none */
    struct websocket *websocket;
};

/* Entering IDLE again moves its deadline. */
void conn_set_phase(struct http_connection *c, enum connection_phase phase);
static inline bool conn_is_closing(const struct http_connection *c)
{
    return c->phase == PHASE_CLOSING;
}
void conn_write(struct http_connection *c, const void *p, size_t n);
/* Moves up to n bytes from the queue to the stream. */
void conn_write_queue(struct http_connection *c, struct slice_queue *q, size_t n);
/* Bytes the stream has not sent; 0 when it is closing. */
size_t conn_pending(const struct http_connection *c);
/* How many bytes the stream should be given now. */
size_t conn_room(const struct http_connection *c);
void conn_schedule(struct http_connection *c);
void conn_close(struct http_connection *c, bool after_flush);
/* Periodic: closes what stalls, pings what is silent. */
void conn_sweep(struct http_connection *c, int64_t now_ms);
extern const struct stream_events conn_events;

/* ---- the server --------------------------------------------------------------------------- */

#define HTTP_DATE_BYTES 30 /* "Mon, 02 Jan 2006 15:04:05 GMT" */

struct http_server {
    struct http_server_options options;
    struct http_limits limits;
    struct loop_timer *timer;
    bool is_timer_on;
    unsigned n_ticks;
    struct list phases[N_PHASES];
    size_t n_connections, n_exchanges;
    struct list spares; /* exchanges for reuse */
    size_t n_spares;
    struct buf scratch;
    char date[HTTP_DATE_BYTES];
    int64_t date_until_ms;
    bool is_draining, is_freed;
    struct loop_deferred drained;
    void (*on_drained)(void *arg);
    void *drained_arg;
};

/* For the date header; valid as long as the server, its content moves on. */
struct str server_date(struct http_server *h);
/* Counts a connection in, and out. */
void server_remember(struct http_connection *c);
void server_forget(struct http_connection *c);
