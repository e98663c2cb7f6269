/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that dies together. A request owns one; what it allocates is never freed singly. Not for
 * sharing between threads. */
#pragma once

#include <stdarg.h>

#include "base/str.h"

struct arena;

struct arena *arena_new(void);
/* With a first block of that size: for an arena that is reset and used again for much the same, and
 * for a small one that is kept. */
struct arena *arena_new_with(size_t first_block_bytes);
void arena_free(struct arena *a);
DEFINE_CLEANUP(struct arena *, arena_free)
/* Frees everything allocated from it and keeps one block for reuse. */
void arena_reset(struct arena *a);

/* Aligned for any type; not zeroed. */
void *arena_alloc(struct arena *a, size_t n_bytes);
void *arena_zalloc(struct arena *a, size_t n_bytes);
/* Grows the block at p from old_bytes; in place when it was the last allocation. */
void *arena_realloc(struct arena *a, void *p, size_t old_bytes, size_t new_bytes);
/* Where the n items at p go so that one more fits behind them: room doubles whenever n is a power
 * of two, so appending costs linear time and memory. p NULL: none yet. Only for arrays that always
 * grew this way. */
void *arena_grow(struct arena *a, void *p, size_t n, size_t item_bytes);
/* Copies; the copy has a NUL after it. */
struct str arena_str(struct arena *a, struct str s);
char *arena_strz(struct arena *a, struct str s);
/* The parts in one string, with a NUL after it; for what is made too often to be printed. */
struct str arena_join(struct arena *a, const struct str *parts, size_t n_parts);
struct str arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
struct str arena_vprintf(struct arena *a, const char *format, va_list args) PRINTF_LIKE(2, 0);
/* Calls fn(p) when the arena is freed or reset, the latest first: for the little that an arena's
 * memory cannot hold itself, such as code a library generates. */
void arena_on_free(struct arena *a, void (*fn)(void *p), void *p);
/* Bytes handed out since the last reset. */
size_t arena_used(const struct arena *a);

#define ARENA_NEW(a, type) ((type *) arena_zalloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *) arena_zalloc((a), sizeof(type) * (size_t) (n)))
#define ARENA_AUTO CLEANUP(arena_freep) struct arena *
