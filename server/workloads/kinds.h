/* SPDX-License-Identifier: Apache-2.0 */
/* The three kinds that make Applications, and what Applications carry of them. */
#pragma once

#include "base/str.h"

#define WORKLOAD_GROUP "eve.lfedge.org"
#define WORKLOAD_API_VERSION WORKLOAD_GROUP "/v1beta1"

/* Labels of Applications: which template they were made from, and their place in a set. */
#define WORKLOAD_LABEL_REVISION WORKLOAD_GROUP "/revision"
#define WORKLOAD_LABEL_ORDINAL WORKLOAD_GROUP "/ordinal"
#define WORKLOAD_LABEL_NAME WORKLOAD_GROUP "/application"

enum workload_kind {
    WORKLOAD_DEPLOYMENT,
    WORKLOAD_DAEMON_SET,
    WORKLOAD_STATEFUL_SET,
    WORKLOAD_KINDS
};

struct workload_kind_names {
    const char *kind, *plural, *collection;
};
extern const struct workload_kind_names workload_kinds[WORKLOAD_KINDS];

/* WORKLOAD_KINDS when it is none of them. */
enum workload_kind workload_kind_of(struct str kind);
enum workload_kind workload_kind_of_collection(struct str collection);

/* The number of an Application of the set with this name: "<set>-<number>". -1: it is none. */
int64_t workload_ordinal(struct str set, struct str name);
