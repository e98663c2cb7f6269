/* SPDX-License-Identifier: Apache-2.0 */
/* A device with a local profile server on a wire that answers as the test says, time running a
 * thousand times as fast. */
#include "lps/lps.h"

#include "base/alloc.h"
#include "device.h"
#include "lps/messages.h"
#include "protobuf/protojson.h"
#include "report/report.h"
#include "test.h"
#include "zedagent/zedagent_internal.h"

#define SPEED 1000
#define MINE "0e000000-0000-4000-8000-000000000001"
#define APP "0a000000-0000-4000-8000-000000000001"
#define TOKEN "secret"

enum endpoint { PROFILE, RADIO, APPS, DEVICE, LOCATION, NETWORK, BOOT, ENDPOINTS };
static const char *const paths[] = {"local_profile", "radio",   "appinfo",    "devinfo",
                                    "location",      "network", "appbootinfo"};

struct answer {
    int http; /* 0: nobody answers */
    struct str body;
    const char *content_type; /* NULL: the usual one */
};

struct site {
    struct uplink_wire wire;
    struct device device;
    struct clock_scaled clock;
    struct machine *machine;
    struct zedagent *zedagent;
    struct report *report;
    struct lps *lps;
    struct publication *network, *configs, *app_networks, *apps, *onboarding, *location;
    struct answer answers[ENDPOINTS];
    struct str said[ENDPOINTS]; /* last */
    size_t n_asked[ENDPOINTS], wanted;
    enum endpoint watched;
    struct str host; /* of the last request */
    size_t max_reply_bytes;
    struct uplink_transfer *stream; /* of signals, that is open */
    struct str stream_url;
    size_t n_streams;
    int stream_http;
    const char *signal_when_asked; /* once, while the device is being asked about */
};

/* ---- the wire ------------------------------------------------------------------------------- */

struct uplink_transfer {
    struct loop_deferred finish;
    struct site *site;
    struct answer answer;
    void (*on_data)(void *arg, struct str piece);
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

static void on_finish(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, finish);
    const struct answer *a = &t->answer;
    if (t->on_data && a->http == 200) {
        t->site->stream = t;
        t->on_data(t->arg, STR(""));
        return;
    }
    const struct uplink_reply r = {
        .fault = a->http ? UPLINK_FAULT_NONE : UPLINK_FAULT_REFUSED,
        .error = STR("refused"),
        .http_status = a->http,
        .body = a->body.p ? a->body : STR(""),
        .content_type = str_of(a->content_type ? a->content_type : "application/x-proto-binary")};
    t->on_done(t->arg, &r);
    mem_free(t);
}

static void signal_change(struct site *s, const char *endpoint)
{
    const struct str line =
        arena_printf(s->device.arena, "{\"pendingChanges\":[\"CONFIG_ENDPOINT_%s\"]}\n", endpoint);
    s->stream->on_data(s->stream->arg, line);
}

static const struct answer *answer_of(struct site *s, const struct uplink_exchange *x)
{
    static const struct answer controller = {.http = 201};
    for (size_t i = 0; i < ENDPOINTS; i++) {
        const struct str path = arena_printf(s->device.arena, "/api/v1/%s", paths[i]);
        if (!str_ends_with(x->url, path))
            continue;
        s->host = arena_str(s->device.arena, str_sub(x->url, 0, x->url.n - path.n));
        s->said[i] = x->is_post ? arena_str(s->device.arena, x->body) : STR_NONE;
        s->max_reply_bytes = x->max_reply_bytes;
        assert_int_equal(x->is_post, i != PROFILE);
        assert_str(x->source, "10.1.0.1");
        s->n_asked[i]++;
        /* Whether the answer under way knows of it cannot be told. */
        if (i == DEVICE && s->signal_when_asked)
            signal_change(s, TAKE(s->signal_when_asked));
        return &s->answers[i];
    }
    return &controller;
}

