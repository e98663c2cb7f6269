/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "device.h"
#include "node/link.h"
#include "test.h"

/* ---- the config directory ------------------------------------------------------------------ */

TEST(a_device_makes_its_identity_once)
{
    CLEANUP(device_done) struct device d;
    struct stat st;
    device_init(&d);
    device_write(&d, "config/soft_serial", STR("soft-7\n"));
    device_start(&d, /* is_simulated= */ false);
    assert_str(d.node->server, "controller.example:443");
    assert_str(d.node->serial, "serial-1");
    assert_str(d.node->soft_serial, "soft-7");
    assert_null(d.node->onboarding.cert);
    const struct str first = device_read(&d, "config/device.cert.pem");
    assert_true(str_eq(first, d.node->identity.cert_pem));
    assert_true(pki_cert_is_authority(d.node->identity.cert));
    assert_int_equal(stat(device_path(&d, "config/device.key.pem"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    device_stop(&d);
    device_start(&d, /* is_simulated= */ false);
    assert_true(str_eq(first, d.node->identity.cert_pem));
}

TEST(a_key_without_certificate_is_a_first_start_that_was_cut_short)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_write(&d, "config/device.key.pem", STR("-----BEGIN half of a key"));
    device_start(&d, /* is_simulated= */ false);
    assert_non_null(d.node->identity.key);
}

TEST(what_is_missing_or_damaged_is_named)
{
    static const struct {
        const char *file;
        struct str content; /* absent: removed */
        int result;
    } cases[] = {
        {"server", {NULL, 0}, -ENOENT},
        {"server", {" \n", 2}, -ENOENT},
        {"root-certificate.pem", {NULL, 0}, -ENOENT},
        {"root-certificate.pem", {"nonsense", 8}, -EINVAL},
        {"device.cert.pem", {"nonsense", 8}, -EBADMSG},
        {"device.key.pem", {NULL, 0}, -ENOKEY},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(device_done) struct device d;
        char *error = NULL;
        device_init(&d);
        device_start(&d, /* is_simulated= */ true);
        device_stop(&d);
        const char *path = arena_printf(d.arena, "config/%s", cases[i].file).p;
        if (cases[i].content.p)
            device_write(&d, path, cases[i].content);
        else
            assert_int_equal(remove(device_path(&d, path)), 0);
        const struct node_options o = {.loop = d.loop,
                                       .clock = &d.clock.clock,
                                       .machine = &d.machine,
                                       .directories = {device_path(&d, "config"),
                                                       device_path(&d, "persist"),
                                                       device_path(&d, "run")},
                                       .is_simulated = true};
        const int r = node_new(&o, &d.node, &error);
        if (r != cases[i].result || !str_starts_with(str_of(error), str_of(cases[i].file)))
            fail_msg("case %zu: %d, %s", i, r, error);
        mem_free(error);
    }
}

/* ---- topics -------------------------------------------------------------------------------- */

struct ears {
    struct node_watch watch;
    unsigned heard;
    int n_calls;
    struct ears *unwatches; /* taken away in the first call */
};

static void on_change(struct node_watch *w, unsigned changes)
{
    struct ears *e = CONTAINER_OF(w, struct ears, watch);
    e->heard |= changes;
    e->n_calls++;
    if (e->unwatches)
        node_unwatch(&e->unwatches->watch);
}

static bool has_heard_all(void *arg)
{
    const struct ears *e = arg;
    return (e->heard & (NODE_ITEMS | NODE_NETWORK | NODE_ONBOARDED)) ==
           (NODE_ITEMS | NODE_NETWORK | NODE_ONBOARDED);
}

static struct publication *publish(struct device *d, const char *agent, const char *topic,
                                   bool is_persistent, const char *text)
{
    struct publication *p = NULL;
    const struct pubsub_name name = {
        .agent = str_of(agent), .topic = str_of(topic), .is_persistent = is_persistent};
    assert_int_equal(publication_new(d->node->pubsub, &name, &p), 0);
    struct json *v = json_parse_quick(d->arena, str_of(text));
    assert_int_equal(publication_publish(p, STR("global"), v), 0);
    return p;
}

#define DEVICE_UUID "01020304-0506-4708-890a-0b0c0d0e0f10"

static void check_topics(bool is_simulated)
{
    CLEANUP(device_done) struct device d;
    struct ears early = {.watch = {.on_change = on_change}},
                late = {.watch = {.on_change = on_change}};
    char uuid[UUID_TEXT_BYTES];
    device_init(&d);
    device_start(&d, is_simulated);
    node_watch(d.node, &early.watch);
    device_run_turns(&d, 3);
    assert_int_equal(early.n_calls, 0);
    struct publication *items =
        publish(&d, "zedagent", "ConfigItemValueMap", false,
                "{\"GlobalSettings\":{\"timer.send.timeout\":{\"ItemType\":1,\"IntValue\":7}}}");
    struct publication *network =
        publish(&d, "nim", "DeviceNetworkStatus", false,
                "{\"State\":3,\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"IsMgmt\":true,"
                "\"AddrInfoList\":[{\"Addr\":\"10.0.0.2\"}]}]}");
    struct publication *onboarding =
        publish(&d, "zedclient", "OnboardingStatus", true,
                "{\"DeviceUUID\":\"" DEVICE_UUID "\",\"HardwareModel\":\"a.b\"}");
    device_run_until(&d, has_heard_all, &early);
    assert_true(d.node->has_items);
    assert_int_equal(items_int(d.node->items, "timer.send.timeout"), 7);
    assert_int_equal(d.node->network_state, NODE_NETWORK_SUCCESS);
    assert_non_null(uplink_ports_find(d.node->ports, STR("eth0")));
    uuid_text(&d.node->device, uuid);
    assert_string_equal(uuid, DEVICE_UUID);
    assert_str(d.node->hardware_model, "a.b");
    /* Who comes late is told what is there, nobody else is. */
    const int n_before = early.n_calls;
    node_watch(d.node, &late.watch);
    device_run_turns(&d, 3);
    assert_true(has_heard_all(&late));
    assert_int_equal(late.n_calls, 1);
    assert_int_equal(early.n_calls, n_before);
    node_unwatch(&early.watch);
    node_unwatch(&late.watch);
    publication_free(items);
    publication_free(network);
    publication_free(onboarding);
}

TEST(topics_of_this_process_alone_reach_who_watches)
{
    check_topics(/* is_simulated= */ true);
}

TEST(topics_of_a_real_device_reach_who_watches)
{
    check_topics(/* is_simulated= */ false);
}

TEST(a_watch_may_take_others_away)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    struct ears second = {.watch = {.on_change = on_change}};
    struct ears first = {.watch = {.on_change = on_change}, .unwatches = &second};
    node_watch(d.node, &first.watch);
    node_watch(d.node, &second.watch);
    device_run_turns(&d, 2);
    device_write(&d, "config/server", STR("elsewhere:8443"));
    assert_int_equal(node_reread_server(d.node), 0);
    assert_int_equal(node_reread_server(d.node), 0);
    device_run_turns(&d, 3);
    assert_int_equal(first.n_calls, 1);
    assert_int_equal(first.heard, NODE_SERVER);
    assert_int_equal(second.n_calls, 0);
    assert_str(d.node->server, "elsewhere:8443");
    node_unwatch(&first.watch);
    node_unwatch(&second.watch);
    struct node_watch never = {0};
    node_unwatch(&never);
}

TEST(the_led_is_a_global_topic)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ false);
    node_set_led(d.node, NODE_LED_BAD_ENVELOPE);
    assert_int_equal(node_led(d.node), NODE_LED_BAD_ENVELOPE);
    const struct json *v =
        json_parse_quick(d.arena, device_read(&d, "run/global/LedBlinkCounter/ledconfig.json"));
    assert_int_equal(json_get_int(v, STR("BlinkCounter"), 0), 15);
}

