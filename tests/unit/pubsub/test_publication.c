/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher against a bare socket: the bytes on the wire, peers that are slow and peers that
 * are wrong. */
#include "pubsub/publication.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pubsub/frame.h"
#include "test.h"
#include "world.h"

#define SOCKET "run/nim/T.sock"

static int subscriber(struct world *w)
{
    int fd = world_connect(w, SOCKET);
    world_send(fd, "request T");
    return fd;
}

static bool has_no_peers(void *arg)
{
    return publication_count(arg).n_peers == 0;
}

#define assert_receives(fd, expected) assert_string_equal(world_receive(&w, fd), expected)

/* ---- golden transcripts --------------------------------------------------------------------- */

TEST(the_transcript_of_a_connection)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    assert_int_equal(world_publish(&w, p, "global", "{\"b\":[],\"a\":\"<x>\"}"), 0);
    int fd = subscriber(&w);
    assert_receives(fd, "hello T false");
    /* {"a":"\u003cx\u003e","b":null} */
    assert_receives(fd, "update T Z2xvYmFs eyJhIjoiXHUwMDNjeFx1MDAzZSIsImIiOm51bGx9");
    assert_receives(fd, "complete T");
    assert_int_equal(world_publish(&w, p, "k", "{}"), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    assert_receives(fd, "update T aw== e30=");
    assert_receives(fd, "restarted T 1");
    assert_int_equal(publication_unpublish(p, STR("k")), 0);
    assert_receives(fd, "delete T aw==");
    assert_int_equal(publication_signal_restarted(p), 0);
    assert_receives(fd, "restarted T 2");
    assert_int_equal(publication_clear_restarted(p), 0);
    assert_receives(fd, "restarted T 0");
    publication_free(p);
    assert_receives(fd, "(closed)");
    assert_false(world_exists(&w, SOCKET));
    close(fd);
    world_done(&w);
}

TEST(the_transcript_after_a_restart_of_a_persistent_publisher)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", true);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":2}"), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    publication_free(p);
    assert_string_equal(world_read(&w, "persist/status/nim/T/k.json"), "{\"n\":2}");
    assert_string_equal(world_read(&w, "persist/status/nim/T/k.json.bak"), "{\"n\":1}");

    p = world_publication(&w, "nim", "T", true);
    assert_int_equal(publication_restarted(p), 1);
    int fd = subscriber(&w);
    assert_receives(fd, "hello T true");
    assert_receives(fd, "update T aw== eyJuIjoyfQ==");
    assert_receives(fd, "complete T");
    assert_receives(fd, "restarted T 1");
    close(fd);
    publication_free(p);
    world_done(&w);
}

TEST(an_empty_publication_is_complete_at_once)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    int fd = subscriber(&w);
    assert_receives(fd, "hello T false");
    assert_receives(fd, "complete T");
    world_run_turns(&w, 5);
    assert_int_equal(publication_count(p).n_packets, 2);
    close(fd);
    world_run_until(&w, has_no_peers, p);
    publication_free(p);
    world_done(&w);
}

/* ---- what is sent --------------------------------------------------------------------------- */

TEST(changes_collapse_and_equal_values_are_not_sent)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    int fd = subscriber(&w);
    assert_receives(fd, "hello T false");
    assert_receives(fd, "complete T");
    for (int i = 0; i <= 9; i++)
        assert_int_equal(
            world_publish(&w, p, "k", arena_printf(w.arena, "{\"n\":%d,\"m\":0}", i).p), 0);
    assert_int_equal(world_publish(&w, p, "gone", "{}"), 0);
    assert_int_equal(publication_unpublish(p, STR("gone")), 0);
    assert_receives(fd, "update T aw== eyJtIjowLCJuIjo5fQ==");
    assert_int_equal(world_publish(&w, p, "k", "{\"m\":0,\"n\":9}"), 0);
    world_run_turns(&w, 5);
    assert_int_equal(publication_count(p).n_packets, 3);
    assert_int_equal(publication_count(p).n_deleted, 0);
    assert_int_equal(publication_unpublish(p, STR("gone")), -ENOENT);
    close(fd);
    publication_free(p);
    world_done(&w);
}

