/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriber against a bare socket, against files, and against a publication of ours. */
#include "pubsub/subscription.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"
#include "trace.h"
#include "world.h"

#define SOCKET "run/nim/T.sock"

static const struct pubsub_name nim = {.agent = STR("nim"), .topic = STR("T")};

static bool is_readable(void *arg)
{
    char c;
    return recv(*(int *) arg, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Accepts our subscriber and checks its request. */
static int accept_subscriber(struct world *w, int listener)
{
    struct timeval soon = {.tv_usec = 1000};
    (void) setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
    int fd = -1;
    for (int i = 0; i < 10000 && fd < 0; i++) {
        world_run_turns(w, 1);
        fd = accept(listener, NULL, NULL);
    }
    assert_true(fd >= 0);
    world_run_until(w, is_readable, &fd);
    assert_string_equal(world_receive(w, fd), "request T");
    return fd;
}

/* ---- golden transcripts --------------------------------------------------------------------- */

TEST(the_transcript_of_a_publisher)
{
    struct world w;
    world_init(&w);
    int listener = world_listen(&w, SOCKET);
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &nim);
    int fd = accept_subscriber(&w, listener);
    world_send(fd, "hello T false");
    world_send(fd, "update T Z2xvYmFs eyJhIjpudWxsLCJiIjoiXHUwMDNjIn0="); /* a null, b \u003c */
    trace_expect(&t, "create global {\"a\":null,\"b\":\"<\"};");
    assert_false(subscription_is_synchronized(t.subscription));
    world_send(fd, "complete T");
    world_send(fd, "restarted T 1");
    trace_expect(&t, "synchronized;restarted 1;");
    /* The same value in other bytes, the same counter, a second complete: nothing new. */
    world_send(fd, "update T Z2xvYmFs eyJiIjoiPCIsImEiOltdfQ=="); /* {"b":"<","a":[]} */
    world_send(fd, "restarted T 1");
    world_send(fd, "complete T");
    world_send(fd, "update T Z2xvYmFs eyJhIjoxfQ==");
    trace_expect(&t, "(was {\"a\":null,\"b\":\"<\"})modify global {\"a\":1};");
    world_send(fd, "delete T Z2xvYmFs");
    world_send(fd, "delete T Z2xvYmFs");
    world_send(fd, "restarted T 0");
    trace_expect(&t, "delete global {\"a\":1};restarted 0;");
    assert_int_equal(subscription_count(t.subscription).n_bytes, 0);
    trace_done(&t);
    close(fd);
    close(listener);
    world_done(&w);
}

TEST(nonsense_is_passed_over)
{
    struct world w;
    world_init(&w);
    int listener = world_listen(&w, SOCKET);
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &nim);
    int fd = accept_subscriber(&w, listener);
    static const char *nonsense[] = {
        "x",
        "update T",
        "update T aw== eyJ",
        "update T aw== W10=", /* an array */
        "update T aw== eyJhIjo=",
        "update T YS9i e30=", /* a/b */
        "update T  e30=",
        "request T",
        "goodbye T",
        "restarted T many",
    };
    for (size_t i = 0; i < N_ELEMENTS(nonsense); i++)
        world_send(fd, nonsense[i]);
    char *large = malloc(PUBSUB_MAX_PACKET_BYTES + 100);
    assert_non_null(large);
    memset(large, 'A', PUBSUB_MAX_PACKET_BYTES + 100);
    memcpy(large, "update T aw== ", 14);
    for (size_t n = PUBSUB_MAX_PACKET_BYTES - 1; n <= PUBSUB_MAX_PACKET_BYTES + 100; n += 101)
        assert_int_equal(send(fd, large, n, MSG_NOSIGNAL), n);
    free(large);
    /* Of another topic: taken all the same. */
    world_send(fd, "update U aw== e30=");
    trace_expect(&t, "create k {};");
    assert_int_equal(subscription_count(t.subscription).n_refused, N_ELEMENTS(nonsense) + 2);
    trace_done(&t);
    close(fd);
    close(listener);
    world_done(&w);
}

TEST(a_lost_publisher_is_found_again_and_nothing_is_told_twice)
{
    struct world w;
    world_init(&w);
    int listener = world_listen(&w, SOCKET);
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &nim);
    int fd = accept_subscriber(&w, listener);
    world_send(fd, "hello T"); /* of 2025 */
    world_send(fd, "update T YQ== e30=");
    world_send(fd, "update T Yg== e30=");
    world_send(fd, "complete T");
    world_send(fd, "restarted T 1");
    trace_expect(&t, "create a {};create b {};synchronized;restarted 1;");
    close(fd);
    fd = accept_subscriber(&w, listener);
    world_send(fd, "hello T true");
    world_send(fd, "update T YQ== e30=");
    world_send(fd, "complete T");
    world_send(fd, "restarted T 1");
    world_send(fd, "update T Yw== e30=");
    /* b vanished meanwhile; it is not swept, as on the device. */
    trace_expect(&t, "create c {};");
    assert_non_null(subscription_get(w.arena, t.subscription, STR("b")));
    trace_done(&t);
    close(fd);
    close(listener);
    world_done(&w);
}

