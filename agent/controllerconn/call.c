/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way: ports by cost, the addresses of each, redirects; what each failure means is
 * decided in outcome.c.
 *
 *     next port -> local checks -> next address -> proxy -> exchange -> HTTP answer: this port is
 * done ^                            ^                       |-- redirect: the same address again |
 * '-- no answer ----------'
 *         '-- no address left, or an HTTP error that lets others try
 */
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "controllerconn/proxy.h"
#include "controllerconn/uplink_internal.h"

#define MAX_HEADERS 8

static void next_port(struct uplink_call *c);
static void next_address(struct uplink_call *c);
static void exchange(struct uplink_call *c);

static int64_t now_us(const struct uplink_call *c)
{
    return c->uplink->o.clock->monotonic_us(c->uplink->o.clock);
}

static int64_t wall_us(const struct uplink_call *c)
{
    return c->uplink->o.clock->wall_us(c->uplink->o.clock);
}

static const struct uplink_port *port_of(const struct uplink_call *c)
{
    return &c->ports->items[c->order[c->port_at]];
}

/* ---- the end ------------------------------------------------------------------------------- */

static void free_parts(struct uplink_call *c)
{
    uplink_ports_unref(c->ports);
    uplink_tls_unref(c->tls);
    buf_done(&c->body);
    buf_done(&c->words);
    buf_done(&c->opened);
    arena_free(c->arena);
    mem_free(c);
}

void uplink_call_free(struct uplink_call *c)
{
    const struct uplink_wire_ops *ops = c->uplink->o.wire->ops;
    if (c->transfer)
        ops->cancel(c->transfer);
    if (c->script)
        ops->cancel_script(c->script);
    loop_undefer(c->uplink->o.loop, &c->next);
    list_remove(&c->link);
    free_parts(c);
}

void uplink_cancel(struct uplink_call *c)
{
    uplink_call_free(c);
}

static void finish(struct uplink_call *c, int error)
{
    c->answer.error = error;
    c->answer.words = buf_str(&c->words);
    c->answer.is_dry_run = c->r.is_dry_run;
    uplink_trace_add(c->r.trace, "over: %s, status %s",
                     error == 0 ? "delivered" : log_errno_text(error),
                     uplink_status_name(c->answer.status));
    list_remove(&c->link); /* who is told may free the uplink */
    c->on_done(c->arg, &c->answer);
    free_parts(c);
}

static void add_words(struct uplink_call *c, struct str source, struct str error)
{
    if (c->words.n > UPLINK_MAX_ERROR_BYTES)
        return;
    if (c->words.n > 0)
        buf_append_str(&c->words, STR("; "));
    if (c->port_at < c->n_order && c->n_order > 0)
        buf_printf(&c->words, "send via %.*s", STR_ARG(port_of(c)->name));
    if (source.n > 0)
        buf_printf(&c->words, " with src IP %.*s", STR_ARG(source));
    buf_printf(&c->words, "%s%.*s", c->words.n > 0 ? ": " : "", STR_ARG(error));
}

/* ---- of a port ----------------------------------------------------------------------------- */

static void count_failure(struct uplink_call *c)
{
    if (!c->r.is_dry_run)
        uplink_metrics_failure(c->uplink->o.metrics, port_of(c)->name, wall_us(c), c->r.url);
}

static void fail_port(struct uplink_call *c)
{
    count_failure(c);
    c->port_at++;
    next_port(c);
}

/* A name must be looked up, at the proxy's or at the target's. */
static bool needs_lookup(const struct uplink_call *c)
{
    struct uplink_url u;
    if (c->proxy.n > 0)
        return uplink_url_parse(c->proxy, &u) < 0 || !uplink_address_is_literal(u.host);
    return uplink_url_parse(c->r.url, &u) < 0 || !uplink_address_is_literal(u.host);
}

/* What can be seen without sending; false: the port is out. */
static bool check_port(struct uplink_call *c)
{
    const struct uplink_port *port = port_of(c);
    if (!uplink_port_has_address(port) && c->r.source.n == 0) {
        c->answer.is_no_address = true;
        add_words(c, STR_NONE, STR("no IP address"));
        return false;
    }
    if (port->n_dns_servers == 0 && needs_lookup(c)) {
        c->answer.is_no_dns = true;
        add_words(c, STR_NONE, STR("no DNS server"));
        return false;
    }
    return true;
}

static void check_and_go(struct uplink_call *c)
{
    if (!check_port(c)) {
        fail_port(c);
        return;
    }
    if (c->r.is_dry_run) {
        c->answer.port = port_of(c)->name;
        finish(c, 0);
        return;
    }
    next_address(c);
}

