/* SPDX-License-Identifier: Apache-2.0 */
#include "http/queue.h"

#include <assert.h>

#include "base/alloc.h"

#define QUEUE_MIN_CAPACITY 4
#define KEPT_SLICES 64

void slice_queue_done(struct slice_queue *q)
{
    slice_queue_reset(q);
    mem_free(q->slices);
    *q = (struct slice_queue){0};
}

void slice_queue_reset(struct slice_queue *q)
{
    for (size_t i = q->begin; i < q->end; i++)
        slice_unref(q->slices[i]);
    q->begin = q->end = q->n_bytes = 0;
    if (q->capacity > KEPT_SLICES) {
        mem_free(TAKE(q->slices));
        q->capacity = 0;
    }
}

static void make_room(struct slice_queue *q, size_t n)
{
    if (q->capacity - q->end >= n)
        return;
    size_t n_waiting = q->end - q->begin;
    if (q->begin > 0) {
        memmove(q->slices, q->slices + q->begin, n_waiting * sizeof(*q->slices));
        q->begin = 0;
        q->end = n_waiting;
    }
    if (q->capacity - q->end >= n)
        return;
    q->capacity = MAX(MAX(q->capacity * 2, q->end + n), (size_t) QUEUE_MIN_CAPACITY);
    q->slices = mem_realloc_array(q->slices, q->capacity, sizeof(*q->slices));
}

void slice_queue_append(struct slice_queue *q, const struct slice *slices, size_t n)
{
    make_room(q, n);
    for (size_t i = 0; i < n; i++) {
        if (slices[i].s.n == 0) {
            slice_unref(slices[i]);
            continue;
        }
        q->slices[q->end++] = slices[i];
        q->n_bytes += slices[i].s.n;
    }
}

struct str slice_queue_front(const struct slice_queue *q)
{
    return q->begin == q->end ? STR("") : q->slices[q->begin].s;
}

void slice_queue_consume(struct slice_queue *q, size_t n)
{
    if (n == 0)
        return;
    assert(q->begin < q->end && n <= q->slices[q->begin].s.n);
    struct slice *front = &q->slices[q->begin];
    q->n_bytes -= n;
    if (n < front->s.n) {
        front->s = str_from(front->s, n);
        return;
    }
    slice_unref(*front);
    q->begin++;
    if (q->begin == q->end)
        q->begin = q->end = 0;
}
