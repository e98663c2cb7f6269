/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/patch.h"

#include <errno.h>

#include "api/scale.h"
#include "api/write.h"
#include "schema/managed.h"

struct patch {
    enum media_patch type;
    struct json *value;
    const struct json_duplicate *duplicates;
    bool force;
};

static struct patch *patch_of(struct call *c)
{
    return c->patch;
}

static int decode_patch(struct call *c, struct patch *p)
{
    struct json_parse_result parsed = {0};
    bool is_apply = p->type == MEDIA_PATCH_APPLY;
    if (body_value(c, is_apply, &parsed) < 0) {
        if (is_apply)
            return status_bad_request(&c->status, "error decoding YAML: %.*s",
                                      STR_ARG(parsed.error));
        return status_bad_request(&c->status, "error decoding patch: %.*s", STR_ARG(parsed.error));
    }
    p->value = parsed.value;
    p->duplicates = parsed.duplicates;
    if (is_apply && p->value->type == JSON_NULL)
        *p->value = json_object();
    return 0;
}

/* A patch that names a version is meant for that one alone. */
static int check_patched_revision(struct call *c, const struct json *old, const struct json *object)
{
    struct str given = json_str(json_at(object, "metadata", "resourceVersion", NULL));
    struct str current = json_str(json_at(old, "metadata", "resourceVersion", NULL));
    if (given.n && !str_is(given, "0") && !str_eq(given, current))
        return status_modified(&c->status, c->kind, c->in.path.name);
    return 0;
}

/* ---- server-side apply -------------------------------------------------------------------- */

static int check_applied_type(struct call *c, const struct json *config)
{
    struct str api_version = json_get_str(config, STR("apiVersion")),
               kind = json_get_str(config, STR("kind"));
    if (str_eq(api_version, c->kind->api_version) && str_eq(kind, c->kind->kind))
        return 0;
    ptrdiff_t slash = str_find(api_version, '/');
    return slash < 0 ? status_bad_request(&c->status, "invalid object type: /%.*s, Kind=%.*s",
                                          STR_ARG(api_version), STR_ARG(kind))
                     : status_bad_request(&c->status, "invalid object type: %.*s, Kind=%.*s",
                                          STR_ARG(api_version), STR_ARG(kind));
}

int patch_fail_conflicts(struct call *c, const struct managed_conflict *conflicts)
{
    BUF_AUTO text = {0};
    struct causes causes;
    causes_init(&causes, c->arena);
    managed_conflicts_text(c->arena, conflicts, &text);
    (void) status_fail(&c->status, 409, "Conflict", "%.*s", STR_ARG(buf_str(&text)));
    c->status.has_details = true;
    for (const struct managed_conflict *m = conflicts; m; m = m->next) {
        struct cause *cause = ARENA_NEW(c->arena, struct cause);
        *cause = (struct cause){.type = CAUSE_MANAGER_CONFLICT, .field = m->field};
        cause->message = arena_printf(c->arena, "conflict with %.*s", STR_ARG(m->operation_text));
        *causes.last = cause;
        causes.last = &cause->next;
    }
    c->status.causes = causes.first;
    return -EEXIST;
}

static int build_applied(struct call *c, const struct json *old, struct json **ret_new)
{
    struct patch *p = patch_of(c);
    const struct json *config = p->value;
    static const char *const status_alone[] = {"status", NULL};
    struct managed_options options = write_managed_options(c);
    /* What a kind never lets change later must get into a new object all the same. */
    if (!old && options.reset_fields)
        options.reset_fields = status_alone;
    int r = check_applied_type(c, config);
    if (r == 0)
        r = body_check_duplicates(c, p->duplicates);
    if (r == 0)
        r = write_check_names(c, config);
    if (r == 0 && old)
        r = check_patched_revision(c, old, config);
    struct str uid = json_str(json_at(config, "metadata", "uid", NULL));
    if (r == 0 && !old && uid.n)
        r = status_conflict(&c->status, c->kind, c->in.path.name,
                            "uid mismatch: the provided object specified uid %.*s, and no existing "
                            "object was found",
                            STR_ARG(uid));
    if (r < 0)
        return r;
    struct managed_conflict *conflicts = NULL;
    struct str error = STR_NONE;
    r = managed_apply(c->arena, old, config, p->force, &options, ret_new, &conflicts, &error);
    if (r == -EEXIST)
        return patch_fail_conflicts(c, conflicts);
    if (r < 0)
        /* kube-apiserver answers 500 to a configuration that does not fit its schema; it is the
         * request that is bad. */
        return status_bad_request(&c->status, "%.*s", STR_ARG(error));
    write_unshare(c, *ret_new);
    r = write_check_identity(c, *ret_new);
    return r < 0 ? r : body_check_types(c, *ret_new, true);
}

