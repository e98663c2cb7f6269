/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting connections on the first loop and handing each to the loop that has the fewest. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/address_counts.h"
#include "net/net_internal.h"

#define LISTEN_BACKLOG 4096
/* Per readiness: the loop has other things to do, too. */
#define ACCEPT_MAX_PER_TURN 64
/* Until we try again when the process or the machine has no descriptors left. */
#define ACCEPT_RETRY_MS 100
/* A peer that vanished without a word is found out after two minutes. */
#define KEEPALIVE_IDLE_SECONDS 60
#define KEEPALIVE_INTERVAL_SECONDS 15
#define KEEPALIVE_PROBES 4

struct listener {
    struct listener_options options;
    struct stream_home *homes; /* one per loop */
    int fd, port;
    struct loop_fd *watch;
    struct loop_timer *retry;
    bool is_closed;
    atomic_size_t n_connections;
    struct address_counts *addresses; /* NULL: they have no limit */
    atomic_int_fast64_t n_accepted, n_refused_addresses, n_evicted_handshakes;
    atomic_bool is_full; /* waits for a connection to go, or a handshake */
    atomic_size_t refs;  /* the owner's, one per connection, one per call under way */
};

/* A socket on its way to another loop. */
struct arrival {
    struct stream_home *home;
    int fd;
    struct sockaddr_storage from;
};

static struct loop *first_loop(const struct listener *l)
{
    return l->homes[0].loop;
}

static void listener_ref(struct listener *l)
{
    atomic_fetch_add(&l->refs, 1);
}

void listener_unref(struct listener *l)
{
    if (atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    for (size_t i = 0; i < l->options.n_loops; i++) {
        tls_context_free(l->homes[i].tls);
        mem_free(l->homes[i].read_buffer);
        stream_home_done(&l->homes[i]);
    }
    mem_free(l->homes);
    address_counts_free(l->addresses);
    mem_free(l);
}

/* ---- back-pressure -------------------------------------------------------------------------- */

static void resume_accepting(struct listener *l)
{
    if (!l->is_closed)
        loop_fd_watch(l->watch, LOOP_READABLE);
}

static bool can_shake_hands(const struct listener *l, const struct stream_home *home)
{
    return l->options.max_handshakes == 0 ||
           atomic_load(&home->n_handshakes) < l->options.max_handshakes;
}

static bool has_handshake_room(const struct listener *l)
{
    for (size_t i = 0; i < l->options.n_loops; i++)
        if (can_shake_hands(l, &l->homes[i]))
            return true;
    return false;
}

static bool has_room(const struct listener *l)
{
    return (l->options.max_connections == 0 ||
            atomic_load(&l->n_connections) < l->options.max_connections) &&
           has_handshake_room(l);
}

static void on_room(void *arg)
{
    struct listener *l = arg;
    resume_accepting(l);
    listener_unref(l);
}

static void tell_room(struct listener *l)
{
    if (!atomic_exchange(&l->is_full, false))
        return;
    listener_ref(l);
    loop_post(first_loop(l), on_room, l);
}

void listener_handshake_gone(struct stream_home *home)
{
    atomic_fetch_sub(&home->n_handshakes, 1);
    tell_room(home->listener);
}

void listener_connection_gone(struct stream_home *home, uint64_t key)
{
    struct listener *l = home->listener;
    if (l->addresses)
        address_counts_remove(l->addresses, key);
    atomic_fetch_sub(&home->n_connections, 1);
    atomic_fetch_sub(&l->n_connections, 1);
    tell_room(l);
}

/* False: accepting has stopped until there is room. */
static bool wait_for_room(struct listener *l)
{
    if (has_room(l))
        return true;
    atomic_store(&l->is_full, true);
    /* One may have gone just before it could see the flag. */
    if (has_room(l) && atomic_exchange(&l->is_full, false))
        return true;
    loop_fd_watch(l->watch, 0);
    if (!has_handshake_room(l))
        loop_timer_start(l->retry, ACCEPT_RETRY_MS, /* repeat_ms= */ 0);
    return false;
}

static void on_evict(void *arg)
{
    struct stream_home *home = arg;
    struct listener *l = home->listener;
    atomic_fetch_add(&l->n_evicted_handshakes, (int64_t) handshake_evict(home));
    listener_unref(l);
}

static void on_retry(void *arg)
{
    struct listener *l = arg;
    for (size_t i = 0; !has_handshake_room(l) && i < l->options.n_loops; i++) {
        listener_ref(l);
        loop_post(l->homes[i].loop, on_evict, &l->homes[i]);
    }
    resume_accepting(l);
}

/* ---- accepting ------------------------------------------------------------------------------ */

/* Of those that have room for a handshake, as one has. */
static struct stream_home *least_loaded_home(struct listener *l)
{
    struct stream_home *best = &l->homes[0];
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < l->options.n_loops; i++) {
        struct stream_home *home = &l->homes[i];
        size_t n = atomic_load(&home->n_connections);
        if (n < fewest && can_shake_hands(l, home)) {
            best = home;
            fewest = n;
        }
    }
    return best;
}

static void on_arrival(void *arg)
{
    struct arrival *a = arg;
    stream_start(a->home, a->fd, &a->from);
    mem_free(a);
}

static void hand_over(struct listener *l, int fd, const struct sockaddr_storage *from)
{
    struct stream_home *home = least_loaded_home(l);
    atomic_fetch_add(&home->n_connections, 1);
    atomic_fetch_add(&home->n_handshakes, 1);
    atomic_fetch_add(&l->n_connections, 1);
    listener_ref(l);
    if (home->loop == first_loop(l)) {
        stream_start(home, fd, from);
        return;
    }
    struct arrival *a = NEW(struct arrival);
    *a = (struct arrival){home, fd, *from};
    loop_post(home->loop, on_arrival, a);
}

