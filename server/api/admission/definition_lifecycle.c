/* SPDX-License-Identifier: Apache-2.0 */
/* No new objects of a kind whose definition is going away: its clean-up would miss them. And no
 * definition of a kind that is built in: deleting it would take all objects along. */
#include "api/admission/admission.h"

static int admit(struct admission *a)
{
    struct call *c = a->call;
    if (a->old || !c->kind->is_terminating)
        return 0;
    return status_forbidden(&c->status, c->kind, a->name,
                            "create not allowed while custom resource definition is terminating");
}

static int validate(struct admission *a)
{
    struct call *c = a->call;
    if (a->old || !str_is(c->kind->collection, "customresourcedefinitions.apiextensions.k8s.io"))
        return 0;
    const struct kind *there = registry_collection(c->registry, a->name);
    if (!there || there->is_native || there->since_revision > 0)
        return 0;
    return status_forbidden(&c->status, c->kind, a->name, "this kind is built in");
}

const struct admission_hook definition_lifecycle = {
    .name = "definition lifecycle", .admit = admit, .validate = validate};
