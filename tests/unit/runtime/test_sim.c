/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "runtime/sim.h"
#include "test.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"

struct world {
    struct clock_virtual clock;
    struct runtime *runtime;
    struct buf story; /* "a:INITIAL a:DOWNLOAD_STARTED ..." */
    size_t n_lines, n_errors;
    const char *only;     /* this id alone is told */
    struct str stop_when; /* id to stop as soon as it runs */
    bool restarts;
};

static const struct runtime_instance app = {.id = {"app", 3}, .root_volume = {"vol", 3}};
static const struct runtime_volume vol = {.id = {"vol", 3}, .content = {"img", 3}};

static void on_change(void *arg, const struct runtime_status *s)
{
    struct world *w = arg;
    if (!w->only || str_is(s->id, w->only))
        buf_printf(&w->story, "%s%.*s:%s%s", w->story.n ? " " : "", STR_ARG(s->id),
                   runtime_state_name(s->state), s->error.p ? "!" : "");
    w->n_errors += s->error.p != NULL;
    if (s->kind != RUNTIME_INSTANCE)
        return;
    if (s->state == RUNTIME_RUNNING && str_eq(s->id, w->stop_when))
        assert_int_equal(runtime_stop(w->runtime, s->id, false), 0);
    if (s->state == RUNTIME_HALTED && w->restarts && s->error.p)
        assert_int_equal(runtime_start(w->runtime, &app), 0);
}

static void on_log(void *arg, struct str instance, enum runtime_stream stream, struct str line,
                   int64_t wall_us)
{
    struct world *w = arg;
    (void) instance;
    (void) wall_us;
    assert_int_equal(stream, RUNTIME_STDOUT);
    assert_true(str_find_str(line, STR("simulated")) >= 0);
    w->n_lines++;
}

static void world_init(struct world *w, const struct runtime_sim_options *options)
{
    *w = (struct world){0};
    clock_virtual_init(&w->clock, 1000000);
    w->runtime = runtime_sim_new(NULL, &w->clock.clock, options,
                                 &(struct runtime_events){on_change, on_log, w});
}

static void world_done(struct world *w)
{
    runtime_free(w->runtime);
    buf_done(&w->story);
}

/* Lets the clock leap from one thing due to the next. */
static void run_until(struct world *w, int64_t end_us)
{
    for (int64_t next = runtime_sim_turn(w->runtime); next >= 0 && next <= end_us;
         next = runtime_sim_turn(w->runtime))
        w->clock.now_us = MAX(w->clock.now_us, next);
    w->clock.now_us = MAX(w->clock.now_us, end_us);
}

static void run_for(struct world *w, int64_t seconds)
{
    run_until(w, w->clock.now_us + seconds * 1000000);
}

static enum runtime_state state_of(struct world *w, enum runtime_kind kind, const char *id)
{
    struct runtime_status s;
    return runtime_status(w->runtime, kind, str_of(id), &s) < 0 ? RUNTIME_INVALID : s.state;
}

static void ask_all(struct world *w, const char *url)
{
    const struct runtime_content img = {.id = STR("img"), .url = str_of(url)};
    /* The wrong way round: each waits for what it needs. */
    assert_int_equal(runtime_start(w->runtime, &app), 0);
    assert_int_equal(runtime_create(w->runtime, &vol), 0);
    assert_int_equal(runtime_prepare(w->runtime, &img), 0);
}

TEST(content_passes_through_the_states_of_a_device)
{
    static const struct {
        const char *url, *story;
    } cases[] = {
        {"docker://r/a:1",
         "img:INITIAL img:RESOLVING_TAG img:RESOLVED_TAG img:DOWNLOAD_STARTED img:DOWNLOAD_STARTED "
         "img:DOWNLOAD_STARTED img:DOWNLOAD_STARTED img:DOWNLOAD_STARTED img:DOWNLOADED "
         "img:VERIFYING img:VERIFIED img:LOADING img:DELIVERED"},
        {"docker://r/a@sha256:00",
         "img:INITIAL img:DOWNLOAD_STARTED img:DOWNLOAD_STARTED img:DOWNLOAD_STARTED "
         "img:DOWNLOAD_STARTED img:DOWNLOAD_STARTED img:DOWNLOADED img:VERIFYING img:VERIFIED "
         "img:LOADING img:DELIVERED"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct world w;
        world_init(&w, &runtime_sim_defaults);
        const struct runtime_content img = {.id = STR("img"), .url = str_of(cases[i].url)};
        assert_int_equal(runtime_prepare(w.runtime, &img), 0);
        run_for(&w, 600);
        assert_str(buf_str(&w.story), cases[i].story);
        world_done(&w);
    }
}

TEST(instance_waits_for_its_volume_and_the_volume_for_its_content)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    ask_all(&w, "file:///x");
    assert_int_equal(state_of(&w, RUNTIME_INSTANCE, "app"), RUNTIME_INITIAL);
    w.only = "app";
    buf_reset(&w.story);
    run_for(&w, 600);
    assert_int_equal(state_of(&w, RUNTIME_VOLUME, "vol"), RUNTIME_CREATED_VOLUME);
    assert_str(buf_str(&w.story), "app:INSTALLED app:BOOTING app:RUNNING");
    buf_reset(&w.story);
    assert_int_equal(runtime_stop(w.runtime, STR("app"), false), 0);
    run_for(&w, 60);
    assert_int_equal(runtime_start(w.runtime, &app), 0);
    run_for(&w, 60);
    assert_str(buf_str(&w.story), "app:HALTING app:HALTED app:BOOTING app:RUNNING");
    world_done(&w);
}

