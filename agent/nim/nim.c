/* SPDX-License-Identifier: Apache-2.0 */
#include "nim/nim.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "nim/nim_internal.h"
#include "nim/overlay.h"

#define GLOBAL STR("global")
#define MAX_AGAIN \
    4 /* a test is begun anew so often while the network changes, lest it never ends */
#define LAST_RESORT_AFTER_US ((int64_t) 60 * 1000 * 1000)

/* ---- publications -------------------------------------------------------------------------- */

bool nim_controller_is_here(const struct nim *m)
{
    ARENA_AUTO a = arena_new();
    struct uplink_url u;
    if (uplink_url_parse(uplink_url_complete(a, m->node->server), &u) < 0)
        return false;
    return str_eq_nocase(u.host, STR("localhost")) || str_is(u.host, "::1") ||
           str_starts_with(u.host, STR("127."));
}

/* We do not own the machine's routing, so where there are several ways out the source address alone
 * decides nothing. With one there is nothing to decide, and a simulated machine has no interface at
 * all. */
static bool binds_device(const struct nim *m, const struct machine_interface *list, size_t n)
{
    const struct dpc *d = dpc_list_current(&m->list);
    size_t n_ports = 0, n_ways = 0;
    if (!d || strcmp(m->node->machine->functions->name, "sim") == 0 || nim_controller_is_here(m))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct dpc_port *p = dpc_find_port(d, list[i].name);
        n_ports += p && p->is_l3;
        n_ways += list[i].n_routers > 0;
    }
    return n_ports > 1 || n_ways > 1;
}

struct json *nim_status(struct nim *m, struct arena *a)
{
    struct machine *machine = m->node->machine;
    struct machine_interface *list = NULL;
    size_t n = 0;
    const int r = machine->functions->interfaces(machine, a, &list, &n);
    if (r < 0)
        log_warning("the machine's interfaces are not known, retrying later", LOG_ERRNO(r));
    const struct status_inputs in = {.list = &m->list,
                                     .overlay = m->overlay,
                                     .is_testing = m->verifier.is_running,
                                     .interfaces = list,
                                     .n_interfaces = n,
                                     .scripts = m->scripts,
                                     .n_scripts = m->n_scripts,
                                     .places = m->geo.places,
                                     .n_places = m->geo.n_places,
                                     .radio_silence = nim_radio_silence(m, a),
                                     .modems = nim_modems(m, a),
                                     .binds_device = binds_device(m, list, n)};
    return status_write(a, &in);
}

/* Once connected the LED is the business of those who talk to the controller. */
static void set_led(struct nim *m, const struct json *status)
{
    struct uplink_ports *ports = NULL;
    if (uplink_ports_parse(status, &ports) < 0)
        return;
    bool has_address = false;
    for (size_t i = 0; i < ports->n_items; i++)
        has_address = has_address || uplink_port_has_address(&ports->items[i]);
    uplink_ports_unref(ports);
    const enum node_led before = node_led(m->node);
    enum node_led led = before;
    if (m->verifier.is_silent)
        led = NODE_LED_RADIO_SILENCE;
    else if (!has_address)
        led = NODE_LED_WAITING_FOR_ADDRESS;
    else if (!m->verifier.works)
        led = NODE_LED_CONNECTING;
    else if (before < NODE_LED_CONNECTED || before == NODE_LED_RADIO_SILENCE)
        led = uuid_is_zero(&m->node->device) ? NODE_LED_CONNECTED : NODE_LED_ONBOARDED;
    if (led != before)
        node_set_led(m->node, led);
}

/* "after 3001 ms" says the same as "after 3002 ms". */
static struct json without_digits(struct arena *a, struct str words)
{
    BUF_AUTO text = {0};
    for (size_t i = 0; i < words.n; i++)
        if (words.p[i] < '0' || words.p[i] > '9')
            buf_append_char(&text, words.p[i]);
    return json_string(arena_str(a, buf_str(&text)));
}

/* Every service hurries when the network has changed, so that it was tested once more with the same
 * result must not look like a change. */
