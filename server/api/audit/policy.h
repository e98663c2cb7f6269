/* SPDX-License-Identifier: Apache-2.0 */
/* The audit policy (audit.k8s.io/v1 Policy): which requests are recorded, and how much of them. The
 * first rule that matches decides; what no rule matches is not recorded. Immutable. */
#pragma once

#include "api/audit/audit.h"

#define AUDIT_POLICY_MAX_BYTES ((size_t) 1024 * 1024)

struct audit_policy;

/* Failure: -EINVAL (or why the file cannot be read) and *ret_error (heap), which names the file and
 * the field. */
int audit_policy_load(const char *path, struct audit_policy **ret_policy, char **ret_error);
int audit_policy_parse(const char *path, struct str text, struct audit_policy **ret_policy,
                       char **ret_error);
/* Metadata of everything when it is over. */
struct audit_policy *audit_policy_default(void);
/* NULL allowed. */
void audit_policy_free(struct audit_policy *p);

/* Sets level, omitted_stages and omit_managed_fields. What holds secrets is never recorded above
 * Metadata, whatever the rule says. */
void audit_policy_judge(const struct audit_policy *p, struct audit_record *r);
