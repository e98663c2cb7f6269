/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth/access.h"

#include <errno.h>

static bool is_master(const struct user *u)
{
    return user_has_group(u, STR(GROUP_MASTERS));
}

static bool is_anonymous(const struct user *u)
{
    return str_is(u->name, USER_ANONYMOUS);
}

static struct user connection_user(const struct stream_peer *peer)
{
    static const struct str unauthenticated[] = {{"system:unauthenticated", 22}};
    if (!peer->has_certificate)
        return (struct user){STR(USER_ANONYMOUS), unauthenticated, 1};
    return (struct user){peer->common_name, peer->organizations, peer->n_organizations};
}

/* The groups a request asks to have, system:authenticated among them as with any user. */
static size_t impersonated_groups(const struct http_request *r, struct arena *a,
                                  const struct str **ret_groups)
{
    struct str *groups = ARENA_ARRAY(a, struct str, r->n_headers + 1);
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_is(r->headers[i].name, "impersonate-group"))
            groups[n++] = r->headers[i].value;
    groups[n++] = STR("system:authenticated");
    *ret_groups = groups;
    return n;
}

static bool asks_impersonation(const struct http_request *r)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_starts_with(r->headers[i].name, STR("impersonate-")))
            return true;
    return false;
}

struct str access_bearer_token(const struct http_request *r)
{
    struct str value = http_request_header(r, STR("authorization"));
    static const struct str scheme = STR("bearer");
    if (value.n <= scheme.n || value.p[scheme.n] != ' ' ||
        !str_eq_nocase(str_sub(value, 0, scheme.n), scheme))
        return STR_NONE;
    struct str token = str_trim(str_from(value, scheme.n));
    return token.n ? token : STR_NONE;
}

int access_authenticate(struct authenticator *auth, const struct http_request *r, bool may_block,
                        struct user *ret_user, struct status *st)
{
    (void) auth;
    (void) may_block;
    *ret_user = connection_user(r->peer);
    return r->peer->certificate_rejected ? status_unauthorized(st) : 0;
}

int access_impersonate(struct rbac *rbac, const struct http_request *r, const struct user *real,
                       struct user *ret_user, bool *ret_impersonates, struct status *st)
{
    (void) rbac;
    *ret_user = *real;
    *ret_impersonates = asks_impersonation(r);
    if (!*ret_impersonates)
        return 0;
    struct str name = http_request_header(r, STR("impersonate-user"));
    if (is_anonymous(real))
        return status_unauthorized(st);
    if (!is_master(real))
        return status_fail(st, 403, "Forbidden",
                           "users \"%.*s\" is forbidden: User \"%.*s\" cannot impersonate resource "
                           "\"users\" in API group \"\" at the cluster scope",
                           STR_ARG(name), STR_ARG(real->name));
    if (!name.n)
        return status_bad_request(st,
                                  "requested impersonation without the header Impersonate-User");
    *ret_user = (struct user){.name = name};
    ret_user->n_groups = impersonated_groups(r, st->arena, &ret_user->groups);
    return 0;
}

int access_check_resource(struct rbac *rbac, const struct call_input *in, struct status *st,
                          struct str *ret_reason)
{
    const struct user *u = &in->user;
    const struct request_path *p = &in->path;
    (void) rbac;
    if (ret_reason)
        *ret_reason = STR("");
    if (is_master(u))
        return 0;
    if (is_anonymous(u))
        return status_unauthorized(st);
    struct str resource =
        p->subresource.n
            ? arena_printf(st->arena, "%.*s/%.*s", STR_ARG(p->resource), STR_ARG(p->subresource))
            : p->resource;
    struct str where =
        p->namespace.n ? arena_printf(st->arena, "in the namespace \"%.*s\"", STR_ARG(p->namespace))
                       : STR("at the cluster scope");
    struct str full =
        p->group.n ? arena_printf(st->arena, "%.*s.%.*s", STR_ARG(p->resource), STR_ARG(p->group))
                   : p->resource;
    struct str name = p->name.n ? arena_printf(st->arena, " \"%.*s\"", STR_ARG(p->name)) : STR("");
    (void) status_fail(st, 403, "Forbidden",
                       "%.*s%.*s is forbidden: User \"%.*s\" cannot %.*s resource \"%.*s\" in API "
                       "group \"%.*s\" %.*s",
                       STR_ARG(full), STR_ARG(name), STR_ARG(u->name), STR_ARG(verb_name(in->verb)),
                       STR_ARG(resource), STR_ARG(p->group), STR_ARG(where));
    st->has_details = true;
    st->name = p->name;
    st->group = p->group;
    st->kind = p->resource;
    return -EPERM;
}

/* Load balancers and clients that look for a server have no credentials. */
static bool is_public(struct str path)
{
    static const struct str roots[] = {
        {"/healthz", 8}, {"/livez", 6}, {"/readyz", 7}, {"/version", 8}};
    for (size_t i = 0; i < N_ELEMENTS(roots); i++)
        if (str_starts_with(path, roots[i]) && (path.n == roots[i].n || path.p[roots[i].n] == '/'))
            return true;
    return false;
}

struct str access_path_verb(struct str method)
{
    static const struct {
        struct str method, verb;
    } verbs[] = {{STR("GET"), STR("get")},         {STR("HEAD"), STR("head")},
                 {STR("POST"), STR("post")},       {STR("PUT"), STR("put")},
                 {STR("PATCH"), STR("patch")},     {STR("DELETE"), STR("delete")},
                 {STR("OPTIONS"), STR("options")}, {STR("TRACE"), STR("trace")}};
    for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
        if (str_eq(method, verbs[i].method))
            return verbs[i].verb;
    return STR("other");
}

int access_check_path(struct rbac *rbac, const struct user *u, struct str method, struct str path,
                      struct status *st, struct str *ret_reason)
{
    (void) rbac;
    if (ret_reason)
        *ret_reason = STR("");
    if (is_master(u) || is_public(path))
        return 0;
    if (is_anonymous(u))
        return status_unauthorized(st);
    (void) status_fail(st, 403, "Forbidden", "forbidden: User \"%.*s\" cannot %.*s path \"%.*s\"",
                       STR_ARG(u->name), STR_ARG(access_path_verb(method)), STR_ARG(path));
    st->has_details = true;
    return -EPERM;
}
