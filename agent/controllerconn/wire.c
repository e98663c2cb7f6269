/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface on the loop: sockets and the timer. What one exchange does is in
 * transfer.c. */
#include "controllerconn/wire_internal.h"

#include <signal.h>

#include "base/alloc.h"

struct socket_watch {
    struct curl_wire *wire;
    struct loop_fd *watch;
    curl_socket_t fd;
};

/* Transfers that are over, one by one: whoever is told may start or cancel others. */
static void collect(struct curl_wire *w)
{
    int n_left;
    CURLMsg *m;
    while ((m = curl_multi_info_read(w->multi, &n_left))) {
        if (m->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = m->data.result;
        char *transfer = NULL;
        (void) curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &transfer);
        uplink_transfer_end((struct uplink_transfer *) (void *) transfer, code);
    }
}

static void on_ready(void *arg, unsigned ready)
{
    const struct socket_watch *s = arg; /* may go in the call below */
    struct curl_wire *w = s->wire;
    const int mask = (ready & LOOP_READABLE ? CURL_CSELECT_IN : 0) |
                     (ready & LOOP_WRITABLE ? CURL_CSELECT_OUT : 0);
    int n_running;
    (void) curl_multi_socket_action(w->multi, s->fd, mask, &n_running);
    collect(w);
}

static void on_timeout(void *arg)
{
    struct curl_wire *w = arg;
    int n_running;
    (void) curl_multi_socket_action(w->multi, CURL_SOCKET_TIMEOUT, 0, &n_running);
    collect(w);
}

static int on_timer_wanted(CURLM *multi, long after_ms, void *arg)
{
    struct curl_wire *w = arg;
    (void) multi;
    if (after_ms < 0)
        loop_timer_stop(w->timer);
    else
        loop_timer_start_real(w->timer, after_ms, /* repeat_ms= */ 0);
    return 0;
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct curl_wire *w = arg;
    struct socket_watch *s = socket_arg;
    (void) easy;
    if (what == CURL_POLL_REMOVE) {
        if (s)
            loop_fd_free(s->watch, NULL, NULL);
        mem_free(s);
        (void) curl_multi_assign(w->multi, fd, NULL);
        return 0;
    }
    if (!s) {
        s = NEW(struct socket_watch);
        s->wire = w;
        s->fd = fd;
        s->watch = loop_fd_new(w->loop, fd, on_ready, s);
        (void) curl_multi_assign(w->multi, fd, s);
    }
    if (!s->watch)
        return -1;
    loop_fd_watch(s->watch, (what & CURL_POLL_IN ? LOOP_READABLE : 0U) |
                                (what & CURL_POLL_OUT ? (unsigned) LOOP_WRITABLE : 0U));
    return 0;
}

struct uplink_wire *uplink_wire_new(struct loop *l, const struct clock *clock)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    /* OpenSSL writes to a socket whose peer may be gone. */
    (void) signal(SIGPIPE, SIG_IGN);
    CURLM *multi = curl_multi_init();
    if (!multi)
        return NULL;
    struct curl_wire *w = NEW(struct curl_wire);
    w->wire.ops = &uplink_curl_ops;
    w->loop = l;
    w->clock = clock;
    w->multi = multi;
    w->timer = loop_timer_new(l, on_timeout, w);
    (void) curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
    (void) curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, w);
    (void) curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    (void) curl_multi_setopt(multi, CURLMOPT_TIMERDATA, w);
    return &w->wire;
}

void uplink_wire_free(struct uplink_wire *wire)
{
    if (!wire)
        return;
    struct curl_wire *w = CONTAINER_OF(wire, struct curl_wire, wire);
    (void) curl_multi_cleanup(w->multi);
    loop_timer_free(w->timer);
    mem_free(w);
}
