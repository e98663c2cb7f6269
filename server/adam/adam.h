/* SPDX-License-Identifier: Apache-2.0 */
/* The REST API of Adam, the earlier controller, below /admin: what its tools ask for, answered from
 * our objects. Devices, configurations and onboarding certificates of one namespace are Adam's. */
#pragma once

#include "api/annex.h"
#include "api/client.h"
#include "eve/config.pb-c.h"
#include "roster/roster.h"
#include "telemetry/telemetry.h"

struct adam_options {
    struct kube_client *client; /* field manager "seth-adam" */
    struct roster *roster;
    struct telemetry *telemetry;
    const char *namespace;
    bool is_open_on_loopback; /* tools on this machine need not say who they are */
    /* Composes the configuration of a device that has none, and writes it, now; blocks. NULL:
     * nobody does. */
    int (*ensure_config)(void *ctx, struct str namespace, struct str name, struct status *st);
    void *ensure_ctx;
};

struct adam;
/* Copies the namespace; the rest is borrowed. */
struct adam *adam_new(const struct adam_options *o);
void adam_free(struct adam *a); /* NULL allowed */
struct annex adam_annex(struct adam *a);
