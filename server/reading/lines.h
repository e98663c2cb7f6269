/* SPDX-License-Identifier: Apache-2.0 */
/* A record taken apart into what a reader gets: the lines of a log upload, or the one message. One
 * record is open at a time, and what it inflates to is bounded (eve/newlog.h, protobuf/message.h).
 */
#pragma once

#include "eve/logs.pb-c.h"
#include "eve/newlog.h"
#include "protobuf/message.h"
#include "reading/query.h"
#include "telemetry/telemetry.h"

enum line_kind {
    LINE_ENTRY,   /* of a log */
    LINE_MESSAGE, /* a protobuf message */
    LINE_OBJECT,  /* JSON already */
    LINE_BAD      /* what cannot be read, and why */
};

struct line {
    enum line_kind kind;
    struct reading_id id;
    int64_t arrived_us;
    int64_t time_us; /* the device's own, or of its arrival where it does not say */
    struct uuid app; /* zero: none */
    struct newlog_entry entry;
    const Eve__Logs__LogEntry *log_entry; /* as it came, when it came as one */
    const ProtobufCMessage *message;
    const struct json *object;
    struct str text;    /* the message's bytes; what cannot be read */
    const char *reason; /* of a bad one */
};

struct lines {
    const struct telemetry_record *record; /* NULL: none is open */
    struct arena *arena;                   /* of the record */
    struct arena *line_arena;              /* of one line */
    struct buf inflated;
    struct str rest; /* of that */
    Eve__Logs__LogEntry **entries;
    size_t n_entries;
    uint32_t number; /* of the last line */
    bool is_given;   /* the one line of a message */
    const char *damage;
};

/* The record must outlive the reading of its lines. */
void lines_open(struct lines *l, const struct telemetry_record *r);
/* What it points to lives until the next call. false: no more. */
bool lines_next(struct lines *l, struct line *ret);
/* Frees what a record takes; the next may be opened. */
void lines_close(struct lines *l);
void lines_done(struct lines *l);

bool line_matches(const struct line *line, const struct reading_query *q);
/* A line of JSON; or a message with its length in front, when the query wants that: nothing where
 * there is none. */
void line_write(const struct line *line, bool is_binary, struct buf *to);
