/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

/* ---- writes -------------------------------------------------------------------------------- */

TEST(fresh_store_is_at_revision_one_and_counts_on_without_gap)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    assert_int_equal(store_revision(f.store), 1);
    assert_int_equal(store_compacted(f.store), 0);
    assert_int_equal(create(&f, "things/a/x", "1"), 2);
    assert_int_equal(replace(&f, "things/a/x", 2, "2"), 3);
    assert_int_equal(remove_key(&f, "things/a/x", 3), 4);
    assert_int_equal(store_revision(f.store), 4);
    fixture_done(&f);
}

TEST(failed_condition_tells_why_and_uses_no_revision)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t first = create(&f, "things/a/x", "1");

    struct outcome out = write_one(&f, STORE_CREATE, "things/a/x", 0, "2");
    assert_int_equal(out.result, -EEXIST);
    assert_int_equal(out.committed, first);
    out = write_one(&f, STORE_REPLACE, "things/a/x", first + 1, "2");
    assert_int_equal(out.result, -ESTALE);
    assert_int_equal(out.committed, first);
    out = write_one(&f, STORE_REMOVE, "things/a/x", first - 1, "2");
    assert_int_equal(out.result, -ESTALE);
    assert_int_equal(out.committed, first);
    out = write_one(&f, STORE_REPLACE, "things/a/y", first, "2");
    assert_int_equal(out.result, -ENOENT);
    assert_int_equal(out.committed, 0);
    out = write_one(&f, STORE_REMOVE, "things/a/y", first, "2");
    assert_int_equal(out.result, -ENOENT);

    assert_int_equal(store_revision(f.store), first);
    assert_int_equal(create(&f, "things/a/y", "1"), first + 1);
    fixture_done(&f);
}

TEST(key_that_is_none_and_object_too_large_are_refused)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    assert_int_equal(write_one(&f, STORE_CREATE, "things/x", 0, "1").result, -EINVAL);
    char *huge = mem_zalloc(OBJECT_MAX_BYTES + 1);
    memset(huge, 'x', OBJECT_MAX_BYTES);
    assert_int_equal(write_one(&f, STORE_CREATE, "things/a/x", 0, huge).result, -EINVAL);
    huge[OBJECT_MAX_BYTES - 200] = '\0';
    assert_int_equal(write_one(&f, STORE_CREATE, "things/a/x", 0, huge).result, 0);
    mem_free(huge);
    fixture_close(&f);
    fixture_open(&f);
    assert_int_equal(store_count(f.store, STR("things")), 1);
    fixture_done(&f);
}

TEST(removed_key_is_gone_and_can_be_created_again)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t at = remove_key(&f, "things/a/x", create(&f, "things/a/x", "1"));
    assert_null(store_get(f.store, STR("things/a/x")));
    assert_int_equal(write_one(&f, STORE_REPLACE, "things/a/x", at, "2").result, -ENOENT);
    assert_int_equal(create(&f, "things/a/x", "2"), at + 1);
    struct object *o = store_get(f.store, STR("things/a/x"));
    assert_int_equal(o->revision, at + 1);
    assert_true(str_find_str(object_text(o), STR("\"resourceVersion\":\"4\"}")) > 0);
    object_unref(o);
    fixture_done(&f);
}

/* ---- lists --------------------------------------------------------------------------------- */

static const struct store_range things = {.collection = {"things", 6}};

TEST(list_is_in_byte_order_and_of_one_collection)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    (void) create(&f, "things/b/one", "");
    (void) create(&f, "things/a/two", "");
    (void) create(&f, "thing/a/other", "");
    (void) create(&f, "things/a-b/three", "");
    (void) create(&f, "things/a/four", "");
    /* '-' comes before '/'. */
    assert_list(&f, &things, "three:5 four:6 two:3 one:2");
    struct store_range in_a = things;
    in_a.namespace = STR("a");
    assert_list(&f, &in_a, "four:6 two:3");
    in_a.namespace = STR("c");
    assert_list(&f, &in_a, "");
    assert_list(&f, &(struct store_range){.collection = STR("nothing")}, "");
    assert_int_equal(store_count(f.store, STR("things")), 4);
    assert_int_equal(store_count(f.store, STR("nothing")), 0);
    fixture_done(&f);
}

