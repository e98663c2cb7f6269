/* SPDX-License-Identifier: Apache-2.0 */
/* The objects every cluster has from the start. */
#pragma once

#include "api/client.h"

/* Creates what is missing; what exists is left as it is. */
int bootstrap_objects(struct kube_client *client, char **ret_error);
