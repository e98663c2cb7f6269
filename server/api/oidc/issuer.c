/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oidc/issuer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/oidc/documents.h"
#include "base/alloc.h"
#include "base/log.h"

/* Waiting for a fetch that began before the issuer had its new key gives another try. */
#define MAX_ATTEMPTS 3
/* Of an unsuccessful answer, for the log. */
#define SHOWN_BYTES 200

struct oidc_issuer {
    atomic_int n_refs;
    struct oidc_outside outside;
    struct arena *arena; /* of the texts, which stay */
    struct str url, discovery_url, ca_pem;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_fetching, is_queued;
    uint64_t n_fetches; /* that ended, well or not */
    struct oidc_keys *keys;
    int64_t fetched_us, age_us; /* of the keys; monotonic */
    int64_t bucket_us;          /* when the bucket will be full again */
    int64_t paused_until_us;

    /* Of whoever fetches, and nobody else. */
    char *jwks_uri; /* NULL: to be discovered */
    bool is_failing;
};

static int64_t now_us(const struct oidc_issuer *i)
{
    return i->outside.clock->monotonic_us(i->outside.clock);
}

struct oidc_issuer *oidc_issuer_ref(struct oidc_issuer *i)
{
    atomic_fetch_add_explicit(&i->n_refs, 1, memory_order_relaxed);
    return i;
}

