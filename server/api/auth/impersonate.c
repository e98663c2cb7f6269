/* SPDX-License-Identifier: Apache-2.0 */
/* Acting as somebody else: each part of the other identity is a right of its own. */
#include <errno.h>

#include "api/auth/access.h"
#include "base/buf.h"

#define EXTRA_PREFIX STR("impersonate-extra-")
#define ACCOUNT_PREFIX STR("system:serviceaccount:")
#define AUTHENTICATION_GROUP STR("authentication.k8s.io")

/* ---- what is asked ------------------------------------------------------------------------- */

static size_t find_groups(struct arena *a, const struct http_request *r, const struct str **ret)
{
    struct str *groups = ARENA_ARRAY(a, struct str, r->n_headers + 1);
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_is(r->headers[i].name, "impersonate-group"))
            groups[n++] = r->headers[i].value;
    *ret = n ? groups : NULL;
    return n;
}

/* Keys are percent-encoded in a header's name; what is no encoding stays as it is. */
static struct str decode_key(struct arena *a, struct str raw)
{
    struct str decoded = STR_NONE;
    char *lower = arena_strz(a, raw);
    for (size_t i = 0; i < raw.n; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z')
            lower[i] = (char) (lower[i] - 'A' + 'a');
    raw = str_range(lower, raw.n);
    return request_decode_path(a, raw, &decoded) < 0 ? raw : decoded;
}

static struct user_extra *ensure_extra(struct user_extra *list, size_t *n, struct str key)
{
    for (size_t i = 0; i < *n; i++)
        if (str_eq(list[i].key, key))
            return &list[i];
    list[*n].key = key;
    return &list[(*n)++];
}

static size_t find_extra(struct arena *a, const struct http_request *r,
                         const struct user_extra **ret)
{
    struct user_extra *list = ARENA_ARRAY(a, struct user_extra, r->n_headers + 1);
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++) {
        const struct http_header *h = &r->headers[i];
        if (!str_starts_with(h->name, EXTRA_PREFIX))
            continue;
        struct user_extra *e =
            ensure_extra(list, &n, decode_key(a, str_from(h->name, EXTRA_PREFIX.n)));
        struct str *values = arena_grow(a, (void *) e->values, e->n_values, sizeof(struct str));
        values[e->n_values++] = h->value;
        e->values = values;
    }
    *ret = n ? list : NULL;
    return n;
}

static struct user requested_user(struct arena *a, const struct http_request *r)
{
    struct user u = {.name = http_request_header(r, STR("impersonate-user")),
                     .uid = http_request_header(r, STR("impersonate-uid"))};
    u.n_groups = find_groups(a, r, &u.groups);
    u.n_extra = find_extra(a, r, &u.extra);
    return u;
}

