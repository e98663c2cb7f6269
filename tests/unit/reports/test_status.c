/* SPDX-License-Identifier: Apache-2.0 */
/* From messages of devices to statuses in the API server. */
#include <stdio.h>

#include "protobuf/message.h"
#include "test.h"
#include "world.h"

#define APP_1 "22222222-0000-4000-8000-000000000001"
#define APP_2 "22222222-0000-4000-8000-000000000002"
#define APP_3 "22222222-0000-4000-8000-000000000003"

static struct str state_of(struct world *w, const char *namespace, const char *name)
{
    return json_str(
        json_at(world_get(w, "applications", namespace, name), "status", "state", NULL));
}

static void open_with_apps(struct world *w)
{
    world_open(w);
    world_application(w, "site", "web", APP_1, "edge-1");
    world_application(w, "site", "db", APP_2, "edge-2");
    world_application(w, "other", "far", APP_3, "edge-3");
    world_pass(w, 1500);
}

/* ---- what comes through ------------------------------------------------------------------------
 */

TEST(an_application_shows_its_state_and_the_device_counts_it)
{
    struct world w;
    open_with_apps(&w);
    (void) world_send_app(&w, DEVICE_1, APP_1, 6, 0);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 1);
    world_pass(&w, 3000);
    assert_str(state_of(&w, "site", "web"), "RUNNING");
    const struct json *app = world_get(&w, "applications", "site", "web");
    const struct json *list = json_at(app, "status", "statuses", NULL);
    assert_int_equal(json_count(list), 2);
    assert_str(json_get_str(&list->items[0], STR("state")), "BOOTING");
    assert_str(world_condition(&w, "applications", "site", "web", "Ready", "status"), "True");
    assert_str(json_str(json_at(app, "status", "device", NULL)), "edge-1");
    const struct json *device = world_get(&w, "devices", "site", "edge-1");
    assert_str(json_str(json_at(device, "status", "apps", "summary", NULL)), "1/1");
    assert_str(world_condition(&w, "devices", "site", "edge-1", "Ready", "status"), "True");
    assert_str(world_condition(&w, "devices", "site", "edge-2", "Ready", "status"), "Unknown");
    assert_int_equal(world_events(&w, "site", "web", "Running"), 1);
    world_close(&w);
}

TEST(a_device_tells_what_it_is)
{
    struct world w;
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoDevice info;
    Eve__Info__ZInfoDevSW sw, *software[] = {&sw};
    world_open(&w);
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_device__init(&info);
    eve__info__zinfo_dev_sw__init(&sw);
    sw.shortversion = (char *) "13.4.0-kvm-amd64";
    sw.userstatus = EVE__INFO__BASE_OS_STATUS__UPDATED;
    info.ncpu = 4;
    info.memory = 4096;
    info.machinearch = (char *) "aarch64";
    info.swlist = software;
    info.n_swlist = 1;
    info.state = EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_MAINTENANCE_MODE;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO;
    m.dinfo = &info;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 1000);
    const struct json *device = world_get(&w, "devices", "site", "edge-1");
    assert_str(json_str(json_at(device, "status", "eve-os-version", NULL)), "13.4.0-kvm-amd64");
    assert_str(json_str(json_at(device, "status", "capacity", "memory", NULL)), "4Gi");
    assert_str(json_str(json_at(device, "status", "nodeInfo", "architecture", NULL)), "arm64");
    assert_str(json_str(json_at(device, "status", "uuid", NULL)), DEVICE_1);
    assert_str(world_condition(&w, "devices", "site", "edge-1", "Ready", "reason"),
               "MaintenanceMode");
    assert_str(world_condition(&w, "devices", "site", "edge-1", "Healthy", "status"), "True");
    /* The same again is no write. */
    size_t n_writes = w.client.n_writes;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 5000);
    assert_int_equal(w.client.n_writes, n_writes);
    world_close(&w);
}

