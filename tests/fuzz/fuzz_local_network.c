/* SPDX-License-Identifier: Apache-2.0 */
/* What a local profile server orders of ports: refused in words that can be told, or a
 * configuration that nim takes and that changes nothing of what is the controller's to say. */
#include <stdlib.h>

#include "nim/overlay.h"
#include "protobuf/message.h"
#include "zedagent/parse_local.h"

#define NOW_US 1767225600000000
#define MAX_BYTES ((size_t) 256 * 1024) /* as lps reads it */
#define MAX_WORDS_BYTES ((size_t) 4096)
#define BASE \
    "{\"Version\":1,\"Key\":\"zedagent\",\"Ports\":[" \
    "{\"IfName\":\"eth0\",\"Logicallabel\":\"up\",\"IsMgmt\":true,\"IsL3Port\":true,\"Cost\":3," \
    "\"AllowLocalModifications\":true,\"Dhcp\":4,\"Type\":4,\"L2Type\":1,\"VLAN\":{\"ID\":7}}," \
    "{\"IfName\":\"eth1\",\"Logicallabel\":\"shut\",\"IsMgmt\":true,\"Dhcp\":4}," \
    "{\"IfName\":\"wlan0\",\"Logicallabel\":\"air\",\"IsL3Port\":true,\"Dhcp\":4," \
    "\"AllowLocalModifications\":true,\"WirelessCfg\":{\"WType\":2}}," \
    "{\"IfName\":\"wwan0\",\"Logicallabel\":\"modem\",\"IsL3Port\":true,\"Dhcp\":4," \
    "\"AllowLocalModifications\":true,\"WirelessCfg\":{\"WType\":1}}]}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static struct dpc *read_dpc(const struct json *v)
{
    struct dpc *d = NULL;
    require(dpc_read(v, &(struct dpc_defaults){0}, &d) == 0);
    return d;
}

static bool is_same(const struct json *x, const struct json *y, const char *name)
{
    const struct json *a = json_get(x, str_of(name)), *b = json_get(y, str_of(name));
    return a && b ? json_equal(a, b) : a == b;
}

static void check_merged(struct arena *a, const struct json *value)
{
    static const char *const fixed[] = {
        "IfName",   "Logicallabel", "SharedLabels", "IsMgmt", "Cost",
        "IsL3Port", "L2Type",       "VLAN",         "Bond",   "AllowLocalModifications"};
    CLEANUP(dpc_freep) struct dpc *base = read_dpc(json_parse_quick(a, STR(BASE)));
    CLEANUP(dpc_freep) struct dpc *local = read_dpc(value);
    const struct json *own = dpc_config(a, base), *merged = overlay_config(a, base, local);
    require(json_count(own) == json_count(merged));
    for (size_t i = 0; i < json_count(own); i++) {
        for (size_t k = 0; k < N_ELEMENTS(fixed); k++)
            require(is_same(&own->items[i], &merged->items[i], fixed[k]));
        if (!base->ports[i].allows_local_changes)
            require(json_equal(&own->items[i], &merged->items[i]));
    }
}

static void check_value(struct arena *a, const struct json *value, size_t n_ports)
{
    struct json_parse_result parsed;
    const struct str text = json_text(a, value);
    require(json_parse(a, text, &parsed) == 0 && str_eq(json_text(a, parsed.value), text));
    require(json_count(json_get(value, STR("Ports"))) == n_ports);
    JSON_FOR_EACH_ITEM (json_get(value, STR("Ports")), port)
        require(json_get_int(json_get(port, STR("ConfigSource")), STR("Origin"), 0) ==
                DPC_ORIGIN_LPS);
    check_merged(a, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct json *value = NULL;
    if (size > MAX_BYTES)
        return 0;
    const Eve__Profile__LocalNetworkConfig *c =
        PB_UNPACK(a, eve__profile__local_network_config, str_range((const char *) data, size));
    if (!c)
        return 0;
    const struct json *in_use = json_get(json_parse_quick(a, STR(BASE)), STR("Ports"));
    const struct str words = parse_local_network(a, c, in_use, NOW_US, &value);
    require((words.n > 0) == !value && words.n <= MAX_WORDS_BYTES);
    struct json_parse_result told;
    const struct json said = json_string(words.n ? words : STR(""));
    require(json_parse(a, json_text(a, &said), &told) == 0);
    if (value)
        check_value(a, value, c->n_ports);
    return 0;
}
