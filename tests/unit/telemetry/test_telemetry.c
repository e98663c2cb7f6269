/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static const struct uuid *device_at(unsigned i)
{
    static struct uuid devices[64];
    devices[i % 64] = device_number(i);
    return &devices[i % 64];
}

TEST(records_are_read_in_order)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "a"), 1);
    assert_int_equal(append_to(&f, 2, TELEMETRY_LOG, "b"), 2);
    assert_int_equal(append_to(&f, 1, TELEMETRY_INFO, "c"), 3);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, ""), 4);
    assert_texts(&f, "a b c  ", .device = NULL);
    assert_texts(&f, "a c  ", .device = device_at(1));
    assert_texts(&f, "b ", .device = device_at(2));
    assert_texts(&f, "", .device = device_at(3));
    fixture_done(&f);
}

TEST(a_record_keeps_all_it_was_given)
{
    struct fixture f;
    fixture_init(&f);
    struct telemetry_record r = {.device = device_number(7),
                                 .app = device_number(8),
                                 .stream = TELEMETRY_APP_LOG,
                                 .form = TELEMETRY_GZIP,
                                 .device_us = 123456789,
                                 .bytes = STR("\0\x1f\x8b")};
    assert_int_equal(append_record(&f, &r), 1);
    fixture_reopen(&f);
    struct telemetry_query q = {.streams = 1u << TELEMETRY_APP_LOG};
    struct telemetry_cursor *c = telemetry_read(f.t, &q);
    struct telemetry_record got;
    assert_int_equal(telemetry_next(c, &got), 1);
    assert_true(uuid_eq(&got.device, &r.device) && uuid_eq(&got.app, &r.app));
    assert_int_equal(got.stream, TELEMETRY_APP_LOG);
    assert_int_equal(got.form, TELEMETRY_GZIP);
    assert_int_equal(got.device_us, 123456789);
    assert_int_equal(got.arrived_us, 1000 * SECOND);
    assert_true(str_eq(got.bytes, r.bytes));
    assert_int_equal(telemetry_next(c, &got), 0);
    telemetry_cursor_free(c);
    fixture_done(&f);
}

TEST(queries_choose)
{
    struct fixture f;
    fixture_init(&f);
    for (unsigned i = 0; i < 10; i++) {
        char text[2] = {(char) ('0' + i), 0};
        atomic_store(&f.clock.now_us, 1000 * SECOND + i * 300);
        (void) append_record(
            &f, &(struct telemetry_record){.device = device_number(1),
                                           .app = i % 3 ? (struct uuid){{0}} : device_number(9),
                                           .stream = i % 2 ? TELEMETRY_INFO : TELEMETRY_METRICS,
                                           .bytes = str_of(text)});
    }
    for (int is_sealed = 0; is_sealed < 2; is_sealed++) {
        const struct uuid *d = device_at(1), *all = NULL;
        assert_texts(&f, "0 2 4 6 8 ", .device = d, .streams = 1u << TELEMETRY_METRICS);
        assert_texts(&f, "0 3 6 9 ", .device = d, .app = device_at(9));
        assert_texts(&f, "7 8 9 ", .device = d, .after = 7);
        assert_texts(&f, "2 3 ", .device = d, .after = 2, .before = 5);
        assert_texts(&f, "7 8 9 ", .device = d, .newest = 3);
        assert_texts(&f, "7 8 9 ", .device = all, .newest = 3);
        assert_texts(&f, "3 4 ", .device = d, .newest = 2, .before = 6);
        assert_texts(&f, "6 9 ", .device = d, .newest = 2, .app = device_at(9));
        assert_texts(&f, "0 1 2 3 4 5 6 7 8 9 ", .device = d, .newest = 99);
        assert_texts(&f, "1 2 3 ", .device = d, .start_us = 1000 * SECOND + 300,
                     .end_us = 1000 * SECOND + 1200);
        assert_texts(&f, "3 ", .device = d, .newest = 1, .end_us = 1000 * SECOND + 1200);
        assert_texts(&f, "8 9 ", .device = d, .newest = 8, .start_us = 1000 * SECOND + 2101);
        assert_texts(&f, "", .device = d, .start_us = 1000 * SECOND + 2701);
        assert_texts(&f, "1 3 5 7 ", .device = all, .newest = 4, .before = 10,
                     .streams = 1u << TELEMETRY_INFO);
        /* Once more from the index on disk. */
        f.options.segment_bytes = 1;
        fixture_reopen(&f);
        (void) append_to(&f, 2, TELEMETRY_LOG, "other");
        telemetry_sweep(f.t);
        if (is_sealed == 0)
            assert_null(f.t->segments[0]->live);
        telemetry_forget(f.t, device_at(2));
    }
    fixture_done(&f);
}