TEST(a_delivery_is_noted_on_both_objects)
{
    struct world w;
    struct uuid uuid;
    world_open(&w);
    world_create(&w, "deviceconfigs", "site",
                 "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'DeviceConfig','metadata':{'name':"
                 "'edge-1'},'spec':{'config':{'id':{'version':'12'}}}}");
    world_settle(&w);
    assert_int_equal(uuid_parse(STR(DEVICE_1), &uuid), 0);
    struct device *d = roster_by_uuid(w.roster, &uuid);
    reports_config_fetched(
        w.reports, d,
        &(struct config_fetched){.hash = STR("hash-1"), .version = 12, .is_confirmed = true});
    reports_attested(w.reports, d, false, STR("PCR 7 differs"));
    device_unref(d);
    world_pass(&w, 1000);
    const struct json *device = world_get(&w, "devices", "site", "edge-1");
    assert_str(json_str(json_at(device, "status", "config", "hash", NULL)), "hash-1");
    assert_str(json_str(json_at(device, "status", "config", "version", NULL)), "12");
    assert_str(world_condition(&w, "devices", "site", "edge-1", "ConfigAccepted", "status"),
               "True");
    assert_str(world_condition(&w, "devices", "site", "edge-1", "Attested", "message"),
               "PCR 7 differs");
    assert_str(world_condition(&w, "deviceconfigs", "site", "edge-1", "Delivered", "status"),
               "True");
    assert_int_equal(world_events(&w, "site", "edge-1", "AttestationFailed"), 1);
    world_close(&w);
}

static void fetched(struct world *w, const char *hash, int64_t version)
{
    struct uuid uuid;
    assert_int_equal(uuid_parse(STR(DEVICE_1), &uuid), 0);
    CLEANUP(device_unrefp) struct device *d = roster_by_uuid(w->roster, &uuid);
    reports_config_fetched(w->reports, d,
                           &(struct config_fetched){.hash = str_of(hash), .version = version});
    world_pass(w, 2000);
}

/* What the composer and the delivery write. */
static void settle_config(struct world *w, const char *hash, int generation)
{
    world_patch(w, "deviceconfigs", "site", "edge-1", "status",
                arena_printf(w->arena,
                             "{'status':{'hash':'%s','sources':[{'path':'apps[0]','kind':"
                             "'Application','name':'web','generation':%d}]}}",
                             hash, generation)
                    .p);
}

static struct str delivered(struct world *w, const char *key)
{
    return world_condition(w, "applications", "site", "web", "Delivered", key);
}

TEST(applications_are_delivered_with_the_configuration_that_has_them)
{
    struct world w;
    open_with_apps(&w);
    world_create(&w, "deviceconfigs", "site",
                 arena_printf(w.arena,
                              "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'DeviceConfig',"
                              "'metadata':{'name':'edge-1'},'spec':{'config':{'apps':[{"
                              "'displayname':'web','uuidandversion':{'uuid':'%s'}}]}}}",
                              world_uuid(&w, APP_1))
                     .p);
    settle_config(&w, "h1", 1);
    world_pass(&w, 2000);
    assert_str(delivered(&w, "status"), ""); /* nobody has fetched it */
    fetched(&w, "h1", 1);
    assert_str(delivered(&w, "status"), "True");
    /* It is edited: the device has it as it was. */
    world_patch(&w, "applications", "site", "web", NULL, "{'spec':{'activate':false}}");
    world_pass(&w, 2000);
    assert_str(delivered(&w, "reason"), "Outdated");
    settle_config(&w, "h2", 2);
    world_pass(&w, 2000);
    assert_str(delivered(&w, "reason"), "Outdated");
    world_restart(&w, /* is_crash= */ true);
    fetched(&w, "h2", 2);
    assert_str(delivered(&w, "status"), "True");
    /* An edit that makes no other configuration: its source is known to be newer. */
    world_patch(&w, "applications", "site", "web", NULL, "{'spec':{'nodeSelector':{'a':'b'}}}");
    world_pass(&w, 2000);
    assert_str(delivered(&w, "reason"), "Outdated");
    settle_config(&w, "h2", 3);
    world_pass(&w, 2000);
    assert_str(delivered(&w, "status"), "True");
    /* It rests. */
    const size_t n_writes = w.client.n_writes;
    world_pass(&w, 20000);
    assert_int_equal(w.client.n_writes, n_writes);
    /* Left out, it is not. */
    world_patch(&w, "deviceconfigs", "site", "edge-1", NULL, "{'spec':{'config':{'apps':null}}}");
    world_patch(&w, "applications", "site", "web", NULL, "{'spec':{'activate':true}}");
    settle_config(&w, "h3", 3);
    fetched(&w, "h3", 3);
    assert_str(delivered(&w, "reason"), "NotInConfiguration");
    world_close(&w);
}