TEST(a_key_that_comes_back_before_it_was_told_is_an_update)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
    int fd = subscriber(&w);
    assert_receives(fd, "hello T false");
    assert_receives(fd, "update T aw== eyJuIjoxfQ==");
    assert_receives(fd, "complete T");
    assert_int_equal(publication_unpublish(p, STR("k")), 0);
    assert_int_equal(publication_count(p).n_deleted, 1);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":2}"), 0);
    assert_int_equal(publication_count(p).n_deleted, 0);
    assert_receives(fd, "update T aw== eyJuIjoyfQ==");
    close(fd);
    publication_free(p);
    world_done(&w);
}

TEST(a_large_field_gets_a_file_for_each_subscriber)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    assert_int_equal(world_publish(&w, p, "k", "{\"pubsub-large-X\":[1,2]}"), 0);
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = subscriber(&w);
        assert_receives(fds[i], "hello T false");
        ARENA_AUTO a = arena_new();
        struct pubsub_frame f;
        assert_int_equal(pubsub_frame_read(a, str_of(world_receive(&w, fds[i])), &f), 0);
        struct str want = str_of(arena_printf(a, "{\"pubsub-file-X\":\"\\\"%s/pubsub-file-X",
                                              world_path(&w, "persist/pubsub-large/nim/T"))
                                     .p);
        assert_true(str_starts_with(f.value, want));
        assert_receives(fds[i], "complete T");
    }
    assert_int_equal(world_count_files(&w, "persist/pubsub-large/nim/T"), 2);
    assert_string_equal(world_read(&w, "run/nim/T/k.json"), "{\"pubsub-large-X\":[1,2]}");
    close(fds[0]);
    close(fds[1]);
    publication_free(p);
    world_done(&w);
}

TEST(a_packet_waits_for_the_file_of_its_large_field)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    world_write(&w, "persist/pubsub-large", "in the way");
    assert_int_equal(world_publish(&w, p, "k", "{\"pubsub-large-X\":1}"), 0);
    int fd = subscriber(&w);
    assert_receives(fd, "hello T false");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(publication_signal_restarted(p), 0);
        world_run_turns(&w, 1);
    }
    assert_int_equal(publication_count(p).n_packets, 1);
    assert_int_equal(unlink(world_path(&w, "persist/pubsub-large")), 0);
    assert_true(str_starts_with(str_of(world_receive(&w, fd)), STR("update T aw== ")));
    assert_receives(fd, "complete T");
    assert_receives(fd, "restarted T 5");
    close(fd);
    publication_free(p);
    world_done(&w);
}

/* ---- what is refused ------------------------------------------------------------------------ */

TEST(what_cannot_be_published_changes_nothing)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    assert_int_equal(world_publish(&w, p, "k", "{\"n\":1}"), 0);
    assert_int_equal(world_publish(&w, p, "a/b", "{}"), -EINVAL);
    assert_int_equal(world_publish(&w, p, "", "{}"), -EINVAL);
    assert_int_equal(world_publish(&w, p, "k", "[]"), -EINVAL);
    char *text = malloc(49200);
    assert_non_null(text);
    memset(text, 'x', 49200);
    struct json v = json_object();
    json_set(w.arena, &v, STR("a"), json_string(str_range(text, 49200)));
    assert_int_equal(publication_publish(p, STR("k"), &v), -EMSGSIZE);
    json_set(w.arena, &v, STR("a"), json_string(str_range(text, 49000)));
    assert_int_equal(publication_publish(p, STR("big"), &v), 0);
    free(text);
    struct json *kept = publication_get(w.arena, p, STR("k"));
    assert_int_equal(json_get_int(kept, STR("n"), 0), 1);
    publication_free(p);
    world_done(&w);
}

