/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, who may connect, and the deadlines of those who have. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/loop.h"
#include "msrv/msrv_internal.h"

#define LISTEN_BACKLOG 256
/* Per readiness: the loop has other things to do, too. */
#define ACCEPT_MAX_PER_TURN 32
#define TIMER_MS 250

/* ---- the server ----------------------------------------------------------------------------- */

static void on_timer(void *arg);

struct msrv *msrv_new(const struct msrv_options *options)
{
    struct msrv *m = NEW(struct msrv);
    m->options = *options;
    m->options.diag_path = m->diag_path =
        options->diag_path ? mem_strdup(options->diag_path) : NULL;
    if (!m->options.exporter_address)
        m->options.exporter_address = "127.0.0.1";
    if (!m->options.exporter_port)
        m->options.exporter_port = MSRV_EXPORTER_PORT;
    m->n_refs = 1;
    list_init(&m->listeners);
    list_init(&m->connections);
    visitors_init(&m->visitors);
    m->timer = loop_timer_new(options->loop, on_timer, m);
    return m;
}

void msrv_unref(struct msrv *m)
{
    if (--m->n_refs > 0)
        return;
    visitors_done(&m->visitors);
    if (m->options.on_freed)
        m->options.on_freed(m->options.ctx);
    mem_free(m->diag_path);
    mem_free(m);
}

void msrv_free(struct msrv *m)
{
    if (!m)
        return;
    m->is_freed = true;
    LIST_FOR_EACH (&m->listeners, item)
        msrv_unlisten(CONTAINER_OF(item, struct msrv_listener, link));
    loop_timer_free(m->timer);
    msrv_unref(m);
}

void msrv_set_rate(struct msrv *m, const struct msrv_rate *rate)
{
    visitors_set_rate(&m->visitors, rate);
}

struct msrv_count msrv_count(const struct msrv *m)
{
    return m->count;
}

/* ---- deadlines ------------------------------------------------------------------------------ */

void msrv_start_timer(struct msrv *m)
{
    if (m->is_timer_on || m->is_freed)
        return;
    m->is_timer_on = true;
    loop_timer_start(m->timer, TIMER_MS, TIMER_MS);
}

static bool resume_listeners(struct msrv *m)
{
    bool is_any = false;
    LIST_FOR_EACH (&m->listeners, item) {
        struct msrv_listener *l = CONTAINER_OF(item, struct msrv_listener, link);
        is_any |= l->is_paused;
        if (l->is_paused)
            loop_fd_watch(l->watch, LOOP_READABLE);
        l->is_paused = false;
    }
    return is_any;
}

static void on_timer(void *arg)
{
    struct msrv *m = arg;
    int64_t now_ms = msrv_now_ms(m);
    LIST_FOR_EACH (&m->connections, item) {
        struct conn *c = CONTAINER_OF(item, struct conn, link);
        if (c->deadline_ms && now_ms >= c->deadline_ms)
            conn_on_deadline(c);
    }
    bool was_paused = resume_listeners(m);
    if (was_paused || !list_is_empty(&m->connections))
        return;
    m->is_timer_on = false;
    loop_timer_stop(m->timer);
}

/* ---- room ----------------------------------------------------------------------------------- */

/* The oldest connection that is no loss: of this address, or of any. */
static struct conn *find_idle(struct msrv *m, bool is_any_address, uint32_t address_key)
{
    LIST_FOR_EACH (&m->connections, item) {
        struct conn *c = CONTAINER_OF(item, struct conn, link);
        if ((is_any_address || c->address_key == address_key) && conn_is_idle(c))
            return c;
    }
    return NULL;
}

static size_t count_address(const struct msrv *m, uint32_t address_key)
{
    size_t n = 0;
    LIST_FOR_EACH (&m->connections, item)
        n += CONTAINER_OF(item, struct conn, link)->address_key == address_key;
    return n;
}

/* An application that holds many connections loses its own before it can take the place of others.
 */
