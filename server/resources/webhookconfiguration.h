/* SPDX-License-Identifier: Apache-2.0 */
/* The two larger parts of a webhook's entry. */
#pragma once

#include "schema/causes.h"

/* Lists whose items are compared with each other may have so many. */
#define WEBHOOK_MAX_ITEMS 1000

/* False, with a cause, when the list has more. */
bool webhook_check_count(struct causes *causes, const struct field_path *at,
                         const struct json *list);
/* Operations, groups, versions, resources and scope. */
void webhook_check_rule(struct causes *causes, const struct field_path *at,
                        const struct json *rule);
/* clientConfig: a URL or a service. */
void webhook_check_client(struct causes *causes, const struct field_path *at,
                          const struct json *client);