/* ---- order --------------------------------------------------------------------------------------
 */

TEST(the_newest_wins_whatever_the_order)
{
    struct world w;
    open_with_apps(&w);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 10);
    (void) world_send_app(&w, DEVICE_1, APP_1, 6, 5);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "RUNNING");
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 9);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "RUNNING");
    assert_int_equal(world_stats(&w).n_stale, 2);
    /* Of two with one time, the later to arrive. */
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 10);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "HALTING");
    /* Also after a restart. */
    world_pass(&w, 20000);
    world_restart(&w, /* is_crash= */ true);
    (void) world_send_app(&w, DEVICE_1, APP_1, 6, 9);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "HALTING");
    world_close(&w);
}

TEST(a_clock_far_ahead_does_not_shut_out_the_rest)
{
    struct world w;
    open_with_apps(&w);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 100 * 365 * 86400LL);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "RUNNING");
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 60);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "HALTING");
    world_close(&w);
}

TEST(an_object_is_written_once_a_second_and_its_history_is_whole)
{
    struct world w;
    open_with_apps(&w);
    size_t n_before = w.client.n_writes;
    for (int i = 0; i < 20; i++)
        (void) world_send_app(&w, DEVICE_1, APP_1, i % 2 ? 7 : 8, i);
    world_pass(&w, 900);
    const struct json *app = world_get(&w, "applications", "site", "web");
    assert_int_equal(json_count(json_at(app, "status", "statuses", NULL)), 20);
    /* One of the Application, and one or two of the Device. */
    assert_in_range(w.client.n_writes - n_before, 2, 3);
    n_before = w.client.n_writes;
    for (int i = 20; i < 30; i++) {
        (void) world_send_app(&w, DEVICE_1, APP_1, i % 2 ? 7 : 8, i);
        world_pass(&w, 5);
    }
    assert_int_equal(w.client.n_writes, n_before);
    world_pass(&w, 1000);
    app = world_get(&w, "applications", "site", "web");
    assert_int_equal(json_count(json_at(app, "status", "statuses", NULL)), 30);
    world_close(&w);
}

/* ---- who may say what
 * ----------------------------------------------------------------------------- */

TEST(a_device_speaks_for_nobody_else)
{
    struct world w;
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoDevice info;
    open_with_apps(&w);
    size_t n_writes = w.client.n_writes;
    (void) world_send_app(&w, DEVICE_1, APP_2, 7, 0);
    (void) world_send_app(&w, DEVICE_1, APP_3, 7, 0);
    (void) world_send_app(&w, DEVICE_1, DEVICE_1, 7, 0);
    (void) world_send_app(&w, DEVICE_1, "not a uuid", 7, 0);
    (void) world_send_app(&w, DEVICE_1, "99999999-0000-4000-8000-000000000001", 7, 0);
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_device__init(&info);
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO;
    m.dinfo = &info;
    info.ncpu = 64;
    m.devid = (char *) DEVICE_2;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 2000);
    assert_int_equal(world_stats(&w).n_foreign, 6);
    assert_str(state_of(&w, "site", "db"), "");
    assert_str(state_of(&w, "other", "far"), "");
    assert_null(json_at(world_get(&w, "devices", "site", "edge-2"), "status", "capacity", NULL));
    assert_null(json_at(world_get(&w, "devices", "site", "edge-1"), "status", "capacity", NULL));
    /* It was heard of, and that is all. */
    assert_int_equal(w.client.n_writes - n_writes, 1);
    world_close(&w);
}

