/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/issuer.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/log.h"
#include "fake_issuer.h"
#include "test.h"

#define SECOND_US ((int64_t) 1000 * 1000)
#define HOUR_US (3600 * SECOND_US)

struct world {
    struct fake_issuer fake;
    struct clock_virtual clock;
    struct fetch_client *fetch;
    struct workers *workers;
    struct oidc_issuer *issuer;
    struct arena *arena;
    struct fake_key keys[3];
};

static void world_init(struct world *w)
{
    static const char *const names[] = {"a", "b", "c"};
    *w = (struct world){
        .fetch = fetch_client_new(), .workers = workers_new(8, 100), .arena = arena_new()};
    log_set_level(LOG_ERROR);
    clock_virtual_init(&w->clock, HOUR_US);
    for (size_t i = 0; i < 3; i++)
        w->keys[i] = (struct fake_key){names[i], pki_key_new()};
    fake_issuer_start(&w->fake);
    fake_issuer_publish(&w->fake, w->keys, 1);
}

static void world_done(struct world *w)
{
    fake_issuer_release(&w->fake);
    workers_free(w->workers);
    oidc_issuer_unref(w->issuer);
    fetch_client_free(w->fetch);
    fake_issuer_stop(&w->fake);
    for (size_t i = 0; i < 3; i++)
        pki_key_free(w->keys[i].key);
    arena_free(w->arena);
}
#define WORLD CLEANUP(world_done) struct world

static void begin(struct world *w)
{
    struct oidc_rules rules = fake_issuer_rules(&w->fake);
    w->issuer = oidc_issuer_new(
        &(struct oidc_outside){.clock = &w->clock.clock, .fetch = w->fetch, .workers = w->workers},
        &rules);
}

/* As the source asks, with a token of that key. */
static int verify(struct world *w, const struct fake_key *k, bool may_block)
{
    struct arena *a = arena_new();
    struct jws t;
    if (jws_split(a, fake_token(a, k, STR("{}")), &t) < 0)
        abort();
    int r = oidc_issuer_verify(w->issuer, JWS_ES256, str_of(k->kid), &t, may_block);
    arena_free(a);
    return r;
}

static int n_jwks(struct world *w)
{
    return atomic_load(&w->fake.n_jwks);
}

TEST(keys_come_in_the_background_and_verify_without_blocking)
{
    WORLD w;
    world_init(&w);
    begin(&w);
    workers_settle(w.workers);
    for (int i = 0; i < 10; i++)
        assert_int_equal(verify(&w, &w.keys[0], false), 0);
    assert_int_equal(n_jwks(&w), 1);
    assert_int_equal(atomic_load(&w.fake.n_discoveries), 1);
}

TEST(an_unknown_key_is_fetched_by_whoever_may_block)
{
    WORLD w;
    world_init(&w);
    begin(&w);
    workers_settle(w.workers);
    fake_issuer_publish(&w.fake, w.keys, 2);
    assert_int_equal(verify(&w, &w.keys[1], false), -EAGAIN);
    assert_int_equal(n_jwks(&w), 1);
    assert_int_equal(verify(&w, &w.keys[1], true), 0);
    assert_int_equal(verify(&w, &w.keys[1], false), 0);
    assert_int_equal(n_jwks(&w), 2);
    /* And one that is gone is not believed any more. */
    fake_issuer_publish(&w.fake, &w.keys[1], 1);
    assert_int_equal(verify(&w, &w.keys[2], true), -EACCES);
    assert_int_equal(verify(&w, &w.keys[0], false), -EACCES);
}

TEST(a_flood_of_unknown_keys_does_not_reach_the_issuer)
{
    WORLD w;
    world_init(&w);
    begin(&w);
    workers_settle(w.workers);
    for (int i = 0; i < 50; i++)
        assert_int_equal(verify(&w, &w.keys[2], true), -EACCES);
    assert_int_equal(n_jwks(&w), OIDC_FETCH_BURST);
    assert_int_equal(verify(&w, &w.keys[2], false), -EACCES);
    assert_int_equal(verify(&w, &w.keys[0], false), 0);
    /* One more for each interval. */
    for (int i = 1; i <= 4; i++) {
        w.clock.now_us += OIDC_FETCH_INTERVAL_US;
        for (int k = 0; k < 10; k++)
            assert_int_equal(verify(&w, &w.keys[2], true), -EACCES);
        assert_int_equal(n_jwks(&w), OIDC_FETCH_BURST + i);
    }
}

#define N_BURST 8

struct asker {
    struct world *w;
    pthread_t thread;
    int result;
};

