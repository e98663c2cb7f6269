/* SPDX-License-Identifier: Apache-2.0 */
/* The service on a machine and a wire of the test: what it does when. */
#include "nim/nim.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "controllerconn/uplink.h"
#include "device.h"
#include "test.h"

#define SPEED 100000 /* timers fire at once: the clock of the test says whether it is time */
#define SECOND ((int64_t) 1000 * 1000)
#define MAX_INTERFACES 4

/* ---- the wire and the machine -------------------------------------------------------------- */

struct world {
    struct device device;
    struct uplink_wire wire;
    struct machine machine;
    struct nim *nim;
    struct publication *topics[3];
    struct machine_interface interfaces[MAX_INTERFACES];
    struct machine_address addresses[MAX_INTERFACES];
    size_t n_interfaces;
    void (*on_network)(void *arg);
    void *on_network_arg;
    bool is_deaf[MAX_INTERFACES]; /* nobody answers there */
    struct buf seen;              /* "<port's address>[ <host>] " of every request */
    struct buf applied;
    int link_result; /* of making a VLAN or bond */
    size_t n_requests;
};

struct uplink_transfer {
    struct loop_deferred finish;
    struct world *world;
    bool is_deaf;
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

static void on_finish(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, finish);
    const struct uplink_reply r = {.fault = t->is_deaf ? UPLINK_FAULT_TIMEOUT : UPLINK_FAULT_NONE,
                                   .error = STR("nobody there"),
                                   .http_status = t->is_deaf ? 0 : 200,
                                   .body = STR(""),
                                   .content_type = STR("")};
    t->on_done(t->arg, &r);
    mem_free(t);
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct world *w = CONTAINER_OF(wire, struct world, wire);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    *t = (struct uplink_transfer){
        .finish.fn = on_finish, .world = w, .on_done = on_done, .arg = arg};
    buf_printf(&w->seen, "%.*s%s ", STR_ARG(x->source),
               str_find_str(x->url, STR("loc.example")) >= 0 ? "@loc" : "");
    w->n_requests++;
    for (size_t i = 0; i < w->n_interfaces; i++)
        t->is_deaf = t->is_deaf || (w->is_deaf[i] && str_eq(x->source, w->addresses[i].text));
    loop_defer(w->device.loop, &t->finish);
    return t;
}

static void cancel(struct uplink_transfer *t)
{
    loop_undefer(t->world->device.loop, &t->finish);
    mem_free(t);
}

static const struct uplink_wire_ops wire_ops = {.start = start, .cancel = cancel};

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("serial-1")};
    return 0;
}

static int interfaces(struct machine *m, struct arena *a, struct machine_interface **ret,
                      size_t *ret_n)
{
    struct world *w = CONTAINER_OF(m, struct world, machine);
    (void) a;
    *ret = w->interfaces;
    *ret_n = w->n_interfaces;
    return 0;
}

static int apply_port(struct machine *m, const struct machine_port *p)
{
    struct world *w = CONTAINER_OF(m, struct world, machine);
    buf_printf(&w->applied, "%.*s:%d ", STR_ARG(p->interface), p->dhcp);
    return -EPERM;
}

static int apply_links(struct machine *m, const struct machine_link *links, size_t n,
                       int *ret_results)
{
    struct world *w = CONTAINER_OF(m, struct world, machine);
    for (size_t i = 0; i < n; i++) {
        const struct machine_link *l = &links[i];
        buf_printf(&w->applied, "%.*s=%s", STR_ARG(l->name),
                   l->kind == MACHINE_VLAN ? "vlan" : "bond");
        if (l->kind == MACHINE_VLAN)
            buf_printf(&w->applied, "(%.*s,%u) ", STR_ARG(l->parent), l->vlan_id);
        else
            buf_printf(&w->applied, "(%d,%u,%zu) ", (int) l->mode, l->mii_ms, l->n_members);
        ret_results[i] = w->link_result;
    }
    return 0;
}

static void watch_network(struct machine *m, void (*on_network)(void *arg), void *arg)
{
    struct world *w = CONTAINER_OF(m, struct world, machine);
    w->on_network = on_network;
    w->on_network_arg = arg;
}

static const struct machine_functions machine_functions = {.name = "sim",
                                                           .identity = identity,
                                                           .interfaces = interfaces,
                                                           .apply_port = apply_port,
                                                           .apply_links = apply_links,
                                                           .watch_network = watch_network};