TEST(cluster_wide_keys_have_an_empty_namespace)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    (void) create(&f, "nodes//b", "");
    (void) create(&f, "nodes//a", "");
    assert_list(&f, &(struct store_range){.collection = STR("nodes")}, "a:3 b:2");
    assert_list(&f, &(struct store_range){.collection = STR("nodes"), .namespace = STR("")},
                "a:3 b:2");
    fixture_done(&f);
}

TEST(list_at_a_revision_shows_the_state_then)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t x = create(&f, "things/a/x", "1");      /* 2 */
    int64_t y = create(&f, "things/a/y", "1");      /* 3 */
    int64_t x2 = replace(&f, "things/a/x", x, "2"); /* 4 */
    (void) remove_key(&f, "things/a/y", y);         /* 5 */
    (void) create(&f, "things/a/y", "2");           /* 6 */
    (void) replace(&f, "things/a/x", x2, "3");      /* 7 */

    static const char *const expected[] = {"",    "x:2",     "x:2 y:3", "x:4 y:3",
                                           "x:4", "x:4 y:6", "x:7 y:6"};
    struct store_range range = things;
    for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
        range.at = (int64_t) i + 1;
        assert_list(&f, &range, expected[i]);
    }
    struct store_page page = {0};
    range.at = 8;
    assert_int_equal(store_list(f.store, &range, &page), -EAGAIN);
    fixture_done(&f);
}

static void fill(struct fixture *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char key[32];
        (void) snprintf(key, sizeof(key), "things/%c/%04zu", i % 2 ? 'b' : 'a', i);
        (void) create(f, key, "");
    }
}

TEST(pages_cover_a_snapshot_once_while_it_changes)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    fill(&f, 300);
    int64_t snapshot = store_revision(f.store);
    struct store_range range = things;
    range.limit = 7;
    char after[32] = "";
    size_t n_seen = 0;
    bool has_more = true;
    while (has_more) {
        struct store_page page = {0};
        assert_int_equal(store_list(f.store, &range, &page), 0);
        assert_int_equal(page.revision, snapshot);
        n_seen += page.n;
        assert_int_equal(page.n_remaining, 300 - n_seen);
        has_more = page.has_more;
        assert_true(has_more == (n_seen < 300));
        struct str last =
            object_span(page.objects[page.n - 1], page.objects[page.n - 1]->head.name);
        (void) snprintf(after, sizeof(after), "%c/%.*s", (last.p[3] - '0') % 2 ? 'b' : 'a',
                        STR_ARG(last));
        store_page_done(&page);
        range.after = str_of(after);
        range.at = snapshot;
        /* What happens behind the reader's back, before and after the cursor, is not for this list.
         */
        char key[40];
        (void) snprintf(key, sizeof(key), "things/a/0000-%zu", n_seen);
        (void) create(&f, key, "");
        (void) snprintf(key, sizeof(key), "things/b/9%zu", n_seen);
        (void) create(&f, key, "");
    }
    assert_int_equal(n_seen, 300);
    fixture_done(&f);
}

TEST(remaining_counts_only_the_namespace)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    fill(&f, 600);
    struct store_range range = things;
    range.namespace = STR("a");
    range.limit = 10;
    struct store_page page = {0};
    assert_int_equal(store_list(f.store, &range, &page), 0);
    assert_int_equal(page.n, 10);
    assert_int_equal(page.n_remaining, 290);
    assert_true(page.has_more);
    store_page_done(&page);
    range.after = STR("a/0590");
    assert_int_equal(store_list(f.store, &range, &page), 0);
    assert_int_equal(page.n, 4);
    assert_int_equal(page.n_remaining, 0);
    assert_false(page.has_more);
    store_page_done(&page);
    fixture_done(&f);
}

static bool is_multiple_of_five(void *ctx, const struct object *o)
{
    ++*(size_t *) ctx;
    struct str name = object_span(o, o->head.name);
    return name.p[name.n - 1] == '5' || name.p[name.n - 1] == '0';
}

