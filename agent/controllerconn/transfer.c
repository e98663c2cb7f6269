/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange: the name is looked up at the port's servers, the socket bound to the source
 * address, then libcurl does the rest on a connection of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "controllerconn/lookup.h"
#include "controllerconn/pac.h"
#include "controllerconn/tls_internal.h"
#include "controllerconn/trace.h"
#include "controllerconn/url.h"
#include "controllerconn/wire_internal.h"

/* What pillar offers below TLS 1.3. */
#define TLS12_SUITES "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"
#define LIBCURL_TRACE_PREFIX "curl: "

struct uplink_transfer {
    struct curl_wire *wire;
    struct uplink_exchange x;
    struct arena *arena;
    struct uplink_url target, proxy;
    const char *target_host, *proxy_host;
    CURL *easy;
    struct curl_slist *headers, *resolve;
    struct uplink_lookup *lookup;
    struct loop_timer *dial_timer;
    struct loop_deferred fail; /* of what fails before it begins */
    enum uplink_fault early_fault;
    struct str early_error;
    struct buf body;
    char curl_error[CURL_ERROR_SIZE];
    int socket_errno; /* of making or binding the socket */
    bool is_resumed, is_too_large, is_added;
    unsigned n_contexts;
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

static void free_transfer(struct uplink_transfer *t)
{
    uplink_lookup_cancel(t->lookup);
    loop_timer_free(t->dial_timer);
    loop_undefer(t->wire->loop, &t->fail);
    if (t->is_added)
        (void) curl_multi_remove_handle(t->wire->multi, t->easy);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->resolve);
    buf_done(&t->body);
    arena_free(t->arena);
    mem_free(t);
}

static void tell(struct uplink_transfer *t, const struct uplink_reply *r)
{
    if (r->fault == UPLINK_FAULT_NONE)
        uplink_trace_add(t->x.trace, "HTTP %d, %zu bytes%s", r->http_status, r->body.n,
                         r->is_resumed ? ", session resumed" : "");
    else
        uplink_trace_add(t->x.trace, "failed: %.*s", STR_ARG(r->error));
    t->on_done(t->arg, r);
    free_transfer(t);
}

static void tell_fault(struct uplink_transfer *t, enum uplink_fault fault, struct str error)
{
    tell(t, &(struct uplink_reply){.fault = fault, .error = error});
}

/* ---- what libcurl asks --------------------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct uplink_transfer *t = arg;
    if (size * n > t->x.max_reply_bytes - t->body.n) {
        t->is_too_large = true;
        return 0;
    }
    buf_append(&t->body, bytes, size * n);
    return size * n;
}

/* The TLS session can be seen only while the transfer lasts. */
static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct uplink_transfer *t = arg;
    struct curl_tlssessioninfo *info = NULL;
    (void) bytes;
    if (curl_easy_getinfo(t->easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK && info &&
        info->backend == CURLSSLBACKEND_OPENSSL && info->internals)
        t->is_resumed = SSL_session_reused(info->internals);
    return size * n;
}

static CURLcode on_tls_context(CURL *easy, void *ctx, void *arg)
{
    struct uplink_transfer *t = arg;
    (void) easy;
    /* A proxy that speaks TLS itself comes first. */
    const bool is_proxy = t->proxy_host && uplink_url_is_secure(&t->proxy) && t->n_contexts++ == 0;
    const char *host = is_proxy ? t->proxy_host : t->target_host;
    return uplink_tls_apply(t->x.tls, host, ctx) < 0 ? CURLE_SSL_CERTPROBLEM : CURLE_OK;
}

