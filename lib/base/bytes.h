/* SPDX-License-Identifier: Apache-2.0 */
/* Immutable bytes shared by reference count across threads, and slices of them: what responses and
 * watch events are made of, so that one encoding serves every reader. */
#pragma once

#include <stdatomic.h>

#include "base/str.h"

/* Embed as a header: whoever owns the memory supplies how it is freed. */
struct bytes {
    atomic_uint refs;
    void (*free)(struct bytes *b);
};

/* A run of bytes, kept alive by owner; owner NULL means static or otherwise outliving the slice. */
struct slice {
    struct str s;
    struct bytes *owner;
};

struct bytes *bytes_ref(struct bytes *b);
/* NULL is allowed. */
void bytes_unref(struct bytes *b);

/* Copies s into a fresh owner with one reference, which the slice carries. */
struct slice slice_copy(struct str s);
/* Takes over heap memory of n bytes, as buf_take() gives it. */
struct slice slice_adopt(char *heap, size_t n);
/* Borrows bytes that outlive every reader, such as a literal. */
static inline struct slice slice_static(struct str s)
{
    return (struct slice){s, NULL};
}
/* A further reference to (a part of) the same bytes. */
struct slice slice_ref(struct slice from);
struct slice slice_sub(struct slice from, size_t begin, size_t end);
void slice_unref(struct slice s);