static void on_script_answer(void *arg, struct str answer)
{
    struct uplink_call *c = arg;
    c->script = NULL;
    /* A script that fails means no proxy. */
    c->proxy = answer.p ? uplink_proxy_of_answer(c->arena, answer) : STR_NONE;
    uplink_trace_add(c->r.trace, "proxy script says %.*s", STR_ARG(answer));
    if (c->hop_url.p != c->r.url.p)
        exchange(c);
    else
        check_and_go(c);
}

/* The first address a script can be told is its own. */
static struct str first_address(const struct uplink_call *c)
{
    const struct uplink_port *port = port_of(c);
    for (size_t i = 0; i < port->n_addresses; i++)
        if (!uplink_address_is_link_local(port->addresses[i]))
            return port->addresses[i];
    return STR_NONE;
}

/* Which proxy the hop takes; true: a script is being asked and goes on from there. */
static bool choose_proxy(struct uplink_call *c)
{
    const struct uplink_port *port = port_of(c);
    c->proxy = STR_NONE;
    if (c->r.is_local || c->r.forbids_proxy)
        return false;
    if (port->pac.n == 0) {
        c->proxy = uplink_proxy_explicit(c->arena, port, c->hop_url);
        return false;
    }
    struct uplink_wire *w = c->uplink->o.wire;
    c->script = w->ops->ask_script(w, port, first_address(c), c->hop_url, on_script_answer, c);
    return true;
}

static void next_port(struct uplink_call *c)
{
    if (c->port_at >= c->n_order) {
        /* The status of who answered last tells what its answer cannot: that is not handed on. */
        c->answer.http_status = 0;
        finish(c, -EHOSTUNREACH);
        return;
    }
    c->address_at = 0;
    c->n_redirects = 0;
    c->hop_url = c->r.url;
    c->hop_is_post = c->r.body.p != NULL;
    if (!choose_proxy(c))
        check_and_go(c);
}

/* ---- of an address ------------------------------------------------------------------------- */

/* Advances to an address that may be used. */
static struct str usable_address(struct uplink_call *c)
{
    const struct uplink_port *port = port_of(c);
    if (c->r.source.n > 0)
        return c->address_at == 0 ? c->r.source : STR_NONE;
    while (c->address_at < port->n_addresses &&
           uplink_address_is_link_local(port->addresses[c->address_at]))
        c->address_at++;
    return c->address_at < port->n_addresses ? port->addresses[c->address_at] : STR_NONE;
}

static void next_address(struct uplink_call *c)
{
    if (usable_address(c).n == 0) {
        fail_port(c);
        return;
    }
    exchange(c);
}

static void try_next_address(struct uplink_call *c)
{
    c->address_at++;
    c->n_redirects = 0;
    c->hop_is_post = c->r.body.p != NULL;
    if (c->hop_url.p == c->r.url.p) {
        next_address(c);
        return;
    }
    /* The proxy was another hop's. */
    c->hop_url = c->r.url;
    if (!choose_proxy(c))
        next_address(c);
}

static void on_fault(struct uplink_call *c, const struct uplink_reply *r)
{
    const struct uplink_verdict v = uplink_judge_fault(r->fault, c->proxy.n > 0);
    if (v.status != UPLINK_NONE)
        c->answer.status = v.status;
    c->answer.is_no_name = c->answer.is_no_name || r->fault == UPLINK_FAULT_LOOKUP;
    if (r->fault != UPLINK_FAULT_NO_ADDRESS)
        add_words(c, usable_address(c), r->error);
    try_next_address(c);
}

static void open_reply(struct uplink_call *c)
{
    const struct uplink_envelope *e = c->uplink->o.envelope;
    enum uplink_status status = UPLINK_NONE;
    const int r = e->open(e->arg, c->answer.body, &c->opened, &status);
    if (r < 0) {
        uplink_metrics_auth_failure(c->uplink->o.metrics);
        c->answer.status = status;
        c->answer.body = STR_NONE;
        add_words(c, STR_NONE, STR("the answer's envelope is not believed"));
        finish(c, -EKEYREJECTED);
        return;
    }
    c->answer.body = buf_str(&c->opened);
    finish(c, 0);
}

static void deliver(struct uplink_call *c)
{
    c->answer.status = UPLINK_NONE; /* whatever cheaper ports left; until 2025 it stayed */
    const bool has_envelope = c->answer.http_status == 200 || c->answer.http_status == 201;
    if (c->r.opens_reply && has_envelope && c->uplink->o.envelope)
        open_reply(c);
    else
        finish(c, 0);
}

