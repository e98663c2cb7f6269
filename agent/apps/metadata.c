/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata server of each network instance, on its bridge. */
#include <errno.h>

#include "apps/apps_internal.h"
#include "attest/attest.h"
#include "base/alloc.h"
#include "base/log.h"
#include "msrv/msrv.h"
#include "msrv/topics.h"

#define DIAG_FILE "diag.out"
#define RETRY_MS 1000
#define MAX_TRIES 60

struct place {
    struct list link;
    struct metadata *metadata;
    char *network, *interface;
    struct msrv_listener *listener; /* NULL: not yet */
    struct loop_timer *retry;
    int n_tries;
};

struct metadata {
    struct apps *apps;
    struct msrv_topics *topics;
    struct msrv *server;
    struct list places;
};

static void on_server_freed(void *ctx)
{
    msrv_topics_free(ctx);
}

int metadata_new(struct apps *a, struct metadata **ret)
{
    struct metadata *m = NEW(struct metadata);
    ARENA_AUTO arena = arena_new_with(512);
    m->apps = a;
    list_init(&m->places);
    struct msrv_topics_options topics = {
        .pubsub = a->node->pubsub,
        .loop = a->node->loop,
        .rest = a->options.keys ? &node_keys_world : NULL,
        .rest_ctx = a->options.keys,
    };
    int r = msrv_topics_new(&topics, &m->topics);
    if (r < 0) {
        mem_free(m);
        return r;
    }
    struct msrv_options options = {
        .loop = a->node->loop,
        .clock = a->node->clock,
        .world = &msrv_topics_world,
        .ctx = m->topics,
        .on_freed = on_server_freed,
        .diag_path = node_path(arena, a->node, NODE_RUN, STR(DIAG_FILE)),
    };
    m->server = msrv_new(&options);
    msrv_topics_follow(m->topics, m->server);
    *ret = m;
    return 0;
}

static void place_free(struct place *p)
{
    list_remove(&p->link);
    msrv_unlisten(p->listener);
    loop_timer_free(p->retry);
    mem_free(p->network);
    mem_free(p->interface);
    mem_free(p);
}

/* The address of a bridge that has just been made may not be there yet. */
static void try_listen(void *arg)
{
    struct place *p = arg;
    struct msrv_place at = {
        .network = p->network,
        .interface = p->interface,
        .address = MSRV_ADDRESS,
        .port = MSRV_PORT,
    };
    int r = msrv_listen(p->metadata->server, &at, &p->listener);
    if (r >= 0)
        return;
    if (++p->n_tries < MAX_TRIES)
        loop_timer_start(p->retry, RETRY_MS, 0);
    else
        log_error("applications cannot reach the metadata server", LOG_TEXT("network", p->network),
                  LOG_ERRNO(r));
}

void metadata_close(struct metadata *m, const char *network)
{
    LIST_FOR_EACH (&m->places, item) {
        struct place *p = CONTAINER_OF(item, struct place, link);
        if (strcmp(p->network, network) == 0)
            place_free(p);
    }
}

void metadata_open(struct metadata *m, const char *network, const char *interface)
{
    metadata_close(m, network); /* the bridge may be another of the same name */
    struct place *p = NEW(struct place);
    p->metadata = m;
    p->network = mem_strdup(network);
    p->interface = mem_strdup(interface);
    p->retry = loop_timer_new(m->apps->node->loop, try_listen, p);
    list_append(&m->places, &p->link);
    try_listen(p);
}

void metadata_free(struct metadata *m)
{
    if (!m)
        return;
    LIST_FOR_EACH (&m->places, item)
        place_free(CONTAINER_OF(item, struct place, link));
    msrv_topics_follow(m->topics, NULL);
    msrv_topics_close(m->topics);
    msrv_free(m->server); /* takes its world along in the end */
    mem_free(m);
}
