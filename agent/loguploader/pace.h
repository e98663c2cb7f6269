/* SPDX-License-Identifier: Apache-2.0 */
/* How often the uploader looks for files: by how many wait, whether the controller answers, and
 * whether it asked for patience. Pure decisions; times are monotonic microseconds. */
#pragma once

#include "base/lang.h"

struct pace {
    unsigned interval_s;      /* between two looks */
    unsigned previous_s;      /* as it was computed last, before its randomness; 0: never */
    bool is_fast;             /* newlog.allow.fastupload */
    int64_t compute_us;       /* when it is computed again */
    int64_t backoff_until_us; /* 0: no 429 counts any more */
    int64_t refused_us;       /* last 429; 0: never */
    bool is_failing;          /* FailedToSend */
    int64_t failing_since_us;
    unsigned n_unavailable, n_sent; /* in a row */
    uint64_t (*random_below)(uint64_t bound);
};

/* Nobody is believed to listen before three files were sent, as EVE has it. */
void pace_init(struct pace *p, int64_t now_us, bool is_fast);
/* true: it has changed, and the next look is at hand. */
bool pace_set_fast(struct pace *p, int64_t now_us, bool is_fast);
/* After a look that left so many files: the interval until the next. */
unsigned pace_next(struct pace *p, int64_t now_us, size_t n_waiting);
/* These tell whether FailedToSend has changed. */
bool pace_sent(struct pace *p);
bool pace_unavailable(struct pace *p, int64_t now_us);
/* 429. */
void pace_refused(struct pace *p, int64_t now_us);
