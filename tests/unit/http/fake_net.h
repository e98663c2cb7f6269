/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for lib/loop and lib/net: streams without sockets and a loop whose time moves when
 * told, so that whole connections are driven by bytes alone. Linked instead of the real ones. */
#pragma once

#include "http/http.h"

struct loop *fake_loop_new(void);
void fake_loop_free(struct loop *l);
/* Ends the turn: deferred calls, then the sockets take what waits, then closed streams say so.
 * Until nothing moves. */
void fake_loop_turn(struct loop *l);
/* Lets time pass in steps of at most a second, timers and turns included. */
void fake_loop_advance(struct loop *l, int64_t ms);

struct fake_stream_state {
    struct str output; /* what the socket has taken */
    bool is_open;      /* the server has it */
    bool is_closed;    /* the server has closed it, and nothing else is to come */
    bool was_flushed;  /* closed after its output */
    bool is_paused;
};

/* A connection after its handshake; NULL when the server refuses it. Belongs to the loop. */
struct stream *fake_stream_open(struct loop *l, struct http_server *h, const char *alpn);
/* The peer sends; ends the turn. Bytes wait while reading is paused. */
void fake_stream_feed(struct stream *s, struct str bytes);
void fake_stream_hang_up(struct stream *s);
/* How much the socket takes per turn; SIZE_MAX at first. */
void fake_stream_set_appetite(struct stream *s, size_t n_bytes);
struct fake_stream_state fake_stream_state(const struct stream *s);
void fake_stream_forget_output(struct stream *s);
