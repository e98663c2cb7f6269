/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sweep.h"

#include "base/alloc.h"

void sweep_done(struct sweep *w)
{
    mem_free(w->revisions);
    *w = (struct sweep){0};
}

static void add(struct sweep *w, int64_t revision)
{
    if (w->n == w->capacity) {
        w->capacity = MAX(w->capacity * 2, (size_t) 64);
        w->revisions = mem_realloc_array(w->revisions, w->capacity, sizeof(int64_t));
    }
    w->revisions[w->n++] = revision;
}

void sweep_events(struct sweep *w, struct event *dropped)
{
    for (struct event *next; dropped; dropped = next) {
        next = dropped->next;
        if (dropped->shared.previous)
            add(w, dropped->shared.previous->revision);
        if (dropped->shared.type == STORE_DELETED)
            add(w, dropped->shared.revision);
        bytes_unref(&dropped->shared.bytes);
    }
}

void sweep_forget(struct sweep *w, size_t n_rows)
{
    w->first += n_rows;
    if (w->first < w->n / 2)
        return;
    w->n -= w->first;
    if (w->n)
        memmove(w->revisions, w->revisions + w->first, w->n * sizeof(int64_t));
    w->first = 0;
    if (w->n == 0)
        sweep_done(w);
}
