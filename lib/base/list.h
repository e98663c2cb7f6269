/* SPDX-License-Identifier: Apache-2.0 */
/* An intrusive, circular, doubly linked list; the head is a link of its own. */
#pragma once

#include "base/lang.h"

struct list {
    struct list *next;
    struct list *previous;
};

static inline void list_init(struct list *l)
{
    l->next = l->previous = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_append(struct list *head, struct list *item)
{
    item->next = head;
    item->previous = head->previous;
    head->previous->next = item;
    head->previous = item;
}

/* Safe on an item that is in no list but was initialised. */
static inline void list_remove(struct list *item)
{
    item->previous->next = item->next;
    item->next->previous = item->previous;
    list_init(item);
}

static inline struct list *list_pop_first(struct list *head)
{
    struct list *first = head->next;
    if (first == head)
        return NULL;
    list_remove(first);
    return first;
}

/* The current item may be removed in the body. */
#define LIST_FOR_EACH(head, item) \
    for (struct list *item = (head)->next, *item##_next = item->next; item != (head); \
         item = item##_next, item##_next = item->next)