TEST(start_while_it_halts_starts_it_again_afterwards)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    ask_all(&w, "file:///x");
    run_for(&w, 600);
    buf_reset(&w.story);
    assert_int_equal(runtime_stop(w.runtime, STR("app"), false), 0);
    assert_int_equal(runtime_start(w.runtime, &app), 0);
    run_for(&w, 60);
    assert_str(buf_str(&w.story), "app:HALTING app:HALTED app:BOOTING app:RUNNING");
    world_done(&w);
}

TEST(stop_from_the_callback_that_says_running_is_taken)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    w.only = "app";
    w.stop_when = STR("app");
    ask_all(&w, "file:///x");
    run_for(&w, 600);
    assert_str(buf_str(&w.story),
               "app:INITIAL app:INSTALLED app:BOOTING app:RUNNING app:HALTING app:HALTED");
    world_done(&w);
}

TEST(stop_of_one_that_waits_keeps_it_from_starting)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    ask_all(&w, "file:///x");
    assert_int_equal(runtime_stop(w.runtime, STR("app"), false), 0);
    run_for(&w, 600);
    assert_int_equal(state_of(&w, RUNTIME_INSTANCE, "app"), RUNTIME_INITIAL);
    world_done(&w);
}

TEST(purge_ends_what_runs_and_is_the_last_event)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    ask_all(&w, "file:///x");
    run_for(&w, 600);
    assert_int_equal(runtime_purge(w.runtime, RUNTIME_VOLUME, STR("vol")), -EBUSY);
    buf_reset(&w.story);
    assert_int_equal(runtime_purge(w.runtime, RUNTIME_INSTANCE, STR("app")), 0);
    assert_int_equal(runtime_start(w.runtime, &app), -EBUSY);
    run_for(&w, 60);
    assert_str(buf_str(&w.story), "app:HALTING app:HALTED app:INVALID");
    assert_int_equal(runtime_purge(w.runtime, RUNTIME_VOLUME, STR("vol")), 0);
    run_for(&w, 60);
    assert_int_equal(runtime_purge(w.runtime, RUNTIME_VOLUME, STR("vol")), -ENOENT);
    /* The instance waits when it is asked for again without its volume. */
    assert_int_equal(runtime_start(w.runtime, &app), 0);
    run_for(&w, 60);
    assert_int_equal(state_of(&w, RUNTIME_INSTANCE, "app"), RUNTIME_INITIAL);
    world_done(&w);
}

TEST(purge_while_the_content_is_fetched_waits_for_the_step)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    const struct runtime_content img = {.id = STR("img"), .url = STR("file:///x")};
    assert_int_equal(runtime_prepare(w.runtime, &img), 0);
    run_for(&w, 1);
    assert_int_equal(runtime_purge(w.runtime, RUNTIME_CONTENT, STR("img")), 0);
    run_for(&w, 600);
    assert_int_equal(state_of(&w, RUNTIME_CONTENT, "img"), RUNTIME_INVALID);
    assert_true(str_ends_with(buf_str(&w.story), STR("img:DELIVERED img:INVALID")));
    world_done(&w);
}

TEST(what_is_asked_is_bounded_and_a_change_of_it_is_refused_while_it_lives)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    static const char too_long[] =
        "01234567890123456789012345678901234567890123456789012345678901234";
    const char *const bad[] = {"", ".", "..", "-x", "a/b", "a b", too_long};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_int_equal(runtime_prepare(w.runtime, &(struct runtime_content){.id = str_of(bad[i]),
                                                                              .url = STR("x")}),
                         -EINVAL);
    assert_int_equal(
        runtime_prepare(w.runtime, &(struct runtime_content){.id = STR("i"), .url = STR("a\0b")}),
        -EINVAL);
    struct runtime_instance many = app;
    many.n_env = RUNTIME_MAX_ITEMS + 1;
    assert_int_equal(runtime_start(w.runtime, &many), -EINVAL);
    ask_all(&w, "file:///x");
    assert_int_equal(runtime_prepare(w.runtime, &(struct runtime_content){.id = STR("img"),
                                                                          .url = STR("other")}),
                     -ESTALE);
    run_for(&w, 600);
    struct runtime_instance changed = app;
    changed.memory_max_bytes = 1;
    assert_int_equal(runtime_start(w.runtime, &changed), -ESTALE);
    assert_int_equal(runtime_stop(w.runtime, STR("app"), true), 0);
    run_for(&w, 60);
    assert_int_equal(runtime_start(w.runtime, &changed), 0);
    run_for(&w, 60);
    assert_int_equal(state_of(&w, RUNTIME_INSTANCE, "app"), RUNTIME_RUNNING);
    world_done(&w);
}

