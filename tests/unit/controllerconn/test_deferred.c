/* SPDX-License-Identifier: Apache-2.0 */
/* The deferred queue on a virtual clock, against a controller that is told how to answer. */
#include "test.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "controllerconn/deferred.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US (60 * MINUTE_US)

struct world {
    struct clock_virtual clock;
    struct uplink_deferred *queue;
    struct buf sent;   /* bodies that were tried, with a space behind each */
    struct buf told;   /* "key:Status " */
    int code;          /* of the next answers; 0: nobody answers */
    const char *other; /* a key that is answered with other_code */
    int other_code;
    bool is_slow; /* the test answers itself */
    uint64_t seed;
};

static uint64_t pseudo_random(void *arg, uint64_t bound)
{
    struct world *w = arg;
    /* splitmix64: neighbouring seeds must not draw alike */
    uint64_t z = (w->seed += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (z ^ (z >> 31)) % bound;
}

static void answer(struct world *w, int code)
{
    const bool is_good = uplink_http_is_delivered(code, false);
    uplink_deferred_sent(w->queue, is_good ? 0 : -EHOSTUNREACH,
                         is_good || !code ? UPLINK_NONE : uplink_judge_http(code, true).status,
                         code);
}

static void on_send(void *arg, const struct uplink_deferred_message *m, int64_t budget_ms)
{
    struct world *w = arg;
    assert_true(budget_ms > 0);
    buf_printf(&w->sent, "%.*s ", STR_ARG(m->body));
    if (w->is_slow)
        return;
    answer(w, w->other && str_is(m->key, w->other) ? w->other_code : w->code);
}

static void on_status(void *arg, const struct uplink_deferred_message *m, enum uplink_status s)
{
    struct world *w = arg;
    buf_printf(&w->told, "%.*s:%s ", STR_ARG(m->key), uplink_status_name(s));
}

static bool is_first(const struct uplink_deferred_message *m)
{
    return m->type == 1;
}

static bool is_second(const struct uplink_deferred_message *m)
{
    return m->type == 2;
}

static uplink_deferred_priority *const priorities[] = {is_first, is_second};

static void world_init(struct world *w, const struct uplink_deferred_options *more)
{
    *w = (struct world){.code = 200, .seed = 1};
    clock_virtual_init(&w->clock, HOUR_US);
    struct uplink_deferred_options o = more ? *more : (struct uplink_deferred_options){0};
    o.clock = &w->clock.clock;
    o.priorities = priorities;
    o.n_priorities = 2;
    o.send = on_send;
    o.on_status = on_status;
    o.random_below = pseudo_random;
    o.arg = w;
    w->queue = uplink_deferred_new(&o);
}

static void world_done(struct world *w)
{
    uplink_deferred_free(w->queue);
    buf_done(&w->sent);
    buf_done(&w->told);
}

static int set(struct world *w, const char *key, const char *body, int type)
{
    return uplink_deferred_set(
        w->queue, &(struct uplink_deferred_message){
                      .key = str_of(key), .body = str_of(body), .url = STR("u"), .type = type});
}

/* What the queue tries when it is due next; the clock goes there. */
static void run_next(struct world *w)
{
    buf_reset(&w->sent);
    buf_reset(&w->told);
    w->clock.now_us = MAX(w->clock.now_us, uplink_deferred_due_us(w->queue));
    uplink_deferred_wake(w->queue);
}

static size_t n_entries(const struct world *w)
{
    return uplink_deferred_counts(w->queue).entries;
}

TEST(what_is_set_is_sent_at_once_by_priority)
{
    struct world w;
    world_init(&w, NULL);
    set(&w, "a", "a1", 0);
    set(&w, "b", "b1", 2);
    set(&w, "c", "c1", 1);
    set(&w, "a", "a2", 0);
    assert_int_equal(uplink_deferred_due_us(w.queue), w.clock.now_us);
    run_next(&w);
    assert_str(buf_str(&w.sent), "c1 b1 a2 ");
    assert_str(buf_str(&w.told), "c:None b:None a:None ");
    assert_int_equal(n_entries(&w), 0);
    const int64_t idle = uplink_deferred_due_us(w.queue) - w.clock.now_us;
    assert_true(idle >= 24 * HOUR_US && idle < 48 * HOUR_US);
    world_done(&w);
}

TEST(a_key_keeps_its_place_when_its_bytes_change)
{
    struct world w;
    world_init(&w, NULL);
    w.code = 0;
    set(&w, "a", "a1", 0);
    set(&w, "b", "b1", 0);
    run_next(&w);
    set(&w, "a", "a2", 0);
    w.code = 200;
    run_next(&w);
    assert_str(buf_str(&w.sent), "a2 b1 ");
    world_done(&w);
}

TEST(no_answer_stops_the_pass_and_waits_longer_and_longer)
{
    static const int64_t minutes[] = {1, 2, 4, 8, 15, 15, 15};
    struct world w;
    world_init(&w, NULL);
    w.code = 0;
    set(&w, "a", "a1", 0);
    set(&w, "b", "b1", 0);
    run_next(&w);
    assert_str(buf_str(&w.sent), "a1 ");
    assert_str(buf_str(&w.told), "a:Failed ");
    for (size_t i = 0; i < N_ELEMENTS(minutes); i++) {
        const int64_t wait = uplink_deferred_due_us(w.queue) - w.clock.now_us;
        const int64_t middle = minutes[i] * MINUTE_US;
        if (wait < middle - 30 * SECOND_US || wait > middle + 30 * SECOND_US)
            fail_msg("interval %zu: %lld s", i, (long long) (wait / SECOND_US));
        run_next(&w);
    }
    /* A new entry tries at once and does not move the retry. */
    const int64_t due = uplink_deferred_due_us(w.queue);
    w.clock.now_us += SECOND_US;
    set(&w, "c", "c1", 1);
    run_next(&w);
    assert_str(buf_str(&w.sent), "c1 ");
    assert_int_equal(uplink_deferred_due_us(w.queue), due);
    world_done(&w);
}

TEST(hurry_begins_again_at_a_second)
{
    struct world w;
    world_init(&w, NULL);
    w.code = 0;
    set(&w, "a", "a1", 0);
    for (int i = 0; i < 6; i++)
        run_next(&w);
    uplink_deferred_hurry(w.queue);
    run_next(&w);
    for (int64_t middle = SECOND_US; middle < 15 * MINUTE_US; middle *= 2) {
        const int64_t wait = uplink_deferred_due_us(w.queue) - w.clock.now_us;
        assert_true(wait >= middle / 2 && wait <= middle + middle / 2);
        run_next(&w);
    }
    world_done(&w);
}

/* What becomes of an entry by how the controller answers it; another, set later, is delivered. */
TEST(refusals_are_kept_or_dropped_by_their_code)
{
    static const struct {
        int code;
        bool is_kept, is_kept_if_discardable;
    } cases[] = {{401, true, false},  {403, true, false},  {407, true, false}, {408, true, false},
                 {429, true, false},  {500, true, false},  {503, true, false}, {400, false, false},
                 {404, false, false}, {413, false, false}, {0, true, false}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        for (int is_discarded = 0; is_discarded < 2; is_discarded++) {
            struct world w;
            world_init(&w, NULL);
            w.other = "a";
            w.other_code = cases[i].code;
            const struct uplink_deferred_message m = {
                .key = STR("a"), .body = STR("a1"), .url = STR("u"), .is_discarded = is_discarded};
            assert_int_equal(uplink_deferred_set(w.queue, &m), 0);
            set(&w, "b", "b1", 0);
            run_next(&w);
            const bool is_kept = is_discarded ? cases[i].is_kept_if_discardable : cases[i].is_kept;
            const size_t others = cases[i].code == 0 ? 1 : 0; /* the pass stopped */
            if (n_entries(&w) != is_kept + others)
                fail_msg("%d %d: %zu left", cases[i].code, is_discarded, n_entries(&w));
            assert_str(buf_str(&w.sent), others ? "a1 " : "a1 b1 ");
            world_done(&w);
        }
}

TEST(a_refused_entry_backs_off_alone_and_its_new_bytes_do_not)
{
    struct world w;
    world_init(&w, NULL);
    w.other = "a";
    w.other_code = 429;
    set(&w, "a", "a1", 0);
    run_next(&w);
    assert_str(buf_str(&w.sent), "a1 ");
    w.clock.now_us += SECOND_US;
    set(&w, "b", "b1", 0);
    set(&w, "a", "a1", 0); /* the same bytes */
    run_next(&w);
    assert_str(buf_str(&w.sent), "b1 ");
    assert_str(buf_str(&w.told), "b:None a:Debug ");
    set(&w, "a", "a2", 0);
    run_next(&w);
    assert_str(buf_str(&w.sent), "a2 ");
    /* Back-off 1, 2, 4, 8, 15 minutes: how often it is tried in two hours. */
    const int64_t begin = w.clock.now_us;
    size_t n_tries = 0;
    while (w.clock.now_us - begin < 2 * HOUR_US) {
        run_next(&w);
        n_tries += w.sent.n > 0;
    }
    assert_true(n_tries >= 7 && n_tries <= 12);
    w.other_code = 200;
    for (int i = 0; i < 3 && n_entries(&w) > 0; i++)
        run_next(&w);
    assert_int_equal(n_entries(&w), 0);
    world_done(&w);
}

TEST(a_refused_entry_goes_behind_those_never_refused)
{
    struct world w;
    world_init(&w, NULL);
    w.other = "a";
    w.other_code = 500;
    set(&w, "a", "a1", 0);
    run_next(&w);
    w.other_code = 200;
    w.clock.now_us += 2 * MINUTE_US;
    set(&w, "b", "b1", 0);
    run_next(&w);
    assert_str(buf_str(&w.sent), "b1 a1 ");
    world_done(&w);
}

TEST(an_entry_set_while_it_is_sent_is_sent_again)
{
    struct world w;
    world_init(&w, NULL);
    w.is_slow = true;
    set(&w, "a", "a1", 0);
    run_next(&w);
    set(&w, "a", "a2", 0);
    set(&w, "b", "b1", 1);
    assert_str(buf_str(&w.sent), "a1 ");
    w.is_slow = false;
    answer(&w, 200); /* of a1: what is new follows at once, b1 before it by priority */
    assert_str(buf_str(&w.sent), "a1 b1 a2 ");
    assert_int_equal(n_entries(&w), 0);
    world_done(&w);
}

TEST(an_entry_removed_while_it_is_sent_is_gone)
{
    struct world w;
    world_init(&w, NULL);
    w.is_slow = true;
    set(&w, "a", "a1", 0);
    run_next(&w);
    uplink_deferred_remove(w.queue, STR("a"));
    answer(&w, 500);
    assert_int_equal(n_entries(&w), 0);
    world_done(&w);
}

TEST(a_pass_has_one_budget_for_all)
{
    struct world w;
    world_init(&w, &(struct uplink_deferred_options){.budget_ms = 60000});
    w.is_slow = true;
    set(&w, "a", "a1", 0);
    set(&w, "b", "b1", 0);
    run_next(&w);
    w.clock.now_us += 61 * SECOND_US;
    w.is_slow = false;
    answer(&w, 200);
    assert_str(buf_str(&w.sent), "a1 "); /* b1 waits for the next pass */
    assert_int_equal(n_entries(&w), 1);
    run_next(&w);
    assert_int_equal(n_entries(&w), 0);
    world_done(&w);
}

TEST(the_queue_is_bounded_and_never_loses_what_is_reliable)
{
    struct world w;
    world_init(&w, &(struct uplink_deferred_options){.max_entries = 10, .max_bytes = 1000});
    w.code = 0;
    char key[16];
    for (int i = 0; i < 20; i++) {
        (void) snprintf(key, sizeof(key), "d%d", i);
        const struct uplink_deferred_message m = {
            .key = str_of(key), .body = STR("x"), .url = STR("u"), .is_discarded = true};
        assert_int_equal(uplink_deferred_set(w.queue, &m), 0);
    }
    assert_int_equal(n_entries(&w), 10);
    for (int i = 0; i < 10; i++) {
        (void) snprintf(key, sizeof(key), "r%d", i);
        assert_int_equal(set(&w, key, key, 0), 0);
    }
    assert_int_equal(set(&w, "r10", "x", 0), -ENOSPC);
    assert_int_equal(set(&w, "r3", "changed", 0), 0); /* a key that is there needs no room */
    static char large[2000];
    memset(large, 'x', sizeof(large) - 1);
    assert_int_equal(set(&w, "r4", large, 0), -EMSGSIZE);
    large[980] = 0;
    assert_int_equal(set(&w, "r4", large, 0), -ENOSPC);
    w.code = 200;
    run_next(&w);
    assert_str(buf_str(&w.sent), "r0 r1 r2 changed r4 r5 r6 r7 r8 r9 ");
    const struct uplink_deferred_counts c = uplink_deferred_counts(w.queue);
    assert_int_equal(c.evicted, 20);
    assert_int_equal(c.rejected, 2);
    assert_int_equal(c.delivered, 10);
    assert_int_equal(c.bytes, 0);
    world_done(&w);
}

/* ---- a day without the controller ---------------------------------------------------------- */

#define N_DEVICES 500
#define N_KEYS 40
#define DAY_US (24 * HOUR_US)

/* Reports change all day long on every device, the controller is away all the time; then it is
 * back. All devices began in the same second. */
TEST(a_day_without_the_controller_ends_in_order_and_without_a_storm)
{
    static struct world devices[N_DEVICES];
    static int64_t returned_us[N_DEVICES];
    uint64_t n_tries = 0;
    for (size_t d = 0; d < N_DEVICES; d++) {
        struct world *w = &devices[d];
        world_init(w, NULL);
        w->seed = d << 32;
        w->code = 0;
        const int64_t begin = w->clock.now_us, back = begin + DAY_US;
        char key[16], body[16];
        for (int k = 0; k < N_KEYS; k++) {
            (void) snprintf(key, sizeof(key), "k%d", k);
            (void) snprintf(body, sizeof(body), "k%d.0", k);
            assert_int_equal(set(w, key, body, k % 3), 0);
        }
        while (uplink_deferred_due_us(w->queue) < back) {
            run_next(w);
            n_tries++;
            assert_true(n_entries(w) == N_KEYS);
        }
        for (int k = 0; k < N_KEYS; k += 2) { /* new states of half of them, unheard */
            (void) snprintf(key, sizeof(key), "k%d", k);
            (void) snprintf(body, sizeof(body), "k%d.1", k);
            assert_int_equal(set(w, key, body, k % 3), 0);
        }
        run_next(w); /* the last that is in vain */
        w->code = 200;
        assert_true(uplink_deferred_due_us(w->queue) - w->clock.now_us <= 16 * MINUTE_US);
        run_next(w);
        returned_us[d] = w->clock.now_us - back;
        assert_int_equal(n_entries(w), 0);
        assert_int_equal(uplink_deferred_counts(w->queue).delivered, N_KEYS);
        /* First all of type 1, then of type 2, then the rest; in each the order they were set. */
        struct str rest = buf_str(&w->sent), one;
        int last_rank = 0, last_key = -1;
        while (str_split(&rest, ' ', &one)) {
            int k = -1, version = -1;
            assert_int_equal(sscanf(one.p, "k%d.%d", &k, &version), 2);
            const int rank = k % 3 == 1 ? 0 : k % 3 == 2 ? 1 : 2;
            assert_int_equal(version, k % 2 == 0);
            assert_true(rank > last_rank || (rank == last_rank && k > last_key));
            last_rank = rank;
            last_key = k;
        }
    }
    /* About four tries an hour each, and no minute sees a large part of the fleet. */
    assert_true(n_tries / N_DEVICES >= 90 && n_tries / N_DEVICES <= 110);
    size_t per_minute[32] = {0}, most = 0;
    for (size_t d = 0; d < N_DEVICES; d++) {
        assert_true(returned_us[d] >= -MINUTE_US && returned_us[d] < 31 * MINUTE_US);
        const size_t n = ++per_minute[MAX(returned_us[d], 0) / MINUTE_US];
        most = MAX(most, n);
        world_done(&devices[d]);
    }
    print_message("# devices that came back, by minute:");
    for (size_t i = 0; i < 20; i++)
        print_message(" %zu", per_minute[i]);
    print_message("\n");
    assert_true(most < N_DEVICES / 5);
}
