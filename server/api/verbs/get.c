/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/call.h"
#include "api/list_options.h"
#include "api/scale.h"

/* A reader that names a version wants one at least that new; ours is always the newest. */
static int check_revision(struct call *c)
{
    int64_t revision = -1;
    int r = list_options_revision(c, &revision);
    if (r < 0)
        return r;
    int64_t current = store_revision(api_store(c->api));
    return revision > current ? status_too_large_version(&c->status, revision, current) : 0;
}

void verb_get(struct call *c)
{
    if (check_revision(c) < 0) {
        call_fail(c);
        return;
    }
    CLEANUP(object_unrefp) struct object *o = store_get(api_store(c->api), c->key);
    if (!o) {
        (void) status_not_found(&c->status, c->kind, c->in.path.name);
        call_fail(c);
    } else if (c->subresource && str_is(c->subresource->name, "scale")) {
        scale_reply(c, o);
    } else {
        call_reply_object(c, 200, o);
    }
}
