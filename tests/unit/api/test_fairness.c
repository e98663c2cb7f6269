/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fairness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "api/login_failures.h"
#include "base/alloc.h"
#include "test.h"

#define MAX_PLACES 1024

static struct fairness *make(size_t max_reads, size_t max_writes, size_t max_watches)
{
    return fairness_new(
        &(struct fairness_options){max_reads, max_writes, max_watches, &clock_system});
}

static struct user named(const char *name)
{
    return (struct user){.name = str_of(name)};
}

static int enter(struct fairness *f, const char *name, enum fairness_class class,
                 struct fairness_place *ret)
{
    ARENA_AUTO a = arena_new();
    struct status st;
    struct user u = named(name);
    status_init(&st, a);
    int r = fairness_enter(f, &u, class, ret, &st);
    assert_int_equal(st.code, r < 0 ? 429 : 0);
    return r;
}

/* As many as it gets; returns how many that are. */
static size_t take_all(struct fairness *f, const char *name, enum fairness_class class,
                       struct fairness_place *places)
{
    size_t n = 0;
    while (n < MAX_PLACES && enter(f, name, class, &places[n]) == 0)
        n++;
    return n;
}

static void leave_all(struct fairness *f, struct fairness_place *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fairness_leave(f, &places[i]);
}

static struct fairness_stats stats(struct fairness *f)
{
    struct fairness_stats s;
    fairness_stats(f, &s);
    return s;
}

TEST(refusal_is_in_the_words_clients_know)
{
    ARENA_AUTO a = arena_new();
    struct fairness *f = make(1, 1, 1);
    struct fairness_place place, none = {0};
    struct status st;
    BUF_AUTO text = {0};
    struct user alice = named("alice");
    status_init(&st, a);
    assert_int_equal(fairness_enter(f, &alice, FAIR_WRITE, &place, &st), 0);
    assert_int_equal(fairness_enter(f, &alice, FAIR_WRITE, &none, &st), -EAGAIN);
    assert_null(none.user);
    status_write(&text, &st);
    assert_str(
        buf_str(&text),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"Too many requests, please try again later.\","
        "\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":1},\"code\":429}\n");
    assert_int_equal(st.retry_after_s, 1);
    fairness_leave(f, &none);
    fairness_leave(f, &place);
    assert_null(place.user);
    fairness_leave(f, &place);
    assert_int_equal(stats(f).n_writes, 0);
    fairness_free(f);
}

TEST(one_user_alone_gets_half_of_a_class)
{
    struct fairness *f = make(400, 200, 10);
    static struct fairness_place reads[MAX_PLACES], writes[MAX_PLACES];
    assert_int_equal(take_all(f, "alice", FAIR_READ, reads), 200);
    assert_int_equal(take_all(f, "alice", FAIR_WRITE, writes), 100);
    assert_int_equal(stats(f).n_reads, 200);
    assert_int_equal(stats(f).n_writes, 100);
    assert_int_equal(stats(f).n_rejected_reads, 1);
    assert_int_equal(stats(f).n_rejected_writes, 1);
    leave_all(f, reads, 200);
    leave_all(f, writes, 100);
    assert_int_equal(stats(f).n_reads + stats(f).n_writes, 0);
    fairness_free(f);
}

/* k users who take and give back in turn until nothing changes: each ends with 1/(k+1), as much is
 * free. */
TEST(greedy_users_end_at_equal_shares_and_leave_one_free)
{
    enum { N_USERS = 4, LIMIT = 400, SHARE = LIMIT / (N_USERS + 1) };
    struct fairness *f = make(LIMIT, 1, 1);
    static struct fairness_place places[N_USERS][MAX_PLACES];
    size_t n_held[N_USERS] = {0};
    for (int round = 0; round < 500; round++) {
        for (size_t u = 0; u < N_USERS; u++) {
            char name[16];
            (void) snprintf(name, sizeof(name), "user-%zu", u);
            n_held[u] += take_all(f, name, FAIR_READ, places[u] + n_held[u]);
            /* One of its requests is answered. */
            fairness_leave(f, &places[u][--n_held[u]]);
        }
    }
    for (size_t u = 0; u < N_USERS; u++)
        assert_in_range(n_held[u], SHARE - 3, SHARE + 3);
    static struct fairness_place newcomer[MAX_PLACES];
    size_t n = take_all(f, "newcomer", FAIR_READ, newcomer);
    assert_in_range(n, SHARE / 2 - 3, SHARE);
    leave_all(f, newcomer, n);
    for (size_t u = 0; u < N_USERS; u++)
        leave_all(f, places[u], n_held[u]);
    assert_int_equal(stats(f).n_reads, 0);
    fairness_free(f);
}

