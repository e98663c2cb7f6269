/* SPDX-License-Identifier: Apache-2.0 */
/* Items by the time they are due: a binary heap of what the caller embeds. */
#pragma once

#include "base/lang.h"

struct agenda_item {
    int64_t due_us;
    uint64_t order; /* of two due together the one put first comes first */
    size_t at;      /* place in the heap, from 1; 0: not in it */
};

struct agenda {
    struct agenda_item **items; /* from 1 */
    size_t n, capacity;
    uint64_t n_put;
};

void agenda_done(struct agenda *a);
/* Moves it when it is in already. */
void agenda_put(struct agenda *a, struct agenda_item *item, int64_t due_us);
/* Nothing happens when it is not in. */
void agenda_remove(struct agenda *a, struct agenda_item *item);
/* NULL: empty. */
struct agenda_item *agenda_first(const struct agenda *a);
