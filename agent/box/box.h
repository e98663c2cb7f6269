/* SPDX-License-Identifier: Apache-2.0 */
/* The services of one device in one process, started in the order of EVE's boot script: what
 * `seth-agent run` is, and each device of a fleet. */
#pragma once

#include "apps/apps.h"
#include "loguploader/collector.h"
#include "loguploader/loguploader.h"
#include "node/node.h"
#include "report/report.h"

enum box_service {
    BOX_CLIENT,
    BOX_ZEDAGENT, /* with its reports and attestation */
    BOX_NODEAGENT,
    BOX_NIM,
    BOX_LOGUPLOADER,
    BOX_COLLECTOR,
    BOX_APPS,
    BOX_DIAG,
    BOX_SERVICES,
};
#define BOX_ALL ((1U << BOX_SERVICES) - 1)
/* "client", "zedagent" ...; NULL behind the last. */
const char *box_service_name(enum box_service s);

struct box_options {
    struct node_options node;
    unsigned services; /* bits 1 << enum box_service */
    int (*make_runtime)(void *arg, const struct runtime_events *events, struct runtime **ret);
    void *make_arg;
    bool makes_networks; /* bridges, namespaces and the metadata server: takes root */
    struct collector_options collector;
    const char *tcti;         /* of a TPM; NULL: none */
    bool starts_with_machine; /* nim's, as the next */
    const char *geo_url;
};

struct box;
/* Negative errno and *ret_error (heap, for people). */
int box_new(const struct box_options *o, struct box **ret, char **ret_error);
/* Ends every service; applications go on. */
void box_stop(struct box *b);
/* The rest; then the loop must settle. With makes_networks it must have settled after box_stop(),
 * too: applications may be asking for what takes keys. NULL allowed. */
void box_free(struct box *b);

struct node *box_node(struct box *b);
struct collector *box_collector(struct box *b); /* NULL: there is none */

struct box_counts {
    bool is_onboarded, is_configured;
    struct report_counts report;
    struct loguploader_counts logs;
    struct apps_counts apps;
};
struct box_counts box_counts(const struct box *b);
