/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange: the name is looked up at the port's servers, the socket bound to the source
 * address, then a carrier does the rest on a connection of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "controllerconn/pac.h"
#include "controllerconn/trace.h"
#include "controllerconn/transfer_internal.h"

static void free_transfer(struct uplink_transfer *t)
{
    uplink_lookup_cancel(t->lookup);
    loop_timer_free(t->dial_timer);
    loop_undefer(t->wire->loop, &t->soon);
    if (t->carrier)
        t->carrier->done(t);
    arena_free(t->arena);
    mem_free(t);
}

void uplink_transfer_tell(struct uplink_transfer *t, const struct uplink_reply *r)
{
    if (r->fault == UPLINK_FAULT_NONE)
        uplink_trace_add(t->x.trace, "HTTP %d, %zu bytes%s", r->http_status, r->body.n,
                         r->is_resumed ? ", session resumed" : "");
    else
        uplink_trace_add(t->x.trace, "failed: %.*s", STR_ARG(r->error));
    t->on_done(t->arg, r);
    free_transfer(t);
}

void uplink_transfer_tell_fault(struct uplink_transfer *t, enum uplink_fault fault,
                                struct str error)
{
    uplink_transfer_tell(t, &(struct uplink_reply){.fault = fault, .error = error});
}

/* ---- for carriers -------------------------------------------------------------------------- */

enum uplink_fault uplink_transfer_certificate_fault(long verdict)
{
    switch (verdict) {
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

int uplink_transfer_bind(const struct uplink_transfer *t, int fd, int family)
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

/* ---- how it begins ------------------------------------------------------------------------- */

static void on_dial_timeout(void *arg)
{
    struct uplink_transfer *t = arg;
    if (!t->carrier || !t->carrier->is_dialed(t))
        uplink_transfer_tell_fault(t, UPLINK_FAULT_TIMEOUT,
                                   t->lookup ? STR("lookup: i/o timeout")
                                             : STR("dial tcp: i/o timeout"));
}

/* libcurl makes a context of TLS for each connection, so what we can do ourselves we do. */
static void carry(struct uplink_transfer *t, struct str addresses)
{
    const bool is_ours = !t->proxy_host && str_is(t->target.scheme, "https") && !t->x.on_data;
    t->carrier = is_ours ? &uplink_own_carrier : &uplink_curl_carrier;
    t->carrier->carry(t, addresses);
}

static void on_lookup(void *arg, struct str addresses, struct str error)
{
    struct uplink_transfer *t = arg;
    t->lookup = NULL;
    if (addresses.n == 0) {
        const bool is_none = str_is(error, "no suitable address");
        uplink_transfer_tell_fault(
            t, is_none ? UPLINK_FAULT_NO_ADDRESS : UPLINK_FAULT_LOOKUP,
            is_none ? error
                    : arena_printf(t->arena, "lookup %s: %.*s",
                                   t->proxy_host ? t->proxy_host : t->target_host, STR_ARG(error)));
        return;
    }
    uplink_trace_add(t->x.trace, "lookup: %.*s", STR_ARG(addresses));
    carry(t, addresses);
}

/* Whoever starts an exchange never hears of its end before that call returns. */
static void on_soon(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, soon);
    if (t->early_fault == UPLINK_FAULT_NONE)
        carry(t, (struct str){0});
    else
        uplink_transfer_tell_fault(t, t->early_fault, t->early_error);
}

static void fail_soon(struct uplink_transfer *t, enum uplink_fault fault, struct str error)
{
    t->early_fault = fault;
    t->early_error = error;
    loop_defer(t->wire->loop, &t->soon);
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
        loop_defer(t->wire->loop, &t->soon);
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
    t->soon.fn = on_soon;
    uplink_trace_add(x->trace, "%s %.*s from %.*s", x->is_post ? "POST" : "GET", STR_ARG(x->url),
                     STR_ARG(x->source));
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
