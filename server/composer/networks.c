/* SPDX-License-Identifier: Apache-2.0 */
/* Which network is on which port. Planned first, because what a port is depends on all
 * DeviceNetworks together; a plan that does not hold is out, whole, and whatever happens one port
 * stays for management. */
#include <errno.h>

#include "composer/composer_internal.h"

#define NETWORKS "networks"
#define PORT_ANNOTATION SETTINGS_PREFIX "network-"
#define ADDRESS_ANNOTATION SETTINGS_PREFIX "address-"
/* Of the network of a device that has none; a device has no other of that name. */
#define DEFAULT_NETWORK_UUID "6822e35f-c1b8-43ca-b344-0bbc0ece8cf1"

struct net_plan *network_find(struct composition *c, struct str name)
{
    for (size_t i = 0; i < c->n_nets; i++)
        if (str_eq(c->nets[i].name, name) && !c->nets[i].is_out)
            return &c->nets[i];
    return NULL;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static void add_port(struct composition *c, struct net_plan *n, struct str label)
{
    for (size_t i = 0; i < n->n_ports; i++)
        if (str_eq(n->ports[i], label))
            return;
    if (label.n)
        REPEATED_ADD(c->arena, n->ports, n->n_ports, label);
}

/* Of spec.ports, else of annotations of the Device. */
static void find_ports(struct composition *c, struct net_plan *n)
{
    JSON_FOR_EACH_ITEM (json_at(n->object, "spec", "ports", NULL), item)
        if (!str_is(json_str(item), LABEL_UPLINK))
            add_port(c, n, json_str(item));
    if (n->n_ports == 0)
        JSON_FOR_EACH_MEMBER (c->annotations, m) {
            const struct str key = json_str(&m->key);
            if (str_starts_with(key, STR(PORT_ANNOTATION)) && str_eq(json_str(&m->value), n->name))
                add_port(c, n, str_from(key, sizeof(PORT_ANNOTATION) - 1));
        }
    n->has_own_ports = n->n_ports > 0;
}

static Eve__Common__PhyIoType type_wanted(const struct net_plan *n)
{
    const struct json *spec = json_get(n->network_config, STR("spec"));
    return json_is(json_get(spec, STR("wifi")), JSON_OBJECT)
               ? EVE__COMMON__PHY_IO_TYPE__PhyIoNetWLAN
           : json_is(json_get(spec, STR("cellular")), JSON_OBJECT)
               ? EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN
               : EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
}

static bool is_reserved(struct str label)
{
    return str_is(label, "all") || str_is(label, "freeuplink") || str_is(label, LABEL_UPLINK);
}

static int check_port(struct composition *c, struct net_plan *n, struct str label)
{
    const struct port_plan *p = port_find(c, label);
    if (is_reserved(label))
        problem_add(c, n->object, STR("spec.ports"), "'%.*s' is a name that EVE reserves",
                    STR_ARG(label));
    else if (p && p->owner)
        problem_add(c, n->object, STR("spec.ports"),
                    "port '%.*s' belongs to DeviceNetwork '%.*s' already", STR_ARG(label),
                    STR_ARG(p->owner->name));
    else if (p && !port_is_network(p))
        problem_add(c, n->object, STR("spec.ports"), "'%.*s' is no network port", STR_ARG(label));
    else
        return 0;
    return -EINVAL;
}

static int take_ports(struct composition *c, struct net_plan *n)
{
    for (size_t i = 0; i < n->n_ports; i++)
        if (check_port(c, n, n->ports[i]) < 0)
            return -EINVAL;
    for (size_t i = 0; i < n->n_ports; i++) {
        struct port_plan *p = port_find(c, n->ports[i]);
        if (!p)
            p = port_assume(c, n->ports[i], type_wanted(n));
        p->owner = n;
    }
    return 0;
}

static void give_ports_back(struct composition *c, const struct net_plan *n)
{
    for (size_t i = 0; i < c->n_ports; i++)
        if (c->ports[i].owner == n)
            c->ports[i].owner = NULL;
}

static bool is_passed_through(struct composition *c, const struct port_plan *p)
{
    for (size_t i = 0; i < c->in->applications.n; i++)
        JSON_FOR_EACH_ITEM (
            json_at(c->in->applications.items[i], "spec", "devicePassthrough", NULL), name)
            if (str_eq(json_str(name), p->label) || str_eq(json_str(name), p->group))
                return true;
    return false;
}

/* A network for management without ports of its own is on all that are free and of its kind. What
 * an application asks for is not, but the first port is nobody else's. */
static int take_free_ports(struct composition *c, struct net_plan *n)
{
    const Eve__Common__PhyIoType type = type_wanted(n);
    for (size_t i = 0; i < c->n_ports; i++) {
        struct port_plan *p = &c->ports[i];
        if (p->is_reported && p->type == type && !p->owner &&
            (str_is(p->label, DEFAULT_PORT) || !is_passed_through(c, p)))
            add_port(c, n, p->label);
    }
    if (n->n_ports == 0 && type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth) {
        const struct port_plan *p = port_find_default(c);
        if (p)
            add_port(c, n, p->label);
    }
    if (n->n_ports)
        return take_ports(c, n);
    problem_add(c, n->object, STR("spec.ports"),
                "no port of the device is left for it; name its ports");
    return -EINVAL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int find_address(struct composition *c, struct net_plan *n, size_t at)
{
    const struct str subnet_given = json_str(json_at(n->network_config, "spec", "subnet", NULL));
    const struct str key = arena_printf(c->arena, ADDRESS_ANNOTATION "%.*s", STR_ARG(n->ports[at]));
    const struct str given = object_annotation(c->in->device, key.p);
    bool is_v6;
    struct subnet s;
    uint32_t host = 0, address = 0;
    const bool is_v4 = subnet_parse(subnet_given, &s, &host) == 0;
    if (given.n) {
        const bool is_good =
            address_is_valid(given, &is_v6) && is_v6 != is_v4 &&
            (is_v6 || (address_parse(given, &address) == 0 && subnet_has(&s, address)));
        if (!is_good) {
            problem_add(c, c->in->device,
                        arena_printf(c->arena, "metadata.annotations[%.*s]", STR_ARG(key)),
                        "'%.*s' is no address in %.*s", STR_ARG(given), STR_ARG(subnet_given));
            return -EINVAL;
        }
        n->addresses[at] = arena_strz(c->arena, given);
        return 0;
    }
    if (host && n->n_ports == 1) {
        n->addresses[at] = address_text(c->arena, host);
        return 0;
    }
    problem_add(c, n->object, STR("spec.networkConfig"),
                "no address for port '%.*s': NetworkConfig '%.*s' is static; annotate the Device "
                "with " ADDRESS_ANNOTATION "%.*s",
                STR_ARG(n->ports[at]), STR_ARG(object_name(n->network_config)),
                STR_ARG(n->ports[at]));
    return -EINVAL;
}

static int find_addresses(struct composition *c, struct net_plan *n)
{
    if (n->n_ports)
        n->addresses = ARENA_ARRAY(c->arena, char *, n->n_ports);
    if (n->network->ip->dhcp != EVE__COMMON__DHCPTYPE__Static)
        return 0;
    for (size_t i = 0; i < n->n_ports; i++)
        if (find_address(c, n, i) < 0)
            return -EINVAL;
    return 0;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static bool has_twin(struct composition *c, const struct net_plan *n)
{
    for (const struct net_plan *other = c->nets; other < n; other++)
        if (!other->is_out && str_eq(other->uuid, n->uuid))
            return true;
    return false;
}

static int check_objects(struct composition *c, struct net_plan *n)
{
    const struct str name = json_str(json_at(n->object, "spec", "networkConfig", NULL));
    n->network_config = set_find(&c->in->network_configs, name);
    if (n->uuid.n == 0)
        problem_add(c, n->object, STR("status.uuid"), "it has no UUID yet");
    else if (has_twin(c, n))
        problem_add(c, n->object, STR("status.uuid"), "it is that of another DeviceNetwork");
    else if (!n->network_config)
        problem_add(c, n->object, STR("spec.networkConfig"), "NetworkConfig '%.*s' not found",
                    STR_ARG(name));
    else if (object_uuid(n->network_config).n == 0)
        problem_add(c, n->object, STR("spec.networkConfig"), "NetworkConfig '%.*s' has no UUID yet",
                    STR_ARG(name));
    else
        return network_config_make(c, n);
    return -EINVAL;
}

static void put_out(struct composition *c, struct net_plan *n)
{
    n->is_out = true;
    give_ports_back(c, n);
}

static void plan(struct composition *c, struct net_plan *n, const struct json *object)
{
    *n = (struct net_plan){.object = object, .name = object_name(object)};
    n->uuid = object_uuid(object);
    n->is_management = json_get_bool(json_get(object, STR("spec")), STR("management"), true);
    n->is_switch = str_is(json_str(json_at(object, "spec", "type", NULL)), "switch");
    find_ports(c, n);
    if (check_objects(c, n) < 0 || (n->has_own_ports && take_ports(c, n) < 0) ||
        find_addresses(c, n) < 0)
        put_out(c, n);
}

/* Two networks without ports of their own can share the uplinks only as one. */
static void plan_free_ports(struct composition *c)
{
    const struct net_plan *first = NULL;
    for (size_t i = 0; i < c->n_nets; i++) {
        struct net_plan *n = &c->nets[i];
        if (n->is_out || n->has_own_ports || !n->is_management)
            continue;
        if (!first && take_free_ports(c, n) == 0 && find_addresses(c, n) == 0) {
            first = n;
        } else if (!first) {
            put_out(c, n);
        } else if (first->network_config != n->network_config) {
            problem_add(c, n->object, STR("spec.ports"),
                        "the free ports belong to DeviceNetwork '%.*s' already; name its ports",
                        STR_ARG(first->name));
            put_out(c, n);
        }
    }
}

static bool has_management(const struct composition *c)
{
    bool is_any_reported = false;
    for (size_t i = 0; i < c->n_ports; i++)
        is_any_reported |= c->ports[i].is_reported && port_is_network(&c->ports[i]);
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_plan *p = &c->ports[i];
        if (p->owner && p->owner->is_management && (p->is_reported || !is_any_reported))
            return true;
    }
    return false;
}

/* Whether the port that is for management by default could be one of its own. */
static bool holds_default(struct composition *c, const struct net_plan *n)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_plan *p = &c->ports[i];
        if (p->owner == n && p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth &&
            (p->is_reported || str_is(p->label, DEFAULT_PORT)))
            return true;
    }
    return false;
}

