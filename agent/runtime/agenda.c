/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/agenda.h"

#include "base/alloc.h"

void agenda_done(struct agenda *a)
{
    mem_free(a->items);
    *a = (struct agenda){0};
}

struct agenda_item *agenda_first(const struct agenda *a)
{
    return a->n ? a->items[1] : NULL;
}

static bool is_before(const struct agenda_item *x, const struct agenda_item *y)
{
    return x->due_us != y->due_us ? x->due_us < y->due_us : x->order < y->order;
}

static void place(struct agenda *a, size_t at, struct agenda_item *item)
{
    a->items[at] = item;
    item->at = at;
}

static void sift_up(struct agenda *a, struct agenda_item *item, size_t at)
{
    for (; at > 1 && is_before(item, a->items[at / 2]); at /= 2)
        place(a, at, a->items[at / 2]);
    place(a, at, item);
}

static void sift_down(struct agenda *a, struct agenda_item *item, size_t at)
{
    for (size_t child = 2 * at; child <= a->n; at = child, child = 2 * at) {
        if (child < a->n && is_before(a->items[child + 1], a->items[child]))
            child++;
        if (!is_before(a->items[child], item))
            break;
        place(a, at, a->items[child]);
    }
    place(a, at, item);
}

void agenda_remove(struct agenda *a, struct agenda_item *item)
{
    size_t at = item->at;
    if (!at)
        return;
    item->at = 0;
    struct agenda_item *last = a->items[a->n--];
    if (last == item)
        return;
    if (at > 1 && is_before(last, a->items[at / 2]))
        sift_up(a, last, at);
    else
        sift_down(a, last, at);
}

void agenda_put(struct agenda *a, struct agenda_item *item, int64_t due_us)
{
    agenda_remove(a, item);
    item->due_us = due_us;
    item->order = a->n_put++;
    if (a->n + 1 >= a->capacity) {
        a->capacity = a->capacity ? a->capacity * 2 : 16;
        a->items = mem_realloc_array(a->items, a->capacity, sizeof(struct agenda_item *));
    }
    sift_up(a, item, ++a->n);
}