TEST(metrics_and_lines_say_that_they_are_simulated)
{
    struct runtime_sim_options options = runtime_sim_defaults;
    options.log_interval_ms = 1000;
    struct world w;
    world_init(&w, &options);
    ask_all(&w, "file:///x");
    struct runtime_metrics m;
    assert_int_equal(runtime_metrics(w.runtime, STR("app"), &m), -ESRCH);
    run_for(&w, 600);
    assert_int_equal(runtime_metrics(w.runtime, STR("app"), &m), 0);
    assert_true(m.is_simulated && m.cpu_ns > 0 && m.memory_bytes > 0);
    size_t before = w.n_lines;
    run_for(&w, 10);
    assert_in_range(w.n_lines - before, 9, 11);
    assert_string_equal(runtime_name(w.runtime), "sim");
    world_done(&w);
}

/* Under any seed: what is tried again until it runs, runs in the end. */
TEST(faults_by_seed_end_in_the_same_place)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct runtime_sim_options options = runtime_sim_defaults;
        options.seed = seed;
        options.fetch_fails_permille = options.create_fails_permille = 300;
        options.boot_fails_permille = options.crashes_permille = 300;
        options.crash_span = (struct runtime_sim_span){1, 1000};
        struct world w;
        world_init(&w, &options);
        w.restarts = true;
        for (int i = 0; i < 40; i++) {
            ask_all(&w, "docker://r/a:1");
            run_for(&w, 120);
        }
        if (state_of(&w, RUNTIME_INSTANCE, "app") != RUNTIME_RUNNING)
            fail_msg("seed %d: %s", (int) seed, w.story.p);
        /* The same seed tells the same story. */
        struct world again;
        world_init(&again, &options);
        again.restarts = true;
        for (int i = 0; i < 40; i++) {
            ask_all(&again, "docker://r/a:1");
            run_for(&again, 120);
        }
        assert_string_equal(w.story.p, again.story.p);
        world_done(&again);
        world_done(&w);
    }
}

TEST(a_crash_is_told_with_its_reason_and_not_repaired)
{
    struct runtime_sim_options options = runtime_sim_defaults;
    options.crashes_permille = 1000;
    struct world w;
    world_init(&w, &options);
    w.only = "app";
    ask_all(&w, "file:///x");
    run_for(&w, 8000);
    assert_str(buf_str(&w.story),
               "app:INITIAL app:INSTALLED app:BOOTING app:RUNNING app:HALTING! app:HALTED!");
    world_done(&w);
}

TEST(thousands_of_instances_in_one_runtime)
{
    struct world w;
    world_init(&w, &runtime_sim_defaults);
    w.only = "none";
    assert_int_equal(runtime_prepare(w.runtime, &(struct runtime_content){.id = STR("img"),
                                                                          .url = STR("file:///x")}),
                     0);
    enum { N = 2000 };
    for (int i = 0; i < N; i++) {
        char v[16], a[16];
        (void) snprintf(v, sizeof(v), "v%d", i);
        (void) snprintf(a, sizeof(a), "a%d", i);
        assert_int_equal(runtime_create(w.runtime, &(struct runtime_volume){str_of(v), STR("img")}),
                         0);
        assert_int_equal(
            runtime_start(w.runtime,
                          &(struct runtime_instance){.id = str_of(a), .root_volume = str_of(v)}),
            0);
    }
    run_for(&w, 600);
    int n_running = 0;
    for (int i = 0; i < N; i++) {
        char a[16];
        (void) snprintf(a, sizeof(a), "a%d", i);
        n_running += state_of(&w, RUNTIME_INSTANCE, a) == RUNTIME_RUNNING;
    }
    assert_int_equal(n_running, N);
    world_done(&w);
}

/* ---- on a loop ----------------------------------------------------------------------------- */

struct looped {
    struct loop *loop;
    struct runtime *runtime;
};

static void on_looped(void *arg, const struct runtime_status *s)
{
    struct looped *l = arg;
    if (s->kind == RUNTIME_INSTANCE && s->state == RUNTIME_RUNNING)
        loop_stop(l->loop);
}

TEST(a_loop_drives_it_by_one_timer)
{
    struct runtime_sim_options options = runtime_sim_defaults;
    for (size_t i = 0; i < N_ELEMENTS(options.spans); i++)
        options.spans[i] = (struct runtime_sim_span){0, 2};
    struct looped l = {.loop = loop_new()};
    l.runtime = runtime_sim_new(l.loop, &clock_system, &options,
                                &(struct runtime_events){.on_change = on_looped, .arg = &l});
    assert_int_equal(runtime_start(l.runtime, &app), 0);
    assert_int_equal(runtime_create(l.runtime, &vol), 0);
    assert_int_equal(runtime_prepare(l.runtime, &(struct runtime_content){.id = STR("img"),
                                                                          .url = STR("file:///x")}),
                     0);
    loop_run(l.loop);
    runtime_free(l.runtime);
    loop_settle(l.loop);
    loop_free(l.loop);
}
