/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes of one loop. Each costs as much as many requests, and after a failure of the network
 * thousands come at once: so they have a share of every turn, and wait in order for the next one,
 * while the connections that are open are served as ever. */
#include <errno.h>

#include "base/clock.h"
#include "net/net_internal.h"

/* What handshakes may take of a turn before the other connections have theirs. */
#define HANDSHAKE_TURN_US 4000
/* When others wait for its place, a peer has this part of the timeout to do its own. */
#define HANDSHAKE_GRACE_DIVISOR 5
/* Further messages of a handshake: new keys every 2^24 records or so, and attempts to negotiate
 * anew, which are refused. OpenSSL answers them without returning to us, so a peer that sends
 * nothing else could keep the loop to itself. */
#define MAX_MESSAGES_AFTERWARDS 64

static int64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void on_handshake_done(struct stream *s)
{
    loop_timer_free(s->timer);
    s->timer = NULL;
    stream_set_state(s, STREAM_OPEN);
    s->read_needs = LOOP_READABLE;
    s->identity = stream_peer_identify(&s->peer, s->ssl);
    const unsigned char *alpn = NULL;
    unsigned n_alpn = 0;
    SSL_get0_alpn_selected(s->ssl, &alpn, &n_alpn);
    s->events->on_open(s->ctx, s, n_alpn ? str_range((const char *) alpn, n_alpn) : STR(""));
    if (s->state != STREAM_OPEN)
        return;
    /* The first request may have come along with the end of the handshake; and output been queued.
     */
    s->has_input = SSL_has_pending(s->ssl);
    if (s->has_input || stream_pending(s))
        loop_defer(s->home->loop, &s->turn_end);
}

static void shake_hands(struct stream *s)
{
    stream_prepare_ssl_call();
    int r = SSL_do_handshake(s->ssl);
    if (r == 1) {
        on_handshake_done(s);
        return;
    }
    int wants = stream_sort_ssl_result(s, r);
    if (wants > 0)
        s->read_needs = (unsigned) wants;
    else
        stream_begin_closing(s, wants ? wants : -ECONNRESET);
}

static void shake_hands_on_account(struct stream *s)
{
    struct stream_home *home = s->home;
    int64_t begin_us = now_us();
    shake_hands(s);
    home->handshake_us += now_us() - begin_us;
    stream_update_watch(s);
}

static void on_turn(struct loop_deferred *d)
{
    struct stream_home *home = CONTAINER_OF(d, struct stream_home, handshake_turn);
    home->handshake_us = 0;
    while (home->handshake_us < HANDSHAKE_TURN_US) {
        struct list *first = list_pop_first(&home->waiting_handshakes);
        if (!first)
            return;
        shake_hands_on_account(CONTAINER_OF(first, struct stream, waiting_handshake));
    }
    loop_defer(home->loop, &home->handshake_turn);
}

void handshake_ready(struct stream *s)
{
    struct stream_home *home = s->home;
    loop_defer(home->loop, &home->handshake_turn);
    if (home->handshake_us < HANDSHAKE_TURN_US) {
        shake_hands_on_account(s);
        return;
    }
    list_append(&home->waiting_handshakes, &s->waiting_handshake);
    loop_fd_watch(s->watch, 0);
}

/* The type of each record, on the outside until TLS 1.2 and inside from TLS 1.3 on. */
static void on_record(int is_sent, int version, int what, const void *bytes, size_t n, SSL *ssl,
                      void *arg)
{
    (void) version;
    struct stream *s = arg;
    if (is_sent || (what != SSL3_RT_HEADER && what != SSL3_RT_INNER_CONTENT_TYPE) || n == 0)
        return;
    if (*(const unsigned char *) bytes != SSL3_RT_HANDSHAKE || !SSL_is_init_finished(ssl))
        return;
    if (++s->n_messages_afterwards > MAX_MESSAGES_AFTERWARDS)
        (void) shutdown(s->fd, SHUT_RD);
}

void handshake_begin(struct stream *s)
{
    SSL_set_msg_callback(s->ssl, on_record);
    SSL_set_msg_callback_arg(s->ssl, s);
    list_init(&s->waiting_handshake);
    list_append(&s->home->handshakes, &s->handshake);
    s->since_ms = loop_now_ms(s->home->loop);
}

void handshake_over(struct stream *s)
{
    list_remove(&s->handshake);
    list_remove(&s->waiting_handshake);
    listener_handshake_gone(s->home);
}

size_t handshake_evict(struct stream_home *home)
{
    int64_t grace_ms = home->options->handshake_timeout_ms / HANDSHAKE_GRACE_DIVISOR;
    int64_t latest_ms = loop_now_ms(home->loop) - grace_ms;
    size_t n = 0;
    LIST_FOR_EACH (&home->handshakes, item) {
        struct stream *s = CONTAINER_OF(item, struct stream, handshake);
        if (s->since_ms > latest_ms)
            break;
        /* Unless it is we who owe it the next step. */
        if (!list_is_empty(&s->waiting_handshake))
            continue;
        stream_begin_closing(s, -ETIMEDOUT);
        n++;
    }
    return n;
}

void stream_home_init(struct stream_home *home)
{
    list_init(&home->handshakes);
    list_init(&home->waiting_handshakes);
    home->handshake_turn.fn = on_turn;
}
