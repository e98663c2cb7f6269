/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controllerconn/url.h"

/* Nothing is sent: connecting a datagram socket chooses the address. */
static struct str address_towards(struct arena *a, const struct addrinfo *to)
{
    struct sockaddr_storage own = {0};
    socklen_t n = sizeof(own);
    char text[INET6_ADDRSTRLEN] = "";
    const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return STR_NONE;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *) &own, &n) == 0) {
        const void *bytes = own.ss_family == AF_INET
                                ? (const void *) &((struct sockaddr_in *) &own)->sin_addr
                                : (const void *) &((struct sockaddr_in6 *) &own)->sin6_addr;
        (void) inet_ntop(own.ss_family, bytes, text, sizeof(text));
    }
    (void) close(fd);
    return text[0] ? arena_str(a, str_of(text)) : STR_NONE;
}

static void find_dns_servers(struct arena *a, struct fleet_network *n)
{
    struct __res_state state = {0};
    if (res_ninit(&state) != 0)
        return;
    n->dns_servers = ARENA_ARRAY(a, struct str, MAXNS);
    for (int i = 0; i < state.nscount && i < MAXNS; i++) {
        char text[INET_ADDRSTRLEN];
        if (state.nsaddr_list[i].sin_family == AF_INET &&
            inet_ntop(AF_INET, &state.nsaddr_list[i].sin_addr, text, sizeof(text)))
            n->dns_servers[n->n_dns_servers++] = arena_str(a, str_of(text));
    }
    res_nclose(&state);
}

int fleet_network_find(struct arena *a, struct str server, struct fleet_network *ret)
{
    struct uplink_url url;
    if (uplink_url_parse(arena_printf(a, "https://%.*s/", STR_ARG(server)), &url) < 0)
        return -EINVAL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(arena_strz(a, url.host), arena_printf(a, "%u", url.port).p, &hints, &found) !=
        0)
        return -EHOSTUNREACH;
    struct fleet_network n = {.address = address_towards(a, found)};
    freeaddrinfo(found);
    if (n.address.n == 0)
        return -EHOSTUNREACH;
    if (str_starts_with(n.address, STR("127.")))
        n.address = STR_NONE;
    find_dns_servers(a, &n);
    *ret = n;
    return 0;
}
