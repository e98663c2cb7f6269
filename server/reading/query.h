/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader asks for: which of the things a device sends, and which part of them. */
#pragma once

#include "api/request.h"
#include "api/status.h"
#include "base/uuid.h"

enum reading_what {
    READING_LOG,
    READING_INFO,
    READING_METRICS,
    READING_FLOWLOG,
    READING_HARDWARE,
    READING_REQUESTS,
    READING_LAST_SEEN,
    READING_WHATS
};
/* As in paths; READING_WHATS: none of them. */
enum reading_what reading_what(struct str name);
struct str reading_what_name(enum reading_what what);

#define READING_MAX_LIMIT 1000000
#define READING_MAX_ORDERED_LIMIT 100000 /* by=device keeps a key of each */

/* A place in what a device sent: "<record>" or "<record>-<line>". */
struct reading_id {
    uint64_t record;
    uint32_t line; /* from 1; 0: the whole record */
};

struct reading_query {
    enum reading_what what;
    bool is_binary;           /* messages instead of JSON */
    bool is_following;        /* then everything new */
    bool is_by_device;        /* times are the device's own */
    int64_t start_us, end_us; /* end not included; 0: open */
    uint64_t limit;           /* the newest so many; 0: all */
    bool has_after;
    struct reading_id after; /* only what follows it */
    bool has_app;            /* only of the application, or none's when it is zero */
    struct uuid app;
    struct str severity, source; /* one of these, comma between; NULL: any */
    struct str contains;         /* in a line's content */
    bool has_type;               /* of info */
    int32_t type;
};

/* 0, or -EINVAL with st naming the parameter and what it takes. Strings are the parameters' own. */
int reading_query_parse(const struct request_query *in, enum reading_what what,
                        struct reading_query *ret, struct status *st);
