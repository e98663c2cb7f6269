/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_abort(void *p, size_t n_bytes)
{
    if (!p) {
        fprintf(stderr, "level=error msg=\"out of memory\" bytes=%zu\n", n_bytes);
        abort();
    }
    return p;
}

void *mem_alloc(size_t n_bytes)
{
    return or_abort(malloc(n_bytes ? n_bytes : 1), n_bytes);
}

void *mem_zalloc(size_t n_bytes)
{
    return or_abort(calloc(1, n_bytes ? n_bytes : 1), n_bytes);
}

void *mem_realloc(void *p, size_t n_bytes)
{
    return or_abort(realloc(p, n_bytes ? n_bytes : 1), n_bytes);
}

void *mem_realloc_array(void *p, size_t n_items, size_t item_bytes)
{
    size_t n_bytes = 0;
    if (__builtin_mul_overflow(n_items, item_bytes, &n_bytes))
        return or_abort(NULL, SIZE_MAX);
    return mem_realloc(p, n_bytes);
}

void *mem_dup(const void *p, size_t n_bytes)
{
    void *copy = mem_alloc(n_bytes);
    if (n_bytes)
        memcpy(copy, p, n_bytes);
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_dup(s, strlen(s) + 1);
}

void mem_free(void *p)
{
    free(p);
}