/* ---- the world ----------------------------------------------------------------------------- */

static const struct str resolver = {"10.0.0.53", 9};

static void add_interface(struct world *w, const char *name, const char *address)
{
    const size_t i = w->n_interfaces++;
    w->addresses[i] = (struct machine_address){.text = str_of(address), .prefix_bits = 24};
    w->interfaces[i] = (struct machine_interface){.name = str_of(name),
                                                  .is_up = true,
                                                  .is_physical = true,
                                                  .is_ethernet = true,
                                                  .mtu = 1500,
                                                  .addresses = &w->addresses[i],
                                                  .n_addresses = 1,
                                                  .dns_servers = &resolver,
                                                  .n_dns_servers = 1};
}

static void init(struct world *w)
{
    *w = (struct world){.wire = {&wire_ops}, .machine = {&machine_functions}};
    device_init(&w->device);
    w->device.wire = &w->wire;
    loop_set_speed(w->device.loop, SPEED);
}

static void begin(struct world *w, bool starts_with_machine, bool is_simulated)
{
    static const struct str names[] = {
        {"DevicePortConfig", 16}, {"ConfigItemValueMap", 18}, {"LOCConfig", 9}};
    const struct nim_options o = {.starts_with_machine = starts_with_machine, .geo_url = ""};
    char *error = NULL;
    struct device *d = &w->device;
    const struct node_options n = {
        .loop = d->loop,
        .clock = &d->clock.clock,
        .machine = &w->machine,
        .wire = &w->wire,
        .directories = {device_path(d, "config"), device_path(d, "persist"), device_path(d, "run")},
        .is_simulated = is_simulated};
    if (node_new(&n, &d->node, &error) < 0)
        fail_msg("%s", error);
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        const struct pubsub_name name = {.agent = STR("zedagent"), .topic = names[i]};
        assert_int_equal(publication_new(d->node->pubsub, &name, &w->topics[i]), 0);
    }
    assert_int_equal(nim_new(d->node, &o, &w->nim), 0);
}

static void end(struct world *w)
{
    nim_free(TAKE(w->nim));
    for (size_t i = 0; i < N_ELEMENTS(w->topics); i++)
        publication_free(TAKE(w->topics[i]));
    device_stop(&w->device);
}

static void done(struct world *w)
{
    end(w);
    device_done(&w->device);
    buf_done(&w->seen);
    buf_done(&w->applied);
}

static void settle(struct world *w)
{
    device_run_turns(&w->device, 30);
}

/* In steps, as no timer is longer. */
static void pass(struct world *w, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i += 20) {
        w->device.clock.now_us += MIN(20, seconds - i) * SECOND;
        device_run_turns(&w->device, 4);
    }
    settle(w);
}

static void network(struct world *w)
{
    w->on_network(w->on_network_arg);
    settle(w);
}

static void publish(struct world *w, size_t topic, const char *text)
{
    const struct json *v = json_parse_quick(w->device.arena, str_of(text));
    assert_non_null(v);
    assert_int_equal(publication_publish(w->topics[topic], STR("zedagent"), v), 0);
    settle(w);
}

static void assert_seen(struct world *w, const char *expected)
{
    assert_string_equal(w->seen.p ? w->seen.p : "", expected);
    buf_reset(&w->seen);
}

#define ONE(key, port, more) \
    "{\"Version\":1,\"Key\":\"" key "\",\"TimePriority\":\"2026-01-01T00:00:00Z\",\"Ports\":[{" \
    "\"IfName\":\"" port "\",\"IsMgmt\":true,\"Dhcp\":4" more "}]}"
#define TWO \
    "{\"Version\":1,\"Key\":\"zedagent\",\"TimePriority\":\"2026-02-01T00:00:00Z\",\"Ports\":[{" \
    "\"IfName\":\"wwan0\",\"IsMgmt\":true,\"Cost\":10,\"Dhcp\":4},{\"IfName\":\"eth0\"," \
    "\"IsMgmt\":" \
    "true,\"Dhcp\":4}]}"

/* How often every service is told. */
struct news {
    struct node_watch watch;
    size_t n;
};