TEST(whoever_holds_nothing_finds_the_last_place)
{
    enum { LIMIT = 50 };
    struct fairness *f = make(LIMIT, 1, 1);
    struct fairness_place places[LIMIT], none;
    for (size_t i = 0; i < LIMIT; i++) {
        char name[16];
        (void) snprintf(name, sizeof(name), "user-%zu", i);
        assert_int_equal(enter(f, name, FAIR_READ, &places[i]), 0);
    }
    assert_int_equal(enter(f, "one-too-many", FAIR_READ, &none), -EAGAIN);
    fairness_leave(f, &places[7]);
    assert_int_equal(enter(f, "user-8", FAIR_READ, &none), -EAGAIN); /* it holds one already */
    assert_int_equal(enter(f, "one-too-many", FAIR_READ, &places[7]), 0);
    leave_all(f, places, LIMIT);
    fairness_free(f);
}

TEST(administrators_and_our_own_take_nobodys_place)
{
    struct fairness *f = make(2, 2, 1);
    ARENA_AUTO a = arena_new();
    const struct str groups[] = {STR("devs"), STR(GROUP_MASTERS)};
    const struct user admin = {.name = STR("admin"), .groups = groups, .n_groups = 2};
    const struct user own = {.name = STR("system:apiserver")};
    struct fairness_place places[300];
    struct status st;
    status_init(&st, a);
    for (size_t i = 0; i < N_ELEMENTS(places); i++)
        assert_int_equal(
            fairness_enter(f, i % 2 ? &admin : &own, (enum fairness_class)(i % 3), &places[i], &st),
            0);
    assert_int_equal(stats(f).n_reads, 100);
    assert_int_equal(stats(f).n_long_running, 100);
    struct fairness_place place;
    assert_int_equal(enter(f, "alice", FAIR_READ, &place), 0);
    fairness_leave(f, &place);
    leave_all(f, places, N_ELEMENTS(places));
    assert_int_equal(stats(f).n_reads + stats(f).n_writes + stats(f).n_long_running, 0);
    fairness_free(f);
}

TEST(watches_are_limited_by_user_and_apart)
{
    struct fairness *f = make(2, 2, 5);
    static struct fairness_place alice[MAX_PLACES], bob[MAX_PLACES];
    struct fairness_place read;
    assert_int_equal(take_all(f, "alice", FAIR_LONG_RUNNING, alice), 5);
    assert_int_equal(take_all(f, "bob", FAIR_LONG_RUNNING, bob), 5);
    assert_int_equal(enter(f, "alice", FAIR_READ, &read), 0);
    assert_int_equal(stats(f).n_long_running, 10);
    assert_int_equal(stats(f).n_rejected_long_running, 2);
    fairness_leave(f, &read);
    leave_all(f, alice, 5);
    leave_all(f, bob, 5);
    fairness_free(f);
}

TEST(zero_means_no_limit)
{
    struct fairness *f = make(0, 0, 0);
    static struct fairness_place places[MAX_PLACES];
    for (int class = FAIR_READ; class <= FAIR_LONG_RUNNING; class ++) {
        assert_int_equal(take_all(f, "alice", (enum fairness_class) class, places), MAX_PLACES);
        leave_all(f, places, MAX_PLACES);
    }
    fairness_free(f);
}

TEST(users_in_flight_are_bounded)
{
    struct fairness *f = make(0, 0, 0);
    struct fairness_place *places =
        mem_zalloc(2 * (size_t) FAIRNESS_MAX_USERS * sizeof(struct fairness_place));
    size_t n = 0;
    for (size_t i = 0; i < 2 * (size_t) FAIRNESS_MAX_USERS; i++) {
        char name[32];
        (void) snprintf(name, sizeof(name), "user-%zu", i);
        n += enter(f, name, FAIR_LONG_RUNNING, &places[n]) == 0;
    }
    assert_in_range(n, FAIRNESS_MAX_USERS * 9 / 10, FAIRNESS_MAX_USERS);
    leave_all(f, places, n);
    assert_int_equal(stats(f).n_long_running, 0);
    struct fairness_place place;
    assert_int_equal(enter(f, "later", FAIR_READ, &place), 0);
    fairness_leave(f, &place);
    mem_free(places);
    fairness_free(f);
}

/* ---- threads ------------------------------------------------------------------------------ */

enum { N_THREADS = 4, N_TURNS = 20000, THREAD_LIMIT = 8, HELD_AT_ONCE = 6 };

struct crowd {
    struct fairness *f;
    atomic_size_t n_inside;
    atomic_size_t n_most;
};

