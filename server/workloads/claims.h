/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of an ApplicationStatefulSet: "<template>-<set>-<number>" for each of its
 * Applications, kept when they go unless spec.persistentVolumeClaimRetentionPolicy says otherwise.
 */
#pragma once

#include "workloads/run.h"

/* Makes the claims of that number which are not there. */
int claims_make(struct run *run, int64_t ordinal);
/* Puts them into spec.volumes of the Application. */
void claims_mount(struct run *run, int64_t ordinal, struct json *draft);
/* Makes the owners of the claims what the policy says: the set, with whenDeleted; the Application
 * that is about to go for good, with whenScaled. app NULL: none is. */
int claims_set_owners(struct run *run, int64_t ordinal, const struct index_application *app);
