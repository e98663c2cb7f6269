/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the controller can be reached, and what is wrong with each port: all of them are looked
 * at, traffic is sent until enough have proved to work. For nim. */
#pragma once

#include "controllerconn/uplink.h"

struct uplink_verified_port {
    struct str name;
    bool is_recorded; /* false: what was known of it before stays */
    bool is_good;
    bool is_dry_run;   /* nothing was sent */
    bool is_not_ready; /* it has no address or DNS server yet, or names are not answered */
    struct str words;  /* what is wrong, or a warning on a good one */
};

/* Valid during on_done. */
struct uplink_verification {
    int error; /* -ENODEV: no management port at all */
    bool is_reachable;
    bool is_temporary; /* it was refused, its certificate is not valid now, or it answered 5xx */
    enum uplink_status status;
    struct uplink_verified_port ports[UPLINK_MAX_PORTS]; /* in the order they were looked at */
    size_t n_ports;
};

struct uplink_verify_options {
    struct str url;             /* of ping */
    bool accepts_4xx;           /* of a local controller */
    size_t n_required;          /* 0: 1 */
    uint64_t iteration;         /* counted up by the caller: ports of one cost take turns */
    struct uplink_trace *trace; /* of all requests, outlives it; NULL: none */
};

struct uplink_verify;
struct uplink_verify *uplink_verify_start(struct uplink *u, const struct uplink_verify_options *o,
                                          void (*on_done)(void *arg,
                                                          const struct uplink_verification *v),
                                          void *arg);
/* NULL allowed. */
void uplink_verify_cancel(struct uplink_verify *v);
