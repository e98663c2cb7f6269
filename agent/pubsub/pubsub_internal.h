/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this directory share: the context and the names on disk. */
#pragma once

#include "loop/loop.h"
#include "pubsub/pubsub.h"
#include "json/json.h"

/* One more than a packet may have: a filled buffer shows that the packet was longer. */
#define PUBSUB_READ_BYTES (PUBSUB_MAX_PACKET_BYTES + 1)

struct pubsub {
    struct loop *loop;
    const struct clock *clock;
    char *run, *var_run, *persist;
    int64_t retry_ms, request_timeout_ms;
    bool syncs;
    bool is_private;
    struct list publications;  /* of a private context */
    struct list subscriptions; /* of a private context */
    char *packet;              /* PUBSUB_READ_BYTES, for whoever reads now */
};

/* A name and where its things are; owns its strings. */
struct pubsub_place {
    char *topic;
    char *id;        /* agent/scope/topic */
    char *values;    /* directory */
    char *large;     /* directory */
    char *directory; /* of the socket; NULL: there is none */
    char *socket;    /* its name there */
    bool is_persistent;
    bool has_files;
    bool syncs;
};

int pubsub_place_init(struct pubsub_place *place, const struct pubsub *ps,
                      const struct pubsub_name *name);
void pubsub_place_done(struct pubsub_place *place);
bool pubsub_is_key(struct str key, bool is_persistent);

/* ---- sockets -------------------------------------------------------------------------------- */

/* Both without blocking; the fd or a negative errno. -EADDRINUSE: somebody listens there. */
int pubsub_socket_listen(const struct pubsub_place *place);
int pubsub_socket_connect(const struct pubsub_place *place);
void pubsub_socket_remove(const struct pubsub_place *place);
/* Stops watching, then closes. NULL and -1 are fine. */
void pubsub_socket_close(struct loop_fd *watch, int fd);
