/* SPDX-License-Identifier: Apache-2.0 */
/* What we carry ourselves: HTTPS without a proxy, one request and its answer on one connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controllerconn/trace.h"
#include "controllerconn/transfer_internal.h"

#define READ_STEP_BYTES ((size_t) 16 * 1024)

/* ---- how it ends --------------------------------------------------------------------------- */

static void on_let_go(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

static void hang_up(struct uplink_by_us *u)
{
    SSL_free(u->ssl);
    u->ssl = NULL;
    if (u->watch)
        loop_fd_free(u->watch, on_let_go, (void *) (intptr_t) u->fd);
    else if (u->fd >= 0)
        (void) close(u->fd);
    u->watch = NULL;
    u->fd = -1;
}

static void done(struct uplink_transfer *t)
{
    struct uplink_by_us *u = &t->by_us;
    hang_up(u);
    loop_timer_free(u->deadline);
    buf_done(&u->request);
    uplink_response_done(&u->response);
}

static void on_deadline(void *arg)
{
    uplink_transfer_tell_fault(arg, UPLINK_FAULT_TIMEOUT, STR("i/o timeout"));
}

static void fail_with_errno(struct uplink_transfer *t, const char *what, int error)
{
    const enum uplink_fault fault = error == ECONNREFUSED   ? UPLINK_FAULT_REFUSED
                                    : error == EAFNOSUPPORT ? UPLINK_FAULT_NO_ADDRESS
                                                            : UPLINK_FAULT_OTHER;
    const struct str words = error == EAFNOSUPPORT
                                 ? STR("no suitable address")
                                 : arena_printf(t->arena, "%s: %s", what, strerror(error));
    uplink_transfer_tell_fault(t, fault, words);
}

static void fail_tls(struct uplink_transfer *t, int ssl_error, int system_error)
{
    const long verdict = SSL_get_verify_result(t->by_us.ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    ERR_clear_error();
    if (!t->by_us.is_shaken && verdict != X509_V_OK)
        uplink_transfer_tell_fault(
            t, uplink_transfer_certificate_fault(verdict),
            arena_printf(t->arena, "certificate: %s", X509_verify_cert_error_string(verdict)));
    else if (ssl_error == SSL_ERROR_SYSCALL && system_error)
        fail_with_errno(t, "connection", system_error);
    else
        uplink_transfer_tell_fault(
            t, UPLINK_FAULT_OTHER,
            arena_printf(t->arena, "TLS: %s", reason ? reason : "the connection was closed"));
}

/* Relative ones are so to where we are. */
static struct str absolute_location(struct uplink_transfer *t, struct str location)
{
    if (location.n == 0)
        return location;
    CURLU *url = curl_url();
    char *text = NULL;
    struct str absolute = {0};
    if (url && curl_url_set(url, CURLUPART_URL, arena_strz(t->arena, t->x.url), 0) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_URL, arena_strz(t->arena, location), 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK)
        absolute = arena_str(t->arena, str_of(text));
    curl_free(text);
    curl_url_cleanup(url);
    return absolute;
}

static void succeed(struct uplink_transfer *t)
{
    struct uplink_by_us *u = &t->by_us;
    const bool is_resumed = SSL_session_reused(u->ssl);
    /* Without it OpenSSL would take the session for a broken one. */
    (void) SSL_shutdown(u->ssl);
    ERR_clear_error();
    uplink_transfer_tell(
        t, &(struct uplink_reply){.http_status = u->response.status,
                                  .body = buf_str(&u->response.body),
                                  .content_type = buf_str(&u->response.content_type),
                                  .location = absolute_location(t, buf_str(&u->response.location)),
                                  .is_resumed = is_resumed});
}

static void finish(struct uplink_transfer *t, int r)
{
    if (r == 1)
        succeed(t);
    else if (r == -EMSGSIZE)
        uplink_transfer_tell_fault(
            t, UPLINK_FAULT_TOO_LARGE,
            arena_printf(t->arena, "the answer has more than %zu bytes", t->x.max_reply_bytes));
    else if (r == -ECONNRESET)
        uplink_transfer_tell_fault(t, UPLINK_FAULT_OTHER,
                                   STR("the connection was closed before the answer's end"));
    else
        uplink_transfer_tell_fault(t, UPLINK_FAULT_OTHER, STR("the answer is not HTTP"));
}

/* ---- the connection ------------------------------------------------------------------------ */

/* True: OpenSSL waits for the socket, and so do we. */
static bool waits(struct uplink_transfer *t, int r)
{
    const int system_error = errno;
    const int e = SSL_get_error(t->by_us.ssl, r);
    const bool is_waiting = e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE;
    if (is_waiting)
        loop_fd_watch(t->by_us.watch, e == SSL_ERROR_WANT_READ ? LOOP_READABLE : LOOP_WRITABLE);
    else
        fail_tls(t, e, system_error);
    return is_waiting;
}

static bool is_closed(SSL *ssl, int r)
{
    const int e = SSL_get_error(ssl, r);
    /* Many servers close without saying so in TLS. */
    return e == SSL_ERROR_ZERO_RETURN ||
           (e == SSL_ERROR_SSL &&
            ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
}

/* Each of these returns false when the exchange waits, or is over and gone. */

static bool shake(struct uplink_transfer *t)
{
    const int r = SSL_connect(t->by_us.ssl);
    if (r != 1) {
        (void) waits(t, r);
        return false;
    }
    t->by_us.is_shaken = true;
    uplink_trace_add(t->x.trace, "%s", SSL_get_version(t->by_us.ssl));
    return true;
}

static bool send_request(struct uplink_transfer *t)
{
    struct uplink_by_us *u = &t->by_us;
    while (u->n_sent < u->request.n) {
        const size_t n = MIN(u->request.n - u->n_sent, (size_t) INT_MAX);
        const int r = SSL_write(u->ssl, u->request.p + u->n_sent, (int) n);
        if (r <= 0) {
            (void) waits(t, r);
            return false;
        }
        u->n_sent += (size_t) r;
    }
    return true;
}

static void receive(struct uplink_transfer *t)
{
    struct uplink_by_us *u = &t->by_us;
    char bytes[READ_STEP_BYTES];
    for (;;) {
        const int n = SSL_read(u->ssl, bytes, sizeof(bytes));
        if (n <= 0 && is_closed(u->ssl, n)) {
            ERR_clear_error();
            finish(t, uplink_response_end(&u->response));
            return;
        }
        if (n <= 0) {
            (void) waits(t, n);
            return;
        }
        const int r = uplink_response_feed(&u->response, str_range(bytes, (size_t) n));
        if (r != 0) {
            finish(t, r);
            return;
        }
    }
}

static void go_on(struct uplink_transfer *t)
{
    ERR_clear_error();
    if ((t->by_us.is_shaken || shake(t)) && send_request(t))
        receive(t);
}

static void begin_tls(struct uplink_transfer *t)
{
    struct uplink_by_us *u = &t->by_us;
    u->is_dialed = true;
    u->end =
        (struct uplink_tls_end){.tls = t->x.tls, .host = t->target_host, .port = t->target.port};
    u->ssl = uplink_tls_begin(&u->end, u->fd);
    if (u->ssl)
        go_on(t);
    else
        uplink_transfer_tell_fault(t, UPLINK_FAULT_OTHER, STR("out of memory"));
}

/* ---- dialling ------------------------------------------------------------------------------ */

static void dial(struct uplink_transfer *t);

static void on_ready(void *arg, unsigned ready)
{
    struct uplink_transfer *t = arg;
    struct uplink_by_us *u = &t->by_us;
    (void) ready;
    if (u->is_dialed) {
        go_on(t);
        return;
    }
    socklen_t n = sizeof(u->dial_errno);
    (void) getsockopt(u->fd, SOL_SOCKET, SO_ERROR, &u->dial_errno, &n);
    if (u->dial_errno == 0) {
        begin_tls(t);
    } else {
        hang_up(u);
        dial(t);
    }
}

static socklen_t parse_address(const char *text, unsigned port, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *) ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) ret;
    *ret = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t) port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
        return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t) port);
    return sizeof(*v6);
}

