/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/pointers.h"

#include "base/alloc.h"

void pointers_add(struct pointers *s, void *item)
{
    if (s->n == s->capacity) {
        s->capacity = MAX(s->capacity * 2, 2U);
        s->items = mem_realloc_array(s->items, s->capacity, sizeof(void *));
    }
    s->items[s->n++] = item;
}

void pointers_remove(struct pointers *s, const void *item)
{
    /* Newest first: what comes last often goes first. */
    for (uint32_t i = s->n; i-- > 0;)
        if (s->items[i] == item) {
            s->items[i] = s->items[--s->n];
            break;
        }
    if (s->n == 0)
        pointers_done(s);
}

void pointers_done(struct pointers *s)
{
    mem_free(s->items);
    *s = (struct pointers){0};
}
