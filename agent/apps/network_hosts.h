/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the hosts that access rules name: learned from the answers that applications get
 * from their resolvers, as they pass. */
#pragma once

#include "apps/network.h"
#include "loop/loop.h"

#define HOSTS_MAX 256          /* names of all rules */
#define HOSTS_MAX_ADDRESSES 64 /* of a name; the oldest goes for the newest */
#define HOSTS_NAME_BYTES 254   /* of DNS, with its NUL */

/* An answer to one question, host order. */
struct hosts_answer {
    char name[HOSTS_NAME_BYTES];
    uint32_t addresses[HOSTS_MAX_ADDRESSES];
    size_t n_addresses;
};

/* The name of a rule and all below it. */
struct hosts_host {
    char name[HOSTS_NAME_BYTES]; /* in small letters */
    uint32_t addresses[HOSTS_MAX_ADDRESSES];
    size_t n_addresses;
    bool is_named; /* by a rule; others are forgotten */
};

/* False: it is none, or has no address of IPv4. */
bool hosts_read_answer(struct str message, struct hosts_answer *ret);
/* The form that names are compared in; false: it is no host name. */
bool hosts_normal(struct str name, char ret[HOSTS_NAME_BYTES]);
/* "a.example.com" is of "example.com". */
bool hosts_is_of(const char *name, const char *host);
struct hosts {
    struct hosts_host *items;
    size_t n_items;
};
void hosts_done(struct hosts *h);
/* Those that the rules of these applications name, with what is known of them. */
void hosts_take(struct hosts *h, const struct network_app *const *apps, size_t n_apps);
/* The addresses of an answer that is about it; true: some were not known. */
bool hosts_learn_all(struct hosts_host *h, const struct hosts_answer *answer);

/* Sees every UDP packet of IPv4 from port 53 that this machine sends out of an interface. Takes
 * CAP_NET_RAW. */
struct hosts_listener;
typedef void hosts_on_answer(void *arg, unsigned interface, uint32_t source,
                             const struct hosts_answer *answer);
int hosts_listen(struct loop *loop, hosts_on_answer *on_answer, void *arg,
                 struct hosts_listener **ret);
/* NULL allowed. */
void hosts_listener_free(struct hosts_listener *l);
