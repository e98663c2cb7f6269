/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/resources.h"

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    const struct json *data = json_get(object, STR("data"));
    const struct json *revision = json_get(object, STR("revision"));
    if (!data || data->type == JSON_NULL)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(NULL, STR("data")), NULL,
                   "data is mandatory");
    if (json_is(revision, JSON_INT) && revision->i < 0)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(NULL, STR("revision")), revision,
                   "must be greater than or equal to 0");
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    object_meta_check_immutable(causes, &FIELD_NAME(NULL, STR("data")), json_get(old, STR("data")),
                                json_get(object, STR("data")));
}

const struct kind_hooks controllerrevision_hooks = {
    .group = STR("apps"),
    .plural = STR("controllerrevisions"),
    .validate = validate,
    .validate_update = validate_update,
};