static void *ask(void *arg)
{
    struct asker *a = arg;
    a->result = verify(a->w, &a->w->keys[1], true);
    return NULL;
}

TEST(a_burst_of_tokens_makes_one_fetch)
{
    WORLD w;
    world_init(&w);
    begin(&w);
    workers_settle(w.workers);
    fake_issuer_publish(&w.fake, w.keys, 2);
    pthread_mutex_lock(&w.fake.lock);
    w.fake.holds = true;
    pthread_mutex_unlock(&w.fake.lock);
    struct asker askers[N_BURST];
    for (size_t i = 0; i < N_BURST; i++) {
        askers[i] = (struct asker){.w = &w};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    while (n_jwks(&w) < 2)
        (void) sched_yield();
    fake_issuer_release(&w.fake);
    for (size_t i = 0; i < N_BURST; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].result, 0);
    }
    assert_int_equal(n_jwks(&w), 2);
}

TEST(keys_are_kept_while_the_issuer_is_down)
{
    WORLD w;
    world_init(&w);
    begin(&w);
    workers_settle(w.workers);
    w.fake.fails = true;
    /* Old enough to be fetched first, which fails: still better than none. */
    w.clock.now_us += 24 * HOUR_US;
    assert_int_equal(verify(&w, &w.keys[0], false), -EAGAIN);
    assert_int_equal(verify(&w, &w.keys[0], true), 0);
    assert_int_equal(verify(&w, &w.keys[0], false), 0);
    /* Back again, with other keys. */
    w.fake.fails = false;
    fake_issuer_publish(&w.fake, &w.keys[1], 1);
    w.clock.now_us += OIDC_FETCH_PAUSE_US;
    assert_int_equal(verify(&w, &w.keys[0], true), -EACCES);
    assert_int_equal(verify(&w, &w.keys[1], false), 0);
}

TEST(an_issuer_down_at_start_is_asked_again_after_a_pause)
{
    WORLD w;
    world_init(&w);
    w.fake.fails = true;
    begin(&w);
    workers_settle(w.workers);
    assert_int_equal(verify(&w, &w.keys[0], false), -EACCES);
    w.fake.fails = false;
    assert_int_equal(verify(&w, &w.keys[0], true), -EACCES);
    w.clock.now_us += OIDC_FETCH_PAUSE_US;
    assert_int_equal(verify(&w, &w.keys[0], false), -EAGAIN);
    assert_int_equal(verify(&w, &w.keys[0], true), 0);
}

TEST(keys_are_fetched_again_before_they_are_old)
{
    WORLD w;
    world_init(&w);
    begin(&w);
    workers_settle(w.workers);
    fake_issuer_publish(&w.fake, w.keys, 2);
    w.clock.now_us += OIDC_KEYS_AGE_US + 1;
    assert_int_equal(verify(&w, &w.keys[0], false), 0);
    workers_settle(w.workers);
    assert_int_equal(n_jwks(&w), 2);
    assert_int_equal(verify(&w, &w.keys[1], false), 0);
    workers_settle(w.workers);
    assert_int_equal(n_jwks(&w), 2);
}

TEST(the_issuer_says_how_old_its_keys_may_get)
{
    WORLD w;
    world_init(&w);
    w.fake.max_age = "public, max-age=120";
    begin(&w);
    workers_settle(w.workers);
    w.clock.now_us += 119 * SECOND_US;
    assert_int_equal(verify(&w, &w.keys[0], false), 0);
    workers_settle(w.workers);
    assert_int_equal(n_jwks(&w), 1);
    w.clock.now_us += 2 * SECOND_US;
    assert_int_equal(verify(&w, &w.keys[0], false), 0);
    workers_settle(w.workers);
    assert_int_equal(n_jwks(&w), 2);
}

TEST(garbage_and_other_issuers_are_not_believed)
{
    WORLD w;
    world_init(&w);
    w.fake.claims_to_be = "https://other";
    begin(&w);
    workers_settle(w.workers);
    assert_int_equal(verify(&w, &w.keys[0], true), -EACCES);
    assert_int_equal(n_jwks(&w), 0);
    w.fake.claims_to_be = NULL;
    w.fake.garbage = "{\"keys\":[";
    w.clock.now_us += 10 * OIDC_FETCH_PAUSE_US;
    assert_int_equal(verify(&w, &w.keys[0], true), -EACCES);
    assert_int_equal(n_jwks(&w), 1);
    w.fake.garbage = NULL;
    w.clock.now_us += 10 * OIDC_FETCH_PAUSE_US;
    assert_int_equal(verify(&w, &w.keys[0], true), 0);
}