static int bind_socket(const struct uplink_transfer *t, int fd, int family)
{
    struct sockaddr_storage at = {.ss_family = (sa_family_t) family};
    struct sockaddr_in *v4 = (struct sockaddr_in *) &at;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) &at;
    if (t->x.port && t->x.port->binds_device &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, t->x.port->name.p,
                   (socklen_t) t->x.port->name.n) < 0)
        return -errno;
    if (t->x.source.n == 0)
        return 0;
    void *bytes = family == AF_INET ? (void *) &v4->sin_addr : (void *) &v6->sin6_addr;
    if (inet_pton(family, arena_strz(t->arena, t->x.source), bytes) != 1)
        return -EAFNOSUPPORT;
    /* A port number is then chosen for the connection, not for the address: thousands share it. */
    const int on = 1;
    (void) setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    return bind(fd, (struct sockaddr *) &at, family == AF_INET ? sizeof(*v4) : sizeof(*v6)) < 0
               ? -errno
               : 0;
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct uplink_transfer *t = arg;
    (void) purpose;
    const int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd < 0) {
        t->socket_errno = errno;
        return CURL_SOCKET_BAD;
    }
    const int r = bind_socket(t, fd, to->family);
    if (r == 0)
        return fd;
    t->socket_errno = -r;
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
    long result = 0;
    (void) curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result);
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return UPLINK_FAULT_CERT_TIME;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED:
        return UPLINK_FAULT_CERT_AUTHORITY;
    default:
        return UPLINK_FAULT_OTHER;
    }
}

static enum uplink_fault fault_of(const struct uplink_transfer *t, CURLcode code)
{
    long os_errno = 0;
    (void) curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (t->is_too_large)
        return UPLINK_FAULT_TOO_LARGE;
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        if (t->socket_errno == EAFNOSUPPORT)
            return UPLINK_FAULT_NO_ADDRESS;
        return os_errno == ECONNREFUSED ? UPLINK_FAULT_REFUSED : UPLINK_FAULT_OTHER;
    case CURLE_PEER_FAILED_VERIFICATION:
        return fault_of_certificate(t->easy);
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
    if (t->is_too_large)
        return arena_printf(t->arena, "the answer has more than %zu bytes", t->x.max_reply_bytes);
    if (code == CURLE_COULDNT_CONNECT && t->socket_errno == EAFNOSUPPORT)
        return STR("no suitable address");
    if (code == CURLE_COULDNT_CONNECT && t->socket_errno)
        return arena_printf(t->arena, "bind: %s", strerror(t->socket_errno));
    return str_of(t->curl_error[0] ? t->curl_error : curl_easy_strerror(code));
}

void uplink_transfer_end(struct uplink_transfer *t, CURLcode code)
{
    if (code != CURLE_OK) {
        tell_fault(t, fault_of(t, code), words_of(t, code));
        return;
    }
    long status = 0;
    char *type = NULL, *location = NULL;
    (void) curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void) curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    (void) curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &location);
    tell(t, &(struct uplink_reply){.http_status = (int) status,
                                   .body = buf_str(&t->body),
                                   .content_type = str_of(type),
                                   .location = str_of(location),
                                   .is_resumed = t->is_resumed});
}

static void on_dial_timeout(void *arg)
{
    struct uplink_transfer *t = arg;
    curl_off_t connected_us = 0;
    if (t->is_added)
        (void) curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    if (connected_us == 0)
        tell_fault(t, UPLINK_FAULT_TIMEOUT,
                   t->lookup ? STR("lookup: i/o timeout") : STR("dial tcp: i/o timeout"));
}

/* ---- how it begins ------------------------------------------------------------------------- */

#define SET(option, value) (void) curl_easy_setopt(t->easy, option, value)

static void set_tls(struct uplink_transfer *t)
{
    SET(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_CIPHER_LIST, TLS12_SUITES);
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
        t->headers = curl_slist_append(t->headers, arena_strz(t->arena, t->x.headers[i]));
    t->headers = curl_slist_append(t->headers, "Connection: close");
    t->headers = curl_slist_append(t->headers, "Expect:");
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_HEADEROPT, (long) CURLHEADER_SEPARATE);
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
    SET(CURLOPT_ERRORBUFFER, t->curl_error);
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

static void send_it(struct uplink_transfer *t)
{
    SET(CURLOPT_URL, arena_strz(t->arena, t->x.url));
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long) t->x.timeout_ms);
    /* The whole time may go into a handshake: only the dial has a limit of its own. */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long) t->x.timeout_ms);
    SET(CURLOPT_RESOLVE, t->resolve);
    set_callbacks(t);
    set_headers(t);
    set_proxy(t);
    if (t->x.tls)
        set_tls(t);
    t->is_added = curl_multi_add_handle(t->wire->multi, t->easy) == CURLM_OK;
}

