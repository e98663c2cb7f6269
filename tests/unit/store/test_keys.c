/* SPDX-License-Identifier: Apache-2.0 */
#include "store/keys.h"

#include <stdio.h>

#include "test.h"

#define N_KEYS 5000

static struct object *make(void)
{
    struct object_head head = {.revision_at = 1};
    return object_new(STR("\"\""), &head);
}

static struct str name(char out[16], int i)
{
    return str_range(out, (size_t) snprintf(out, 16, "ns/%05d", i));
}

static void put(struct keys *k, int i, bool exists)
{
    char key[16];
    struct object *previous = NULL;
    (void) keys_put(k, name(key, i), exists ? make() : NULL, i, &previous);
    object_unref(previous);
}

/* Every block counts what it holds, is not empty, and the whole is in order. Returns how many
 * entries there are. */
static size_t check(const struct keys *k)
{
    size_t n = 0, n_live = 0;
    const struct entry *before = NULL;
    for (size_t b = 0; b < k->n_blocks; b++) {
        size_t live_here = 0;
        assert_true(k->blocks[b]->n > 0);
        for (uint32_t i = 0; i < k->blocks[b]->n; i++, n++) {
            const struct entry *e = k->blocks[b]->slots[i].entry;
            assert_true(!before || str_cmp(entry_key(before), entry_key(e)) < 0);
            live_here += k->blocks[b]->slots[i].newest != NULL;
            before = e;
        }
        assert_int_equal(live_here, k->blocks[b]->n_live);
        n_live += live_here;
    }
    assert_int_equal(n_live, k->n_live);
    return n;
}

TEST(keys_stay_in_order_however_they_come)
{
    static const int steps[] = {1, 7, 1999,
                                N_KEYS - 1}; /* each has no divisor in common with N_KEYS */
    for (size_t s = 0; s < N_ELEMENTS(steps); s++) {
        struct keys k = {0};
        for (int i = 0, at = 0; i < N_KEYS; i++, at = (at + steps[s]) % N_KEYS)
            put(&k, at, true);
        assert_int_equal(check(&k), N_KEYS);
        put(&k, 17, true);
        assert_int_equal(check(&k), N_KEYS);
        keys_done(&k);
    }
}

TEST(seek_finds_the_first_not_before_and_the_first_behind)
{
    struct keys k = {0};
    char key[16];
    for (int i = 0; i < N_KEYS; i += 2)
        put(&k, i, true);
    for (int i = 0; i < N_KEYS - 2; i++) {
        int at = (i + 1) / 2 * 2, behind = i / 2 * 2 + 2;
        char expected[16];
        (void) name(expected, at);
        assert_str(entry_key(keys_at(&k, keys_seek(&k, name(key, i)))->entry), expected);
        (void) name(expected, behind);
        assert_str(entry_key(keys_at(&k, keys_seek_behind(&k, name(key, i)))->entry), expected);
    }
    assert_null(keys_at(&k, keys_seek(&k, STR("nt"))));
    assert_null(keys_at(&k, keys_seek_end(&k, STR("ns/"))));
    assert_str(entry_key(keys_at(&k, keys_seek(&k, STR("")))->entry), "ns/00000");
    assert_null(keys_find(&k, STR("ns/00001")));
    assert_non_null(keys_find(&k, STR("ns/00002")));
    keys_done(&k);
}

TEST(removal_leaves_no_trail_of_small_blocks)
{
    struct keys k = {0};
    char key[16];
    for (int i = 0; i < N_KEYS; i++)
        put(&k, i, true);
    for (int i = 0; i < N_KEYS; i++) {
        if (i % 100 == 0)
            continue;
        put(&k, i, false);
        keys_remove(&k, keys_find(&k, name(key, i))->entry);
    }
    assert_int_equal(check(&k), N_KEYS / 100);
    assert_true(k.n_blocks <= 4);
    for (int i = 0; i < N_KEYS; i += 100) {
        put(&k, i, false);
        keys_remove(&k, keys_find(&k, name(key, i))->entry);
    }
    assert_int_equal(check(&k), 0);
    assert_int_equal(k.n_blocks, 0);
    keys_done(&k);
}

TEST(removed_entry_stays_but_does_not_count)
{
    struct keys k = {0};
    put(&k, 1, true);
    put(&k, 2, true);
    put(&k, 1, false);
    assert_int_equal(check(&k), 2);
    assert_int_equal(k.n_live, 1);
    put(&k, 1, true);
    assert_int_equal(check(&k), 2);
    assert_int_equal(k.n_live, 2);
    keys_done(&k);
}