static void on_news(struct node_watch *watch, unsigned changes)
{
    CONTAINER_OF(watch, struct news, watch)->n += (changes & NODE_NETWORK) != 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(a_simulated_device_pings_once_and_then_every_five_minutes)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ true, /* is_simulated= */ true);
    settle(&w);
    assert_int_equal(w.n_requests, 1);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    assert_int_equal(node_led(w.device.node), NODE_LED_CONNECTED);
    assert_false(w.device.node->ports->items[0].binds_device);
    /* As it is: nothing is applied. */
    assert_int_equal(w.applied.n, 0);
    struct news news = {.watch.on_change = on_news};
    node_watch(w.device.node, &news.watch);
    pass(&w, 3600);
    assert_in_range(w.n_requests, 12, 13);
    /* That it goes on to work is no news to anybody. */
    assert_int_equal(news.n, 1);
    /* Nor that it goes on not to. */
    w.is_deaf[0] = true;
    pass(&w, 700);
    const size_t before = news.n;
    pass(&w, 7200);
    assert_int_equal(news.n, before);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_FAIL_WITH_IP_AND_DNS);
    w.is_deaf[0] = false;
    pass(&w, 320);
    assert_true(news.n > before);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    node_unwatch(&news.watch);
    done(&w);
}

TEST(the_configuration_of_the_controller_comes_first_and_is_kept)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    add_interface(&w, "wwan0", "10.0.1.1");
    begin(&w, /* starts_with_machine= */ true, /* is_simulated= */ true);
    settle(&w);
    buf_reset(&w.seen);
    publish(&w, 0, TWO);
    assert_seen(&w, "10.0.0.1 ");
    assert_string_equal(w.applied.p, "wwan0:4 eth0:4 ");
    assert_int_equal(w.device.node->ports->n_items, 2);
    end(&w);
    /* Another life, without the controller: it knows. */
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    settle(&w);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    assert_int_equal(w.device.node->ports->n_items, 2);
    done(&w);
}

TEST(a_link_that_goes_down_is_left_at_once_and_comes_back)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    add_interface(&w, "wwan0", "10.0.1.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    publish(&w, 0, TWO);
    assert_seen(&w, "10.0.0.1 ");
    w.interfaces[0].is_up = false;
    network(&w);
    assert_seen(&w, "10.0.1.1 ");
    const struct uplink_port *eth0 = uplink_ports_find(w.device.node->ports, STR("eth0"));
    assert_true(uplink_port_has_error(eth0) && eth0->n_addresses == 0);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    /* What changes nothing that matters starts nothing. */
    w.interfaces[0].counters.rx_bytes += 1000;
    network(&w);
    assert_seen(&w, "");
    w.interfaces[0].is_up = true;
    network(&w);
    assert_seen(&w, "10.0.0.1 ");
    assert_false(uplink_port_has_error(uplink_ports_find(w.device.node->ports, STR("eth0"))));
    done(&w);
}

TEST(a_port_that_nobody_answers_on_is_found_by_the_next_test)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    add_interface(&w, "wwan0", "10.0.1.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    publish(&w, 0, TWO);
    buf_reset(&w.seen);
    w.is_deaf[0] = true;
    pass(&w, 310);
    assert_seen(&w, "10.0.0.1 10.0.1.1 ");
    size_t order[UPLINK_MAX_PORTS];
    assert_int_equal(uplink_ports_order(w.device.node->ports, 0, order), 1);
    w.is_deaf[0] = false;
    pass(&w, 300);
    assert_seen(&w, "10.0.0.1 ");
    assert_int_equal(uplink_ports_order(w.device.node->ports, 0, order), 2);
    done(&w);
}

TEST(without_any_configuration_the_last_resort_comes_after_a_minute)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    add_interface(&w, "wlan0", "10.0.1.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    pass(&w, 50);
    assert_seen(&w, "");
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_NONE);
    pass(&w, 20);
    assert_seen(&w, "10.0.0.1 ");
    assert_string_equal(w.applied.p, "eth0:4 ");
    /* A further port is taken up. */
    add_interface(&w, "eth1", "10.0.2.1");
    network(&w);
    assert_int_equal(w.device.node->ports->n_items, 2);
    done(&w);
}

