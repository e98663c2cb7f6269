/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `seth-agent`, and what they have in common: a loop, a wire, this machine. */
#pragma once

#include "box/box.h"
#include "cli/program.h"
#include "machine/machine.h"

/* Where a device's directories are, and its log. */
#define AGENT_OPTIONS \
    {"config", OPTION_TEXT, NULL, "YAML file with these options", 0, 0, 0}, \
        {"config-dir", \
         OPTION_TEXT, \
         "/config", \
         "what the installer wrote: server, certificates", \
         0, \
         0, \
         0}, \
        {"persist-dir", OPTION_TEXT, "/persist", "what survives a restart", 0, 0, 0}, \
        {"run-dir", OPTION_TEXT, "/run", "what does not: sockets and topics", 0, 0, 0}, \
    { \
        "log-level", OPTION_TEXT, "info", "error, warning, info or debug", 0, 0, 0 \
    }

extern const struct option_spec run_options[], client_options_table[], diag_options_table[],
    plain_options[];

int run_command(const struct options *o);
int client_command(const struct options *o);
int diag_command(const struct options *o);

/* A process of a device: until a signal, or agent_end(). */
struct agent {
    const struct options *options;
    struct loop *loop;
    struct uplink_wire *wire;
    struct machine *machine;
    const char *mounts[2];
    int exit_code;
};

/* 0, or what was wrong has been said. */
int agent_begin(struct agent *a, const struct options *o, const struct machine_linux_options *m);
struct node_options agent_node_options(const struct agent *a);
void agent_run(struct agent *a);
/* Ends agent_run(). */
void agent_end(struct agent *a, int exit_code);
/* After nodes were freed. The exit code. */
int agent_done(struct agent *a);
int agent_complain(const struct options *o, int r, char *error);