static struct answer signals_of(struct site *s, const struct uplink_exchange *x)
{
    assert_true(str_ends_with(x->url, STR("/api/v1/signal")));
    s->stream_url = arena_str(s->device.arena, x->url);
    s->n_streams++;
    return (struct answer){.http = s->stream_http};
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct site *s = CONTAINER_OF(wire, struct site, wire);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    *t = (struct uplink_transfer){.finish.fn = on_finish,
                                  .site = s,
                                  .answer = x->on_data ? signals_of(s, x) : *answer_of(s, x),
                                  .on_data = x->on_data,
                                  .on_done = on_done,
                                  .arg = arg};
    loop_defer(s->device.loop, &t->finish);
    return t;
}

static void cancel(struct uplink_transfer *t)
{
    loop_undefer(t->site->device.loop, &t->finish);
    if (t->site->stream == t)
        t->site->stream = NULL;
    mem_free(t);
}

static const struct uplink_wire_ops ops = {.start = start, .cancel = cancel};

/* ---- the site ------------------------------------------------------------------------------- */

static struct publication *publish_as(struct site *s, const char *agent, const char *topic,
                                      bool is_persistent)
{
    struct publication *p;
    const struct pubsub_name name = {
        .agent = str_of(agent), .topic = str_of(topic), .is_persistent = is_persistent};
    assert_int_equal(publication_new(s->device.node->pubsub, &name, &p), 0);
    return p;
}

static void say(struct site *s, struct publication *p, const char *key, const char *text)
{
    struct json *value = json_parse_quick(s->device.arena, str_of(text));
    assert_non_null(value);
    assert_int_equal(publication_publish(p, str_of(key), value), 0);
}

static void configure(struct site *s, const char *text)
{
    struct str error = STR_NONE;
    const void *m = protojson_read(s->device.arena, &eve__config__edge_dev_config__descriptor,
                                   json_parse_quick(s->device.arena, str_of(text)),
                                   PROTOJSON_REFUSE_UNKNOWN, NULL, &error);
    if (!m)
        fail_msg("%.*s", STR_ARG(error));
    assert_int_equal(apply_config(s->zedagent, m, PARSE_CONTROLLER), APPLY_OK);
}

#define CONFIG(server) \
    "{\"id\":{\"uuid\":\"" MINE "\",\"version\":\"1\"},\"globalProfile\":\"global\"," server \
    "\"apps\":[{\"uuidandversion\":{\"uuid\":\"" APP "\",\"version\":\"1\"}," \
    "\"displayname\":\"one\",\"activate\":true}]}"
#define WITH_SERVER \
    CONFIG("\"localProfileServer\":\"10.1.0.2\",\"profileServerToken\":\"" TOKEN "\",")

static void begin_node(struct site *s)
{
    struct device *d = &s->device;
    char *error = NULL;
    const struct node_options o = {
        .loop = d->loop,
        .clock = &s->clock.clock,
        .machine = s->machine,
        .wire = &s->wire,
        .directories = {device_path(d, "config"), device_path(d, "persist"), device_path(d, "run")},
        .is_simulated = false};
    if (node_new(&o, &d->node, &error) < 0)
        fail_msg("%s", error);
}

