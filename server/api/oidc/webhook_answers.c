/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/webhook_answers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "api/token/audiences.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"

struct answer {
    struct webhook_key key;
    struct list link; /* in good or bad, the latest last; while asked, in neither */
    bool is_asked;    /* no answer yet */
    bool is_stale;    /* cleared meanwhile: for those who wait, then gone */
    int result;
    struct arena *arena;
    struct token_identity identity;
    int64_t until_us; /* monotonic */
    size_t n_waiting; /* it stays while they have not looked */
};

struct kept {
    struct list answers;
    size_t n, max;
};

struct webhook_answers {
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct map by_key;
    struct kept good, bad;
};

struct webhook_key webhook_key_of(struct str token, const struct str *audiences, size_t n_audiences)
{
    struct webhook_key k;
    BUF_AUTO text = {0};
    buf_printf(&text, "%zu:", token.n);
    buf_append_str(&text, token);
    for (size_t i = 0; i < n_audiences; i++) {
        buf_printf(&text, "%zu:", audiences[i].n);
        buf_append_str(&text, audiences[i]);
    }
    pki_sha256(buf_str(&text), k.digest);
    return k;
}

static struct str key_str(const struct webhook_key *k)
{
    return str_range((const char *) k->digest, sizeof(k->digest));
}

struct webhook_answers *webhook_answers_new(const struct clock *clock)
{
    struct webhook_answers *w = NEW(struct webhook_answers);
    w->clock = clock;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    list_init(&w->good.answers);
    list_init(&w->bad.answers);
    w->good.max = WEBHOOK_MAX_GOOD;
    w->bad.max = WEBHOOK_MAX_BAD;
    return w;
}

/* ---- under the lock -------------------------------------------------------------------------- */

static struct kept *kept_with(struct webhook_answers *w, const struct answer *e)
{
    return e->result == 0 ? &w->good : &w->bad;
}

static void release(struct answer *e)
{
    arena_free(e->arena);
    mem_free(e);
}

/* Out of reach for those who come; those who wait still look at it. */
static void forget(struct webhook_answers *w, struct answer *e)
{
    (void) map_remove(&w->by_key, key_str(&e->key));
    list_remove(&e->link);
    kept_with(w, e)->n--;
    e->is_stale = true;
    if (e->n_waiting == 0)
        release(e);
}

static struct answer *find(struct webhook_answers *w, const struct webhook_key *k)
{
    struct answer *e = map_get(&w->by_key, key_str(k));
    if (!e || e->is_asked || w->clock->monotonic_us(w->clock) < e->until_us)
        return e;
    forget(w, e);
    return NULL;
}

static struct token_identity copy_identity(struct arena *a, const struct token_identity *i)
{
    struct token_identity copy = *i;
    struct audiences audiences =
        audiences_copy(a, (struct audiences){i->audiences, i->n_audiences});
    copy.user = user_copy(a, &i->user);
    copy.audiences = audiences.items;
    copy.error = i->error.p ? arena_str(a, i->error) : STR_NONE;
    return copy;
}

static int give(const struct answer *e, struct arena *a, struct token_identity *ret)
{
    *ret = copy_identity(a, &e->identity);
    return e->result;
}

static void wait_for(struct webhook_answers *w, struct answer *e)
{
    e->n_waiting++;
    while (e->is_asked)
        pthread_cond_wait(&w->changed, &w->lock);
    e->n_waiting--;
}

/* ---- from outside ---------------------------------------------------------------------------- */

int webhook_answers_find(struct webhook_answers *w, const struct webhook_key *k, struct arena *a,
                         struct token_identity *ret)
{
    pthread_mutex_lock(&w->lock);
    const struct answer *e = find(w, k);
    int r = e && !e->is_asked ? give(e, a, ret) : -ENOENT;
    pthread_mutex_unlock(&w->lock);
    return r;
}

int webhook_answers_begin(struct webhook_answers *w, const struct webhook_key *k, struct arena *a,
                          struct token_identity *ret)
{
    int r = -ENOENT;
    pthread_mutex_lock(&w->lock);
    struct answer *e = find(w, k);
    if (e) {
        wait_for(w, e);
        r = give(e, a, ret);
        if (e->is_stale && e->n_waiting == 0)
            release(e);
    } else {
        e = NEW(struct answer);
        e->key = *k;
        e->is_asked = true;
        e->arena = arena_new();
        list_init(&e->link);
        (void) map_put(&w->by_key, key_str(&e->key), e);
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

void webhook_answers_tell(struct webhook_answers *w, const struct webhook_key *k, int result,
                          const struct token_identity *identity, int64_t good_us)
{
    pthread_mutex_lock(&w->lock);
    struct answer *e = map_get(&w->by_key, key_str(k));
    assert(e && e->is_asked);
    e->is_asked = false;
    e->result = result;
    e->identity = copy_identity(e->arena, identity);
    e->until_us = w->clock->monotonic_us(w->clock) + good_us;
    struct kept *kept = kept_with(w, e);
    list_append(&kept->answers, &e->link);
    kept->n++;
    if (kept->n > kept->max)
        forget(w, CONTAINER_OF(kept->answers.next, struct answer, link));
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void forget_all(struct webhook_answers *w, struct kept *kept)
{
    LIST_FOR_EACH (&kept->answers, item)
        forget(w, CONTAINER_OF(item, struct answer, link));
}

void webhook_answers_clear(struct webhook_answers *w)
{
    pthread_mutex_lock(&w->lock);
    forget_all(w, &w->good);
    forget_all(w, &w->bad);
    pthread_mutex_unlock(&w->lock);
}

void webhook_answers_free(struct webhook_answers *w)
{
    if (!w)
        return;
    webhook_answers_clear(w);
    map_done(&w->by_key);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    mem_free(w);
}