static void describe_news(struct arena *a, const struct json *status,
                          unsigned char ret[SHA256_BYTES])
{
    struct json news = json_clone(a, status);
    (void) json_remove(&news, STR("Testing"));
    JSON_FOR_EACH_ITEM (json_get(&news, STR("Ports")), port) {
        int64_t failed_us = 0, succeeded_us = 0;
        (void) clock_parse(json_get_str(port, STR("LastFailed")), &failed_us);
        (void) clock_parse(json_get_str(port, STR("LastSucceeded")), &succeeded_us);
        json_set(a, port, STR("LastFailed"), json_bool(failed_us > succeeded_us));
        (void) json_remove(port, STR("LastSucceeded"));
        json_set(a, port, STR("LastError"),
                 without_digits(a, json_get_str(port, STR("LastError"))));
    }
    pki_sha256(json_text(a, &news), ret);
}

void nim_publish_status(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    unsigned char news[SHA256_BYTES];
    const struct json *status = nim_status(m, a);
    m->needs_status = false;
    describe_news(a, status, news);
    /* That the same is tested again is none, either, but its end is where the beginning was. */
    const bool is_testing = json_get_bool(status, STR("Testing"), false);
    if (memcmp(news, m->shown, sizeof(news)) == 0 && (is_testing || !m->shows_testing))
        return;
    memcpy(m->shown, news, sizeof(news));
    m->shows_testing = is_testing;
    const int r = publication_publish(m->status, GLOBAL, status);
    if (r < 0)
        log_error("the network's status cannot be published", LOG_ERRNO(r));
    set_led(m, status);
}

static void publish_list(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    const int r = publication_publish(m->list_topic, GLOBAL, dpc_list_write(a, &m->list));
    if (r < 0)
        log_error("the list of port configurations cannot be kept", LOG_ERRNO(r));
    m->needs_list = false;
}

/* ---- time ---------------------------------------------------------------------------------- */

static void set_timer(struct nim *m)
{
    int64_t due_us = verifier_due_us(&m->verifier);
    if (m->last_resort_us && (due_us == 0 || m->last_resort_us < due_us))
        due_us = m->last_resort_us;
    if (m->geo.due_us && (due_us == 0 || m->geo.due_us < due_us))
        due_us = m->geo.due_us;
    if (due_us == 0) {
        loop_timer_stop(m->timer);
        return;
    }
    const int64_t now_us = m->node->clock->monotonic_us(m->node->clock);
    loop_timer_start(m->timer, MAX((due_us - now_us + 999) / 1000, 1), 0);
}

static void make_last_resort_if_due(struct nim *m)
{
    if (m->last_resort_us == 0 || m->node->clock->monotonic_us(m->node->clock) < m->last_resort_us)
        return;
    m->last_resort_us = 0;
    for (size_t i = 0; i < m->list.n_items; i++)
        if (dpc_is_usable(m->list.items[i]))
            return;
    nim_last_resort(m);
}

static void on_timer(void *arg)
{
    struct nim *m = arg;
    make_last_resort_if_due(m);
    verifier_wake(&m->verifier);
    nim_act(m);
}

static void on_act(struct loop_deferred *deferred)
{
    struct nim *m = CONTAINER_OF(deferred, struct nim, act);
    if (m->verifier.wants_test)
        nim_test_start(m);
    if (m->needs_list)
        publish_list(m);
    if (m->needs_status)
        nim_publish_status(m);
    nim_geo_act(m);
    set_timer(m);
}

void nim_act(struct nim *m)
{
    loop_defer(m->node->loop, &m->act);
}

/* ---- the list ------------------------------------------------------------------------------ */

static bool has_network(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    struct uplink_ports *ports = NULL;
    bool has_both = false;
    if (uplink_ports_parse(nim_status(m, a), &ports) < 0)
        return false;
    for (size_t i = 0; i < ports->n_items; i++)
        has_both = has_both ||
                   (uplink_port_has_address(&ports->items[i]) && ports->items[i].n_dns_servers > 0);
    uplink_ports_unref(ports);
    return has_both;
}

