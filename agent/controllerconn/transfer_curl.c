/* SPDX-License-Identifier: Apache-2.0 */
/* What libcurl carries: everything through a proxy, what is not HTTPS, and streams. */
#include <errno.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controllerconn/trace.h"
#include "controllerconn/transfer_internal.h"

#define LIBCURL_TRACE_PREFIX "curl: "
/* A stream is mostly silent, and there may be thousands. */
#define STREAM_PIECE_BYTES 4096L

/* ---- what libcurl asks --------------------------------------------------------------------- */

/* Whoever gets it may cancel and start transfers, which libcurl forbids in here: it is handed over
 * later, and no more is taken until then. */
static size_t take_piece(struct uplink_transfer *t, const char *bytes, size_t n)
{
    struct uplink_by_curl *c = &t->by_curl;
    c->is_paused = c->body.n > 0;
    if (c->is_paused)
        return CURL_WRITEFUNC_PAUSE;
    buf_append(&c->body, bytes, n);
    loop_defer(t->wire->loop, &c->hand_over);
    return n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct uplink_transfer *t = arg;
    if (t->by_curl.is_open)
        return take_piece(t, bytes, size * n);
    if (size * n > t->x.max_reply_bytes - t->by_curl.body.n) {
        t->by_curl.is_too_large = true;
        return 0;
    }
    buf_append(&t->by_curl.body, bytes, size * n);
    return size * n;
}

/* At the end of a head. */
static void open_stream(struct uplink_transfer *t)
{
    long status = 0;
    (void) curl_easy_getinfo(t->by_curl.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return;
    t->by_curl.is_open = true;
    loop_timer_stop(t->by_curl.deadline);
    loop_defer(t->wire->loop, &t->by_curl.hand_over);
}

/* The TLS session can be seen only while the transfer lasts. */
static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct uplink_transfer *t = arg;
    struct curl_tlssessioninfo *info = NULL;
    if (t->x.on_data && str_trim(str_range(bytes, size * n)).n == 0)
        open_stream(t);
    if (curl_easy_getinfo(t->by_curl.easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK && info &&
        info->backend == CURLSSLBACKEND_OPENSSL && info->internals)
        t->by_curl.is_resumed = SSL_session_reused(info->internals);
    return size * n;
}

static CURLcode on_tls_context(CURL *easy, void *ctx, void *arg)
{
    struct uplink_transfer *t = arg;
    (void) easy;
    /* A proxy that speaks TLS itself comes first. */
    const bool is_proxy =
        t->proxy_host && uplink_url_is_secure(&t->proxy) && t->by_curl.n_contexts++ == 0;
    const char *host = is_proxy ? t->proxy_host : t->target_host;
    return uplink_tls_apply(t->x.tls, host, ctx) < 0 ? CURLE_SSL_CERTPROBLEM : CURLE_OK;
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct uplink_transfer *t = arg;
    (void) purpose;
    const int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd < 0) {
        t->by_curl.socket_errno = errno;
        return CURL_SOCKET_BAD;
    }
    const int r = uplink_transfer_bind(t, fd, to->family);
    if (r == 0)
        return fd;
    t->by_curl.socket_errno = -r;
    (void) close(fd);
    return CURL_SOCKET_BAD;
}

static int on_trace(CURL *easy, curl_infotype type, char *text, size_t n, void *arg)
{
    struct uplink_transfer *t = arg;
    (void) easy;
    /* Its own words alone: headers and bodies may hold secrets. */
    if (type == CURLINFO_TEXT)
        uplink_trace_add(t->x.trace, LIBCURL_TRACE_PREFIX "%.*s",
                         STR_ARG(str_trim(str_range(text, n))));
    return 0;
}

/* ---- how it ends --------------------------------------------------------------------------- */

static enum uplink_fault fault_of_certificate(CURL *easy)
{
    long verdict = 0;
    (void) curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
    return uplink_transfer_certificate_fault(verdict);
}

