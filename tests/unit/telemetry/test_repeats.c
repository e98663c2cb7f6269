/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static int64_t upload(struct fixture *f, unsigned device, unsigned app, unsigned char mark)
{
    unsigned char digest[TELEMETRY_DIGEST_BYTES];
    memset(digest, mark, sizeof(digest));
    char text[] = {(char) mark, 0};
    struct telemetry_record r = {.device = device_number(device),
                                 .stream = app ? TELEMETRY_APP_LOG : TELEMETRY_LOG,
                                 .form = TELEMETRY_GZIP,
                                 .digest = digest,
                                 .bytes = str_of(text)};
    if (app)
        r.app = device_number(1000 + app);
    return append_record(f, &r);
}

static uint64_t n_repeats(struct fixture *f)
{
    struct telemetry_stats stats;
    telemetry_stats(f->t, &stats);
    return stats.n_repeats;
}

static void assert_kept(struct fixture *f, unsigned device, const char *expected)
{
    struct uuid u = device_number(device);
    char *texts = read_texts(f, &(struct telemetry_query){.device = &u, .streams = ALL_STREAMS});
    assert_string_equal(texts, expected);
    mem_free(texts);
}

TEST(a_repeat_is_answered_as_the_first_and_kept_once)
{
    struct fixture f;
    fixture_init(&f);
    int64_t first = upload(&f, 1, 0, 'a');
    assert_int_equal(upload(&f, 1, 0, 'a'), first);
    assert_int_equal(upload(&f, 1, 0, 'a'), first);
    int64_t second = upload(&f, 1, 0, 'b');
    assert_true(second > first);
    assert_int_equal(upload(&f, 1, 0, 'b'), second);
    assert_kept(&f, 1, "a b ");
    assert_int_equal(n_repeats(&f), 3);
    fixture_done(&f);
}

TEST(only_the_last_of_a_stream_is_repeated)
{
    struct fixture f;
    fixture_init(&f);
    int64_t first = upload(&f, 1, 0, 'a');
    assert_true(upload(&f, 1, 0, 'b') > first);
    assert_true(upload(&f, 1, 0, 'a') > first);
    assert_kept(&f, 1, "a b a ");
    fixture_done(&f);
}

TEST(devices_and_applications_repeat_only_themselves)
{
    struct fixture f;
    fixture_init(&f);
    int64_t own = upload(&f, 1, 0, 'a'), app = upload(&f, 1, 7, 'a'), other = upload(&f, 1, 8, 'a');
    int64_t neighbour = upload(&f, 2, 0, 'a');
    assert_true(own < app && app < other && other < neighbour);
    assert_int_equal(upload(&f, 1, 8, 'a'), other);
    assert_int_equal(upload(&f, 1, 0, 'a'), own);
    assert_int_equal(upload(&f, 2, 0, 'a'), neighbour);
    assert_kept(&f, 1, "a a a ");
    fixture_done(&f);
}

TEST(records_without_digest_are_always_kept)
{
    struct fixture f;
    fixture_init(&f);
    int64_t first = append_to(&f, 1, TELEMETRY_LOG, "x");
    assert_true(append_to(&f, 1, TELEMETRY_LOG, "x") > first);
    assert_int_equal(n_repeats(&f), 0);
    fixture_done(&f);
}

/* In one group, and behind one. */
TEST(a_repeat_waits_for_its_first)
{
    struct fixture f;
    fixture_init(&f);
    for (int turn = 0; turn < 20; turn++) {
        struct waiting w;
        waiting_init(&w);
        unsigned char digest[TELEMETRY_DIGEST_BYTES] = {(unsigned char) turn, 1};
        struct telemetry_record r = {
            .device = device_number(3), .digest = digest, .bytes = STR("z")};
        for (int i = 0; i < 10; i++)
            telemetry_append(f.t, &r, NULL, waiting_done, &w);
        int64_t id = waiting_for(&w, 10);
        assert_int_equal(append_record(&f, &r), id);
    }
    assert_int_equal(n_repeats(&f), 20 * 10);
    fixture_done(&f);
}

TEST(after_a_start_the_last_is_told_by_who_reads_it)
{
    struct fixture f;
    fixture_init(&f);
    int64_t first = upload(&f, 1, 0, 'a');
    fixture_reopen(&f);
    unsigned char digest[TELEMETRY_DIGEST_BYTES];
    memset(digest, 'a', sizeof(digest));
    struct telemetry_record last = {.device = device_number(1),
                                    .stream = TELEMETRY_LOG,
                                    .id = (uint64_t) first,
                                    .digest = digest};
    assert_false(telemetry_remembers(f.t, &last));
    telemetry_remember(f.t, &last);
    assert_true(telemetry_remembers(f.t, &last));
    assert_int_equal(upload(&f, 1, 0, 'a'), first);
    /* What came meanwhile is newer than what was read. */
    int64_t second = upload(&f, 1, 0, 'b');
    telemetry_remember(f.t, &last);
    assert_int_equal(upload(&f, 1, 0, 'b'), second);
    fixture_done(&f);
}

TEST(what_is_forgotten_is_kept_again)
{
    struct fixture f;
    fixture_init(&f);
    int64_t first = upload(&f, 1, 0, 'a');
    struct uuid u = device_number(1);
    telemetry_forget(f.t, &u);
    assert_true(upload(&f, 1, 0, 'a') > first);
    assert_kept(&f, 1, "a ");
    fixture_done(&f);
}

TEST(so_many_streams_of_a_device_are_remembered)
{
    struct fixture f;
    fixture_init(&f);
    int64_t ids[TELEMETRY_MAX_REMEMBERED + 2] = {0};
    for (unsigned app = 1; app <= TELEMETRY_MAX_REMEMBERED + 1; app++)
        ids[app] = upload(&f, 1, app, 'a');
    for (unsigned app = TELEMETRY_MAX_REMEMBERED + 1; app > 1; app--)
        assert_int_equal(upload(&f, 1, app, 'a'), ids[app]);
    assert_true(upload(&f, 1, 1, 'a') > ids[TELEMETRY_MAX_REMEMBERED + 1]);
    fixture_done(&f);
}
