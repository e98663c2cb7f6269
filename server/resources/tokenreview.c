/* SPDX-License-Identifier: Apache-2.0 */
/* Whose is this token, and who am I: questions that are answered and never stored. */
#include <errno.h>

#include "api/call.h"
#include "api/token/authenticate.h"
#include "resources/resources.h"

static struct json string_list(struct arena *a, const struct str *items, size_t n)
{
    struct json list = json_array();
    for (size_t i = 0; i < n; i++)
        (void) json_push(a, &list, json_string(items[i]));
    return list;
}

/* authentication.k8s.io/v1 UserInfo. */
static struct json user_info(struct arena *a, const struct user *u)
{
    struct json info = json_object();
    if (u->name.n)
        (void) json_append_member(a, &info, STR("username"), json_string(u->name));
    if (u->uid.n)
        (void) json_append_member(a, &info, STR("uid"), json_string(u->uid));
    if (u->n_groups)
        (void) json_append_member(a, &info, STR("groups"), string_list(a, u->groups, u->n_groups));
    if (u->n_extra) {
        struct json extra = json_object();
        for (size_t i = 0; i < u->n_extra; i++)
            (void) json_set(a, &extra, u->extra[i].key,
                            string_list(a, u->extra[i].values, u->extra[i].n_values));
        json_sort_members(&extra);
        (void) json_append_member(a, &info, STR("extra"), extra);
    }
    return info;
}

/* ---- TokenReview -------------------------------------------------------------------------- */

static size_t audiences_of(struct arena *a, const struct json *list, struct str **ret_items)
{
    size_t n = 0;
    *ret_items = ARENA_ARRAY(a, struct str, json_count(list) + 1);
    JSON_FOR_EACH_ITEM (list, item)
        (*ret_items)[n++] = json_str(item);
    return n;
}

/* kube-apiserver's union of authenticators adds its own word before that of the source. */
static struct str error_text(struct arena *a, struct str why)
{
    return why.n ? arena_printf(a, "[invalid bearer token, %.*s]", STR_ARG(why))
                 : STR("invalid bearer token");
}

static struct json review_status(struct arena *a, int r, const struct token_identity *i)
{
    const struct user nobody = {0};
    struct json status = json_object();
    if (r == 0)
        (void) json_append_member(a, &status, STR("authenticated"), json_bool(true));
    (void) json_append_member(a, &status, STR("user"), user_info(a, r == 0 ? &i->user : &nobody));
    if (r == 0 && i->n_audiences)
        (void) json_append_member(a, &status, STR("audiences"),
                                  string_list(a, i->audiences, i->n_audiences));
    if (r < 0)
        (void) json_append_member(a, &status, STR("error"), json_string(error_text(a, i->error)));
    return status;
}

static int review_token(struct call *c, struct json *object)
{
    const struct json *spec = json_get(object, STR("spec"));
    const struct str token = json_get_str(spec, STR("token"));
    struct token_identity identity = {0};
    struct str *audiences = NULL;
    if (!token.n)
        return status_bad_request(&c->status,
                                  "token is required for TokenReview in authentication");
    const size_t n = audiences_of(c->arena, json_get(spec, STR("audiences")), &audiences);
    const int r = authenticator_verify(api_authenticator(c->api), c->arena, token, audiences, n,
                                       c->may_block, &identity);
    if (r == -EAGAIN && !c->may_block) {
        c->must_block = true;
        return r;
    }
    (void) json_set(c->arena, object, STR("status"), review_status(c->arena, r, &identity));
    return 0;
}

const struct kind_hooks tokenreview_hooks = {
    .group = STR("authentication.k8s.io"),
    .plural = STR("tokenreviews"),
    .review = review_token,
};

/* ---- SelfSubjectReview -------------------------------------------------------------------- */

static int review_self(struct call *c, struct json *object)
{
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(api_clock(c->api)->wall_us(api_clock(c->api)), now);
    struct json meta = json_object(), status = json_object();
    (void) json_append_member(c->arena, &meta, STR("creationTimestamp"),
                              json_string(arena_str(c->arena, str_of(now))));
    (void) json_append_member(c->arena, &status, STR("userInfo"), user_info(c->arena, &c->in.user));
    (void) json_set(c->arena, object, STR("metadata"), meta);
    (void) json_set(c->arena, object, STR("status"), status);
    return 0;
}

const struct kind_hooks selfsubjectreview_hooks = {
    .group = STR("authentication.k8s.io"),
    .plural = STR("selfsubjectreviews"),
    .review = review_self,
};
