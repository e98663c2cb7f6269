/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations from JSON and back. */
#include <errno.h>

#include "base/alloc.h"
#include "machine/machine.h"
#include "nim/dpc.h"

#define WIRELESS_CELLULAR 1
#define MAX_WHOLE 9007199254740992.0 /* beyond it a double has no fraction anyway */
/* Go's decoder does not care for case, and people who write a file by hand rely on it. */
struct member {
    const char *name;
    bool is_local; /* of a port: for somebody nearby to say, where the controller lets it */
};
static const struct member dpc_members[] = {
    {"Version"},       {"Key"},       {"TimePriority"}, {"State"},        {"LastFailed"},
    {"LastSucceeded"}, {"LastError"}, {"LastWarning"},  {"LastIPAndDNS"}, {"Ports"}};
static const struct member port_members[] = {{"IfName"},
                                             {"USBAddr"},
                                             {"PCIAddr"},
                                             {"Phylabel"},
                                             {"Logicallabel"},
                                             {"SharedLabels"},
                                             {"Alias"},
                                             {"AllowLocalModifications"},
                                             {"NetworkUUID"},
                                             {"IsMgmt"},
                                             {"IsL3Port"},
                                             {"InvalidConfig", .is_local = true},
                                             {"Cost"},
                                             {"MTU", .is_local = true},
                                             {"Dhcp", .is_local = true},
                                             {"AddrSubnet", .is_local = true},
                                             {"Gateway", .is_local = true},
                                             {"DomainName", .is_local = true},
                                             {"NTPServers", .is_local = true},
                                             {"DNSServers", .is_local = true},
                                             {"Type", .is_local = true},
                                             {"Proxies", .is_local = true},
                                             {"Exceptions", .is_local = true},
                                             {"Pacfile", .is_local = true},
                                             {"NetworkProxyEnable", .is_local = true},
                                             {"NetworkProxyURL", .is_local = true},
                                             {"WpadURL", .is_local = true},
                                             {"pubsub-large-ProxyCertPEM", .is_local = true},
                                             {"L2Type"},
                                             {"VLAN"},
                                             {"Bond"},
                                             {"WirelessCfg", .is_local = true},
                                             {"PNAC"},
                                             {"LastFailed"},
                                             {"LastSucceeded"},
                                             {"LastError"},
                                             {"LastWarning"},
                                             {"IgnoreDhcpNtpServers", .is_local = true},
                                             {"IgnoreDhcpIPAddresses", .is_local = true},
                                             {"IgnoreDhcpGateways", .is_local = true},
                                             {"IgnoreDhcpDNSConfig", .is_local = true},
                                             {"ConfigSource", .is_local = true}};
static const struct str result_names[] = {
    {"LastFailed", 10}, {"LastSucceeded", 13}, {"LastError", 9}, {"LastWarning", 11}};

/* ---- times --------------------------------------------------------------------------------- */

struct json dpc_time(struct arena *a, int64_t wall_us)
{
    char text[CLOCK_MICROS_BYTES];
    clock_format_micros(wall_us, text);
    size_t n = strlen(text) - 1;
    while (n > 0 && text[n - 1] == '0' && memchr(text, '.', n))
        n--;
    if (text[n - 1] == '.')
        n--;
    return json_string(arena_printf(a, "%.*sZ", (int) n, text));
}

struct json dpc_time_or_never(struct arena *a, int64_t wall_us)
{
    return wall_us == 0 ? json_string(STR("0001-01-01T00:00:00Z")) : dpc_time(a, wall_us);
}

static bool parse_time(const struct json *object, struct str name, int64_t *ret_us)
{
    int64_t wall_us = 0;
    if (clock_parse(json_get_str(object, name), &wall_us) < 0 || wall_us < 0)
        return false;
    *ret_us = wall_us;
    return true;
}

static int64_t read_time(const struct json *object, struct str name)
{
    int64_t wall_us = 0;
    return parse_time(object, name, &wall_us) ? wall_us : 0;
}

/* ---- normal form --------------------------------------------------------------------------- */

static struct str canonical(struct str name, const struct member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(name, str_of(members[i].name)))
            return str_of(members[i].name);
    return name;
}

