/* SPDX-License-Identifier: Apache-2.0 */
/* An object as a webhook is shown it, and back again with its changes. */
#include "schema/patch.h"

#include <errno.h>

#include "api/admission/webhooks_internal.h"
#include "api/decode.h"
#include "api/scale.h"
#include "api/write.h"

/* ---- there -------------------------------------------------------------------------------- */

static bool is_scale(const struct call *c)
{
    return c->subresource && str_is(c->subresource->name, "scale");
}

/* The object in another version of its kind; a copy. */
static struct json *convert(struct arena *a, const struct json *object, const struct kind *from,
                            const struct kind *to)
{
    struct json *copy = json_new(a, json_clone(a, object));
    if (from == to)
        return copy;
    if (from->to_stored)
        from->to_stored(a, copy);
    if (to->from_stored) {
        to->from_stored(a, copy);
    } else if (!to->is_native) {
        schema_prune(a, to->schema, copy, NULL);
        schema_default(a, to->schema, copy);
    }
    (void) json_set(a, copy, STR("apiVersion"), json_string(to->api_version));
    (void) json_set(a, copy, STR("kind"), json_string(to->kind));
    return copy;
}

struct json *webhook_view(const struct webhook_question *q, const struct json *object,
                          const struct kind *k)
{
    struct call *c = q->a->call;
    if (is_scale(c))
        return scale_view(c, object);
    return convert(c->arena, object, c->kind, k);
}

/* ---- and back ----------------------------------------------------------------------------- */

static int check_type(struct call *c, const struct webhook *h, const struct json *view,
                      const struct json *patched)
{
    static const char *const fixed[] = {"apiVersion", "kind"};
    if (!json_is(patched, JSON_OBJECT))
        return webhook_fail_internal(
            c, arena_printf(c->arena, "admission webhook %.*s made something else of the object",
                            STR_ARG(status_quote(c->arena, h->name))));
    for (size_t i = 0; i < N_ELEMENTS(fixed); i++) {
        struct str was = json_get_str(view, str_of(fixed[i])),
                   is = json_get_str(patched, str_of(fixed[i]));
        if (!str_eq(was, is))
            return webhook_fail_internal(
                c, arena_printf(c->arena,
                                "admission webhook %.*s attempted to change the %s of the object "
                                "from %.*s to %.*s",
                                STR_ARG(status_quote(c->arena, h->name)), fixed[i],
                                STR_ARG(status_quote(c->arena, was)),
                                STR_ARG(status_quote(c->arena, is))));
    }
    return 0;
}

/* What a webhook may not touch, as no writer may, is put back. */
static void keep_metadata(struct call *c, const struct json *before, struct json *meta)
{
    static const char *const kept[] = {"creationTimestamp", "generation", "selfLink",
                                       "resourceVersion"};
    static const char *const kept_if_absent[] = {"uid", "deletionTimestamp",
                                                 "deletionGracePeriodSeconds"};
    for (size_t i = 0; i < N_ELEMENTS(kept); i++) {
        const struct json *value = json_get(before, str_of(kept[i]));
        if (value)
            (void) json_set(c->arena, meta, str_of(kept[i]), *value);
        else
            (void) json_remove(meta, str_of(kept[i]));
    }
    for (size_t i = 0; i < N_ELEMENTS(kept_if_absent); i++) {
        const struct json *value = json_get(before, str_of(kept_if_absent[i]));
        const struct json *given = json_get(meta, str_of(kept_if_absent[i]));
        if (value && (!given || given->type == JSON_NULL))
            (void) json_set(c->arena, meta, str_of(kept_if_absent[i]), *value);
    }
}

