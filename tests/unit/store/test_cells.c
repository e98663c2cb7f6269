/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "store/cells.h"
#include "test.h"

#define N_CELLS 4000
#define PAGE_BYTES ((size_t) 256 * 1024)

struct cell {
    unsigned char *p;
    size_t n;
    unsigned char mark;
};

static void fill(struct cell *c, size_t n, unsigned char mark)
{
    *c = (struct cell){cell_alloc(n), n, mark};
    memset(c->p, mark, n);
}

static void check_and_free(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++)
        assert_int_equal(c->p[i], c->mark);
    cell_free(c->p, c->n);
    *c = (struct cell){0};
}

TEST(every_size_is_aligned_and_its_own)
{
    static struct cell cells[CELL_MAX_BYTES / 7 + 3];
    size_t n_cells = 0;
    for (size_t n = 1; n <= CELL_MAX_BYTES + 14; n += 7) {
        fill(&cells[n_cells], n, (unsigned char) (n * 31));
        assert_int_equal((uintptr_t) cells[n_cells++].p % _Alignof(max_align_t), 0);
    }
    for (size_t i = 0; i < n_cells; i++)
        check_and_free(&cells[i]);
}

TEST(freed_cells_are_used_again_and_empty_pages_go)
{
    static void *cells[N_CELLS];
    size_t before = cell_page_bytes();
    for (size_t i = 0; i < N_CELLS; i++)
        cells[i] = cell_alloc(3000);
    size_t full = cell_page_bytes();
    assert_true(full - before + PAGE_BYTES >= (size_t) N_CELLS * 3000);
    assert_true(full - before <= (size_t) N_CELLS * 3000 * 11 / 10);
    for (size_t i = 0; i < N_CELLS; i += 2)
        cell_free(cells[i], 3000);
    for (size_t i = 0; i < N_CELLS; i += 2)
        cells[i] = cell_alloc(2999);
    assert_int_equal(cell_page_bytes(), full);
    for (size_t i = 0; i < N_CELLS; i++)
        cell_free(cells[i], i % 2 ? 3000 : 2999);
    assert_true(cell_page_bytes() <= before + PAGE_BYTES);
}

/* What one thread makes another lets go of. */
static void *churn(void *arg)
{
    struct cell *cells = arg;
    for (size_t i = 0; i < N_CELLS; i++) {
        struct cell *c = &cells[i % 50];
        if (c->p)
            check_and_free(c);
        fill(c, 100 + i * 13 % 5000, (unsigned char) i);
    }
    return NULL;
}

TEST(threads_share_pages)
{
    static struct cell cells[4][50];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, cells[i]), 0);
    for (size_t i = 0; i < 4; i++)
        (void) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 50; k++)
            check_and_free(&cells[i][k]);
}

TEST(nothing_is_freed_quietly)
{
    cell_free(NULL, 100);
}
