/* SPDX-License-Identifier: Apache-2.0 */
/* One audit event as a line of JSON, members in the order in which kube-apiserver writes them. */
#pragma once

#include "api/audit/audit.h"

/* Of webhooks, in one event; further ones are left out. */
#define AUDIT_MAX_ANNOTATIONS 64

/* The second that was written last: taking a time apart costs more than the rest of a line. */
struct audit_second {
    int64_t second; /* since 1970 */
    char text[CLOCK_SECONDS_BYTES];
};

/* Appends the line, newline included. */
void audit_event_write(struct buf *b, struct audit_second *last, const struct audit_record *r,
                       enum audit_stage stage);
