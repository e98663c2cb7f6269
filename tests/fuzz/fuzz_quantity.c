/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities from outside: what parses must print, print the same again, and compare as equal to
 * itself. */
#include <stdlib.h>

#include "api/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct quantity q, again;
    struct str error = STR_NONE;
    if (quantity_parse(str_range((const char *) data, size), &q, &error) < 0) {
        require(error.n > 0);
        return 0;
    }
    /* A text that is kept must stand for the value as well as the canonical form does. */
    struct quantity bare = q;
    bare.text = STR_NONE;
    const struct str kept = quantity_text(a, &q), canonical = quantity_text(a, &bare);
    require(quantity_parse(kept, &again, &error) >= 0 && quantity_compare(&q, &again) == 0);
    if (canonical.n <= QUANTITY_MAX_BYTES && quantity_parse(canonical, &again, &error) >= 0) {
        require(quantity_compare(&q, &again) == 0);
        /* 31.25Ki prints as 32000, which reads as decimal: only the same format prints the same. */
        again.text = STR_NONE;
        require(again.format != q.format || str_eq(quantity_text(a, &again), canonical));
    }
    require(quantity_compare(&q, &q) == 0);
    require(quantity_is_integer(&q) || quantity_sign(&q) != 0);
    quantity_round_milli(&q);
    require(quantity_sign(&q) == quantity_sign(&bare));
    return 0;
}
