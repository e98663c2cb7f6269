/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to become one of the controller's devices: its steps, and what each answer means. */
#pragma once

#include "base/uuid.h"
#include "client/client.h"
#include "node/link.h"

enum client_step { CLIENT_IDLE, CLIENT_CERTS, CLIENT_REGISTER, CLIENT_UUID };

enum client_result {
    CLIENT_DONE,        /* c->uuid and c->model say who we are */
    CLIENT_FAILED,      /* wait for the next attempt */
    CLIENT_NEEDS_CERTS, /* the controller signs with a certificate we do not know: soon again */
};

struct client_attempt {
    struct node *node;
    struct node_link *link;
    bool registers, asks_uuid;
    bool has_certs; /* they were fetched once and are good */
    enum client_step step;
    struct uuid uuid; /* nil: not asked for */
    struct str model; /* heap; of the controller, may be empty */
    /* The attempt is over; the owner may free everything. */
    void (*on_over)(void *arg, enum client_result result);
    void *arg;
};
/* While it is idle. */
void client_attempt_start(struct client_attempt *t);