static void note_entry(struct crowd *c)
{
    size_t n = atomic_fetch_add(&c->n_inside, 1) + 1;
    size_t most = atomic_load(&c->n_most);
    while (n > most && !atomic_compare_exchange_weak(&c->n_most, &most, n))
        ;
}

static void *run_crowd(void *arg)
{
    struct crowd *c = arg;
    ARENA_AUTO a = arena_new();
    struct fairness_place held[HELD_AT_ONCE] = {0};
    unsigned random = 1;
    for (int i = 0; i < N_TURNS; i++) {
        random = random * 1103515245 + 12345;
        struct fairness_place *place = &held[random / 65536 % HELD_AT_ONCE];
        if (place->user) {
            atomic_fetch_sub(&c->n_inside, 1);
            fairness_leave(c->f, place);
            continue;
        }
        char name[] = "user-0";
        name[5] = (char) ('0' + random / 4096 % 10);
        struct user u = named(name);
        struct status st;
        status_init(&st, a);
        if (fairness_enter(c->f, &u, FAIR_READ, place, &st) == 0)
            note_entry(c);
        (void) fairness_login_failed(c->f, str_of(name));
        arena_reset(a);
    }
    for (size_t i = 0; i < HELD_AT_ONCE; i++) {
        atomic_fetch_sub(&c->n_inside, held[i].user != NULL);
        fairness_leave(c->f, &held[i]);
    }
    return NULL;
}

TEST(threads_never_exceed_the_limit_and_leave_nothing_behind)
{
    struct crowd c = {.f = make(THREAD_LIMIT, 1, 1)};
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_crowd, &c), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(atomic_load(&c.n_most), 1, THREAD_LIMIT);
    assert_int_equal(atomic_load(&c.n_inside), 0);
    assert_int_equal(stats(c.f).n_reads, 0);
    assert_true(stats(c.f).n_rejected_reads > 0);
    fairness_free(c.f);
}

/* ---- failed logins ------------------------------------------------------------------------ */

TEST(failed_logins_are_answered_later_and_later)
{
    static const int64_t expected[] = {0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    struct clock_virtual clock;
    clock_virtual_init(&clock, 1000000);
    struct fairness *f = fairness_new(&(struct fairness_options){1, 1, 1, .clock = &clock.clock});
    for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
        assert_int_equal(fairness_login_failed(f, STR("192.0.2.1")), expected[i]);
        clock.now_us += 1000000;
    }
    assert_int_equal(fairness_login_failed(f, STR("192.0.2.2")), 0);
    clock.now_us += 58 * 1000000LL;
    assert_int_equal(fairness_login_failed(f, STR("192.0.2.1")), 5000);
    clock.now_us += 60 * 1000000LL;
    assert_int_equal(fairness_login_failed(f, STR("192.0.2.1")), 0);
    assert_int_equal(stats(f).n_login_failures, N_ELEMENTS(expected) + 3);
    fairness_free(f);
}

TEST(addresses_of_one_ipv6_network_count_as_one)
{
    struct login_failures *l = login_failures_new();
    assert_int_equal(login_failures_add(l, STR("2001:db8:1:2::1"), 0), 0);
    assert_int_equal(login_failures_add(l, STR("2001:db8:1:2:ffff::1"), 0), 100);
    assert_int_equal(login_failures_add(l, STR("2001:db8:1:3::1"), 0), 0);
    assert_int_equal(
        login_failures_add(l, STR("no address, and longer than any could ever be written"), 0), 0);
    assert_int_equal(
        login_failures_add(l, STR("no address, and longer than any could ever be written"), 0),
        100);
    assert_int_equal(login_failures_add(l, STR(""), 0), 0);
    login_failures_free(l);
}

static int64_t add_numbered(struct login_failures *l, size_t i)
{
    char address[32];
    (void) snprintf(address, sizeof(address), "10.%zu.%zu.%zu", i >> 16 & 255, i >> 8 & 255,
                    i & 255);
    return login_failures_add(l, str_of(address), (int64_t) (i / 1000));
}

TEST(table_of_failures_forgets_the_quietest)
{
    struct login_failures *l = login_failures_new();
    for (size_t i = 0; i < LOGIN_FAILURES_MAX_ADDRESSES; i++)
        assert_int_equal(add_numbered(l, i), 0);
    assert_int_equal(add_numbered(l, 0), 100);                          /* now the newest */
    assert_int_equal(add_numbered(l, LOGIN_FAILURES_MAX_ADDRESSES), 0); /* in the place of 1 */
    assert_int_equal(add_numbered(l, 0), 200);
    assert_int_equal(add_numbered(l, 2), 100);
    assert_int_equal(add_numbered(l, 1), 0);
    login_failures_free(l);
}