/* The test under way is of a configuration that may be gone. */
static void list_changed(struct nim *m, bool is_anew)
{
    nim_test_cancel(m);
    m->applied = NULL;
    if (is_anew)
        verifier_restart_anew(&m->verifier);
    else
        verifier_restart(&m->verifier);
    m->needs_status = m->needs_list = true;
    nim_act(m);
}

void nim_put(struct nim *m, struct dpc *d)
{
    if (!dpc_is_usable(d))
        log_warning("a port configuration has no management port", LOG_TEXT("key", d->key));
    const bool is_changed = dpc_list_put(&m->list, d);
    if (!is_changed && m->list.current >= 0 && has_network(m))
        return;
    list_changed(m, /* is_anew= */ true);
}

void nim_remove(struct nim *m, const struct dpc *like)
{
    if (dpc_list_remove(&m->list, like))
        list_changed(m, /* is_anew= */ true);
}

/* ---- the overlay --------------------------------------------------------------------------- */

static void replace_overlay(struct nim *m, struct dpc *d)
{
    dpc_free(m->overlay);
    m->overlay = d;
}

void nim_lay_over(struct nim *m, struct dpc *d)
{
    if (d && d->n_ports == 0)
        dpc_free(TAKE(d));
    if (!d && !m->overlay)
        return;
    if (d && m->overlay && dpc_has_same_content(d, m->overlay)) {
        dpc_take_results(d, m->overlay);
        replace_overlay(m, d);
        m->needs_status = true;
        nim_act(m);
        return;
    }
    /* What has failed was another configuration: this one need not wait. */
    for (size_t i = 0; i < m->list.n_items; i++)
        if (overlay_touches(m->list.items[i], m->overlay) || overlay_touches(m->list.items[i], d))
            dpc_results_forgive(&m->list.items[i]->results);
    replace_overlay(m, d);
    list_changed(m, /* is_anew= */ true);
}

struct dpc_port *nim_find_port(const struct nim *m, struct str name)
{
    const struct dpc *d = dpc_list_current(&m->list);
    struct dpc_port *own = d ? dpc_find_port(d, name) : NULL;
    struct dpc_port *by = own ? overlay_find(m->overlay, own, NULL, NULL) : NULL;
    return by ? by : own;
}

/* ---- the network --------------------------------------------------------------------------- */

static bool is_crucial(const struct nim *m, struct str name)
{
    const struct dpc *current = dpc_list_current(&m->list);
    return (current && dpc_find_port(current, name)) ||
           (m->list.n_items > 0 && dpc_find_port(m->list.items[0], name));
}

/* What of the interfaces decides whether the controller can be reached. */
static char *describe_network(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    struct machine *machine = m->node->machine;
    struct machine_interface *list = NULL;
    size_t n = 0;
    struct buf text = {0};
    (void) machine->functions->interfaces(machine, a, &list, &n);
    for (size_t i = 0; i < n; i++) {
        if (!is_crucial(m, list[i].name))
            continue;
        buf_printf(&text, "%.*s %d", STR_ARG(list[i].name), list[i].is_up);
        for (size_t k = 0; k < list[i].n_addresses; k++)
            if (!uplink_address_is_link_local(list[i].addresses[k].text))
                buf_printf(&text, " %.*s", STR_ARG(list[i].addresses[k].text));
        for (size_t k = 0; k < list[i].n_dns_servers; k++)
            buf_printf(&text, " @%.*s", STR_ARG(list[i].dns_servers[k]));
        buf_append_char(&text, '\n');
    }
    buf_append_char(&text, '.');
    return buf_take(&text);
}

static bool has_changed(struct nim *m)
{
    char *now = describe_network(m);
    const bool is_same = m->network && strcmp(now, m->network) == 0;
    mem_free(m->network);
    m->network = now;
    return !is_same;
}