TEST(an_application_that_moved_listens_to_its_new_device)
{
    struct world w;
    open_with_apps(&w);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 0);
    world_pass(&w, 2000);
    world_patch(&w, "applications", "site", "web", "status", "{'status':{'device':'edge-2'}}");
    (void) world_send_app(&w, DEVICE_1, APP_1, 9, 5);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "RUNNING");
    /* Its clock is behind the other's. */
    (void) world_send_app(&w, DEVICE_2, APP_1, 6, -100);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "BOOTING");
    assert_str(json_str(json_at(world_get(&w, "devices", "site", "edge-1"), "status", "apps",
                                "summary", NULL)),
               "0/0");
    world_close(&w);
}

TEST(what_is_no_message_is_counted)
{
    struct world w;
    open_with_apps(&w);
    (void) world_send(&w, DEVICE_1, TELEMETRY_INFO, STR("\xff\xff\xff\xff"));
    (void) world_send(&w, DEVICE_1, TELEMETRY_METRICS, STR("\x08\x08\x08"));
    (void) world_send(&w, DEVICE_1, TELEMETRY_INFO, STR(""));
    (void) world_send(&w, "99999999-0000-4000-8000-000000000009", TELEMETRY_INFO, STR(""));
    world_pass(&w, 2000);
    assert_int_equal(world_stats(&w).n_bad, 2);
    assert_int_equal(world_stats(&w).n_foreign, 1);
    world_close(&w);
}

TEST(ten_thousand_applications_in_one_message_do_no_harm)
{
    struct world w;
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoDevice info;
    open_with_apps(&w);
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_device__init(&info);
    Eve__Info__ZInfoAppInstance **list = ARENA_ARRAY(w.arena, Eve__Info__ZInfoAppInstance *, 10000);
    for (int i = 0; i < 10000; i++) {
        list[i] = ARENA_NEW(w.arena, Eve__Info__ZInfoAppInstance);
        eve__info__zinfo_app_instance__init(list[i]);
        list[i]->uuid = arena_strz(
            w.arena, arena_printf(w.arena, "%08x-0000-4000-8000-000000000000", (unsigned) i));
        list[i]->name = (char *) "\xff\xfe";
    }
    info.appinstances = list;
    info.n_appinstances = 10000;
    info.hostname = (char *) "\xff\xfe\x01 host";
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO;
    m.dinfo = &info;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 2000);
    const struct json *device = world_get(&w, "devices", "site", "edge-1");
    const struct json *addresses = json_at(device, "status", "addresses", NULL);
    assert_int_equal(json_count(addresses), 1);
    assert_str(json_get_str(&addresses->items[0], STR("address")),
               "\xef\xbf\xbd\xef\xbf\xbd  host");
    assert_int_equal(world_stats(&w).n_failures, 0);
    world_close(&w);
}

TEST(events_of_a_device_are_bounded)
{
    struct world w;
    open_with_apps(&w);
    for (int i = 0; i < 60; i++) {
        (void) world_send_app(&w, DEVICE_1, APP_1, i % 2 ? 7 : 8, i);
        world_pass(&w, 1000);
    }
    assert_in_range(world_stats(&w).n_events, 1, REPORTS_EVENT_BURST + 2);
    assert_true(world_stats(&w).n_events_shed > 10);
    world_close(&w);
}

/* ---- deletion
 * ---------------------------------------------------------------------------------------- */

