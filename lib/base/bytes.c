/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include "base/alloc.h"

struct adopted {
    struct bytes bytes;
    char *heap;
};

struct inlined {
    struct bytes bytes;
    char copy[];
};

struct bytes *bytes_ref(struct bytes *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void bytes_unref(struct bytes *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        b->free(b);
}

static void inlined_free(struct bytes *b)
{
    mem_free(CONTAINER_OF(b, struct inlined, bytes));
}

static void adopted_free(struct bytes *b)
{
    struct adopted *a = CONTAINER_OF(b, struct adopted, bytes);
    mem_free(a->heap);
    mem_free(a);
}

struct slice slice_copy(struct str s)
{
    struct inlined *in = mem_alloc(sizeof(*in) + s.n);
    in->bytes.free = inlined_free;
    atomic_init(&in->bytes.refs, 1);
    if (s.n)
        memcpy(in->copy, s.p, s.n);
    return (struct slice){str_range(in->copy, s.n), &in->bytes};
}

struct slice slice_adopt(char *heap, size_t n)
{
    struct adopted *a = NEW(struct adopted);
    a->bytes.free = adopted_free;
    atomic_init(&a->bytes.refs, 1);
    a->heap = heap;
    return (struct slice){str_range(heap, n), &a->bytes};
}

struct slice slice_ref(struct slice from)
{
    bytes_ref(from.owner);
    return from;
}

struct slice slice_sub(struct slice from, size_t begin, size_t end)
{
    return (struct slice){str_sub(from.s, begin, end), bytes_ref(from.owner)};
}

void slice_unref(struct slice s)
{
    bytes_unref(s.owner);
}