/* Who owns which field is for the server to say; what a webhook changes belongs to nobody. */
static void keep_managed(struct call *c, const struct json *before, struct json *meta)
{
    const struct json *was = json_get(before, STR("managedFields")),
                      *is = json_get(meta, STR("managedFields"));
    if (was && is && json_equal(was, is))
        return;
    if (is)
        call_warn(c, STR(".metadata.managedFields was in an invalid state after admission; this "
                         "could be caused by an outdated mutating admission controller; please "
                         "fix your requests: they are not a webhook's to change"));
    if (was)
        (void) json_set(c->arena, meta, STR("managedFields"), *was);
    else
        (void) json_remove(meta, STR("managedFields"));
}

static int check_namespace(struct call *c, struct json *meta)
{
    struct str namespace = json_get_str(meta, STR("namespace"));
    if (namespace.n && !str_eq(namespace, c->in.path.namespace))
        return status_bad_request(&c->status,
                                  "the namespace of the provided object does not match the "
                                  "namespace sent on the request");
    if (c->kind->is_namespaced)
        (void) json_set(c->arena, meta, STR("namespace"), json_string(c->in.path.namespace));
    else
        (void) json_remove(meta, STR("namespace"));
    return 0;
}

/* As a written object is decoded: pruned, typed, defaulted. */
static int decode(const struct webhook_question *q, struct json *object)
{
    struct call *c = q->a->call;
    const struct kind_hooks *hooks = c->kind->hooks;
    struct str error = STR_NONE;
    schema_prune(c->arena, c->kind->schema, object, NULL);
    if (decode_object(c->arena, c->kind, object, &error) < 0)
        return webhook_fail_internal(c, error);
    schema_default(c->arena, c->kind->schema, object);
    if (hooks && hooks->set_defaults) {
        struct hook_context h = call_hook_context(c, q->a->old ? WRITE_UPDATE : WRITE_CREATE);
        h.name = json_str(json_at(object, "metadata", "name", NULL));
        hooks->set_defaults(&h, object);
    }
    struct json *meta = json_ensure_object(c->arena, object, STR("metadata"));
    const struct json *before = json_get(q->a->object, STR("metadata"));
    keep_metadata(c, before, meta);
    keep_managed(c, before, meta);
    return check_namespace(c, meta);
}

/* From what the webhook made of its view to the object. */
static int adopt(const struct webhook_question *q, const struct kind *k, const struct json *patched,
                 struct json *ret_object)
{
    struct call *c = q->a->call;
    if (is_scale(c)) {
        *ret_object = json_clone(c->arena, q->a->object);
        return scale_take(c, ret_object, patched);
    }
    *ret_object = *convert(c->arena, patched, k, c->kind);
    return decode(q, ret_object);
}

int webhook_patch(const struct webhook_question *q, const struct webhook *h, const struct kind *k,
                  const struct json *patch, bool *ret_changed)
{
    struct call *c = q->a->call;
    struct patch_error error = {0};
    struct json *patched = NULL, object;
    if (!q->a->object)
        return webhook_fail_internal(
            c, arena_printf(c->arena,
                            "admission webhook %.*s attempted to modify the object, which is not "
                            "supported for this operation",
                            STR_ARG(status_quote(c->arena, h->name))));
    const struct json *view = webhook_view(q, q->a->object, k);
    if (patch_json(c->arena, view, patch, &patched, &error) < 0)
        return webhook_fail_internal(
            c, arena_printf(c->arena, "the patch of admission webhook %.*s does not apply: %.*s",
                            STR_ARG(status_quote(c->arena, h->name)), STR_ARG(error.message)));
    /* A patch can make much from little; what is stored must be readable again. */
    if (!json_fits(patched, WRITE_MAX_VALUES))
        return webhook_fail_internal(
            c, arena_printf(c->arena, "admission webhook %.*s made the object too large",
                            STR_ARG(status_quote(c->arena, h->name))));
    int r = check_type(c, h, view, patched);
    if (r == 0)
        r = adopt(q, k, patched, &object);
    if (r < 0)
        return r;
    *ret_changed = !json_equal(q->a->object, &object);
    *q->a->object = object;
    return 0;
}