static void begin(struct site *s)
{
    const struct zedagent_options o = {.must_not_fetch = true};
    *s = (struct site){.wire = {&ops}, .stream_http = 404};
    device_init(&s->device);
    loop_set_speed(s->device.loop, SPEED);
    clock_scaled_init(&s->clock, &clock_system);
    clock_scaled_set_speed(&s->clock, SPEED);
    s->machine = machine_sim_new(&(struct machine_sim_options){
        .clock = &s->clock.clock, .seed = 7, .address = STR("10.0.0.2")});
    begin_node(s);
    for (size_t i = 0; i < ENDPOINTS; i++)
        s->answers[i].http = i == PROFILE ? 0 : 204;
    s->network = publish_as(s, "nim", "DeviceNetworkStatus", false);
    s->configs = publish_as(s, "nim", "DevicePortConfigList", true);
    s->app_networks = publish_as(s, "zedrouter", "AppNetworkStatus", false);
    s->apps = publish_as(s, "zedmanager", "AppInstanceStatus", false);
    s->onboarding = publish_as(s, "zedclient", "OnboardingStatus", true);
    s->location = publish_as(s, "wwan", "WwanLocationInfo", false);
    say(s, s->onboarding, "global", "{\"DeviceUUID\":\"" MINE "\",\"HardwareModel\":\"a.b\"}");
    say(s, s->network, "global",
        "{\"State\":3,\"Version\":1,\"RadioSilence\":{\"Imposed\":false},\"Ports\":[{\"IfName\":"
        "\"eth0\",\"Logicallabel\":\"up\",\"Up\":true,\"AddrInfoList\":[{\"Addr\":\"10.0.0.2\"}]}"
        "]}");
    say(s, s->configs, "global",
        "{\"CurrentIndex\":0,\"PortConfigList\":[{\"Key\":\"zedagent\",\"State\":3,"
        "\"LastSucceeded\":\"2024-01-01T00:00:00Z\",\"Ports\":[{\"IfName\":\"eth0\","
        "\"Logicallabel\":\"up\",\"Dhcp\":4,\"Type\":4,\"MTU\":1500}]}]}");
    assert_int_equal(zedagent_new(s->device.node, &o, &s->zedagent), 0);
    assert_int_equal(report_new(s->zedagent, s->device.node, &s->report), 0);
    assert_int_equal(lps_new(s->zedagent, s->device.node, s->report, &s->lps), 0);
    device_run_turns(&s->device, 20);
}

/* The server runs. */
static void serve(struct site *s, const char *address)
{
    const struct str text =
        arena_printf(s->device.arena,
                     "{\"AppNetAdapterList\":[{\"Bridge\":\"bn1\",\"BridgeIPAddr\":\"10.1.0.1\","
                     "\"AssignedAddresses\":{\"IPv4Addrs\":[{\"Address\":\"%s\"}]}}]}",
                     address);
    say(s, s->app_networks, APP, text.p);
}

static void end(struct site *s)
{
    lps_free(s->lps);
    report_free(s->report);
    zedagent_free(s->zedagent);
    struct publication *const all[] = {s->network, s->configs,    s->app_networks,
                                       s->apps,    s->onboarding, s->location};
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        publication_free(all[i]);
    device_stop(&s->device);
    machine_free(s->machine);
    device_done(&s->device);
}

static bool is_asked(void *arg)
{
    const struct site *s = arg;
    return s->n_asked[s->watched] >= s->wanted;
}

/* Until the endpoint was asked so many more times. */
static void run_until_asked(struct site *s, enum endpoint e, size_t more)
{
    s->watched = e;
    s->wanted = s->n_asked[e] + more;
    device_run_until(&s->device, is_asked, s);
}

static void answer(struct site *s, enum endpoint e, const ProtobufCMessage *m)
{
    s->answers[e] = (struct answer){.http = 200, .body = pb_pack(s->device.arena, m)};
}

static void answer_profile(struct site *s, const char *profile, const char *token)
{
    Eve__Profile__LocalProfile p = EVE__PROFILE__LOCAL_PROFILE__INIT;
    p.local_profile = (char *) (uintptr_t) profile;
    p.server_token = (char *) (uintptr_t) token;
    answer(s, PROFILE, &p.base);
}

static struct str profile_of(struct site *s)
{
    return zedagent_facts(s->zedagent)->local_profile;
}

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(a_server_is_asked_for_the_profile_when_its_application_runs)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    answer_profile(&s, "night", TOKEN);
    device_run_turns(&s.device, 50);
    assert_int_equal(s.n_asked[PROFILE], 0);
    serve(&s, "10.1.0.2");
    run_until_asked(&s, PROFILE, 2);
    assert_str(s.host, "http://10.1.0.2:8888");
    assert_str(profile_of(&s), "night");
    assert_int_equal(s.max_reply_bytes, 256 * 1024);
    /* It goes, and is not asked; what it said stays. */
    serve(&s, "10.1.0.9");
    device_run_turns(&s.device, 50);
    const size_t n = s.n_asked[PROFILE];
    device_run_turns(&s.device, 50);
    assert_int_equal(s.n_asked[PROFILE], n);
    assert_str(profile_of(&s), "night");
    configure(&s, CONFIG(""));
    assert_str(profile_of(&s), "global");
    end(&s);
}

