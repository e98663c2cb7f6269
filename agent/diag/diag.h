/* SPDX-License-Identifier: Apache-2.0 */
/* The console's report of connectivity: text for people, or JSON. */
#pragma once

#include "node/node.h"

struct diag;

struct diag_options {
    bool is_json;
    bool runs_forever; /* prints whenever something changes, every 5 s at most */
    bool prints_pac;
    const char *output;         /* file or pipe; NULL: stdout */
    const char *state_file;     /* a snapshot is kept there (/run/diag.out); NULL: not */
    unsigned rows, columns;     /* 0: 40 and 80 */
    bool fails_dns, fails_ping; /* simulated */
    /* The report is out and runs_forever is not set: 0 when the controller is reached. */
    void (*on_done)(void *arg, int exit_code);
    void *arg;
};
int diag_new(struct node *n, const struct diag_options *o, struct diag **ret);
/* NULL allowed. */
void diag_free(struct diag *d);
