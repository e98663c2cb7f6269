/* SPDX-License-Identifier: Apache-2.0 */
/* The agent dies at every step of a life, and the end is the same. */
#include "test.h"

#include "site.h"

#define MAX_STEPS 400

struct course {
    const char *name;
    void (*change)(struct site_config *c); /* from a running application to something else */
};

static void stay(struct site_config *c)
{
    (void) c;
}
static void restart(struct site_config *c)
{
    c->restart = 1;
    c->version = "2";
}
static void purge(struct site_config *c)
{
    c->purge = 1;
    c->generation = 1;
    c->version = "2";
}
static void halt(struct site_config *c)
{
    c->is_active = false;
}
static void leave(struct site_config *c)
{
    c->has_app = c->has_volume = c->has_content = false;
}
static void exchange(struct site_config *c)
{
    c->format = FORMAT_QCOW2;
}

static const struct course courses[] = {{"stay", stay},   {"restart", restart},
                                        {"purge", purge}, {"halt", halt},
                                        {"leave", leave}, {"exchange", exchange}};

/* Returns false when the course was over before that step. */
static bool play(const struct course *course, bool is_change, int step, struct str *ret_end)
{
    struct site s;
    static char end[4096];
    site_init(&s);
    s.config.is_second = true;
    site_start(&s);
    if (is_change) {
        site_run(&s, 300);
        course->change(&s.config);
        site_configure(&s);
    }
    bool is_there = true;
    for (int i = 0; i < step && is_there; i++)
        is_there = site_step(&s);
    if (step >= 0 && is_there) {
        site_kill(&s);
        site_start(&s);
    }
    site_run(&s, 1000);
    struct str text = site_end_state(&s, /* is_exact= */ true);
    assert_true(text.n < sizeof(end));
    memcpy(end, text.p, text.n);
    *ret_end = str_range(end, text.n);
    site_done(&s);
    return is_there;
}

TEST(an_agent_that_dies_while_it_begins_gets_there)
{
    struct str wanted, got;
    (void) play(&courses[0], false, -1, &wanted);
    ARENA_AUTO arena = arena_new();
    wanted = arena_str(arena, wanted);
    assert_true(str_find_str(wanted, STR("state 115")) >= 0);
    int n = 0;
    for (; n < MAX_STEPS && play(&courses[0], false, n, &got); n++)
        if (!str_eq(wanted, got))
            fail_msg("step %d: got\n%.*swanted\n%.*s", n, STR_ARG(got), STR_ARG(wanted));
    assert_true(n > 8);
}

TEST(an_agent_that_dies_in_the_midst_of_a_change_gets_there)
{
    for (size_t c = 0; c < N_ELEMENTS(courses); c++) {
        ARENA_AUTO arena = arena_new();
        struct str wanted, got;
        (void) play(&courses[c], true, -1, &wanted);
        wanted = arena_str(arena, wanted);
        for (int n = 0; n < MAX_STEPS && play(&courses[c], true, n, &got); n++)
            if (!str_eq(wanted, got))
                fail_msg("%s, step %d: got\n%.*swanted\n%.*s", courses[c].name, n, STR_ARG(got),
                         STR_ARG(wanted));
    }
}

TEST(a_command_given_while_there_is_no_agent_is_carried_out)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    site_kill(&s);
    s.config.restart = 1;
    buf_reset(&s.story);
    s.last_state = 0;
    site_start(&s);
    site_run(&s, 300);
    assert_str(buf_str(&s.story), "118 119 114 115");
    site_done(&s);
}

TEST(an_instance_that_runs_is_adopted_untouched)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    site_kill(&s);
    buf_reset(&s.story);
    s.last_state = 0;
    site_start(&s);
    site_run(&s, 3600);
    assert_str(buf_str(&s.story), "115");
    site_done(&s);
}

TEST(what_nobody_wants_any_more_is_swept_but_not_at_once)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    site_kill(&s);
    s.config = (struct site_config){.has_store = true};
    site_start(&s);
    site_run(&s, APPS_SWEEP_S - 2);
    assert_int_equal(site_objects(&s), 3);
    site_run(&s, 120);
    assert_int_equal(site_objects(&s), 0);
    assert_int_equal(site_count(&s, OUT_APP), 0);
    site_done(&s);
}

TEST(nothing_is_swept_before_a_configuration_is_in_force)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    site_kill(&s);
    s.config = (struct site_config){.has_no_config = true};
    site_start(&s);
    site_run(&s, 3600);
    assert_int_equal(site_objects(&s), 3);
    site_done(&s);
}

/* ---- by chance ------------------------------------------------------------------------------ */

#define SEEDS 6
#define ACTIONS 15

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*state >> 33) % below;
}

static void act(struct site *s, uint64_t *chance)
{
    struct site_config *c = &s->config;
    switch (draw(chance, 7)) {
    case 0:
        site_kill(s);
        site_start(s);
        return;
    case 1:
        c->is_active = !c->is_active;
        break;
    case 2:
        c->restart++;
        break;
    case 3:
        c->purge++;
        c->generation = (c->generation + 1) % 3;
        break;
    case 4:
        c->has_app = !c->has_app;
        break;
    case 5:
        c->has_app = c->has_volume = c->has_content = !c->has_content;
        break;
    default:
        c->is_second = !c->is_second;
    }
    site_configure(s);
}

static struct str wander(uint64_t seed, struct arena *to)
{
    struct site s;
    uint64_t chance = seed;
    site_init(&s);
    if (seed) {
        s.sim.seed = seed;
        s.sim.fetch_fails_permille = s.sim.create_fails_permille = 200;
        s.sim.boot_fails_permille = s.sim.crashes_permille = 200;
    }
    site_start(&s);
    for (int i = 0; seed && i < ACTIONS; i++) {
        for (uint64_t n = draw(&chance, 12); n > 0; n--)
            (void) site_step(&s);
        act(&s, &chance);
    }
    /* The faults end, and everybody knows what is wanted. */
    site_kill(&s);
    s.sim = runtime_sim_defaults;
    s.config = (struct site_config){
        .has_app = true,
        .has_volume = true,
        .has_content = true,
        .has_store = true,
        .has_network = true,
        .is_active = true,
        .restart = 100,
        .purge = 100,
        .generation = 2,
        .version = "9",
    };
    site_start(&s);
    site_run(&s, 3000);
    struct str end = arena_str(to, site_end_state(&s, /* is_exact= */ false));
    site_done(&s);
    return end;
}

TEST(whatever_happens_on_the_way_the_end_is_the_same)
{
    ARENA_AUTO arena = arena_new();
    struct str wanted = wander(0, arena);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct str got = wander(seed, arena);
        if (!str_eq(wanted, got))
            fail_msg("seed %d: got\n%.*swanted\n%.*s", (int) seed, STR_ARG(got), STR_ARG(wanted));
    }
}
