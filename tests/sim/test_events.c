/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/events.h"
#include "world.h"

#define MINUTE_MS ((int64_t) 60 * 1000)

static const struct controller *const just_events[] = {&events_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_events)

static bool has(struct world *w, const char *name)
{
    return world_has(w, "events", "n", name);
}

static struct str minutes_from_now(struct world *w, struct arena *a, int64_t minutes)
{
    char text[CLOCK_MICROS_BYTES];
    clock_format_micros(w->clock.now_us + minutes * 60 * 1000000, text);
    return arena_str(a, str_of(text));
}

TEST(an_event_lives_an_hour)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/events", "n", "{'metadata':{'name':'e'}}"), 0);
    world_pass(&w, 59 * MINUTE_MS);
    assert_true(has(&w, "e"));
    world_pass(&w, 2 * MINUTE_MS);
    assert_false(has(&w, "e"));
}

TEST(the_newest_of_its_times_counts)
{
    static const struct {
        const char *before, *behind;
    } forms[] = {
        {"{'lastTimestamp':'", "'}"},
        {"{'eventTime':'", "'}"},
        {"{'series':{'lastObservedTime':'", "'}}"},
    };
    for (size_t i = 0; i < N_ELEMENTS(forms); i++) {
        WORLD;
        ARENA_AUTO a = arena_new();
        assert_int_equal(world_create(&w, "v1/events", "n", "{'metadata':{'name':'e'}}"), 0);
        world_pass(&w, 30 * MINUTE_MS);
        struct str now = minutes_from_now(&w, a, 0);
        struct str text =
            arena_printf(a, "%s%.*s%s", forms[i].before, STR_ARG(now), forms[i].behind);
        assert_int_equal(world_patch(&w, "v1/events", "n", "e", text.p), 0);
        world_pass(&w, 50 * MINUTE_MS);
        assert_true(has(&w, "e"));
        world_pass(&w, 11 * MINUTE_MS);
        assert_false(has(&w, "e"));
    }
}

TEST(a_time_to_come_does_not_keep_an_event)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(a, "{'metadata':{'name':'e'},'eventTime':'%.*s'}",
                                   STR_ARG(minutes_from_now(&w, a, 10 * 365 * 24 * 60)));
    assert_int_equal(world_create(&w, "v1/events", "n", text.p), 0);
    world_pass(&w, 61 * MINUTE_MS);
    assert_false(has(&w, "e"));
}

TEST(a_restart_neither_lengthens_nor_shortens_the_hour)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/events", "n", "{'metadata':{'name':'e'}}"), 0);
    world_pass(&w, 40 * MINUTE_MS);
    world_restart(&w);
    world_pass(&w, 19 * MINUTE_MS);
    assert_true(has(&w, "e"));
    world_restart(&w);
    world_pass(&w, 2 * MINUTE_MS);
    assert_false(has(&w, "e"));
}

TEST(what_expired_while_nobody_was_there_goes_at_once)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/events", "n", "{'metadata':{'name':'e'}}"), 0);
    w.clock.now_us += 90 * MINUTE_MS * 1000;
    world_restart(&w);
    world_pass(&w, 0);
    assert_false(has(&w, "e"));
}

TEST(nothing_is_asked_of_events_that_are_not_over)
{
    WORLD;
    for (int i = 0; i < 100; i++) {
        char text[64];
        (void) snprintf(text, sizeof(text), "{'metadata':{'name':'e%d'}}", i);
        assert_int_equal(world_create(&w, "v1/events", "n", text), 0);
        world_pass(&w, 1000);
    }
    /* Every request that fails would be tried again. */
    w.api.fail_percent = 100;
    world_pass(&w, 50 * MINUTE_MS);
    w.api.fail_percent = 0;
    world_pass(&w, 8 * MINUTE_MS + 20 * 1000);
    assert_int_equal(fake_count(&w.api, "events"), 100);
    world_pass(&w, 50 * 1000);
    assert_in_range(fake_count(&w.api, "events"), 40, 60);
    world_pass(&w, 2 * MINUTE_MS);
    assert_int_equal(fake_count(&w.api, "events"), 0);
}
