/* SPDX-License-Identifier: Apache-2.0 */
/* A device with a metadata server as a process of its own, for tests in network namespaces:
 *
 *     msrv_tool <root> <network> <address> <port> <exporter port>
 *
 * Publishes in place of the other services what <root>/topics.json says, {agent: {topic: {key:
 * value}}}, under <root>/run and <root>/persist. Prints the port when applications can be told
 * apart, and ends with standard input. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "eve/envelope.h"
#include "loop/loop.h"
#include "msrv/topics.h"
#include "pubsub/publication.h"
#include "pubsub/pubsub.h"

#define RETRY_MS 20 /* in place of ten seconds */
#define MAX_PUBLICATIONS 32

struct tool {
    const char *root;
    struct arena *arena;
    struct loop *loop;
    struct loop_fd *input;
    struct loop_timer *timer;
    struct pubsub *pubsub;
    struct publication *publications[MAX_PUBLICATIONS];
    size_t n_publications;
    struct msrv_topics *topics;
    struct msrv *msrv;
    struct msrv_listener *listener;
    struct pki_key *key;
};

/* ---- what no topic tells -------------------------------------------------------------------- */

static int sign(void *ctx, struct arena *a, struct str payload, struct str *ret)
{
    const struct tool *t = ctx;
    *ret = envelope_seal(a, &(struct envelope_signer){.key = t->key}, payload);
    return ret->p ? 0 : -EIO;
}

static const struct msrv_world rest = {.sign = sign};

/* ---- the other services --------------------------------------------------------------------- */

static struct json *read_topics(struct tool *t)
{
    BUF_AUTO text = {0};
    FILE *f = fopen(arena_printf(t->arena, "%s/topics.json", t->root).p, "r");
    size_t n = 0;
    while (f && (n = fread(buf_reserve(&text, 65536), 1, 65536, f)) > 0)
        text.n += n;
    if (f)
        (void) fclose(f);
    return json_parse_quick(t->arena, buf_str(&text));
}

static int publish_topic(struct tool *t, struct str agent, struct str topic,
                         const struct json *values)
{
    struct publication **p = &t->publications[t->n_publications];
    struct pubsub_name name = {.agent = agent, .topic = topic};
    name.is_persistent = str_is(topic, "EdgeNodeCert") || str_is(topic, "PatchEnvelopeInfoList");
    if (t->n_publications == MAX_PUBLICATIONS)
        return -ENOSPC;
    int r = publication_new(t->pubsub, &name, p);
    if (r < 0)
        return r;
    t->n_publications++;
    JSON_FOR_EACH_MEMBER (values, m) {
        r = publication_publish(*p, json_str(&m->key), &m->value);
        if (r < 0)
            return r;
    }
    return 0;
}

static int publish_all(struct tool *t)
{
    struct json *all = read_topics(t);
    if (!all)
        return -EINVAL;
    JSON_FOR_EACH_MEMBER (all, agent) {
        JSON_FOR_EACH_MEMBER (&agent->value, topic) {
            int r = publish_topic(t, json_str(&agent->key), json_str(&topic->key), &topic->value);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_input(void *arg, unsigned ready)
{
    (void) ready;
    struct tool *t = arg;
    char drop[64];
    if (read(STDIN_FILENO, drop, sizeof(drop)) <= 0)
        loop_stop(t->loop);
}

/* Applications are known, and who the device is. */
static void on_timer(void *arg)
{
    struct tool *t = arg;
    ARENA_AUTO a = arena_new();
    struct msrv_neighbour *list = NULL;
    size_t n = 0;
    if (!msrv_topics_world.is_ready(t->topics) ||
        msrv_topics_world.neighbours(t->topics, a, &list, &n) < 0 || n == 0)
        return;
    printf("%d\n", msrv_listener_port(t->listener));
    (void) fflush(stdout);
    loop_timer_stop(t->timer);
}

static int begin(struct tool *t, char **argv)
{
    t->pubsub = pubsub_new(&(struct pubsub_options){
        .loop = t->loop,
        .clock = &clock_system,
        .run_directory = arena_printf(t->arena, "%s/run", t->root).p,
        .persist_directory = arena_printf(t->arena, "%s/persist", t->root).p,
        .retry_ms = RETRY_MS,
    });
    int r = publish_all(t);
    if (r < 0)
        return r;
    r = msrv_topics_new(&(struct msrv_topics_options){.pubsub = t->pubsub,
                                                      .loop = t->loop,
                                                      .usage_delay_ms = RETRY_MS,
                                                      .rest = &rest,
                                                      .rest_ctx = t},
                        &t->topics);
    if (r < 0)
        return r;
    t->msrv = msrv_new(&(struct msrv_options){
        .loop = t->loop,
        .clock = &clock_system,
        .world = &msrv_topics_world,
        .ctx = t->topics,
        .diag_path = arena_printf(t->arena, "%s/diag.out", t->root).p,
        .exporter_port = atoi(argv[5]),
    });
    msrv_topics_follow(t->topics, t->msrv);
    return msrv_listen(
        t->msrv,
        &(struct msrv_place){.network = argv[2], .address = argv[3], .port = atoi(argv[4])},
        &t->listener);
}

static void end(struct tool *t)
{
    if (t->topics)
        msrv_topics_follow(t->topics, NULL);
    msrv_free(t->msrv);
    loop_timer_free(t->timer);
    loop_fd_free(t->input, NULL, NULL);
    loop_settle(t->loop);
    msrv_topics_free(t->topics);
    for (size_t i = 0; i < t->n_publications; i++)
        publication_free(t->publications[i]);
    pubsub_free(t->pubsub);
    loop_settle(t->loop);
    loop_free(t->loop);
    pki_key_free(t->key);
    arena_free(t->arena);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        (void) fprintf(stderr, "usage: %s <root> <network> <address> <port> <exporter port>\n",
                       argv[0]);
        return 2;
    }
    struct tool t = {
        .root = argv[1], .arena = arena_new(), .loop = loop_new(), .key = pki_key_new()};
    int r = begin(&t, argv);
    if (r < 0) {
        (void) fprintf(stderr, "cannot begin: %s\n", strerror(-r));
    } else {
        t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
        loop_fd_watch(t.input, LOOP_READABLE);
        t.timer = loop_timer_new(t.loop, on_timer, &t);
        loop_timer_start(t.timer, 1, RETRY_MS);
        loop_run(t.loop);
    }
    end(&t);
    return r < 0;
}