static enum uplink_fault fault_of(const struct uplink_transfer *t, CURLcode code)
{
    long os_errno = 0;
    (void) curl_easy_getinfo(t->by_curl.easy, CURLINFO_OS_ERRNO, &os_errno);
    if (t->by_curl.is_too_large)
        return UPLINK_FAULT_TOO_LARGE;
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        if (t->by_curl.socket_errno == EAFNOSUPPORT)
            return UPLINK_FAULT_NO_ADDRESS;
        return os_errno == ECONNREFUSED ? UPLINK_FAULT_REFUSED : UPLINK_FAULT_OTHER;
    case CURLE_PEER_FAILED_VERIFICATION:
        return fault_of_certificate(t->by_curl.easy);
    case CURLE_OPERATION_TIMEDOUT:
        return UPLINK_FAULT_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return UPLINK_FAULT_LOOKUP;
    default:
        return UPLINK_FAULT_OTHER;
    }
}

static struct str words_of(const struct uplink_transfer *t, CURLcode code)
{
    if (t->by_curl.is_too_large)
        return arena_printf(t->arena, "the answer has more than %zu bytes", t->x.max_reply_bytes);
    if (code == CURLE_COULDNT_CONNECT && t->by_curl.socket_errno == EAFNOSUPPORT)
        return STR("no suitable address");
    if (code == CURLE_COULDNT_CONNECT && t->by_curl.socket_errno)
        return arena_printf(t->arena, "bind: %s", strerror(t->by_curl.socket_errno));
    return str_of(t->by_curl.error[0] ? t->by_curl.error : curl_easy_strerror(code));
}

static void tell_answer(struct uplink_transfer *t)
{
    long status = 0;
    char *type = NULL, *location = NULL;
    (void) curl_easy_getinfo(t->by_curl.easy, CURLINFO_RESPONSE_CODE, &status);
    (void) curl_easy_getinfo(t->by_curl.easy, CURLINFO_CONTENT_TYPE, &type);
    (void) curl_easy_getinfo(t->by_curl.easy, CURLINFO_REDIRECT_URL, &location);
    uplink_transfer_tell(t, &(struct uplink_reply){.http_status = (int) status,
                                                   .body = buf_str(&t->by_curl.body),
                                                   .content_type = str_of(type),
                                                   .location = str_of(location),
                                                   .is_resumed = t->by_curl.is_resumed});
}

void uplink_transfer_end(struct uplink_transfer *t, CURLcode code)
{
    if (t->by_curl.is_open) {
        t->by_curl.is_over = true;
        loop_defer(t->wire->loop, &t->by_curl.hand_over);
    } else if (code != CURLE_OK) {
        uplink_transfer_tell_fault(t, fault_of(t, code), words_of(t, code));
    } else {
        tell_answer(t);
    }
}

static void on_hand_over(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, by_curl.hand_over);
    struct uplink_by_curl *c = &t->by_curl;
    BUF_AUTO piece = c->body;
    c->body = (struct buf){0};
    if (c->is_over && piece.n == 0) {
        tell_answer(t);
        return;
    }
    if (c->is_over)
        loop_defer(t->wire->loop, d);
    else if (c->is_paused)
        (void) curl_easy_pause(c->easy, CURLPAUSE_CONT); /* may bring the next one at once */
    t->x.on_data(t->arg, buf_str(&piece));               /* the last, for t may go in it */
}

static void on_deadline(void *arg)
{
    uplink_transfer_tell_fault(arg, UPLINK_FAULT_TIMEOUT, STR("i/o timeout"));
}

/* ---- how it begins ------------------------------------------------------------------------- */

#define SET(option, value) (void) curl_easy_setopt(t->by_curl.easy, option, value)

static void set_tls(struct uplink_transfer *t)
{
    SET(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_ENABLE_ALPN, 0L);
    SET(CURLOPT_SSL_CTX_FUNCTION, on_tls_context);
    SET(CURLOPT_SSL_CTX_DATA, t);
    /* The store of the trust takes their place. libcurl would keep the store of the first
     * connection for all that follow, whomever they trust. */
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    SET(CURLOPT_CAINFO, NULL);
    SET(CURLOPT_CAPATH, NULL);
    SET(CURLOPT_PROXY_CAINFO, NULL);
    SET(CURLOPT_PROXY_CAPATH, NULL);
    SET(CURLOPT_SHARE, uplink_tls_share(t->x.tls));
}

