/* SPDX-License-Identifier: Apache-2.0 */
/* A network instance. */
#include "base/base64.h"
#include "report/info.h"

static Eve__Info__ZNetworkInstanceState state_of(const struct json *status, bool has_error)
{
    if (has_error)
        return EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_ERROR;
    if (NUMBER(status, "ChangeInProgress"))
        return EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_INIT;
    return FLAG(status, "Activated")
               ? EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_ONLINE
               : EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_UNSPECIFIED;
}

static void add_assigned(struct world *w, Eve__Info__ZmetIPAssignmentEntry *e,
                         const struct json *list)
{
    JSON_FOR_EACH_ITEM (list, item) {
        struct str text =
            json_is(item, JSON_STRING) ? json_str(item) : json_get_str(item, STR("Address"));
        if (text.n)
            PUSH(w, e, ipaddress, make_text(w, text));
    }
}

static void add_assignment(struct world *w, Eve__Info__ZInfoNetworkInstance *n,
                           const struct json_member *m)
{
    Eve__Info__ZmetIPAssignmentEntry *e =
        MAKE(w, Eve__Info__ZmetIPAssignmentEntry, eve__info__zmet_ipassignment_entry);
    const struct str old = json_get_str(&m->value, STR("IPv4Addr"));
    e->macaddress = make_mac(w, &m->key);
    if (old.n)
        PUSH(w, e, ipaddress, make_text(w, old));
    add_assigned(w, e, json_get(&m->value, STR("IPv4Addrs")));
    add_assigned(w, e, json_get(&m->value, STR("IPv6Addrs")));
    PUSH(w, n, ipassignments, e);
}

static void add_vif(struct world *w, Eve__Info__ZInfoNetworkInstance *n, const struct json *vif)
{
    Eve__Info__ZmetVifInfo *v = MAKE(w, Eve__Info__ZmetVifInfo, eve__info__zmet_vif_info);
    v->vifname = TEXT(w, vif, "Name");
    v->macaddress = make_mac(w, json_get(vif, STR("MacAddr")));
    v->appid = TEXT(w, vif, "AppID");
    PUSH(w, n, vifs, v);
}

/* Go's net.IPNet. */
static char *subnet_text(struct world *w, const struct json *subnet)
{
    struct str mask = STR_NONE, ip = json_get_str(subnet, STR("IP"));
    unsigned bits = 0;
    if (!ip.n || base64_decode(w->arena, json_get_str(subnet, STR("Mask")), BASE64_STANDARD, &mask,
                               NULL) < 0)
        return make_text(w, ip.n ? ip : json_str(subnet));
    for (size_t i = 0; i < mask.n; i++)
        bits += (unsigned) __builtin_popcount((unsigned char) mask.p[i]);
    return make_text(w, arena_printf(w->arena, "%.*s/%u", STR_ARG(ip), bits));
}

static void add_route(struct world *w, Eve__Info__ZInfoNetworkInstance *n, const struct json *route)
{
    Eve__Info__IPRoute *r = MAKE(w, Eve__Info__IPRoute, eve__info__iproute);
    const struct str app = json_get_str(route, STR("GatewayApp"));
    r->destination_network = subnet_text(w, json_get(route, STR("DstNetwork")));
    r->gateway = TEXT(w, route, "Gateway");
    r->port = TEXT(w, route, "SelectedPort");
    r->gateway_app = make_text(w, make_is_nil_uuid(app) ? STR("") : app);
    PUSH(w, n, ip_routes, r);
}

static void add_port(struct world *w, Eve__Info__ZInfoNetworkInstance *n, struct str label)
{
    const struct json *adapter = world_adapter(w, "Logicallabel", label);
    PUSH(w, n, ports, make_text(w, label));
    if (!adapter)
        return;
    Eve__Info__ZioBundle *b = MAKE(w, Eve__Info__ZioBundle, eve__info__zio_bundle);
    b->type = (Eve__Common__PhyIoType) NUMBER(adapter, "Type");
    b->name = make_text(w, label);
    b->usedbyappuuid = make_text(w, w->ground->device);
    info_adapter_members(w, b, json_get_str(adapter, STR("Phylabel")));
    PUSH(w, n, assignedadapters, b);
}

/* UUIDandVersion is embedded in the configuration, and the configuration in the status. */
static struct str identity(const struct json *status, const char *name)
{
    const struct str text = json_get_str(status, str_of(name));
    return text.n ? text : json_str(json_at(status, "UUIDandVersion", name, NULL));
}

Eve__Info__ZInfoNetworkInstance *info_network_instance(struct world *w, const struct json *status,
                                                       bool is_gone)
{
    Eve__Info__ZInfoNetworkInstance *n =
        MAKE(w, Eve__Info__ZInfoNetworkInstance, eve__info__zinfo_network_instance);
    n->networkid = make_text(w, identity(status, "UUID"));
    n->networkversion = make_text(w, identity(status, "Version"));
    if (is_gone)
        return n;
    Eve__Info__ErrorInfo *error = make_error(w, status);
    if (error)
        PUSH(w, n, networkerr, error);
    n->state = state_of(status, error != NULL);
    n->activated = FLAG(status, "Activated");
    n->displayname = TEXT(w, status, "DisplayName");
    n->insttype = (uint32_t) NUMBER(status, "Type");
    n->bridgenum = (uint32_t) NUMBER(status, "BridgeNum");
    n->bridgename = TEXT(w, status, "BridgeName");
    n->bridgeipaddr = TEXT(w, status, "BridgeIPAddr");
    n->mtu = (uint32_t) NUMBER(status, "MTU");
    JSON_FOR_EACH_MEMBER (json_get(status, STR("IPAssignments")), m)
        add_assignment(w, n, m);
    JSON_FOR_EACH_ITEM (json_get(status, STR("Vifs")), vif)
        add_vif(w, n, vif);
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), port)
        add_port(w, n,
                 json_is(port, JSON_STRING) ? json_str(port)
                                            : json_get_str(port, STR("Logicallabel")));
    JSON_FOR_EACH_ITEM (json_get(status, STR("IntfRouteStatus")), route)
        add_route(w, n, route);
    JSON_FOR_EACH_ITEM (json_get(status, STR("CurrentRoutes")), route)
        add_route(w, n, route);
    return n;
}
