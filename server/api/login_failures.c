/* SPDX-License-Identifier: Apache-2.0 */
#include "api/login_failures.h"

#include <arpa/inet.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"

#define N_BUCKETS 8192
#define IPV6_PREFIX_BYTES 8

/* Taken in order of address; then the quietest is used again. */
struct address {
    struct list by_age;
    struct list by_key; /* of its bucket */
    uint64_t key;
    int64_t last_ms;
    unsigned n_failures;
};

struct login_failures {
    pthread_mutex_t lock;
    struct list by_age; /* the quietest first */
    struct list buckets[N_BUCKETS];
    struct address addresses[LOGIN_FAILURES_MAX_ADDRESSES];
    size_t n_used;
};

struct login_failures *login_failures_new(void)
{
    struct login_failures *l = NEW(struct login_failures);
    pthread_mutex_init(&l->lock, NULL);
    list_init(&l->by_age);
    for (size_t i = 0; i < N_BUCKETS; i++)
        list_init(&l->buckets[i]);
    return l;
}

void login_failures_free(struct login_failures *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

/* Two addresses of one key would share their delay; nobody can look for such a pair, the hash is
 * keyed. */
static uint64_t key_of(struct str address)
{
    char text[INET6_ADDRSTRLEN] = "";
    unsigned char v6[16];
    if (address.n < sizeof(text)) {
        memcpy(text, address.p, address.n);
        if (inet_pton(AF_INET6, text, v6) == 1)
            return map_hash(str_range((const char *) v6, IPV6_PREFIX_BYTES));
    }
    return map_hash(address);
}

static struct address *find(struct login_failures *l, uint64_t key)
{
    LIST_FOR_EACH (&l->buckets[key % N_BUCKETS], item) {
        struct address *a = CONTAINER_OF(item, struct address, by_key);
        if (a->key == key)
            return a;
    }
    return NULL;
}

static struct address *take_free(struct login_failures *l)
{
    if (l->n_used < LOGIN_FAILURES_MAX_ADDRESSES) {
        struct address *a = &l->addresses[l->n_used++];
        list_init(&a->by_age);
        list_init(&a->by_key);
        return a;
    }
    return CONTAINER_OF(l->by_age.next, struct address, by_age);
}

static struct address *remember(struct login_failures *l, uint64_t key)
{
    struct address *a = take_free(l);
    list_remove(&a->by_key);
    list_append(&l->buckets[key % N_BUCKETS], &a->by_key);
    a->key = key;
    a->n_failures = 0;
    return a;
}

/* The n-th, counted from 1. */
static int64_t delay_ms(unsigned n)
{
    int64_t delay = n > 1 ? LOGIN_FAILURES_FIRST_DELAY_MS : 0;
    for (; n > 2 && delay < LOGIN_FAILURES_MAX_DELAY_MS; n--)
        delay *= 2;
    return MIN(delay, (int64_t) LOGIN_FAILURES_MAX_DELAY_MS);
}

int64_t login_failures_add(struct login_failures *l, struct str address, int64_t now_ms)
{
    uint64_t key = key_of(address);
    pthread_mutex_lock(&l->lock);
    struct address *a = find(l, key);
    if (!a)
        a = remember(l, key);
    else if (now_ms - a->last_ms >= LOGIN_FAILURES_FORGET_MS)
        a->n_failures = 0;
    a->last_ms = now_ms;
    a->n_failures += a->n_failures < UINT32_MAX;
    list_remove(&a->by_age);
    list_append(&l->by_age, &a->by_age);
    int64_t delay = delay_ms(a->n_failures);
    pthread_mutex_unlock(&l->lock);
    return delay;
}
