/* SPDX-License-Identifier: Apache-2.0 */
/* A small set of pointers, in no order. {0} is empty. */
#pragma once

#include "base/lang.h"

struct pointers {
    void **items;
    uint32_t n, capacity;
};

/* It is not in there yet. */
void pointers_add(struct pointers *s, void *item);
/* It need not be in there. */
void pointers_remove(struct pointers *s, const void *item);
void pointers_done(struct pointers *s);
