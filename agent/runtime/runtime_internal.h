/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the runtime's front share. */
#pragma once

#include "runtime/runtime_machine.h"

struct runtime {
    const struct runtime_machine *functions;
    void *machine;
    const struct clock *clock;
    struct runtime_events events;
    struct map objects[RUNTIME_KINDS];
};

/* Replace every string of what was asked for by a copy in the arena. -EINVAL: beyond the limits.
 * The hash is never 0. */
int runtime_copy_content(struct arena *a, struct runtime_content *c, uint64_t *ret_hash);
int runtime_copy_volume(struct arena *a, struct runtime_volume *v, uint64_t *ret_hash);
int runtime_copy_instance(struct arena *a, struct runtime_instance *i, uint64_t *ret_hash);

/* Decides what this object needs next, and begins it. */
void runtime_settle(struct runtime_object *o);
void runtime_report(struct runtime_object *o);
/* Frees it, after its last event. */
void runtime_forget(struct runtime_object *o);