void oidc_issuer_unref(struct oidc_issuer *i)
{
    if (!i || atomic_fetch_sub_explicit(&i->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    oidc_keys_unref(i->keys);
    mem_free(i->jwks_uri);
    pthread_mutex_destroy(&i->lock);
    pthread_cond_destroy(&i->changed);
    arena_free(i->arena);
    mem_free(i);
}

bool oidc_issuer_is(const struct oidc_issuer *i, const struct oidc_rules *rules)
{
    return str_eq(i->url, rules->issuer) && str_eq(i->discovery_url, rules->discovery_url) &&
           str_eq(i->ca_pem, rules->ca_pem);
}

/* ---- asking the issuer ----------------------------------------------------------------------- */

static int get(struct oidc_issuer *i, struct arena *a, struct str url, struct fetch_answer *ret,
               struct str *ret_error)
{
    static const struct str accept = STR("Accept: application/json");
    int r = fetch(i->outside.fetch, a,
                  &(struct fetch_request){.method = "GET",
                                          .url = url,
                                          .headers = &accept,
                                          .n_headers = 1,
                                          .ca_pem = i->ca_pem,
                                          .timeout_ms = OIDC_FETCH_TIMEOUT_MS,
                                          .max_bytes = OIDC_DOCUMENT_MAX_BYTES},
                  ret, ret_error);
    if (r < 0)
        return r;
    if (ret->status == 200)
        return 0;
    *ret_error =
        arena_printf(a, "oidc: get %.*s failed: %d %.*s", STR_ARG(url), ret->status,
                     STR_ARG(str_sub(ret->body, 0, MIN(ret->body.n, (size_t) SHOWN_BYTES))));
    return -EIO;
}

static int discover(struct oidc_issuer *i, struct arena *a, struct str *ret_error)
{
    struct fetch_answer answer = {0};
    struct str uri = STR_NONE;
    int r = get(i, a, i->discovery_url, &answer, ret_error);
    if (r == 0)
        r = oidc_discovery_parse(a, answer.body, i->url, &uri, ret_error);
    if (r == 0)
        i->jwks_uri = mem_strdup(uri.p);
    return r;
}

/* What the issuer says of how long its keys are good, within what we let it say. */
static int64_t age_of(struct str cache_control)
{
    struct str rest = cache_control, one = STR_NONE;
    int64_t seconds = 0;
    while (str_split(&rest, ',', &one)) {
        one = str_trim(one);
        static const struct str name = STR("max-age=");
        if (!str_starts_with(one, name) || str_to_i64(str_from(one, name.n), &seconds) < 0)
            continue;
        seconds = MAX(MIN(seconds, (int64_t) 86400), (int64_t) 0);
        return MAX(MIN(seconds * 1000000, OIDC_KEYS_MAX_AGE_US), OIDC_KEYS_MIN_AGE_US);
    }
    return OIDC_KEYS_AGE_US;
}

static int fetch_keys(struct oidc_issuer *i, struct arena *a, struct oidc_keys **ret_keys,
                      int64_t *ret_age_us, struct str *ret_error)
{
    struct fetch_answer answer = {0};
    int r = i->jwks_uri ? 0 : discover(i, a, ret_error);
    if (r < 0)
        return r;
    char *why = NULL;
    r = get(i, a, str_of(i->jwks_uri), &answer, ret_error);
    if (r == 0) {
        r = oidc_keys_parse(answer.body, ret_keys, &why);
        if (r < 0)
            *ret_error = arena_str(a, str_of(why));
        mem_free(why);
    }
    *ret_age_us = age_of(answer.cache_control);
    /* Perhaps they moved: look again next time. */
    if (r < 0)
        mem_free(TAKE(i->jwks_uri));
    return r;
}

/* A failure is worth one line, not one for each attempt. */
static void note_result(struct oidc_issuer *i, int r, struct str error, bool has_keys)
{
    if (r < 0 && !i->is_failing)
        log_warning(has_keys ? "cannot fetch keys of OIDC issuer, keeping those at hand"
                             : "cannot fetch keys of OIDC issuer, refusing its tokens",
                    LOG_STR("issuer", i->url), LOG_STR("error", error));
    else if (r == 0 && (i->is_failing || !has_keys))
        log_info("fetched keys of OIDC issuer", LOG_STR("issuer", i->url));
    i->is_failing = r < 0;
}

/* By whoever has set is_fetching. */
static void fetch_now(struct oidc_issuer *i)
{
    ARENA_AUTO a = arena_new();
    struct oidc_keys *keys = NULL;
    struct str error = STR_NONE;
    int64_t age_us = 0;
    int r = fetch_keys(i, a, &keys, &age_us, &error);
    pthread_mutex_lock(&i->lock);
    struct oidc_keys *old = r == 0 ? i->keys : NULL;
    note_result(i, r, error, i->keys != NULL);
    if (r == 0) {
        i->keys = keys;
        i->fetched_us = now_us(i);
        i->age_us = age_us;
    } else {
        i->paused_until_us = now_us(i) + OIDC_FETCH_PAUSE_US;
    }
    i->is_fetching = false;
    i->n_fetches++;
    pthread_cond_broadcast(&i->changed);
    pthread_mutex_unlock(&i->lock);
    oidc_keys_unref(old);
}

/* ---- when to ask, under the lock ------------------------------------------------------------- */

static bool may_fetch(const struct oidc_issuer *i)
{
    int64_t now = now_us(i);
    return !i->is_fetching && now >= i->paused_until_us &&
           i->bucket_us - now <= (OIDC_FETCH_BURST - 1) * OIDC_FETCH_INTERVAL_US;
}

static void begin_fetch(struct oidc_issuer *i)
{
    i->bucket_us = MAX(i->bucket_us, now_us(i)) + OIDC_FETCH_INTERVAL_US;
    i->is_fetching = true;
}

/* ---- in the background ----------------------------------------------------------------------- */

/* Begins only here: while the job waits for a thread, whoever has one need not wait for the job. */
static void fetch_job(void *arg)
{
    struct oidc_issuer *i = arg;
    pthread_mutex_lock(&i->lock);
    i->is_queued = false;
    bool begins = may_fetch(i);
    if (begins)
        begin_fetch(i);
    pthread_mutex_unlock(&i->lock);
    if (begins)
        fetch_now(i);
    oidc_issuer_unref(i);
}

static void fetch_in_background(struct oidc_issuer *i)
{
    if (!i->outside.workers)
        return;
    pthread_mutex_lock(&i->lock);
    bool begins = !i->is_queued && may_fetch(i);
    if (begins && workers_run(i->outside.workers, fetch_job, oidc_issuer_ref(i)) < 0) {
        oidc_issuer_unref(i); /* not the last one: the caller has its own */
        begins = false;
    }
    i->is_queued = i->is_queued || begins;
    pthread_mutex_unlock(&i->lock);
}

/* ---- for one who waits ----------------------------------------------------------------------- */

/* Returns when a fetch has ended after n_fetches had, or when there is none to wait for. */
static void fetch_blocking(struct oidc_issuer *i, uint64_t n_fetches)
{
    pthread_mutex_lock(&i->lock);
    while (i->is_fetching && i->n_fetches == n_fetches)
        pthread_cond_wait(&i->changed, &i->lock);
    bool begins = i->n_fetches == n_fetches && may_fetch(i);
    if (begins)
        begin_fetch(i);
    pthread_mutex_unlock(&i->lock);
    if (begins)
        fetch_now(i);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

struct view {
    struct oidc_keys *keys; /* with a reference; NULL: none yet */
    uint64_t n_fetches;
    bool can_get_newer, is_aging, is_too_old;
};

static struct view look(struct oidc_issuer *i)
{
    pthread_mutex_lock(&i->lock);
    int64_t age = now_us(i) - i->fetched_us;
    struct view v = {
        .keys = i->keys ? oidc_keys_ref(i->keys) : NULL,
        .n_fetches = i->n_fetches,
        .can_get_newer = i->is_fetching || may_fetch(i),
        .is_aging = age > i->age_us,
        .is_too_old = age > i->age_us + OIDC_KEYS_GRACE_US,
    };
    pthread_mutex_unlock(&i->lock);
    return v;
}

int oidc_issuer_verify(struct oidc_issuer *i, enum jws_algorithm alg, struct str kid,
                       const struct jws *t, bool may_block)
{
    for (int attempt = 1;; attempt++) {
        struct view v = look(i);
        bool can_wait = v.can_get_newer && attempt < MAX_ATTEMPTS;
        bool is_signed =
            v.keys && !(v.is_too_old && can_wait) && oidc_keys_verify(v.keys, alg, kid, t);
        oidc_keys_unref(v.keys);
        if (is_signed && v.is_aging)
            fetch_in_background(i);
        if (is_signed)
            return 0;
        if (!can_wait)
            return -EACCES;
        if (!may_block)
            return -EAGAIN;
        fetch_blocking(i, v.n_fetches);
    }
}

struct oidc_issuer *oidc_issuer_new(const struct oidc_outside *o, const struct oidc_rules *rules)
{
    struct oidc_issuer *i = NEW(struct oidc_issuer);
    atomic_init(&i->n_refs, 1);
    i->outside = *o;
    i->arena = arena_new();
    i->url = arena_str(i->arena, rules->issuer);
    i->discovery_url = arena_str(i->arena, rules->discovery_url);
    i->ca_pem = rules->ca_pem.p ? arena_str(i->arena, rules->ca_pem) : STR_NONE;
    pthread_mutex_init(&i->lock, NULL);
    pthread_cond_init(&i->changed, NULL);
    fetch_in_background(i);
    return i;
}
