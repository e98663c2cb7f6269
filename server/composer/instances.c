/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that applications attach to, and the subnets of those that are local. */
#include <errno.h>

#include "base/uuid.h"
#include "composer/composer_internal.h"
#include "pki/pki.h"

#define SUBNETS "subnets" /* chosen ones, kept */
#define CHOSEN_LENGTH 24
#define CHOSEN_FIRST 0x0a400000u /* 10.64.0.0/10, of which a network gets 256 addresses */
#define CHOSEN_COUNT (1u << (CHOSEN_LENGTH - 10))
#define SUBNET_MAX_LENGTH 30 /* four addresses */
#define DYNAMIC_MAX 256      /* that EVE gives out */

/* Three quarters are given out, but for the smallest; the rest is for addresses that are asked
 * for. */
void subnet_range(const struct subnet *s, uint32_t *ret_start, uint32_t *ret_end)
{
    const uint32_t n = subnet_last(s) - s->first;
    const uint32_t end = n < 16 ? n - 1 : n / 4 * 3;
    *ret_start = s->first + 2;
    *ret_end = s->first + MIN(end, DYNAMIC_MAX + 1);
}

/* ---- subnets --------------------------------------------------------------------------------- */

/* Whether the subnet is another's: of a local network that has one already, or of a port. */
static bool is_taken(struct composition *c, const struct net_plan *by, const struct subnet *s)
{
    for (size_t i = 0; i < c->n_nets; i++) {
        const struct net_plan *n = &c->nets[i];
        struct subnet of_port;
        if (n->is_out)
            continue;
        if (n != by && subnet_overlaps(s, &n->subnet))
            return true;
        if ((n->has_own_ports || n->is_management) &&
            n->network->ip->dhcp == EVE__COMMON__DHCPTYPE__Static &&
            subnet_parse(pb_text(n->network->ip->subnet), &of_port, NULL) == 0 &&
            subnet_overlaps(s, &of_port))
            return true;
    }
    return false;
}

static bool has_device_address(struct composition *c, const struct subnet *s)
{
    JSON_FOR_EACH_ITEM (json_at(c->in->device, "status", "addresses", NULL), item) {
        uint32_t address;
        if (address_parse(json_get_str(item, STR("address")), &address) == 0 &&
            subnet_has(s, address))
            return true;
    }
    return false;
}

bool subnet_is_free(struct composition *c, const struct subnet *s)
{
    return !is_taken(c, NULL, s);
}

static int take_given(struct composition *c, struct net_plan *n, struct str given)
{
    struct subnet s;
    if (subnet_parse(given, &s, NULL) < 0 || s.length > SUBNET_MAX_LENGTH)
        problem_add(c, n->object, STR("spec.subnet"),
                    "'%.*s' is no IPv4 network of four addresses or more", STR_ARG(given));
    else if (is_taken(c, n, &s))
        problem_add(c, n->object, STR("spec.subnet"),
                    "%.*s overlaps with another network of the device", STR_ARG(given));
    else {
        n->subnet = s;
        return 0;
    }
    return -EINVAL;
}

/* Where the search begins is the network's own, so that networks seldom meet and the order in
 * which they came says nothing. */
static uint32_t first_choice(struct str uuid)
{
    unsigned char hash[SHA256_BYTES];
    pki_sha256(uuid, hash);
    return ((uint32_t) hash[0] << 8 | hash[1]) % CHOSEN_COUNT;
}

static int choose(struct composition *c, struct net_plan *n)
{
    struct subnet s;
    if (subnet_parse(kept_text(c, SUBNETS, n->uuid), &s, NULL) == 0 &&
        s.length <= SUBNET_MAX_LENGTH && !is_taken(c, n, &s)) {
        n->subnet = s;
        return 0;
    }
    const uint32_t first = first_choice(n->uuid);
    for (uint32_t i = 0; i < CHOSEN_COUNT; i++) {
        const uint32_t at = (first + i) % CHOSEN_COUNT;
        s = (struct subnet){CHOSEN_FIRST + (at << (32 - CHOSEN_LENGTH)), CHOSEN_LENGTH};
        if (!is_taken(c, n, &s) && !has_device_address(c, &s)) {
            n->subnet = s;
            return 0;
        }
    }
    problem_add(c, n->object, STR("spec.subnet"), "no network is free");
    return -EINVAL;
}

