/* SPDX-License-Identifier: Apache-2.0 */
/* Where the addresses of management ports are seen from outside: a public service is asked over
 * each of them, now and then, and only while the controller can be reached. It learns the address
 * and nothing else of the device. */
#include <errno.h>

#include "base/alloc.h"
#include "nim/nim_internal.h"

#define TIMEOUT_MS 5000
#define MAX_REPLY_BYTES ((size_t) 16 * 1024)
#define MAX_FIELD_BYTES 256
#define MAX_PLACES ((size_t) UPLINK_MAX_PORTS)

static const char *const fields[] = {"ip",      "hostname", "city", "region",
                                     "country", "loc",      "org",  "postal"};

static struct str url_of(const struct nim *m)
{
    return str_of(m->o.geo_url);
}

static int64_t now_us(const struct nim *m)
{
    return m->node->clock->monotonic_us(m->node->clock);
}

/* ---- places --------------------------------------------------------------------------------- */

static void forget(struct status_place *p)
{
    mem_free(p->port);
    mem_free(p->address);
    mem_free(p->geo);
}

static struct status_place *find(struct nim_geo *g, struct str port, struct str address)
{
    for (size_t i = 0; i < g->n_places; i++)
        if (str_is(port, g->places[i].port) && str_is(address, g->places[i].address))
            return &g->places[i];
    return NULL;
}

static void add(struct nim_geo *g, struct str port, struct str address)
{
    if (g->n_places == MAX_PLACES || find(g, port, address))
        return;
    g->places = mem_realloc_array(g->places, g->n_places + 1, sizeof(g->places[0]));
    g->places[g->n_places++] =
        (struct status_place){.port = str_dup(port), .address = str_dup(address)};
}

static bool is_asked(const struct uplink_ports *ports, const struct uplink_port *p)
{
    return uplink_port_is_management(ports, p) && p->n_dns_servers > 0;
}

static bool is_there(const struct uplink_ports *ports, const struct status_place *place)
{
    const struct uplink_port *p = uplink_ports_find(ports, str_of(place->port));
    for (size_t i = 0; p && is_asked(ports, p) && i < p->n_addresses; i++)
        if (str_is(p->addresses[i], place->address))
            return true;
    return false;
}

/* What is known of an address stays while its port has it. */
static void take_ports(struct nim *m)
{
    struct nim_geo *g = &m->geo;
    const struct uplink_ports *ports = m->node->ports;
    for (size_t i = g->n_places; i-- > 0;)
        if (!ports || !is_there(ports, &g->places[i])) {
            forget(&g->places[i]);
            g->places[i] = g->places[--g->n_places];
        }
    for (size_t i = 0; ports && i < ports->n_items; i++) {
        const struct uplink_port *p = &ports->items[i];
        for (size_t k = 0; is_asked(ports, p) && k < p->n_addresses; k++)
            if (!uplink_address_is_link_local(p->addresses[k]))
                add(g, p->name, p->addresses[k]);
    }
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Only what is known to belong there, as text; NULL: it does not say from where. */
static struct json *read_reply(struct arena *a, struct str body)
{
    const struct json *v = json_parse_quick(a, body);
    struct json *geo = json_new(a, json_object());
    for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
        const struct str s = json_get_str(v, str_of(fields[i]));
        json_set(a, geo, str_of(fields[i]),
                 json_string(s.n && s.n <= MAX_FIELD_BYTES ? s : STR("")));
    }
    return json_get_str(geo, STR("ip")).n ? geo : NULL;
}

/* Nothing is new while the address outside is the same. */
static bool keep(struct nim *m, struct status_place *p, const struct json *geo)
{
    ARENA_AUTO a = arena_new();
    const struct json *before = p->geo ? json_parse_quick(a, str_of(p->geo)) : NULL;
    if (str_eq(json_get_str(before, STR("ip")), json_get_str(geo, STR("ip"))))
        return false;
    mem_free(p->geo);
    p->geo = str_dup(json_text(a, geo));
    p->found_us = m->node->clock->wall_us(m->node->clock);
    return true;
}

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct nim *m = arg;
    struct nim_geo *g = &m->geo;
    ARENA_AUTO a = arena_new();
    g->call = NULL;
    struct status_place *p = find(g, str_of(g->port), str_of(g->address));
    mem_free(TAKE(g->port));
    mem_free(TAKE(g->address));
    const struct json *geo =
        answer->error == 0 && answer->http_status == 200 ? read_reply(a, answer->body) : NULL;
    if (p) {
        p->due_us =
            now_us(m) +
            items_int(m->node->items, geo ? "timer.port.georedo" : "timer.port.georetry") * 1000000;
        if (geo && keep(m, p, geo))
            m->needs_status = true;
    }
    nim_act(m);
}

static void ask(struct nim *m, const struct status_place *p)
{
    /* Instead of those that name the device. */
    static const struct str headers[] = {STR("Accept: application/json")};
    struct nim_geo *g = &m->geo;
    const struct uplink_request r = {.url = url_of(m),
                                     .port = str_of(p->port),
                                     .source = str_of(p->address),
                                     .forbids_proxy = true,
                                     .bails_on_http_error = true,
                                     .headers = headers,
                                     .n_headers = N_ELEMENTS(headers),
                                     .max_reply_bytes = MAX_REPLY_BYTES,
                                     .budget_ms = TIMEOUT_MS};
    g->port = mem_strdup(p->port);
    g->address = mem_strdup(p->address);
    g->call = uplink_send(g->link->uplink, &r, on_answer, m);
}

void nim_geo_act(struct nim *m)
{
    struct nim_geo *g = &m->geo;
    g->due_us = 0;
    if (!g->link || g->call || !m->verifier.works)
        return;
    take_ports(m);
    for (size_t i = 0; i < g->n_places; i++) {
        const struct status_place *p = &g->places[i];
        if (p->due_us <= now_us(m)) {
            ask(m, p);
            return;
        }
        if (g->due_us == 0 || p->due_us < g->due_us)
            g->due_us = p->due_us;
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

int nim_geo_new(struct nim *m)
{
    /* Requests to others are not counted among those to the controller. */
    const struct node_link_options o = {
        .agent = STR("nim"), .has_nil_device = true, .publishes_no_metrics = true};
    if (m->node->is_simulated || url_of(m).n == 0)
        return 0;
    return node_link_new(m->node, &o, &m->geo.link);
}

void nim_geo_free(struct nim *m)
{
    struct nim_geo *g = &m->geo;
    if (g->call)
        uplink_cancel(g->call);
    for (size_t i = 0; i < g->n_places; i++)
        forget(&g->places[i]);
    mem_free(g->places);
    mem_free(g->port);
    mem_free(g->address);
    node_link_free(g->link);
}
