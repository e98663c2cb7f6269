/* SPDX-License-Identifier: Apache-2.0 */
/* All services of one device in one process, started in the order of EVE's boot script: what
 * `seth-agent run` is, and each device of a fleet. */
#pragma once

#include "apps/apps.h"
#include "diag/diag.h"
#include "loguploader/collector.h"
#include "loguploader/loguploader.h"
#include "node/node.h"
#include "report/report.h"
#include "zedagent/zedagent.h"

struct box;

struct box_options {
    struct node_options node;
    int (*make_runtime)(void *arg, const struct runtime_events *events, struct runtime **ret);
    void *make_arg;
    bool makes_networks; /* bridges and namespaces, the metadata server: takes root */
    bool collects_logs;  /* without newlogd */
    const char *syslog_path;
    bool reads_kernel;
    const char *tcti;         /* of a TPM; NULL: none */
    bool starts_with_machine; /* nim's */
    bool runs_diag;           /* keeps <run>/diag.out */
    /* The machine was asked to restart: the owner frees the box. */
};
int box_new(const struct box_options *o, struct box **ret, char **ret_error);
/* Then the loop must settle. NULL allowed. */
void box_free(struct box *b);

struct node *box_node(struct box *b);
struct collector *box_collector(struct box *b); /* NULL: it collects nothing */
struct box_counts {
    bool is_onboarded, is_configured;
    struct report_counts report;
    struct loguploader_counts logs;
    struct apps_counts apps;
};
struct box_counts box_counts(const struct box *b);