enum round { ROUND_GIVEN, ROUND_KEPT, ROUND_NEW, ROUNDS };

static enum round round_of(struct composition *c, const struct net_plan *n)
{
    return json_str(json_at(n->object, "spec", "subnet", NULL)).n ? ROUND_GIVEN
           : kept_text(c, SUBNETS, n->uuid).n                     ? ROUND_KEPT
                                                                  : ROUND_NEW;
}

void subnets_choose(struct composition *c)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < c->n_nets; i++) {
            struct net_plan *n = &c->nets[i];
            if (n->is_out || n->is_switch || round_of(c, n) != (enum round) round)
                continue;
            const struct str given = json_str(json_at(n->object, "spec", "subnet", NULL));
            n->is_out = (given.n ? take_given(c, n, given) : choose(c, n)) < 0;
            if (!n->is_out && !given.n)
                keep(c, SUBNETS, n->uuid, json_string(str_of(subnet_text(c->arena, &n->subnet))));
        }
    for (size_t i = 0; i < c->n_nets; i++)
        if (c->nets[i].is_out && c->nets[i].uuid.n)
            keep_previous(c, SUBNETS, c->nets[i].uuid);
}

/* ---- messages -------------------------------------------------------------------------------- */

static Eve__Common__Ipspec *local_ip(struct composition *c, const struct subnet *s)
{
    struct arena *a = c->arena;
    Eve__Common__Ipspec *ip = MESSAGE_NEW(a, eve__common__ipspec);
    uint32_t start, end;
    subnet_range(s, &start, &end);
    ip->subnet = subnet_text(a, s);
    ip->gateway = address_text(a, s->first + 1);
    REPEATED_ADD(a, ip->dns, ip->n_dns, ip->gateway);
    ip->dhcprange = MESSAGE_NEW(a, eve__common__ip_range);
    ip->dhcprange->start = address_text(a, start);
    ip->dhcprange->end = address_text(a, end);
    return ip;
}

static void emit(struct composition *c, const struct net_plan *n)
{
    struct arena *a = c->arena;
    Eve__Config__NetworkInstanceConfig *m = MESSAGE_NEW(a, eve__config__network_instance_config);
    m->uuidandversion = MESSAGE_NEW(a, eve__config__uuidand_version);
    m->uuidandversion->uuid = arena_strz(a, n->uuid);
    m->uuidandversion->version = arena_strz(a, STR("1"));
    m->displayname = arena_strz(a, n->name);
    m->activate = true;
    m->disable_flowlog = true;
    m->insttype = n->is_switch ? EVE__CONFIG__ZNETWORK_INST_TYPE__ZnetInstSwitch
                               : EVE__CONFIG__ZNETWORK_INST_TYPE__ZnetInstLocal;
    m->port = MESSAGE_NEW(a, eve__config__adapter);
    const struct port_plan *p = n->n_ports ? port_find(c, n->ports[0]) : NULL;
    m->port->type = p ? p->type : EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
    m->port->name = arena_strz(a, n->label);
    if (!n->is_switch) {
        m->iptype = EVE__CONFIG__ADDRESS_TYPE__IPV4;
        m->ip = local_ip(c, &n->subnet);
    }
    struct part *part = part_add(c, SECTION_INSTANCES, n->uuid, &m->base);
    part_source(c, part, "", n->object, STR("spec"));
}

void instances_emit(struct composition *c)
{
    for (size_t i = 0; i < c->n_nets; i++)
        if (!c->nets[i].is_out)
            emit(c, &c->nets[i]);
}
