/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of management, one after the other:
 *
 *     lookup -> ping -> uuid -> pass
 *        |       `-> probe (http) -> probe (https) -> its proxies -> fail
 *        `-> fail, unless a proxy looks names up
 *
 * Every step leaves an entry in the port's checks. */
#include <errno.h>

#include "controllerconn/lookup.h"
#include "diag/diag_internal.h"

enum step { LOOKUP, PING, UUID, PROBE_HTTP, PROBE_HTTPS, PROXIES };

static const char *const step_names[] = {
    [LOOKUP] = "lookup",
    [PING] = "ping",
    [UUID] = "uuid",
    [PROBE_HTTP] = "probe-http",
    [PROBE_HTTPS] = "probe-https",
    [PROXIES] = "proxy",
};

static void begin_step(struct diag *d, enum step step);
static void begin_port(struct diag *d);
static void attempt(struct diag *d);

static int64_t now_us(const struct diag *d)
{
    return d->node->clock->monotonic_us(d->node->clock);
}

static const struct uplink_port *current(const struct diag *d)
{
    return &d->checks.ports->items[d->checks.port];
}

static bool has_proxy(const struct uplink_port *p)
{
    return p->n_proxies > 0 || p->pac.n > 0;
}

/* ---- results -------------------------------------------------------------------------------- */

struct finding {
    bool is_good;
    struct str words;
    int http_status;
};

static void note(struct diag *d, const struct finding *f)
{
    struct diag_checks *c = &d->checks;
    struct arena *a = d->arena;
    struct json o = json_object();
    (void) json_append_member(a, &o, STR("check"), json_string(str_of(step_names[c->step])));
    (void) json_append_member(a, &o, STR("result"),
                              json_string(f->is_good ? STR("pass") : STR("fail")));
    (void) json_append_member(a, &o, STR("target"), json_string(c->target));
    (void) json_append_member(a, &o, STR("tries"), json_int(c->n_tries));
    (void) json_append_member(a, &o, STR("ms"), json_int((now_us(d) - c->began_us) / 1000));
    (void) json_append_member(a, &o, STR("httpStatus"), json_int(f->http_status));
    struct str words = str_is_utf8(f->words) ? f->words : STR("(bytes)");
    (void) json_append_member(a, &o, STR("words"), json_string(arena_str(a, words)));
    (void) json_push(a, json_get(c->of_port, STR("checks")), o);
}

static void end_port(struct diag *d, struct str result)
{
    (void) json_set(d->arena, d->checks.of_port, STR("result"), json_string(result));
    d->checks.port++;
    begin_port(d);
}

/* What comes after a step that has ended so. */
static void go_on(struct diag *d, bool is_good)
{
    struct diag_checks *c = &d->checks;
    switch ((enum step) c->step) {
    case LOOKUP:
        if (is_good || has_proxy(current(d)))
            begin_step(d, PING);
        else
            end_port(d, STR("fail"));
        return;
    case PING:
        begin_step(d, is_good ? UUID : PROBE_HTTP);
        return;
    case UUID:
        end_port(d, is_good ? STR("pass") : STR("fail"));
        return;
    case PROBE_HTTP:
        begin_step(d, PROBE_HTTPS);
        return;
    case PROBE_HTTPS:
        begin_step(d, PROXIES);
        return;
    case PROXIES:
        c->address++;
        attempt(d);
        return;
    }
}

static void settle(struct diag *d, const struct finding *f)
{
    note(d, f);
    go_on(d, f->is_good);
}

/* ---- names ---------------------------------------------------------------------------------- */

static void stop_lookup(struct diag *d)
{
    uplink_lookup_cancel(d->checks.lookup);
    d->checks.lookup = NULL;
    loop_timer_stop(d->checks.timer);
}

static void look_up(struct diag *d);

static void lookup_failed(struct diag *d, struct str words)
{
    note(d, &(struct finding){.words = words});
    d->checks.address++;
    look_up(d);
}

static void on_lookup(void *arg, struct str found, struct str error)
{
    struct diag *d = arg;
    d->checks.lookup = NULL;
    loop_timer_stop(d->checks.timer);
    if (!found.n)
        lookup_failed(d, error);
    else if (d->options.fails_dns)
        settle(d, &(struct finding){.words = STR("simulated failure")});
    else
        settle(d, &(struct finding){.is_good = true, .words = found});
}