static bool make_room(struct msrv *m, uint32_t address_key)
{
    bool is_full = m->count.n_connections >= MSRV_MAX_CONNECTIONS;
    if (!is_full && count_address(m, address_key) < MSRV_MAX_CONNECTIONS_PER_ADDRESS)
        return true;
    struct conn *c = find_idle(m, is_full, address_key);
    if (!c)
        return false;
    m->count.n_evicted++;
    conn_close(c);
    return true;
}

/* ---- listeners ------------------------------------------------------------------------------ */

static void welcome(struct msrv_listener *l, int fd, const struct sockaddr_in *from)
{
    char address[INET_ADDRSTRLEN];
    struct msrv *m = l->msrv;
    if (!inet_ntop(AF_INET, &from->sin_addr, address, sizeof(address)) ||
        !make_room(m, from->sin_addr.s_addr)) {
        close(fd);
        return;
    }
    m->count.n_accepted++;
    int on = 1;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn_open(l, fd, from->sin_addr.s_addr, address, ntohs(from->sin_port));
}

static void on_acceptable(void *arg, unsigned ready)
{
    (void) ready;
    struct msrv_listener *l = arg;
    for (int i = 0; i < ACCEPT_MAX_PER_TURN; i++) {
        struct sockaddr_in from = {0};
        socklen_t n = sizeof(from);
        int fd = accept4(l->fd, (struct sockaddr *) &from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            welcome(l, fd, &from);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EAGAIN)
            return;
        log_warning("cannot accept connections, retrying soon", LOG_ERRNO(-errno));
        l->is_paused = true;
        loop_fd_watch(l->watch, 0);
        msrv_start_timer(l->msrv);
        return;
    }
}

static int bind_interface(int fd, const char *interface)
{
    return interface ? setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
                                  (socklen_t) strlen(interface) + 1)
                     : 0;
}

static int open_socket(const struct sockaddr_in *at, const char *interface, int *ret_port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int on = 1;
    struct sockaddr_in bound = {0};
    socklen_t n = sizeof(bound);
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind_interface(fd, interface) < 0 ||
        bind(fd, (const struct sockaddr *) at, sizeof(*at)) < 0 || listen(fd, LISTEN_BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *) &bound, &n) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    *ret_port = ntohs(bound.sin_port);
    return fd;
}

int msrv_listen(struct msrv *m, const struct msrv_place *at, struct msrv_listener **ret)
{
    struct sockaddr_in socket_at = {.sin_family = AF_INET, .sin_port = htons((uint16_t) at->port)};
    if (at->port < 0 || at->port > UINT16_MAX ||
        inet_pton(AF_INET, at->address, &socket_at.sin_addr) != 1)
        return -EINVAL;
    int bound_port = 0;
    int fd = open_socket(&socket_at, at->interface, &bound_port);
    if (fd < 0)
        return fd;
    struct msrv_listener *l = NEW(struct msrv_listener);
    *l = (struct msrv_listener){.msrv = m, .fd = fd, .port = bound_port};
    l->watch = loop_fd_new(m->options.loop, fd, on_acceptable, l);
    if (!l->watch) {
        close(fd);
        mem_free(l);
        return -EPERM;
    }
    l->network = mem_strdup(at->network);
    loop_fd_watch(l->watch, LOOP_READABLE);
    list_append(&m->listeners, &l->link);
    m->n_refs++;
    *ret = l;
    return 0;
}

int msrv_listener_port(const struct msrv_listener *l)
{
    return l->port;
}

static void on_listener_closed(void *arg)
{
    struct msrv_listener *l = arg;
    close(l->fd);
    msrv_unref(l->msrv);
    mem_free(l->network);
    mem_free(l);
}

void msrv_unlisten(struct msrv_listener *l)
{
    if (!l)
        return;
    LIST_FOR_EACH (&l->msrv->connections, item) {
        struct conn *c = CONTAINER_OF(item, struct conn, link);
        if (c->listener == l)
            conn_close(c);
    }
    list_remove(&l->link);
    loop_fd_free(l->watch, on_listener_closed, l);
}