/* ---- with a publication of ours ------------------------------------------------------------- */

TEST(the_publisher_may_come_later_go_and_return)
{
    struct world w;
    world_init(&w);
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &nim);
    world_run_turns(&w, 5);
    assert_int_equal(t.text.n, 0);
    struct publication *p = world_publication(&w, "nim", "T", false);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    trace_expect(&t, "create k {\"n\":1};synchronized;restarted 1;");
    publication_free(p);
    p = world_publication(&w, "nim", "T", false);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":2}"), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    trace_expect(&t, "(was {\"n\":1})modify k {\"n\":2};restarted 2;");
    publication_free(p);
    trace_done(&t);
    world_done(&w);
}

TEST(large_fields_arrive_and_leave_no_files)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &nim);
    size_t n = (size_t) 900 * 1024;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, '&', n / 8);
    memset(text + n / 8, 'x', n - n / 8);
    struct json v = json_object(), block = json_object(), blocks = json_array();
    json_set(w.arena, &block, STR("pubsub-large-CipherData"), json_string(str_range(text, n / 8)));
    json_push(w.arena, &blocks, block);
    json_set(w.arena, &v, STR("pubsub-large-ProxyCertPEM"),
             json_string(str_range(text + n / 8, n - n / 8)));
    json_set(w.arena, &v, STR("Blocks"), blocks);
    assert_int_equal(publication_publish(p, STR("k"), &v), 0);
    while (!subscription_is_synchronized(t.subscription))
        world_run_turns(&w, 1);
    assert_true(json_equal(subscription_get(w.arena, t.subscription, STR("k")), &v));
    assert_int_equal(world_count_files(&w, "persist/pubsub-large/nim/T"), 0);
    free(text);
    publication_free(p);
    trace_done(&t);
    world_done(&w);
}

#define N_MANY 10000

TEST(ten_thousand_keys_reach_every_subscriber)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    struct subscription *s[3] = {0};
    for (size_t i = 0; i < N_ELEMENTS(s); i++) {
        /* The last comes when all is published. */
        for (int k = i == 2 ? 0 : N_MANY; k < N_MANY; k++) {
            ARENA_AUTO a = arena_new();
            struct json v = json_object();
            json_set(a, &v, STR("n"), json_int(k));
            assert_int_equal(publication_publish(p, arena_printf(a, "key-%d", k), &v), 0);
        }
        assert_int_equal(
            subscription_new(w.pubsub, &nim, &(struct subscription_handlers){0}, NULL, &s[i]), 0);
    }
    assert_int_equal(publication_unpublish(p, STR("key-17")), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    for (size_t i = 0; i < N_ELEMENTS(s); i++) {
        while (subscription_restarted(s[i]) != 1)
            world_run_turns(&w, 1);
        assert_true(subscription_is_synchronized(s[i]));
        assert_int_equal(subscription_count(s[i]).n_keys, N_MANY - 1);
        size_t position = 0;
        int64_t sum = 0;
        for (struct str key, text; subscription_next(s[i], &position, &key, &text);) {
            ARENA_AUTO a = arena_new();
            sum += json_get_int(json_parse_quick(a, text), STR("n"), -1);
        }
        assert_int_equal(sum, (int64_t) N_MANY * (N_MANY - 1) / 2 - 17);
        subscription_free(s[i]);
    }
    publication_free(p);
    world_done(&w);
}

TEST(devices_of_one_process_do_not_meet)
{
    struct world w;
    world_init(&w);
    struct pubsub *devices[50];
    struct publication *p[50];
    struct subscription *s[50];
    for (size_t i = 0; i < N_ELEMENTS(devices); i++) {
        ARENA_AUTO a = arena_new();
        const char *below = arena_printf(a, "device-%zu", i).p;
        devices[i] = world_device(&w, below, 0);
        assert_int_equal(publication_new(devices[i], &nim, &p[i]), 0);
        struct json v = json_object();
        json_set(a, &v, STR("device"), json_int((int64_t) i));
        assert_int_equal(publication_publish(p[i], STR("k"), &v), 0);
        assert_int_equal(
            subscription_new(devices[i], &nim, &(struct subscription_handlers){0}, NULL, &s[i]), 0);
    }
    for (size_t i = 0; i < N_ELEMENTS(devices); i++) {
        while (!subscription_is_synchronized(s[i]))
            world_run_turns(&w, 1);
        struct json *v = subscription_get(w.arena, s[i], STR("k"));
        assert_int_equal(json_get_int(v, STR("device"), -1), i);
        subscription_free(s[i]);
        publication_free(p[i]);
        pubsub_free(devices[i]);
    }
    world_done(&w);
}

/* ---- files ---------------------------------------------------------------------------------- */

