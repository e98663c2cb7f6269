/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever changes, in whatever order, however slowly each subscriber reads, and whoever comes and
 * goes: when it is quiet, everyone has what the publisher has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pubsub/frame.h"
#include "test.h"
#include "world.h"

#define N_SEEDS 6
#define N_STEPS 1500
#define N_KEYS 24
#define N_READERS 4
#define PADDING_BYTES 6000 /* a socket holds few such packets */

struct reader {
    int fd; /* -1: not connected */
    bool is_complete;
    int64_t values[N_KEYS]; /* 0: there is none */
    int64_t restarted;
};

struct story {
    struct world world;
    struct publication *publication;
    struct reader readers[N_READERS];
    int64_t values[N_KEYS];
    int64_t restarted;
    unsigned state; /* of the random numbers */
};

static size_t draw(struct story *s, size_t below)
{
    return (size_t) rand_r(&s->state) % below;
}

/* ---- readers -------------------------------------------------------------------------------- */

static void reader_close(struct reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    *r = (struct reader){.fd = -1};
}

static void take_packet(struct reader *r, struct str packet)
{
    ARENA_AUTO a = arena_new();
    struct pubsub_frame f;
    assert_int_equal(pubsub_frame_read(a, packet, &f), 0);
    if (f.word == PUBSUB_COMPLETE) {
        assert_false(r->is_complete);
        r->is_complete = true;
    } else if (f.word == PUBSUB_RESTARTED) {
        assert_true(r->is_complete && f.counter != r->restarted);
        r->restarted = f.counter;
    } else if (f.word == PUBSUB_UPDATE || f.word == PUBSUB_DELETE) {
        size_t key = (size_t) strtol(arena_strz(a, f.key), NULL, 10);
        assert_true(key < N_KEYS);
        int64_t value =
            f.word == PUBSUB_UPDATE ? json_get_int(json_parse_quick(a, f.value), STR("n"), -1) : 0;
        /* Nothing is said twice, and never goes back. */
        assert_true(value == 0 || value > r->values[key]);
        r->values[key] = value;
    }
}

static bool reader_read(struct reader *r)
{
    static char packet[PUBSUB_MAX_PACKET_BYTES + 1];
    ssize_t n = recv(r->fd, packet, sizeof(packet), MSG_DONTWAIT);
    assert_true(n > 0 || errno == EAGAIN);
    if (n > 0)
        take_packet(r, str_range(packet, (size_t) n));
    return n > 0;
}

static bool is_up_to_date(const struct story *s, const struct reader *r)
{
    return r->is_complete && r->restarted == s->restarted &&
           memcmp(r->values, s->values, sizeof(s->values)) == 0;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void publish(struct story *s, size_t key, int64_t n)
{
    static char padding[PADDING_BYTES];
    memset(padding, 'x', sizeof(padding));
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    json_set(a, &v, STR("n"), json_int(n));
    json_set(a, &v, STR("padding"), json_string(str_range(padding, sizeof(padding))));
    assert_int_equal(publication_publish(s->publication, arena_printf(a, "%zu", key), &v), 0);
    s->values[key] = n;
}

static void unpublish(struct story *s, size_t key)
{
    ARENA_AUTO a = arena_new();
    int r = publication_unpublish(s->publication, arena_printf(a, "%zu", key));
    assert_int_equal(r, s->values[key] ? 0 : -ENOENT);
    s->values[key] = 0;
}

static void step(struct story *s, int64_t n)
{
    size_t what = draw(s, 100), key = draw(s, N_KEYS);
    struct reader *r = &s->readers[draw(s, N_READERS)];
    if (what < 45) {
        publish(s, key, n);
    } else if (what < 65) {
        unpublish(s, key);
    } else if (what < 68) {
        assert_int_equal(publication_signal_restarted(s->publication), 0);
        s->restarted++;
    } else if (what < 72 && r->fd < 0) {
        r->fd = world_connect(&s->world, "run/nim/T.sock");
        world_send(r->fd, "request T");
    } else if (what == 72) {
        reader_close(r);
    } else if (what < 85 && r->fd >= 0) {
        for (size_t i = draw(s, 12); i > 0 && reader_read(r); i--)
            continue;
    } else {
        world_run_turns(&s->world, 1);
    }
    struct pubsub_count c = publication_count(s->publication);
    assert_true(c.n_deleted <= N_KEYS && c.n_pending <= N_READERS * PUBSUB_MAX_PACKET_BYTES);
}

static void settle(struct story *s)
{
    for (size_t i = 0; i < N_READERS; i++) {
        struct reader *r = &s->readers[i];
        for (int turns = 0; r->fd >= 0 && !is_up_to_date(s, r); turns++) {
            assert_true(turns < 5000);
            while (reader_read(r))
                continue;
            world_run_turns(&s->world, 1);
        }
    }
    /* Those who left are noticed, too. */
    world_run_turns(&s->world, 3);
    assert_int_equal(publication_count(s->publication).n_deleted, 0);
}

TEST(when_it_is_quiet_everyone_has_what_the_publisher_has)
{
    for (unsigned seed = 1; seed <= N_SEEDS; seed++) {
        struct story s = {.state = seed};
        printf("# seed %u\n", seed);
        world_init(&s.world);
        s.publication = world_publication(&s.world, "nim", "T", false);
        for (size_t i = 0; i < N_READERS; i++)
            s.readers[i].fd = -1;
        for (int64_t n = 1; n <= N_STEPS; n++) {
            step(&s, n);
            if (n % (N_STEPS / 3) == 0)
                settle(&s);
        }
        for (size_t i = 0; i < N_READERS; i++)
            reader_close(&s.readers[i]);
        publication_free(s.publication);
        world_done(&s.world);
    }
}