TEST(filtered_objects_do_not_count_against_the_limit)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    fill(&f, 1000);
    size_t n_asked = 0;
    struct store_range range = things;
    range.filter = is_multiple_of_five;
    range.ctx = &n_asked;
    range.limit = 3;
    range.namespace = STR("a");
    struct store_page page = {0};
    assert_int_equal(store_list(f.store, &range, &page), 0);
    assert_int_equal(page.n, 3);
    assert_str(object_span(page.objects[2], page.objects[2]->head.name), "0020");
    assert_true(page.has_more);
    assert_int_equal(page.n_remaining, -1);
    assert_int_equal(n_asked, 11);
    store_page_done(&page);
    /* More than one chunk, up to the end. */
    range.limit = 100;
    n_asked = 0;
    assert_int_equal(store_list(f.store, &range, &page), 0);
    assert_int_equal(page.n, 100);
    assert_int_equal(n_asked, 496);
    assert_true(page.has_more);
    store_page_done(&page);
    range.limit = 0;
    assert_int_equal(store_list(f.store, &range, &page), 0);
    assert_int_equal(page.n, 100);
    assert_false(page.has_more);
    store_page_done(&page);
    fixture_done(&f);
}

/* ---- history ------------------------------------------------------------------------------- */

TEST(history_is_per_collection_and_bounded_by_its_ends)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t x = create(&f, "things/a/x", "1"); /* 2 */
    (void) create(&f, "others/a/x", "1");      /* 3 */
    x = replace(&f, "things/a/x", x, "2");     /* 4 */
    (void) remove_key(&f, "things/a/x", x);    /* 5 */
    assert_history(&f, "things", 1, 5, "+2 ~4 -5");
    assert_history(&f, "things", 2, 4, "~4");
    assert_history(&f, "things", 5, 5, "");
    assert_history(&f, "others", 1, 100, "+3");
    assert_history(&f, "nothing", 1, 5, "");

    struct store_event **events = NULL;
    size_t n = 0;
    assert_int_equal(store_history(f.store, STR("things"), 1, 5, &events, &n), 0);
    assert_int_equal(n, 3);
    assert_null(events[0]->previous);
    assert_ptr_equal(events[1]->previous, events[0]->object);
    assert_ptr_equal(events[2]->previous, events[1]->object);
    assert_true(str_find_str(object_text(events[2]->object), STR("last state")) > 0);
    for (size_t i = 0; i < n; i++)
        bytes_unref(&events[i]->bytes);
    mem_free(events);
    assert_int_equal(store_history(f.store, STR("things"), 0, 5, &events, &n), -ERANGE);
    fixture_done(&f);
}

TEST(history_and_old_states_survive_a_restart)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t x = create(&f, "things/a/x", "1"); /* 2 */
    (void) create(&f, "things/a/y", "1");      /* 3 */
    x = replace(&f, "things/a/x", x, "2");     /* 4 */
    (void) remove_key(&f, "things/a/x", x);    /* 5 */
    fixture_close(&f);
    fixture_open(&f);
    assert_int_equal(store_revision(f.store), 5);
    assert_history(&f, "things", 1, 5, "+2 +3 ~4 -5");
    struct store_range range = things;
    range.at = 4;
    assert_list(&f, &range, "x:4 y:3");
    assert_int_equal(create(&f, "things/a/x", "3"), 6);
    fixture_done(&f);
}

/* ---- compaction ---------------------------------------------------------------------------- */

TEST(compaction_forgets_versions_removals_and_feeds)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t x = create(&f, "things/a/x", "1"); /* 2 */
    int64_t y = create(&f, "things/a/y", "1"); /* 3 */
    x = replace(&f, "things/a/x", x, "2");     /* 4 */
    (void) remove_key(&f, "things/a/y", y);    /* 5 */
    (void) replace(&f, "things/a/x", x, "3");  /* 6 */
    struct store_stats stats;
    store_stats(f.store, &stats);
    assert_int_equal(stats.n_objects, 1);
    assert_int_equal(stats.n_versions, 5);

    store_compact(f.store, 5);
    assert_int_equal(store_compacted(f.store), 4);
    struct store_range range = things;
    struct store_page page = {0};
    range.at = 4;
    assert_int_equal(store_list(f.store, &range, &page), -ERANGE);
    range.at = 5;
    assert_list(&f, &range, "x:4");
    struct store_event **events = NULL;
    size_t n = 0;
    assert_int_equal(store_history(f.store, STR("things"), 4, 6, &events, &n), -ERANGE);
    assert_history(&f, "things", 5, 6, "~6");
    store_stats(f.store, &stats);
    assert_int_equal(stats.n_versions, 2);
    assert_int_equal(stats.compacted, 4);

    /* Never past the newest: whoever lists now can watch from there. */
    store_compact(f.store, 1000);
    assert_int_equal(store_compacted(f.store), 5);
    assert_history(&f, "things", 6, 6, "");
    store_compact(f.store, 3);
    assert_int_equal(store_compacted(f.store), 5);
    store_stats(f.store, &stats);
    assert_int_equal(stats.n_versions, 1);
    fixture_done(&f);
}

