/* SPDX-License-Identifier: Apache-2.0 */
/* One test of connectivity: proxy scripts of ports first, then a ping over the ports, and what all
 * this says about the configuration in use. */
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "nim/links.h"
#include "nim/nim_internal.h"
#include "nim/overlay.h"
#include "node/netdump.h"

#define TOPIC "nim" /* of archived traces */

static void look_for_script(struct nim *m);
static void ask(struct nim *m);

/* ---- findings ------------------------------------------------------------------------------ */

static bool awaits_modem(const struct nim *m, struct arena *a, const struct dpc *d)
{
    bool has_modem = false;
    for (size_t i = 0; i < d->n_ports; i++) {
        const struct dpc_port *p = nim_find_port(m, str_of(d->ports[i].name));
        has_modem = has_modem || (d->ports[i].is_management && p && p->is_cellular);
    }
    if (!has_modem)
        return false;
    const struct json *status = nim_modems(m, a);
    int64_t of_us = 0;
    return !str_is(json_get_str(status, STR("DPCKey")), d->key) ||
           clock_parse(json_get_str(status, STR("DPCTimestamp")), &of_us) < 0 ||
           of_us != d->priority_us;
}

static bool needs_no_dns(const struct nim *m)
{
    ARENA_AUTO a = arena_new();
    struct uplink_url u;
    return uplink_url_parse(uplink_url_complete(a, m->node->server), &u) == 0 &&
           uplink_address_is_literal(u.host);
}

static void look_at_ports(struct nim *m, struct arena *a, const struct dpc *d,
                          struct verifier_findings *f)
{
    struct machine *machine = m->node->machine;
    struct machine_interface *list = NULL;
    size_t n = 0;
    (void) machine->functions->interfaces(machine, a, &list, &n);
    const bool has_dns = needs_no_dns(m);
    for (size_t i = 0; i < d->n_ports; i++) {
        const struct dpc_port *p = &d->ports[i];
        if (!dpc_port_is_management(d, p))
            continue;
        const bool is_there = status_find_interface(list, n, str_of(p->name)) != NULL;
        const struct uplink_port *u = uplink_ports_find(m->test.ports, str_of(p->name));
        const bool is_ready = u && uplink_port_has_address(u) && (has_dns || u->n_dns_servers > 0);
        f->n_present += is_there;
        f->n_missing += !is_there;
        f->has_ip_and_dns = f->has_ip_and_dns || is_ready;
    }
}

static struct verifier_findings look(struct nim *m, struct arena *a, const struct dpc *d)
{
    const struct nim_held held = nim_held(m, a, d);
    struct verifier_findings f = {.is_assigned = held.is_assigned,
                                  .is_held = held.is_held,
                                  .awaits_modem = awaits_modem(m, a, d),
                                  .is_local = overlay_covers_uplinks(d, m->overlay),
                                  .words = held.words};
    look_at_ports(m, a, d, &f);
    return f;
}

/* ---- the end ------------------------------------------------------------------------------- */

void nim_test_cancel(struct nim *m)
{
    struct nim_test *t = &m->test;
    uplink_wpad_cancel(TAKE(t->wpad));
    uplink_verify_cancel(TAKE(t->verify));
    uplink_trace_free(TAKE(t->trace));
    loop_undefer(m->node->loop, &t->next);
    uplink_ports_unref(TAKE(t->ports));
    t->is_under_way = false;
}

static void finish(struct nim *m, const struct verifier_findings *f)
{
    const bool is_stale = m->test.is_stale;
    nim_test_cancel(m);
    m->test.n_again = 0;
    m->needs_status = m->needs_list = true;
    if (is_stale && !f->is_reachable && !f->is_assigned)
        m->verifier.wants_test = true; /* it was of a network that is no more */
    else
        verifier_take(&m->verifier, f);
    nim_act(m);
}

static void fail(struct nim *m, struct str words)
{
    ARENA_AUTO a = arena_new();
    const struct dpc *d = dpc_list_current(&m->list);
    struct verifier_findings f = look(m, a, d);
    if (f.words.n == 0)
        f.words = words;
    finish(m, &f);
}

/* ---- proxy scripts ------------------------------------------------------------------------- */

static void forget_script(struct status_script *s)
{
    mem_free(s->port);
    mem_free(s->pac);
    mem_free(s->url);
}