TEST(what_is_not_understood_changes_nothing)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    serve(&s, "10.1.0.2");
    answer_profile(&s, "night", TOKEN);
    run_until_asked(&s, PROFILE, 2);
    answer_profile(&s, "forged", "guess");
    run_until_asked(&s, PROFILE, 2);
    assert_str(profile_of(&s), "night");
    answer_profile(&s, "forged", "");
    run_until_asked(&s, PROFILE, 2);
    assert_str(profile_of(&s), "night");
    answer_profile(&s, "forged", TOKEN);
    s.answers[PROFILE].content_type = "text/html";
    run_until_asked(&s, PROFILE, 2);
    assert_str(profile_of(&s), "night");
    s.answers[PROFILE] = (struct answer){.http = 200, .body = STR("\x0a\xff\xff")};
    run_until_asked(&s, PROFILE, 2);
    assert_str(profile_of(&s), "night");
    s.answers[PROFILE] = (struct answer){.http = 500};
    run_until_asked(&s, PROFILE, 2);
    s.answers[PROFILE] = (struct answer){.http = 204};
    run_until_asked(&s, PROFILE, 2);
    s.answers[PROFILE] = (struct answer){.http = 0};
    run_until_asked(&s, PROFILE, 2);
    assert_str(profile_of(&s), "night");
    end(&s);
}

TEST(every_endpoint_survives_any_answer)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    serve(&s, "10.1.0.2");
    say(&s, s.location, "global", "{\"latitude\":1.5,\"longitude\":2.5}");
    run_until_asked(&s, RADIO, 1);
    uint32_t seed = 1;
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < ENDPOINTS; i++) {
            const size_t n = (size_t) (round * 7 % 120);
            char *bytes = arena_alloc(s.device.arena, n + 1);
            for (size_t k = 0; k < n; k++) {
                seed = seed * 1664525 + 1013904223;
                /* Tags and lengths as they are likely. */
                bytes[k] = (char) (k % 3 ? seed >> 24 : (seed >> 24) & 0x1a);
            }
            s.answers[i] = (struct answer){.http = 200, .body = str_range(bytes, n)};
        }
        run_until_asked(&s, RADIO, 1);
    }
    assert_str(profile_of(&s), "global");
    assert_false(zedagent_facts(s.zedagent)->is_rebooting);
    end(&s);
}

TEST(an_endpoint_that_is_not_there_is_left_alone_for_an_hour)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    s.answers[APPS].http = 404;
    serve(&s, "10.1.0.2");
    run_until_asked(&s, APPS, 1);
    const size_t n = s.n_asked[APPS];
    run_until_asked(&s, DEVICE, 10); /* ten minutes */
    assert_int_equal(s.n_asked[APPS], n);
    /* It is there again after an hour, and then as often as before. */
    run_until_asked(&s, APPS, 1);
    s.answers[APPS].http = 204;
    run_until_asked(&s, APPS, 1);
    const size_t m = s.n_asked[DEVICE];
    run_until_asked(&s, APPS, 3);
    assert_in_range(s.n_asked[DEVICE] - m, 1, 6);
    end(&s);
}