TEST(an_application_being_deleted_is_gone_when_the_device_lists_it_no_more)
{
    struct world w;
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoDevice info;
    Google__Protobuf__Timestamp at;
    open_with_apps(&w);
    world_patch(&w, "applications", "site", "web", NULL, "{'metadata':{'finalizers':['t/x']}}");
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 0);
    world_pass(&w, 2000);
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_device__init(&info);
    google__protobuf__timestamp__init(&at);
    at.seconds = WORLD_NOW_US / SECOND_US + 5;
    m.attimestamp = &at;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO;
    m.dinfo = &info;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "RUNNING");
    world_delete(&w, "applications", "site", "web");
    at.seconds += 60;
    (void) world_send_info(&w, DEVICE_1, &m);
    world_pass(&w, 2000);
    assert_str(state_of(&w, "site", "web"), "INVALID");
    assert_str(world_condition(&w, "applications", "site", "web", "Ready", "reason"), "Deleted");
    world_close(&w);
}

TEST(an_object_that_goes_takes_its_reports_along)
{
    struct world w;
    open_with_apps(&w);
    (void) world_send_app(&w, DEVICE_1, APP_1, 7, 0);
    world_settle(&w);
    world_delete(&w, "applications", "site", "web");
    world_pass(&w, 5000);
    assert_int_equal(world_stats(&w).n_failures, 0);
    world_delete(&w, "devices", "site", "edge-1");
    (void) world_send_app(&w, DEVICE_1, APP_1, 8, 5);
    world_pass(&w, 30000);
    assert_int_equal(world_stats(&w).n_failures, 0);
    world_close(&w);
}

/* ---- Secrets and shared objects
 * ---------------------------------------------------------------------- */

static void send_kubeconfig(struct world *w, const char *app, struct str data, int64_t at_s)
{
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoAppInstMetaData info;
    Google__Protobuf__Timestamp at;
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_app_inst_meta_data__init(&info);
    google__protobuf__timestamp__init(&at);
    at.seconds = WORLD_NOW_US / SECOND_US + at_s;
    info.uuid = (char *) world_uuid(w, app);
    info.type = EVE__INFO__APP_INST_META_DATA_TYPE__APP_INST_META_DATA_TYPE_KUBE_CONFIG;
    info.data = pb_data(data);
    m.attimestamp = &at;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_AMDINFO;
    m.amdinfo = &info;
    (void) world_send_info(w, DEVICE_1, &m);
    world_pass(w, 2000);
}

static struct str kubeconfig_of(struct world *w, const char *secret)
{
    return json_str(json_at(world_get(w, "secrets", "site", secret), "data", "kubeconfig", NULL));
}

TEST(a_kubeconfig_is_kept_as_a_secret)
{
    struct world w;
    open_with_apps(&w);
    send_kubeconfig(&w, APP_1, STR("one"), 0);
    assert_str(kubeconfig_of(&w, "web-kubeconfig"), "b25l");
    send_kubeconfig(&w, APP_1, STR("two"), 1);
    assert_str(kubeconfig_of(&w, "web-kubeconfig"), "dHdv");
    send_kubeconfig(&w, APP_1, STR("one"), 0);
    assert_str(kubeconfig_of(&w, "web-kubeconfig"), "dHdv");
    char *large = arena_zalloc(w.arena, DERIVE_MAX_KUBECONFIG_BYTES + 1);
    memset(large, 'x', DERIVE_MAX_KUBECONFIG_BYTES + 1);
    send_kubeconfig(&w, APP_1, str_range(large, DERIVE_MAX_KUBECONFIG_BYTES + 1), 2);
    assert_str(kubeconfig_of(&w, "web-kubeconfig"), "dHdv");
    assert_int_equal(world_events(&w, "site", "web", "KubeconfigRefused"), 1);
    send_kubeconfig(&w, APP_1, str_range(large, DERIVE_MAX_KUBECONFIG_BYTES), 3);
    assert_true(kubeconfig_of(&w, "web-kubeconfig").n > 40000);
    send_kubeconfig(&w, APP_1, STR(""), 4);
    assert_null(world_get(&w, "secrets", "site", "web-kubeconfig"));
    /* Of another device's application: nothing. */
    send_kubeconfig(&w, APP_2, STR("one"), 5);
    assert_null(world_get(&w, "secrets", "site", "db-kubeconfig"));
    world_close(&w);
}