TEST(a_cursor_goes_on_with_what_came_since)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.segment_bytes = 4096;
    fixture_open(&f);
    struct telemetry_query q = {.streams = ALL_STREAMS, .device = device_at(1)};
    struct telemetry_cursor *one = telemetry_read(f.t, &q);
    q.device = NULL;
    struct telemetry_cursor *all = telemetry_read(f.t, &q);
    struct telemetry_record r;
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(telemetry_next(one, &r), 0);
        assert_int_equal(telemetry_next(all, &r), 0);
        int64_t id = append_to(&f, 1, TELEMETRY_LOG, "something that takes a little room");
        assert_int_equal(telemetry_next(one, &r), 1);
        assert_int_equal(r.id, id);
        assert_int_equal(telemetry_next(all, &r), 1);
        assert_int_equal(r.id, id);
        (void) append_to(&f, 2, TELEMETRY_LOG, "other");
        assert_int_equal(telemetry_next(all, &r), 1);
        if (i % 50 == 0)
            telemetry_sweep(f.t);
    }
    assert_int_equal(telemetry_next(one, &r), 0);
    assert_int_equal(telemetry_cursor_position(one), 400);
    assert_true(stats_of(&f).n_segments > 5);
    telemetry_cursor_free(one);
    telemetry_cursor_free(all);
    fixture_done(&f);
}

TEST(ids_and_times_never_go_back)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "a"), 1);
    atomic_store(&f.clock.now_us, 1);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "b"), 2);
    fixture_reopen(&f);
    assert_int_equal(append_to(&f, 1, TELEMETRY_LOG, "c"), 3);
    struct telemetry_query q = {.streams = ALL_STREAMS};
    struct telemetry_cursor *c = telemetry_read(f.t, &q);
    struct telemetry_record r;
    while (telemetry_next(c, &r) > 0)
        assert_int_equal(r.arrived_us, 1000 * SECOND);
    telemetry_cursor_free(c);
    fixture_done(&f);
}

TEST(what_is_too_much_is_refused)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.max_queued_bytes = 1;
    fixture_open(&f);
    char *big = mem_zalloc(TELEMETRY_MAX_RECORD_BYTES + 1);
    struct telemetry_record r = {.bytes = str_range(big, TELEMETRY_MAX_RECORD_BYTES + 1)};
    assert_int_equal(append_record(&f, &r), -EMSGSIZE);
    r.bytes.n--;
    assert_int_equal(append_record(&f, &r), 1);
    struct waiting w;
    waiting_init(&w);
    /* Faster than any disk: at least one finds the queue not empty. */
    for (size_t i = 0; i < 64; i++)
        telemetry_append(f.t, &r, NULL, waiting_done, &w);
    (void) waiting_for(&w, 64);
    assert_true(stats_of(&f).n_refused > 1);
    assert_int_equal(telemetry_queued_bytes(f.t), 0);
    mem_free(big);
    fixture_done(&f);
}

