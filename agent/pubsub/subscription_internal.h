/* SPDX-License-Identifier: Apache-2.0 */
/* A subscription: the copy of the values, and one of two ways to keep it true. */
#pragma once

#include "base/map.h"
#include "pubsub/pubsub_internal.h"
#include "pubsub/subscription.h"

struct subscription_value {
    char *key;
    size_t n_key;
    char *text; /* normal: equal values, equal bytes */
    size_t n_text;
    bool is_seen; /* by the reading of a directory under way */
};

struct peer;

struct subscription {
    struct pubsub *pubsub;
    struct list link;  /* in a private context */
    struct peer *peer; /* directly at a publication of that context; NULL: there is none */
    struct pubsub_place place;
    struct subscription_handlers handlers;
    void *arg;
    struct map values;
    size_t n_bytes;
    int64_t restarted;
    bool is_synchronized;
    bool is_from_directory; /* there is no socket, or nobody to listen on it for long */
    unsigned n_entered;     /* our functions on the stack that need it afterwards */
    bool is_freed;          /* meanwhile */
    uint64_t n_packets, n_refused;

    struct loop_deferred start;
    struct loop_timer *timer; /* to connect, to look for the directory, to read it again */
    int fd;                   /* socket or inotify; -1: none */
    struct loop_fd *watch;
    int64_t tried_ms; /* to connect, last */

    struct loop_timer *restarted_timer; /* directory: values come first */
};

/* Around whatever may call a handler: a handler may free the subscription. leave() answers false
 * when that has happened. */
void subscription_enter(struct subscription *s);
bool subscription_leave(struct subscription *s);

/* What has arrived, by whatever way; handlers run. Within enter and leave. */
bool subscription_take_value(struct subscription *s, struct str key, struct str text);
void subscription_take_delete(struct subscription *s, struct str key);
void subscription_take_restarted(struct subscription *s, int64_t counter);
void subscription_take_synchronized(struct subscription *s);
/* One packet of a publisher. */
void subscription_take_packet(struct subscription *s, struct str packet);

void subscription_disconnect(struct subscription *s);
/* The two ways; called again whenever the timer says so. */
void subscription_connect(struct subscription *s);
void subscription_read_directory(struct subscription *s);
void subscription_on_restarted_timer(void *arg);
/* Those of a private context that have waited for this publication. */
void subscriptions_connect(struct pubsub *ps, const char *id);
/* Those of a private context read the files of a publication that goes: what it published in its
 * last turn is there and nowhere else. */
void subscriptions_reread(struct pubsub *ps, const char *id);