TEST(a_secret_of_that_name_that_is_somebody_elses_is_left_alone)
{
    struct world w;
    open_with_apps(&w);
    world_create(&w, "secrets", "site",
                 "{'metadata':{'name':'web-kubeconfig'},'data':{'kubeconfig':'bWluZQ=='}}");
    send_kubeconfig(&w, APP_1, STR("one"), 0);
    assert_str(kubeconfig_of(&w, "web-kubeconfig"), "bWluZQ==");
    send_kubeconfig(&w, APP_1, STR(""), 1);
    assert_str(kubeconfig_of(&w, "web-kubeconfig"), "bWluZQ==");
    assert_int_equal(world_events(&w, "site", "web", "KubeconfigRefused"), 1);
    world_close(&w);
}

#define IMAGE "33333333-0000-4000-8000-000000000001"

static void send_content(struct world *w, const char *device, int state, const char *error,
                         int64_t at_s)
{
    Eve__Info__ZInfoMsg m;
    Eve__Info__ZInfoContentTree info;
    Eve__Info__ErrorInfo e;
    Google__Protobuf__Timestamp at;
    eve__info__zinfo_msg__init(&m);
    eve__info__zinfo_content_tree__init(&info);
    eve__info__error_info__init(&e);
    google__protobuf__timestamp__init(&at);
    at.seconds = WORLD_NOW_US / SECOND_US + at_s;
    info.uuid = (char *) world_uuid(w, IMAGE);
    info.displayname = (char *) (state ? "img" : "");
    info.state = (Eve__Info__ZSwState) state;
    e.description = (char *) error;
    info.err = error ? &e : NULL;
    m.attimestamp = &at;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_CINFO;
    m.cinfo = &info;
    (void) world_send_info(w, device, &m);
    world_pass(w, 1500);
}

TEST(an_image_knows_how_all_its_devices_do)
{
    struct world w;
    world_open(&w);
    world_create(&w, "images", "site",
                 "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Image','metadata':{'name':'img'},"
                 "'spec':{'ref':'nginx:1','storageClass':'eve-docker'}}");
    world_alias(&w, "images", "site", "img", IMAGE);
    /* Not in its configuration: not its affair. */
    send_content(&w, DEVICE_1, 4, NULL, 0);
    assert_int_equal(world_stats(&w).n_foreign, 1);
    for (int i = 1; i <= 2; i++)
        world_create(&w, "deviceconfigs", "site",
                     arena_printf(w.arena,
                                  "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'DeviceConfig',"
                                  "'metadata':{'name':'edge-%d'},'spec':{'config':{'contentInfo':"
                                  "[{'uuid':'%s'}]}}}",
                                  i, world_uuid(&w, IMAGE))
                         .p);
    send_content(&w, DEVICE_1, 4, NULL, 1);
    assert_str(world_condition(&w, "images", "site", "img", "Ready", "status"), "True");
    send_content(&w, DEVICE_2, 2, "404 from the registry", 2);
    assert_str(world_condition(&w, "images", "site", "img", "Ready", "message"),
               "device edge-2: 404 from the registry");
    assert_int_equal(world_events(&w, "site", "img", "DeviceError"), 1);
    /* What one device said is not forgotten by a crash. */
    world_pass(&w, 20000);
    world_restart(&w, /* is_crash= */ true);
    send_content(&w, DEVICE_1, 2, NULL, 3);
    assert_str(world_condition(&w, "images", "site", "img", "Ready", "message"),
               "device edge-2: 404 from the registry");
    send_content(&w, DEVICE_2, 4, NULL, 4);
    assert_str(world_condition(&w, "images", "site", "img", "Ready", "message"),
               "on 1 of 2 devices");
    send_content(&w, DEVICE_1, 0, NULL, 5);
    assert_str(world_condition(&w, "images", "site", "img", "Ready", "message"),
               "on 1 of 1 devices");
    send_content(&w, DEVICE_3, 4, NULL, 6);
    assert_int_equal(world_stats(&w).n_foreign, 1);
    world_close(&w);
}
