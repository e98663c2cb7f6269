/* SPDX-License-Identifier: Apache-2.0 */
/* The one image that runs, where EVE's baseosmgr is not: ZbootStatus, BaseOsStatus and
 * BaseOSMgrStatus. A configuration that wants another image is told that nobody can install it. */
#pragma once

#include "node/node.h"

#define BASEOS_PARTITION STR("IMGA")

struct baseos;
/* -EADDRINUSE: somebody publishes them. */
int baseos_new(struct node *n, struct baseos **ret);
/* NULL allowed. */
void baseos_free(struct baseos *b);
