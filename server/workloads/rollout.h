/* SPDX-License-Identifier: Apache-2.0 */
/* How many may be made and taken away at once: the arithmetic of rolling updates, as apps/v1 has
 * it. Pure functions. */
#pragma once

#include "json/json.h"

enum rollout_rounding { ROLLOUT_ROUND_DOWN, ROLLOUT_ROUND_UP };

/* A number, or a percentage of total as "25%". or_else when v says neither; never negative. */
int64_t rollout_scaled(const struct json *v, int64_t total, enum rollout_rounding rounding,
                       int64_t or_else);

struct rollout_limits {
    int64_t surge, unavailable;
};
/* Of an ApplicationDeployment: spec.strategy.rollingUpdate, may be NULL; a quarter each unless it
 * says otherwise. Both zero would be a standstill: then one may be unavailable. */
struct rollout_limits rollout_deployment_limits(const struct json *rolling, int64_t replicas);
/* Of an ApplicationDaemonSet on so many devices, at least one. */
int64_t rollout_daemon_unavailable(const struct json *rolling, int64_t n_wanted);
/* Of an ApplicationStatefulSet, at least one. */
int64_t rollout_stateful_unavailable(const struct json *rolling, int64_t replicas);

/* Those of the newest template and the others, without those on their way out. Standing: available,
 * or on a device that is out of touch. */
struct rollout_counts {
    int64_t replicas;
    int64_t n_new, n_new_standing;
    int64_t n_old, n_old_standing;
};

struct rollout_step {
    int64_t n_create;        /* from the newest template */
    int64_t n_delete_new;    /* more than wanted */
    int64_t n_delete_fallen; /* of the old, those that stand not */
    int64_t n_delete_old;    /* of the old, those that stand */
};
struct rollout_step rollout_step(const struct rollout_counts *c, const struct rollout_limits *l);