TEST(the_device_and_its_applications_are_told)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    say(&s, s.apps, APP,
        "{\"UUIDandVersion\":{\"UUID\":\"" APP "\",\"Version\":\"1\"},\"DisplayName\":\"one\","
        "\"State\":115,\"Error\":\"bad luck\",\"ErrorTime\":\"2024-01-01T00:00:00Z\"}");
    say(&s, s.location, "global",
        "{\"logical-label\":\"modem\",\"latitude\":1.5,\"longitude\":2.5}");
    device_run_turns(&s.device, 20);
    serve(&s, "10.1.0.2");
    for (size_t i = RADIO; i < ENDPOINTS; i++)
        run_until_asked(&s, (enum endpoint) i, s.n_asked[i] ? 0 : 1);
    struct arena *a = s.device.arena;
    const Eve__Profile__LocalDevInfo *d =
        PB_UNPACK(a, eve__profile__local_dev_info, s.said[DEVICE]);
    assert_str(pb_text(d->device_uuid), MINE);
    assert_non_null(d->boot_time);
    const Eve__Profile__LocalAppInfoList *apps =
        PB_UNPACK(a, eve__profile__local_app_info_list, s.said[APPS]);
    assert_int_equal(apps->n_apps_info, 1);
    assert_str(pb_text(apps->apps_info[0]->name), "one");
    assert_int_equal(apps->apps_info[0]->state, EVE__INFO__ZSW_STATE__RUNNING);
    assert_str(pb_text(apps->apps_info[0]->err->description), "bad luck");
    const Eve__Profile__NetworkInfo *n = PB_UNPACK(a, eve__profile__network_info, s.said[NETWORK]);
    assert_int_equal(n->n_latest_config, 1);
    assert_true(n->latest_config[0]->use_dhcp);
    assert_true(n->config_testing->controller_reachable);
    assert_str(pb_text(n->port_status[0]->ip_addresses[0]), "10.0.0.2");
    const Eve__Profile__AppBootInfoList *b =
        PB_UNPACK(a, eve__profile__app_boot_info_list, s.said[BOOT]);
    assert_str(pb_text(b->apps_boot_info[0]->displayname), "one");
    const Eve__Info__ZInfoLocation *l = PB_UNPACK(a, eve__info__zinfo_location, s.said[LOCATION]);
    assert_true(l->latitude == 1.5);
    end(&s);
}

static void answer_ports(struct site *s, const char *label, const char *address, const char *token)
{
    Eve__Profile__LocalNetworkConfig c = EVE__PROFILE__LOCAL_NETWORK_CONFIG__INIT;
    Eve__Profile__NetworkPortConfig p = EVE__PROFILE__NETWORK_PORT_CONFIG__INIT, *all[] = {&p};
    char *addresses[] = {(char *) (uintptr_t) address};
    p.logical_label = (char *) (uintptr_t) label;
    p.ip_addresses = addresses;
    p.n_ip_addresses = 1;
    c.server_token = (char *) (uintptr_t) token;
    c.ports = all;
    c.n_ports = 1;
    answer(s, NETWORK, &c.base);
}

/* As it is told after the server has answered. */
static const Eve__Profile__LocalNetworkConfigInfo *told_of_ports(struct site *s)
{
    run_until_asked(s, NETWORK, 2);
    const Eve__Profile__NetworkInfo *n =
        PB_UNPACK(s->device.arena, eve__profile__network_info, s->said[NETWORK]);
    return n->local_config;
}

static const struct json *ports_in_force(struct site *s)
{
    return json_get(zedagent_local_network(s->zedagent, s->device.arena), STR("Ports"));
}

/* nim has laid it over, or says why not. */
static void say_port(struct site *s, const char *error)
{
    struct arena *a = s->device.arena;
    const struct json *source = json_get(&ports_in_force(s)->items[0], STR("ConfigSource"));
    const struct str text = arena_printf(
        a,
        "{\"State\":3,\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"Logicallabel\":\"up\","
        "\"Up\":true,\"AddrInfoList\":[{\"Addr\":\"10.0.0.7\",\"Mask\":\"////AA==\"}],%s%.*s}]}",
        error[0] ? error : "\"ConfigSource\":", STR_ARG(error[0] ? STR("") : json_text(a, source)));
    say(s, s->network, "global", text.p);
    device_run_turns(&s->device, 20);
}

