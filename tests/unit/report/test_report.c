/* SPDX-License-Identifier: Apache-2.0 */
/* The reporter on a wire that answers as the test says, time running a thousand times as fast. */
#include "report/report.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "device.h"
#include "eve/auth.pb-c.h"
#include "eve/flowlog.pb-c.h"
#include "eve/info.pb-c.h"
#include "eve/metrics.pb-c.h"
#include "fake_zedagent.h"
#include "protobuf/message.h"
#include "test.h"

#define SPEED 1000
#define MINE "01020304-0506-4708-890a-0b0c0d0e0f10"
#define APP "aaaaaaaa-0000-4000-8000-000000000001"
#define MAX_SENT 4096

enum action { INFO, METRICS, FLOWLOG, HEALTH, ACTIONS };
static const char *const action_names[] = {"info", "metrics", "flowlog", "hardwarehealth"};

struct sent {
    enum action action;
    bool is_to_console; /* to https://console */
    int64_t at_us;
    struct str body; /* the message, out of its envelope */
};

struct world {
    struct uplink_wire wire;
    struct device device;
    struct clock_scaled clock;
    struct machine *machine;
    struct zedagent zedagent;
    struct report *report;
    struct publication *network, *onboarding, *apps, *metadata, *flows;
    int http[ACTIONS]; /* 0: nobody answers */
    struct sent sent[MAX_SENT];
    size_t n_sent, n_of[ACTIONS];
};

/* ---- the wire ------------------------------------------------------------------------------- */

struct uplink_transfer {
    struct loop_deferred finish;
    struct world *world;
    int http;
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

static void on_finish(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, finish);
    const struct uplink_reply r = {.fault = t->http ? UPLINK_FAULT_NONE : UPLINK_FAULT_REFUSED,
                                   .error = STR("refused"),
                                   .http_status = t->http,
                                   .body = STR(""),
                                   .content_type = STR("")};
    t->on_done(t->arg, &r);
    mem_free(t);
}

static enum action action_of(struct str url)
{
    assert_true(str_find_str(url, STR("/api/v2/edgedevice/id/" MINE "/")) > 0);
    for (size_t i = 0; i < ACTIONS; i++)
        if (str_ends_with(url, str_of(action_names[i])))
            return (enum action) i;
    fail_msg("%.*s", STR_ARG(url));
    return ACTIONS;
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct world *w = CONTAINER_OF(wire, struct world, wire);
    const enum action action = action_of(x->url);
    const Eve__Auth__AuthContainer *envelope =
        PB_UNPACK(w->device.arena, eve__auth__auth_container, x->body);
    assert_non_null(envelope);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    *t = (struct uplink_transfer){.finish.fn = on_finish,
                                  .world = w,
                                  .http = w->http[action],
                                  .on_done = on_done,
                                  .arg = arg};
    assert_true(w->n_sent < MAX_SENT);
    w->sent[w->n_sent++] =
        (struct sent){action, str_starts_with(x->url, STR("https://console/")),
                      w->clock.clock.monotonic_us(&w->clock.clock),
                      arena_str(w->device.arena, pb_bytes(envelope->protectedpayload->payload))};
    w->n_of[action]++;
    loop_defer(w->device.loop, &t->finish);
    return t;
}

static void cancel(struct uplink_transfer *t)
{
    loop_undefer(t->world->device.loop, &t->finish);
    mem_free(t);
}

static const struct uplink_wire_ops ops = {.start = start, .cancel = cancel};

/* ---- the world ------------------------------------------------------------------------------ */

static struct publication *publish_as(struct world *w, const char *agent, const char *topic,
                                      bool is_persistent)
{
    struct publication *p;
    const struct pubsub_name name = {
        .agent = str_of(agent), .topic = str_of(topic), .is_persistent = is_persistent};
    assert_int_equal(publication_new(w->device.node->pubsub, &name, &p), 0);
    return p;
}

static void say(struct world *w, struct publication *p, const char *key, const char *text)
{
    struct json *value = json_parse_quick(w->device.arena, str_of(text));
    assert_non_null(value);
    assert_int_equal(publication_publish(p, str_of(key), value), 0);
}