/* True: it is another than before. */
static bool keep_script(struct nim *m, struct str port, struct str pac, struct str url)
{
    for (size_t i = 0; i < m->n_scripts; i++) {
        struct status_script *s = &m->scripts[i];
        if (!str_is(port, s->port))
            continue;
        if (pac.p && s->pac && str_is(pac, s->pac) && str_is(url, s->url))
            return false;
        forget_script(s);
        m->scripts[i] = m->scripts[--m->n_scripts];
        break;
    }
    if (!pac.p)
        return true;
    m->scripts = mem_realloc_array(m->scripts, m->n_scripts + 1, sizeof(m->scripts[0]));
    m->scripts[m->n_scripts++] =
        (struct status_script){.port = str_dup(port), .pac = str_dup(pac), .url = str_dup(url)};
    return true;
}

static void on_script(void *arg, struct str pac, struct str url, struct str words)
{
    struct nim *m = arg;
    struct nim_test *t = &m->test;
    t->wpad = NULL;
    const struct str name = t->ports->items[t->port_at].name;
    if (pac.p && pac.n > NIM_MAX_PAC_BYTES)
        pac = STR_NONE, words = STR("the proxy script is too large");
    const bool is_new = keep_script(m, name, pac, url);
    if (!pac.p) {
        struct dpc_port *p = nim_find_port(m, name);
        if (p)
            dpc_results_fail(&p->results, m->node->clock->wall_us(m->node->clock), words);
        fail(m, words);
        return;
    }
    if (is_new)
        nim_publish_status(m);
    t->port_at++;
    look_for_script(m);
}

static void look_for_script(struct nim *m)
{
    struct nim_test *t = &m->test;
    for (; t->port_at < t->ports->n_items; t->port_at++) {
        const struct uplink_port *p = &t->ports->items[t->port_at];
        if (!p->discovers_proxy || !uplink_port_is_management(t->ports, p) ||
            !uplink_port_has_address(p))
            continue;
        t->wpad = uplink_wpad_start(m->link->uplink, p, on_script, m);
        return;
    }
    ask(m);
}

/* ---- the ping ------------------------------------------------------------------------------ */

static void record_ports(struct nim *m, const struct uplink_verification *v)
{
    const int64_t now_us = m->node->clock->wall_us(m->node->clock);
    for (size_t i = 0; i < v->n_ports; i++) {
        const struct uplink_verified_port *result = &v->ports[i];
        struct dpc_port *p = nim_find_port(m, result->name);
        if (!p || !result->is_recorded || p->has_invalid_config)
            continue;
        if (result->is_good)
            dpc_results_succeed(&p->results, now_us, result->words);
        else
            dpc_results_fail(&p->results, now_us, result->words);
    }
}

/* Of what is not there nothing else is worth telling. */
static void record_missing(struct nim *m, struct dpc *d, struct arena *a)
{
    struct machine *machine = m->node->machine;
    struct machine_interface *list = NULL;
    size_t n = 0;
    if (machine->functions->interfaces(machine, a, &list, &n) < 0)
        return;
    for (size_t i = 0; i < d->n_ports; i++) {
        struct dpc_port *p = &d->ports[i];
        if (!dpc_port_is_management(d, p) || status_find_interface(list, n, str_of(p->name)))
            continue;
        const struct str words = p->link_error ? arena_printf(a, "interface %s cannot be made: %s",
                                                              p->name, strerror(-p->link_error))
                                               : arena_printf(a, "missing interface %s", p->name);
        dpc_results_fail(&nim_find_port(m, str_of(p->name))->results,
                         m->node->clock->wall_us(m->node->clock), words);
    }
}

static struct str words_of(struct arena *a, const struct uplink_verification *v)
{
    BUF_AUTO words = {0};
    if (v->error == -ENODEV)
        return STR("no management port");
    for (size_t i = 0; i < v->n_ports; i++)
        if (!v->ports[i].is_good && v->ports[i].words.n > 0)
            buf_printf(&words, "%s%.*s", words.n ? "; " : "", STR_ARG(v->ports[i].words));
    return words.n ? arena_str(a, buf_str(&words)) : STR("the controller cannot be reached");
}

static void on_verified(void *arg, const struct uplink_verification *v)
{
    struct nim *m = arg;
    struct dpc *d = dpc_list_current(&m->list);
    ARENA_AUTO a = arena_new();
    m->test.verify = NULL;
    if (m->test.is_local && !v->is_reachable) {
        m->test.is_local = false;
        ask(m);
        return;
    }
    node_trace_end(m->node, TAKE(m->test.trace), TOPIC, "ping", v->is_reachable);
    record_ports(m, v);
    record_missing(m, d, a);
    struct verifier_findings f = look(m, a, d);
    f.is_reachable = v->is_reachable;
    f.is_temporary = !v->is_reachable && v->is_temporary;
    f.words = v->is_reachable ? STR_NONE : words_of(a, v);
    for (size_t i = 0; i < v->n_ports; i++)
        f.is_not_ready = f.is_not_ready || v->ports[i].is_not_ready;
    finish(m, &f);
}

