/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <pthread.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/random.h"

TEST(base64_agrees_with_rfc_4648)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(pairs); i++) {
        struct str back = STR_NONE;
        assert_str(base64_encode(a, str_of(pairs[i][0]), BASE64_STANDARD), pairs[i][1]);
        assert_int_equal(base64_decode(a, str_of(pairs[i][1]), BASE64_STANDARD, &back, NULL), 0);
        assert_str(back, pairs[i][0]);
    }
    assert_str(base64_encode(a, STR("\xfb\xff"), BASE64_URL), "-_8");
}

TEST(base64_says_where_it_is_wrong)
{
    static const struct {
        const char *text;
        size_t bad_at;
    } cases[] = {{"%%%", 0},       {"Zg=", 3}, {"Zg", 2},           {"Zm9v=", 4},
                 {"Zm9vYg==x", 8}, {"Z", 1},   {"Zm\n8=", SIZE_MAX}};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str bytes = STR_NONE;
        size_t bad_at = SIZE_MAX;
        int r = base64_decode(a, str_of(cases[i].text), BASE64_STANDARD, &bytes, &bad_at);
        assert_int_equal(r, cases[i].bad_at == SIZE_MAX ? 0 : -EINVAL);
        if (r < 0)
            assert_int_equal(bad_at, cases[i].bad_at);
    }
}

TEST(times_are_read_in_any_zone_and_written_in_utc)
{
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"2001-02-03T04:05:06Z", "2001-02-03T04:05:06.000000Z"},
        {"2001-02-03T04:05:06.123456789Z", "2001-02-03T04:05:06.123456Z"},
        {"2001-02-03T04:05:06+02:30", "2001-02-03T01:35:06.000000Z"},
        {"2024-02-29T00:00:00-01:00", "2024-02-29T01:00:00.000000Z"},
        {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
        {"0001-01-01T00:00:00.25Z", "0001-01-01T00:00:00.250000Z"},
        {"9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000Z"},
        {"2023-02-29T00:00:00Z", NULL},
        {"2001-13-01T00:00:00Z", NULL},
        {"2001-02-03 04:05:06Z", NULL},
        {"2001-02-03T04:05:06", NULL},
        {"2001-02-03T04:05:06.Z", NULL},
        {"2001-02-03T24:05:06Z", NULL},
        {"yesterday", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int64_t us = 0;
        char text[CLOCK_MICROS_BYTES];
        int r = clock_parse(str_of(cases[i].text), &us);
        assert_int_equal(r, cases[i].written ? 0 : -EINVAL);
        if (r == 0) {
            clock_format_micros(us, text);
            assert_string_equal(text, cases[i].written);
            char seconds[CLOCK_SECONDS_BYTES];
            clock_format_seconds(us, seconds);
            assert_int_equal(strlen(seconds), 20);
            assert_memory_equal(seconds, text, 19);
            assert_int_equal(seconds[19], 'Z');
        }
    }
}

TEST(virtual_clock_moves_when_told)
{
    struct clock_virtual v;
    clock_virtual_init(&v, 1000);
    assert_int_equal(v.clock.wall_us(&v.clock), 1000);
    v.now_us += 5;
    assert_int_equal(v.clock.monotonic_us(&v.clock), 1005);
}

TEST(scaled_clock_runs_faster_from_where_it_was)
{
    struct clock_virtual v;
    struct clock_scaled s;
    clock_virtual_init(&v, 1000);
    clock_scaled_init(&s, &v.clock);
    v.now_us += 5;
    assert_int_equal(s.clock.wall_us(&s.clock), 1005);
    clock_scaled_set_speed(&s, 1440);
    assert_int_equal(s.clock.monotonic_us(&s.clock), 1005);
    v.now_us += 60 * 1000000;
    assert_int_equal(s.clock.monotonic_us(&s.clock), 1005 + 86400 * (int64_t) 1000000);
    clock_scaled_set_speed(&s, 0.5);
    v.now_us += 10;
    assert_int_equal(s.clock.wall_us(&s.clock), 1010 + 86400 * (int64_t) 1000000);
}

struct clock_reader {
    struct clock_scaled scaled;
    atomic_bool is_over;
};

static void *read_clock_often(void *arg)
{
    struct clock_reader *r = arg;
    int64_t last = 0;
    intptr_t n_back = 0;
    while (!atomic_load(&r->is_over)) {
        const int64_t now = r->scaled.clock.monotonic_us(&r->scaled.clock);
        n_back += now < last;
        last = now;
    }
    return (void *) n_back;
}

TEST(scaled_clock_never_goes_back_for_another_thread)
{
    struct clock_reader r = {0};
    void *n_back = NULL;
    pthread_t thread;
    clock_scaled_init(&r.scaled, &clock_system);
    assert_int_equal(pthread_create(&thread, NULL, read_clock_often, &r), 0);
    for (int i = 0; i < 2000; i++)
        clock_scaled_set_speed(&r.scaled, i % 2 ? 1000 : 1);
    atomic_store(&r.is_over, true);
    assert_int_equal(pthread_join(thread, &n_back), 0);
    assert_null(n_back);
}

TEST(uuids_are_version_four_and_differ)
{
    char a[UUID_TEXT_BYTES], b[UUID_TEXT_BYTES], name[6];
    random_uuid(a);
    random_uuid(b);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
    assert_string_not_equal(a, b);
    random_name(name, 5);
    assert_int_equal(strspn(name, "bcdfghjklmnpqrstvwxz2456789"), 5);
    for (int i = 0; i < 1000; i++)
        assert_true(random_below(7) < 7);
}