#undef SET

static void on_lookup(void *arg, struct str addresses, struct str error)
{
    struct uplink_transfer *t = arg;
    t->lookup = NULL;
    if (addresses.n == 0) {
        const bool is_none = str_is(error, "no suitable address");
        tell_fault(t, is_none ? UPLINK_FAULT_NO_ADDRESS : UPLINK_FAULT_LOOKUP,
                   is_none ? error
                           : arena_printf(t->arena, "lookup %s: %.*s",
                                          t->proxy_host ? t->proxy_host : t->target_host,
                                          STR_ARG(error)));
        return;
    }
    uplink_trace_add(t->x.trace, "lookup: %.*s", STR_ARG(addresses));
    const char *host = t->proxy_host ? t->proxy_host : t->target_host;
    const unsigned port = t->proxy_host ? t->proxy.port : t->target.port;
    /* With a plus libcurl forgets it after a minute: redirects may name many hosts. */
    t->resolve = curl_slist_append(
        NULL, arena_printf(t->arena, "+%s:%u:%.*s", host, port, STR_ARG(addresses)).p);
    send_it(t);
}

static void on_early_failure(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, fail);
    tell_fault(t, t->early_fault, t->early_error);
}

static void fail_soon(struct uplink_transfer *t, enum uplink_fault fault, struct str error)
{
    t->early_fault = fault;
    t->early_error = error;
    loop_defer(t->wire->loop, &t->fail);
}

static void begin(struct uplink_transfer *t)
{
    if (uplink_url_parse(t->x.url, &t->target) < 0) {
        fail_soon(t, UPLINK_FAULT_OTHER, STR("the URL is invalid"));
        return;
    }
    if (uplink_url_is_secure(&t->target) && !t->x.tls) {
        fail_soon(t, UPLINK_FAULT_OTHER, STR("no TLS configuration"));
        return;
    }
    t->target_host = arena_strz(t->arena, t->target.host);
    struct str host = t->target.host;
    if (t->x.proxy.n > 0) {
        if (uplink_url_parse(t->x.proxy, &t->proxy) < 0) {
            fail_soon(t, UPLINK_FAULT_OTHER, STR("the proxy's URL is invalid"));
            return;
        }
        t->proxy_host = arena_strz(t->arena, t->proxy.host);
        host = t->proxy.host;
        uplink_trace_add(t->x.trace, "through the proxy %s:%u", t->proxy_host, t->proxy.port);
    }
    if (uplink_address_is_literal(host)) {
        send_it(t);
    } else if (t->x.port) {
        const struct uplink_lookup_query q = {
            .port = t->x.port, .source = t->x.source, .host = host};
        t->lookup = uplink_lookup_start(t->wire->loop, &q, on_lookup, t);
    } else {
        fail_soon(t, UPLINK_FAULT_LOOKUP, STR("no port whose DNS servers could be asked"));
    }
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    t->wire = CONTAINER_OF(wire, struct curl_wire, wire);
    t->x = *x;
    t->arena = arena_new();
    t->on_done = on_done;
    t->arg = arg;
    t->fail.fn = on_early_failure;
    t->easy = curl_easy_init();
    uplink_trace_add(x->trace, "%s %.*s from %.*s", x->is_post ? "POST" : "GET", STR_ARG(x->url),
                     STR_ARG(x->source));
    if (!t->easy) {
        fail_soon(t, UPLINK_FAULT_OTHER, STR("out of memory"));
        return t;
    }
    const bool has_dial_limit = x->dial_timeout_ms > 0 && x->dial_timeout_ms < x->timeout_ms;
    t->dial_timer = loop_timer_new(t->wire->loop, on_dial_timeout, t);
    loop_timer_start_real(t->dial_timer, has_dial_limit ? x->dial_timeout_ms : x->timeout_ms,
                          /* repeat_ms= */ 0);
    begin(t);
    return t;
}

static void cancel(struct uplink_transfer *t)
{
    free_transfer(t);
}

const struct uplink_wire_ops uplink_curl_ops = {.start = start,
                                                .cancel = cancel,
                                                .ask_script = uplink_pac_ask,
                                                .cancel_script = uplink_pac_cancel};
