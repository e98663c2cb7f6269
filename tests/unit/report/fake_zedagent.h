/* SPDX-License-Identifier: Apache-2.0 */
/* What of zedagent the reporter asks for. */
#pragma once

#include "zedagent/zedagent.h"

struct zedagent {
    struct zedagent_facts facts;
    struct items *items;
    struct node_link *link;
    struct zedagent_listener *listener;
};
