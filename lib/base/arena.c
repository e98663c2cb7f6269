/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdio.h>

#include "base/alloc.h"

#define ARENA_BLOCK_BYTES ((size_t) 8 * 1024)
#define ARENA_MIN_BLOCK_BYTES ((size_t) 128)
#define ARENA_MAX_BLOCK_BYTES ((size_t) 1024 * 1024)
#define ARENA_ALIGN _Alignof(max_align_t)

struct block {
    struct block *older;
    size_t capacity;
    size_t used;
    _Alignas(max_align_t) char bytes[];
};

/* What to call at the end; lives in the arena. */
struct ending {
    void (*fn)(void *p);
    void *p;
    struct ending *earlier;
};

struct arena {
    struct block *newest;
    size_t used;
    struct ending *endings;
};

static struct block *block_new(size_t capacity, struct block *older)
{
    struct block *b = mem_alloc(sizeof(*b) + capacity);
    b->older = older;
    b->capacity = capacity;
    b->used = 0;
    return b;
}

struct arena *arena_new_with(size_t first_block_bytes)
{
    struct arena *a = NEW(struct arena);
    a->newest = block_new(MAX(first_block_bytes, ARENA_MIN_BLOCK_BYTES), NULL);
    return a;
}

struct arena *arena_new(void)
{
    return arena_new_with(ARENA_BLOCK_BYTES);
}

static void run_endings(struct arena *a)
{
    struct ending *e = a->endings;
    a->endings = NULL;
    for (; e; e = e->earlier)
        e->fn(e->p);
}

void arena_on_free(struct arena *a, void (*fn)(void *p), void *p)
{
    struct ending *e = arena_alloc(a, sizeof(*e));
    *e = (struct ending){.fn = fn, .p = p, .earlier = a->endings};
    a->endings = e;
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    run_endings(a);
    for (struct block *b = a->newest; b;) {
        struct block *older = b->older;
        mem_free(b);
        b = older;
    }
    mem_free(a);
}

void arena_reset(struct arena *a)
{
    run_endings(a);
    struct block *first = a->newest;
    while (first->older) {
        struct block *older = first->older;
        mem_free(first);
        first = older;
    }
    first->used = 0;
    a->newest = first;
    a->used = 0;
}

static size_t align_up(size_t n)
{
    return (n + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
}

void *arena_alloc(struct arena *a, size_t n_bytes)
{
    size_t n = align_up(MAX(n_bytes, (size_t) 1));
    struct block *b = a->newest;
    if (n > b->capacity - b->used) {
        size_t capacity = MIN(b->capacity * 2, ARENA_MAX_BLOCK_BYTES);
        b = a->newest = block_new(MAX(capacity, n), b);
    }
    void *p = b->bytes + b->used;
    b->used += n;
    a->used += n;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n_bytes)
{
    return memset(arena_alloc(a, n_bytes), 0, n_bytes);
}

void *arena_realloc(struct arena *a, void *p, size_t old_bytes, size_t new_bytes)
{
    struct block *b = a->newest;
    size_t old_room = align_up(MAX(old_bytes, (size_t) 1));
    size_t new_room = align_up(MAX(new_bytes, (size_t) 1));
    if (p && new_room <= old_room)
        return p;
    bool is_last = p && (char *) p + old_room == b->bytes + b->used;
    if (is_last && new_room - old_room <= b->capacity - b->used) {
        b->used += new_room - old_room;
        a->used += new_room - old_room;
        return p;
    }
    void *grown = arena_alloc(a, new_bytes);
    if (p && old_bytes)
        memcpy(grown, p, old_bytes);
    return grown;
}

void *arena_grow(struct arena *a, void *p, size_t n, size_t item_bytes)
{
    bool is_full = (n & (n - 1)) == 0;
    return is_full ? arena_realloc(a, p, n * item_bytes, MAX(n * 2, (size_t) 1) * item_bytes) : p;
}

char *arena_strz(struct arena *a, struct str s)
{
    char *copy = arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

struct str arena_str(struct arena *a, struct str s)
{
    return str_range(arena_strz(a, s), s.n);
}

struct str arena_join(struct arena *a, const struct str *parts, size_t n_parts)
{
    size_t n = 0;
    for (size_t i = 0; i < n_parts; i++)
        n += parts[i].n;
    char *joined = arena_alloc(a, n + 1), *p = joined;
    for (size_t i = 0; i < n_parts; i++)
        if (parts[i].n)
            p = mempcpy(p, parts[i].p, parts[i].n);
    *p = '\0';
    return str_range(joined, n);
}

struct str arena_vprintf(struct arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    size_t length = n > 0 ? (size_t) n : 0;
    char *p = arena_alloc(a, length + 1);
    p[0] = '\0';
    if (length > 0)
        (void) vsnprintf(p, length + 1, format, again);
    va_end(again);
    return str_range(p, length);
}

struct str arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str s = arena_vprintf(a, format, args);
    va_end(args);
    return s;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}