/* Negative errno: this address is not to be had. */
static int dial_one(struct uplink_transfer *t, struct str address)
{
    struct uplink_by_us *u = &t->by_us;
    struct sockaddr_storage to;
    const socklen_t n = parse_address(arena_strz(t->arena, address), t->target.port, &to);
    if (n == 0)
        return -EAFNOSUPPORT;
    u->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (u->fd < 0)
        return -errno;
    const int on = 1;
    (void) setsockopt(u->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    u->dial_step = "bind";
    const int r = uplink_transfer_bind(t, u->fd, to.ss_family);
    if (r < 0)
        return r;
    u->dial_step = "dial tcp";
    if (connect(u->fd, (struct sockaddr *) &to, n) < 0 && errno != EINPROGRESS)
        return -errno;
    u->watch = loop_fd_new(t->wire->loop, u->fd, on_ready, t);
    if (!u->watch)
        return -ENOMEM;
    loop_fd_watch(u->watch, LOOP_WRITABLE);
    return 0;
}

/* The next address, until there is none. */
static void dial(struct uplink_transfer *t)
{
    struct uplink_by_us *u = &t->by_us;
    struct str address;
    while (str_split(&u->addresses, ',', &address)) {
        const int r = dial_one(t, address);
        if (r == 0)
            return;
        u->dial_errno = -r;
        hang_up(u);
    }
    fail_with_errno(t, u->dial_step, u->dial_errno);
}

/* ---- how it begins ------------------------------------------------------------------------- */

/* What follows host and port: at least a slash, and no fragment. */
static struct str request_target(struct uplink_transfer *t)
{
    const struct str url = t->x.url;
    const char *end_of_host = t->target.host.p + t->target.host.n;
    const size_t begin = (size_t) (end_of_host - url.p);
    struct str rest = str_from(url, begin);
    while (rest.n > 0 && !strchr("/?#", rest.p[0]))
        rest = str_from(rest, 1);
    const ptrdiff_t fragment = str_find(rest, '#');
    rest = fragment < 0 ? rest : str_sub(rest, 0, (size_t) fragment);
    return rest.n > 0 && rest.p[0] == '/' ? rest : arena_printf(t->arena, "/%.*s", STR_ARG(rest));
}

static void write_request(struct uplink_transfer *t, struct buf *to)
{
    const bool is_v6 = memchr(t->target.host.p, ':', t->target.host.n);
    buf_printf(to, "%s %.*s HTTP/1.1\r\nHost: %s%s%s", t->x.is_post ? "POST" : "GET",
               STR_ARG(request_target(t)), is_v6 ? "[" : "", t->target_host, is_v6 ? "]" : "");
    if (t->target.port != 443)
        buf_printf(to, ":%u", t->target.port);
    buf_printf(to, "\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nConnection: close\r\n");
    for (size_t i = 0; i < t->x.n_headers; i++)
        buf_printf(to, "%.*s\r\n", STR_ARG(t->x.headers[i]));
    if (t->x.is_post)
        buf_printf(to, "Content-Length: %zu\r\n", t->x.body.n);
    buf_printf(to, "\r\n");
    if (t->x.is_post && t->x.body.n > 0)
        buf_append_str(to, t->x.body);
}

static void carry(struct uplink_transfer *t, struct str addresses)
{
    struct uplink_by_us *u = &t->by_us;
    u->fd = -1;
    u->dial_step = "dial tcp";
    uplink_response_init(&u->response, t->x.max_reply_bytes);
    write_request(t, &u->request);
    u->deadline = loop_timer_new(t->wire->loop, on_deadline, t);
    loop_timer_start_real(u->deadline, t->x.timeout_ms, /* repeat_ms= */ 0);
    u->addresses = arena_str(t->arena, addresses.n > 0 ? addresses : t->target.host);
    dial(t);
}

static bool is_dialed(const struct uplink_transfer *t)
{
    return t->by_us.is_dialed;
}

const struct uplink_carrier uplink_own_carrier = {
    .carry = carry, .is_dialed = is_dialed, .done = done};