/* ---- the other three ---------------------------------------------------------------------- */

int patch_fail(struct call *c, const struct patch_error *e)
{
    switch (e->kind) {
    case PATCH_INVALID:
        (void) status_fail(&c->status, 422, "Invalid", "%.*s", STR_ARG(e->message));
        c->status.has_details = true;
        break;
    case PATCH_TOO_LARGE:
        (void) status_fail(&c->status, 413, "RequestEntityTooLarge", "%.*s", STR_ARG(e->message));
        break;
    case PATCH_WRONG_TYPE:
        return body_fail_quoted(c, e->value, e->message);
    case PATCH_BAD_REQUEST:
    case PATCH_FAILED: /* kube-apiserver answers 500; it is the patch that is bad */
        (void) status_bad_request(&c->status, "%.*s", STR_ARG(e->message));
        break;
    }
    return -EINVAL;
}

static int run_patch(struct call *c, const struct patch *p, const struct json *old,
                     struct json **ret_new)
{
    struct patch_error error = {0};
    int r = 0;
    switch (p->type) {
    case MEDIA_PATCH_JSON:
        r = patch_json(c->arena, old, p->value, ret_new, &error);
        break;
    case MEDIA_PATCH_MERGE:
        r = patch_merge(c->arena, old, p->value, ret_new, &error);
        break;
    default:
        r = patch_strategic(c->arena, old, p->value, c->kind->schema, ret_new, &error);
    }
    return r < 0 ? patch_fail(c, &error) : 0;
}

/* A patch may touch apiVersion and kind, but not change them; natives may even lose them. */
static int check_patched_type(struct call *c, struct json *object)
{
    if (!c->kind->is_native)
        return body_check_type(c, object);
    struct str api_version = json_get_str(object, STR("apiVersion")),
               kind = json_get_str(object, STR("kind"));
    if ((kind.n && !str_eq(kind, c->kind->kind)) ||
        (api_version.n && !str_eq(api_version, c->kind->api_version)))
        return body_fail_patched(
            c, object,
            arena_printf(c->arena, "no kind \"%.*s\" of version \"%.*s\" can become a %.*s",
                         STR_ARG(kind), STR_ARG(api_version), STR_ARG(c->kind->kind)));
    (void) json_set(c->arena, object, STR("apiVersion"), json_string(c->kind->api_version));
    (void) json_set(c->arena, object, STR("kind"), json_string(c->kind->kind));
    return 0;
}

static int build_patched(struct call *c, const struct json *old, struct json **ret_new)
{
    struct patch *p = patch_of(c);
    struct json *object = NULL;
    int r = run_patch(c, p, old, &object);
    if (r < 0)
        return r;
    if (object->type != JSON_OBJECT)
        return status_bad_request(&c->status, "the patched value is no object");
    write_unshare(c, object);
    r = check_patched_type(c, object);
    if (r == 0)
        r = body_check_fields(c, object, p->duplicates, true);
    if (r == 0)
        r = body_check_types(c, object, true);
    if (r == 0)
        r = write_check_identity(c, object);
    if (r == 0)
        r = check_patched_revision(c, old, object);
    *ret_new = object;
    return r;
}

void verb_patch(struct call *c)
{
    struct patch *p = ARENA_NEW(c->arena, struct patch);
    c->patch = p;
    int r = media_patch_type(c->in.content_type, c->kind->is_native, &p->type, &c->status);
    bool is_apply = p->type == MEDIA_PATCH_APPLY;
    p->force = request_flag(&c->in.query, "force");
    if (r == 0)
        r = write_check_options(c, "PatchOptions", is_apply);
    if (r == 0)
        r = decode_patch(c, p);
    if (r < 0) {
        call_fail(c);
        return;
    }
    if (c->subresource && str_is(c->subresource->name, "scale"))
        scale_patch(c, p->type, p->value);
    else if (is_apply)
        write_run(c, &(struct write_plan){
                         .build = build_applied, .is_apply = true, .may_create = !c->subresource});
    else
        write_run(c, &(struct write_plan){.build = build_patched});
}
