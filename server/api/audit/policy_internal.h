/* SPDX-License-Identifier: Apache-2.0 */
/* Between reading a policy and judging by it. */
#pragma once

#include "api/audit/policy.h"

struct policy_names {
    struct str *items;
    size_t n;
};

struct policy_resources {
    struct str group; /* "" for core */
    struct policy_names resources, names;
};

/* An empty list does not restrict. */
struct policy_rule {
    enum audit_level level;
    struct policy_names users, groups, verbs, namespaces, paths;
    struct policy_resources *resources;
    size_t n_resources;
    unsigned omitted_stages; /* with the policy's */
    bool omit_managed_fields;
};

struct audit_policy {
    struct arena *arena; /* holds the policy itself, too */
    struct policy_rule *rules;
    size_t n_rules;
    unsigned omitted_stages;
    bool omit_managed_fields;
};
