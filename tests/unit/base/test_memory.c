/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/list.h"
#include "base/map.h"

TEST(arena_grows_in_place_and_survives_reset)
{
    ARENA_AUTO a = arena_new();
    char *p = arena_alloc(a, 16);
    memset(p, 'x', 16);
    char *grown = arena_realloc(a, p, 16, 64);
    assert_ptr_equal(grown, p);
    (void) arena_alloc(a, 8);
    char *moved = arena_realloc(a, grown, 64, 4096);
    assert_ptr_not_equal(moved, grown);
    assert_int_equal(moved[15], 'x');
    for (int i = 0; i < 1000; i++)
        assert_int_equal((uintptr_t) arena_alloc(a, 7) % _Alignof(max_align_t), 0);
    arena_reset(a);
    assert_int_equal(arena_used(a), 0);
    assert_str(arena_printf(a, "%s-%d", "a", 7), "a-7");
}

TEST(arena_joins_parts_absent_ones_too)
{
    ARENA_AUTO a = arena_new();
    const struct str parts[] = {STR("things/"), STR_NONE, STR("/"), STR("one")};
    struct str joined = arena_join(a, parts, N_ELEMENTS(parts));
    assert_str(joined, "things//one");
    assert_int_equal(joined.p[joined.n], 0);
    assert_int_equal(arena_join(a, NULL, 0).n, 0);
}

TEST(growing_array_costs_linear_memory)
{
    ARENA_AUTO a = arena_new();
    uint64_t *items = NULL;
    for (size_t i = 0; i < 10000; i++) {
        items = arena_grow(a, items, i, sizeof(*items));
        items[i] = i;
        (void) arena_alloc(a, 1); /* so that it never grows in place */
    }
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(items[i], i);
    assert_true(arena_used(a) < 10000 * 16 + 4 * 10000 * sizeof(*items));
}

TEST(slices_share_one_owner)
{
    struct slice whole = slice_copy(STR("hello world"));
    struct slice part = slice_sub(whole, 6, 99);
    slice_unref(whole);
    assert_str(part.s, "world");
    slice_unref(part);
    struct slice adopted = slice_adopt(mem_strdup("abc"), 3);
    struct slice again = slice_ref(adopted);
    slice_unref(adopted);
    assert_str(again.s, "abc");
    slice_unref(again);
    slice_unref(slice_static(STR("static")));
}

#define N_KEYS 5000

TEST(map_keeps_what_was_put_and_not_removed)
{
    CLEANUP(map_done) struct map m = {0};
    char(*keys)[16] = mem_zalloc(sizeof(*keys) * N_KEYS);
    for (size_t i = 0; i < N_KEYS; i++) {
        (void) snprintf(keys[i], sizeof(keys[i]), "key-%zu", i);
        assert_null(map_put(&m, str_of(keys[i]), keys[i]));
    }
    assert_ptr_equal(map_put(&m, STR("key-7"), keys[8]), keys[7]);
    for (size_t i = 0; i < N_KEYS; i += 2)
        assert_non_null(map_remove(&m, str_of(keys[i])));
    for (size_t i = 0; i < N_KEYS; i++)
        assert_int_equal(map_get(&m, str_of(keys[i])) != NULL, i % 2 == 1);
    size_t position = 0, n = 0;
    struct map_entry entry;
    while (map_next(&m, &position, &entry))
        n++;
    assert_int_equal(n, N_KEYS / 2);
    assert_int_equal(m.n_items, N_KEYS / 2);
    assert_null(map_remove(&m, STR("absent")));
    mem_free(keys);
}

struct item {
    struct list link;
    int value;
};

TEST(list_may_lose_the_current_item_while_walked)
{
    struct list head;
    struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
    list_init(&head);
    for (size_t i = 0; i < 4; i++)
        list_append(&head, &items[i].link);
    LIST_FOR_EACH (&head, link)
        if (CONTAINER_OF(link, struct item, link)->value % 2)
            list_remove(link);
    assert_int_equal(CONTAINER_OF(list_pop_first(&head), struct item, link)->value, 0);
    assert_int_equal(CONTAINER_OF(list_pop_first(&head), struct item, link)->value, 2);
    assert_null(list_pop_first(&head));
    assert_true(list_is_empty(&head));
}

static void append_mark(void *p)
{
    struct buf **mark = p;
    buf_append_char(*mark, 'x');
}

TEST(an_arena_calls_back_at_its_end_once)
{
    BUF_AUTO marks = {0};
    struct arena *a = arena_new();
    for (int i = 0; i < 2; i++) {
        struct buf **mark = arena_alloc(a, sizeof(*mark));
        *mark = &marks;
        arena_on_free(a, append_mark, mark);
    }
    assert_int_equal(marks.n, 0);
    arena_reset(a);
    assert_int_equal(marks.n, 2);
    arena_free(a);
    assert_int_equal(marks.n, 2);
}
