/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "api/scale.h"
#include "api/write.h"

/* A revision of "" or "0" lets the write go over whatever is there. */
static int check_revision(struct call *c, const struct json *old, const struct json *object)
{
    struct str given = json_str(json_at(object, "metadata", "resourceVersion", NULL));
    struct str current = json_str(json_at(old, "metadata", "resourceVersion", NULL));
    int64_t number = 0;
    if (given.n && (str_to_i64(given, &number) < 0 || number < 0))
        return status_bad_request(
            &c->status,
            "metadata.resourceVersion: Invalid value: %.*s: must be an unsigned integer",
            STR_ARG(status_quote(c->arena, given)));
    bool is_unconditional = number == 0;
    bool needs_revision = !c->kind->is_native || (c->kind->hooks && c->kind->hooks->needs_revision);
    if (is_unconditional && needs_revision) {
        struct causes causes;
        causes_init(&causes, c->arena);
        struct field_path meta = FIELD_NAME(NULL, STR("metadata"));
        struct json zero = json_int(0);
        causes_add(&causes, CAUSE_INVALID, &FIELD_NAME(&meta, STR("resourceVersion")), &zero,
                   "must be specified for an update");
        return status_invalid(&c->status, c->kind->group, c->kind->plural, c->in.path.name,
                              &causes);
    }
    return is_unconditional || str_eq(given, current)
               ? 0
               : status_modified(&c->status, c->kind, c->in.path.name);
}

static int check_uid(struct call *c, const struct json *old, const struct json *object)
{
    struct str given = json_str(json_at(object, "metadata", "uid", NULL));
    struct str current = json_str(json_at(old, "metadata", "uid", NULL));
    if (!given.n || str_eq(given, current))
        return 0;
    return status_conflict(
        &c->status, c->kind, c->in.path.name,
        "StorageError: invalid object, Code: 4, Key: /registry/%.*s, ResourceVersion: 0, "
        "AdditionalErrorMsg: Precondition failed: UID in precondition: %.*s, UID in object meta: "
        "%.*s",
        STR_ARG(c->key), STR_ARG(given), STR_ARG(current));
}

static int build(struct call *c, const struct json *old, struct json **ret_new)
{
    struct json *object = NULL;
    int r = body_object(c, &object);
    if (r == 0)
        r = write_check_identity(c, object);
    if (r == 0 && old)
        r = check_revision(c, old, object);
    if (r == 0 && old)
        r = check_uid(c, old, object);
    *ret_new = object;
    return r;
}

void verb_update(struct call *c)
{
    if (write_check_options(c, "UpdateOptions", false) < 0) {
        call_fail(c);
        return;
    }
    if (c->subresource && str_is(c->subresource->name, "scale")) {
        scale_update(c);
        return;
    }
    bool may_create = c->kind->hooks && c->kind->hooks->creates_on_update && !c->subresource;
    write_run(c, &(struct write_plan){.build = build, .may_create = may_create});
}
