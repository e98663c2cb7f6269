/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of an application, what may pass, and ports of the device that lead to it. */
#include <errno.h>

#include "composer/composer_internal.h"

#define NETWORKS_ANNOTATION "k8s.v1.cni.cncf.io/networks"
#define NETWORKS_FIELD STR("metadata.annotations[" NETWORKS_ANNOTATION "]")
#define INTERFACES_MAX 64

/* One element of the annotation. */
struct wanted {
    struct str name, interface, address, mac;
};

/* ---- the annotation -------------------------------------------------------------------------- */

/* [namespace/]name[@interface] */
static struct wanted parse_name(struct str text)
{
    struct wanted w = {.name = str_trim(text)};
    const ptrdiff_t at = str_find(w.name, '@');
    if (at >= 0) {
        w.interface = str_from(w.name, (size_t) at + 1);
        w.name = str_sub(w.name, 0, (size_t) at);
    }
    const ptrdiff_t slash = str_find(w.name, '/');
    w.name = slash < 0 ? w.name : str_from(w.name, (size_t) slash + 1);
    return w;
}

static struct wanted parse_object(const struct json *item)
{
    const struct json *addresses = json_get(item, STR("ips"));
    struct wanted w = parse_name(json_get_str(item, STR("name")));
    w.mac = json_get_str(item, STR("mac"));
    w.interface = json_get_str(item, STR("interface"));
    if (json_is(addresses, JSON_ARRAY) && addresses->n)
        w.address = json_str(&addresses->items[0]);
    const ptrdiff_t slash = str_find(w.address, '/');
    w.address = slash < 0 ? w.address : str_sub(w.address, 0, (size_t) slash);
    return w;
}

static size_t parse_annotation(struct arena *a, struct str text, struct wanted *out)
{
    size_t n = 0;
    if (str_starts_with(str_trim(text), STR("["))) {
        JSON_FOR_EACH_ITEM (json_parse_quick(a, text), item)
            if (n < INTERFACES_MAX)
                out[n++] =
                    json_is(item, JSON_STRING) ? parse_name(json_str(item)) : parse_object(item);
        return n;
    }
    struct str part;
    while (n < INTERFACES_MAX && str_split(&text, ',', &part))
        if (str_trim(part).n)
            out[n++] = parse_name(part);
    return n;
}

static size_t find_wanted(struct composition *c, const struct app *app, struct wanted *out)
{
    const struct str given = object_annotation(app->object, NETWORKS_ANNOTATION);
    if (str_trim(given).n)
        return parse_annotation(c->arena, given, out);
    *out = (struct wanted){0};
    for (size_t i = 0; i < c->n_nets; i++) {
        const struct net_plan *n = &c->nets[i];
        if (!n->is_out && !n->is_switch && (!out->name.n || str_cmp(n->name, out->name) < 0))
            out->name = n->name;
    }
    return out->name.n > 0;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void add_match(struct arena *a, Eve__Config__ACE *rule, const char *type, struct str value)
{
    Eve__Config__ACEMatch *m = MESSAGE_NEW(a, eve__config__acematch);
    m->type = arena_strz(a, str_of(type));
    m->value = arena_strz(a, value);
    REPEATED_ADD(a, rule->matches, rule->n_matches, m);
}

/* Numbers go up through all interfaces: a device orders them by their first rule. */
static Eve__Config__ACE *add_rule(struct composition *c, struct app *app,
                                  Eve__Config__NetworkAdapter *to, Eve__Config__ACEAction *action)
{
    Eve__Config__ACE *rule = MESSAGE_NEW(c->arena, eve__config__ace);
    rule->id = ++app->last_rule;
    REPEATED_ADD(c->arena, rule->actions, rule->n_actions, action);
    REPEATED_ADD(c->arena, to->acls, to->n_acls, rule);
    return rule;
}

static void allow_all(struct composition *c, struct app *app, Eve__Config__NetworkAdapter *m)
{
    Eve__Config__ACEAction *allow = MESSAGE_NEW(c->arena, eve__config__aceaction);
    add_match(c->arena, add_rule(c, app, m, allow), "ip", STR("0.0.0.0/0"));
}

static int map_port(struct composition *c, struct app *app, Eve__Config__NetworkAdapter *m,
                    const struct json *port)
{
    const int64_t inside = json_get_int(port, STR("containerPort"), 0);
    const int64_t outside = json_get_int(port, STR("hostPort"), inside);
    const bool is_udp = str_eq_nocase(json_get_str(port, STR("protocol")), STR("UDP"));
    const struct str protocol = is_udp ? STR("udp") : STR("tcp");
    const struct str number = arena_printf(c->arena, "%lld", (long long) outside);
    const struct str key =
        arena_printf(c->arena, "port %.*s/%lld", STR_ARG(protocol), (long long) outside);
    const struct json *by = json_get(c->lent, key);
    if (inside < 1 || inside > 65535 || outside < 1 || outside > 65535)
        problem_add(c, app->object, STR("spec.containers"), "ports: must be 1 to 65535");
    else if (by || json_get(&app->taken, key))
        problem_add(c, app->object, STR("spec.containers"),
                    "ports: %.*s port %.*s of the device leads to Application '%.*s' already",
                    STR_ARG(protocol), STR_ARG(number), STR_ARG(by ? json_str(by) : app->name));
    else {
        Eve__Config__ACEAction *action = MESSAGE_NEW(c->arena, eve__config__aceaction);
        action->portmap = true;
        action->appport = (uint32_t) inside;
        Eve__Config__ACE *rule = add_rule(c, app, m, action);
        add_match(c->arena, rule, "protocol", protocol);
        add_match(c->arena, rule, "lport", number);
        (void) json_set(c->arena, &app->taken, key, json_bool(true));
        return 0;
    }
    return -EINVAL;
}

static int map_ports(struct composition *c, struct app *app, Eve__Config__NetworkAdapter *m)
{
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("containers")), container)
        JSON_FOR_EACH_ITEM (json_get(container, STR("ports")), port)
            if (map_port(c, app, m, port) < 0)
                return -EINVAL;
    return 0;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