static struct json *rename_members(struct arena *a, const struct json *v,
                                   const struct member *members, size_t n)
{
    struct json *to = json_new(a, json_object());
    JSON_FOR_EACH_MEMBER (v, m)
        json_set(a, to, canonical(json_str(&m->key), members, n), m->value);
    return to;
}

void dpc_cover_port(struct arena *a, struct json *port, const struct json *by)
{
    for (size_t i = 0; i < N_ELEMENTS(port_members); i++) {
        const struct str name = str_of(port_members[i].name);
        const struct json *value = json_get(by, name);
        if (!port_members[i].is_local)
            continue;
        if (value)
            json_set(a, port, name, *value);
        else
            (void) json_remove(port, name);
    }
}

static bool is_zero(const struct json *v)
{
    return json_is_empty(v) || str_is(json_str(v), "0001-01-01T00:00:00Z") ||
           str_is(json_str(v), "00000000-0000-0000-0000-000000000000");
}

/* What is zero and what is absent are one to Go: equal configurations become equal texts. */
static struct json normal(struct arena *a, const struct json *v)
{
    if (v->type == JSON_OBJECT) {
        struct json to = json_object();
        JSON_FOR_EACH_MEMBER (v, m) {
            const struct json value = normal(a, &m->value);
            if (!is_zero(&value))
                json_append_member(a, &to, json_str(&m->key), value);
        }
        json_sort_members(&to);
        return to;
    }
    if (v->type != JSON_ARRAY)
        return *v;
    struct json to = json_array();
    JSON_FOR_EACH_ITEM (v, item)
        json_push(a, &to, normal(a, item));
    return to;
}

/* 3.0 is 3: it is written so, and must not mean something else when it is read back. */
static void make_whole(struct json *v)
{
    if (v->type == JSON_OBJECT)
        JSON_FOR_EACH_MEMBER (v, m)
            make_whole(&m->value);
    else if (v->type == JSON_ARRAY)
        JSON_FOR_EACH_ITEM (v, item)
            make_whole(item);
    else if (v->type == JSON_DOUBLE && v->d > -MAX_WHOLE && v->d < MAX_WHOLE &&
             v->d == (double) (int64_t) v->d)
        *v = json_int((int64_t) v->d);
}

/* ---- filling in ---------------------------------------------------------------------------- */

static void default_text(struct arena *a, struct json *port, struct str name, struct str value)
{
    if (json_get_str(port, name).n == 0 && value.n > 0)
        json_set(a, port, name, json_string(value));
}

/* Labels that follow from what a port is for; those of people come first. */
static void set_labels(struct arena *a, struct json *port, bool is_management, int64_t cost)
{
    struct json labels = json_array();
    JSON_FOR_EACH_ITEM (json_get(port, STR("SharedLabels")), item) {
        const struct str s = json_str(item);
        if (s.n > 0 && !str_is(s, "all") && !str_is(s, "uplink") && !str_is(s, "freeuplink"))
            json_push(a, &labels, *item);
    }
    json_push(a, &labels, json_string(STR("all")));
    if (is_management)
        json_push(a, &labels, json_string(STR("uplink")));
    if (is_management && cost == 0)
        json_push(a, &labels, json_string(STR("freeuplink")));
    json_set(a, port, STR("SharedLabels"), labels);
}

/* One server by another name, until 2025. */
static void move_ntp_server(struct arena *a, struct json *port)
{
    const struct str old = json_get_str(port, STR("NtpServer"));
    if (old.n > 0 && json_count(json_get(port, STR("NTPServers"))) == 0) {
        struct json list = json_array();
        json_push(a, &list, json_string(old));
        json_set(a, port, STR("NTPServers"), list);
    }
    (void) json_remove(port, STR("NtpServer"));
}

static void fill_in(struct arena *a, struct json *port, bool is_l3,
                    const struct dpc_defaults *or_else)
{
    const struct str name = json_get_str(port, STR("IfName"));
    default_text(a, port, STR("Phylabel"), name);
    default_text(a, port, STR("Logicallabel"), name);
    move_ntp_server(a, port);
    if (is_l3)
        json_set(a, port, STR("IsL3Port"), json_bool(true));
    const int64_t cost = json_get_int(port, STR("Cost"), 0);
    if (cost < 0 || cost > 255)
        json_set(a, port, STR("Cost"), json_int(255));
    set_labels(a, port, json_get_bool(port, STR("IsMgmt"), false), cost);
    struct json source = json_object();
    JSON_FOR_EACH_MEMBER (json_get(port, STR("ConfigSource")), m)
        if (!str_is(json_str(&m->key), "SubmittedAt"))
            json_set(a, &source, json_str(&m->key), m->value);
    if (json_get_int(&source, STR("Origin"), 0) == 0)
        json_set(a, &source, STR("Origin"), json_int(or_else->origin));
    json_set(a, port, STR("ConfigSource"), source);
}

