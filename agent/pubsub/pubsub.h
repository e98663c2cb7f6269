/* SPDX-License-Identifier: Apache-2.0 */
/* How the device's services exchange state: a publication is a map from keys to JSON objects that
 * one service owns, a subscription a copy of it in another. The wire, the files and the names are
 * those of EVE's own services, so that either side may be one of them. docs/PUBSUB.md describes it.
 *
 * Here is what both sides share: where the directories are, and the limits. Everything belongs to
 * one loop's thread; there is no global state, so many devices live in one process. */
#pragma once

#include "base/clock.h"
#include "base/str.h"

struct loop;
struct pubsub;

/* Of the whole text of a packet; a publisher never sends so many bytes. */
#define PUBSUB_MAX_PACKET_BYTES 65535
/* A request must be shorter. */
#define PUBSUB_MAX_REQUEST_BYTES 256
/* `<key>.json.bak` must fit a file name; without `.bak` four more bytes fit. */
#define PUBSUB_MAX_KEY_BYTES 250
#define PUBSUB_MAX_PERSISTENT_KEY_BYTES 246
/* Agent, scope or topic. */
#define PUBSUB_MAX_NAME_BYTES 200
/* The file of a large field is smaller. */
#define PUBSUB_MAX_LARGE_BYTES ((size_t) 1024 * 1024)
/* A value with its large fields. */
#define PUBSUB_MAX_VALUE_BYTES ((size_t) 16 * 1024 * 1024)
/* Of one publication or subscription. */
#define PUBSUB_MAX_KEYS ((size_t) 65536)
#define PUBSUB_MAX_TOTAL_BYTES ((size_t) 256 * 1024 * 1024)
#define PUBSUB_MAX_SUBSCRIBERS 256
/* What one connection may send or receive before others have their turn. */
#define PUBSUB_MAX_PACKETS_PER_TURN 256
/* Between attempts to find a publisher or a directory. */
#define PUBSUB_RETRY_MS 10000
/* A subscriber that has not said what it wants by then is let go. */
#define PUBSUB_REQUEST_TIMEOUT_MS 10000

struct pubsub_options {
    struct loop *loop;
    const struct clock *clock;
    const char *run_directory;     /* /run on a device: the global topics */
    const char *var_run_directory; /* sockets and values; NULL: run_directory, as on a device */
    const char *persist_directory; /* /persist on a device */
    int64_t retry_ms;              /* 0: PUBSUB_RETRY_MS */
    int64_t request_timeout_ms;    /* 0: PUBSUB_REQUEST_TIMEOUT_MS */
    bool skips_sync; /* a simulated device need not survive a power cut of the machine it is on */
    /* Nobody outside takes part: publications and subscriptions of one context meet in memory,
     * without descriptors, and files are those of persistent topics alone. */
    bool is_private;
};

struct pubsub *pubsub_new(const struct pubsub_options *options);
/* After every publication and subscription of it; NULL allowed. */
void pubsub_free(struct pubsub *ps);

/* Who publishes what. An empty agent is "global": files alone, no socket, never persistent. */
struct pubsub_name {
    struct str agent;
    struct str scope; /* mostly none */
    struct str topic;
    bool is_persistent;
};

/* What is held, for tests and metrics. */
struct pubsub_count {
    size_t n_keys;
    size_t n_deleted;   /* keys of the past that a subscriber has yet to be told of */
    size_t n_bytes;     /* of keys and values */
    size_t n_peers;     /* subscribers connected */
    size_t n_pending;   /* bytes of packets that wait for slow subscribers */
    uint64_t n_packets; /* sent or received */
    uint64_t n_refused; /* packets, requests and files that made no sense */
};
