/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are answered and never stored: their kind's review() is the whole verb. */
#include "api/write.h"
#include "base/alloc.h"

/* What is posted to a subresource is of the kind the subresource speaks. */
static const struct kind *posted_kind(const struct call *c)
{
    const struct kind_subresource *s = c->subresource;
    if (!s)
        return c->kind;
    struct str api_version =
        s->group.n ? arena_printf(c->arena, "%.*s/%.*s", STR_ARG(s->group), STR_ARG(s->version))
                   : s->version;
    return registry_find_kind(c->registry, api_version, s->kind);
}

static int review(struct call *c, struct json **ret_object)
{
    int r = body_object(c, ret_object);
    if (r == 0)
        r = write_check_identity(c, *ret_object);
    if (r < 0)
        return r;
    struct json *object = *ret_object;
    schema_default(c->arena, c->kind->schema, object);
    struct managed_options options = write_managed_options(c);
    managed_update(c->arena, NULL, object, &options);
    return c->kind->hooks->review(c, object);
}

bool verb_reviews(const struct call *c)
{
    const struct kind *k = posted_kind(c);
    return k && k->hooks && k->hooks->review;
}

void verb_review(struct call *c)
{
    struct json *object = NULL;
    c->kind = posted_kind(c);
    if (review(c, &object) < 0)
        call_fail(c);
    else
        call_reply_json(c, 201, object);
}
