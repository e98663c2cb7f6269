/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/resources.h"

/* Of a secret only the name counts; the rest of the reference is dropped. */
static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    (void) old;
    const struct json *secrets = json_get(object, STR("secrets"));
    if (json_count(secrets) == 0)
        return;
    struct json names = json_array();
    JSON_FOR_EACH_ITEM (secrets, secret) {
        struct json reference = json_object();
        const struct json *name = json_get(secret, STR("name"));
        if (name)
            (void) json_append_member(h->arena, &reference, STR("name"), *name);
        (void) json_push(h->arena, &names, reference);
    }
    (void) json_set(h->arena, object, STR("secrets"), names);
}

const struct kind_hooks serviceaccount_hooks = {
    .group = STR(""),
    .plural = STR("serviceaccounts"),
    .prepare = prepare,
    .returns_deleted = true,
    .needs_revision = true,
};
