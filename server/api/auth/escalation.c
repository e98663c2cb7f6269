/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody hands out what they do not have: whoever writes a role must hold every right in it, or the
 * verb `escalate` on it; whoever writes a binding every right of its role, or `bind` on that. */
#include <errno.h>
#include <stdlib.h>

#include "api/admission/admission.h"
#include "api/auth/rbac.h"

#define RBAC_GROUP STR("rbac.authorization.k8s.io")
/* Of one role, taken apart; more than anybody writes, and bounded work. */
#define MAX_RIGHTS 20000

/* ---- what is missing ----------------------------------------------------------------------- */

struct missing {
    struct call *call;
    struct str namespace;
    size_t n_asked;
    struct rbac_right *list;
    size_t n;
};

static bool note_right(void *ctx, const struct rbac_right *right)
{
    struct missing *m = ctx;
    if (++m->n_asked > MAX_RIGHTS)
        return false;
    if (rbac_covers(api_rbac(m->call->api), &m->call->in.user, m->namespace, right))
        return true;
    m->list = arena_grow(m->call->arena, m->list, m->n, sizeof(struct rbac_right));
    m->list[m->n++] = *right;
    return true;
}

static int compare_present(struct str a, struct str b)
{
    if (!a.p || !b.p)
        return (a.p != NULL) - (b.p != NULL);
    return str_cmp(a, b);
}

static int compare_things(const struct rbac_right *a, const struct rbac_right *b)
{
    int r = compare_present(a->url, b->url);
    if (r == 0)
        r = compare_present(a->group, b->group);
    if (r == 0)
        r = compare_present(a->resource, b->resource);
    return r ? r : compare_present(a->name, b->name);
}

/* Rights to the same thing together, in the order they came otherwise. */
static int compare_rights(const void *a, const void *b)
{
    const struct rbac_right *const *x = a, *const *y = b;
    int r = compare_things(*x, *y);
    return r ? r : (*x > *y) - (*x < *y);
}

static void write_list(struct buf *b, struct arena *a, const char *name, struct str item)
{
    buf_printf(b, "%s:[%.*s], ", name, STR_ARG(status_quote(a, item)));
}

/* One line for the verbs on one thing. */
static struct str describe(struct arena *a, struct rbac_right *const *rights, size_t n)
{
    BUF_AUTO b = {0};
    const struct rbac_right *first = rights[0];
    buf_append_char(&b, '{');
    if (first->url.p) {
        write_list(&b, a, "NonResourceURLs", first->url);
    } else {
        write_list(&b, a, "APIGroups", first->group);
        write_list(&b, a, "Resources", first->resource);
        if (first->name.p)
            write_list(&b, a, "ResourceNames", first->name);
    }
    buf_append_str(&b, STR("Verbs:["));
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%.*s", i ? " " : "", STR_ARG(status_quote(a, rights[i]->verb)));
    buf_append_str(&b, STR("]}"));
    return arena_str(a, buf_str(&b));
}

static int compare_lines(const void *a, const void *b)
{
    return str_cmp(*(const struct str *) a, *(const struct str *) b);
}

/* Verbs on one resource share a line, those on paths do not: as kube-apiserver has it. */
static size_t describe_all(struct arena *a, const struct missing *m, struct str *lines)
{
    struct rbac_right **sorted = ARENA_ARRAY(a, struct rbac_right *, m->n);
    size_t n_lines = 0;
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = &m->list[i];
    qsort(sorted, m->n, sizeof(struct rbac_right *), compare_rights);
    for (size_t i = 0, n = 0; i < m->n; i += n) {
        for (n = 1; i + n < m->n && !sorted[i]->url.p; n++)
            if (compare_things(sorted[i], sorted[i + n]) != 0)
                break;
        lines[n_lines++] = describe(a, sorted + i, n);
    }
    qsort(lines, n_lines, sizeof(struct str), compare_lines);
    return n_lines;
}

static int refuse(struct admission *a, const struct missing *m)
{
    struct call *c = a->call;
    const struct user *u = &c->in.user;
    BUF_AUTO b = {0};
    struct str *lines = ARENA_ARRAY(c->arena, struct str, m->n);
    size_t n_lines = describe_all(c->arena, m, lines);
    buf_printf(&b, "user %.*s (groups=[", STR_ARG(status_quote(c->arena, u->name)));
    for (size_t i = 0; i < u->n_groups; i++)
        buf_printf(&b, "%s%.*s", i ? " " : "", STR_ARG(status_quote(c->arena, u->groups[i])));
    buf_append_str(&b, STR("]) is attempting to grant RBAC permissions not currently held:"));
    for (size_t i = 0; i < n_lines; i++)
        if (!i || !str_eq(lines[i], lines[i - 1]))
            buf_printf(&b, "\n%.*s", STR_ARG(lines[i]));
    return status_forbidden(&c->status, c->kind, a->name, "%.*s", STR_ARG(buf_str(&b)));
}

