/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/lookup.h"

#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"

/* Of one server; c-ares then asks the next, and doubles it on the second round. */
#define SERVER_TIMEOUT_MS 2000
#define SERVER_TRIES 2

struct socket_watch {
    struct list link;
    struct uplink_lookup *lookup;
    struct loop_fd *watch;
    int fd;
};

struct uplink_lookup {
    struct loop *loop;
    ares_channel channel;
    bool has_channel, is_cancelled;
    struct list sockets;
    struct loop_timer *timer;
    struct loop_deferred finish; /* a channel must not be destroyed in its own callback */
    struct buf addresses, error;
    void (*on_done)(void *arg, struct str addresses, struct str error);
    void *arg;
};

static void free_lookup(struct uplink_lookup *l)
{
    l->is_cancelled = true; /* destroying the channel ends its query with a callback */
    if (l->has_channel)
        ares_destroy(l->channel);
    LIST_FOR_EACH (&l->sockets, item) {
        struct socket_watch *s = CONTAINER_OF(item, struct socket_watch, link);
        loop_fd_free(s->watch, NULL, NULL);
        mem_free(s);
    }
    loop_undefer(l->loop, &l->finish);
    loop_timer_free(l->timer);
    buf_done(&l->addresses);
    buf_done(&l->error);
    mem_free(l);
}

static void on_finish(struct loop_deferred *d)
{
    struct uplink_lookup *l = CONTAINER_OF(d, struct uplink_lookup, finish);
    if (l->addresses.n == 0 && l->error.n == 0)
        buf_append_str(&l->error, STR("no suitable address"));
    l->on_done(l->arg, buf_str(&l->addresses), buf_str(&l->error));
    free_lookup(l);
}

/* ---- c-ares on the loop -------------------------------------------------------------------- */

static void arm_timer(struct uplink_lookup *l)
{
    struct timeval at;
    if (!ares_timeout(l->channel, NULL, &at)) {
        loop_timer_stop(l->timer);
        return;
    }
    loop_timer_start_real(l->timer, at.tv_sec * 1000 + at.tv_usec / 1000 + 1, /* repeat_ms= */ 0);
}

static void on_timeout(void *arg)
{
    struct uplink_lookup *l = arg;
    ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    arm_timer(l);
}

static void on_ready(void *arg, unsigned ready)
{
    struct socket_watch *s = arg;
    struct uplink_lookup *l = s->lookup; /* the watch may go meanwhile, the lookup only later */
    const int fd = s->fd;
    ares_process_fd(l->channel, ready & LOOP_READABLE ? fd : ARES_SOCKET_BAD,
                    ready & LOOP_WRITABLE ? fd : ARES_SOCKET_BAD);
    arm_timer(l);
}

static struct socket_watch *find_socket(struct uplink_lookup *l, int fd)
{
    LIST_FOR_EACH (&l->sockets, item) {
        struct socket_watch *s = CONTAINER_OF(item, struct socket_watch, link);
        if (s->fd == fd)
            return s;
    }
    return NULL;
}

static void on_socket_state(void *data, ares_socket_t fd, int is_read, int is_written)
{
    struct uplink_lookup *l = data;
    struct socket_watch *s = find_socket(l, fd);
    const unsigned mask =
        (is_read ? LOOP_READABLE : 0U) | (is_written ? (unsigned) LOOP_WRITABLE : 0U);
    if (!s && mask) {
        s = NEW(struct socket_watch);
        s->lookup = l;
        s->fd = fd;
        s->watch = loop_fd_new(l->loop, fd, on_ready, s);
        list_append(&l->sockets, &s->link);
    }
    if (!s)
        return;
    if (mask && s->watch) {
        loop_fd_watch(s->watch, mask);
        return;
    }
    loop_fd_free(s->watch, NULL, NULL);
    list_remove(&s->link);
    mem_free(s);
}

/* ---- queries ------------------------------------------------------------------------------- */

static void add_address(struct uplink_lookup *l, const struct ares_addrinfo_node *node)
{
    char text[INET6_ADDRSTRLEN];
    const void *bytes =
        node->ai_family == AF_INET
            ? (const void *) &((const struct sockaddr_in *) (void *) node->ai_addr)->sin_addr
            : (const void *) &((const struct sockaddr_in6 *) (void *) node->ai_addr)->sin6_addr;
    if (!inet_ntop(node->ai_family, bytes, text, sizeof(text)))
        return;
    if (l->addresses.n > 0)
        buf_append_char(&l->addresses, ',');
    buf_printf(&l->addresses, node->ai_family == AF_INET ? "%s" : "[%s]", text);
}

