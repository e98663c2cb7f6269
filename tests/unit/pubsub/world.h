/* SPDX-License-Identifier: Apache-2.0 */
/* A device's directories in a temporary place, a loop that runs until something is so, and a bare
 * socket for the other side. */
#pragma once

#include "loop/loop.h"
#include "pubsub/publication.h"
#include "pubsub/subscription.h"
#include "json/json.h"

#define RETRY_MS 20 /* in place of ten seconds */

struct world {
    char root[64];
    struct loop *loop;
    struct pubsub *pubsub;
    struct arena *arena;
    struct loop_timer *timer;
    bool (*is_so)(void *arg);
    void *arg;
    int n_turns;
};

void world_init(struct world *w);
/* Another device of the same loop, with directories below that name. */
struct pubsub *world_device(struct world *w, const char *below, int64_t request_timeout_ms);
struct pubsub *world_private_device(struct world *w, const char *below);
/* Removes the directories. */
void world_done(struct world *w);
/* Fails the test when it never becomes so. */
void world_run_until(struct world *w, bool (*is_so)(void *arg), void *arg);
/* A few turns: what could be wrong has had its chance. */
void world_run_turns(struct world *w, int n);

/* Paths under the root. */
const char *world_path(struct world *w, const char *below);
void world_write(struct world *w, const char *below, const char *content);
/* NULL when there is no such file. */
const char *world_read(struct world *w, const char *below);
bool world_exists(struct world *w, const char *below);
size_t world_count_files(struct world *w, const char *below);
struct json *world_json(struct world *w, const char *text);

/* Blocking sockets of the other side: a subscriber's, and a publisher's that listens. */
int world_connect(struct world *w, const char *below);
int world_listen(struct world *w, const char *below);
void world_send(int fd, const char *packet);
/* Waits for a packet while the loop runs; "(closed)" at the end. */
const char *world_receive(struct world *w, int fd);

int world_publish(struct world *w, struct publication *p, const char *key, const char *json);
struct publication *world_publication(struct world *w, const char *agent, const char *topic,
                                      bool is_persistent);
