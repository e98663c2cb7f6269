/* SPDX-License-Identifier: Apache-2.0 */
/* The objects every cluster has from the start: its first namespaces, kube-apiserver's roles and
 * bindings, and the roles for our own kinds where they are served (kinds/bootstrap). */
#pragma once

#include "api/client.h"

/* Makes what is missing and gives roles and bindings back the rules and subjects that were taken
 * from them, unless their annotation rbac.authorization.kubernetes.io/autoupdate is "false". What
 * was added stays. */
int bootstrap_objects(struct kube_client *client, char **ret_error);