/* From each address of the port that is of use, until one has an answer. */
static void look_up(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    const struct uplink_port *p = current(d);
    while (c->address < p->n_addresses && uplink_address_is_link_local(p->addresses[c->address]))
        c->address++;
    if (c->address == p->n_addresses) {
        go_on(d, /* is_good= */ false);
        return;
    }
    c->began_us = now_us(d);
    c->n_tries = 1;
    loop_timer_start(c->timer, DIAG_LOOKUP_MS, 0);
    c->lookup =
        uplink_lookup_start(d->node->loop,
                            &(struct uplink_lookup_query){
                                .port = p, .source = p->addresses[c->address], .host = c->target},
                            on_lookup, d);
}

static void begin_lookup(struct diag *d)
{
    struct arena *a = d->arena;
    struct uplink_url url;
    struct str server = uplink_url_complete(a, d->node->server);
    d->checks.target = uplink_url_parse(server, &url) == 0 ? url.host : d->node->server;
    if (uplink_address_is_literal(d->checks.target)) {
        settle(d, &(struct finding){.is_good = true, .words = STR("it is an address")});
        return;
    }
    if (current(d)->n_dns_servers == 0) {
        settle(d, &(struct finding){.words = STR("the port has no DNS server")});
        return;
    }
    d->checks.address = 0;
    look_up(d);
}

/* ---- requests ------------------------------------------------------------------------------- */

static struct str words_of(struct diag *d, const struct uplink_answer *answer)
{
    static const struct {
        enum uplink_status status;
        const char *words;
    } table[] = {
        {UPLINK_UPGRADE, "Controller upgrade in progress"},
        {UPLINK_REFUSED, "Controller returned ECONNREFUSED"},
        {UPLINK_CERT_INVALID, "Controller certificate invalid time"},
        {UPLINK_CERT_MISS, "Controller certificate miss"},
        {UPLINK_NOT_FOUND, "Did controller delete the device?"},
    };
    for (size_t i = 0; i < N_ELEMENTS(table); i++)
        if (answer->status == table[i].status)
            return arena_printf(d->arena, "%s (%.*s)", table[i].words, STR_ARG(answer->words));
    return answer->words;
}

/* Another try would end the same. */
static bool is_final(const struct uplink_answer *answer)
{
    return answer->status == UPLINK_CERT_MISS || answer->status == UPLINK_FORBIDDEN ||
           (answer->last_http_status >= 400 && answer->last_http_status < 500);
}

/* A probe only asks whether somebody is there: whatever it says, and whoever vouches for it. */
static bool is_somebody(const struct uplink_answer *answer)
{
    return answer->error == 0 || answer->last_http_status ||
           answer->status == UPLINK_CERT_UNKNOWN_AUTHORITY ||
           answer->status == UPLINK_CERT_UNKNOWN_AUTHORITY_PROXY ||
           answer->status == UPLINK_CERT_INVALID;
}

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct diag *d = arg;
    struct diag_checks *c = &d->checks;
    bool is_probe = c->step >= PROBE_HTTP;
    struct finding f = {.is_good = is_probe ? is_somebody(answer) : answer->error == 0,
                        .http_status = answer->last_http_status};
    c->call = NULL;
    if (!f.is_good && !is_probe && !is_final(answer) && c->n_tries < DIAG_TRIES) {
        loop_timer_start(c->timer, DIAG_TRY_AGAIN_MS, 0);
        return;
    }
    if (f.is_good && c->step == PING && d->options.fails_ping)
        f = (struct finding){.words = STR("simulated failure"), .http_status = f.http_status};
    else if (!f.is_good)
        f.words = words_of(d, answer);
    settle(d, &f);
}

static void on_timer(void *arg)
{
    struct diag *d = arg;
    if (d->checks.step != LOOKUP) {
        attempt(d);
        return;
    }
    stop_lookup(d);
    lookup_failed(d, STR("no answer in time"));
}

