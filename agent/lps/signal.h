/* SPDX-License-Identifier: Apache-2.0 */
/* The stream on which a local profile server says which endpoints have something new: a GET that
 * never ends, one message in JSON a line. It only makes polls earlier; whoever misses one learns of
 * it by polling. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "eve/profile.pb-c.h"
#include "lps/places.h"

struct clock;
struct loop;
struct uplink;

#define SIGNAL_MAX_LINE_BYTES ((size_t) 64 * 1024)
#define SIGNAL_MAX_ENDPOINTS 32
/* One in so many seconds, so many at once; the rest is dropped. */
#define SIGNAL_INTERVAL_MS 3000
#define SIGNAL_BURST 3
/* Nothing else tells that a silent server is gone. */
#define SIGNAL_KEEPALIVE_S 60
#define SIGNAL_FIRST_WAIT_MS 1000
#define SIGNAL_MAX_WAIT_MS 30000
#define SIGNAL_THROTTLED_MS ((int64_t) 3600 * 1000)

/* ---- what is read --------------------------------------------------------------------------- */

/* Lines out of pieces. {0} is one that has begun. */
struct signal_lines {
    struct buf rest;
    bool is_handed_out; /* the rest, whole by now */
};

void signal_lines_done(struct signal_lines *l);
/* Takes what belongs to a line off the piece. 1: *ret_line is one, without its end, valid until the
 * next call and as long as the piece; 0: nothing of the piece is left; -EMSGSIZE: a line is too
 * long, and the stream of no use. */
int signal_lines_next(struct signal_lines *l, struct str *piece, struct str *ret_line);
/* What came after the last end of a line; empty: nothing. */
struct str signal_lines_rest(const struct signal_lines *l);

/* -EBADMSG: it is no Signal; -E2BIG: it names too many endpoints. */
int signal_read(struct arena *a, struct str line, const Eve__Profile__Signal **ret);

struct signal_limiter {
    int64_t next_ms; /* when one would come that is on time */
};
bool signal_limiter_allows(struct signal_limiter *l, int64_t now_ms);

/* ---- the stream ----------------------------------------------------------------------------- */

/* All of it outlives the stream. */
struct signal_options {
    struct loop *loop;
    const struct clock *clock;
    struct uplink *uplink;
    const struct places *places; /* one at least; the first that answers */
    int64_t open_timeout_ms;
    /* Of each endpoint that is named. Must not free the stream. */
    void (*on_pending)(void *arg, Eve__Profile__ConfigEndpoint e);
    void *arg;
};

struct signal_stream;
/* Opens it, and does so again whenever it ends, until it is freed. */
struct signal_stream *signal_stream_new(const struct signal_options *o);
/* NULL allowed. */
void signal_stream_free(struct signal_stream *s);