static void begin(struct world *w, bool is_simulated)
{
    *w = (struct world){.wire = {&ops}, .http = {201, 201, 201, 201}};
    struct device *d = &w->device;
    device_init(d);
    loop_set_speed(d->loop, SPEED);
    clock_scaled_init(&w->clock, &clock_system);
    clock_scaled_set_speed(&w->clock, SPEED);
    w->machine = machine_sim_new(&(struct machine_sim_options){
        .clock = &w->clock.clock, .seed = 7, .address = STR("10.0.0.2")});
    char *error = NULL;
    const struct node_options o = {
        .loop = d->loop,
        .clock = &w->clock.clock,
        .machine = w->machine,
        .wire = &w->wire,
        .directories = {device_path(d, "config"), device_path(d, "persist"), device_path(d, "run")},
        .is_simulated = is_simulated};
    if (node_new(&o, &d->node, &error) < 0)
        fail_msg("%s", error);
    w->zedagent.items = items_new();
    const struct node_link_options link = {.agent = STR("zedagent"), .publishes_no_metrics = true};
    assert_int_equal(node_link_new(d->node, &link, &w->zedagent.link), 0);
    assert_int_equal(report_new(&w->zedagent, d->node, &w->report), 0);
    w->network = publish_as(w, "nim", "DeviceNetworkStatus", false);
    w->onboarding = publish_as(w, "zedclient", "OnboardingStatus", true);
    w->apps = publish_as(w, "zedmanager", "AppInstanceStatus", false);
    w->metadata = publish_as(w, "msrv", "AppInstMetaData", true);
    w->flows = publish_as(w, "zedrouter", "IPFlow", false);
}

static void onboard(struct world *w)
{
    say(w, w->onboarding, "global", "{\"DeviceUUID\":\"" MINE "\",\"HardwareModel\":\"a.b\"}");
    say(w, w->network, "global",
        "{\"State\":3,\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"Logicallabel\":\"eth0\","
        "\"IsMgmt\":true,\"IsL3Port\":true,\"DNSServers\":[\"10.0.0.1\"],"
        "\"AddrInfoList\":[{\"Addr\":\"10.0.0.2\"}]}]}");
}

static void end(struct world *w)
{
    report_free(w->report);
    struct publication *const all[] = {w->network, w->onboarding, w->apps, w->metadata, w->flows};
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        publication_free(all[i]);
    node_link_free(w->zedagent.link);
    device_stop(&w->device);
    items_free(w->zedagent.items);
    machine_free(w->machine);
    device_done(&w->device);
}

/* ---- what was sent -------------------------------------------------------------------------- */

struct wanted {
    struct world *world;
    Eve__Info__ZInfoTypes type;
    size_t n;
};

static const Eve__Info__ZInfoMsg *info_at(struct world *w, size_t at)
{
    if (w->sent[at].action != INFO)
        return NULL;
    const Eve__Info__ZInfoMsg *m =
        PB_UNPACK(w->device.arena, eve__info__zinfo_msg, w->sent[at].body);
    assert_non_null(m);
    assert_str(pb_text(m->devid), MINE);
    return m;
}

static size_t count_infos(struct world *w, Eve__Info__ZInfoTypes type)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_sent; i++) {
        const Eve__Info__ZInfoMsg *m = info_at(w, i);
        n += m && m->ztype == type;
    }
    return n;
}

static const Eve__Info__ZInfoMsg *last_info(struct world *w, Eve__Info__ZInfoTypes type)
{
    for (size_t i = w->n_sent; i > 0; i--) {
        const Eve__Info__ZInfoMsg *m = info_at(w, i - 1);
        if (m && m->ztype == type)
            return m;
    }
    fail_msg("no info of type %d", (int) type);
    return NULL;
}

static bool has_infos(void *arg)
{
    const struct wanted *x = arg;
    return count_infos(x->world, x->type) >= x->n;
}

static void wait_infos(struct world *w, Eve__Info__ZInfoTypes type, size_t n)
{
    struct wanted x = {w, type, n};
    device_run_until(&w->device, has_infos, &x);
}

struct wanted_posts {
    struct world *world;
    enum action action;
    size_t n;
};