/* Older than the flag: then every port is one, as there is none without. */
static bool lacks_l3(const struct json *ports)
{
    JSON_FOR_EACH_ITEM (ports, item)
        if (json_get_bool(item, STR("IsL3Port"), false))
            return false;
    return true;
}

/* ---- reading ------------------------------------------------------------------------------- */

static char *owned_words(struct str s)
{
    return s.n > 0 && s.n <= DPC_MAX_WORDS_BYTES ? str_dup(s) : NULL;
}

static struct dpc_results read_results(const struct json *v)
{
    return (struct dpc_results){.failed_us = read_time(v, STR("LastFailed")),
                                .succeeded_us = read_time(v, STR("LastSucceeded")),
                                .error = owned_words(json_get_str(v, STR("LastError"))),
                                .warning = owned_words(json_get_str(v, STR("LastWarning")))};
}

static bool is_cellular(const struct json *port)
{
    const struct json *c = json_get(port, STR("WirelessCfg"));
    return json_get_int(c, STR("WType"), 0) == WIRELESS_CELLULAR &&
           (json_count(json_at(c, "CellularV2", "AccessPoints", NULL)) > 0 ||
            json_count(json_get(c, STR("Cellular"))) > 0);
}

static int read_wireless(const struct json *port)
{
    const int64_t type = json_get_int(json_get(port, STR("WirelessCfg")), STR("WType"), 0);
    return type >= 0 && type <= UINT8_MAX ? (int) type : 0;
}

static int read_dhcp(const struct json *port)
{
    const int64_t dhcp = json_get_int(port, STR("Dhcp"), MACHINE_DHCP_UNSET);
    return dhcp >= 0 && dhcp <= MACHINE_DHCP ? (int) dhcp : MACHINE_DHCP_UNSET;
}

static struct dpc_port read_port(const struct json *v, const struct dpc_defaults *or_else)
{
    struct dpc_port p = {
        .name = str_dup(json_get_str(v, STR("IfName"))),
        .label = str_dup(json_get_str(v, STR("Logicallabel"))),
        .is_management = json_get_bool(v, STR("IsMgmt"), false),
        .is_l3 = json_get_bool(v, STR("IsL3Port"), false),
        .has_invalid_config = json_get_bool(v, STR("InvalidConfig"), false),
        .is_cellular = is_cellular(v),
        .allows_local_changes = json_get_bool(v, STR("AllowLocalModifications"), false),
        .wireless_type = read_wireless(v),
        .dhcp = read_dhcp(v),
        .submitted_us = read_time(json_get(v, STR("ConfigSource")), STR("SubmittedAt")),
        .results = read_results(v),
    };
    if (p.submitted_us == 0)
        p.submitted_us = or_else->submitted_us;
    return p;
}

static int check_ports(const struct json *ports)
{
    if (ports && ports->type != JSON_NULL && ports->type != JSON_ARRAY)
        return -EINVAL;
    if (json_count(ports) > DPC_MAX_PORTS)
        return -E2BIG;
    JSON_FOR_EACH_ITEM (ports, item)
        if (!json_is(item, JSON_OBJECT))
            return -EINVAL;
    return 0;
}

static struct json *canonical_ports(struct arena *a, const struct json *ports)
{
    struct json *to = json_new(a, json_array());
    JSON_FOR_EACH_ITEM (ports, item)
        json_push(a, to, *rename_members(a, item, port_members, N_ELEMENTS(port_members)));
    return to;
}