TEST(ports_that_a_server_orders_are_in_force_and_told_back)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    serve(&s, "10.1.0.2");
    answer_ports(&s, "up", "10.0.0.7/24", TOKEN);
    const Eve__Profile__LocalNetworkConfigInfo *i = told_of_ports(&s);
    assert_str(pb_text(i->error_message), "");
    assert_int_equal(i->n_ports, 1);
    assert_str(pb_text(i->ports[0]->ip_addresses[0]), "10.0.0.7/24");
    assert_str(pb_text(i->ports[0]->port_addresses->interface_name), "eth0");
    assert_int_equal(i->ports[0]->config_source->origin, 7);
    assert_false(i->ports[0]->config_applied);
    say_port(&s, "");
    i = told_of_ports(&s);
    assert_true(i->ports[0]->config_applied);
    assert_str(pb_text(i->ports[0]->error_message), "");
    const Eve__Profile__NetworkInfo *n =
        PB_UNPACK(s.device.arena, eve__profile__network_info, s.said[NETWORK]);
    assert_str(pb_text(n->port_status[0]->ip_addresses[0]), "10.0.0.7/24");
    assert_false(n->latest_config[0]->config_applied);
    say_port(&s, "\"LpsConfigError\":\"not permitted\"");
    i = told_of_ports(&s);
    assert_false(i->ports[0]->config_applied);
    assert_str(pb_text(i->ports[0]->error_message), "not permitted");
    /* No answer, an error, or nothing new: it stays. */
    static const int statuses[] = {0, 500, 204};
    for (size_t k = 0; k < N_ELEMENTS(statuses); k++) {
        s.answers[NETWORK] = (struct answer){.http = statuses[k]};
        (void) told_of_ports(&s);
        assert_int_equal(json_count(ports_in_force(&s)), 1);
    }
    s.answers[NETWORK] = (struct answer){.http = 404};
    run_until_asked(&s, NETWORK, 1);
    device_run_turns(&s.device, 20);
    assert_null(ports_in_force(&s));
    end(&s);
}

TEST(ports_that_make_no_sense_are_refused_in_words)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    serve(&s, "10.1.0.2");
    answer_ports(&s, "up", "10.0.0.7/24", TOKEN);
    (void) told_of_ports(&s);
    answer_ports(&s, "down", "10.0.0.7/24", TOKEN);
    assert_str(pb_text(told_of_ports(&s)->error_message),
               "port with logical label \"down\" not found in the current config");
    answer_ports(&s, "up", "10.0.0.8/24", "guess");
    assert_str(pb_text(told_of_ports(&s)->error_message), "invalid token submitted by LPS");
    assert_str(json_get_str(&ports_in_force(&s)->items[0], STR("AddrSubnet")), "10.0.0.7/24");
    /* Told once. */
    s.answers[NETWORK] = (struct answer){.http = 204};
    assert_str(pb_text(told_of_ports(&s)->error_message), "");
    configure(&s, CONFIG(""));
    assert_null(ports_in_force(&s));
    end(&s);
}

static bool is_commanded(void *arg)
{
    return zedagent_device_command_done(((struct site *) arg)->zedagent) == 42;
}

TEST(a_device_command_is_acknowledged_in_what_is_told_next)
{
    struct site s;
    Eve__Profile__LocalDevCmd c = EVE__PROFILE__LOCAL_DEV_CMD__INIT;
    begin(&s);
    configure(&s, WITH_SERVER);
    c.server_token = (char *) (uintptr_t) TOKEN;
    c.command = EVE__PROFILE__LOCAL_DEV_CMD__COMMAND__COMMAND_SHUTDOWN;
    c.timestamp = 42;
    answer(&s, DEVICE, &c.base);
    serve(&s, "10.1.0.2");
    device_run_until(&s.device, is_commanded, &s);
    assert_true(zedagent_facts(s.zedagent)->is_rebooting);
    run_until_asked(&s, DEVICE, 1);
    const Eve__Profile__LocalDevInfo *d =
        PB_UNPACK(s.device.arena, eve__profile__local_dev_info, s.said[DEVICE]);
    assert_int_equal(d->last_cmd_timestamp, 42);
    assert_int_equal(d->state, EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_PREPARING_POWEROFF);
    end(&s);
}

