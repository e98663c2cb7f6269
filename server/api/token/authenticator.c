/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/authenticate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/token/cache.h"
#include "base/alloc.h"

#define MAX_SOURCES 32
#define TOKEN_MAX_BYTES ((size_t) 64 * 1024)

struct authenticator {
    const struct clock *clock;
    struct token_source *sources[MAX_SOURCES];
    size_t n_sources;
    struct token_cache *cache;
    /* Counts reloads: what was verified before one is not remembered after it. */
    atomic_uint generation;
};

struct authenticator *authenticator_new(const struct clock *clock)
{
    struct authenticator *a = NEW(struct authenticator);
    a->clock = clock;
    a->cache = token_cache_new();
    return a;
}

void authenticator_add(struct authenticator *a, struct token_source *s)
{
    if (a->n_sources == MAX_SOURCES)
        abort(); /* as many as the options allow, far below this */
    a->sources[a->n_sources++] = s;
}

void authenticator_free(struct authenticator *a)
{
    if (!a)
        return;
    token_cache_free(a->cache);
    for (size_t i = 0; i < a->n_sources; i++)
        a->sources[i]->free(a->sources[i]);
    mem_free(a);
}

/* Whoever has logged in is in this group, whatever the source says. */
static void add_group(struct arena *arena, struct user *u)
{
    if (user_has_group(u, STR(GROUP_AUTHENTICATED)))
        return;
    struct str *groups = ARENA_ARRAY(arena, struct str, u->n_groups + 1);
    if (u->n_groups)
        memcpy(groups, u->groups, u->n_groups * sizeof(*groups));
    groups[u->n_groups] = STR(GROUP_AUTHENTICATED);
    u->groups = groups;
    u->n_groups++;
}

/* Asks each source in turn; fills e. -EAGAIN when one has to block and may not. */
static int ask_sources(struct authenticator *a, struct token_answer *e, bool may_block)
{
    const struct token_question *q = &e->question;
    int r = -ENOENT;
    for (size_t i = 0; i < a->n_sources && r == -ENOENT; i++) {
        struct token_source *s = a->sources[i];
        e->identity = (struct token_identity){.expires_us = INT64_MAX};
        r = s->verify(s, e->arena, q->token, q->audiences, q->n_audiences, may_block, &e->identity);
        e->source = r == 0 ? s : NULL;
    }
    if (r == -EAGAIN)
        return r;
    if (r == 0)
        add_group(e->arena, &e->identity.user);
    e->result = r == 0 ? 0 : -EACCES;
    return 0;
}

static bool is_good(const struct token_answer *e, int64_t now_us)
{
    struct token_source *s = e->source;
    if (e->result != 0)
        return true; /* a refusal holds for its time */
    return now_us < e->identity.expires_us && (!s->still_valid || s->still_valid(s, &e->identity));
}

static void unref_answer(void *answer)
{
    token_answer_unref(answer);
}

/* Gives the answer to the arena, which keeps it alive. */
static int hand_over(struct arena *arena, struct token_answer *e, struct token_identity *ret)
{
    *ret = e->identity;
    arena_on_free(arena, unref_answer, e);
    return e->result;
}

int authenticator_verify(struct authenticator *a, struct arena *arena, struct str token,
                         const struct str *audiences, size_t n_audiences, bool may_block,
                         struct token_identity *ret)
{
    const struct token_question q = {token, audiences, n_audiences};
    const int64_t now_us = a->clock->wall_us(a->clock);
    if (token.n == 0 || token.n > TOKEN_MAX_BYTES) {
        *ret = (struct token_identity){0};
        return -EACCES;
    }
    struct token_answer *e = token_cache_find(a->cache, &q, now_us);
    if (e && is_good(e, now_us))
        return hand_over(arena, e, ret);
    token_answer_unref(e);
    const unsigned generation = atomic_load(&a->generation);
    e = token_answer_new(&q);
    const int r = ask_sources(a, e, may_block);
    if (r < 0) {
        token_answer_unref(e);
        return r;
    }
    token_cache_put(a->cache, e, now_us);
    if (atomic_load(&a->generation) != generation)
        token_cache_clear(a->cache); /* a reload came between: perhaps it knows better */
    return hand_over(arena, e, ret);
}

int authenticator_reload(struct authenticator *a, char **ret_error)
{
    int result = 0;
    for (size_t i = 0; i < a->n_sources; i++) {
        struct token_source *s = a->sources[i];
        char *error = NULL;
        const int r = s->reload ? s->reload(s, &error) : 0;
        if (r < 0 && result == 0) {
            result = r;
            *ret_error = TAKE(error); /* the first is the one told */
        }
        mem_free(error);
    }
    (void) atomic_fetch_add(&a->generation, 1);
    token_cache_clear(a->cache);
    return result;
}