TEST(files_of_the_installer_serve_until_a_controller_was_heard)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    assert_int_equal(mkdir(device_path(&w.device, "config/DevicePortConfig"), 0700), 0);
    device_write(&w.device, "config/DevicePortConfig/override.json", STR(ONE("", "eth0", "")));
    device_write(&w.device, "config/DevicePortConfig/broken.json", STR("{\"Ports\":"));
    device_write(&w.device, "config/DevicePortConfig/notes.txt", STR("mind the dog"));
    for (int is_simulated = 0; is_simulated < 2; is_simulated++) {
        begin(&w, /* starts_with_machine= */ false, is_simulated);
        pass(&w, 10);
        assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
        end(&w);
        buf_reset(&w.seen);
        const char *list = device_path(&w.device, "persist/status/nim/DevicePortConfigList");
        (void) remove(arena_printf(w.device.arena, "%s/global.json", list).p);
        (void) remove(arena_printf(w.device.arena, "%s/global.json.bak", list).p);
    }
    device_write(&w.device, "config/bootstrap-config.pb", STR("signed"));
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ false);
    pass(&w, 10);
    assert_seen(&w, "");
    done(&w);
}

TEST(a_machine_without_network_reaches_a_controller_on_itself)
{
    struct world w;
    init(&w);
    add_interface(&w, "lo", "127.0.0.1");
    w.interfaces[0].is_loopback = true;
    w.interfaces[0].is_physical = w.interfaces[0].is_ethernet = false;
    device_write(&w.device, "config/server", STR("127.0.0.1:4433\n"));
    begin(&w, /* starts_with_machine= */ true, /* is_simulated= */ true);
    settle(&w);
    assert_seen(&w, "127.0.0.1 ");
    /* It is not taken for a way to another. */
    end(&w);
    device_write(&w.device, "config/server", STR("controller.example\n"));
    (void) remove(device_path(&w.device, "persist/status/nim/DevicePortConfigList/global.json"));
    (void) remove(
        device_path(&w.device, "persist/status/nim/DevicePortConfigList/global.json.bak"));
    begin(&w, /* starts_with_machine= */ true, /* is_simulated= */ true);
    settle(&w);
    assert_seen(&w, "");
    done(&w);
}

TEST(a_local_operator_console_is_asked_first_behind_an_air_gap)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    publish(&w, 2, "{\"LocURL\":\"https://loc.example:4433\"}");
    const struct json *items = json_parse_quick(
        w.device.arena, STR("{\"GlobalSettings\":{\"airgap.mode\":{\"Key\":\"airgap.mode\","
                            "\"ItemType\":4,\"TriStateValue\":2}},\"AgentSettings\":{}}"));
    assert_int_equal(publication_publish(w.topics[1], STR("global"), items), 0);
    settle(&w);
    publish(&w, 0, ONE("zedagent", "eth0", ""));
    assert_seen(&w, "10.0.0.1@loc ");
    w.is_deaf[0] = true;
    pass(&w, 310);
    assert_seen(&w, "10.0.0.1@loc 10.0.0.1 ");
    done(&w);
}

TEST(certificates_of_a_proxy_are_anchors_while_a_port_names_them)
{
    struct world w;
    struct arena *a;
    init(&w);
    a = w.device.arena;
    add_interface(&w, "eth0", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    publish(&w, 0, ONE("zedagent", "eth0", ""));
    CLEANUP(uplink_tls_unrefp)
    struct uplink_tls *plain = uplink_tls_ref(w.device.node->identity.tls);
    const struct str pem =
        base64_encode(a, pki_cert_pem(a, w.device.authority.cert), BASE64_STANDARD);
    publish(&w, 0,
            arena_printf(a, ONE("zedagent", "eth0", ",\"pubsub-large-ProxyCertPEM\":[\"%.*s\"]"),
                         STR_ARG(pem))
                .p);
    CLEANUP(uplink_tls_unrefp)
    struct uplink_tls *more = uplink_tls_ref(w.device.node->identity.tls);
    assert_ptr_not_equal(plain, more);
    /* What is none adds nothing, and the others are gone. */
    publish(&w, 0, ONE("zedagent", "eth0", ",\"pubsub-large-ProxyCertPEM\":[\"bm9uZQ==\"]"));
    assert_ptr_not_equal(w.device.node->identity.tls, more);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    done(&w);
}

TEST(a_port_passed_through_to_an_application_fails_at_once)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ true, /* is_simulated= */ false);
    struct publication *adapters = NULL;
    const struct pubsub_name name = {.agent = STR("domainmgr"), .topic = STR("AssignableAdapters")};
    assert_int_equal(publication_new(w.device.node->pubsub, &name, &adapters), 0);
    const struct json *v = json_parse_quick(
        w.device.arena,
        STR("{\"Initialized\":true,\"IoBundleList\":[{\"Ifname\":\"eth1\",\"IsPCIBack\":true,"
            "\"UsedByUUID\":\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"}]}"));
    assert_int_equal(publication_publish(adapters, STR("global"), v), 0);
    settle(&w);
    /* The subscription looks for its publisher again after a while. */
    pass(&w, 30);
    buf_reset(&w.seen);
    publish(&w, 0, ONE("zedagent", "eth1", ""));
    settle(&w);
    const struct str list =
        device_read(&w.device, "persist/status/nim/DevicePortConfigList/global.json");
    assert_true(str_find_str(list, STR("in PCIBack is used by 6ba7b810")) >= 0);
    assert_seen(&w, "10.0.0.1 ");
    publication_free(adapters);
    done(&w);
}

