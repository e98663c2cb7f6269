/* SPDX-License-Identifier: Apache-2.0 */
/* The report as its own files see it: JSON first, of which text is only another form. */
#pragma once

#include "diag/diag.h"
#include "loop/loop.h"
#include "node/link.h"

#define DIAG_INTERVAL_MS 5000
#define DIAG_LOOKUP_MS 10000
#define DIAG_TRIES 5
#define DIAG_TRY_AGAIN_MS 1000
#define DIAG_TRY_MS 15000        /* of one request */
#define DIAG_FIRST_WAIT_MS 15000 /* for other services, when it is to report once */

enum diag_topic {
    DIAG_LED,
    DIAG_NETWORK,
    DIAG_PORT_CONFIGS,
    DIAG_ZEDAGENT,
    DIAG_VAULTS,
    DIAG_SUMMARY,
    DIAG_APPS,
    DIAG_DOWNLOADS,
    DIAG_DRAIN,
    DIAG_TOPICS
};

/* The checks of one report, port after port. */
struct diag_checks {
    bool is_running;
    struct uplink_ports *ports;
    size_t port;    /* of them */
    size_t address; /* of the port, or one of its proxies */
    int step;       /* enum step of checks.c */
    unsigned n_tries;
    int64_t began_us;
    struct str target;    /* in the report's arena */
    struct json *of_port; /* where results go */
    struct uplink_call *call;
    struct uplink_lookup *lookup;
    struct loop_timer *timer;
};

struct diag {
    struct node *node;
    struct diag_options options;
    struct node_link *link;
    struct uplink_tls *plain_tls; /* shows no certificate: for the probes */
    struct node_watch watch;
    struct subscription *topics[DIAG_TOPICS];
    struct loop_timer *timer;
    bool is_due; /* something has changed since the last report began */
    bool has_waited;
    int64_t reported_us; /* monotonic; 0: never */
    struct arena *arena; /* of the report under way; NULL: there is none */
    struct json *report;
    struct diag_checks checks;
};

/* report.c: everything but the checks. The network's ports are in report.ports, in the order of
 * DeviceNetworkStatus. */
struct json *diag_report(struct arena *a, struct diag *d);
/* What the results of the ports amount to; true: the controller is reached. */
bool diag_report_conclude(struct arena *a, struct json *report);

/* checks.c: ends with diag_checked(), never before this returns. */
void diag_checks_begin(struct diag *d);
void diag_checks_cancel(struct diag *d);
void diag_checked(struct diag *d);

/* text.c: appends the report for people. columns 0: lines as long as they are; rows 0: all. */
void diag_text(struct buf *b, const struct json *report, unsigned rows, unsigned columns);
