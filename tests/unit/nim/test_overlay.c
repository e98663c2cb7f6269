/* SPDX-License-Identifier: Apache-2.0 */
/* What a local profile server wants, laid over configurations. */
#include "test.h"

#include "nim/overlay.h"
#include "nim/status.h"

#define BASE \
    "{\"Version\":1,\"Key\":\"zedagent\",\"Ports\":[" \
    "{\"IfName\":\"eth0\",\"Logicallabel\":\"up\",\"IsMgmt\":true,\"IsL3Port\":true,\"Cost\":3," \
    "\"AllowLocalModifications\":true,\"Dhcp\":4,\"Type\":4,\"NTPServers\":[\"ntp\"],\"MTU\":" \
    "1400," \
    "\"NetworkProxyEnable\":true,\"NetworkUUID\":\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"," \
    "\"ConfigSource\":{\"Origin\":1,\"SubmittedAt\":\"2026-01-01T00:00:00Z\"}}," \
    "{\"IfName\":\"eth1\",\"Logicallabel\":\"shut\",\"IsMgmt\":true,\"IsL3Port\":true,\"Dhcp\":4}" \
    "," \
    "{\"IfName\":\"wlan0\",\"Logicallabel\":\"air\",\"IsL3Port\":true,\"Dhcp\":4," \
    "\"AllowLocalModifications\":true,\"WirelessCfg\":{\"WType\":2}}]}"
#define LOCAL \
    "{\"Version\":1,\"Key\":\"lps\",\"Ports\":[" \
    "{\"Logicallabel\":\"shut\",\"IfName\":\"eth1\",\"Dhcp\":1,\"AddrSubnet\":\"10.2.0.2/24\"}," \
    "{\"Logicallabel\":\"up\",\"IfName\":\"eth0\",\"IsMgmt\":false,\"Cost\":9,\"Dhcp\":1," \
    "\"AddrSubnet\":\"10.1.0.2/24\",\"Gateway\":\"10.1.0.1\",\"Type\":5,\"L2Type\":1," \
    "\"AllowLocalModifications\":true," \
    "\"ConfigSource\":{\"Origin\":7,\"SubmittedAt\":\"2026-03-01T00:00:00Z\"}}," \
    "{\"Logicallabel\":\"air\",\"IfName\":\"wlan0\",\"Dhcp\":4}," \
    "{\"Logicallabel\":\"nowhere\",\"IfName\":\"eth9\",\"Dhcp\":4}]}"

static struct dpc *read_text(const char *text)
{
    ARENA_AUTO a = arena_new();
    struct dpc *d = NULL;
    assert_int_equal(dpc_read(json_parse_quick(a, str_of(text)), &(struct dpc_defaults){0}, &d), 0);
    return d;
}

TEST(of_a_port_all_that_is_locals_to_say_is_replaced_and_nothing_else)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(dpc_freep) struct dpc *base = read_text(BASE), *local = read_text(LOCAL);
    const struct json *ports = overlay_config(a, base, local);
    assert_int_equal(json_count(ports), 3);
    assert_str(json_text(a, &ports->items[0]),
               "{\"AllowLocalModifications\":true,\"ConfigSource\":{\"Origin\":7},\"Cost\":3,"
               "\"Dhcp\":1,\"IfName\":\"eth0\","
               "\"IsL3Port\":true,\"IsMgmt\":true,\"Logicallabel\":\"up\","
               "\"NetworkUUID\":\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\",\"Phylabel\":\"eth0\","
               "\"SharedLabels\":[\"all\",\"uplink\"],\"Type\":5,"
               "\"AddrSubnet\":\"10.1.0.2/24\",\"Gateway\":\"10.1.0.1\"}");
    /* As the controller says where it allows nothing, or means another kind of link. */
    const struct json *own = dpc_config(a, base);
    assert_true(json_equal(&ports->items[1], &own->items[1]));
    assert_true(json_equal(&ports->items[2], &own->items[2]));
    assert_true(json_equal(overlay_config(a, base, NULL), own));
}

TEST(why_a_port_is_not_covered_is_said)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(dpc_freep) struct dpc *base = read_text(BASE), *local = read_text(LOCAL);
    struct str error = STR_NONE;
    assert_ptr_equal(overlay_find(local, &base->ports[0], a, &error), &local->ports[1]);
    assert_null(error.p);
    assert_null(overlay_find(local, &base->ports[1], a, &error));
    assert_str(error, "local modifications not permitted for port \"shut\"");
    assert_null(overlay_find(local, &base->ports[2], a, &error));
    assert_str(error, "LPS configuration for port \"air\" rejected: wireless type mismatch "
                      "(controller=2, LPS=0)");
    error = STR_NONE;
    assert_null(overlay_find(NULL, &base->ports[1], a, &error));
    assert_null(error.p);
}

TEST(all_uplinks_are_covered_or_not)
{
    CLEANUP(dpc_freep) struct dpc *base = read_text(BASE), *local = read_text(LOCAL);
    assert_true(overlay_touches(base, local));
    assert_false(overlay_touches(base, NULL));
    assert_false(overlay_covers_uplinks(base, local));
    base->ports[1].allows_local_changes = true;
    assert_true(overlay_covers_uplinks(base, local));
    assert_false(overlay_covers_uplinks(base, NULL));
    base->ports[0].is_management = base->ports[1].is_management = false;
    assert_false(overlay_covers_uplinks(base, local));
}

TEST(the_status_shows_what_is_in_force_and_where_it_is_from)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(dpc_freep) struct dpc *local = read_text(LOCAL);
    struct dpc_list l;
    dpc_list_init(&l);
    (void) dpc_list_put(&l, read_text(BASE));
    l.current = 0;
    dpc_results_fail(&local->ports[1].results, 1000000, STR("no way out"));
    const struct status_inputs in = {.list = &l, .overlay = local};
    const struct json *ports = json_get(status_write(a, &in), STR("Ports"));
    const struct json *up = &ports->items[0], *shut = &ports->items[1];
    assert_str(json_text(a, json_get(up, STR("ConfigSource"))),
               "{\"Origin\":7,\"SubmittedAt\":\"2026-03-01T00:00:00Z\"}");
    assert_int_equal(json_get_int(up, STR("Dhcp"), 0), 1);
    assert_int_equal(json_get_int(up, STR("Cost"), 0), 3);
    assert_true(json_get_bool(up, STR("IsMgmt"), false));
    assert_str(json_get_str(up, STR("ConfiguredIP")), "10.1.0.2");
    assert_str(json_get_str(up, STR("LastError")), "no way out");
    assert_null(json_get(up, STR("LpsConfigError")));
    assert_int_equal(json_get_int(shut, STR("Dhcp"), 0), 4);
    assert_str(json_get_str(shut, STR("LpsConfigError")),
               "local modifications not permitted for port \"shut\"");
    /* What is kept is the controller's. */
    const struct json *kept = dpc_list_write(a, &l);
    assert_true(str_find_str(json_text(a, kept), STR("10.1.0.2")) < 0);
    assert_true(str_find_str(json_text(a, kept), STR("no way out")) < 0);
    dpc_list_done(&l);
}