#define LINKS(extra) \
    "{\"Version\":1,\"Key\":\"zedagent\",\"TimePriority\":\"2026-02-01T00:00:00Z\",\"Ports\":[" \
    "{\"IfName\":\"lan5\",\"IsMgmt\":true,\"IsL3Port\":true,\"Dhcp\":4,\"L2Type\":1," \
    "\"VLAN\":{\"ParentPort\":\"pair\",\"ID\":5}}," \
    "{\"IfName\":\"bo1\",\"Logicallabel\":\"pair\",\"L2Type\":2,\"Bond\":{\"AggregatedPorts\":" \
    "[\"a\",\"b\"],\"Mode\":2,\"MIIMonitor\":{\"Enabled\":true,\"Interval\":100}}}," \
    "{\"IfName\":\"eth0\",\"Logicallabel\":\"a\"},{\"IfName\":\"eth1\",\"Logicallabel\":" \
    "\"b\"}" extra "]}"

TEST(vlans_and_bonds_are_made_before_their_ports_are_used)
{
    struct world w;
    init(&w);
    add_interface(&w, "lan5", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    publish(&w, 0, LINKS(""));
    /* Ports name each other by label, the machine by interface. */
    assert_string_equal(w.applied.p, "lan5=vlan(bo1,5) bo1=bond(1,100,2) lan5:4 ");
    assert_seen(&w, "10.0.0.1 ");
    done(&w);
}

TEST(a_link_that_cannot_be_made_says_why)
{
    struct world w;
    init(&w);
    w.link_result = -EOPNOTSUPP;
    add_interface(&w, "eth9", "10.0.0.9");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ true);
    /* A port that nobody has, and one whose link the kernel does not know. */
    publish(&w, 0,
            LINKS(",{\"IfName\":\"odd\",\"L2Type\":1,\"VLAN\":{\"ParentPort\":\"none\",\"ID\":7}},"
                  "{\"IfName\":\"eth9\",\"IsMgmt\":true,\"Dhcp\":4}"));
    assert_null(strstr(w.applied.p, "odd="));
    const struct uplink_port *p = uplink_ports_find(w.device.node->ports, STR("lan5"));
    assert_non_null(p);
    assert_true(uplink_port_has_error(p));
    BUF_AUTO list = {0};
    assert_int_equal(node_file_read(w.device.node, NODE_PERSIST,
                                    STR("status/nim/DevicePortConfigList/global.json"), &list),
                     0);
    assert_non_null(strstr(list.p, "interface lan5 cannot be made: Operation not supported"));
    done(&w);
}

#define LOCALLY_OPEN(allowed) \
    "{\"Version\":1,\"Key\":\"zedagent\",\"TimePriority\":\"2026-02-01T00:00:00Z\",\"Ports\":[{" \
    "\"IfName\":\"eth0\",\"Logicallabel\":\"up\",\"IsMgmt\":true,\"Dhcp\":4" allowed "}]}"
#define OPEN LOCALLY_OPEN(",\"AllowLocalModifications\":true")
#define LOCAL(address) \
    "{\"Version\":1,\"Key\":\"lps\",\"Ports\":[{\"IfName\":\"eth0\",\"Logicallabel\":\"up\"," \
    "\"Dhcp\":1,\"AddrSubnet\":\"" address "/24\"," \
    "\"ConfigSource\":{\"Origin\":7,\"SubmittedAt\":\"2026-03-01T00:00:00Z\"}}]}"

