/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of rbac.c: the graph of roles, bindings and subjects as the store has them, and the
 * table that a subject's rules are compiled into when a decision first needs it. */
#pragma once

#include <pthread.h>

#include "api/auth/rbac.h"
#include "base/list.h"
#include "base/map.h"

/* Rules beyond these are kept as they are and walked: correct, slower. They bound the memory that
 * whoever may write roles can make us use. */
#define RBAC_RULE_MAX_ENTRIES 4096
#define RBAC_SUBJECT_MAX_ENTRIES 65536

/* ---- questions ----------------------------------------------------------------------------- */

/* A question as rules are matched against it. */
struct rbac_query {
    struct str verb;
    bool is_url;
    struct str url;
    struct str group, resource; /* resource with its subresource: "pods/log" */
    struct str any_resource;    /* of a subresource its wildcard, "*" "/log" */
    bool has_name;              /* rules with resourceNames can match: those that list `name` */
    struct str name;
};

/* A right as a question, all but any_resource. */
struct rbac_query rbac_right_query(const struct rbac_right *right);
/* "log" of "pods/log"; STR_NONE: none. */
struct str rbac_right_subresource(const struct rbac_right *right);
bool rbac_rule_matches(const struct rbac_rule *rule, const struct rbac_query *q);

/* ---- tables -------------------------------------------------------------------------------- */

/* Names of verbs as bits; bit 0 is "*". Those that find no place are walked like wide rules. */
#define RBAC_MAX_VERBS 64
struct rbac_verbs {
    struct map bits; /* name -> number + 1 */
    char *names[RBAC_MAX_VERBS];
    size_t n;
};
void rbac_verbs_init(struct rbac_verbs *v);
void rbac_verbs_done(struct rbac_verbs *v);

/* What the query needs in every table, worked out once. */
#define RBAC_MAX_PROBES 6
struct rbac_probe {
    uint64_t hash;
    struct str group, resource;
};
struct rbac_probes {
    const struct rbac_query *query;
    uint64_t verbs; /* the verb's bit and that of "*" */
    struct rbac_probe list[RBAC_MAX_PROBES];
    size_t n;
    uint64_t name_hash;
};
void rbac_probes_init(struct rbac_probes *p, const struct rbac_verbs *v,
                      const struct rbac_query *q);

/* The rules of one subject in one namespace or the cluster. */
struct rbac_table;
/* Everything of one subject. */
struct rbac_compiled;

struct rbac_compiled *rbac_compiled_new(void);
void rbac_compiled_free(struct rbac_compiled *c);
/* The rule's strings must stay as long as the table. */
void rbac_compiled_add(struct rbac_compiled *c, struct rbac_verbs *v, struct str namespace,
                       const struct rbac_rule *rule);
/* The table of the cluster, or of a namespace with the hash of its name; NULL: none. */
const struct rbac_table *rbac_compiled_cluster(const struct rbac_compiled *c);
const struct rbac_table *rbac_compiled_table(const struct rbac_compiled *c, struct str namespace,
                                             uint64_t hash);
bool rbac_table_allows(const struct rbac_table *t, const struct rbac_probes *p);

/* ---- the graph ----------------------------------------------------------------------------- */

/* A role that exists or that a binding refers to. */
struct rbac_role {
    char *key;           /* "<namespace>/<name>", of a ClusterRole "/<name>" */
    struct arena *arena; /* of the rules; NULL: the role does not exist */
    const struct rbac_rule *rules;
    size_t n_rules;
    struct list bindings;
};

struct rbac_subject {
    char *name; /* of the user or group; not NUL-terminated */
    size_t n_name;
    struct map *map;                /* that it is in */
    struct list members;            /* struct rbac_member */
    struct rbac_compiled *compiled; /* NULL: its roles have changed since, or it was never asked */
};

/* One subject in one binding. */
struct rbac_member {
    struct list link; /* in the subject */
    struct rbac_subject *subject;
    struct rbac_binding *binding;
    struct str kind, name, namespace; /* as the binding has it */
};

struct rbac_binding {
    struct arena *arena; /* of this struct and all it refers to */
    struct str key;      /* "<namespace>/<name>", of a ClusterRoleBinding "/<name>" */
    struct str name, namespace;
    struct str role_kind, role_name;
    struct rbac_role *role;
    struct list link; /* in the role */
    struct rbac_member *members;
    size_t n_members;
};

struct rbac_graph {
    struct map roles, bindings, users, groups;
};

/* The object as it is now; NULL: it is gone. Forgets what was compiled for the subjects it
 * concerns, and for no others. */
void rbac_graph_put_role(struct rbac_graph *g, struct str namespace, struct str name,
                         const struct json *role);
void rbac_graph_put_binding(struct rbac_graph *g, struct str namespace, struct str name,
                            const struct json *binding);
void rbac_graph_done(struct rbac_graph *g);
