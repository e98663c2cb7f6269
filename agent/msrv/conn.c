/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: one request, one answer, the end. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "loop/loop.h"
#include "msrv/msrv_internal.h"

#define RECEIVE_BYTES ((size_t) 16 * 1024)

static void set_deadline(struct conn *c, int64_t after_ms)
{
    c->deadline_ms = msrv_now_ms(c->msrv) + after_ms;
    c->n_moved = 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void on_watch_closed(void *arg)
{
    struct conn *c = arg;
    close(c->fd);
    if (c->file >= 0)
        close(c->file);
    exchange_done(&c->exchange);
    buf_done(&c->out);
    msrv_unref(c->msrv);
    mem_free(c);
}

/* What a worker has is let go when it gives it back. */
static void release(struct conn *c)
{
    proxy_free(TAKE(c->proxy));
    loop_fd_free(TAKE(c->watch), on_watch_closed, c);
}

void conn_close(struct conn *c)
{
    if (c->state == CONN_CLOSING)
        return;
    c->state = CONN_CLOSING;
    list_remove(&c->link);
    c->msrv->count.n_connections--;
    loop_fd_watch(c->watch, 0);
    if (!c->is_at_work)
        release(c);
}

bool conn_is_idle(const struct conn *c)
{
    return c->state == CONN_READING || c->state == CONN_LINGERING;
}

/* Sent, but not taken by the peer. */
static bool has_untaken(const struct conn *c)
{
    int n = 0;
    return ioctl(c->fd, SIOCOUTQ, &n) == 0 && n > 0;
}

/* What the kernel still holds for a peer that does not take it goes with the connection. */
static void close_for_good(struct conn *c)
{
    struct linger at_once = {.l_onoff = 1};
    if (has_untaken(c))
        (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    conn_close(c);
}

void conn_on_deadline(struct conn *c)
{
    if (c->state == CONN_LINGERING && !c->is_reprieved && has_untaken(c)) {
        c->is_reprieved = true;
        set_deadline(c, MSRV_WRITE_TIMEOUT_MS);
        return;
    }
    if (c->state != CONN_LINGERING)
        c->msrv->count.n_timeouts++;
    if (c->proxy && proxy_give_up(c->proxy)) {
        proxy_free(TAKE(c->proxy));
        conn_answer(c);
        return;
    }
    close_for_good(c);
}

/* The end of our side is told; closing at once would have the kernel take the answer back when
 * something of the request is unread. */
static void linger(struct conn *c)
{
    c->msrv->count.n_answered++;
    c->state = CONN_LINGERING;
    set_deadline(c, MSRV_LINGER_MS);
    (void) shutdown(c->fd, SHUT_WR);
    loop_fd_watch(c->watch, LOOP_READABLE);
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct part *current_part(const struct conn *c)
{
    return &c->exchange.request.answer.parts[c->part];
}

static int open_part(struct conn *c, const struct part *p)
{
    if (c->file < 0)
        c->file = open(p->path, O_RDONLY | O_CLOEXEC);
    return c->file < 0 ? -errno : 0;
}

/* On a worker. A file that has become shorter than was said ends the connection. */
static int read_part(struct conn *c)
{
    const struct part *p = current_part(c);
    int error = open_part(c, p);
    if (error < 0)
        return error;
    size_t n_want = (size_t) MIN(p->length - c->part_at, (uint64_t) CONN_CHUNK_BYTES);
    char *to = buf_reserve(&c->out, n_want);
    ssize_t n = 0;
    do {
        n = pread(c->file, to, n_want, (off_t) (p->offset + c->part_at));
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ENODATA;
    if (p->crc)
        *p->crc = (uint32_t) crc32(*p->crc, (const Bytef *) to, (uInt) n);
    c->out.n += (size_t) n;
    c->part_at += (uint64_t) n;
    return 0;
}

/* ---- workers -------------------------------------------------------------------------------- */

/* They do not look at the state, which is the loop's. */
static void work_on_answer(void *arg)
{
    struct conn *c = arg;
    exchange_work(&c->exchange);
}

static void work_on_part(void *arg)
{
    struct conn *c = arg;
    c->work_error = read_part(c);
}

static void on_worked(void *arg)
{
    struct conn *c = arg;
    c->is_at_work = false;
    if (c->state == CONN_CLOSING) {
        release(c);
        return;
    }
    if (c->state == CONN_WORKING) {
        exchange_finish(&c->exchange);
        conn_answer(c);
        return;
    }
    if (c->work_error < 0) {
        conn_close(c);
        return;
    }
    set_deadline(c, MSRV_WRITE_TIMEOUT_MS);
    conn_pump(c);
}

/* No deadline: what the device does slowly is not the application's fault. */
static void give_to_worker(struct conn *c, void (*work)(void *arg))
{
    c->is_at_work = true;
    c->deadline_ms = 0;
    loop_fd_watch(c->watch, 0);
    loop_work(c->msrv->options.loop, work, on_worked, c);
}

/* ---- sending -------------------------------------------------------------------------------- */

size_t conn_waiting(const struct conn *c)
{
    return c->out.n - c->out_at;
}

/* False: the peer is gone, or does not take all of it now. */
static bool send_waiting(struct conn *c)
{
    while (conn_waiting(c) > 0) {
        ssize_t n = send(c->fd, c->out.p + c->out_at, conn_waiting(c), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            loop_fd_watch(c->watch, LOOP_WRITABLE);
            return false;
        }
        if (n < 0) {
            conn_close(c);
            return false;
        }
        c->out_at += (size_t) n;
        c->n_moved += (size_t) n;
        if (c->n_moved >= MSRV_WRITE_LEAST_BYTES)
            set_deadline(c, MSRV_WRITE_TIMEOUT_MS);
    }
    buf_reset(&c->out);
    c->out_at = 0;
    return true;
}

static void next_part(struct conn *c)
{
    c->part++;
    c->part_at = 0;
    if (c->file >= 0)
        close(c->file);
    c->file = -1;
}

/* Puts bytes of the answer out; false: there are none, or a worker fetches them. */
static bool refill(struct conn *c)
{
    const struct answer *a = &c->exchange.request.answer;
    while (c->part < a->n_parts && c->part_at == current_part(c)->length)
        next_part(c);
    if (c->part == a->n_parts) {
        linger(c);
        return false;
    }
    if (current_part(c)->path) {
        give_to_worker(c, work_on_part);
        return false;
    }
    struct part *p = current_part(c);
    if (p->make)
        p->make(p, p->make_arg);
    p->make = NULL;
    size_t n = (size_t) MIN(p->length - c->part_at, (uint64_t) CONN_CHUNK_BYTES);
    buf_append_str(&c->out, str_sub(p->bytes, (size_t) c->part_at, (size_t) c->part_at + n));
    c->part_at += n;
    return true;
}

void conn_pump(struct conn *c)
{
    while (send_waiting(c)) {
        if (c->state == CONN_WRITING) {
            if (!refill(c))
                return;
            continue;
        }
        if (proxy_is_over(c->proxy))
            linger(c);
        else
            proxy_resume(c->proxy);
        return;
    }
}

void conn_answer(struct conn *c)
{
    const struct clock *clock = c->msrv->options.clock;
    struct answer *a = &c->exchange.request.answer;
    set_deadline(c, MSRV_WRITE_TIMEOUT_MS);
    if (a->is_proxied && a->status == 0) {
        c->state = CONN_PROXYING;
        loop_fd_watch(c->watch, 0);
        proxy_start(c);
        return;
    }
    c->state = CONN_WRITING;
    /* No part is sent where no body may be. */
    if (a->status == 204 || a->status == 304)
        a->n_parts = 0;
    answer_write_head(&c->out, a, clock->wall_us(clock));
    conn_pump(c);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void receive(struct conn *c, struct str bytes)
{
    switch (exchange_feed(&c->exchange, bytes)) {
    case EXCHANGE_READING:
        return;
    case EXCHANGE_CONTINUE:
        /* The first bytes that we send fit the socket's buffer. */
        (void) send(c->fd, H1_CONTINUE.p, H1_CONTINUE.n, MSG_NOSIGNAL);
        return;
    case EXCHANGE_TO_WORK:
        c->state = CONN_WORKING;
        give_to_worker(c, work_on_answer);
        return;
    case EXCHANGE_ANSWERED:
        conn_answer(c);
        return;
    }
}

static void on_readable(struct conn *c)
{
    char bytes[RECEIVE_BYTES];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(c);
        return;
    }
    if (c->state == CONN_READING) {
        receive(c, str_range(bytes, (size_t) n));
        return;
    }
    c->n_lingered += (size_t) n;
    if (c->n_lingered > MSRV_LINGER_BYTES)
        conn_close(c);
}

static void on_ready(void *arg, unsigned ready)
{
    struct conn *c = arg;
    if (conn_is_idle(c))
        on_readable(c);
    else if (ready & LOOP_WRITABLE)
        conn_pump(c);
}

void conn_open(struct msrv_listener *l, int fd, uint32_t address_key, const char *address, int port)
{
    struct msrv *m = l->msrv;
    struct conn *c = NEW(struct conn);
    *c = (struct conn){.msrv = m, .listener = l, .fd = fd, .file = -1, .address_key = address_key};
    c->watch = loop_fd_new(m->options.loop, fd, on_ready, c);
    if (!c->watch) {
        close(fd);
        mem_free(c);
        return;
    }
    exchange_init(&c->exchange, m, str_of(l->network), str_of(address), port);
    set_deadline(c, MSRV_READ_TIMEOUT_MS);
    list_append(&m->connections, &c->link);
    m->count.n_connections++;
    m->n_refs++;
    loop_fd_watch(c->watch, LOOP_READABLE);
    msrv_start_timer(m);
}
