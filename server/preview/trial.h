/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as they would be if they were applied: each is tried in a dry run, with the defaults,
 * rules and refusals of a write, and those before it taken to be there. */
#pragma once

#include "api/annex.h"
#include "api/api.h"
#include "fleet/fleet.h"
#include "preview/manifest.h"

struct trial {
    struct api *api;
    struct kube_client *client;
    const struct registry *registry;
    const struct annex_request *request;
    struct str namespace; /* of objects that name none */
    bool is_removal;      /* all are to be deleted, not only those with a deletionTimestamp */
};

/* 0 and one change for each object; or a negative errno with st filled as the write would. */
int trial_run(const struct trial *t, const struct manifest *m, struct fleet_change **ret_changes,
              struct status *st);