TEST(revision_does_not_go_back_when_the_newest_rows_are_gone)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    int64_t at = remove_key(&f, "things/a/x", create(&f, "things/a/x", "1"));
    store_compact(f.store, at);
    fixture_close(&f);
    fixture_open(&f);
    assert_int_equal(store_revision(f.store), at);
    assert_int_equal(store_compacted(f.store), at - 1);
    assert_int_equal(create(&f, "things/a/x", "1"), at + 1);
    assert_history(&f, "things", at, at + 1, "+4");
    fixture_done(&f);
}

TEST(history_is_bounded_by_age)
{
    struct fixture f;
    fixture_init(&f);
    f.options.history_max_age_ms = 60000;
    fixture_open(&f);
    int64_t x = create(&f, "things/a/x", "1"); /* 2 */
    x = replace(&f, "things/a/x", x, "2");     /* 3 */
    atomic_fetch_add(&f.clock.now_us, 50000000);
    x = replace(&f, "things/a/x", x, "3"); /* 4 */
    atomic_fetch_add(&f.clock.now_us, 20000000);
    /* History is looked at after a group is answered: the second write sees the first one's effect.
     */
    x = replace(&f, "things/a/x", x, "4"); /* 5 */
    x = replace(&f, "things/a/x", x, "5"); /* 6 */
    assert_int_equal(store_compacted(f.store), 2);
    assert_history(&f, "things", 3, 6, "~4 ~5 ~6");
    fixture_done(&f);
}

TEST(history_is_bounded_by_bytes_of_superseded_versions)
{
    struct fixture f;
    fixture_init(&f);
    f.options.history_max_bytes = 20000;
    fixture_open(&f);
    char data[1001] = {0};
    memset(data, 'x', sizeof(data) - 1);
    int64_t x = create(&f, "things/a/x", data);
    for (int i = 0; i < 100; i++)
        x = replace(&f, "things/a/x", x, data);
    (void) create(&f, "things/a/y", "");
    struct store_stats stats;
    store_stats(f.store, &stats);
    assert_true(stats.n_versions > 10 && stats.n_versions < 22);
    assert_true(stats.compacted > 80 && stats.compacted < x);
    fixture_done(&f);
}

/* ---- followers ----------------------------------------------------------------------------- */

struct recorder {
    struct store_follower follower;
    struct buf seen;
    int64_t revision;
};

static void record(struct store_follower *f, struct store_event *const *events, size_t n,
                   int64_t revision)
{
    struct recorder *rec = CONTAINER_OF(f, struct recorder, follower);
    for (size_t i = 0; i < n; i++)
        buf_printf(&rec->seen, "%c%" PRId64 " ", "+~-"[events[i]->type], events[i] -> revision);
    rec->revision = revision;
}

TEST(follower_sees_what_comes_after_its_start_and_nothing_after_its_end)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    struct recorder rec = {.follower = {.on_events = record}};
    int64_t x = create(&f, "things/a/x", "1");
    int64_t from = 0;
    store_follow(f.store, &rec.follower, &from);
    assert_int_equal(from, x);
    x = replace(&f, "things/a/x", x, "2");
    (void) create(&f, "others/a/x", "2");
    (void) write_one(&f, STORE_CREATE, "others/a/x", 0, "2");
    (void) remove_key(&f, "things/a/x", x);
    store_unfollow(f.store, &rec.follower);
    (void) create(&f, "others/a/y", "2");
    assert_str(buf_str(&rec.seen), "~3 +4 -5 ");
    assert_int_equal(rec.revision, 5);
    buf_done(&rec.seen);
    fixture_done(&f);
}