TEST(a_directory_has_one_owner)
{
    struct fixture f;
    fixture_init(&f);
    struct telemetry *second = NULL;
    char *error = NULL;
    assert_int_equal(telemetry_open(&f.options, &second, &error), -EWOULDBLOCK);
    assert_non_null(strstr(error, "another process"));
    mem_free(error);
    fixture_done(&f);
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static void count_wake(void *arg)
{
    atomic_fetch_add((atomic_int *) arg, 1);
}

TEST(waiters_are_woken_once_by_what_they_want)
{
    struct fixture f;
    fixture_init(&f);
    (void) append_to(&f, 1, TELEMETRY_LOG, "before");
    atomic_int n[5] = {0};
    struct telemetry_waiter *w[5];
    struct telemetry_query q = {.device = device_at(1), .streams = 1u << TELEMETRY_LOG};
    w[0] = telemetry_wait(f.t, &q, count_wake, &n[0]);
    assert_int_equal(atomic_load(&n[0]), 1);
    q.after = 1;
    w[1] = telemetry_wait(f.t, &q, count_wake, &n[1]);
    q.streams = 1u << TELEMETRY_INFO;
    w[2] = telemetry_wait(f.t, &q, count_wake, &n[2]);
    q.device = device_at(2);
    w[3] = telemetry_wait(f.t, &q, count_wake, &n[3]);
    q.device = NULL;
    q.streams = ALL_STREAMS;
    w[4] = telemetry_wait(f.t, &q, count_wake, &n[4]);
    (void) append_to(&f, 1, TELEMETRY_LOG, "a");
    (void) append_to(&f, 1, TELEMETRY_LOG, "b");
    static const int expected[5] = {1, 1, 0, 0, 1};
    for (size_t i = 0; i < 5; i++) {
        telemetry_cancel(w[i]);
        assert_int_equal(atomic_load(&n[i]), expected[i]);
    }
    (void) append_to(&f, 1, TELEMETRY_INFO, "c");
    assert_int_equal(atomic_load(&n[2]), 0);
    fixture_done(&f);
}

struct self_cancel {
    struct telemetry_waiter *w;
    atomic_int n;
};

static void cancel_itself(void *arg)
{
    struct self_cancel *s = arg;
    telemetry_cancel(TAKE(s->w));
    atomic_fetch_add(&s->n, 1);
}

TEST(a_waiter_may_cancel_itself)
{
    struct fixture f;
    fixture_init(&f);
    struct self_cancel s = {0};
    struct telemetry_query q = {.device = device_at(1), .streams = ALL_STREAMS};
    s.w = telemetry_wait(f.t, &q, cancel_itself, &s);
    (void) append_to(&f, 1, TELEMETRY_LOG, "a");
    (void) append_to(&f, 1, TELEMETRY_LOG, "b");
    assert_int_equal(atomic_load(&s.n), 1);
    fixture_done(&f);
}

static void signal_woken(void *arg)
{
    waiting_done(arg, 0);
}

static void note(struct fixture *f, const char *text)
{
    telemetry_note(f->t, &(struct telemetry_record){.device = device_number(1),
                                                    .stream = TELEMETRY_REQUESTS,
                                                    .bytes = str_of(text)});
}

TEST(notes_go_to_disk_with_what_is_waited_for)
{
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 100; i++)
        note(&f, "n");
    (void) append_to(&f, 1, TELEMETRY_LOG, "a");
    struct uuid device = device_number(1);
    struct telemetry_query q = {.device = &device, .streams = 1u << TELEMETRY_REQUESTS};
    assert_int_equal(count_records(&f, &q), 100);
    assert_int_equal(stats_of(&f).queued_bytes, 0);
    /* A second did not pass: one sync for all. On a machine that slept meanwhile, a few. */
    assert_true(stats_of(&f).n_syncs < 10);
    fixture_done(&f);
}

TEST(notes_go_to_disk_by_themselves)
{
    struct fixture f;
    fixture_init(&f);
    struct waiting woken;
    waiting_init(&woken);
    struct telemetry_query q = {.device = device_at(1), .streams = ALL_STREAMS};
    struct telemetry_waiter *w = telemetry_wait(f.t, &q, signal_woken, &woken);
    note(&f, "a");
    note(&f, "b");
    (void) waiting_for(&woken, 1);
    telemetry_cancel(w);
    assert_texts(&f, "a b ", .device = device_at(1));
    fixture_done(&f);
}

TEST(many_notes_do_not_wait_and_the_last_ones_are_written_at_the_end)
{
    struct fixture f;
    fixture_init(&f);
    char text[4096];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    for (int i = 0; i < 1000; i++)
        note(&f, text);
    note(&f, "last");
    fixture_reopen(&f);
    assert_int_equal(count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS}), 1001);
    assert_texts(&f, "last ", .device = NULL, .newest = 1);
    fixture_done(&f);
}

TEST(a_note_that_cannot_be_taken_is_counted)
{
    struct fixture f;
    fixture_init(&f);
    char *large = mem_zalloc(TELEMETRY_MAX_RECORD_BYTES + 1);
    telemetry_note(
        f.t, &(struct telemetry_record){.stream = TELEMETRY_REQUESTS,
                                        .bytes = str_range(large, TELEMETRY_MAX_RECORD_BYTES + 1)});
    telemetry_note(f.t, &(struct telemetry_record){.stream = TELEMETRY_STREAMS});
    assert_int_equal(stats_of(&f).n_refused, 2);
    mem_free(large);
    fixture_done(&f);
}
