/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#define DAY ((int64_t) 24 * 3600)

static void pass(struct fixture *f, int64_t seconds)
{
    atomic_fetch_add(&f->clock.now_us, seconds * SECOND);
}

TEST(what_is_too_old_is_not_read_and_goes)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.max_age_s = 7 * DAY;
    fixture_open(&f);
    for (int i = 0; i < 10; i++) {
        char text[2] = {(char) ('0' + i), 0};
        (void) append_to(&f, 1, TELEMETRY_LOG, text);
        pass(&f, DAY);
    }
    struct uuid device = device_number(1);
    assert_texts(&f, "3 4 5 6 7 8 9 ", .device = &device);
    assert_texts(&f, "3 4 5 6 7 8 9 ", .device = NULL);
    assert_texts(&f, "3 4 5 6 7 8 9 ", .device = &device, .newest = 8);
    telemetry_sweep(f.t);
    /* Each has a file of its own: a file does not span more than a day. */
    assert_int_equal(stats_of(&f).n_segments, 7);
    assert_int_equal(stats_of(&f).n_expired, 3);
    assert_int_equal(fixture_files(&f, ".seg", NULL), 7);
    fixture_done(&f);
}

TEST(ids_go_on_when_everything_expired)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.max_age_s = DAY;
    f.options.segment_bytes = 1;
    fixture_open(&f);
    append_many(&f, 1, 5, 10);
    pass(&f, 3 * DAY);
    telemetry_sweep(f.t);
    assert_texts(&f, "", .device = NULL);
    assert_int_equal(stats_of(&f).n_segments, 1);
    fixture_reopen(&f);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "six"), 6);
    assert_texts(&f, "six ", .device = NULL);
    fixture_done(&f);
}

TEST(a_device_may_have_its_own_age)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.max_age_s = 7 * DAY;
    fixture_open(&f);
    struct uuid brief = device_number(1), lasting = device_number(2);
    telemetry_limit(f.t, &brief, DAY);
    telemetry_limit(f.t, &lasting, 30 * DAY);
    for (int i = 0; i < 10; i++) {
        for (unsigned d = 1; d <= 3; d++)
            (void) append_to(&f, d, TELEMETRY_LOG, "x");
        pass(&f, DAY);
    }
    for (int is_swept = 0; is_swept < 2; is_swept++) {
        assert_int_equal(
            count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS, .device = &brief}),
            1);
        assert_int_equal(count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS,
                                                                     .device = &lasting}),
                         10);
        assert_int_equal(count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS}), 18);
        telemetry_sweep(f.t);
    }
    telemetry_limit(f.t, &lasting, 0);
    assert_int_equal(
        count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS, .device = &lasting}),
        7);
    telemetry_sweep(f.t);
    assert_int_equal(stats_of(&f).n_segments, 7);
    fixture_done(&f);
}

TEST(the_oldest_go_when_there_are_too_many_bytes)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.max_bytes = 200000;
    f.options.segment_bytes = 20000;
    fixture_open(&f);
    append_many(&f, 1, 500, 1000);
    telemetry_sweep(f.t);
    struct telemetry_stats s = stats_of(&f);
    assert_true(s.disk_bytes <= 200000 && s.disk_bytes > 150000);
    size_t n = count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS});
    assert_true(n > 120 && n < 190);
    assert_int_equal(s.n_expired, 500 - n);
    fixture_reopen(&f);
    assert_int_equal(count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS}), n);
    fixture_done(&f);
}

TEST(a_device_has_its_share_of_bytes)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.max_device_bytes = 50 * (1000 + FRAME_BYTES);
    f.options.segment_bytes = 20000;
    fixture_open(&f);
    struct uuid loud = device_number(1), quiet = device_number(2);
    for (int i = 0; i < 10; i++) {
        append_many(&f, 1, 30, 1000);
        append_many(&f, 2, 1, 1000);
    }
    for (int is_again = 0; is_again < 2; is_again++) {
        telemetry_sweep(f.t);
        assert_int_equal(
            count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS, .device = &loud}),
            50);
        assert_int_equal(
            count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS, .device = &quiet}),
            10);
        /* What nobody may read left the disk as well. */
        assert_true(stats_of(&f).disk_bytes < 130000);
        fixture_reopen(&f);
    }
    fixture_done(&f);
}

TEST(a_forgotten_device_stays_forgotten)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.segment_bytes = 20000;
    fixture_open(&f);
    append_many(&f, 1, 100, 1000);
    append_many(&f, 2, 10, 1000);
    append_many(&f, 1, 10, 1000);
    struct uuid gone = device_number(1), stays = device_number(2);
    struct telemetry_query of_gone = {.streams = ALL_STREAMS, .device = &gone};
    struct telemetry_query of_other = {.streams = ALL_STREAMS, .device = &stays};
    telemetry_forget(f.t, &gone);
    assert_int_equal(count_records(&f, &of_gone), 0);
    fixture_reopen(&f);
    assert_int_equal(count_records(&f, &of_gone), 0);
    assert_int_equal(count_records(&f, &of_other), 10);
    /* It comes back as somebody new. */
    (void) append_to(&f, 1, TELEMETRY_LOG, "new");
    append_many(&f, 2, 30, 1000);
    telemetry_sweep(f.t);
    fixture_reopen(&f);
    telemetry_sweep(f.t);
    assert_texts(&f, "new ", .device = &gone);
    assert_int_equal(count_records(&f, &of_other), 40);
    assert_true(stats_of(&f).disk_bytes < 80000);
    /* Whoever was never there costs nothing. */
    struct uuid nobody = device_number(9);
    telemetry_forget(f.t, &nobody);
    assert_null(track_find(f.t, &nobody));
    fixture_done(&f);
}

TEST(a_reader_reads_on_in_a_segment_that_is_rewritten_or_deleted)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.segment_bytes = 50000;
    fixture_open(&f);
    for (int i = 0; i < 20; i++) {
        append_many(&f, 1, 8, 1000);
        append_many(&f, 2, 2, 1000);
    }
    struct uuid gone = device_number(1), stays = device_number(2);
    struct telemetry_query q = {.streams = ALL_STREAMS, .device = &stays};
    struct telemetry_cursor *one = telemetry_read(f.t, &q);
    q.device = NULL;
    struct telemetry_cursor *all = telemetry_read(f.t, &q);
    struct telemetry_record r;
    for (int i = 0; i < 3; i++)
        assert_int_equal(telemetry_next(one, &r), 1);
    for (int i = 0; i < 13; i++)
        assert_int_equal(telemetry_next(all, &r), 1);
    telemetry_forget(f.t, &gone);
    telemetry_sweep(f.t);
    assert_true(stats_of(&f).disk_bytes < 120000);
    size_t n_one = 3, n_all = 0;
    while (telemetry_next(one, &r) > 0)
        n_one++;
    while (telemetry_next(all, &r) > 0)
        n_all++;
    assert_int_equal(n_one, 40);
    assert_int_equal(n_all, 38);
    telemetry_cursor_free(one);
    telemetry_cursor_free(all);
    fixture_done(&f);
}