/* The device must not be lost whatever is asked for: a network that would take the last port is
 * out. */
static void plan_management(struct composition *c)
{
    if (has_management(c))
        return;
    struct port_plan *p = port_find_default(c);
    for (size_t i = c->n_nets; !p && i > 0; i--) {
        struct net_plan *n = &c->nets[i - 1];
        if (n->is_out || !holds_default(c, n))
            continue;
        problem_add(c, n->object, STR("spec.ports"),
                    "no port would be left for the device to reach the controller");
        put_out(c, n);
        p = port_find_default(c);
    }
    if (!p) {
        /* It reports ports under that name which are no network: its own affair. */
        p = port_find(c, STR(DEFAULT_PORT));
        p->type = EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
        p->interface = p->label;
    }
    p->is_default = true;
}

static void choose_label(struct composition *c, struct net_plan *n)
{
    n->label = !n->has_own_ports ? STR(LABEL_UPLINK)
               : n->n_ports == 1 ? n->ports[0]
                                 : arena_printf(c->arena, "net-%.*s", STR_ARG(n->name));
}

void networks_plan(struct composition *c)
{
    const struct json **sorted = set_by_age(c, &c->in->device_networks, NETWORKS);
    c->n_nets = c->in->device_networks.n;
    c->nets = ARENA_ARRAY(c->arena, struct net_plan, c->n_nets + 1);
    for (size_t i = 0; i < c->n_nets; i++)
        plan(c, &c->nets[i], sorted[i]);
    subnets_choose(c);
    for (size_t i = 0; i < c->n_nets; i++)
        if (c->nets[i].is_out)
            put_out(c, &c->nets[i]);
    plan_free_ports(c);
    for (size_t i = 0; i < c->n_nets; i++)
        choose_label(c, &c->nets[i]);
    plan_management(c);
    for (size_t i = 0; i < c->n_nets; i++) {
        const struct net_plan *n = &c->nets[i];
        if (!n->is_out)
            keep(c, NETWORKS, n->uuid, json_bool(true));
        else if (n->uuid.n)
            keep_previous(c, NETWORKS, n->uuid);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static Eve__Config__SystemAdapter *adapter(struct composition *c, struct str port, char *network)
{
    Eve__Config__SystemAdapter *m = MESSAGE_NEW(c->arena, eve__config__system_adapter);
    m->name = m->lowerlayername = arena_strz(c->arena, port);
    m->networkuuid = network;
    return m;
}

static void emit_network(struct composition *c, const struct net_plan *n)
{
    const struct str id = pb_text(n->network->id);
    if (part_find(c, SECTION_NETWORKS, id))
        return;
    struct part *p = part_add(c, SECTION_NETWORKS, id, &n->network->base);
    part_source(c, p, "", n->network_config, STR("spec"));
    cipher_use(c, &n->sealed);
    if (n->secret)
        part_source(c, p, "wireless", n->secret, STR("data"));
}

static void emit_adapters(struct composition *c, const struct net_plan *n)
{
    for (size_t i = 0; i < n->n_ports; i++) {
        Eve__Config__SystemAdapter *m = adapter(c, n->ports[i], n->network->id);
        m->uplink = n->is_management;
        if (n->addresses[i])
            m->addr = n->addresses[i];
        if (n->has_own_ports && n->n_ports > 1)
            REPEATED_ADD(c->arena, m->shared_labels, m->n_shared_labels,
                         arena_strz(c->arena, n->label));
        struct part *p = part_add(c, SECTION_ADAPTERS, n->ports[i], &m->base);
        part_source(c, p, "", n->object,
                    n->has_own_ports ? STR("spec.ports") : STR("spec.networkConfig"));
    }
}

/* The least that keeps a device in touch: an Ethernet port with DHCP. */
static void emit_default(struct composition *c, const struct port_plan *p)
{
    Eve__Config__NetworkConfig *network = MESSAGE_NEW(c->arena, eve__config__network_config);
    network->id = arena_strz(c->arena, STR(DEFAULT_NETWORK_UUID));
    network->type = EVE__COMMON__NETWORK_TYPE__V4;
    network->ip = MESSAGE_NEW(c->arena, eve__common__ipspec);
    network->ip->dhcp = EVE__COMMON__DHCPTYPE__Client;
    Eve__Config__SystemAdapter *m = adapter(c, p->label, network->id);
    m->uplink = true;
    part_source(c, part_add(c, SECTION_NETWORKS, STR(DEFAULT_NETWORK_UUID), &network->base), "",
                c->in->device, STR("metadata.name"));
    part_source(c, part_add(c, SECTION_ADAPTERS, p->label, &m->base), "", c->in->device,
                STR("metadata.name"));
}

void networks_emit(struct composition *c)
{
    for (size_t i = 0; i < c->n_nets; i++) {
        const struct net_plan *n = &c->nets[i];
        if (n->is_out)
            continue;
        if (n->n_ports)
            emit_network(c, n);
        emit_adapters(c, n);
    }
    for (size_t i = 0; i < c->n_ports; i++)
        if (c->ports[i].is_default)
            emit_default(c, &c->ports[i]);
    ports_emit(c);
    instances_emit(c);
}
