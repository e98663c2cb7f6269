/* SPDX-License-Identifier: Apache-2.0 */
/* Slices waiting to be sent, in order. Owns a reference to each; counts the bytes left. */
#pragma once

#include "base/bytes.h"

struct slice_queue {
    struct slice *slices;
    size_t begin; /* first that is not yet sent */
    size_t end;
    size_t capacity;
    size_t n_bytes;
};

void slice_queue_done(struct slice_queue *q);
/* Drops what waits; keeps memory of ordinary size. */
void slice_queue_reset(struct slice_queue *q);
/* Takes the slices over. */
void slice_queue_append(struct slice_queue *q, const struct slice *slices, size_t n);
/* The bytes at the front that lie together; empty only when the queue is. */
struct str slice_queue_front(const struct slice_queue *q);
/* Removes n bytes, not more than slice_queue_front() gave. */
void slice_queue_consume(struct slice_queue *q, size_t n);
