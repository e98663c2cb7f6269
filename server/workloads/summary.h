/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of an owner: counts and conditions in its status, Events about what was done. */
#pragma once

#include "controllers/conditions.h"
#include "workloads/run.h"

void summary_count(struct run *run, const char *key, int64_t n);
void summary_text(struct run *run, const char *key, struct str text);
/* Returns the condition as it stands now; *ret_changed may be NULL. */
struct json *summary_condition(struct run *run, const struct condition *c, bool *ret_changed);

struct summary_tally {
    int64_t n_wanted;
    int64_t n_needed;   /* so many must stand */
    int64_t n_standing; /* available, or out of touch */
    int64_t n_available;
};
/* Condition Available. */
void summary_available(struct run *run, const struct summary_tally *t);
/* What is the same for all kinds: observedGeneration, collisionCount, selector, condition
 * ReplicaFailure. */
void summary_common(struct run *run);
/* Writes the status when it is another than before. */
int summary_write(struct run *run, const struct json *before);
/* Events about what was made and taken away, not too many. */
void summary_tell(struct run *run);

/* A LabelSelector as a text: "app=web,tier in (a,b)". */
struct str summary_selector(struct arena *a, const struct json *selector);