static bool is_silenced(void *arg)
{
    return zedagent_radio(((struct site *) arg)->zedagent).is_silent;
}

static const Eve__Profile__RadioStatus *radio_with(struct site *s, const char *ports)
{
    const struct str text = arena_printf(
        s->device.arena,
        "{\"State\":3,\"Version\":1,\"RadioSilence\":{\"Imposed\":true,\"ChangeRequestedAt\":%.*s},"
        "\"Ports\":[%s]}",
        STR_ARG(
            json_text(s->device.arena,
                      node_json_time(s->device.arena, zedagent_radio(s->zedagent).requested_us))),
        ports);
    say(s, s->network, "global", text.p);
    device_run_turns(&s->device, 20);
    run_until_asked(s, RADIO, 2);
    return PB_UNPACK(s->device.arena, eve__profile__radio_status, s->said[RADIO]);
}

TEST(radio_silence_is_told_as_it_is_not_as_it_was_asked)
{
    struct site s;
    Eve__Profile__RadioConfig c = EVE__PROFILE__RADIO_CONFIG__INIT;
    begin(&s);
    configure(&s, WITH_SERVER);
    c.server_token = (char *) (uintptr_t) TOKEN;
    c.radio_silence = true;
    answer(&s, RADIO, &c.base);
    serve(&s, "10.1.0.2");
    device_run_until(&s.device, is_silenced, &s);
    /* Nothing is told until nim has done it. */
    const size_t n = s.n_asked[RADIO];
    run_until_asked(&s, DEVICE, 2);
    assert_int_equal(s.n_asked[RADIO], n);
    /* Without a radio there is silence. */
    const Eve__Profile__RadioStatus *r = radio_with(&s, "{\"Logicallabel\":\"up\",\"Up\":true}");
    assert_true(r->radio_silence);
    assert_int_equal(r->n_cellular_status, 0);
    assert_str(pb_text(r->config_error), "");
    /* A modem that is still online is none that was switched off. */
    r = radio_with(&s, "{\"Logicallabel\":\"modem\",\"WirelessStatus\":{\"WType\":1,\"Cellular\":"
                       "{\"Module\":{\"Name\":\"m\",\"OpMode\":\"connected\"}}}}");
    assert_false(r->radio_silence);
    assert_str(pb_text(r->config_error), "the radio of port modem is not silent");
    assert_int_equal(r->n_cellular_status, 1);
    r = radio_with(&s, "{\"Logicallabel\":\"modem\",\"WirelessStatus\":{\"WType\":1,\"Cellular\":"
                       "{\"Module\":{\"Name\":\"m\",\"OpMode\":\"radio-off\"}}}}");
    assert_true(r->radio_silence);
    end(&s);
}

TEST(another_address_is_another_server)
{
    struct site s;
    begin(&s);
    configure(&s, WITH_SERVER);
    s.answers[DEVICE].http = 404;
    serve(&s, "10.1.0.2");
    run_until_asked(&s, DEVICE, 1);
    configure(&s, CONFIG("\"localProfileServer\":\"10.1.0.2:99\",\"profileServerToken\":\"t\","));
    run_until_asked(&s, DEVICE, 1);
    assert_str(s.host, "http://10.1.0.2:99");
    end(&s);
}

/* ---- signals -------------------------------------------------------------------------------- */

/* Polls are weeks apart: at this speed longer than any test lasts. */
#define SELDOM(name) "{\"key\":\"timer.lps." name "\",\"value\":\"4000000\"},"
#define SELDOM_ASKED \
    "\"configItems\":[" SELDOM("profile") SELDOM("devinfo") SELDOM("network") \
        SELDOM("appbootinfo") \
            SELDOM("radio") "{\"key\":\"timer.lps.appinfo\",\"value\":\"4000000\"}],"
