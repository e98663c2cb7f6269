/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a Redis server (RESP, version 2). Reads as much as a reply needs and no more, within
 * limits; knows nothing of sockets. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#define RESP_MAX_LINE_BYTES ((size_t) 64 * 1024)
#define RESP_MAX_TEXT_BYTES ((size_t) 16 * 1024 * 1024)
#define RESP_MAX_ITEMS ((size_t) 2000000) /* of one reply, with all below */
#define RESP_MAX_REPLY_BYTES ((size_t) 1024 * 1024 * 1024)
#define RESP_MAX_DEPTH 8

enum resp_type { RESP_NIL, RESP_TEXT, RESP_ERROR, RESP_INT, RESP_LIST };
struct resp {
    enum resp_type type;
    struct str text; /* of a text or an error; with a NUL behind */
    int64_t number;
    struct resp *items;
    size_t n_items;
};

struct resp_reader {
    /* Appends at least a byte. 0 or a negative errno; -EPIPE: no more will come. */
    int (*more)(void *ctx, struct buf *to);
    void *ctx;
    struct buf in;
    size_t used;             /* of that */
    size_t n_items, n_bytes; /* of the reply */
};
void resp_reader_done(struct resp_reader *r);

/* The next reply, in the arena. -EBADMSG: this is no RESP; -E2BIG: beyond a limit. */
int resp_read(struct resp_reader *r, struct arena *a, struct resp *ret);
/* Appends a command of these words. */
void resp_write_command(struct buf *to, const struct str *words, size_t n_words);
