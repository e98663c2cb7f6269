/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "workloads/rollout.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = json_parse_quick(a, str_of(text));
    assert_non_null(v);
    return v;
}

TEST(percentages_are_rounded_as_asked)
{
    static const struct {
        const char *value;
        int64_t total, down, up;
    } cases[] = {
        {"3", 10, 3, 3},         {"\"25%\"", 10, 2, 3},   {"\"25%\"", 4, 1, 1},
        {"\"0%\"", 10, 0, 0},    {"\"100%\"", 7, 7, 7},   {"\"1%\"", 10, 0, 1},
        {"\"33%\"", 3, 0, 1},    {"\"200%\"", 5, 10, 10}, {"-1", 5, 0, 0},
        {"\"many\"", 5, 42, 42}, {"\"-5%\"", 5, 42, 42},  {"\"%\"", 5, 42, 42},
        {"null", 5, 42, 42},     {"\"5\"", 5, 42, 42},    {"\"99999999999999999999%\"", 5, 42, 42},
        {"\"50%\"", 0, 0, 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        const struct json *v = parse(a, cases[i].value);
        assert_int_equal(rollout_scaled(v, cases[i].total, ROLLOUT_ROUND_DOWN, 42), cases[i].down);
        assert_int_equal(rollout_scaled(v, cases[i].total, ROLLOUT_ROUND_UP, 42), cases[i].up);
    }
    assert_int_equal(rollout_scaled(NULL, 5, ROLLOUT_ROUND_UP, 42), 42);
}

TEST(limits_of_deployments)
{
    static const struct {
        const char *rolling;
        int64_t replicas, surge, unavailable;
    } cases[] = {
        {"{}", 10, 3, 2},
        {"{}", 1, 1, 0},
        {"{}", 0, 0, 0},
        {"{\"maxSurge\":0,\"maxUnavailable\":0}", 5, 0, 1},
        {"{\"maxSurge\":0}", 3, 0, 1}, /* a quarter of three is none */
        {"{\"maxUnavailable\":10}", 3, 1, 3},
        {"{\"maxSurge\":\"50%\",\"maxUnavailable\":\"50%\"}", 3, 2, 1},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        const struct rollout_limits l =
            rollout_deployment_limits(parse(a, cases[i].rolling), cases[i].replicas);
        assert_int_equal(l.surge, cases[i].surge);
        assert_int_equal(l.unavailable, cases[i].unavailable);
    }
}

TEST(others_let_one_go_at_least)
{
    ARENA_AUTO a = arena_new();
    const struct json *tenth = parse(a, "{\"maxUnavailable\":\"10%\"}"),
                      *none = parse(a, "{\"maxUnavailable\":0}");
    assert_int_equal(rollout_daemon_unavailable(NULL, 100), 1);
    assert_int_equal(rollout_daemon_unavailable(tenth, 101), 11);
    assert_int_equal(rollout_daemon_unavailable(none, 100), 1);
    assert_int_equal(rollout_stateful_unavailable(NULL, 100), 1);
    assert_int_equal(rollout_stateful_unavailable(tenth, 109), 10);
    assert_int_equal(rollout_stateful_unavailable(tenth, 5), 1);
    assert_int_equal(rollout_stateful_unavailable(none, 5), 1);
}

TEST(steps)
{
    static const struct {
        struct rollout_counts counts;
        struct rollout_limits limits;
        struct rollout_step step;
    } cases[] = {
        /* from nothing, and from there to more and to fewer */
        {{.replicas = 3}, {1, 0}, {.n_create = 3}},
        {{.replicas = 5, .n_new = 3, .n_new_standing = 3}, {2, 1}, {.n_create = 2}},
        {{.replicas = 2, .n_new = 5, .n_new_standing = 4}, {1, 0}, {.n_delete_new = 3}},
        {{.replicas = 3, .n_new = 3, .n_new_standing = 1}, {1, 0}, {0}},
        /* one more at first, one of the old for one that stands */
        {{.replicas = 3, .n_old = 3, .n_old_standing = 3}, {1, 0}, {.n_create = 1}},
        {{.replicas = 3, .n_new = 1, .n_old = 3, .n_old_standing = 3}, {1, 0}, {0}},
        {{.replicas = 3, .n_new = 1, .n_new_standing = 1, .n_old = 3, .n_old_standing = 3},
         {1, 0},
         {.n_delete_old = 1}},
        /* one fewer at first */
        {{.replicas = 3, .n_old = 3, .n_old_standing = 3}, {0, 1}, {.n_delete_old = 1}},
        {{.replicas = 3, .n_old = 2, .n_old_standing = 2}, {0, 1}, {.n_create = 1}},
        {{.replicas = 3, .n_new = 1, .n_old = 2, .n_old_standing = 2}, {0, 1}, {0}},
        /* the fallen go first and cost nothing */
        {{.replicas = 3, .n_old = 3, .n_old_standing = 2}, {0, 1}, {.n_delete_fallen = 1}},
        {{.replicas = 3, .n_old = 3}, {0, 1}, {.n_delete_fallen = 1}},
        {{.replicas = 4, .n_old = 4}, {1, 4}, {.n_create = 1, .n_delete_fallen = 4}},
        /* all of the old when there are to be none */
        {{.replicas = 0, .n_old = 3, .n_old_standing = 2},
         {0, 0},
         {.n_delete_fallen = 1, .n_delete_old = 2}},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct rollout_step s = rollout_step(&cases[i].counts, &cases[i].limits),
                                  *wanted = &cases[i].step;
        if (s.n_create != wanted->n_create || s.n_delete_new != wanted->n_delete_new ||
            s.n_delete_fallen != wanted->n_delete_fallen || s.n_delete_old != wanted->n_delete_old)
            fail_msg("case %d: %d %d %d %d", (int) i, (int) s.n_create, (int) s.n_delete_new,
                     (int) s.n_delete_fallen, (int) s.n_delete_old);
    }
}

/* From any state, whatever becomes ready when: the limits hold and it ends. */
TEST(every_way_ends_within_the_limits)
{
    for (int64_t replicas = 0; replicas <= 6; replicas++)
        for (int64_t surge = 0; surge <= 3; surge++)
            for (int64_t unavailable = surge ? 0 : 1; unavailable <= MAX(replicas, 1);
                 unavailable++) {
                struct rollout_counts c = {
                    .replicas = replicas, .n_old = replicas, .n_old_standing = replicas};
                const struct rollout_limits l = {surge, MIN(unavailable, replicas)};
                int n_steps = 0;
                while (c.n_old || c.n_new_standing < replicas) {
                    const struct rollout_step s = rollout_step(&c, &l);
                    c.n_new += s.n_create - s.n_delete_new;
                    c.n_old -= s.n_delete_fallen + s.n_delete_old;
                    c.n_old_standing -= s.n_delete_old;
                    assert_true(c.n_new + c.n_old <= replicas + surge);
                    assert_true(c.n_new_standing + c.n_old_standing >= replicas - l.unavailable);
                    c.n_new_standing += c.n_new_standing < c.n_new;
                    assert_true(++n_steps < 100);
                }
            }
}