#define SERVER_AT(address) \
    CONFIG("\"localProfileServer\":\"" address "\",\"profileServerToken\":\"" TOKEN \
           "\"," SELDOM_ASKED)

static bool is_followed(void *arg)
{
    return ((struct site *) arg)->stream;
}

/* All was asked once, and the stream is open. */
static void begin_with_signals(struct site *s)
{
    begin(s);
    s->stream_http = 200;
    configure(s, SERVER_AT("10.1.0.2"));
    serve(s, "10.1.0.2");
    for (size_t i = 0; i < ENDPOINTS; i++)
        if (i != LOCATION && !s->n_asked[i])
            run_until_asked(s, (enum endpoint) i, 1);
    device_run_until(&s->device, is_followed, s);
}

TEST(what_is_signalled_is_asked_at_once)
{
    static const struct {
        const char *signal;
        enum endpoint endpoint;
    } cases[] = {{"LOCAL_PROFILE", PROFILE}, {"RADIO", RADIO},     {"APP_INFO", APPS},
                 {"APP_BOOT_INFO", BOOT},    {"DEV_INFO", DEVICE}, {"NETWORK", NETWORK}};
    struct site s;
    begin_with_signals(&s);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        signal_change(&s, cases[i].signal);
        run_until_asked(&s, cases[i].endpoint, 1);
        device_run_turns(&s.device, 10); /* a turn is a second: signals are limited */
    }
    end(&s);
}

TEST(what_is_signalled_while_it_is_being_asked_is_asked_again)
{
    struct site s;
    begin_with_signals(&s);
    s.signal_when_asked = "DEV_INFO";
    signal_change(&s, "DEV_INFO");
    run_until_asked(&s, DEVICE, 2);
    end(&s);
}

TEST(a_signal_does_not_wake_what_the_server_does_not_know)
{
    struct site s;
    begin(&s);
    s.stream_http = 200;
    s.answers[APPS].http = 404;
    configure(&s, SERVER_AT("10.1.0.2"));
    serve(&s, "10.1.0.2");
    run_until_asked(&s, APPS, 1);
    run_until_asked(&s, DEVICE, s.n_asked[DEVICE] ? 0 : 1);
    device_run_until(&s.device, is_followed, &s);
    device_run_turns(&s.device, 20);
    const size_t n = s.n_asked[APPS];
    signal_change(&s, "APP_INFO");
    signal_change(&s, "DEV_INFO");
    run_until_asked(&s, DEVICE, 1);
    device_run_turns(&s.device, 20);
    assert_int_equal(s.n_asked[APPS], n);
    end(&s);
}

static bool is_followed_elsewhere(void *arg)
{
    const struct site *s = arg;
    return s->stream && str_is(s->stream_url, "http://10.1.0.2:99/api/v1/signal");
}

TEST(the_stream_follows_the_server_and_goes_with_it)
{
    struct site s;
    begin_with_signals(&s);
    assert_str(s.stream_url, "http://10.1.0.2:8888/api/v1/signal");
    assert_int_equal(s.n_streams, 1);
    /* What leaves the server where it is leaves the stream alone. */
    serve(&s, "10.1.0.2");
    configure(&s, SERVER_AT("10.1.0.2"));
    device_run_turns(&s.device, 50);
    assert_int_equal(s.n_streams, 1);
    configure(&s, SERVER_AT("10.1.0.2:99"));
    device_run_until(&s.device, is_followed_elsewhere, &s);
    assert_int_equal(s.n_streams, 2);
    /* Its application goes, and it is not looked for. */
    serve(&s, "10.1.0.9");
    device_run_turns(&s.device, 50);
    assert_null(s.stream);
    serve(&s, "10.1.0.2");
    device_run_until(&s.device, is_followed_elsewhere, &s);
    configure(&s, CONFIG(""));
    assert_null(s.stream);
    assert_int_equal(s.n_streams, 3);
    end(&s);
}