static void on_network(void *arg)
{
    struct nim *m = arg;
    if (m->o.starts_with_machine || nim_has_last_resort(m))
        nim_last_resort(m);
    if (!has_changed(m))
        return;
    /* An interface that has come must be told what it is to be. */
    m->applied = NULL;
    if (m->test.is_under_way && m->test.n_again < MAX_AGAIN) {
        m->verifier.wants_test = true;
        m->test.n_again++;
    } else if (m->test.is_under_way) {
        m->test.is_stale = true;
    }
    verifier_hurry(&m->verifier);
    verifier_restart(&m->verifier);
    m->needs_status = true;
    nim_act(m);
}

/* ---- what the node knows ------------------------------------------------------------------- */

static void take_items(struct nim *m)
{
    const struct items *i = m->node->items;
    verifier_set_times(&m->verifier, items_int(i, "timer.port.testduration") * 1000,
                       items_int(i, "timer.port.testinterval") * 1000,
                       items_int(i, "timer.port.testbetterinterval") * 1000);
    const bool is_enabled = items_tristate(i, "network.fallback.any.eth") == ITEMS_ENABLED;
    m->verifier.keeps_last_resort = is_enabled || m->o.starts_with_machine;
    if (is_enabled)
        nim_last_resort(m);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct nim *m = CONTAINER_OF(w, struct nim, watch);
    if (changes & NODE_ITEMS)
        take_items(m);
    if (changes & NODE_SERVER)
        verifier_restart(&m->verifier);
    /* Of the network: what we have published ourselves has arrived. */
    if ((changes & (NODE_ITEMS | NODE_SERVER)) || (m->geo.link && (changes & NODE_NETWORK)))
        nim_act(m);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int publish(struct nim *m)
{
    const struct pubsub_name status = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name list = {
        .agent = STR("nim"), .topic = STR("DevicePortConfigList"), .is_persistent = true};
    const struct node_link_options link = {
        .agent = STR("nim"), .uses_onboarding = true, .has_nil_device = true};
    int r = publication_new(m->node->pubsub, &status, &m->status);
    if (r == 0)
        r = publication_new(m->node->pubsub, &list, &m->list_topic);
    return r < 0 ? r : node_link_new(m->node, &link, &m->link);
}

static void begin(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    const struct clock *clock = m->node->clock;
    dpc_list_read(&m->list, publication_get(a, m->list_topic, GLOBAL));
    take_items(m);
    if (m->o.starts_with_machine)
        nim_last_resort(m);
    else
        m->last_resort_us = clock->monotonic_us(clock) + LAST_RESORT_AFTER_US;
    verifier_restart(&m->verifier);
    m->needs_status = m->needs_list = true;
    nim_act(m);
}

int nim_new(struct node *n, const struct nim_options *o, struct nim **ret)
{
    struct nim *m = NEW(struct nim);
    m->node = n;
    m->o = *o;
    m->watch.on_change = on_change;
    m->act.fn = on_act;
    dpc_list_init(&m->list);
    verifier_init(&m->verifier, &m->list, n->clock);
    m->timer = loop_timer_new(n->loop, on_timer, m);
    int r = publish(m);
    if (r == 0)
        r = nim_geo_new(m);
    if (r == 0) {
        begin(m);
        r = nim_sources_new(m);
    }
    if (r < 0) {
        nim_free(m);
        return r;
    }
    node_watch(n, &m->watch);
    (void) has_changed(m);
    n->machine->functions->watch_network(n->machine, on_network, m);
    *ret = m;
    return 0;
}

void nim_free(struct nim *m)
{
    if (!m)
        return;
    m->node->machine->functions->watch_network(m->node->machine, NULL, NULL);
    node_unwatch(&m->watch);
    nim_test_cancel(m);
    nim_sources_free(m);
    loop_undefer(m->node->loop, &m->act);
    loop_timer_free(m->timer);
    nim_geo_free(m);
    node_link_free(m->link);
    publication_free(m->status);
    publication_free(m->list_topic);
    dpc_list_done(&m->list);
    dpc_free(m->overlay);
    for (size_t i = 0; i < m->n_scripts; i++) {
        mem_free(m->scripts[i].port);
        mem_free(m->scripts[i].pac);
        mem_free(m->scripts[i].url);
    }
    mem_free(m->scripts);
    mem_free(m->network);
    mem_free(m);
}