static bool has_posts(void *arg)
{
    const struct wanted_posts *x = arg;
    return x->world->n_of[x->action] >= x->n;
}

static void wait_posts(struct world *w, enum action action, size_t n)
{
    struct wanted_posts x = {w, action, n};
    device_run_until(&w->device, has_posts, &x);
}

/* The last of these before that one. */
static size_t last_of(const struct world *w, enum action action, size_t before)
{
    while (before > 0)
        if (w->sent[--before].action == action)
            return before;
    fail_msg("nothing was sent to %s", action_names[action]);
    return 0;
}

/* Between the last two. */
static int64_t last_pause_s(const struct world *w, enum action action)
{
    const size_t last = last_of(w, action, w->n_sent);
    return (w->sent[last].at_us - w->sent[last_of(w, action, last)].at_us) / 1000000;
}

struct moment {
    struct world *world;
    int64_t us;
};

static bool has_come(void *arg)
{
    const struct moment *m = arg;
    return m->world->clock.clock.monotonic_us(&m->world->clock.clock) >= m->us;
}

/* Of the device's time. */
static void wait_seconds(struct world *w, int64_t seconds)
{
    struct moment m = {w, w->clock.clock.monotonic_us(&w->clock.clock) + seconds * 1000000};
    device_run_until(&w->device, has_come, &m);
}

static void say_app(struct world *w, const char *key, int state)
{
    const struct str text = arena_printf(w->device.arena,
                                         "{\"UUIDandVersion\":{\"UUID\":\"%s\",\"Version\":\"1\"},"
                                         "\"DisplayName\":\"app\",\"State\":%d}",
                                         key, state);
    say(w, w->apps, key, text.p);
}

/* ---- info ----------------------------------------------------------------------------------- */

static bool has_told_console(void *arg)
{
    struct world *w = arg;
    for (size_t i = 0; i < w->n_sent; i++) {
        const Eve__Info__ZInfoMsg *m = w->sent[i].is_to_console ? info_at(w, i) : NULL;
        if (m && m->ztype == EVE__INFO__ZINFO_TYPES__ZiDevice)
            return true;
    }
    return false;
}

TEST(a_console_that_is_asked_is_told_about_the_device)
{
    struct world w;
    begin(&w, /* is_simulated= */ false);
    struct publication *console = publish_as(&w, "zedagent", "LOCConfig", false);
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    /* Nobody but the console is asked for anything, and without one nobody. */
    const size_t n = w.n_sent;
    w.zedagent.listener->on_event(w.zedagent.listener, ZEDAGENT_ASKS_LOC);
    for (size_t i = n; i < w.n_sent; i++)
        assert_false(w.sent[i].is_to_console);
    say(&w, console, "global", "{\"LocURL\":\"https://console\"}");
    device_run_turns(&w.device, 20);
    w.zedagent.listener->on_event(w.zedagent.listener, ZEDAGENT_ASKS_LOC);
    device_run_until(&w.device, has_told_console, &w);
    publication_free(console);
    end(&w);
}

TEST(nothing_is_said_before_there_is_a_name_to_say_it_under)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    say_app(&w, APP, 115);
    wait_seconds(&w, 5);
    assert_int_equal(w.n_sent, 0);
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    /* By priority: applications, hardware, the rest. */
    size_t at = 0;
    const Eve__Info__ZInfoTypes order[] = {EVE__INFO__ZINFO_TYPES__ZiApp,
                                           EVE__INFO__ZINFO_TYPES__ZiHardware,
                                           EVE__INFO__ZINFO_TYPES__ZiDevice};
    for (size_t i = 0; i < w.n_sent; i++) {
        const Eve__Info__ZInfoMsg *m = info_at(&w, i);
        if (m && at < N_ELEMENTS(order))
            assert_int_equal(m->ztype, order[at++]);
    }
    assert_int_equal(at, N_ELEMENTS(order));
}