static void on_answer(void *arg, int status, int n_timeouts, struct ares_addrinfo *info)
{
    struct uplink_lookup *l = arg;
    (void) n_timeouts;
    if (!l->is_cancelled && status != ARES_SUCCESS)
        buf_append_str(&l->error, str_of(ares_strerror(status)));
    size_t n = 0;
    for (struct ares_addrinfo_node *node = info ? info->nodes : NULL;
         node && n < UPLINK_LOOKUP_MAX_ADDRESSES; node = node->ai_next, n++)
        if (node->ai_family == AF_INET || node->ai_family == AF_INET6)
            add_address(l, node);
    if (info)
        ares_freeaddrinfo(info);
    if (!l->is_cancelled)
        loop_defer(l->loop, &l->finish);
}

/* 0 when there is none, or it is no address. */
static int bind_source(struct uplink_lookup *l, struct str source)
{
    char z[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    if (source.n == 0 || source.n >= sizeof(z))
        return AF_UNSPEC;
    memcpy(z, source.p, source.n);
    z[source.n] = 0;
    if (inet_pton(AF_INET, z, &v4) == 1) {
        ares_set_local_ip4(l->channel, ntohl(v4.s_addr));
        return AF_INET;
    }
    if (inet_pton(AF_INET6, z, &v6) != 1)
        return AF_UNSPEC;
    ares_set_local_ip6(l->channel, v6.s6_addr);
    return AF_INET6;
}

static int open_channel(struct uplink_lookup *l, const struct uplink_port *port)
{
    char lookups[] = "fb"; /* the hosts file, then DNS */
    struct ares_options o = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                             .timeout = SERVER_TIMEOUT_MS,
                             .tries = SERVER_TRIES,
                             .lookups = lookups,
                             .sock_state_cb = on_socket_state,
                             .sock_state_cb_data = l};
    if (ares_init_options(&l->channel, &o,
                          ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                              ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
        return -ENOMEM;
    l->has_channel = true;
    BUF_AUTO servers = {0};
    for (size_t i = 0; i < port->n_dns_servers; i++)
        buf_printf(&servers, "%s%.*s", i ? "," : "", STR_ARG(port->dns_servers[i]));
    if (ares_set_servers_ports_csv(l->channel, servers.p) != ARES_SUCCESS)
        return -EINVAL;
    if (port->binds_device) {
        BUF_AUTO name = {0};
        buf_append_str(&name, port->name);
        ares_set_local_dev(l->channel, name.p);
    }
    return 0;
}

static void ask(struct uplink_lookup *l, const struct uplink_lookup_query *q)
{
    if (q->port->n_dns_servers == 0) {
        buf_append_str(&l->error, STR("no DNS server"));
    } else if (open_channel(l, q->port) < 0) {
        buf_append_str(&l->error, STR("the port's DNS servers are no addresses"));
    } else {
        const struct ares_addrinfo_hints hints = {.ai_family = bind_source(l, q->source),
                                                  .ai_socktype = SOCK_STREAM,
                                                  .ai_flags = ARES_AI_NOSORT};
        BUF_AUTO host = {0};
        buf_append_str(&host, q->host);
        ares_getaddrinfo(l->channel, host.p, NULL, &hints, on_answer, l);
        arm_timer(l);
        return;
    }
    loop_defer(l->loop, &l->finish);
}

struct uplink_lookup *uplink_lookup_start(struct loop *loop, const struct uplink_lookup_query *q,
                                          void (*on_done)(void *arg, struct str addresses,
                                                          struct str error),
                                          void *arg)
{
    struct uplink_lookup *l = NEW(struct uplink_lookup);
    l->loop = loop;
    l->on_done = on_done;
    l->arg = arg;
    l->finish.fn = on_finish;
    list_init(&l->sockets);
    l->timer = loop_timer_new(loop, on_timeout, l);
    ask(l, q);
    return l;
}

void uplink_lookup_cancel(struct uplink_lookup *l)
{
    if (l)
        free_lookup(l);
}
