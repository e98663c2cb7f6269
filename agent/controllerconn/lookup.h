/* SPDX-License-Identifier: Apache-2.0 */
/* Names looked up at the DNS servers of one port, from one of its addresses. The only module that
 * knows c-ares. */
#pragma once

#include "controllerconn/ports.h"

struct loop;
struct uplink_lookup;

#define UPLINK_LOOKUP_MAX_ADDRESSES 16

struct uplink_lookup_query {
    const struct uplink_port *port;
    struct str source; /* queries leave from it, and only its family is wanted; absent: any */
    struct str host;
};
/* `addresses` joined by commas, empty with `error` in words; valid during the call. Never before
 * this returns. */
struct uplink_lookup *uplink_lookup_start(struct loop *l, const struct uplink_lookup_query *q,
                                          void (*on_done)(void *arg, struct str addresses,
                                                          struct str error),
                                          void *arg);
/* NULL allowed; no on_done comes after it. */
void uplink_lookup_cancel(struct uplink_lookup *l);
