/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/kinds.h"

const struct workload_kind_names workload_kinds[WORKLOAD_KINDS] = {
    [WORKLOAD_DEPLOYMENT] = {"ApplicationDeployment", "applicationdeployments",
                             "applicationdeployments." WORKLOAD_GROUP},
    [WORKLOAD_DAEMON_SET] = {"ApplicationDaemonSet", "applicationdaemonsets",
                             "applicationdaemonsets." WORKLOAD_GROUP},
    [WORKLOAD_STATEFUL_SET] = {"ApplicationStatefulSet", "applicationstatefulsets",
                               "applicationstatefulsets." WORKLOAD_GROUP},
};

enum workload_kind workload_kind_of(struct str kind)
{
    enum workload_kind k = 0;
    while (k < WORKLOAD_KINDS && !str_is(kind, workload_kinds[k].kind))
        k++;
    return k;
}

enum workload_kind workload_kind_of_collection(struct str collection)
{
    enum workload_kind k = 0;
    while (k < WORKLOAD_KINDS && !str_is(collection, workload_kinds[k].collection))
        k++;
    return k;
}

int64_t workload_ordinal(struct str set, struct str name)
{
    int64_t ordinal = -1;
    if (name.n < set.n + 2 || !str_starts_with(name, set) || name.p[set.n] != '-')
        return -1;
    const struct str digits = str_from(name, set.n + 1);
    /* "web-01" is somebody else's, as is "web-+1". */
    if (digits.p[0] < '0' || digits.p[0] > '9' || (digits.p[0] == '0' && digits.n > 1))
        return -1;
    return str_to_i64(digits, &ordinal) == 0 && ordinal <= UINT32_MAX ? ordinal : -1;
}
