/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/pace.h"
#include "test.h"

#define S ((int64_t) 1000000)

static uint64_t nothing(uint64_t bound)
{
    (void) bound;
    return 0;
}

static uint64_t most(uint64_t bound)
{
    return bound - 1;
}

static struct pace begin(bool is_fast)
{
    struct pace p;
    pace_init(&p, 1000 * S, is_fast);
    p.random_below = nothing;
    return p;
}

static struct pace reached(void)
{
    struct pace p = begin(false);
    for (int i = 0; i < 3; i++)
        (void) pace_sent(&p);
    return p;
}

TEST(the_interval_follows_what_waits)
{
    static const struct {
        size_t n_waiting;
        unsigned least_s, most_s;
    } cases[] = {{0, 72, 107}, {4, 72, 107}, {5, 36, 53},  {24, 36, 53},
                 {25, 24, 35}, {49, 24, 35}, {50, 12, 17}, {199, 12, 17},
                 {200, 6, 9},  {999, 6, 9},  {1000, 2, 3}, {100000, 2, 3}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct pace low = reached(), high = reached();
        high.random_below = most;
        assert_int_equal(pace_next(&low, 2200 * S, cases[i].n_waiting), cases[i].least_s);
        assert_int_equal(pace_next(&high, 2200 * S, cases[i].n_waiting), cases[i].most_s);
    }
}

TEST(it_is_computed_after_20_minutes_then_every_30)
{
    struct pace p = reached();
    assert_int_equal(pace_next(&p, 1001 * S, 1000), 90);
    assert_int_equal(pace_next(&p, 2199 * S, 1000), 90);
    assert_int_equal(pace_next(&p, 2200 * S, 1000), 2);
    assert_int_equal(pace_next(&p, 3999 * S, 0), 2);
    assert_int_equal(pace_next(&p, 4000 * S, 0), 72);
}

TEST(it_does_not_slow_down_while_files_wait)
{
    struct pace p = reached();
    assert_int_equal(pace_next(&p, 2200 * S, 300), 6);
    assert_int_equal(pace_next(&p, 4000 * S, 30), 6);
    assert_int_equal(pace_next(&p, 5800 * S, 4), 72);
}

TEST(fast_upload_counts_at_once)
{
    struct pace p = reached();
    assert_true(pace_set_fast(&p, 1100 * S, true));
    assert_false(pace_set_fast(&p, 1100 * S, true));
    assert_int_equal(pace_next(&p, 1100 * S, 0), 3);
    assert_true(pace_set_fast(&p, 1200 * S, false));
    assert_int_equal(pace_next(&p, 1200 * S, 0), 72);
    struct pace fast = begin(true);
    assert_int_equal(fast.interval_s, 3);
    assert_int_equal(pace_next(&fast, 1003 * S, 0), 3);
}

TEST(three_in_a_row_decide_whether_anybody_listens)
{
    struct pace p = begin(false);
    assert_true(p.is_failing);
    assert_false(pace_sent(&p));
    assert_false(pace_sent(&p));
    assert_false(pace_unavailable(&p, 1001 * S));
    assert_false(pace_sent(&p));
    assert_false(pace_sent(&p));
    assert_true(pace_sent(&p));
    assert_false(p.is_failing);
    assert_false(pace_sent(&p));
    assert_false(pace_unavailable(&p, 1002 * S));
    assert_false(pace_unavailable(&p, 1003 * S));
    assert_true(pace_unavailable(&p, 1004 * S));
    assert_true(p.is_failing && p.failing_since_us == 1004 * S);
    assert_false(pace_unavailable(&p, 1005 * S));
    assert_int_equal(p.failing_since_us, 1004 * S);
}

TEST(who_is_not_heard_for_long_asks_seldom)
{
    struct pace p = begin(false);
    assert_int_equal(pace_next(&p, 2201 * S, 0), 180);
    p.random_below = most;
    assert_int_equal(pace_next(&p, 4001 * S, 0), 899);
}

TEST(too_many_requests_slow_it_down)
{
    struct pace p = reached();
    pace_refused(&p, 1100 * S);
    assert_int_equal(p.interval_s, 180);
    pace_refused(&p, 1200 * S); /* one of the same moment */
    assert_int_equal(p.interval_s, 180);
    pace_refused(&p, 1600 * S);
    assert_int_equal(p.interval_s, 300);
    pace_refused(&p, 2000 * S);
    assert_int_equal(p.interval_s, 300);
    /* For an hour nothing is computed, fast or not. */
    assert_int_equal(pace_next(&p, 5000 * S, 1000), 300);
    assert_true(pace_set_fast(&p, 5100 * S, true));
    assert_int_equal(pace_next(&p, 5100 * S, 1000), 300);
    assert_true(pace_set_fast(&p, 5200 * S, false));
    /* For another one it is done with care. */
    assert_int_equal(pace_next(&p, 5600 * S, 1000), 8);
    assert_int_equal(p.previous_s, 10);
    p.previous_s = 0;
    assert_int_equal(pace_next(&p, 7400 * S, 0), 144);
    assert_int_equal(pace_next(&p, 9201 * S, 0), 72);
}
