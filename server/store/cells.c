/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cells.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/list.h"

/* A page is aligned to its size: a cell finds its page by its address. Not all of it is touched at
 * once. */
#define PAGE_BYTES ((size_t) 256 * 1024)
#define MIN_POWER 7 /* cells of 128 bytes are the smallest */
#define MAX_POWER 14
#define STEPS_PER_POWER 32 /* a cell is at most a thirty-second larger than what is in it */
#define CELL_ALIGN _Alignof(max_align_t)
#define N_SIZES ((MAX_POWER - MIN_POWER) * STEPS_PER_POWER)
_Static_assert(CELL_MAX_BYTES == (size_t) 1 << MAX_POWER, "the largest cell");

struct page {
    struct list link; /* in the pages of its size that have room */
    void *free;       /* chained through their first bytes */
    uint32_t n_used, n_carved, capacity;
    uint32_t cell_bytes;
    _Alignas(max_align_t) char cells[];
};

static struct {
    pthread_mutex_t lock;
    struct list with_room[N_SIZES]; /* made at first use: next is NULL before */
    size_t n_pages;
} cells = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Which of the sizes, and how large its cells are. */
static size_t size_of(size_t n_bytes, uint32_t *ret_cell_bytes)
{
    size_t n = MAX(n_bytes, ((size_t) 1 << MIN_POWER) + 1);
    unsigned power = 63 - (unsigned) __builtin_clzll(n - 1);
    size_t base = (size_t) 1 << power, step = MAX(base / STEPS_PER_POWER, CELL_ALIGN);
    size_t n_steps = (n - base + step - 1) / step;
    *ret_cell_bytes = (uint32_t) (base + n_steps * step);
    return (power - MIN_POWER) * STEPS_PER_POWER + n_steps - 1;
}

static char *map(size_t n_bytes)
{
    char *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        return p;
    fprintf(stderr, "out of memory\n");
    abort();
}

static size_t n_to_alignment(const char *p)
{
    return -(uintptr_t) p & (PAGE_BYTES - 1);
}

/* The kernel places one mapping beside the last: behind an aligned one the next is, and the two
 * count as one. */
static void *map_aligned(void)
{
    char *p = map(PAGE_BYTES);
    if (n_to_alignment(p) == 0)
        return p;
    (void) munmap(p, PAGE_BYTES);
    p = map(2 * PAGE_BYTES);
    size_t n_before = n_to_alignment(p);
    if (n_before)
        (void) munmap(p, n_before);
    (void) munmap(p + n_before + PAGE_BYTES, PAGE_BYTES - n_before);
    return p + n_before;
}

static struct page *page_new(size_t size, uint32_t cell_bytes)
{
    struct page *page = map_aligned();
    page->cell_bytes = cell_bytes;
    page->capacity = (uint32_t) ((PAGE_BYTES - sizeof(*page)) / cell_bytes);
    list_append(&cells.with_room[size], &page->link);
    cells.n_pages++;
    return page;
}

static struct page *page_with_room(size_t size, uint32_t cell_bytes)
{
    struct list *pages = &cells.with_room[size];
    if (!pages->next)
        list_init(pages);
    return list_is_empty(pages) ? page_new(size, cell_bytes)
                                : CONTAINER_OF(pages->next, struct page, link);
}

static void *take(struct page *page)
{
    void *p = page->free;
    if (p)
        memcpy(&page->free, p, sizeof(page->free));
    else
        p = page->cells + (size_t) page->n_carved++ * page->cell_bytes;
    if (++page->n_used == page->capacity)
        list_remove(&page->link);
    return p;
}

void *cell_alloc(size_t n_bytes)
{
    if (n_bytes > CELL_MAX_BYTES)
        return mem_alloc(n_bytes);
    uint32_t cell_bytes = 0;
    size_t size = size_of(n_bytes, &cell_bytes);
    (void) pthread_mutex_lock(&cells.lock);
    void *p = take(page_with_room(size, cell_bytes));
    (void) pthread_mutex_unlock(&cells.lock);
    return p;
}

/* An empty page is kept only while its size has no other with room. */
static bool put_back(struct page *page, void *p, size_t size)
{
    memcpy(p, &page->free, sizeof(page->free));
    page->free = p;
    if (page->n_used-- == page->capacity)
        list_append(&cells.with_room[size], &page->link);
    bool is_alone =
        cells.with_room[size].next == &page->link && page->link.next == &cells.with_room[size];
    if (page->n_used > 0 || is_alone)
        return false;
    list_remove(&page->link);
    cells.n_pages--;
    return true;
}

void cell_free(void *p, size_t n_bytes)
{
    if (!p || n_bytes > CELL_MAX_BYTES) {
        mem_free(p);
        return;
    }
    uint32_t cell_bytes = 0;
    size_t size = size_of(n_bytes, &cell_bytes);
    struct page *page = (struct page *) ((uintptr_t) p & ~(uintptr_t) (PAGE_BYTES - 1));
    (void) pthread_mutex_lock(&cells.lock);
    bool is_unused = put_back(page, p, size);
    (void) pthread_mutex_unlock(&cells.lock);
    if (is_unused)
        (void) munmap(page, PAGE_BYTES);
}

size_t cell_page_bytes(void)
{
    (void) pthread_mutex_lock(&cells.lock);
    size_t n = cells.n_pages * PAGE_BYTES;
    (void) pthread_mutex_unlock(&cells.lock);
    return n;
}
