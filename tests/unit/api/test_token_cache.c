/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/cache.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/log.h"
#include "test.h"

/* ---- a source that counts ----------------------------------------------------------------- */

struct counting {
    struct token_source source;
    int n_verified, n_checked, n_reloads;
    bool is_valid, must_block;
    int64_t expires_us;
    int reload_result;
};

static int verify(struct token_source *s, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret)
{
    struct counting *c = CONTAINER_OF(s, struct counting, source);
    (void) audiences;
    c->n_verified++;
    if (c->must_block && !may_block)
        return -EAGAIN;
    if (str_starts_with(token, STR("bad"))) {
        ret->error = STR("it is bad");
        return -EACCES;
    }
    if (!str_starts_with(token, STR("good")))
        return -ENOENT;
    ret->user =
        (struct user){.name = arena_printf(a, "user of %.*s for %zu", STR_ARG(token), n_audiences)};
    ret->expires_us = c->expires_us;
    return 0;
}

static bool still_valid(struct token_source *s, const struct token_identity *i)
{
    struct counting *c = CONTAINER_OF(s, struct counting, source);
    (void) i;
    c->n_checked++;
    return c->is_valid;
}

static int reload(struct token_source *s, char **ret_error)
{
    struct counting *c = CONTAINER_OF(s, struct counting, source);
    c->n_reloads++;
    if (c->reload_result < 0)
        *ret_error = mem_strdup("cannot read it");
    return c->reload_result;
}

static void free_source(struct token_source *s)
{
    (void) s;
}

static struct counting counting_new(void)
{
    return (struct counting){.source = {"counting", verify, still_valid, reload, free_source},
                             .is_valid = true,
                             .expires_us = INT64_MAX};
}

struct bench {
    struct clock_virtual clock;
    struct counting first, second;
    struct authenticator *a;
    struct arena *arena;
};

static void bench_init(struct bench *b)
{
    log_set_level(LOG_ERROR);
    clock_virtual_init(&b->clock, 1000000000);
    b->first = counting_new();
    b->second = counting_new();
    b->a = authenticator_new(&b->clock.clock);
    b->arena = arena_new();
    authenticator_add(b->a, &b->first.source);
}

static void bench_done(struct bench *b)
{
    /* In this order: an arena keeps what it was given alive. */
    authenticator_free(b->a);
    arena_free(b->arena);
}

static int ask(struct bench *b, struct str token, struct token_identity *ret)
{
    return authenticator_verify(b->a, b->arena, token, NULL, 0, /* may_block= */ false, ret);
}

/* ------------------------------------------------------------------------------------------- */

TEST(a_verified_token_is_remembered_for_ten_seconds_and_checked_at_each_use)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    for (int n = 0; n < 5; n++) {
        assert_int_equal(ask(&b, STR("good-1"), &i), 0);
        assert_str(i.user.name, "user of good-1 for 0");
        assert_true(user_has_group(&i.user, STR(GROUP_AUTHENTICATED)));
    }
    assert_int_equal(b.first.n_verified, 1);
    assert_int_equal(b.first.n_checked, 4);
    b.clock.now_us += TOKEN_CACHE_GOOD_US - 1;
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    assert_int_equal(b.first.n_verified, 1);
    b.clock.now_us += 1;
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    assert_int_equal(b.first.n_verified, 2);
    bench_done(&b);
}

TEST(nothing_is_believed_past_its_expiry)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    b.first.expires_us = b.clock.now_us + 2;
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    b.clock.now_us += 1;
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    assert_int_equal(b.first.n_verified, 1);
    b.clock.now_us += 1;
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    assert_int_equal(b.first.n_verified, 2); /* the source is asked, not the memory */
    bench_done(&b);
}

TEST(what_is_valid_no_more_is_verified_again)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    b.first.is_valid = false;
    assert_int_equal(ask(&b, STR("good-1"), &i), 0);
    assert_int_equal(b.first.n_verified, 2);
    bench_done(&b);
}

TEST(refusals_are_remembered_for_a_second)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    for (int n = 0; n < 3; n++) {
        assert_int_equal(ask(&b, STR("bad-1"), &i), -EACCES);
        assert_str(i.error, "it is bad");
        assert_int_equal(ask(&b, STR("nobody's"), &i), -EACCES);
        assert_null(i.error.p);
    }
    assert_int_equal(b.first.n_verified, 2);
    b.clock.now_us += TOKEN_CACHE_BAD_US;
    assert_int_equal(ask(&b, STR("bad-1"), &i), -EACCES);
    assert_int_equal(b.first.n_verified, 3);
    bench_done(&b);
}

TEST(sources_are_asked_in_order_until_one_knows)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    authenticator_add(b.a, &b.second.source);
    assert_int_equal(ask(&b, STR("nobody's"), &i), -EACCES);
    assert_int_equal(b.second.n_verified, 1);
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    assert_int_equal(ask(&b, STR("bad"), &i),
                     -EACCES); /* known to the first: the second is not asked */
    assert_int_equal(b.second.n_verified, 1);
    bench_done(&b);
}

