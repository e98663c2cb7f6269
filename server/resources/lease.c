/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/resources.h"

/* Coordinated election is not offered, so its fields are dropped as by a kube-apiserver without the
 * feature. */
static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    (void) h;
    (void) old;
    struct json *spec = json_get(object, STR("spec"));
    if (json_is(spec, JSON_OBJECT)) {
        (void) json_remove(spec, STR("strategy"));
        (void) json_remove(spec, STR("preferredHolder"));
    }
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct json *spec = json_get(object, STR("spec"));
    const struct json *duration = json_get(spec, STR("leaseDurationSeconds"));
    const struct json *transitions = json_get(spec, STR("leaseTransitions"));
    if (json_is(duration, JSON_INT) && duration->i <= 0)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("leaseDurationSeconds")), duration,
                   "must be greater than 0");
    if (json_is(transitions, JSON_INT) && transitions->i < 0)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("leaseTransitions")), transitions,
                   "must be greater than or equal to 0");
}

const struct kind_hooks lease_hooks = {
    .group = STR("coordination.k8s.io"),
    .plural = STR("leases"),
    .prepare = prepare,
    .validate = validate,
    .needs_revision = true,
    .creates_on_update = true,
};