TEST(what_changes_together_is_told_once)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    for (int i = 100; i <= 115; i++)
        say_app(&w, APP, i);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiApp, 1);
    wait_seconds(&w, 3);
    assert_int_equal(count_infos(&w, EVE__INFO__ZINFO_TYPES__ZiApp), 1);
    const Eve__Info__ZInfoMsg *m = last_info(&w, EVE__INFO__ZINFO_TYPES__ZiApp);
    assert_int_equal(m->ainfo->state, EVE__INFO__ZSW_STATE__RUNNING);
    /* And that it is there. */
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 2);
    m = last_info(&w, EVE__INFO__ZINFO_TYPES__ZiDevice);
    assert_int_equal(m->dinfo->n_appinstances, 1);
    assert_str(pb_text(m->dinfo->appinstances[0]->uuid), APP);
}

TEST(an_application_that_is_gone_is_told_by_its_id_alone)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    say_app(&w, APP, 115);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiApp, 1);
    assert_int_equal(publication_unpublish(w.apps, STR(APP)), 0);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiApp, 2);
    const Eve__Info__ZInfoMsg *m = last_info(&w, EVE__INFO__ZINFO_TYPES__ZiApp);
    assert_str(pb_text(m->ainfo->appid), APP);
    assert_str(pb_text(m->ainfo->appname), "");
    assert_int_equal(m->ainfo->state, EVE__INFO__ZSW_STATE__INVALID);
}

TEST(metadata_that_is_taken_back_has_no_data)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    say(&w, w.metadata, APP "-1", "{\"AppInstUUID\":\"" APP "\",\"Type\":1,\"Data\":\"a3ViZQ==\"}");
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiAppInstMetaData, 1);
    const Eve__Info__ZInfoMsg *m = last_info(&w, EVE__INFO__ZINFO_TYPES__ZiAppInstMetaData);
    assert_str(pb_bytes(m->amdinfo->data), "kube");
    assert_int_equal(publication_unpublish(w.metadata, STR(APP "-1")), 0);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiAppInstMetaData, 2);
    m = last_info(&w, EVE__INFO__ZINFO_TYPES__ZiAppInstMetaData);
    assert_int_equal(m->amdinfo->data.len, 0);
    assert_str(pb_text(m->amdinfo->uuid), APP);
}

TEST(after_a_time_without_controller_the_newest_of_each_arrives)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    w.http[INFO] = 0;
    onboard(&w);
    for (int i = 0; i < 50; i++) {
        say_app(&w, APP, 103 + i % 5);
        wait_seconds(&w, 2);
    }
    say_app(&w, APP, 119);
    wait_seconds(&w, 600);
    const struct report_counts before = report_counts(w.report);
    assert_int_equal(before.waiting, 3); /* device, hardware, one application */
    assert_int_equal(before.delivered, 0);
    w.http[INFO] = 201;
    const size_t n = w.n_sent;
    struct wanted_posts x = {&w, INFO, w.n_of[INFO] + 3};
    device_run_until(&w.device, has_posts, &x);
    wait_seconds(&w, 3);
    assert_int_equal(report_counts(w.report).waiting, 0);
    size_t n_apps = 0;
    for (size_t i = n; i < w.n_sent; i++) {
        const Eve__Info__ZInfoMsg *m = info_at(&w, i);
        if (!m || m->ztype != EVE__INFO__ZINFO_TYPES__ZiApp)
            continue;
        n_apps++;
        assert_int_equal(m->ainfo->state, EVE__INFO__ZSW_STATE__HALTED);
    }
    assert_int_equal(n_apps, 1);
}

struct wanted_counts {
    struct world *world;
    size_t waiting;
    uint64_t delivered;
};

static bool has_counts(void *arg)
{
    const struct wanted_counts *x = arg;
    const struct report_counts c = report_counts(x->world->report);
    return c.waiting >= x->waiting && c.delivered >= x->delivered;
}

TEST(what_finds_no_room_is_told_later)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    w.http[INFO] = 0;
    onboard(&w);
    for (unsigned i = 0; i < 1100; i++)
        say_app(&w, arena_printf(w.device.arena, "aaaaaaaa-0000-4000-8000-%012u", i).p, 115);
    struct wanted_counts full = {&w, 1024, 0};
    device_run_until(&w.device, has_counts, &full);
    wait_seconds(&w, 300);
    assert_int_equal(report_counts(w.report).waiting, 1024);
    w.http[INFO] = 201;
    struct wanted_counts all = {&w, 0, 1102}; /* and device and hardware */
    device_run_until(&w.device, has_counts, &all);
    assert_int_equal(report_counts(w.report).waiting, 0);
    unsigned char seen[1100] = {0};
    for (size_t i = 0; i < w.n_sent; i++) {
        const Eve__Info__ZInfoMsg *m = info_at(&w, i);
        if (m && m->ztype == EVE__INFO__ZINFO_TYPES__ZiApp)
            seen[strtoul(m->ainfo->appid + 24, NULL, 10)] = 1;
    }
    for (size_t i = 0; i < sizeof(seen); i++)
        assert_int_equal(seen[i], 1);
}

