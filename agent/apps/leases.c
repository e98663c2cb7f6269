/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses for virtual machines: on the bridge of each network instance somebody answers DHCP with
 * the address that the agent has given the application. Containers get theirs from outside. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/apps_internal.h"
#include "apps/dhcp.h"
#include "base/alloc.h"
#include "base/log.h"

#define SERVER_PORT 67
#define CLIENT_PORT 68
#define TURN_PACKETS 32

struct desk {
    struct list link;
    struct apps *apps;
    char *network;
    int fd;
    struct loop_fd *watch;
};

/* ---- whose address it is --------------------------------------------------------------------- */

static const struct adapter *find_adapter(const struct apps *a, const char *network,
                                          const unsigned char mac[6],
                                          const struct application **ret_app)
{
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        for (size_t i = 0; p->network != CLOSED && p->is_machine && i < p->n_adapters; i++) {
            const struct adapter *d = &p->adapters[i];
            if (strcmp(d->network, network) == 0 && memcmp(d->mac, mac, sizeof(d->mac)) == 0) {
                *ret_app = p;
                return d;
            }
        }
    }
    return NULL;
}

static bool find_lease(struct arena *arena, const struct desk *k, const struct dhcp_request *q,
                       struct dhcp_lease *ret)
{
    const struct application *p = NULL;
    const struct adapter *d = find_adapter(k->apps, k->network, q->mac, &p);
    const struct network *n = network_find(k->apps, str_of(k->network));
    if (!d || !d->address || !n || !n->subnet.prefix_bits)
        return false;
    const struct json *config = topics_get(arena, k->apps, IN_NETWORK, str_of(k->network));
    struct json resolvers = network_resolvers(arena, k->apps, str_of(k->network));
    *ret = (struct dhcp_lease){
        .address = d->address,
        .gateway = n->subnet.gateway,
        .prefix_bits = n->subnet.prefix_bits,
        .mtu = n->mtu,
        .host_name = str_of(p->id),
        .domain = json_get_str(config, STR("DomainName")),
    };
    JSON_FOR_EACH_ITEM (&resolvers, item) {
        struct in_addr in;
        if (ret->n_resolvers < DHCP_MAX_RESOLVERS &&
            inet_pton(AF_INET, arena_strz(arena, json_str(item)), &in) == 1)
            ret->resolvers[ret->n_resolvers++] = ntohl(in.s_addr);
    }
    return true;
}

/* ---- packets --------------------------------------------------------------------------------- */

/* To all, for a client that has no address yet hears nothing else from a socket like this. */
static void answer(struct desk *k, struct str packet)
{
    ARENA_AUTO arena = arena_new_with(1024);
    BUF_AUTO reply = {0};
    struct dhcp_request q;
    struct dhcp_lease lease;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(CLIENT_PORT)};
    if (dhcp_read(packet, &q) < 0 || !find_lease(arena, k, &q, &lease) ||
        !dhcp_answer(&q, &lease, &reply))
        return;
    bool is_known = q.client == lease.address;
    to.sin_addr.s_addr = is_known ? htonl(q.client) : INADDR_BROADCAST;
    if (sendto(k->fd, reply.p, reply.n, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) &to,
               sizeof(to)) < 0)
        log_debug("an address cannot be told", LOG_TEXT("network", k->network), LOG_ERRNO(-errno));
}

static void on_ready(void *arg, unsigned ready)
{
    (void) ready;
    struct desk *k = arg;
    char packet[DHCP_MAX_BYTES];
    for (int i = 0; i < TURN_PACKETS; i++) {
        ssize_t n = recv(k->fd, packet, sizeof(packet), MSG_DONTWAIT);
        if (n <= 0)
            return;
        answer(k, str_range(packet, (size_t) n));
    }
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int open_socket(const char *interface)
{
    static const int on = 1;
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(SERVER_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    bool is_open = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
                              (socklen_t) strlen(interface)) == 0 &&
                   setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                   setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) == 0 &&
                   bind(fd, (const struct sockaddr *) &any, sizeof(any)) == 0;
    if (is_open)
        return fd;
    int e = -errno;
    (void) close(fd);
    return e;
}

static void on_closed(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

static void desk_free(struct desk *k)
{
    list_remove(&k->link);
    loop_fd_free(k->watch, on_closed, (void *) (intptr_t) k->fd);
    mem_free(k->network);
    mem_free(k);
}

void leases_close(struct apps *a, const char *network)
{
    LIST_FOR_EACH (&a->desks, item) {
        struct desk *k = CONTAINER_OF(item, struct desk, link);
        if (strcmp(k->network, network) == 0)
            desk_free(k);
    }
}

void leases_open(struct apps *a, const char *network, const char *interface)
{
    leases_close(a, network); /* the bridge may be another of the same name */
    int fd = open_socket(interface);
    if (fd < 0) {
        log_warning("virtual machines get no addresses", LOG_TEXT("network", network),
                    LOG_ERRNO(fd));
        return;
    }
    struct desk *k = NEW(struct desk);
    *k = (struct desk){.apps = a, .network = mem_strdup(network), .fd = fd};
    k->watch = loop_fd_new(a->node->loop, fd, on_ready, k);
    list_append(&a->desks, &k->link);
    loop_fd_watch(k->watch, LOOP_READABLE);
}

void leases_free(struct apps *a)
{
    LIST_FOR_EACH (&a->desks, item)
        desk_free(CONTAINER_OF(item, struct desk, link));
}
