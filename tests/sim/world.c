/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"

/* Working on this many keys without coming to rest is a loop. */
#define MAX_STEPS 200000

/* ---- events ------------------------------------------------------------------------------- */

static void deliver(struct controller_queue *q, const struct fake_event *e)
{
    ARENA_AUTO a = arena_new();
    const struct json *meta = json_get(e->object, STR("metadata"));
    struct kube_event event = {
        .type = e->type,
        .collection = e->collection,
        .namespace = json_get_str(meta, STR("namespace")),
        .name = json_get_str(meta, STR("name")),
        .uid = json_get_str(meta, STR("uid")),
        .is_deleting = json_get_str(meta, STR("deletionTimestamp")).n > 0,
        .has_owners = json_count(json_get(meta, STR("ownerReferences"))) > 0,
        .text = json_text(a, e->object),
    };
    controller_queue_event(q, &event);
}

static void deliver_with_faults(struct world *w, size_t i, const struct fake_event *e)
{
    if (fake_random(&w->api, 100) < w->drop_percent)
        return;
    deliver(w->queues[i], e);
    if (fake_random(&w->api, 100) < w->repeat_percent)
        deliver(w->queues[i], e);
}

/* What happens while events are delivered is delivered as well. */
static void deliver_all(struct world *w)
{
    for (size_t at = 0; at < w->api.n_events; at++) {
        const struct fake_event e = w->api.events[at];
        for (size_t i = 0; i < w->n_controllers; i++)
            deliver_with_faults(w, i, &e);
    }
    w->api.n_events = 0;
}

struct delivery {
    struct controller_queue *queue;
};

static void deliver_existing(void *ctx, struct str collection, const struct json *o)
{
    const struct fake_event e = {KUBE_ADDED, collection, o};
    deliver(((struct delivery *) ctx)->queue, &e);
}

static void start(struct world *w)
{
    if (w->begin)
        w->begin(w);
    for (size_t i = 0; i < w->n_controllers; i++) {
        w->queues[i] = controller_queue_new(w->controllers[i], &w->ctx);
        struct delivery d = {w->queues[i]};
        fake_each(&w->api, deliver_existing, &d);
        controller_queue_event(w->queues[i], &(struct kube_event){.type = KUBE_SYNCED});
    }
    w->api.n_events = 0;
}

static void stop(struct world *w)
{
    for (size_t i = 0; i < w->n_controllers; i++)
        controller_queue_free(w->queues[i]);
    if (w->end)
        w->end(w);
}

/* ---- time --------------------------------------------------------------------------------- */

static void work(struct world *w)
{
    size_t n_steps = 0;
    bool worked = true;
    while (worked) {
        deliver_all(w);
        worked = false;
        for (size_t i = 0; i < w->n_controllers; i++) {
            worked |= controller_queue_step(w->queues[i]);
            deliver_all(w);
        }
        if (++n_steps > MAX_STEPS)
            abort();
    }
}

static int64_t next_due_us(struct world *w)
{
    int64_t due_us = INT64_MAX;
    for (size_t i = 0; i < w->n_controllers; i++)
        due_us = MIN(due_us, controller_queue_due_us(w->queues[i]));
    return due_us;
}

void world_pass(struct world *w, int64_t ms)
{
    int64_t end_us = w->clock.now_us + ms * 1000;
    work(w);
    for (int64_t due_us = next_due_us(w); due_us <= end_us; due_us = next_due_us(w)) {
        w->clock.now_us = MAX(due_us, w->clock.now_us);
        work(w);
    }
    w->clock.now_us = end_us;
}

/* ---- life --------------------------------------------------------------------------------- */

uint64_t world_seed(void)
{
    const char *given = getenv("SETH_SIM_SEED");
    int64_t seed = 0;
    if (!given || str_to_i64(str_of(given), &seed) < 0)
        seed = (int64_t) random_below(1000000000);
    printf("# SETH_SIM_SEED=%" PRId64 "\n", seed);
    return (uint64_t) seed;
}

void world_init(struct world *w, uint64_t seed, const struct controller *const *table)
{
    world_init_shared(w, seed, table, NULL, NULL);
}

