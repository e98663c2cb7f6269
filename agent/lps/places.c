/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/places.h"

#include <errno.h>

#include "zedagent/address.h"

#define MAX_PORT 65535

static int parse_port(struct str text, unsigned *ret)
{
    int64_t port;
    if (text.n == 0) {
        *ret = PLACES_DEFAULT_PORT;
        return 0;
    }
    if (str_to_i64(text, &port) < 0 || port < 1 || port > MAX_PORT)
        return -EINVAL;
    *ret = (unsigned) port;
    return 0;
}

int places_parse(struct str address, struct str *ret_host, unsigned *ret_port)
{
    const ptrdiff_t first = str_find(address, ':'), last = str_find_last(address, ':');
    const ptrdiff_t bracket = str_find(address, ']');
    struct str host = address, port = STR("");
    if (str_starts_with(address, STR("["))) {
        if (bracket < 0)
            return -EINVAL;
        host = str_sub(address, 1, (size_t) bracket);
        port = str_from(address, (size_t) bracket + 1);
        if (port.n && port.p[0] != ':')
            return -EINVAL;
        port = str_from(port, 1);
    } else if (first >= 0 && first == last) {
        host = str_sub(address, 0, (size_t) first);
        port = str_from(address, (size_t) first + 1);
    }
    if (host.n == 0 || parse_port(port, ret_port) < 0)
        return -EINVAL;
    *ret_host = host;
    return 0;
}

static void add(struct arena *a, const struct json *adapter, const struct address *to,
                unsigned port, struct places *ret)
{
    const struct str text = address_text(a, to);
    if (ret->n == PLACES_MAX)
        return;
    ret->items[ret->n++] =
        (struct place){.bridge = arena_str(a, json_get_str(adapter, STR("Bridge"))),
                       .source = arena_str(a, json_get_str(adapter, STR("BridgeIPAddr"))),
                       .url = arena_printf(a, to->n == 16 ? "http://[%.*s]:%u" : "http://%.*s:%u",
                                           STR_ARG(text), port)};
}

static bool has_address(const struct json *adapter, const char *family,
                        const struct address *wanted)
{
    JSON_FOR_EACH_ITEM (json_get(json_get(adapter, STR("AssignedAddresses")), str_of(family)),
                        item) {
        struct address one;
        if (address_parse(json_get_str(item, STR("Address")), &one) &&
            address_cmp(&one, wanted) == 0)
            return true;
    }
    return false;
}

static void find_by_name(struct arena *a, struct str host, unsigned port,
                         const struct json *adapter, const struct json *instances,
                         struct places *ret)
{
    JSON_FOR_EACH_MEMBER (instances, m) {
        JSON_FOR_EACH_ITEM (json_get(&m->value, STR("DnsNameToIPList")), entry) {
            if (!str_eq(json_get_str(entry, STR("HostName")), host))
                continue;
            JSON_FOR_EACH_ITEM (json_get(entry, STR("IPs")), ip) {
                struct address one;
                if (address_parse(json_str(ip), &one))
                    add(a, adapter, &one, port, ret);
            }
        }
    }
}

void places_find(struct arena *a, struct str address, const struct json *app_networks,
                 const struct json *instances, struct places *ret)
{
    struct str host;
    unsigned port;
    struct address wanted;
    ret->n = 0;
    if (places_parse(address, &host, &port) < 0)
        return;
    const bool is_literal = address_parse(host, &wanted);
    JSON_FOR_EACH_MEMBER (app_networks, m) {
        JSON_FOR_EACH_ITEM (json_get(&m->value, STR("AppNetAdapterList")), adapter) {
            if (!json_get_str(adapter, STR("BridgeIPAddr")).n)
                continue;
            if (!is_literal)
                find_by_name(a, host, port, adapter, instances, ret);
            else if (has_address(adapter, "IPv4Addrs", &wanted) ||
                     has_address(adapter, "IPv6Addrs", &wanted))
                add(a, adapter, &wanted, port, ret);
        }
    }
}