static int take_ports(struct arena *a, struct dpc *d, const struct json *from,
                      const struct dpc_defaults *or_else)
{
    struct json *ports = canonical_ports(a, from);
    const bool is_l3 = lacks_l3(ports);
    d->n_ports = json_count(ports);
    d->ports = mem_zalloc(sizeof(d->ports[0]) * MAX(d->n_ports, 1));
    for (size_t i = 0; i < d->n_ports; i++) {
        struct json *port = &ports->items[i];
        struct dpc_port *to = &d->ports[i];
        *to = read_port(port, or_else);
        fill_in(a, port, is_l3, or_else);
        to->is_l3 = to->is_l3 || is_l3;
        if (to->label[0] == 0) {
            mem_free(to->label);
            to->label = mem_strdup(to->name);
        }
        for (size_t r = 0; r < N_ELEMENTS(result_names); r++)
            (void) json_remove(port, result_names[r]);
    }
    BUF_AUTO text = {0};
    const struct json plain = normal(a, ports);
    json_write(&text, &plain);
    if (text.n > DPC_MAX_CONFIG_BYTES)
        return -E2BIG;
    d->config_bytes = text.n;
    d->config = mem_dup(text.p, text.n + 1);
    return 0;
}

int dpc_read(const struct json *from, const struct dpc_defaults *or_else, struct dpc **ret)
{
    if (!json_is(from, JSON_OBJECT))
        return -EINVAL;
    ARENA_AUTO a = arena_new();
    struct json whole = json_clone(a, from);
    make_whole(&whole);
    const struct json *v = rename_members(a, &whole, dpc_members, N_ELEMENTS(dpc_members));
    const struct json *ports = json_get(v, STR("Ports"));
    struct str key = json_get_str(v, STR("Key"));
    key = key.n > 0 ? key : or_else->key;
    int r = check_ports(ports);
    if (r < 0)
        return r;
    if (key.n == 0 || key.n > DPC_MAX_KEY_BYTES)
        return -EINVAL;
    CLEANUP(dpc_freep) struct dpc *d = NEW(struct dpc);
    d->version = json_get_int(v, STR("Version"), 0) > 0 ? 1 : 0;
    d->key = str_dup(key);
    if (!parse_time(v, STR("TimePriority"), &d->priority_us))
        d->priority_us = or_else->priority_us;
    const int64_t state = json_get_int(v, STR("State"), 0);
    d->state = state >= 0 && state <= NODE_NETWORK_WWAN_WAIT ? (enum node_network_state) state
                                                             : NODE_NETWORK_NONE;
    d->results = read_results(v);
    d->ip_and_dns_us = read_time(v, STR("LastIPAndDNS"));
    r = take_ports(a, d, ports, or_else);
    if (r < 0)
        return r;
    *ret = TAKE(d);
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_results(struct arena *a, struct json *to, const struct dpc_results *r)
{
    json_set(a, to, STR("LastFailed"), dpc_time_or_never(a, r->failed_us));
    json_set(a, to, STR("LastSucceeded"), dpc_time_or_never(a, r->succeeded_us));
    if (r->error)
        json_set(a, to, STR("LastError"), json_string(arena_str(a, str_of(r->error))));
    if (r->warning)
        json_set(a, to, STR("LastWarning"), json_string(arena_str(a, str_of(r->warning))));
}

struct json *dpc_config(struct arena *a, const struct dpc *d)
{
    struct json *ports = json_parse_quick(a, str_range(d->config, d->config_bytes));
    return ports ? ports : json_new(a, json_array());
}

struct json *dpc_write(struct arena *a, const struct dpc *d)
{
    struct json *to = json_new(a, json_object());
    json_set(a, to, STR("Version"), json_int(d->version));
    json_set(a, to, STR("Key"), json_string(arena_str(a, str_of(d->key))));
    json_set(a, to, STR("TimePriority"), dpc_time(a, d->priority_us));
    json_set(a, to, STR("State"), json_int(d->state));
    write_results(a, to, &d->results);
    json_set(a, to, STR("LastIPAndDNS"), dpc_time_or_never(a, d->ip_and_dns_us));
    struct json *ports = dpc_config(a, d);
    for (size_t i = 0; i < json_count(ports) && i < d->n_ports; i++) {
        struct json *source = json_ensure_object(a, &ports->items[i], STR("ConfigSource"));
        json_set(a, source, STR("SubmittedAt"), dpc_time_or_never(a, d->ports[i].submitted_us));
        write_results(a, &ports->items[i], &d->ports[i].results);
    }
    json_set(a, to, STR("Ports"), *ports);
    return to;
}