/* Namespace and name of a ServiceAccount's user name. */
static bool split_account(struct str user, struct str *ret_namespace, struct str *ret_name)
{
    if (!str_starts_with(user, ACCOUNT_PREFIX))
        return false;
    struct str rest = str_from(user, ACCOUNT_PREFIX.n);
    ptrdiff_t colon = str_find(rest, ':');
    if (colon <= 0 || str_find_last(rest, ':') != colon || (size_t) colon + 1 == rest.n)
        return false;
    *ret_namespace = str_sub(rest, 0, (size_t) colon);
    *ret_name = str_from(rest, (size_t) colon + 1);
    return true;
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void write_texts(struct buf *b, struct arena *a, const struct str *items, size_t n)
{
    buf_append_str(b, STR("[]string{"));
    for (size_t i = 0; i < n; i++)
        buf_printf(b, "%s%.*s", i ? ", " : "", STR_ARG(status_quote(a, items[i])));
    buf_append_char(b, '}');
}

/* The user as Go prints the struct it has there. */
static int refuse_nameless(const struct user *u, struct status *st)
{
    struct arena *a = st->arena;
    BUF_AUTO b = {0};
    buf_printf(&b,
               "&user.DefaultInfo{Name:\"\", UID:%.*s, Groups:", STR_ARG(status_quote(a, u->uid)));
    if (u->n_groups)
        write_texts(&b, a, u->groups, u->n_groups);
    else
        buf_append_str(&b, STR("[]string(nil)"));
    buf_append_str(&b, STR(", Extra:map[string][]string"));
    buf_append_str(&b, u->n_extra ? STR("{") : STR("(nil)}"));
    for (size_t i = 0; i < u->n_extra; i++) {
        buf_printf(&b, "%s%.*s:", i ? ", " : "", STR_ARG(status_quote(a, u->extra[i].key)));
        write_texts(&b, a, u->extra[i].values, u->extra[i].n_values);
    }
    buf_append_str(&b, u->n_extra ? STR("}}") : STR(""));
    return status_bad_request(st, "requested %.*s without impersonating a user name",
                              STR_ARG(buf_str(&b)));
}

static int check(struct rbac *rbac, const struct user *real, struct access_question q,
                 struct status *st)
{
    q.user = real;
    q.verb = STR("impersonate");
    q.is_resource = true;
    return rbac_allows(rbac, &q, st->arena, NULL) ? 0 : access_forbid(&q, st);
}

static int check_name(struct rbac *rbac, const struct user *real, struct str name,
                      struct status *st)
{
    struct str namespace = STR_NONE, account = STR_NONE;
    if (split_account(name, &namespace, &account))
        return check(rbac, real,
                     (struct access_question){.resource = STR("serviceaccounts"),
                                              .namespace = namespace,
                                              .name = account},
                     st);
    return check(rbac, real, (struct access_question){.resource = STR("users"), .name = name}, st);
}

static int check_extra(struct rbac *rbac, const struct user *real, const struct user_extra *e,
                       struct status *st)
{
    int r = 0;
    for (size_t i = 0; i < e->n_values && r == 0; i++)
        r = check(rbac, real,
                  (struct access_question){.group = AUTHENTICATION_GROUP,
                                           .resource = STR("userextras"),
                                           .subresource = e->key,
                                           .name = e->values[i]},
                  st);
    return r;
}

static int check_all(struct rbac *rbac, const struct user *real, const struct user *asked,
                     struct status *st)
{
    int r = check_name(rbac, real, asked->name, st);
    for (size_t i = 0; i < asked->n_groups && r == 0; i++)
        r = check(rbac, real,
                  (struct access_question){.resource = STR("groups"), .name = asked->groups[i]},
                  st);
    for (size_t i = 0; i < asked->n_extra && r == 0; i++)
        r = check_extra(rbac, real, &asked->extra[i], st);
    if (r == 0 && asked->uid.n)
        r = check(rbac, real,
                  (struct access_question){
                      .group = AUTHENTICATION_GROUP, .resource = STR("uids"), .name = asked->uid},
                  st);
    return r;
}

/* ---- the other user ------------------------------------------------------------------------ */

/* The groups that come with being that user. */
static void complete_groups(struct arena *a, struct user *u)
{
    struct str *groups = ARENA_ARRAY(a, struct str, u->n_groups + 3);
    struct str namespace = STR_NONE, account = STR_NONE;
    size_t n = 0;
    bool is_anonymous = str_is(u->name, USER_ANONYMOUS);
    bool is_out = user_has_group(u, STR(GROUP_UNAUTHENTICATED));
    bool is_in = user_has_group(u, STR(GROUP_AUTHENTICATED));
    for (size_t i = 0; i < u->n_groups; i++)
        groups[n++] = u->groups[i];
    if (!n && split_account(u->name, &namespace, &account)) {
        groups[n++] = STR("system:serviceaccounts");
        groups[n++] = arena_printf(a, "system:serviceaccounts:%.*s", STR_ARG(namespace));
    }
    if (is_anonymous && !is_out)
        groups[n++] = STR(GROUP_UNAUTHENTICATED);
    if (!is_anonymous && !is_out && !is_in)
        groups[n++] = STR(GROUP_AUTHENTICATED);
    u->groups = groups;
    u->n_groups = n;
}

int access_impersonate(struct rbac *rbac, const struct http_request *r, const struct user *real,
                       struct user *ret_user, bool *ret_impersonates, struct status *st)
{
    *ret_user = *real;
    *ret_impersonates = false;
    bool asks = false;
    for (size_t i = 0; i < r->n_headers && !asks; i++)
        asks = str_starts_with(r->headers[i].name, STR("impersonate-"));
    if (!asks)
        return 0;
    struct user asked = requested_user(st->arena, r);
    if (!asked.name.n)
        return asked.n_groups || asked.n_extra || asked.uid.n ? refuse_nameless(&asked, st) : 0;
    int result = check_all(rbac, real, &asked, st);
    if (result < 0)
        return result;
    complete_groups(st->arena, &asked);
    *ret_user = asked;
    *ret_impersonates = true;
    return 0;
}