TEST(an_epoch_tells_everything_again)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    say_app(&w, APP, 115);
    say_app(&w, "aaaaaaaa-0000-4000-8000-000000000002", 111);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiApp, 2);
    wait_seconds(&w, 3);
    const size_t n_devices = count_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice);
    w.zedagent.listener->on_event(w.zedagent.listener, ZEDAGENT_EPOCH);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, n_devices + 1);
    assert_int_equal(count_infos(&w, EVE__INFO__ZINFO_TYPES__ZiApp), 4);
    assert_int_equal(count_infos(&w, EVE__INFO__ZINFO_TYPES__ZiHardware), 2);
}

TEST(the_device_is_told_every_ten_minutes_or_so)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    const int64_t begin_us = clock_system.monotonic_us(&clock_system);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 4);
    const int64_t took_s = (clock_system.monotonic_us(&clock_system) - begin_us) * SPEED / 1000000;
    /* Three times 480 to 720 s; a slow machine only makes it longer. */
    assert_true(took_s >= 3 * 480 - 60);
}

/* ---- metrics -------------------------------------------------------------------------------- */

static void set_interval(struct world *w, const char *seconds)
{
    items_begin(w->zedagent.items);
    assert_int_equal(items_set(w->zedagent.items, STR("timer.metric.interval"), str_of(seconds)),
                     0);
    w->zedagent.listener->on_event(w->zedagent.listener, ZEDAGENT_FACTS);
}

static uint64_t dormant_s(struct world *w, size_t at)
{
    const Eve__Metrics__ZMetricMsg *m =
        PB_UNPACK(w->device.arena, eve__metrics__zmetric_msg, w->sent[at].body);
    assert_non_null(m);
    return m->dm->dormant_time_in_seconds;
}

static size_t last_metrics(const struct world *w)
{
    return last_of(w, METRICS, w->n_sent);
}

TEST(metrics_come_at_once_and_then_by_the_clock)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    wait_posts(&w, METRICS, 4);
    assert_int_equal(dormant_s(&w, last_metrics(&w)), 180);
    wait_seconds(&w, 3);
    assert_true(report_counts(w.report).metrics_sent >= 3);
}

TEST(a_longer_interval_waits_until_the_controller_knows)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    wait_posts(&w, METRICS, 1);
    w.http[METRICS] = 0;
    set_interval(&w, "3600");
    wait_posts(&w, METRICS, 6); /* still once a minute: nobody has heard of it */
    assert_int_equal(dormant_s(&w, last_metrics(&w)), 3 * 3600);
    assert_true(report_counts(w.report).metrics_lost >= 4);
    w.http[METRICS] = 201;
    wait_posts(&w, METRICS, w.n_of[METRICS] + 2);
    assert_true(last_pause_s(&w, METRICS) > 500); /* 0.3 of an hour */
    const size_t n_after = w.n_of[METRICS];
    set_interval(&w, "5"); /* a shorter one at once */
    wait_posts(&w, METRICS, n_after + 10);
}

/* ---- health --------------------------------------------------------------------------------- */

TEST(health_comes_by_its_own_clock_and_is_tried_again_soon)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    w.http[HEALTH] = 0;
    loop_set_speed(w.device.loop, 100 * SPEED);
    clock_scaled_set_speed(&w.clock, 100 * SPEED);
    onboard(&w);
    const int64_t began_us = w.clock.clock.monotonic_us(&w.clock.clock);
    wait_posts(&w, HEALTH, 1);
    const int64_t first_us = w.sent[last_of(&w, HEALTH, w.n_sent)].at_us;
    assert_true(first_us - began_us > INT64_C(10000) * 1000000); /* 0.3 of 12 hours */
    wait_posts(&w, HEALTH, 3);
    w.http[HEALTH] = 201;
    wait_posts(&w, HEALTH, w.n_of[HEALTH] + 2);
    assert_true(last_pause_s(&w, HEALTH) > 10000);
}

