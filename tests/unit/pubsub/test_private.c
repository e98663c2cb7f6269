/* SPDX-License-Identifier: Apache-2.0 */
/* A private context: the same behaviour without sockets, and without files but persistent ones. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "test.h"
#include "trace.h"
#include "world.h"

static const struct pubsub_name nim = {.agent = STR("nim"), .topic = STR("T")};

static struct publication *publication(struct pubsub *ps, const struct pubsub_name *name)
{
    struct publication *p = NULL;
    assert_int_equal(publication_new(ps, name, &p), 0);
    return p;
}

static size_t count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    size_t n = 0;
    while (readdir(d))
        n++;
    (void) closedir(d);
    return n;
}

TEST(the_story_is_that_of_the_socket)
{
    static const struct pubsub_name names[] = {
        {.agent = STR("nim"), .topic = STR("T")},
        {.agent = STR("nim"), .scope = STR("s"), .topic = STR("T")},
        {.agent = STR(""), .topic = STR("T")},
        {.agent = STR("zedclient"), .topic = STR("T")},
    };
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct world w;
        world_init(&w);
        struct pubsub *ps = world_private_device(&w, "private");
        struct trace t;
        trace_subscribe(&w, ps, &t, &names[i]);
        world_run_turns(&w, 2);
        struct publication *p = publication(ps, &names[i]), *second = NULL;
        assert_int_equal(publication_new(ps, &names[i], &second), -EADDRINUSE);
        assert_int_equal(world_publish(&w, p, "k", "{\"b\":[],\"a\":\"<\"}"), 0);
        assert_int_equal(publication_signal_restarted(p), 0);
        trace_expect(&t, "create k {\"a\":\"<\",\"b\":null};synchronized;restarted 1;");
        assert_int_equal(world_publish(&w, p, "k", "{\"pubsub-large-X\":1}"), 0);
        trace_expect(&t, "(was {\"a\":\"<\",\"b\":null})modify k {\"pubsub-large-X\":1};");
        assert_int_equal(publication_unpublish(p, STR("k")), 0);
        trace_expect(&t, "delete k {\"pubsub-large-X\":1};");
        publication_free(p);
        assert_int_equal(subscription_count(t.subscription).n_peers, 0);
        p = publication(ps, &names[i]);
        assert_int_equal(world_publish(&w, p, "l", "{}"), 0);
        /* The counter was not on disk: a new life begins with none. */
        trace_expect(&t, "create l {};");
        trace_done(&t);
        assert_int_equal(publication_count(p).n_peers, 0);
        publication_free(p);
        assert_false(world_exists(&w, "private"));
        pubsub_free(ps);
        world_done(&w);
    }
}

TEST(persistent_values_outlive_a_private_device)
{
    struct world w;
    world_init(&w);
    struct pubsub_name name = {.agent = STR("nim"), .topic = STR("T"), .is_persistent = true};
    struct pubsub *ps = world_private_device(&w, "private");
    struct publication *p = publication(ps, &name);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    publication_free(p);
    pubsub_free(ps);
    assert_string_equal(world_read(&w, "private/persist/status/nim/T/k.json"), "{\"n\":1}");

    ps = world_private_device(&w, "private");
    struct trace t;
    trace_subscribe(&w, ps, &t, &name);
    trace_expect(&t, "create k {\"n\":1};restarted 1;");
    p = publication(ps, &name);
    trace_expect(&t, "synchronized;");
    trace_done(&t);
    publication_free(p);
    pubsub_free(ps);
    world_done(&w);
}

/* ---- handlers that meddle ------------------------------------------------------------------- */

/* Changes of every kind, until the handler in question has freed what it frees. */
static void change_until_freed(struct world *w, struct publication *p, const struct trace *t)
{
    bool frees_publication = t->freed;
    for (int n = 0; n < 6; n++) {
        world_run_turns(w, 1);
        if (frees_publication ? !t->freed : !t->subscription)
            return;
        if (n == 0)
            assert_int_equal(world_publish(w, p, "k", "{\"n\":1}"), 0);
        if (n == 1)
            assert_int_equal(publication_unpublish(p, STR("k")), 0);
        if (n == 2)
            assert_int_equal(publication_signal_restarted(p), 0);
    }
    fail_msg("the handler was not called");
}

TEST(a_handler_may_free_either_side)
{
    static const char *const kinds[] = {"create", "modify", "delete", "restarted", "synchronized"};
    for (size_t i = 0; i < 2 * N_ELEMENTS(kinds); i++) {
        struct world w;
        world_init(&w);
        struct pubsub *ps = world_private_device(&w, "private");
        struct publication *p = publication(ps, &nim);
        struct trace t[3];
        for (size_t k = 0; k < N_ELEMENTS(t); k++)
            trace_subscribe(&w, ps, &t[k], &nim);
        assert_int_equal(world_publish(&w, p, "k", "{}"), 0);
        assert_int_equal(world_publish(&w, p, "l", "{}"), 0);
        t[1].freed_after = kinds[i / 2];
        t[1].freed = i % 2 ? p : NULL;
        change_until_freed(&w, p, &t[1]);
        world_run_turns(&w, 2);
        for (size_t k = 0; k < N_ELEMENTS(t); k++)
            trace_done(&t[k]);
        if (i % 2 == 0)
            publication_free(p);
        pubsub_free(ps);
        world_done(&w);
    }
}