TEST(a_bad_request_ends_the_connection)
{
    char longest[PUBSUB_MAX_REQUEST_BYTES + 1] = {0};
    memset(longest, 'T', sizeof(longest) - 1);
    memcpy(longest, "request ", 8);
    const char *bad[] = {"request U", "request", "request T T", "hello T", "x", longest};
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        int fd = world_connect(&w, SOCKET);
        world_send(fd, bad[i]);
        assert_receives(fd, "(closed)");
        close(fd);
        assert_int_equal(publication_count(p).n_refused, i + 1);
    }
    int fd = subscriber(&w);
    assert_receives(fd, "hello T false");
    world_send(fd, "request T");
    world_run_until(&w, has_no_peers, p);
    close(fd);
    publication_free(p);
    world_done(&w);
}

TEST(a_peer_that_asks_for_nothing_is_let_go)
{
    struct world w;
    world_init(&w);
    struct pubsub *device = world_device(&w, "", /* request_timeout_ms= */ 5);
    struct publication *p = NULL;
    struct pubsub_name name = {.agent = STR("nim"), .topic = STR("T")};
    assert_int_equal(publication_new(device, &name, &p), 0);
    int fd = world_connect(&w, SOCKET);
    assert_receives(fd, "(closed)");
    close(fd);
    publication_free(p);
    pubsub_free(device);
    world_done(&w);
}

TEST(there_is_one_publisher)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false), *second = NULL;
    struct pubsub_name name = {.agent = STR("nim"), .topic = STR("T")};
    assert_int_equal(publication_new(w.pubsub, &name, &second), -EADDRINUSE);
    assert_true(world_exists(&w, SOCKET));
    publication_free(p);
    /* One that died without a word leaves its socket. */
    int fd = world_listen(&w, SOCKET);
    close(fd);
    assert_true(world_exists(&w, SOCKET));
    p = world_publication(&w, "nim", "T", false);
    publication_free(p);
    world_done(&w);
}

TEST(a_socket_may_be_deep_below)
{
    struct world w;
    world_init(&w);
    char deep[150];
    memset(deep, 'd', sizeof(deep));
    deep[sizeof(deep) - 1] = '\0';
    struct pubsub *device = world_device(&w, deep, 0);
    struct publication *p = NULL, *second = NULL;
    struct pubsub_name name = {.agent = STR("nim"), .topic = STR("T")};
    mkdir(world_path(&w, deep), 0700);
    assert_int_equal(publication_new(device, &name, &p), 0);
    assert_int_equal(publication_new(device, &name, &second), -EADDRINUSE);
    struct subscription *s = NULL;
    assert_int_equal(subscription_new(device, &name, &(struct subscription_handlers){0}, NULL, &s),
                     0);
    while (!subscription_is_synchronized(s))
        world_run_turns(&w, 1);
    subscription_free(s);
    publication_free(p);
    pubsub_free(device);
    world_done(&w);
}

TEST(there_is_an_end_to_subscribers)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    int fds[PUBSUB_MAX_SUBSCRIBERS + 1];
    for (size_t i = 0; i < N_ELEMENTS(fds); i++)
        fds[i] = subscriber(&w);
    assert_receives(fds[N_ELEMENTS(fds) - 1], "(closed)");
    assert_int_equal(publication_count(p).n_peers, PUBSUB_MAX_SUBSCRIBERS);
    for (size_t i = 0; i < N_ELEMENTS(fds); i++)
        close(fds[i]);
    world_run_until(&w, has_no_peers, p);
    publication_free(p);
    world_done(&w);
}

/* ---- slow subscribers ----------------------------------------------------------------------- */

#define N_SLOW_KEYS 40
#define N_SLOW_ROUNDS 30
#define SLOW_TEXT_BYTES 20000

static void publish_round(struct world *w, struct publication *p, int round)
{
    static char text[SLOW_TEXT_BYTES];
    memset(text, 'a' + round % 26, sizeof(text));
    ARENA_AUTO a = arena_new();
    for (int k = 0; k < N_SLOW_KEYS; k++) {
        struct json v = json_object();
        json_set(a, &v, STR("round"), json_int(round));
        json_set(a, &v, STR("text"), json_string(str_range(text, sizeof(text))));
        struct str key = arena_printf(a, "key-%d", k);
        assert_int_equal(publication_publish(p, key, &v), 0);
    }
    world_run_turns(w, 2);
}