static int check_rules(struct admission *a, const struct json *rules)
{
    struct call *c = a->call;
    const struct rbac_rule *list = NULL;
    struct missing m = {.call = c, .namespace = c->in.path.namespace};
    size_t n = rbac_parse_rules(c->arena, rules, &list);
    for (size_t i = 0; i < n; i++)
        (void) rbac_each_right(&list[i], note_right, &m);
    if (m.n_asked > MAX_RIGHTS)
        return status_forbidden(&c->status, c->kind, a->name,
                                "a role of more than %d rights can only be granted with the verb "
                                "escalate or bind",
                                MAX_RIGHTS);
    return m.n ? refuse(a, &m) : 0;
}

/* ---- roles --------------------------------------------------------------------------------- */

static bool may(struct admission *a, const char *verb, struct str resource, struct str name)
{
    struct call *c = a->call;
    struct access_question q = {
        .user = &c->in.user,
        .verb = str_of(verb),
        .is_resource = true,
        .group = RBAC_GROUP,
        .resource = resource,
        .namespace = c->in.path.namespace,
        .name = name,
    };
    return rbac_allows(api_rbac(c->api), &q, c->arena, NULL);
}

static bool is_aggregating(const struct json *role)
{
    return json_is(json_get(role, STR("aggregationRule")), JSON_OBJECT);
}

/* It gathers whatever others have: everything is needed to use it. */
static int check_aggregation(struct admission *a)
{
    static const struct rbac_right everything[] = {
        {.verb = STR("*"), .group = STR("*"), .resource = STR("*")},
        {.verb = STR("*"), .url = STR("*")},
    };
    struct call *c = a->call;
    if (!is_aggregating(a->object) && !is_aggregating(a->old))
        return 0;
    for (size_t i = 0; i < N_ELEMENTS(everything); i++)
        if (!rbac_covers(api_rbac(c->api), &c->in.user, STR(""), &everything[i]))
            return status_forbidden(
                &c->status, c->kind, a->name,
                "must have cluster-admin privileges to use the aggregationRule");
    return 0;
}

static int check_role(struct admission *a)
{
    struct call *c = a->call;
    if (may(a, "escalate", c->in.path.resource, c->in.path.name))
        return 0;
    int r = check_rules(a, json_get(a->object, STR("rules")));
    return r < 0 ? r : check_aggregation(a);
}

/* ---- bindings ------------------------------------------------------------------------------ */

/* The role is said to be missing as if it were a binding: kube-apiserver's words. */
static int refuse_missing(struct admission *a, struct str role)
{
    return status_not_found(&a->call->status, a->call->kind, role);
}

static int check_binding(struct admission *a)
{
    struct call *c = a->call;
    const struct json *ref = json_get(a->object, STR("roleRef"));
    struct str name = json_get_str(ref, STR("name")), kind = json_get_str(ref, STR("kind"));
    bool is_local = str_is(kind, "Role");
    if (!is_local && !str_is(kind, "ClusterRole"))
        return 0; /* the kind's own rules refuse it */
    struct str resource = is_local ? STR("roles") : STR("clusterroles");
    if (may(a, "bind", resource, name))
        return 0;
    struct str namespace = is_local ? c->in.path.namespace : STR("");
    struct str key = arena_printf(c->arena, "%.*s.%.*s/%.*s/%.*s", STR_ARG(resource),
                                  STR_ARG(RBAC_GROUP), STR_ARG(namespace), STR_ARG(name));
    CLEANUP(object_unrefp) struct object *role = store_get(api_store(c->api), key);
    if (!role)
        return refuse_missing(a, name);
    return check_rules(a, json_get(json_parse_quick(c->arena, object_text(role)), STR("rules")));
}

/* ---- the hook ------------------------------------------------------------------------------ */

/* Equal but for what garbage collection has to change. */
static bool is_unchanged(struct arena *a, const struct json *old, const struct json *object)
{
    static const struct str ignored[] = {STR("ownerReferences"), STR("finalizers"),
                                         STR("managedFields"), STR("resourceVersion")};
    struct json x = json_clone(a, old), y = json_clone(a, object);
    for (size_t i = 0; i < N_ELEMENTS(ignored); i++) {
        (void) json_remove(json_get(&x, STR("metadata")), ignored[i]);
        (void) json_remove(json_get(&y, STR("metadata")), ignored[i]);
    }
    return json_equal(&x, &y);
}

static int admit(struct admission *a)
{
    struct call *c = a->call;
    if (!str_eq(c->kind->group, RBAC_GROUP) || user_has_group(&c->in.user, STR(GROUP_MASTERS)))
        return 0;
    if (a->old && is_unchanged(c->arena, a->old, a->object))
        return 0;
    bool is_role = str_is(c->kind->plural, "roles") || str_is(c->kind->plural, "clusterroles");
    return is_role ? check_role(a) : check_binding(a);
}

const struct admission_hook escalation = {.name = "escalation", .admit = admit};