/* Frees another subscription, and publishes something else whenever it is told something. */
struct meddler {
    struct world *world;
    struct publication *publication;
    struct subscription *victim;
    int n_left;
};

static void on_meddle(void *arg, struct str key, const struct json *value)
{
    (void) value;
    struct meddler *m = arg;
    subscription_free(TAKE(m->victim));
    if (m->n_left-- > 0) {
        struct json v = json_object();
        struct str next = arena_printf(m->world->arena, "next-%d", m->n_left);
        assert_int_equal(publication_publish(m->publication, next, &v), 0);
        assert_int_equal(publication_unpublish(m->publication, key), 0);
    }
}

static bool has_meddled(void *arg)
{
    return ((const struct meddler *) arg)->n_left < 0;
}

TEST(a_handler_may_change_what_it_subscribes_to)
{
    for (int first = 0; first < 2; first++) {
        struct world w;
        world_init(&w);
        struct pubsub *ps = world_private_device(&w, "private");
        struct publication *p = publication(ps, &nim);
        struct subscription *s = NULL;
        struct meddler m = {.world = &w, .publication = p, .n_left = 500};
        struct subscription_handlers none = {0}, meddling = {.on_create = on_meddle};
        for (int i = 0; i < 2; i++) {
            int r = i == first ? subscription_new(ps, &nim, &meddling, &m, &s)
                               : subscription_new(ps, &nim, &none, NULL, &m.victim);
            assert_int_equal(r, 0);
        }
        assert_int_equal(world_publish(&w, p, "first", "{}"), 0);
        world_run_until(&w, has_meddled, &m);
        world_run_turns(&w, 1);
        assert_int_equal(subscription_count(s).n_keys, 1);
        assert_int_equal(publication_count(p).n_deleted, 0);
        subscription_free(s);
        publication_free(p);
        pubsub_free(ps);
        world_done(&w);
    }
}

TEST(the_last_words_of_a_persistent_publication_are_heard)
{
    static const struct pubsub_name name = {
        .agent = STR("zedclient"), .topic = STR("OnboardingStatus"), .is_persistent = true};
    struct world w;
    world_init(&w);
    struct pubsub *ps = world_private_device(&w, "private");
    struct trace t;
    trace_subscribe(&w, ps, &t, &name);
    world_run_turns(&w, 2);
    struct publication *p = publication(ps, &name);
    assert_int_equal(world_publish(&w, p, "global", "{\"a\":1}"), 0);
    publication_free(p);
    trace_expect(&t, "create global {\"a\":1};");
    p = publication(ps, &name);
    assert_int_equal(world_publish(&w, p, "global", "{\"a\":2}"), 0);
    publication_free(p);
    trace_expect(&t, "(was {\"a\":1})modify global {\"a\":2};");
    trace_done(&t);
    pubsub_free(ps);
    world_done(&w);
}

/* ---- many ----------------------------------------------------------------------------------- */

#define N_DEVICES 2000

struct device {
    struct pubsub *pubsub;
    struct publication *p;
    struct subscription *s;
};

static void device_start(struct world *w, struct device *d, int64_t number)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    json_set(a, &v, STR("device"), json_int(number));
    /* Directories need not differ: nothing is in them. */
    d->pubsub = world_private_device(w, "same");
    d->p = publication(d->pubsub, &nim);
    assert_int_equal(publication_publish(d->p, STR("k"), &v), 0);
    struct subscription_handlers none = {0};
    assert_int_equal(subscription_new(d->pubsub, &nim, &none, NULL, &d->s), 0);
}

TEST(thousands_of_devices_need_no_descriptors)
{
    struct world w;
    world_init(&w);
    struct device *devices = calloc(N_DEVICES, sizeof(*devices));
    assert_non_null(devices);
    size_t n_before = count_descriptors();
    for (int i = 0; i < N_DEVICES; i++)
        device_start(&w, &devices[i], i);
    world_run_turns(&w, 3);
    assert_int_equal(count_descriptors(), n_before);
    for (int i = 0; i < N_DEVICES; i++) {
        struct device *d = &devices[i];
        assert_true(subscription_is_synchronized(d->s));
        ARENA_AUTO a = arena_new();
        const struct json *v = subscription_get(a, d->s, STR("k"));
        assert_int_equal(json_get_int(v, STR("device"), -1), i);
        subscription_free(d->s);
        publication_free(d->p);
        pubsub_free(d->pubsub);
    }
    free(devices);
    world_done(&w);
}
