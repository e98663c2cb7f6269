/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fairness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/login_failures.h"
#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"

#define N_CLASSES 3
#define N_SHARDS 64
#define N_BUCKETS 256 /* of a shard */
/* Users that came to rest are kept for the next ones. */
#define MAX_SPARES 32
#define CACHE_LINE_BYTES 64
#define RETRY_AFTER_S 1
#define USER_APISERVER "system:apiserver"

/* Whoever holds a place. Known by a hash that is keyed: two users of the same one would share a
 * share, and nobody can look for such a pair. */
struct fairness_user {
    struct fairness_user *next; /* of its bucket or the spares */
    uint64_t hash;
    size_t n_held[N_CLASSES]; /* under its shard's lock */
};

struct shard {
    pthread_mutex_t lock;
    struct fairness_user *buckets[N_BUCKETS];
    struct fairness_user *spares;
    size_t n_users, n_spares;
};

/* Every loop writes to it, so nothing else shares its line. */
struct class_count {
    atomic_size_t n_taken;
    atomic_int_fast64_t n_exempt;
    atomic_int_fast64_t n_rejected;
    char apart[CACHE_LINE_BYTES];
};

struct fairness {
    struct fairness_options options;
    size_t limits[N_CLASSES]; /* SIZE_MAX: none; of a class, but of one user where long-running */
    struct class_count classes[N_CLASSES];
    struct shard shards[N_SHARDS];
    struct fairness_user exempt; /* stands for all of them; counted in n_exempt alone */
    struct login_failures *failures;
    atomic_int_fast64_t n_login_failures;
};

static size_t limit_of(size_t option)
{
    return option ? option : SIZE_MAX;
}

struct fairness *fairness_new(const struct fairness_options *o)
{
    struct fairness *f = NEW(struct fairness);
    f->options = *o;
    f->limits[FAIR_READ] = limit_of(o->max_reads);
    f->limits[FAIR_WRITE] = limit_of(o->max_writes);
    f->limits[FAIR_LONG_RUNNING] = limit_of(o->max_long_running_per_user);
    /* Held for some tens of nanoseconds: to spin is cheaper than to sleep. */
    pthread_mutexattr_t adaptive;
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    for (size_t i = 0; i < N_SHARDS; i++)
        pthread_mutex_init(&f->shards[i].lock, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    f->failures = login_failures_new();
    return f;
}

static void free_users(struct fairness_user *first)
{
    while (first) {
        struct fairness_user *next = first->next;
        mem_free(first);
        first = next;
    }
}

void fairness_free(struct fairness *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < N_SHARDS; i++) {
        for (size_t k = 0; k < N_BUCKETS; k++)
            free_users(f->shards[i].buckets[k]);
        free_users(f->shards[i].spares);
        pthread_mutex_destroy(&f->shards[i].lock);
    }
    login_failures_free(f->failures);
    mem_free(f);
}

/* ---- users: there while they hold a place ------------------------------------------------- */

static struct shard *shard_of(struct fairness *f, uint64_t hash)
{
    return &f->shards[hash % N_SHARDS];
}

/* Where the user is, or where it would be added. */
static struct fairness_user **find(struct shard *s, uint64_t hash)
{
    struct fairness_user **at = &s->buckets[hash / N_SHARDS % N_BUCKETS];
    while (*at && (*at)->hash != hash)
        at = &(*at)->next;
    return at;
}

static struct fairness_user *add(struct shard *s, struct fairness_user **at, uint64_t hash)
{
    struct fairness_user *u = s->spares;
    if (u) {
        s->spares = u->next;
        s->n_spares--;
    } else {
        u = NEW(struct fairness_user);
    }
    *u = (struct fairness_user){.hash = hash};
    *at = u;
    s->n_users++;
    return u;
}

static void forget_if_at_rest(struct shard *s, struct fairness_user *u)
{
    for (size_t i = 0; i < N_CLASSES; i++)
        if (u->n_held[i])
            return;
    *find(s, u->hash) = u->next;
    s->n_users--;
    if (s->n_spares == MAX_SPARES) {
        mem_free(u);
        return;
    }
    u->next = s->spares;
    s->spares = u;
    s->n_spares++;
}

/* ---- places ------------------------------------------------------------------------------- */

/* A place of the class for a user who holds n_held: exact, whatever the other shards do meanwhile.
 */
