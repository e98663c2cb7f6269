/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of devices, as eve.lfedge.org has them. */
#include "resources/identity.h"
#include "resources/resources.h"

/* One that was deleted would be made anew, empty. */
static struct str check_delete(struct hook_context *h, const struct json *object)
{
    const struct str claim = json_str(json_at(object, "spec", "claim", NULL));
    if (!h->user || str_is(h->user->name, "system:apiserver") || !claim.n)
        return STR_NONE;
    return arena_printf(
        h->arena,
        "it holds the data of PersistentVolumeClaim '%.*s' and goes with it: delete "
        "the claim",
        STR_ARG(claim));
}

const struct kind_hooks eve_volume_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("volumes"),
    .prepare = identity_prepare,
    .validate_update = identity_check,
    .check_delete = check_delete,
};
