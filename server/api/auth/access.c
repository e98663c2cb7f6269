/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth/access.h"

#include <errno.h>

#include "api/names.h"

/* ---- who ----------------------------------------------------------------------------------- */

static struct user anonymous(void)
{
    static const struct str groups[] = {STR(GROUP_UNAUTHENTICATED)};
    return (struct user){.name = STR(USER_ANONYMOUS), .groups = groups, .n_groups = 1};
}

/* Whoever has been recognised is a member of system:authenticated. */
static struct user authenticated(struct arena *a, struct user u)
{
    if (str_is(u.name, USER_ANONYMOUS) || user_has_group(&u, STR(GROUP_AUTHENTICATED)) ||
        user_has_group(&u, STR(GROUP_UNAUTHENTICATED)))
        return u;
    struct str *groups = ARENA_ARRAY(a, struct str, u.n_groups + 1);
    for (size_t i = 0; i < u.n_groups; i++)
        groups[i] = u.groups[i];
    groups[u.n_groups++] = STR(GROUP_AUTHENTICATED);
    u.groups = groups;
    return u;
}

/* "Bearer", blanks, the token; what follows it after a blank is not looked at. */
struct str access_bearer_token(const struct http_request *r)
{
    static const struct str scheme = STR("bearer");
    struct str value = str_trim(http_request_header(r, STR("authorization")));
    if (value.n <= scheme.n || value.p[scheme.n] != ' ' ||
        !str_eq_nocase(str_sub(value, 0, scheme.n), scheme))
        return STR_NONE;
    struct str token = str_from(value, scheme.n + 1);
    ptrdiff_t blank = str_find(token, ' ');
    token = blank < 0 ? token : str_sub(token, 0, (size_t) blank);
    return token.n ? token : STR_NONE;
}

int access_authenticate(struct authenticator *auth, const struct http_request *r,
                        struct user *ret_user, struct status *st)
{
    const struct stream_peer *peer = r->peer;
    if (peer->has_certificate && peer->common_name.n) {
        *ret_user = authenticated(st->arena, (struct user){.name = peer->common_name,
                                                           .groups = peer->organizations,
                                                           .n_groups = peer->n_organizations});
        return 0;
    }
    struct str token = access_bearer_token(r);
    if (!token.n) {
        *ret_user = anonymous();
        return peer->certificate_rejected ? status_unauthorized(st) : 0;
    }
    struct token_identity identity = {0};
    int result = authenticator_verify(auth, st->arena, token, /* audiences= */ NULL,
                                      /* n_audiences= */ 0, /* may_block= */ false, &identity);
    if (result == -EAGAIN)
        return result;
    if (result < 0)
        return status_unauthorized(st);
    *ret_user = authenticated(st->arena, identity.user);
    return 0;
}

/* ---- may they ------------------------------------------------------------------------------ */

static struct str resource_words(struct arena *a, const struct access_question *q)
{
    struct str resource = q->subresource.n ? arena_printf(a, "%.*s/%.*s", STR_ARG(q->resource),
                                                          STR_ARG(q->subresource))
                                           : q->resource;
    struct str where = q->namespace.n ? arena_printf(a, "in the namespace %.*s",
                                                     STR_ARG(status_quote(a, q->namespace)))
                                      : STR("at the cluster scope");
    return arena_printf(a, "User %.*s cannot %.*s resource %.*s in API group %.*s %.*s",
                        STR_ARG(status_quote(a, q->user->name)), STR_ARG(q->verb),
                        STR_ARG(status_quote(a, resource)), STR_ARG(status_quote(a, q->group)),
                        STR_ARG(where));
}

static void forbid_resource(const struct access_question *q, struct status *st)
{
    struct arena *a = st->arena;
    struct str words = resource_words(a, q);
    struct str full = q->group.n
                          ? arena_printf(a, "%.*s.%.*s", STR_ARG(q->resource), STR_ARG(q->group))
                          : q->resource;
    struct str name =
        q->name.n ? arena_printf(a, " %.*s", STR_ARG(status_quote(a, q->name))) : STR("");
    (void) status_fail(st, 403, "Forbidden", "%.*s%.*s is forbidden: %.*s", STR_ARG(full),
                       STR_ARG(name), STR_ARG(words));
    st->name = q->name;
    st->group = q->group;
    st->kind = q->resource;
}

int access_forbid(const struct access_question *q, struct status *st)
{
    if (q->is_resource)
        forbid_resource(q, st);
    else
        (void) status_fail(st, 403, "Forbidden", "forbidden: User %.*s cannot %.*s path %.*s",
                           STR_ARG(status_quote(st->arena, q->user->name)), STR_ARG(q->verb),
                           STR_ARG(status_quote(st->arena, q->path)));
    st->has_details = true;
    return -EPERM;
}

static int check(struct rbac *rbac, const struct access_question *q, struct status *st,
                 struct str *ret_reason)
{
    return rbac_allows(rbac, q, st->arena, ret_reason) ? 0 : access_forbid(q, st);
}

/* A list of one object by name may be permitted where a list of all is not. */
static struct str selected_name(const struct call_input *in)
{
    struct str rest = request_parameter(&in->query, "fieldSelector"), part = STR_NONE;
    while (str_split(&rest, ',', &part)) {
        ptrdiff_t at = str_find(part, '=');
        if (at < 0 || !str_eq(str_sub(part, 0, (size_t) at), STR("metadata.name")))
            continue;
        struct str value = str_from(part, (size_t) at + 1);
        return str_starts_with(value, STR("=")) ? str_from(value, 1) : value;
    }
    return STR("");
}

static struct str asked_name(struct arena *a, const struct call_input *in)
{
    if (in->path.name.n || (in->verb != VERB_LIST && in->verb != VERB_WATCH))
        return in->path.name;
    struct str name = selected_name(in);
    return name.n && name_path_segment(a, name).n == 0 ? name : STR("");
}

int access_check_resource(struct rbac *rbac, const struct call_input *in, struct status *st,
                          struct str *ret_reason)
{
    const struct request_path *p = &in->path;
    /* A namespace is inside itself: whoever is bound there may be allowed to see it. */
    bool is_namespace = !p->group.n && str_is(p->resource, "namespaces");
    struct access_question q = {
        .user = &in->user,
        .verb = verb_name(in->verb),
        .is_resource = true,
        .group = p->group,
        .resource = p->resource,
        .subresource = p->subresource,
        .namespace = is_namespace ? p->name : p->namespace,
        .name = asked_name(st->arena, in),
    };
    return check(rbac, &q, st, ret_reason);
}

struct str access_path_verb(struct str method)
{
    static const struct {
        struct str method, verb;
    } verbs[] = {{STR("GET"), STR("get")},         {STR("HEAD"), STR("head")},
                 {STR("POST"), STR("post")},       {STR("PUT"), STR("put")},
                 {STR("PATCH"), STR("patch")},     {STR("DELETE"), STR("delete")},
                 {STR("OPTIONS"), STR("options")}, {STR("TRACE"), STR("trace")},
                 {STR("CONNECT"), STR("connect")}};
    for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
        if (str_eq(method, verbs[i].method))
            return verbs[i].verb;
    return method;
}

int access_check_path(struct rbac *rbac, const struct user *u, struct str method, struct str path,
                      struct status *st, struct str *ret_reason)
{
    struct access_question q = {.user = u, .verb = access_path_verb(method), .path = path};
    return check(rbac, &q, st, ret_reason);
}