void world_init_shared(struct world *w, uint64_t seed, const struct controller *const *table,
                       void (*begin)(struct world *w), void (*end)(struct world *w))
{
    *w = (struct world){.begin = begin, .end = end};
    clock_virtual_init(&w->clock, WORLD_START_US);
    fake_client_init(&w->api, &w->clock.clock, seed);
    w->ctx = (struct controller_context){
        .client = &w->api.client, .clock = &w->clock.clock, .root_ca_pem = STR("PEM")};
    for (; table[w->n_controllers]; w->n_controllers++)
        w->controllers[w->n_controllers] = table[w->n_controllers];
    (void) world_create(w, "v1/namespaces", NULL, "{'metadata':{'name':'n'}}");
    start(w);
}

void world_done(struct world *w)
{
    stop(w);
    fake_client_done(&w->api);
}

void world_restart(struct world *w)
{
    stop(w);
    start(w);
}

/* ---- users -------------------------------------------------------------------------------- */

static struct json *parse(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json *v = json_parse_quick(a, str_of(copy));
    if (!v)
        abort();
    return v;
}

static struct kube_request request_of(enum verb verb, const char *kind, const char *namespace,
                                      const char *name)
{
    struct str k = str_of(kind);
    ptrdiff_t last = str_find_last(k, '/');
    struct str group_version = str_sub(k, 0, (size_t) last);
    ptrdiff_t slash = str_find(group_version, '/');
    return (struct kube_request){.verb = verb,
                                 .group = slash < 0 ? STR("")
                                                    : str_sub(group_version, 0, (size_t) slash),
                                 .version = str_from(group_version, (size_t) (slash + 1)),
                                 .resource = str_from(k, (size_t) last + 1),
                                 .namespace = str_of(namespace),
                                 .name = str_of(name)};
}

int world_create(struct world *w, const char *kind, const char *namespace, const char *text)
{
    ARENA_AUTO a = arena_new();
    struct kube_request r = request_of(VERB_CREATE, kind, namespace, NULL);
    r.body = parse(a, text);
    return fake_request(&w->api, a, &r, NULL);
}

int world_patch(struct world *w, const char *kind, const char *namespace, const char *name,
                const char *text)
{
    ARENA_AUTO a = arena_new();
    struct kube_request r = request_of(VERB_PATCH, kind, namespace, name);
    struct json *body = parse(a, text);
    /* What is said of status goes there. */
    if (json_get(body, STR("status")))
        r.subresource = STR("status");
    r.body = body;
    return fake_request(&w->api, a, &r, NULL);
}

int world_delete(struct world *w, const char *kind, const char *namespace, const char *name,
                 const char *policy)
{
    ARENA_AUTO a = arena_new();
    struct json body = json_object();
    if (policy)
        (void) json_set(a, &body, STR("propagationPolicy"), json_string(str_of(policy)));
    struct kube_request r = request_of(VERB_DELETE, kind, namespace, name);
    r.body = &body;
    return fake_request(&w->api, a, &r, NULL);
}

/* ---- looking ------------------------------------------------------------------------------ */

bool world_has(struct world *w, const char *collection, const char *namespace, const char *name)
{
    return fake_get(&w->api, collection, namespace, name) != NULL;
}

const struct json *world_at(struct world *w, const char *collection, const char *namespace,
                            const char *name, ...)
{
    const struct json *v = fake_get(&w->api, collection, namespace, name);
    va_list keys;
    va_start(keys, name);
    for (const char *key = va_arg(keys, const char *); key; key = va_arg(keys, const char *))
        v = json_get(v, str_of(key));
    va_end(keys);
    return v;
}

struct str world_text(struct world *w, const char *collection, const char *namespace,
                      const char *name, const char *in, const char *key)
{
    return json_str(world_at(w, collection, namespace, name, in, key, NULL));
}

struct str world_uid(struct world *w, const char *collection, const char *namespace,
                     const char *name)
{
    return world_text(w, collection, namespace, name, "metadata", "uid");
}
