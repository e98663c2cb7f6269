/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/rollout.h"

#include "base/lang.h"

#define PERCENT_MAX 1000000

static bool parse_percent(struct str text, int64_t *ret_percent)
{
    return str_ends_with(text, STR("%")) &&
           str_to_i64(str_sub(text, 0, text.n - 1), ret_percent) == 0 && *ret_percent >= 0;
}

int64_t rollout_scaled(const struct json *v, int64_t total, enum rollout_rounding rounding,
                       int64_t or_else)
{
    int64_t percent = 0;
    if (json_is(v, JSON_INT))
        return MAX(v->i, (int64_t) 0);
    if (!parse_percent(json_str(v), &percent))
        return or_else;
    const int64_t product = MIN(percent, (int64_t) PERCENT_MAX) * total;
    return (product + (rounding == ROLLOUT_ROUND_UP ? 99 : 0)) / 100;
}

struct rollout_limits rollout_deployment_limits(const struct json *rolling, int64_t replicas)
{
    const struct json quarter = json_string(STR("25%"));
    const struct json *surge = json_get(rolling, STR("maxSurge")),
                      *unavailable = json_get(rolling, STR("maxUnavailable"));
    struct rollout_limits l = {
        .surge = rollout_scaled(surge ? surge : &quarter, replicas, ROLLOUT_ROUND_UP, 1),
        .unavailable =
            rollout_scaled(unavailable ? unavailable : &quarter, replicas, ROLLOUT_ROUND_DOWN, 0)};
    if (l.surge == 0 && l.unavailable == 0)
        l.unavailable = 1;
    l.unavailable = MIN(l.unavailable, replicas);
    return l;
}

int64_t rollout_daemon_unavailable(const struct json *rolling, int64_t n_wanted)
{
    return MAX(
        rollout_scaled(json_get(rolling, STR("maxUnavailable")), n_wanted, ROLLOUT_ROUND_UP, 1),
        (int64_t) 1);
}

int64_t rollout_stateful_unavailable(const struct json *rolling, int64_t replicas)
{
    return MAX(
        rollout_scaled(json_get(rolling, STR("maxUnavailable")), replicas, ROLLOUT_ROUND_DOWN, 1),
        (int64_t) 1);
}

static int64_t within(int64_t n, int64_t max)
{
    return MAX(MIN(n, max), (int64_t) 0);
}

/* What is made now counts as there, but not as standing. */
struct rollout_step rollout_step(const struct rollout_counts *c, const struct rollout_limits *l)
{
    struct rollout_step s = {0};
    const int64_t room = c->replicas + l->surge - c->n_new - c->n_old;
    s.n_create = within(c->replicas - c->n_new, room);
    s.n_delete_new = within(c->n_new - c->replicas, c->n_new);
    const int64_t n_new = c->n_new + s.n_create - s.n_delete_new;
    /* Those that go are the ones that stand not, as long as there are such. */
    const int64_t n_new_standing = MIN(c->n_new_standing, n_new);
    const int64_t min_standing = c->replicas - l->unavailable;
    const int64_t n_fallen = c->n_old - c->n_old_standing;
    const int64_t spare = n_new_standing + c->n_old - min_standing;
    s.n_delete_fallen = within(n_fallen, spare);
    s.n_delete_old = within(n_new_standing + c->n_old_standing - min_standing, c->n_old_standing);
    return s;
}