static void on_piece(void *arg, struct str piece)
{
    struct uplink_call *c = arg;
    if (!c->open_us)
        c->open_us = now_us(c);
    c->n_stream += piece.n;
    c->r.on_data(c->arg, piece);
}

static void on_http(struct uplink_call *c, const struct uplink_reply *r)
{
    const int64_t answered_us = c->open_us ? c->open_us : now_us(c);
    const struct uplink_success s = {.url = c->r.url,
                                     .sent_bytes = c->body.n,
                                     .received_bytes = r->body.n + c->n_stream,
                                     .time_spent_ms = (answered_us - c->begin_us) / 1000,
                                     .is_resumed = r->is_resumed};
    const bool is_delivered = uplink_http_is_delivered(r->http_status, c->r.accepts_4xx);
    if (c->r.is_local && !is_delivered)
        count_failure(c);
    else
        uplink_metrics_success(c->uplink->o.metrics, port_of(c)->name, wall_us(c), &s);
    c->answer.last_http_status = c->answer.http_status = r->http_status;
    c->answer.port = port_of(c)->name;
    c->answer.body = r->body;
    c->answer.content_type = r->content_type;
    if (is_delivered) {
        deliver(c);
        return;
    }
    const struct uplink_verdict v = uplink_judge_http(r->http_status, c->r.bails_on_http_error);
    if (v.status != UPLINK_NONE)
        c->answer.status = v.status;
    add_words(c, usable_address(c), arena_printf(c->arena, "HTTP status %d", r->http_status));
    if (v.is_final || c->r.is_local) {
        finish(c, -EPROTO);
        return;
    }
    c->answer.body = c->answer.content_type = STR_NONE;
    c->port_at++;
    next_port(c);
}

/* 301, 302 and 303 turn a POST into a GET, 307 and 308 repeat it. */
static bool follow(struct uplink_call *c, const struct uplink_reply *r)
{
    const int code = r->http_status;
    const bool is_redirect =
        code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
    struct uplink_url u;
    if (!is_redirect || c->n_redirects >= UPLINK_MAX_REDIRECTS ||
        uplink_url_parse(r->location, &u) < 0)
        return false;
    c->n_redirects++;
    c->hop_url = arena_str(c->arena, r->location);
    if (code != 307 && code != 308)
        c->hop_is_post = false;
    if (!choose_proxy(c))
        exchange(c);
    return true;
}

static void on_reply(void *arg, const struct uplink_reply *r)
{
    struct uplink_call *c = arg;
    c->transfer = NULL;
    if (r->fault != UPLINK_FAULT_NONE)
        on_fault(c, r);
    else if (!follow(c, r))
        on_http(c, r);
}

/* ---- of an exchange ------------------------------------------------------------------------ */

static size_t usual_headers(struct uplink_call *c, struct str *headers)
{
    const struct uplink *u = c->uplink;
    char id[UUID_TEXT_BYTES];
    size_t n = 0;
    random_uuid(id);
    headers[n++] = arena_printf(c->arena, "X-Request-Id: %s", id);
    headers[n++] = arena_printf(c->arena, "User-Agent: %.*s", STR_ARG(u->user_agent));
    const struct str type = c->r.is_local ? c->r.content_type : STR("application/x-proto-binary");
    if (c->hop_is_post)
        headers[n++] =
            arena_printf(c->arena, "Content-Type:%s%.*s", type.n ? " " : "", STR_ARG(type));
    if (c->r.is_local || !uuid_is_zero(&u->device))
        return n;
    if (u->serial.n > 0)
        headers[n++] = arena_printf(c->arena, "X-Serial-Number: %.*s", STR_ARG(u->serial));
    if (u->soft_serial.n > 0)
        headers[n++] = arena_printf(c->arena, "X-Soft-Serial: %.*s", STR_ARG(u->soft_serial));
    return n;
}

