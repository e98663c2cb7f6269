/* SPDX-License-Identifier: Apache-2.0 */
/* A subscription through a socket: find the publisher, ask, read; again whenever it goes. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "pubsub/frame.h"
#include "pubsub/subscription_internal.h"

/* At once when the connection has lasted a while; a publisher that hangs up whenever we come does
 * not keep us busy. */
static void connect_later(struct subscription *s)
{
    subscription_disconnect(s);
    int64_t waited_ms = loop_now_ms(s->pubsub->loop) - s->tried_ms;
    loop_timer_start(s->timer, MAX(s->pubsub->retry_ms - waited_ms, 0), 0);
}

/* 1: there may be more; 0: not now; negative: the publisher is gone. */
static int read_packet(struct subscription *s)
{
    struct pubsub *ps = s->pubsub;
    if (!ps->packet)
        ps->packet = mem_alloc(PUBSUB_READ_BYTES);
    ssize_t n = recv(s->fd, ps->packet, PUBSUB_READ_BYTES, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    if (n == PUBSUB_READ_BYTES) {
        s->n_refused++;
        return 1;
    }
    subscription_take_packet(s, str_range(ps->packet, (size_t) n));
    return 1;
}

static void on_ready(void *arg, unsigned ready)
{
    (void) ready;
    struct subscription *s = arg;
    subscription_enter(s);
    int r = 1;
    for (int i = 0; i < PUBSUB_MAX_PACKETS_PER_TURN && r > 0 && !s->is_freed; i++)
        r = read_packet(s);
    if (subscription_leave(s) && r < 0)
        connect_later(s);
}

static int ask(struct subscription *s)
{
    BUF_AUTO request = {0};
    int r = pubsub_frame_write(
        &request, &(struct pubsub_frame){.word = PUBSUB_REQUEST, .topic = str_of(s->place.topic)});
    if (r == 0 && send(s->fd, request.p, request.n, MSG_NOSIGNAL) < 0)
        r = -errno;
    return r;
}

void subscription_connect(struct subscription *s)
{
    s->tried_ms = loop_now_ms(s->pubsub->loop);
    s->fd = pubsub_socket_connect(&s->place);
    int r = s->fd < 0 ? s->fd : ask(s);
    if (r == 0) {
        s->watch = loop_fd_new(s->pubsub->loop, s->fd, on_ready, s);
        r = s->watch ? 0 : -ENOMEM;
    }
    if (r < 0) {
        log_debug("no publisher yet", LOG_TEXT("topic", s->place.topic), LOG_ERRNO(r));
        connect_later(s);
        return;
    }
    loop_fd_watch(s->watch, LOOP_READABLE);
}
