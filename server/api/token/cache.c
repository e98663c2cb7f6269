/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/cache.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/random.h"

#define N_PARTS 32
#define N_WAYS 4 /* places an answer may stand in */
#define N_GOOD_SETS 256
#define N_BAD_SETS 64
#define ANSWER_BLOCK_BYTES 1024

struct set {
    struct token_answer *ways[N_WAYS];
};

struct part {
    pthread_mutex_t lock; /* rarely contended: threads beyond N_PARTS, and clearing */
    struct set good[N_GOOD_SETS], bad[N_BAD_SETS];
};

struct token_cache {
    uint64_t secret[2]; /* nobody can tell which tokens share a set */
    struct part *parts[N_PARTS];
};

/* ---- answers ------------------------------------------------------------------------------ */

static void answer_free(struct bytes *b)
{
    struct token_answer *e = CONTAINER_OF(b, struct token_answer, bytes);
    arena_free(e->arena); /* the answer itself is in it */
}

/* Of a signed token the end is its signature, which tells it from all others: hashing the rest
 * costs more than everything else here. Whoever makes up tokens with one end gets them into one set
 * of refusals. */
static uint64_t token_hash(const struct token_cache *c, struct str token)
{
    uint64_t end[2];
    if (token.n < sizeof(end))
        return map_hash(token);
    memcpy(end, token.p + token.n - sizeof(end), sizeof(end));
    const unsigned __int128 product =
        (unsigned __int128) (end[0] ^ c->secret[0]) * (end[1] ^ c->secret[1]);
    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static uint64_t question_hash(const struct token_cache *c, const struct token_question *q)
{
    uint64_t hash = token_hash(c, q->token);
    for (size_t i = 0; i < q->n_audiences; i++)
        hash = hash * 31 + map_hash(q->audiences[i]);
    return hash;
}

static bool is_same(const struct token_question *a, const struct token_question *b)
{
    if (!str_eq(a->token, b->token) || a->n_audiences != b->n_audiences)
        return false;
    for (size_t i = 0; i < a->n_audiences; i++)
        if (!str_eq(a->audiences[i], b->audiences[i]))
            return false;
    return true;
}

struct token_answer *token_answer_new(const struct token_question *q)
{
    struct arena *a = arena_new_with(ANSWER_BLOCK_BYTES + q->token.n);
    struct token_answer *e = ARENA_NEW(a, struct token_answer);
    struct str *audiences = ARENA_ARRAY(a, struct str, q->n_audiences + 1);
    for (size_t i = 0; i < q->n_audiences; i++)
        audiences[i] = arena_str(a, q->audiences[i]);
    e->bytes.free = answer_free;
    atomic_init(&e->bytes.refs, 1);
    e->arena = a;
    e->question = (struct token_question){arena_str(a, q->token), audiences, q->n_audiences};
    return e;
}

void token_answer_unref(struct token_answer *e)
{
    bytes_unref(e ? &e->bytes : NULL);
}

/* ---- the parts ---------------------------------------------------------------------------- */

struct token_cache *token_cache_new(void)
{
    struct token_cache *c = NEW(struct token_cache);
    random_bytes(c->secret, sizeof(c->secret));
    for (size_t i = 0; i < N_PARTS; i++) {
        c->parts[i] = NEW(struct part);
        (void) pthread_mutex_init(&c->parts[i]->lock, NULL);
    }
    return c;
}

void token_cache_free(struct token_cache *c)
{
    if (!c)
        return;
    token_cache_clear(c);
    for (size_t i = 0; i < N_PARTS; i++) {
        (void) pthread_mutex_destroy(&c->parts[i]->lock);
        mem_free(c->parts[i]);
    }
    mem_free(c);
}

/* Threads are numbered as they come. */
static struct part *part_of_thread(struct token_cache *c)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned number;
    if (!number)
        number = atomic_fetch_add(&n_threads, 1) + 1;
    return c->parts[number % N_PARTS];
}

static struct token_answer *find_in(struct set *s, const struct token_question *q, uint64_t hash,
                                    int64_t now_us)
{
    for (size_t i = 0; i < N_WAYS; i++) {
        struct token_answer *e = s->ways[i];
        if (e && e->hash == hash && now_us >= e->since_us && now_us < e->until_us &&
            is_same(&e->question, q)) {
            (void) bytes_ref(&e->bytes);
            return e;
        }
    }
    return NULL;
}

struct token_answer *token_cache_find(struct token_cache *c, const struct token_question *q,
                                      int64_t now_us)
{
    if (q->token.n > TOKEN_CACHE_MAX_BYTES)
        return NULL;
    const uint64_t hash = question_hash(c, q);
    struct part *p = part_of_thread(c);
    (void) pthread_mutex_lock(&p->lock);
    struct token_answer *e = find_in(&p->good[hash % N_GOOD_SETS], q, hash, now_us);
    if (!e)
        e = find_in(&p->bad[hash % N_BAD_SETS], q, hash, now_us);
    (void) pthread_mutex_unlock(&p->lock);
    return e;
}

/* The place of the same question, else a free one, else that of the oldest. */
static size_t choose_way(const struct set *s, const struct token_answer *e)
{
    size_t best = 0;
    for (size_t i = 0; i < N_WAYS; i++) {
        const struct token_answer *there = s->ways[i];
        if (there && there->hash == e->hash && is_same(&there->question, &e->question))
            return i;
        if (s->ways[best] && (!there || there->until_us < s->ways[best]->until_us))
            best = i;
    }
    return best;
}

void token_cache_put(struct token_cache *c, struct token_answer *e, int64_t now_us)
{
    if (e->question.token.n > TOKEN_CACHE_MAX_BYTES)
        return;
    const bool is_good = e->result == 0;
    e->hash = question_hash(c, &e->question);
    struct part *p = part_of_thread(c);
    struct set *s = is_good ? &p->good[e->hash % N_GOOD_SETS] : &p->bad[e->hash % N_BAD_SETS];
    e->since_us = now_us;
    e->until_us = now_us + (is_good ? TOKEN_CACHE_GOOD_US : TOKEN_CACHE_BAD_US);
    (void) bytes_ref(&e->bytes);
    (void) pthread_mutex_lock(&p->lock);
    struct token_answer **way = &s->ways[choose_way(s, e)];
    struct token_answer *replaced = *way;
    *way = e;
    (void) pthread_mutex_unlock(&p->lock);
    token_answer_unref(replaced);
}

static void clear_set(struct set *s)
{
    for (size_t i = 0; i < N_WAYS; i++)
        token_answer_unref(TAKE(s->ways[i]));
}

void token_cache_clear(struct token_cache *c)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        struct part *p = c->parts[i];
        (void) pthread_mutex_lock(&p->lock);
        for (size_t k = 0; k < N_GOOD_SETS; k++)
            clear_set(&p->good[k]);
        for (size_t k = 0; k < N_BAD_SETS; k++)
            clear_set(&p->bad[k]);
        (void) pthread_mutex_unlock(&p->lock);
    }
}
