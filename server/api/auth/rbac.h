/* SPDX-License-Identifier: Apache-2.0 */
/* Role-based access control: roles and bindings compiled into an index in which one decision is a
 * few hash look-ups, however many bindings there are. It follows the store: a binding counts from
 * the moment its write is answered. From any thread. */
#pragma once

#include "api/status.h"
#include "api/user.h"
#include "store/store.h"

struct rbac;

/* Reads what is in the store and follows it. */
struct rbac *rbac_new(struct store *s);
void rbac_free(struct rbac *r);

struct access_question {
    const struct user *user;
    struct str verb;  /* "get", "escalate", "impersonate" ...; of a path: "get", "post" ... */
    bool is_resource; /* else `path` */
    struct str group, resource, subresource, namespace, name; /* "" where it does not apply */
    struct str path;
};

/* Members of system:masters may do everything. *ret_reason (NULL allowed) is as kube-apiserver
 * annotates it: RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "z"; "" when
 * refused. It is made in `a` only if asked for. */
bool rbac_allows(struct rbac *r, const struct access_question *q, struct arena *a,
                 struct str *ret_reason);

/* ---- rules themselves ---------------------------------------------------------------------- */

struct rbac_texts {
    const struct str *items;
    size_t n;
};

struct rbac_rule {
    struct rbac_texts verbs, groups, resources, names, urls;
};

/* The rules of a Role or ClusterRole, in `a` with all their strings. */
size_t rbac_parse_rules(struct arena *a, const struct json *rules,
                        const struct rbac_rule **ret_rules);

/* One verb on one thing, as a rule grants it: "*" stands for itself alone. */
struct rbac_right {
    struct str verb, group, resource;
    struct str name; /* STR_NONE: whatever its name */
    struct str url;  /* not STR_NONE: this instead of a resource */
};

/* Calls on_right with each verb on each thing that the rule grants, until it returns false: what it
 * returned last. */
bool rbac_each_right(const struct rbac_rule *rule,
                     bool (*on_right)(void *ctx, const struct rbac_right *right), void *ctx);
/* These rules include the right. */
bool rbac_rules_cover(const struct rbac_rule *rules, size_t n_rules,
                      const struct rbac_right *right);

/* What the roles bound to the user grant in a namespace ("": the cluster) includes this right.
 * Membership in system:masters does not count. */
bool rbac_covers(struct rbac *r, const struct user *u, struct str namespace,
                 const struct rbac_right *right);

/* Every rule that applies to the user in a namespace, those of the whole cluster included. A
 * binding counts once. on_rule may not call anything of rbac; strings live for the call. */
void rbac_visit_rules(struct rbac *r, const struct user *u, struct str namespace,
                      void (*on_rule)(void *ctx, const struct rbac_rule *rule), void *ctx);