static int accept_one(struct listener *l)
{
    struct sockaddr_storage from = {0};
    socklen_t n = sizeof(from);
    int fd = accept4(l->fd, (struct sockaddr *) &from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    atomic_fetch_add_explicit(&l->n_accepted, 1, memory_order_relaxed);
    if (l->addresses && !address_counts_add(l->addresses, address_key(&from),
                                            l->options.max_connections_per_address)) {
        atomic_fetch_add_explicit(&l->n_refused_addresses, 1, memory_order_relaxed);
        (void) close(fd);
        return 0;
    }
    hand_over(l, fd, &from);
    return 0;
}

static void on_acceptable(void *arg, unsigned ready)
{
    (void) ready;
    struct listener *l = arg;
    for (int i = 0; i < ACCEPT_MAX_PER_TURN && !l->is_closed && wait_for_room(l); i++) {
        switch (accept_one(l)) {
        case 0:
        case -EINTR:
        case -ECONNABORTED: /* it went away in the queue */
        case -EPROTO:
        case -EPERM:
            break;
        case -EAGAIN:
            return;
        default:
            /* No descriptors or memory: the connection stays in the queue and the poll would report
             * it without end. */
            loop_fd_watch(l->watch, 0);
            loop_timer_start(l->retry, ACCEPT_RETRY_MS, /* repeat_ms= */ 0);
            return;
        }
    }
}

/* ---- opening and closing -------------------------------------------------------------------- */

static bool set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/* Linux hands these on to what is accepted, which saves as many calls per connection. */
static bool set_options(int fd)
{
    return set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) &&
           set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
           set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
           set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS) &&
           set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SECONDS) &&
           set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

static int bound_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof(at);
    if (getsockname(fd, (struct sockaddr *) &at, &n) < 0)
        return -errno;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &at)->sin6_port
                                          : ((struct sockaddr_in *) &at)->sin_port);
}

static int open_at(const struct addrinfo *at, int *ret_fd)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* "::" serves IPv4 as well, whatever the machine's default. */
    if (!set_options(fd) ||
        (at->ai_family == AF_INET6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)) ||
        bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        int r = -errno;
        (void) close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

static int open_socket(const struct listener_options *o, int *ret_fd)
{
    char port[16];
    (void) snprintf(port, sizeof(port), "%d", o->port);
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *at = NULL;
    if (o->port < 0 || o->port > UINT16_MAX || getaddrinfo(o->address, port, &hints, &at) != 0)
        return -EINVAL;
    int r = open_at(at, ret_fd);
    freeaddrinfo(at);
    return r;
}

static int fail(const struct listener_options *o, int r, char **ret_error)
{
    BUF_AUTO text = {0};
    bool is_v6 = strchr(o->address, ':');
    buf_printf(&text, is_v6 ? "listen on [%s]:%d: %s" : "listen on %s:%d: %s", o->address, o->port,
               r == -EINVAL ? "not a numeric address and port" : strerrordesc_np(-r));
    *ret_error = buf_take(&text);
    return r;
}

static void make_homes(struct listener *l)
{
    size_t n = l->options.n_loops;
    l->homes = mem_zalloc(n * sizeof(*l->homes));
    for (size_t i = 0; i < n; i++) {
        struct stream_home *home = &l->homes[i];
        home->listener = l;
        home->options = &l->options;
        home->loop = l->options.loops[i];
        home->tls = tls_context_new(l->options.tls);
        stream_home_init(home);
    }
}

int listener_new(const struct listener_options *o, struct listener **ret_listener, char **ret_error)
{
    int fd = -1;
    int r = open_socket(o, &fd);
    if (r < 0)
        return fail(o, r, ret_error);
    /* OpenSSL writes with write(2): a peer that has gone would otherwise end the process. */
    (void) signal(SIGPIPE, SIG_IGN);
    struct listener *l = NEW(struct listener);
    l->options = *o;
    l->fd = fd;
    l->port = bound_port(fd);
    atomic_init(&l->refs, 1);
    make_homes(l);
    if (o->max_connections_per_address)
        l->addresses = address_counts_new();
    l->watch = loop_fd_new(first_loop(l), fd, on_acceptable, l);
    if (!l->watch) {
        (void) close(fd);
        listener_unref(l);
        return fail(o, -EMFILE, ret_error);
    }
    l->retry = loop_timer_new(first_loop(l), on_retry, l);
    loop_fd_watch(l->watch, LOOP_READABLE);
    *ret_listener = l;
    return 0;
}

int listener_port(const struct listener *l)
{
    return l->port;
}

size_t listener_connections(const struct listener *l)
{
    return atomic_load(&l->n_connections);
}

void listener_stats(const struct listener *l, struct listener_stats *ret)
{
    *ret = (struct listener_stats){
        .n_accepted = atomic_load_explicit(&l->n_accepted, memory_order_relaxed),
        .n_refused_addresses = atomic_load_explicit(&l->n_refused_addresses, memory_order_relaxed),
        .n_evicted_handshakes =
            atomic_load_explicit(&l->n_evicted_handshakes, memory_order_relaxed),
    };
    for (size_t i = 0; i < l->options.n_loops; i++)
        ret->n_handshake_errors +=
            atomic_load_explicit(&l->homes[i].n_handshake_errors, memory_order_relaxed);
}

static void on_socket_released(void *arg)
{
    struct listener *l = arg;
    (void) close(l->fd);
    listener_unref(l);
}

void listener_close(struct listener *l)
{
    if (l->is_closed)
        return;
    l->is_closed = true;
    listener_ref(l);
    loop_timer_free(l->retry);
    loop_fd_free(l->watch, on_socket_released, l);
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    listener_close(l);
    listener_unref(l);
}