TEST(a_persistent_subscription_begins_with_the_files)
{
    struct world w;
    world_init(&w);
    world_write(&w, "persist/status/nim/T/k.json", "{\"b\":[],\"a\":1}");
    world_write(&w, "persist/status/nim/T/lost.json.bak", "{\"n\":1}");
    world_write(&w, "persist/status/nim/T/restarted", "3");
    struct pubsub_name name = {.agent = STR("nim"), .topic = STR("T"), .is_persistent = true};
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &name);
    const char *one = "create k {\"a\":1,\"b\":null};create lost {\"n\":1};restarted 3;";
    const char *other = "create lost {\"n\":1};create k {\"a\":1,\"b\":null};restarted 3;";
    t.until = "restarted 3;";
    world_run_until(&w, trace_has_ended, &t);
    assert_true(str_is(buf_str(&t.text), one) || str_is(buf_str(&t.text), other));
    assert_false(subscription_is_synchronized(t.subscription));
    buf_reset(&t.text);
    struct publication *p = world_publication(&w, "nim", "T", true);
    assert_int_equal(world_publish(&w, p, "k", "{\"a\":2}"), 0);
    trace_expect(&t, "(was {\"a\":1,\"b\":null})modify k {\"a\":2};synchronized;");
    publication_free(p);
    trace_done(&t);
    world_done(&w);
}

TEST(global_topics_are_files_alone)
{
    struct world w;
    world_init(&w);
    struct pubsub_name name = {.agent = STR(""), .topic = STR("T")};
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &name);
    world_run_turns(&w, 3);
    assert_int_equal(t.text.n, 0);
    struct publication *p = world_publication(&w, "", "T", false);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    assert_int_equal(world_publish(&w, p, "l", "{}"), 0);
    assert_int_equal(publication_unpublish(p, STR("l")), 0);
    trace_expect(&t, "create k {\"n\":1};synchronized;");
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":2}"), 0);
    trace_expect(&t, "(was {\"n\":1})modify k {\"n\":2};");
    assert_int_equal(publication_unpublish(p, STR("k")), 0);
    trace_expect(&t, "delete k {\"n\":2};");
    /* A second or more behind the values. */
    trace_expect(&t, "restarted 1;");
    publication_free(p);
    trace_done(&t);
    world_done(&w);
}

TEST(a_short_lived_publisher_is_read_from_its_directory)
{
    struct world w;
    world_init(&w);
    struct pubsub_name name = {.agent = STR("zedclient"), .topic = STR("T")};
    world_write(&w, "run/zedclient/T/k.json", "{\"n\":1}");
    world_write(&w, "run/zedclient/T/k.json.bak", "{\"n\":0}");
    world_write(&w, "run/zedclient/T/tmp123", "{\"n\":0}");
    world_write(&w, "run/zedclient/T/bad.json", "{");
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &name);
    trace_expect(&t, "create k {\"n\":1};synchronized;");
    world_write(&w, "run/zedclient/T/bad.json", "{\"n\":3}");
    trace_expect(&t, "create bad {\"n\":3};");
    world_write(&w, "run/zedclient/T/k.json", "{");
    world_write(&w, "run/zedclient/T/k.json", "{\"n\":4}");
    trace_expect(&t, "(was {\"n\":1})modify k {\"n\":4};");
    trace_done(&t);
    world_done(&w);
}

/* ---- life ----------------------------------------------------------------------------------- */

TEST(a_handler_may_free_its_subscription)
{
    static const char *const kinds[] = {"create", "modify", "delete", "restarted", "synchronized"};
    for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
        for (int is_file = 0; is_file < 2; is_file++) {
            struct world w;
            world_init(&w);
            struct pubsub_name name = {.agent = is_file ? STR("") : STR("nim"), .topic = STR("T")};
            struct publication *p = world_publication(&w, is_file ? "" : "nim", "T", false);
            struct trace t;
            trace_subscribe(&w, w.pubsub, &t, &name);
            t.freed_after = kinds[i];
            assert_int_equal(world_publish(&w, p, "k", "{}"), 0);
            assert_int_equal(world_publish(&w, p, "l", "{}"), 0);
            if (strcmp(kinds[i], "restarted") == 0)
                assert_int_equal(publication_signal_restarted(p), 0);
            for (int n = 0; t.subscription; n++) {
                world_run_turns(&w, 1);
                if (n == 20)
                    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
                if (n == 40)
                    assert_int_equal(publication_unpublish(p, STR("k")), 0);
            }
            world_run_turns(&w, 2);
            trace_done(&t);
            publication_free(p);
            world_done(&w);
        }
    }
}

TEST(a_subscription_may_go_before_it_began)
{
    struct world w;
    world_init(&w);
    struct trace t;
    trace_subscribe(&w, w.pubsub, &t, &nim);
    trace_done(&t);
    struct pubsub_name bad = {.agent = STR("nim"), .topic = STR("a b")};
    struct subscription *s = NULL;
    assert_true(subscription_new(w.pubsub, &bad, &trace_handlers, NULL, &s) < 0);
    assert_null(s);
    world_done(&w);
}