TEST(audiences_are_part_of_the_question)
{
    struct bench b;
    struct token_identity i;
    const struct str one[] = {{"x", 1}, {"y", 1}}, other[] = {{"y", 1}, {"x", 1}};
    bench_init(&b);
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    assert_int_equal(authenticator_verify(b.a, b.arena, STR("good"), one, 2, false, &i), 0);
    assert_str(i.user.name, "user of good for 2");
    assert_int_equal(authenticator_verify(b.a, b.arena, STR("good"), one, 1, false, &i), 0);
    assert_str(i.user.name, "user of good for 1");
    assert_int_equal(authenticator_verify(b.a, b.arena, STR("good"), other, 2, false, &i), 0);
    assert_int_equal(b.first.n_verified, 4);
    bench_done(&b);
}

TEST(what_has_to_block_is_not_remembered_until_it_may)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    b.first.must_block = true;
    assert_int_equal(ask(&b, STR("good"), &i), -EAGAIN);
    assert_int_equal(authenticator_verify(b.a, b.arena, STR("good"), NULL, 0, true, &i), 0);
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    assert_int_equal(b.first.n_verified, 2);
    bench_done(&b);
}

TEST(a_reload_forgets_everything_and_tells_the_first_error)
{
    struct bench b;
    struct token_identity i;
    char *error = NULL;
    bench_init(&b);
    authenticator_add(b.a, &b.second.source);
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    assert_int_equal(ask(&b, STR("bad"), &i), -EACCES);
    assert_int_equal(authenticator_reload(b.a, &error), 0);
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    assert_int_equal(ask(&b, STR("bad"), &i), -EACCES);
    assert_int_equal(b.first.n_verified, 4);
    b.first.reload_result = b.second.reload_result = -EINVAL;
    assert_int_equal(authenticator_reload(b.a, &error), -EINVAL);
    assert_string_equal(error, "cannot read it");
    assert_int_equal(b.second.n_reloads, 2);
    mem_free(error);
    bench_done(&b);
}

TEST(tokens_of_no_size_or_too_large_a_one_are_nobodys)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    char *large = mem_zalloc(128 * 1024);
    memcpy(large, "good", 4);
    assert_int_equal(ask(&b, STR(""), &i), -EACCES);
    assert_int_equal(ask(&b, str_range(large, 128 * 1024), &i), -EACCES);
    assert_int_equal(b.first.n_verified, 0);
    /* Too large to remember, not to verify. */
    assert_int_equal(ask(&b, str_range(large, TOKEN_CACHE_MAX_BYTES + 1), &i), 0);
    assert_int_equal(ask(&b, str_range(large, TOKEN_CACHE_MAX_BYTES + 1), &i), 0);
    assert_int_equal(b.first.n_verified, 2);
    mem_free(large);
    bench_done(&b);
}

TEST(a_flood_of_bad_tokens_pushes_out_no_good_one)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    for (int n = 0; n < 5000; n++) {
        arena_reset(b.arena);
        assert_int_equal(ask(&b, arena_printf(b.arena, "bad-%d", n), &i), -EACCES);
    }
    const int n_verified = b.first.n_verified;
    assert_int_equal(ask(&b, STR("good"), &i), 0);
    assert_int_equal(b.first.n_verified, n_verified);
    bench_done(&b);
}

TEST(more_good_tokens_than_fit_are_all_answered_rightly)
{
    struct bench b;
    struct token_identity i;
    bench_init(&b);
    for (int round = 0; round < 2; round++) {
        for (int n = 0; n < 4000; n++) {
            arena_reset(b.arena);
            const struct str token = arena_printf(b.arena, "good-%d", n);
            assert_int_equal(ask(&b, token, &i), 0);
            assert_str(i.user.name, arena_printf(b.arena, "user of good-%d for 0", n).p);
        }
    }
    assert_true(b.first.n_verified < 8000);
    bench_done(&b);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void *ask_often(void *arg)
{
    struct authenticator *a = arg;
    for (int n = 0; n < 2000; n++) {
        ARENA_AUTO arena = arena_new();
        struct token_identity i = {0};
        const struct str token = arena_printf(arena, "token-%d", n % 50);
        if (authenticator_verify(a, arena, token, NULL, 0, false, &i) != -EACCES)
            return arg;
    }
    return NULL;
}

TEST(threads_ask_while_another_reloads)
{
    struct authenticator *a = authenticator_new(&clock_system);
    pthread_t threads[4];
    for (size_t n = 0; n < N_ELEMENTS(threads); n++)
        assert_int_equal(pthread_create(&threads[n], NULL, ask_often, a), 0);
    for (int n = 0; n < 100; n++)
        assert_int_equal(authenticator_reload(a, NULL), 0);
    for (size_t n = 0; n < N_ELEMENTS(threads); n++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[n], &failed), 0);
        assert_null(failed);
    }
    authenticator_free(a);
}
