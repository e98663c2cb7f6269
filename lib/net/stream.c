/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/address_counts.h"
#include "net/net_internal.h"

#define RECORD_BYTES ((size_t) 16 * 1024)
/* Then the other connections have their turn. */
#define FLUSH_MAX_BYTES_PER_TURN ((size_t) 512 * 1024)
/* The first write makes room for a small answer at once; more than that is given back when it is
 * sent. */
#define OUTPUT_KEPT_BYTES ((size_t) 4 * 1024)
/* For what is queued when the connection closes. */
#define FLUSH_TIMEOUT_MS 5000
/* For the peer to close its side, see begin_linger(). */
#define LINGER_TIMEOUT_MS 1000
#define LINGER_MAX_READS_PER_TURN 16

static const unsigned allowed_moves[] = {
    [STREAM_HANDSHAKE] = 1u << STREAM_OPEN | 1u << STREAM_CLOSING,
    [STREAM_OPEN] = 1u << STREAM_FLUSHING | 1u << STREAM_CLOSING,
    [STREAM_FLUSHING] = 1u << STREAM_LINGERING | 1u << STREAM_CLOSING,
    [STREAM_LINGERING] = 1u << STREAM_CLOSING,
    [STREAM_CLOSING] = 0,
};

void stream_set_state(struct stream *s, enum stream_state state)
{
    assert(allowed_moves[s->state] & 1u << state);
    bool was_handshake = s->state == STREAM_HANDSHAKE;
    s->state = state;
    if (was_handshake)
        handshake_over(s);
}

/* ---- readiness ------------------------------------------------------------------------------ */

static unsigned wanted_readiness(const struct stream *s)
{
    switch (s->state) {
    case STREAM_HANDSHAKE:
        return s->read_needs;
    case STREAM_OPEN:
        return (s->is_input_unwatched ? 0 : s->read_needs) | s->write_needs;
    case STREAM_FLUSHING:
        return s->write_needs;
    case STREAM_LINGERING:
        return LOOP_READABLE;
    case STREAM_CLOSING:
        break;
    }
    return 0;
}

void stream_update_watch(struct stream *s)
{
    loop_fd_watch(s->watch, wanted_readiness(s));
}

