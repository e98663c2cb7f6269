/* SPDX-License-Identifier: Apache-2.0 */
/* What an instance writes, line by line. Its streams are named pipes that both sides hold open for
 * reading and writing: it can go on while nobody reads, and another agent can take them over. */
#pragma once

#include "base/buf.h"
#include "runtime/runtime.h"

#define OUTPUT_MAX_LINE_BYTES ((size_t) 16 * 1024) /* longer ones come in pieces */
#define OUTPUT_TURN_BYTES ((size_t) 64 * 1024)    /* read of one stream before others have theirs */
#define OUTPUT_DRAIN_BYTES ((size_t) 1024 * 1024) /* at its end: more than a pipe holds */

struct loop;
struct loop_fd;

struct output {
    struct loop *loop;
    struct loop_fd *watch;
    int fd; /* -1: none */
    enum runtime_stream stream;
    struct buf line;
    void (*on_line)(void *arg, enum runtime_stream stream, struct str line);
    void *arg;
};

/* Makes the pipe unless it is there. */
int output_make(const char *path);
/* -ENOENT and others: there is none to read. */
int output_open(struct output *o, struct loop *l, const char *path);
/* Reads what is left; a line without end is told, too. */
void output_drain(struct output *o);
void output_close(struct output *o);
/* The rule alone: tells whole lines of what came and keeps the rest. */
void output_take(struct output *o, struct str bytes);