static void publish_local(struct world *w, const char *text)
{
    const struct json *v = json_parse_quick(w->device.arena, str_of(text));
    assert_non_null(v);
    assert_int_equal(publication_publish(w->topics[0], STR("lps"), v), 0);
    settle(w);
}

static const struct json *status_of_port(struct world *w)
{
    BUF_AUTO text = {0};
    assert_int_equal(
        node_file_read(w->device.node, NODE_RUN, STR("nim/DeviceNetworkStatus/global.json"), &text),
        0);
    struct arena *a = w->device.arena;
    const struct json *status = json_parse_quick(a, arena_str(a, buf_str(&text)));
    return &json_get(status, STR("Ports"))->items[0];
}

static void assert_applied(struct world *w, const char *expected)
{
    assert_string_equal(w->applied.p ? w->applied.p : "", expected);
    buf_reset(&w->applied);
}

TEST(what_a_local_server_wants_is_laid_over_and_taken_off)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ false);
    publish(&w, 0, OPEN);
    assert_applied(&w, "eth0:4 ");
    publish_local(&w, LOCAL("10.0.0.1"));
    assert_applied(&w, "eth0:1 ");
    assert_int_equal(
        json_get_int(json_get(status_of_port(&w), STR("ConfigSource")), STR("Origin"), 0), 7);
    /* Said once more it is nothing new. */
    publish_local(&w, LOCAL("10.0.0.1"));
    assert_applied(&w, "");
    /* Permission is revoked, and given again. */
    publish(&w, 0, LOCALLY_OPEN(""));
    assert_applied(&w, "eth0:4 ");
    assert_str(json_get_str(status_of_port(&w), STR("LpsConfigError")),
               "local modifications not permitted for port \"up\"");
    publish(&w, 0, OPEN);
    assert_applied(&w, "eth0:1 ");
    /* Of nothing, as EVE's zedagent takes it back. */
    publish_local(&w, "{\"Version\":1,\"Key\":\"lps\"}");
    assert_applied(&w, "eth0:4 ");
    assert_int_equal(
        json_get_int(json_get(status_of_port(&w), STR("ConfigSource")), STR("Origin"), 0), 1);
    publish_local(&w, LOCAL("10.0.0.1"));
    assert_applied(&w, "eth0:1 ");
    assert_int_equal(publication_unpublish(w.topics[0], STR("lps")), 0);
    settle(&w);
    assert_applied(&w, "eth0:4 ");
    done(&w);
}

TEST(what_makes_no_sense_is_not_laid_over)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ false);
    publish(&w, 0, OPEN);
    publish_local(&w, LOCAL("10.0.0.1"));
    assert_applied(&w, "eth0:4 eth0:1 ");
    publish_local(&w, "{\"Key\":\"lps\",\"Ports\":7}");
    publish_local(&w, "{\"Key\":\"lps\",\"Ports\":[7]}");
    assert_applied(&w, "");
    done(&w);
}

TEST(a_failure_by_local_will_is_no_reason_to_fall_back_and_a_better_one_is_tried_at_once)
{
    struct world w;
    init(&w);
    add_interface(&w, "eth0", "10.0.0.1");
    add_interface(&w, "eth1", "10.0.1.1");
    begin(&w, /* starts_with_machine= */ false, /* is_simulated= */ false);
    publish(&w, 0, ONE("bootstrap", "eth1", ""));
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    publish(&w, 0, OPEN);
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    buf_reset(&w.applied);
    w.is_deaf[0] = true;
    publish_local(&w, LOCAL("10.0.0.1"));
    pass(&w, 400);
    w.interfaces[0].is_up = false;
    network(&w);
    w.interfaces[0].is_up = true;
    network(&w);
    pass(&w, 1000);
    assert_null(strstr(w.applied.p, "eth1"));
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_FAIL_WITH_IP_AND_DNS);
    w.is_deaf[0] = false;
    publish_local(&w, LOCAL("10.0.0.7"));
    assert_int_equal(w.device.node->network_state, NODE_NETWORK_SUCCESS);
    done(&w);
}