static void set_headers(struct uplink_transfer *t)
{
    for (size_t i = 0; i < t->x.n_headers; i++)
        t->by_curl.headers =
            curl_slist_append(t->by_curl.headers, arena_strz(t->arena, t->x.headers[i]));
    t->by_curl.headers = curl_slist_append(t->by_curl.headers, "Connection: close");
    t->by_curl.headers = curl_slist_append(t->by_curl.headers, "Expect:");
    SET(CURLOPT_HTTPHEADER, t->by_curl.headers);
    SET(CURLOPT_HEADEROPT, (long) CURLHEADER_SEPARATE);
    if (!t->x.on_data)
        SET(CURLOPT_ACCEPT_ENCODING, "gzip");
    if (!t->x.is_post)
        return;
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) t->x.body.n);
    SET(CURLOPT_POSTFIELDS, t->x.body.p ? t->x.body.p : "");
}

static void set_proxy(struct uplink_transfer *t)
{
    /* An empty name keeps the environment's settings away, too. */
    SET(CURLOPT_NOPROXY, "");
    SET(CURLOPT_PROXY, t->proxy_host ? arena_strz(t->arena, t->x.proxy) : "");
    if (t->proxy_host)
        SET(CURLOPT_PROXYPORT, (long) t->proxy.port);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void set_callbacks(struct uplink_transfer *t)
{
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->by_curl.error);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, t);
    if (!t->x.trace)
        return;
    SET(CURLOPT_VERBOSE, 1L);
    SET(CURLOPT_DEBUGFUNCTION, on_trace);
    SET(CURLOPT_DEBUGDATA, t);
}

static void set_stream(struct uplink_transfer *t)
{
    t->by_curl.hand_over.fn = on_hand_over;
    t->by_curl.deadline = loop_timer_new(t->wire->loop, on_deadline, t);
    loop_timer_start_real(t->by_curl.deadline, t->x.timeout_ms, /* repeat_ms= */ 0);
    SET(CURLOPT_BUFFERSIZE, STREAM_PIECE_BYTES);
    if (t->x.keepalive_s == 0)
        return;
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, (long) t->x.keepalive_s);
    SET(CURLOPT_TCP_KEEPINTVL, (long) t->x.keepalive_s);
}

static void name_addresses(struct uplink_transfer *t, struct str addresses)
{
    const char *host = t->proxy_host ? t->proxy_host : t->target_host;
    const unsigned port = t->proxy_host ? t->proxy.port : t->target.port;
    /* With a plus libcurl forgets it after a minute: redirects may name many hosts. */
    t->by_curl.resolve = curl_slist_append(
        NULL, arena_printf(t->arena, "+%s:%u:%.*s", host, port, STR_ARG(addresses)).p);
    SET(CURLOPT_RESOLVE, t->by_curl.resolve);
}

static void carry(struct uplink_transfer *t, struct str addresses)
{
    t->by_curl.easy = curl_easy_init();
    if (!t->by_curl.easy) {
        uplink_transfer_tell_fault(t, UPLINK_FAULT_OTHER, STR("out of memory"));
        return;
    }
    if (addresses.n > 0)
        name_addresses(t, addresses);
    SET(CURLOPT_URL, arena_strz(t->arena, t->x.url));
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    if (t->x.on_data)
        set_stream(t);
    else
        SET(CURLOPT_TIMEOUT_MS, (long) t->x.timeout_ms);
    /* The whole time may go into a handshake: only the dial has a limit of its own. */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long) t->x.timeout_ms);
    set_callbacks(t);
    set_headers(t);
    set_proxy(t);
    if (t->x.tls)
        set_tls(t);
    t->by_curl.is_added = curl_multi_add_handle(t->wire->multi, t->by_curl.easy) == CURLM_OK;
}

#undef SET

static bool is_dialed(const struct uplink_transfer *t)
{
    curl_off_t connected_us = 0;
    if (t->by_curl.is_added)
        (void) curl_easy_getinfo(t->by_curl.easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    return connected_us > 0;
}

static void done(struct uplink_transfer *t)
{
    if (t->by_curl.is_added)
        (void) curl_multi_remove_handle(t->wire->multi, t->by_curl.easy);
    curl_easy_cleanup(t->by_curl.easy);
    curl_slist_free_all(t->by_curl.headers);
    curl_slist_free_all(t->by_curl.resolve);
    buf_done(&t->by_curl.body);
    loop_undefer(t->wire->loop, &t->by_curl.hand_over);
    loop_timer_free(t->by_curl.deadline);
}

const struct uplink_carrier uplink_curl_carrier = {
    .carry = carry, .is_dialed = is_dialed, .done = done};
