/* SPDX-License-Identifier: Apache-2.0 */
/* Log uploads: one gzip member whose header carries a comment or a name, and lines of JSON. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#define NEWLOG_MAX_HEADER_BYTES 4096
/* What one upload may inflate to: devices close files at 550,000 bytes. */
#define NEWLOG_MAX_INFLATED_BYTES ((size_t) 16 * 1024 * 1024)

struct newlog_head {
    struct str name;    /* FNAME: an application's display name; empty when absent */
    struct str comment; /* FCOMMENT: {"devID":..,"image":..,"eveVersion":..}; empty when absent */
    int64_t created_s;  /* MTIME; 0: unknown */
};
/* Reads the header only. Escapes \uXXXX and \UXXXXXXXX become UTF-8, in the arena. -EBADMSG: not
 * gzip. */
int newlog_read_head(struct arena *a, struct str gzip, struct newlog_head *ret);
/* Checks that it is one whole gzip member within the limit, without keeping what it holds: 0,
 * -EBADMSG damaged, truncated or followed by more, -EMSGSIZE a bomb. */
int newlog_check(struct str gzip);
/* Appends what it holds: errors as above. */
int newlog_inflate(struct buf *to, struct str gzip);

/* A line, with Go's plain JSON names. Unset members are empty or 0. Strings in the arena. */
struct newlog_entry {
    struct str severity, source, iid, content, filename, function;
    uint64_t msgid;
    int64_t seconds; /* of its timestamp */
    int64_t nanos;
    struct json *tags; /* NULL or an object */
};
/* The next line of `rest`, which moves on. 0; -EBADMSG: it is not an entry, and is skipped;
 * -ENOENT: no more. */
int newlog_next(struct arena *a, struct str *rest, struct newlog_entry *ret);