static bool take_place(struct fairness *f, enum fairness_class class, size_t n_held)
{
    atomic_size_t *n_taken = &f->classes[class].n_taken;
    size_t limit = f->limits[class];
    if (class == FAIR_LONG_RUNNING) {
        if (n_held >= limit)
            return false;
        atomic_fetch_add_explicit(n_taken, 1, memory_order_relaxed);
        return true;
    }
    size_t n = atomic_load_explicit(n_taken, memory_order_relaxed);
    do {
        if (n >= limit || n_held >= limit - n)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(n_taken, &n, n + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static struct fairness_user *enter(struct fairness *f, struct shard *s, uint64_t hash,
                                   enum fairness_class class)
{
    struct fairness_user **at = find(s, hash);
    size_t n_held = *at ? (*at)->n_held[class] : 0;
    if ((!*at && s->n_users == FAIRNESS_MAX_USERS / N_SHARDS) || !take_place(f, class, n_held))
        return NULL;
    struct fairness_user *u = *at ? *at : add(s, at, hash);
    u->n_held[class]++;
    return u;
}

static bool is_exempt(const struct user *u)
{
    return user_has_group(u, STR(GROUP_MASTERS)) || str_is(u->name, USER_APISERVER);
}

static int reject(struct fairness *f, enum fairness_class class, struct status *st)
{
    atomic_fetch_add_explicit(&f->classes[class].n_rejected, 1, memory_order_relaxed);
    (void) status_fail(st, 429, "TooManyRequests", "Too many requests, please try again later.");
    st->has_details = true;
    st->retry_after_s = RETRY_AFTER_S;
    return -EAGAIN;
}

int fairness_enter(struct fairness *f, const struct user *u, enum fairness_class class,
                   struct fairness_place *ret_place, struct status *st)
{
    if (is_exempt(u)) {
        atomic_fetch_add_explicit(&f->classes[class].n_exempt, 1, memory_order_relaxed);
        *ret_place = (struct fairness_place){&f->exempt, class};
        return 0;
    }
    uint64_t hash = map_hash(u->name);
    struct shard *s = shard_of(f, hash);
    pthread_mutex_lock(&s->lock);
    struct fairness_user *user = enter(f, s, hash, class);
    pthread_mutex_unlock(&s->lock);
    if (!user)
        return reject(f, class, st);
    *ret_place = (struct fairness_place){user, class};
    return 0;
}

void fairness_leave(struct fairness *f, struct fairness_place *place)
{
    struct fairness_user *u = place->user;
    struct class_count *c = &f->classes[place->class];
    if (!u)
        return;
    *place = (struct fairness_place){0};
    if (u == &f->exempt) {
        atomic_fetch_sub_explicit(&c->n_exempt, 1, memory_order_relaxed);
        return;
    }
    struct shard *s = shard_of(f, u->hash);
    pthread_mutex_lock(&s->lock);
    u->n_held[c - f->classes]--;
    atomic_fetch_sub_explicit(&c->n_taken, 1, memory_order_relaxed);
    forget_if_at_rest(s, u);
    pthread_mutex_unlock(&s->lock);
}

/* ---- logins and numbers ------------------------------------------------------------------- */

int64_t fairness_login_failed(struct fairness *f, struct str address)
{
    const struct clock *clock = f->options.clock;
    atomic_fetch_add_explicit(&f->n_login_failures, 1, memory_order_relaxed);
    return login_failures_add(f->failures, address, clock->monotonic_us(clock) / 1000);
}

static int64_t n_in_flight(struct fairness *f, enum fairness_class class)
{
    return (int64_t) atomic_load_explicit(&f->classes[class].n_taken, memory_order_relaxed) +
           atomic_load_explicit(&f->classes[class].n_exempt, memory_order_relaxed);
}

static int64_t n_rejected(struct fairness *f, enum fairness_class class)
{
    return atomic_load_explicit(&f->classes[class].n_rejected, memory_order_relaxed);
}

void fairness_stats(struct fairness *f, struct fairness_stats *ret)
{
    *ret = (struct fairness_stats){
        .n_reads = n_in_flight(f, FAIR_READ),
        .n_writes = n_in_flight(f, FAIR_WRITE),
        .n_long_running = n_in_flight(f, FAIR_LONG_RUNNING),
        .n_rejected_reads = n_rejected(f, FAIR_READ),
        .n_rejected_writes = n_rejected(f, FAIR_WRITE),
        .n_rejected_long_running = n_rejected(f, FAIR_LONG_RUNNING),
        .n_login_failures = atomic_load_explicit(&f->n_login_failures, memory_order_relaxed),
    };
}