static bool is_mac(struct str s)
{
    if (s.n != 17)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        const bool is_good =
            i % 3 == 2 ? s.p[i] == ':' : char_is_in(s.p[i], "0123456789abcdefABCDEF");
        if (!is_good)
            return false;
    }
    return true;
}

static int set_address(struct composition *c, struct app *app, const struct net_plan *n,
                       const struct wanted *w, Eve__Config__NetworkAdapter *m)
{
    uint32_t address, start, end;
    if (w->mac.n && !is_mac(w->mac)) {
        problem_add(c, app->object, NETWORKS_FIELD, "'%.*s' is no MAC address", STR_ARG(w->mac));
        return -EINVAL;
    }
    if (w->mac.n)
        m->macaddress = arena_strz(c->arena, w->mac);
    if (w->address.n == 0)
        return 0;
    if (!n->is_switch)
        subnet_range(&n->subnet, &start, &end);
    if (n->is_switch || address_parse(w->address, &address) < 0 ||
        !subnet_has(&n->subnet, address) || address <= n->subnet.first + 1 ||
        (address >= start && address <= end) || address == subnet_last(&n->subnet)) {
        problem_add(c, app->object, NETWORKS_FIELD,
                    "'%.*s' is no address of DeviceNetwork '%.*s' that can be asked for",
                    STR_ARG(w->address), STR_ARG(n->name));
        return -EINVAL;
    }
    m->addr = arena_strz(c->arena, w->address);
    return 0;
}

static int add_interface(struct composition *c, struct app *app, const struct wanted *w,
                         bool *has_ports)
{
    const struct net_plan *n = network_find(c, w->name);
    if (!n) {
        problem_add(c, app->object, NETWORKS_FIELD, "DeviceNetwork '%.*s' is not on the device",
                    STR_ARG(w->name));
        return -EINVAL;
    }
    Eve__Config__NetworkAdapter *m = MESSAGE_NEW(c->arena, eve__config__network_adapter);
    const size_t at = app->message->n_interfaces;
    m->name =
        arena_strz(c->arena, w->interface.n ? w->interface : arena_printf(c->arena, "eth%zu", at));
    m->networkid = arena_strz(c->arena, n->uuid);
    if (set_address(c, app, n, w, m) < 0)
        return -EINVAL;
    allow_all(c, app, m);
    if (!n->is_switch && !*has_ports) {
        *has_ports = true;
        if (map_ports(c, app, m) < 0)
            return -EINVAL;
    }
    REPEATED_ADD(c->arena, app->message->interfaces, app->message->n_interfaces, m);
    return 0;
}

int app_interfaces(struct composition *c, struct app *app)
{
    struct wanted *wanted = ARENA_ARRAY(c->arena, struct wanted, INTERFACES_MAX);
    const size_t n = find_wanted(c, app, wanted);
    bool has_ports = false; /* ports of the device lead in by the first local network */
    for (size_t i = 0; i < n; i++)
        if (add_interface(c, app, &wanted[i], &has_ports) < 0)
            return -EINVAL;
    return 0;
}
