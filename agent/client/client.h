/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does before it is one of the controller's: fetches and verifies the controller's
 * certificates, registers, learns its UUID; then it is over. Publishes OnboardingStatus as
 * `zedclient`. */
#pragma once

#include "node/node.h"

struct client_options {
    bool registers; /* when there is an onboarding identity */
    bool asks_uuid;
    unsigned max_attempts; /* 0: for ever */
    /* Exit code 0: done; 1: too many attempts. Not before client_new() returns; the client may be
     * freed in it. */
    void (*on_done)(void *arg, int exit_code);
    void *arg;
};

struct client;
int client_new(struct node *n, const struct client_options *o, struct client **ret);
/* NULL allowed; under way, too. */
void client_free(struct client *c);
