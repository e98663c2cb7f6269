/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address_counts.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"

#define N_BUCKETS 4096
#define IPV6_PREFIX_BYTES 8

struct address {
    struct address *next;
    uint64_t key;
    size_t n;
};

struct address_counts {
    pthread_mutex_t lock;
    struct address *buckets[N_BUCKETS];
};

uint64_t address_key(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *) a;
        return map_hash(str_range((const char *) &v4->sin_addr, sizeof(v4->sin_addr)));
    }
    if (a->ss_family != AF_INET6)
        return 0;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *) a)->sin6_addr;
    /* An IPv4 client of a dual-stack socket. */
    if (IN6_IS_ADDR_V4MAPPED(v6))
        return map_hash(str_range((const char *) &v6->s6_addr[12], sizeof(struct in_addr)));
    return map_hash(str_range((const char *) v6, IPV6_PREFIX_BYTES));
}

struct address_counts *address_counts_new(void)
{
    struct address_counts *c = NEW(struct address_counts);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void address_counts_free(struct address_counts *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < N_BUCKETS; i++)
        assert(!c->buckets[i]);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static struct address **find(struct address_counts *c, uint64_t key)
{
    struct address **at = &c->buckets[key % N_BUCKETS];
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

bool address_counts_add(struct address_counts *c, uint64_t key, size_t limit)
{
    pthread_mutex_lock(&c->lock);
    struct address **at = find(c, key);
    bool has_room = !*at || (*at)->n < limit;
    if (!*at) {
        *at = NEW(struct address);
        (*at)->key = key;
    }
    (*at)->n += has_room;
    pthread_mutex_unlock(&c->lock);
    return has_room;
}

void address_counts_remove(struct address_counts *c, uint64_t key)
{
    pthread_mutex_lock(&c->lock);
    struct address **at = find(c, key);
    struct address *a = *at;
    assert(a && a->n > 0);
    if (--a->n == 0) {
        *at = a->next;
        mem_free(a);
    }
    pthread_mutex_unlock(&c->lock);
}
