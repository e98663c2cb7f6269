/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the log that nothing needs any more, waiting for the writer to delete them a few at a
 * time. Lost with the process without harm: the next start finds them again. */
#pragma once

#include "store/index.h"

struct sweep {
    int64_t *revisions;
    size_t first; /* those before it are done */
    size_t n;
    size_t capacity;
};

void sweep_done(struct sweep *w);
/* Notes the rows that events dropped from history made useless, and drops the events (a chain as
 * index_trim() gives it). */
void sweep_events(struct sweep *w, struct event *dropped);
static inline size_t sweep_n_waiting(const struct sweep *w)
{
    return w->n - w->first;
}
/* The i-th of those waiting. */
static inline int64_t sweep_at(const struct sweep *w, size_t i)
{
    return w->revisions[w->first + i];
}
/* The first n_rows have been deleted. */
void sweep_forget(struct sweep *w, size_t n_rows);
