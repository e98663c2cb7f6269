/* SPDX-License-Identifier: Apache-2.0 */
/* Ports from nim's DeviceNetworkStatus. */
#include <errno.h>

#include "base/clock.h"
#include "controllerconn/ports.h"
#include "json/json.h"

#define DHCP_NONE 2
#define WIRELESS_CELLULAR 1

static const struct str *read_strings(struct arena *a, const struct json *list, struct str member,
                                      size_t *ret_n)
{
    struct str *items = ARENA_ARRAY(a, struct str, UPLINK_MAX_ADDRESSES);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct str text = member.p ? json_get_str(item, member) : json_str(item);
        if (text.n > 0 && n < UPLINK_MAX_ADDRESSES)
            items[n++] = text;
    }
    *ret_n = n;
    return items;
}

static const struct uplink_proxy *read_proxies(struct arena *a, const struct json *list,
                                               size_t *ret_n)
{
    struct uplink_proxy *items = ARENA_ARRAY(a, struct uplink_proxy, UPLINK_MAX_ADDRESSES);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const int64_t port = json_get_int(item, STR("port"), 0);
        const struct str server = json_get_str(item, STR("server"));
        if (server.n > 0 && port >= 0 && port <= 65535 && n < UPLINK_MAX_ADDRESSES)
            items[n++] = (struct uplink_proxy){.type = (int) json_get_int(item, STR("type"), 0),
                                               .server = server,
                                               .port = (unsigned) port};
    }
    *ret_n = n;
    return items;
}

/* Go's zero time lies before 1970: never. */
static int64_t read_time(const struct json *port, struct str name)
{
    int64_t wall_us = 0;
    if (clock_parse(json_get_str(port, name), &wall_us) < 0)
        return 0;
    return MAX(wall_us, 0);
}

/* A modem that is not connected, or says why it cannot be. */
static struct str read_blocked(const struct json *port)
{
    const struct json *status = json_get(port, STR("WirelessStatus"));
    if (json_get_int(status, STR("WType"), 0) != WIRELESS_CELLULAR)
        return STR_NONE;
    const struct json *cellular = json_get(status, STR("Cellular"));
    static const struct {
        struct str key;
    } errors[] = {{{"ConfigError", 11}}, {{"ProbeError", 10}}};
    for (size_t i = 0; i < N_ELEMENTS(errors); i++) {
        const struct str why = json_get_str(cellular, errors[i].key);
        if (why.n > 0)
            return why;
    }
    const struct str mode = json_get_str(json_get(cellular, STR("Module")), STR("OpMode"));
    return mode.n > 0 && !str_is(mode, "connected") ? STR("modem is not connected") : STR_NONE;
}

static struct uplink_port read_port(struct arena *a, const struct json *v)
{
    struct uplink_port p = {
        .name = json_get_str(v, STR("IfName")),
        .is_management = json_get_bool(v, STR("IsMgmt"), false),
        .is_l3 = json_get_bool(v, STR("IsL3Port"), false),
        .has_invalid_config = json_get_bool(v, STR("InvalidConfig"), false),
        /* Of our own nim; EVE's routes by source address. */
        .binds_device = json_get_bool(v, STR("BindsDevice"), false),
        .has_dhcp_none = json_get_int(v, STR("Dhcp"), 0) == DHCP_NONE,
        .blocked_reason = read_blocked(v),
        .domain = json_get_str(v, STR("DomainName")),
        .exceptions = json_get_str(v, STR("Exceptions")),
        .pac = json_get_str(v, STR("Pacfile")),
        .discovers_proxy = json_get_bool(v, STR("NetworkProxyEnable"), false),
        .wpad_url = json_get_str(v, STR("NetworkProxyURL")),
        .last_failed_us = read_time(v, STR("LastFailed")),
        .last_succeeded_us = read_time(v, STR("LastSucceeded")),
    };
    const int64_t cost = json_get_int(v, STR("Cost"), 0);
    p.cost = (unsigned) MIN(MAX(cost, 0), 255);
    p.addresses = read_strings(a, json_get(v, STR("AddrInfoList")), STR("Addr"), &p.n_addresses);
    p.dns_servers = read_strings(a, json_get(v, STR("DNSServers")), STR_NONE, &p.n_dns_servers);
    p.proxies = read_proxies(a, json_get(v, STR("Proxies")), &p.n_proxies);
    return p;
}

int uplink_ports_parse(const struct json *status, struct uplink_ports **ret_ports)
{
    if (!json_is(status, JSON_OBJECT))
        return -EINVAL;
    ARENA_AUTO a = arena_new();
    struct uplink_port *items = ARENA_ARRAY(a, struct uplink_port, UPLINK_MAX_PORTS);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), item)
        if (json_get_str(item, STR("IfName")).n > 0 && n < UPLINK_MAX_PORTS)
            items[n++] = read_port(a, item);
    const int64_t version = json_get_int(status, STR("Version"), 0);
    *ret_ports = uplink_ports_new(version > 0 ? 1 : 0, items, n);
    return 0;
}