static void ask(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    const struct str loc = m->test.is_local ? nim_loc_url(m, a) : STR_NONE;
    m->test.is_local = loc.n > 0;
    const struct str url =
        loc.n > 0 ? uplink_url_build(a, UPLINK_API_V2, loc, /* device= */ NULL, STR("ping"))
                  : uplink_url(m->link->uplink, a, /* with_device= */ false, STR("ping"));
    if (!m->test.trace)
        m->test.trace = node_trace_begin(m->node, TOPIC);
    const struct uplink_verify_options o = {
        .url = url, .accepts_4xx = loc.n > 0, .iteration = m->iteration++, .trace = m->test.trace};
    m->test.verify = uplink_verify_start(m->link->uplink, &o, on_verified, m);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static void keep_link_error(struct dpc_port *p, int error)
{
    if (error < 0 && error != p->link_error)
        log_warning("an interface cannot be made, retrying when the network changes",
                    LOG_TEXT("port", p->name), LOG_ERRNO(error));
    p->link_error = error;
}

/* Bonds and VLANs, and none of another configuration. */
static void apply_links(struct nim *m, struct arena *a, const struct json *ports, struct dpc *d)
{
    struct machine *machine = m->node->machine;
    size_t n, n_good = 0;
    const struct links_link *links = links_of(a, ports, &n);
    struct machine_link *good = ARENA_ARRAY(a, struct machine_link, MAX(n, 1));
    int *results = ARENA_ARRAY(a, int, MAX(n, 1));
    for (size_t i = 0; i < n; i++)
        if (links[i].error == 0)
            good[n_good++] = links[i].link;
    const int r = machine->functions->apply_links(machine, good, n_good, results);
    if (r < 0 && r != -EPERM)
        log_warning("bonds and VLANs are not made, retrying when the network changes",
                    LOG_ERRNO(r));
    for (size_t i = 0, at = 0; i < n; i++) {
        const int result = links[i].error ? links[i].error : r < 0 ? 0 : results[at++];
        if (links[i].port < d->n_ports)
            keep_link_error(&d->ports[links[i].port], result);
    }
}

/* What the machine refuses is taken as it has it. */
static void apply(struct nim *m, struct dpc *d)
{
    ARENA_AUTO a = arena_new();
    struct machine *machine = m->node->machine;
    if (m->applied == d)
        return;
    m->applied = d;
    const struct json *ports = overlay_config(a, d, m->overlay);
    apply_links(m, a, ports, d);
    JSON_FOR_EACH_ITEM (ports, port) {
        const struct machine_port p = status_machine_port(a, port);
        if (p.interface.n == 0 || p.dhcp == MACHINE_DHCP_UNSET ||
            json_get_bool(port, STR("InvalidConfig"), false))
            continue;
        const int r = machine->functions->apply_port(machine, &p);
        if (r < 0 && r != -EPERM)
            log_warning("a port is not as its configuration wants it, ignoring",
                        LOG_STR("port", p.interface), LOG_ERRNO(r));
    }
}

static void on_next(struct loop_deferred *deferred)
{
    struct nim *m = CONTAINER_OF(deferred, struct nim, test.next);
    ARENA_AUTO a = arena_new();
    const struct dpc *d = dpc_list_current(&m->list);
    const struct nim_held held = nim_held(m, a, d);
    if (held.is_assigned) {
        fail(m, held.words);
        return;
    }
    uplink_set_ports(m->link->uplink, m->test.ports);
    uplink_set_tls(m->link->uplink,
                   m->node->identity.tls ? m->node->identity.tls : m->node->onboarding.tls);
    uplink_set_timeouts(m->link->uplink, items_int(m->node->items, "timer.port.timeout") * 1000,
                        items_int(m->node->items, "timer.port.timeout") * 1000);
    look_for_script(m);
}

void nim_test_start(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    nim_test_cancel(m);
    struct dpc *d = dpc_list_current(&m->list);
    m->verifier.wants_test = false;
    if (!d)
        return;
    apply(m, d);
    nim_publish_status(m);
    const struct json *status = nim_status(m, a);
    if (uplink_ports_parse(status, &m->test.ports) < 0)
        return;
    node_take_proxy_certs(m->node, status);
    m->test.is_under_way = true;
    m->test.is_stale = false;
    m->test.is_local = true;
    m->test.port_at = 0;
    m->test.next.fn = on_next;
    loop_defer(m->node->loop, &m->test.next);
}
