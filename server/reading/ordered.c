/* SPDX-License-Identifier: Apache-2.0 */
#include "reading/ordered.h"

#include <stdlib.h>

#include "base/alloc.h"

int ordered_compare(const struct ordered_key *a, const struct ordered_key *b)
{
    if (a->time_us != b->time_us)
        return a->time_us < b->time_us ? -1 : 1;
    if (a->record != b->record)
        return a->record < b->record ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

void ordered_reset(struct ordered *o, bool is_lowest_first)
{
    for (size_t i = 0; i < o->n; i++)
        mem_free(o->items[i].text);
    o->n = o->n_bytes = 0;
    o->is_partial = false;
    o->is_lowest_first = is_lowest_first;
}

void ordered_done(struct ordered *o)
{
    ordered_reset(o, false);
    mem_free(o->items);
    *o = (struct ordered){0};
}

/* a goes before b. */
static bool goes_first(const struct ordered *o, size_t a, size_t b)
{
    int order = ordered_compare(&o->items[a].key, &o->items[b].key);
    return o->is_lowest_first ? order < 0 : order > 0;
}

static void swap(struct ordered *o, size_t a, size_t b)
{
    struct ordered_item item = o->items[a];
    o->items[a] = o->items[b];
    o->items[b] = item;
}

/* What a text costs beside its bytes. */
static size_t cost(size_t n)
{
    return n + sizeof(struct ordered_item);
}

void ordered_add(struct ordered *o, const struct ordered_key *key, struct str text)
{
    if (o->n == o->capacity) {
        o->capacity = o->capacity ? o->capacity * 2 : 64;
        o->items = mem_realloc_array(o->items, o->capacity, sizeof(*o->items));
    }
    size_t i = o->n++;
    o->items[i] = (struct ordered_item){*key, text.p ? mem_dup(text.p, text.n) : NULL, text.n};
    o->n_bytes += cost(text.n);
    for (; i > 0 && goes_first(o, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(o, i, (i - 1) / 2);
}

void ordered_drop_first(struct ordered *o)
{
    o->n_bytes -= cost(o->items[0].n);
    mem_free(o->items[0].text);
    o->is_partial = true;
    o->items[0] = o->items[--o->n];
    for (size_t i = 0;;) {
        size_t first = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < o->n; child++)
            if (goes_first(o, child, first))
                first = child;
        if (first == i)
            break;
        swap(o, i, first);
        i = first;
    }
}

static int by_key(const void *a, const void *b)
{
    return ordered_compare(&((const struct ordered_item *) a)->key,
                           &((const struct ordered_item *) b)->key);
}

void ordered_sort(struct ordered *o)
{
    if (o->n > 1)
        qsort(o->items, o->n, sizeof(*o->items), by_key);
}
