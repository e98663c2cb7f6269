/* SPDX-License-Identifier: Apache-2.0 */
/* No new objects of a kind whose definition is going away: its clean-up would miss them. */
#include "api/admission/admission.h"

static int admit(struct admission *a)
{
    struct call *c = a->call;
    if (a->old || !c->kind->is_terminating)
        return 0;
    return status_forbidden(&c->status, c->kind, a->name,
                            "create not allowed while custom resource definition is terminating");
}

const struct admission_hook definition_lifecycle = {.name = "definition lifecycle", .admit = admit};
