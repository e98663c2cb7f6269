/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that a dry run takes to be there, or gone, though the store knows nothing of it: several
 * that belong together can be judged before any is written. */
#pragma once

#include "json/json.h"

struct overlay_item {
    struct str key;            /* of the store: "<collection>/<namespace>/<name>" */
    const struct json *object; /* NULL: it is taken to be gone */
};

struct overlay {
    const struct overlay_item *items;
    size_t n;
};

/* NULL: it says nothing of that key. overlay may be NULL. */
static inline const struct overlay_item *overlay_find(const struct overlay *overlay, struct str key)
{
    for (size_t i = 0; overlay && i < overlay->n; i++)
        if (str_eq(overlay->items[i].key, key))
            return &overlay->items[i];
    return NULL;
}
