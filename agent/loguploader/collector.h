/* SPDX-License-Identifier: Apache-2.0 */
/* Where newlogd is not: takes lines of the device and of applications, keeps them in files under
 * <persist>/newlog/collect as they come, and makes of these the gzip files that are uploaded. A
 * line that was taken survives the death of the process, and is in exactly one file. */
#pragma once

#include "node/node.h"

struct collector;

struct collector_options {
    const char *syslog_path; /* a datagram socket as /dev/log, <run>/log; NULL: none */
    bool reads_kernel;       /* /dev/kmsg */
    int64_t rotate_s;        /* 0: 300, or 10 while fast upload is on */
};
/* Finishes what an earlier life has left. */
int collector_new(struct node *n, const struct collector_options *o, struct collector **ret);
/* Rotates what is open. NULL allowed. */
void collector_free(struct collector *c);

struct collector_line {
    struct str app;      /* UUID; absent: of the device */
    struct str app_name; /* to display */
    struct str source;   /* "zedagent", "guest_vm-<uuid>" ... */
    struct str severity; /* "info", "err" ... */
    struct str content;
    struct str iid; /* process id; absent: ours; empty: of no process */
    struct str filename, function;
    int64_t wall_us;
    /* By the source itself, which is a service of EVE's or ours: of these only what the items
     * agent.<source>.loglevel and .remote.loglevel let pass is taken. */
    bool is_of_service;
};
/* 0 also for a line that is not wanted. */
int collector_add(struct collector *c, const struct collector_line *line);
/* Everything open becomes files to upload, now. */
void collector_rotate(struct collector *c);