static void send_probe(struct diag *d)
{
    static const struct str no_headers[1];
    struct diag_checks *c = &d->checks;
    c->call = uplink_send(d->link->uplink,
                          &(struct uplink_request){.url = c->target,
                                                   .port = current(d)->name,
                                                   .tls = d->plain_tls,
                                                   .headers = no_headers,
                                                   .forbids_proxy = c->step == PROXIES,
                                                   .budget_ms = DIAG_TRY_MS},
                          on_answer, d);
}

static void send_request(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    bool is_uuid = c->step == UUID;
    c->target = node_link_url(d->arena, d->link, is_uuid ? STR("uuid") : STR("ping"));
    c->call = uplink_send(d->link->uplink,
                          &(struct uplink_request){.url = c->target,
                                                   .body = is_uuid ? STR("") : STR_NONE,
                                                   .port = current(d)->name,
                                                   .opens_reply = is_uuid,
                                                   .budget_ms = DIAG_TRY_MS},
                          on_answer, d);
}

/* Goes past those that there are none of. */
static bool has_probe(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    struct arena *a = d->arena;
    const struct uplink_port *p = current(d);
    if (c->step == PROXIES) {
        if (c->address >= p->n_proxies)
            return false;
        const struct uplink_proxy *proxy = &p->proxies[c->address];
        c->target = proxy->port
                        ? arena_printf(a, "http://%.*s:%u/", STR_ARG(proxy->server), proxy->port)
                        : arena_printf(a, "http://%.*s/", STR_ARG(proxy->server));
        return true;
    }
    bool is_http = c->step == PROBE_HTTP;
    struct str endpoint = items_text(d->node->items, is_http ? "diag.probe.remote.http.endpoint"
                                                             : "diag.probe.remote.https.endpoint");
    bool is_whole = str_find_str(endpoint, STR("://")) >= 0;
    c->target = arena_printf(a, "%s%.*s",
                             is_whole  ? ""
                             : is_http ? "http://"
                                       : "https://",
                             STR_ARG(endpoint));
    return endpoint.n > 0;
}

static void attempt(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    if (c->step < PROBE_HTTP) {
        c->n_tries++;
        send_request(d);
    } else if (has_probe(d)) {
        c->began_us = now_us(d);
        c->n_tries = 1;
        send_probe(d);
    } else if (c->step == PROXIES) {
        end_port(d, STR("fail"));
    } else {
        go_on(d, /* is_good= */ false);
    }
}

/* ---- the course ----------------------------------------------------------------------------- */

static void begin_step(struct diag *d, enum step step)
{
    struct diag_checks *c = &d->checks;
    c->step = step;
    c->n_tries = 0;
    c->address = 0;
    c->began_us = now_us(d);
    if (step == LOOKUP)
        begin_lookup(d);
    else
        attempt(d);
}

static struct json *report_of(struct diag *d, struct str name)
{
    JSON_FOR_EACH_ITEM (json_get(d->report, STR("ports")), port)
        if (str_eq(json_get_str(port, STR("name")), name))
            return port;
    return NULL;
}

static void begin_port(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    for (; c->ports && c->port < c->ports->n_items; c->port++) {
        const struct uplink_port *p = current(d);
        c->of_port = report_of(d, p->name);
        if (!c->of_port || !uplink_port_is_management(c->ports, p))
            continue;
        if (uplink_port_has_address(p)) {
            begin_step(d, LOOKUP);
            return;
        }
        (void) json_set(d->arena, c->of_port, STR("result"), json_string(STR("fail")));
    }
    c->is_running = false;
    loop_timer_start(d->timer, 0, 0);
}

void diag_checks_begin(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    c->is_running = true;
    uplink_ports_unref(c->ports);
    c->ports = d->node->ports ? uplink_ports_ref(d->node->ports) : NULL;
    c->port = 0;
    if (!c->timer)
        c->timer = loop_timer_new(d->node->loop, on_timer, d);
    begin_port(d);
}

void diag_checks_cancel(struct diag *d)
{
    struct diag_checks *c = &d->checks;
    if (c->timer)
        stop_lookup(d);
    if (c->call)
        uplink_cancel(c->call);
    loop_timer_free(c->timer);
    uplink_ports_unref(c->ports);
    *c = (struct diag_checks){0};
}