TEST(a_link_follows_the_node_and_publishes_what_it_counts)
{
    CLEANUP(device_done) struct device d;
    struct node_link *l = NULL;
    device_init(&d);
    device_start(&d, /* is_simulated= */ false);
    struct publication *onboarding =
        publish(&d, "zedclient", "OnboardingStatus", true, "{\"DeviceUUID\":\"" DEVICE_UUID "\"}");
    struct ears ears = {.watch = {.on_change = on_change}, .heard = NODE_ITEMS | NODE_NETWORK};
    node_watch(d.node, &ears.watch);
    device_run_until(&d, has_heard_all, &ears);
    assert_int_equal(
        node_link_new(d.node, &(struct node_link_options){.agent = STR("zedagent")}, &l), 0);
    assert_str(node_link_url(d.arena, l, STR("config")),
               "https://controller.example:443/api/v2/edgedevice/id/" DEVICE_UUID "/config");
    device_write(&d, "config/server", STR("elsewhere:8443"));
    assert_int_equal(node_reread_server(d.node), 0);
    device_run_turns(&d, 3);
    assert_str(node_link_url(d.arena, l, STR("info")),
               "https://elsewhere:8443/api/v2/edgedevice/id/" DEVICE_UUID "/info");
    node_link_publish(l);
    assert_null(device_read(&d, "run/zedagent/MetricsMap/global.json").p);
    uplink_metrics_failure(l->metrics, STR("eth0"), 1000000, STR("https://elsewhere/x"));
    node_link_publish(l);
    const struct json *v =
        json_parse_quick(d.arena, device_read(&d, "run/zedagent/MetricsMap/global.json"));
    assert_int_equal(json_get_int(json_get(v, STR("eth0")), STR("FailureCount"), 0), 1);
    node_unwatch(&ears.watch);
    publication_free(onboarding);
    node_link_free(l);
}

/* ---- time ---------------------------------------------------------------------------------- */

TEST(times_are_written_as_go_does)
{
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "0001-01-01T00:00:00Z"},
        {1000000, "1970-01-01T00:00:01Z"},
        {1700000000123456, "2023-11-14T22:13:20.123456Z"},
        {1700000000100000, "2023-11-14T22:13:20.1Z"},
        {1700000000000001, "2023-11-14T22:13:20.000001Z"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct json *v = node_json_time(a, cases[i].us);
        assert_str(json_str(v), cases[i].text);
        assert_int_equal(node_json_time_us(v), cases[i].us);
    }
    assert_int_equal(node_json_time_us(NULL), 0);
    const struct json bad = json_string(STR("yesterday"));
    assert_int_equal(node_json_time_us(&bad), 0);
}

TEST(timers_are_spread)
{
    bool is_low = false, is_high = false;
    for (int i = 0; i < 2000; i++) {
        const int64_t ms = node_jitter_ms(NULL, 60);
        assert_true(ms >= 18000 && ms <= 60000);
        is_low = is_low || ms < 25000;
        is_high = is_high || ms > 53000;
        const int64_t spread = node_spread_ms(NULL, 3000, 20);
        assert_true(spread >= 2400 && spread <= 3600);
    }
    assert_true(is_low && is_high);
    assert_int_equal(node_jitter_ms(NULL, 0), 0);
}
