/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of an HTTP/2 connection (RFC 9113) without I/O: bytes in, requests out, answers
 * in, bytes out. */
#pragma once

#include "http/h2_rules.h"
#include "http/message.h"
#include "http/queue.h"

struct h2;

struct h2_limits {
    size_t header_bytes;
    size_t body_bytes;
    size_t headers;
    uint32_t streams;
    uint32_t reset_burst, resets_per_second; /* of a trusted peer */
};

/* One request and its answer; the user embeds it in what it keeps for the exchange. */
struct h2_stream {
    struct message *in;      /* the user's, where the request is gathered */
    struct slice_queue *out; /* the user's, of the answer's body not yet sent */
    struct h2_rules rules;
    int32_t id;
    int refusal;       /* the status, once refused */
    bool is_complete;  /* nothing more will come */
    bool is_malformed; /* and reset for it */
    bool is_deferred;  /* nothing to send; h2_send() wakes it */
    bool is_ended;     /* nothing will be added to out */
    size_t gathered_bytes;
    char status_text[4];
    char length_text[20];
};

struct h2_events {
    /* A request begins: zeroed but for `in` and `out`, which are empty. */
    struct h2_stream *(*on_open)(void *ctx);
    /* It is complete, or is to be refused with this status: h2_answer() follows now or later. */
    void (*on_request)(void *ctx, struct h2_stream *s);
    void (*on_refused)(void *ctx, struct h2_stream *s, int status, struct str reason);
    /* Its `out` has been sent empty and is not ended. */
    void (*on_drained)(void *ctx, struct h2_stream *s);
    /* The stream is over, by its end or a reset of either side. The last call for it. */
    void (*on_close)(void *ctx, struct h2_stream *s);
    void (*on_output)(void *ctx, struct str bytes);
};

struct h2 *h2_new(const struct h2_limits *limits, const struct h2_events *events, void *ctx,
                  int64_t now_ms);
/* Streams still open get no on_close. */
void h2_free(struct h2 *h);

/* The peer has shown who it is: it may reset as many streams as the limits say. */
void h2_trust(struct h2 *h);

/* -EPROTO: the peer does not speak HTTP/2; close. Other offences, and frames that ask for work
 * without end (resets, pings, settings, empty ones), end in h2_is_over(). Not from within an event.
 */
int h2_feed(struct h2 *h, struct str bytes, int64_t now_ms);
/* Hands output to on_output until none is left or about budget_bytes went out. Not from within an
 * event. */
int h2_pull(struct h2 *h, size_t budget_bytes);
bool h2_wants_output(const struct h2 *h);
/* Both sides are done: close once the output is flushed. */
bool h2_is_over(const struct h2 *h);

struct h2_answer {
    int status;
    const struct http_header *headers; /* copied; framing headers are left out */
    size_t n_headers;
    struct str date; /* outlives the connection */
    bool has_length; /* length is that of the body, also when none is sent */
    uint64_t length;
    bool has_body; /* data follows: put it into `out` before, or call h2_send() */
};
void h2_answer(struct h2 *h, struct h2_stream *s, const struct h2_answer *a);
/* `out` has grown, or is_ended was set. */
void h2_send(struct h2 *h, struct h2_stream *s);
/* Ends the stream at once, unfinished. */
void h2_reset(struct h2 *h, struct h2_stream *s);
/* The answer has overtaken its request: tells the peer to stop sending it (RFC 9113 8.1). */
void h2_stop(struct h2 *h, struct h2_stream *s);

void h2_ping(struct h2 *h);
/* Tells the peer to open no more streams (those on their way are still served), then that none will
 * be served. */
void h2_announce_shutdown(struct h2 *h);
void h2_shutdown(struct h2 *h);