/* ---- flows ---------------------------------------------------------------------------------- */

TEST(flows_are_bounded_and_what_is_lost_is_counted)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    w.http[FLOWLOG] = 0;
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    for (unsigned i = 0; i < 150; i++) {
        const struct str key = arena_printf(w.device.arena, "k%u", i);
        const struct str text = arena_printf(
            w.device.arena,
            "{\"Scope\":{\"AppUUID\":\"" APP "\",\"NetAdapterName\":\"eth0\",\"NetUUID\":\"n\"},"
            "\"Flows\":[{\"Flow\":{\"Src\":\"10.1.0.2\",\"Dst\":\"192.0.2.1\",\"SrcPort\":%u,"
            "\"DstPort\":443,\"Proto\":6},\"Action\":1,\"StartTime\":1767225600000000000,"
            "\"TxBytes\":5}],\"DNSReqs\":[{\"HostName\":\"a.example\",\"Addrs\":[\"192.0.2.1\"]}]}",
            i);
        say(&w, w.flows, key.p, text.p);
    }
    wait_posts(&w, FLOWLOG, 3);
    w.http[FLOWLOG] = 201;
    const size_t n = w.n_of[FLOWLOG];
    wait_posts(&w, FLOWLOG, n + 90);
    wait_seconds(&w, 300);
    assert_int_equal(w.n_of[FLOWLOG], n + 90);
    wait_posts(&w, METRICS, w.n_of[METRICS] + 1);
    const Eve__Metrics__ZMetricMsg *m =
        PB_UNPACK(w.device.arena, eve__metrics__zmetric_msg, w.sent[last_metrics(&w)].body);
    assert_int_equal(m->dm->flowlog->messages->success, 90);
    assert_int_equal(m->dm->flowlog->messages->drops, 60);
    assert_int_equal(m->dm->flowlog->flows->drops, 60);
    assert_int_equal(m->dm->flowlog->messages->failed_attempts, n);
    for (size_t i = 0; i < w.n_sent; i++)
        if (w.sent[i].action == FLOWLOG) {
            const Eve__Flowlog__FlowMessage *f =
                PB_UNPACK(w.device.arena, eve__flowlog__flow_message, w.sent[i].body);
            assert_str(pb_text(f->scope->uuid), APP);
            assert_int_equal(f->flows[0]->action, EVE__FLOWLOG__ACLACTION__ActionAccept);
            assert_int_equal(f->flows[0]->starttime->seconds, 1767225600);
            assert_str(pb_text(f->dnsreqs[0]->hostname), "a.example");
        }
}

/* ---- files ---------------------------------------------------------------------------------- */

TEST(what_arrived_is_kept_for_people)
{
    CLEANUP(end) struct world w;
    begin(&w, false);
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    wait_posts(&w, METRICS, 1);
    wait_seconds(&w, 3);
    const struct str info = device_read(&w.device, "persist/checkpoint/lastdeviceinfo");
    const struct str metrics = device_read(&w.device, "persist/checkpoint/lastmetrics");
    const Eve__Info__ZInfoMsg *m = PB_UNPACK(w.device.arena, eve__info__zinfo_msg, info);
    assert_true(info.n && m && m->dinfo);
    assert_non_null(PB_UNPACK(w.device.arena, eve__metrics__zmetric_msg, metrics));
}

TEST(a_simulated_device_keeps_none)
{
    CLEANUP(end) struct world w;
    begin(&w, true);
    onboard(&w);
    wait_infos(&w, EVE__INFO__ZINFO_TYPES__ZiDevice, 1);
    wait_posts(&w, METRICS, 1);
    wait_seconds(&w, 3);
    assert_null(device_read(&w.device, "persist/checkpoint/lastdeviceinfo").p);
    assert_null(device_read(&w.device, "persist/checkpoint/lastmetrics").p);
}
