/* SPDX-License-Identifier: Apache-2.0 */
#include "api/write.h"

static int build(struct call *c, const struct json *old, struct json **ret_new)
{
    (void) old;
    struct json *object = NULL;
    int r = body_object(c, &object);
    if (r == 0)
        r = write_check_identity(c, object);
    if (r < 0)
        return r;
    const struct json *meta = json_get(object, STR("metadata"));
    struct str revision = json_get_str(meta, STR("resourceVersion"));
    if (revision.n && !str_is(revision, "0"))
        return status_fail(&c->status, 400, "BadRequest",
                           "resourceVersion should not be set on objects to be created");
    *ret_new = object;
    return 0;
}

void verb_create(struct call *c)
{
    if (write_check_options(c, "CreateOptions", false) < 0) {
        call_fail(c);
        return;
    }
    if (verb_reviews(c)) {
        verb_review(c);
        return;
    }
    write_run(c, &(struct write_plan){.build = build, .must_create = true});
}
