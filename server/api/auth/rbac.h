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