/* What the packets of a subscriber leave it with: the round of each key, -1 where deleted. */
static void read_rest(struct world *w, int fd, int64_t rounds[N_SLOW_KEYS])
{
    for (;;) {
        ARENA_AUTO a = arena_new();
        struct pubsub_frame f;
        assert_int_equal(pubsub_frame_read(a, str_of(world_receive(w, fd)), &f), 0);
        if (f.word == PUBSUB_RESTARTED)
            return;
        if (f.word != PUBSUB_UPDATE && f.word != PUBSUB_DELETE)
            continue;
        size_t k = (size_t) strtol(arena_strz(a, str_from(f.key, 4)), NULL, 10);
        if (k < N_SLOW_KEYS)
            rounds[k] = f.word == PUBSUB_DELETE
                            ? -1
                            : json_get_int(json_parse_quick(a, f.value), STR("round"), -2);
    }
}

TEST(a_slow_subscriber_holds_up_nobody_and_costs_one_packet)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    publish_round(&w, p, 0);
    int slow = subscriber(&w), quick = subscriber(&w);
    for (int round = 1; round <= N_SLOW_ROUNDS; round++)
        publish_round(&w, p, round);
    struct pubsub_count c = publication_count(p);
    assert_true(c.n_pending <= (size_t) 2 * PUBSUB_MAX_PACKET_BYTES);
    assert_true(c.n_bytes < (size_t) N_SLOW_KEYS * (SLOW_TEXT_BYTES + 100));
    assert_true(c.n_packets < 100); /* what fits two socket buffers, of 1,240 changes */

    assert_int_equal(publication_unpublish(p, STR("key-0")), 0);
    assert_int_equal(publication_signal_restarted(p), 0);
    int fds[] = {quick, slow};
    for (size_t i = 0; i < N_ELEMENTS(fds); i++) {
        int64_t rounds[N_SLOW_KEYS] = {0};
        read_rest(&w, fds[i], rounds);
        for (int k = 1; k < N_SLOW_KEYS; k++)
            assert_int_equal(rounds[k], N_SLOW_ROUNDS);
        assert_true(rounds[0] <= 0);
    }
    assert_int_equal(publication_count(p).n_deleted, 0);
    close(slow);
    close(quick);
    publication_free(p);
    world_done(&w);
}

TEST(keys_that_come_and_go_leave_nothing_for_a_slow_subscriber)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    int fd = subscriber(&w);
    publish_round(&w, p, 0);
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    size_t n_most = 0;
    for (int i = 0; i < 3000; i++) {
        struct str key = arena_printf(a, "passing-%d", i);
        assert_int_equal(publication_publish(p, key, &v), 0);
        if (i % 100 == 0)
            world_run_turns(&w, 1);
        assert_int_equal(publication_unpublish(p, key), 0);
        n_most = MAX(n_most, publication_count(p).n_deleted);
    }
    assert_true(n_most <= N_SLOW_KEYS);
    /* A key it may have been told of is remembered until it was told, or is gone. */
    assert_int_equal(publication_unpublish(p, STR("key-0")), 0);
    assert_int_equal(publication_count(p).n_deleted, 1);
    close(fd);
    world_run_until(&w, has_no_peers, p);
    assert_int_equal(publication_count(p).n_deleted, 0);
    publication_free(p);
    world_done(&w);
}

TEST(a_peer_that_leaves_takes_the_files_of_its_unsent_packet)
{
    struct world w;
    world_init(&w);
    struct publication *p = world_publication(&w, "nim", "T", false);
    int fd = subscriber(&w);
    publish_round(&w, p, 0);
    assert_int_equal(world_publish(&w, p, "large", "{\"pubsub-large-X\":1}"), 0);
    world_run_turns(&w, 2);
    assert_true(publication_count(p).n_pending > 0);
    close(fd);
    world_run_until(&w, has_no_peers, p);
    assert_int_equal(world_count_files(&w, "persist/pubsub-large/nim/T"), 0);
    publication_free(p);
    world_done(&w);
}