static void exchange(struct uplink_call *c)
{
    const struct uplink *u = c->uplink;
    const int64_t left_ms = (c->deadline_us - now_us(c)) / 1000;
    if (left_ms <= 0) {
        add_words(c, usable_address(c), STR("no time left"));
        count_failure(c);
        c->answer.http_status = 0;
        finish(c, -EHOSTUNREACH);
        return;
    }
    struct str *headers = ARENA_ARRAY(c->arena, struct str, MAX_HEADERS);
    const bool has_own = c->r.headers != NULL;
    const size_t n_headers = has_own ? c->r.n_headers : usual_headers(c, headers);
    const struct uplink_exchange x = {
        .url = c->hop_url,
        .is_post = c->hop_is_post,
        .body = c->hop_is_post ? buf_str(&c->body) : STR_NONE,
        .headers = has_own ? c->r.headers : headers,
        .n_headers = n_headers,
        .port = port_of(c),
        .source = usable_address(c),
        .proxy = c->proxy,
        .tls = c->tls,
        .timeout_ms = MIN(u->send_timeout_ms, left_ms),
        .dial_timeout_ms = u->dial_timeout_ms,
        .max_reply_bytes = c->r.max_reply_bytes ? c->r.max_reply_bytes : UPLINK_MAX_REPLY_BYTES,
        .on_data = c->r.on_data ? on_piece : NULL,
        .keepalive_s = c->r.keepalive_s,
        .trace = c->r.trace,
    };
    c->begin_us = now_us(c);
    c->transfer = u->o.wire->ops->start(u->o.wire, &x, on_reply, c);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static bool is_wrapped(const struct uplink_call *c)
{
    return c->uplink->o.envelope && !c->r.is_local && c->r.body.p &&
           uplink_url_is_wrapped(c->r.url) && c->uplink->o.api == UPLINK_API_V2;
}

static int make_body(struct uplink_call *c)
{
    const struct uplink_envelope *e = c->uplink->o.envelope;
    if (is_wrapped(c))
        return e->wrap(e->arg, uplink_url_is_registration(c->r.url), c->r.body, &c->body);
    if (c->r.body.p)
        buf_append_str(&c->body, c->r.body);
    return 0;
}

/* False: the one port asked for is not there. */
static bool choose_ports(struct uplink_call *c)
{
    if (!c->r.port.p) {
        c->n_order = uplink_ports_order(c->ports, c->iteration, c->order);
        return true;
    }
    const struct uplink_port *one = uplink_ports_find(c->ports, c->r.port);
    if (!one)
        return false;
    c->order[0] = (size_t) (one - c->ports->items);
    c->n_order = 1;
    return true;
}

static void on_begin(struct loop_deferred *d)
{
    struct uplink_call *c = CONTAINER_OF(d, struct uplink_call, next);
    if (!choose_ports(c)) {
        add_words(c, STR_NONE, STR("no such port"));
        finish(c, -ENOENT);
        return;
    }
    if (c->n_order == 0) {
        buf_append_str(&c->words, STR("No management interfaces"));
        finish(c, -ENODEV);
        return;
    }
    if (!c->r.is_dry_run && make_body(c) < 0) {
        buf_append_str(&c->words, STR("the envelope cannot be made"));
        c->answer.status = UPLINK_FAILED;
        finish(c, -EIO);
        return;
    }
    next_port(c);
}

static void copy_request(struct uplink_call *c, const struct uplink_request *r)
{
    struct arena *a = c->arena;
    c->r = *r;
    c->r.url = uplink_url_complete(a, r->url);
    c->r.body = r->body.p ? arena_str(a, r->body) : STR_NONE;
    c->r.port = r->port.p ? arena_str(a, r->port) : STR_NONE;
    c->r.source = arena_str(a, r->source);
    c->r.content_type = arena_str(a, r->content_type);
    if (!r->headers)
        return;
    struct str *headers = ARENA_ARRAY(a, struct str, r->n_headers ? r->n_headers : 1);
    for (size_t i = 0; i < r->n_headers; i++)
        headers[i] = arena_str(a, r->headers[i]);
    c->r.headers = headers;
}

struct uplink_call *uplink_send(struct uplink *u, const struct uplink_request *r,
                                void (*on_done)(void *arg, const struct uplink_answer *answer),
                                void *arg)
{
    struct uplink_call *c = NEW(struct uplink_call);
    struct uplink_tls *tls = r->tls ? r->tls : u->tls;
    const int64_t usual_ms = MIN(3 * u->send_timeout_ms, UPLINK_MAX_BUDGET_MS);
    c->uplink = u;
    c->iteration = u->iteration++;
    c->arena = arena_new_with(1024);
    copy_request(c, r);
    c->ports = uplink_ports_ref(u->ports);
    c->tls = tls ? uplink_tls_ref(tls) : NULL;
    c->deadline_us = now_us(c) + (r->budget_ms > 0 ? r->budget_ms : usual_ms) * 1000;
    c->on_done = on_done;
    c->arg = arg;
    c->next.fn = on_begin;
    list_append(&u->calls, &c->link);
    loop_defer(u->o.loop, &c->next);
    return c;
}