int stream_sort_ssl_result(struct stream *s, int result)
{
    int saved_errno = errno;
    switch (SSL_get_error(s->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return LOOP_READABLE;
    case SSL_ERROR_WANT_WRITE:
        return LOOP_WRITABLE;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        s->is_broken = true;
        return saved_errno ? -saved_errno : -ECONNRESET;
    default:
        break;
    }
    s->is_broken = true;
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    log_debug("tls failed", LOG_TEXT("peer", s->address), LOG_TEXT("reason", reason));
    ERR_clear_error();
    return ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? -ECONNRESET : -EPROTO;
}

void stream_prepare_ssl_call(void)
{
    ERR_clear_error();
    errno = 0;
}

/* ---- closing -------------------------------------------------------------------------------- */

void stream_begin_closing(struct stream *s, int error)
{
    if (s->state == STREAM_CLOSING)
        return;
    if (s->state == STREAM_HANDSHAKE && error)
        atomic_fetch_add_explicit(&s->home->n_handshake_errors, 1, memory_order_relaxed);
    stream_set_state(s, STREAM_CLOSING);
    s->error = error;
    if (s->timer)
        loop_timer_stop(s->timer);
    stream_update_watch(s);
    /* Never from inside the user's own call. */
    loop_defer(s->home->loop, &s->turn_end);
}

/* What a peer did not take in time is dropped: the kernel would go on to hold and offer it for as
 * long as the peer answers, however slowly. */
static void drop_unsent(struct stream *s)
{
    const struct linger at_once = {.l_onoff = 1};
    if ((s->is_cut || s->error == -ETIMEDOUT) && stream_pending(s))
        (void) setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static void on_let_go(void *arg)
{
    struct stream *s = arg;
    struct stream_home *home = s->home;
    drop_unsent(s);
    SSL_free(s->ssl);
    (void) close(s->fd);
    buf_done(&s->output);
    listener_connection_gone(home, s->address_key);
    if (s->events)
        s->events->on_closed(s->ctx, s->error);
    mem_free(s->identity);
    mem_free(s);
    listener_unref(home->listener);
}

static void let_go(struct stream *s)
{
    /* close_notify, if it can go out now. */
    if (SSL_is_init_finished(s->ssl) && !s->is_broken && s->write_needs == 0) {
        stream_prepare_ssl_call();
        (void) SSL_shutdown(s->ssl);
        ERR_clear_error();
    }
    loop_timer_free(s->timer);
    loop_fd_free(s->watch, on_let_go, s);
}

static void on_timeout(void *arg)
{
    struct stream *s = arg;
    /* That the peer does not close is no fault of the exchange. */
    stream_begin_closing(s, s->state == STREAM_LINGERING ? 0 : -ETIMEDOUT);
}

static void limit_time(struct stream *s, int64_t timeout_ms)
{
    if (!s->timer)
        s->timer = loop_timer_new(s->home->loop, on_timeout, s);
    loop_timer_start(s->timer, timeout_ms, /* repeat_ms= */ 0);
}

/* To close a socket with unread input resets the connection, and with it the end of our answer that
 * is still on its way. So we end our side and wait a little for the peer to end its own, reading
 * into nothing. */
static void begin_linger(struct stream *s)
{
    stream_prepare_ssl_call();
    int r = SSL_shutdown(s->ssl);
    if (r < 0) {
        int wants = stream_sort_ssl_result(s, r);
        if (wants > 0)
            s->write_needs = (unsigned) wants;
        else
            stream_begin_closing(s, wants);
        return;
    }
    (void) shutdown(s->fd, SHUT_WR);
    stream_set_state(s, STREAM_LINGERING);
    limit_time(s, LINGER_TIMEOUT_MS);
}

static char *read_buffer(struct stream_home *home)
{
    if (!home->read_buffer)
        home->read_buffer = mem_alloc(STREAM_READ_BYTES);
    return home->read_buffer;
}

static void linger(struct stream *s)
{
    char *ignored = read_buffer(s->home);
    for (int i = 0; i < LINGER_MAX_READS_PER_TURN; i++) {
        ssize_t n = recv(s->fd, ignored, STREAM_READ_BYTES, MSG_DONTWAIT);
        if (n > 0)
            continue;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            stream_begin_closing(s, 0);
        return;
    }
}

void stream_close(struct stream *s, bool after_flush)
{
    if (!after_flush || s->state == STREAM_HANDSHAKE) {
        s->is_cut = true;
        stream_begin_closing(s, 0);
        return;
    }
    if (s->state != STREAM_OPEN)
        return;
    stream_set_state(s, STREAM_FLUSHING);
    limit_time(s, FLUSH_TIMEOUT_MS);
    loop_defer(s->home->loop, &s->turn_end);
}

/* ---- output --------------------------------------------------------------------------------- */

size_t stream_pending(const struct stream *s)
{
    return s->output.n - s->n_sent;
}

size_t stream_untaken(const struct stream *s)
{
    int n_unacknowledged = 0;
    if (ioctl(s->fd, SIOCOUTQ, &n_unacknowledged) < 0)
        n_unacknowledged = 0;
    return stream_pending(s) + (size_t) n_unacknowledged;
}

void stream_home_done(struct stream_home *home)
{
    while (home->n_spares > 0)
        buf_done(&home->spares[--home->n_spares]);
}

static void take_output_buffer(struct stream *s)
{
    if (s->home->n_spares > 0)
        s->output = s->home->spares[--s->home->n_spares];
    else
        (void) buf_reserve(&s->output, OUTPUT_KEPT_BYTES - 1);
}

static void give_output_buffer_back(struct stream *s)
{
    struct stream_home *home = s->home;
    buf_reset(&s->output);
    if (home->n_spares < STREAM_MAX_SPARES && s->output.capacity <= STREAM_SPARE_BYTES) {
        home->spares[home->n_spares++] = s->output;
        s->output = (struct buf){0};
    } else if (s->output.capacity > OUTPUT_KEPT_BYTES) {
        buf_done(&s->output);
    }
}

static void make_room(struct stream *s, size_t n)
{
    if (!s->output.p)
        take_output_buffer(s);
    /* Moving the rest to the front must win at least as much as it moves. */
    if (s->output.n + n >= s->output.capacity && s->n_sent >= s->output.n / 2) {
        buf_consume(&s->output, s->n_sent);
        s->n_sent = 0;
    }
}

void stream_write(struct stream *s, const void *p, size_t n)
{
    if (n == 0 || (s->state != STREAM_HANDSHAKE && s->state != STREAM_OPEN))
        return;
    make_room(s, n);
    buf_append(&s->output, p, n);
    loop_defer(s->home->loop, &s->turn_end);
}

static void on_output_sent(struct stream *s)
{
    s->write_needs = 0;
    s->n_sent = 0;
    give_output_buffer_back(s);
    if (s->state == STREAM_OPEN)
        s->events->on_drained(s->ctx);
    else
        begin_linger(s);
}

/* With partial writes on, SSL_write() returns after each record: so until all is taken, or no more
 * is. */
static void flush(struct stream *s)
{
    size_t turn_end = s->n_sent + FLUSH_MAX_BYTES_PER_TURN;
    while (stream_pending(s)) {
        if (s->n_sent >= turn_end) {
            s->write_needs = 0;
            loop_defer(s->home->loop, &s->turn_end);
            return;
        }
        stream_prepare_ssl_call();
        int n =
            SSL_write(s->ssl, s->output.p + s->n_sent, (int) MIN(stream_pending(s), RECORD_BYTES));
        if (n <= 0) {
            int wants = stream_sort_ssl_result(s, n);
            if (wants > 0)
                s->write_needs = (unsigned) wants;
            else
                stream_begin_closing(s, wants ? wants : -EPIPE);
            return;
        }
        s->n_sent += (size_t) n;
    }
    on_output_sent(s);
}

/* ---- input ---------------------------------------------------------------------------------- */

/* The peer has ended its side or the connection is lost. What is queued gets its chance; nobody is
 * there to wait for. */
static void on_input_end(struct stream *s, int error)
{
    if (s->is_paused) {
        s->has_input = true; /* to be found again when resumed */
        return;
    }
    if (!s->is_broken && stream_pending(s) && s->write_needs == 0)
        flush(s);
    stream_begin_closing(s, error);
}

static void read_input(struct stream *s)
{
    char *bytes = read_buffer(s->home);
    size_t n = 0;
    int wants = LOOP_READABLE;
    s->has_input = false;
    do {
        stream_prepare_ssl_call();
        int r = SSL_read(s->ssl, bytes + n, (int) (STREAM_READ_BYTES - n));
        if (r <= 0) {
            wants = stream_sort_ssl_result(s, r);
            break;
        }
        n += (size_t) r;
        /* Not until "want read": without input inside OpenSSL that costs a read(2) to learn what
         * the level-triggered poll tells anyway. */
    } while (n < STREAM_READ_BYTES && SSL_has_pending(s->ssl));
    s->read_needs = wants > 0 ? (unsigned) wants : LOOP_READABLE;
    if (n == STREAM_READ_BYTES && SSL_has_pending(s->ssl)) {
        s->has_input = true;
        loop_defer(s->home->loop, &s->turn_end);
    }
    if (n)
        s->events->on_bytes(s->ctx, str_range(bytes, n));
    if (wants <= 0 && s->state == STREAM_OPEN)
        on_input_end(s, wants);
}

void stream_pause_reading(struct stream *s, bool is_paused)
{
    /* Pausing leaves the watch alone: most pauses end before anything comes, and so cost nothing.
     */
    s->is_paused = is_paused;
    if (is_paused || s->state != STREAM_OPEN)
        return;
    s->is_input_unwatched = false;
    if (s->has_input || SSL_has_pending(s->ssl)) {
        s->has_input = true;
        loop_defer(s->home->loop, &s->turn_end);
    }
    stream_update_watch(s);
}

/* ---- events --------------------------------------------------------------------------------- */

static void on_open_ready(struct stream *s, unsigned ready)
{
    if (ready & s->write_needs) {
        s->write_needs = 0;
        flush(s);
    }
    if (s->state != STREAM_OPEN || !(ready & s->read_needs))
        return;
    if (s->is_paused)
        s->is_input_unwatched = true;
    else
        read_input(s);
}

static void on_flushing_ready(struct stream *s)
{
    s->write_needs = 0;
    if (stream_pending(s))
        flush(s);
    else
        begin_linger(s);
}

static void on_ready(void *arg, unsigned ready)
{
    struct stream *s = arg;
    switch (s->state) {
    case STREAM_HANDSHAKE:
        handshake_ready(s);
        return;
    case STREAM_OPEN:
        on_open_ready(s, ready);
        break;
    case STREAM_FLUSHING:
        on_flushing_ready(s);
        break;
    case STREAM_LINGERING:
        linger(s);
        break;
    case STREAM_CLOSING:
        break;
    }
    stream_update_watch(s);
}

static void on_turn_end(struct loop_deferred *d)
{
    struct stream *s = CONTAINER_OF(d, struct stream, turn_end);
    if (s->state == STREAM_CLOSING) {
        let_go(s);
        return;
    }
    /* A blocked write waits for its event. */
    if (s->state == STREAM_FLUSHING && s->write_needs == 0)
        on_flushing_ready(s);
    else if (s->state == STREAM_OPEN && s->write_needs == 0 && stream_pending(s))
        flush(s);
    if (s->state == STREAM_OPEN && s->has_input && !s->is_paused)
        read_input(s);
    stream_update_watch(s);
}

/* ---- life ----------------------------------------------------------------------------------- */

const struct stream_peer *stream_peer(const struct stream *s)
{
    return &s->peer;
}

struct loop *stream_loop(const struct stream *s)
{
    return s->home->loop;
}

static void set_peer_address(struct stream *s, const struct sockaddr_storage *from)
{
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *) from;
        (void) inet_ntop(AF_INET, &v4->sin_addr, s->address, sizeof(s->address));
        s->peer.port = ntohs(v4->sin_port);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *) from;
        /* An IPv4 client of a dual-stack socket. */
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
            (void) inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], s->address, sizeof(s->address));
        else
            (void) inet_ntop(AF_INET6, &v6->sin6_addr, s->address, sizeof(s->address));
        s->peer.port = ntohs(v6->sin6_port);
    }
    s->peer.address = str_of(s->address);
}

static void refuse(struct stream_home *home, int fd, uint64_t address_key)
{
    (void) close(fd);
    listener_handshake_gone(home);
    listener_connection_gone(home, address_key);
    listener_unref(home->listener);
}

void stream_start(struct stream_home *home, int fd, const struct sockaddr_storage *from)
{
    SSL *ssl = tls_context_accept(home->tls, fd);
    struct stream *s = NEW(struct stream);
    s->watch = ssl ? loop_fd_new(home->loop, fd, on_ready, s) : NULL;
    if (!s->watch) {
        SSL_free(ssl);
        mem_free(s);
        refuse(home, fd, address_key(from));
        return;
    }
    s->home = home;
    s->ssl = ssl;
    s->fd = fd;
    s->read_needs = LOOP_READABLE;
    s->turn_end.fn = on_turn_end;
    s->address_key = address_key(from);
    set_peer_address(s, from);
    handshake_begin(s);
    limit_time(s, home->options->handshake_timeout_ms);

    const struct listener_options *o = home->options;
    s->ctx = o->on_accept(o->arg, s, &s->events);
    if (!s->ctx) {
        s->events = NULL;
        stream_begin_closing(s, 0);
    }
    stream_update_watch(s);
}
