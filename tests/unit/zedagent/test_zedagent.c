/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of a zedagent that reaches no controller: what it starts with, what it keeps, what it acts
 * on. */
#include "test.h"

#include <unistd.h>

#include "desk.h"
#include "eve/auth.pb-c.h"
#include "protobuf/protojson.h"

#define LAST "persist/checkpoint/lastconfig"
#define BACKUP "persist/checkpoint/lastconfig.bak"

static struct str device_name(struct desk *k)
{
    return json_get_str(desk_published(k, SECTION_NODE_INFO, "global"), STR("DeviceName"));
}

static bool is_configured(void *arg)
{
    return zedagent_facts(((struct desk *) arg)->z)->is_configured;
}

/* ---- the start --------------------------------------------------------------------------------
 */

TEST(the_first_items_are_published_before_anything_else)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    const struct json *map = publication_get(k.d.arena, k.z->topics.items, STR("global"));
    assert_true(json_is(json_get(map, STR("GlobalSettings")), JSON_OBJECT));
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 60);
    assert_true(items_bool(zedagent_items(k.z), "debug.enable.usb"));
    assert_int_equal(json_get_int(desk_status(&k), STR("DeviceState"), 0), ZEDAGENT_BOOTING);
    desk_done(&k);
}

TEST(global_json_comes_before_authorized_keys)
{
    struct desk k;
    desk_init(&k);
    device_write(&k.d, "config/authorized_keys", STR("ssh-ed25519 AAAA me\n"));
    desk_start(&k);
    assert_str(items_text(zedagent_items(k.z), "debug.enable.ssh"), "ssh-ed25519 AAAA me");
    desk_stop(&k);
    desk_start(&k);
    assert_int_equal(node_file_write(k.d.node, NODE_CONFIG, STR("GlobalConfig/global.json"),
                                     STR("{\"GlobalSettings\":{\"timer.config.interval\":{\"Key\":"
                                         "\"timer.config.interval\",\"ItemType\":1,\"IntValue\":77}"
                                         "}}")),
                     0);
    desk_stop(&k);
    desk_start(&k);
    assert_str(items_text(zedagent_items(k.z), "debug.enable.ssh"), "");
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 77);
    desk_done(&k);
}

static struct str bootstrap_file(struct desk *k)
{
    Eve__Config__BootstrapConfig b = EVE__CONFIG__BOOTSTRAP_CONFIG__INIT;
    const Eve__Certs__ZControllerCert *certs =
        PB_UNPACK(k->d.arena, eve__certs__zcontroller_cert, device_good_certs(&k->d));
    const Eve__Config__EdgeDevConfig *c = desk_config(
        k, "{\"configItems\":[{\"key\":\"timer.config.interval\",\"value\":\"33\"}],"
           "\"deviceIoList\":[{\"ptype\":\"PhyIoNetEth\",\"phylabel\":\"eth0\"}],"
           "\"networks\":[{\"id\":\"0c000000-0000-4000-8000-000000000001\",\"type\":\"V4\","
           "\"ip\":{\"dhcp\":\"Client\"}}],"
           "\"systemAdapterList\":[{\"name\":\"eth0\",\"uplink\":true,"
           "\"networkUUID\":\"0c000000-0000-4000-8000-000000000001\"}],"
           "\"datastores\":[{\"id\":\"0f100000-0000-4000-8000-000000000001\"}]}");
    b.signed_config =
        PB_UNPACK(k->d.arena, eve__auth__auth_container,
                  device_seal(&k->d, &k->d.signing, pb_pack(k->d.arena, &c->message)));
    b.controller_certs = certs->certs;
    b.n_controller_certs = certs->n_certs;
    return pb_pack(k->d.arena, &b.base);
}

TEST(a_bootstrap_configuration_gives_items_and_ports_alone)
{
    struct desk k;
    desk_init(&k);
    device_write(&k.d, "config/bootstrap-config.pb", bootstrap_file(&k));
    desk_start(&k);
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 33);
    assert_true(items_bool(zedagent_items(k.z), "debug.enable.usb"));
    const struct json *ports = desk_published(&k, SECTION_PORTS, "bootstrap");
    assert_str(json_get_str(ports, STR("Key")), "bootstrap");
    assert_int_equal(json_count(json_get(ports, STR("Ports"))), 1);
    assert_int_equal(publication_count(k.z->topics.sections[SECTION_DATASTORES]).n_keys, 0);
    assert_false(zedagent_facts(k.z)->is_configured);
    /* The controller's own does not take it away. */
    assert_int_equal(desk_apply(&k, "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"}}"), APPLY_OK);
    assert_non_null(desk_published(&k, SECTION_PORTS, "bootstrap"));
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 60);
    assert_false(items_bool(zedagent_items(k.z), "debug.enable.usb"));
    desk_done(&k);
}

TEST(a_bootstrap_configuration_of_a_stranger_shows_on_the_led)
{
    struct desk k;
    desk_init(&k);
    char *file = arena_strz(k.d.arena, bootstrap_file(&k));
    const struct str whole = bootstrap_file(&k);
    memcpy(file, whole.p, whole.n);
    file[40] = (char) (file[40] ^ 1);
    device_write(&k.d, "config/bootstrap-config.pb", str_range(file, whole.n));
    desk_start(&k);
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 60);
    assert_int_equal(node_led(k.d.node), NODE_LED_BAD_BOOTSTRAP);
    desk_done(&k);
}

/* ---- the checkpoint ---------------------------------------------------------------------------
 */

static const char new_config[] = "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"},\"deviceName\":\"new\","
                                 "\"configItems\":[{\"key\":\"timer.config.interval\","
                                 "\"value\":\"44\"}],\"reboot\":{\"counter\":9}}";
static const char old_config[] = "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"},\"deviceName\":\"old\"}";

/* Which of the two a device takes that started for this reason. */
static const char *chosen(struct desk *k, int boot_reason)
{
    desk_start(k);
    desk_say_nodeagent(k, arena_printf(k->d.arena, "{\"BootReason\":%d}", boot_reason).p);
    device_run_until(&k->d, is_configured, k);
    assert_int_equal(json_get_int(desk_status(k), STR("ConfigGetStatus"), 0),
                     ZEDAGENT_CONFIG_READ_SAVED);
    const char *name = arena_strz(k->d.arena, device_name(k));
    desk_stop(k);
    return name;
}

TEST(a_device_that_crashed_takes_the_configuration_that_has_proved_good)
{
    struct desk k;
    desk_init(&k);
    desk_leave_certs(&k);
    desk_leave(&k, LAST, desk_envelope(&k, &k.d.signing, new_config));
    desk_leave(&k, BACKUP, desk_envelope(&k, &k.d.signing, old_config));
    static const int crashes[] = {0, 1, 4, 6, 7, 8, 9, 13, 16},
                     others[] = {2, 3, 5, 10, 11, 12, 14, 15, 255};
    for (size_t i = 0; i < N_ELEMENTS(crashes); i++)
        assert_string_equal(chosen(&k, crashes[i]), "old");
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        assert_string_equal(chosen(&k, others[i]), "new");
    desk_done(&k);
}

TEST(a_saved_configuration_commands_nothing)
{
    struct desk k;
    desk_init(&k);
    desk_leave_certs(&k);
    desk_leave(&k, "persist/status/rebootConfig", STR("{\"Counter\":1}"));
    desk_leave(&k, LAST, desk_envelope(&k, &k.d.signing, new_config));
    desk_start(&k);
    /* Its items hold from the start. */
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 44);
    desk_say_nodeagent(&k, "{\"BootReason\":2}");
    device_run_until(&k.d, is_configured, &k);
    assert_str(device_name(&k), "new");
    assert_false(json_get_bool(desk_status(&k), STR("RebootCmd"), true));
    assert_int_equal(zedagent_facts(k.z)->reboot_counter, 1);
    assert_str(device_read(&k.d, "persist/status/rebootConfig"), "{\"Counter\":1}");
    desk_done(&k);
}

TEST(half_a_file_is_replaced_by_the_backup)
{
    struct desk k;
    desk_init(&k);
    desk_leave_certs(&k);
    const struct str good = desk_envelope(&k, &k.d.signing, old_config);
    desk_leave(&k, LAST, str_sub(good, 0, good.n / 2));
    desk_leave(&k, BACKUP, good);
    assert_string_equal(chosen(&k, 2), "old");
    assert_true(str_eq(device_read(&k.d, LAST), good));
    desk_done(&k);
}

TEST(a_file_that_is_not_believed_stays_as_it_is)
{
    struct desk k;
    desk_init(&k);
    desk_leave_certs(&k);
    struct authority stranger = authority_new("stranger", /* is_ca= */ false, NULL);
    const struct str bad = desk_envelope(&k, &stranger, new_config);
    desk_leave(&k, LAST, bad);
    desk_leave(&k, BACKUP, desk_envelope(&k, &k.d.signing, old_config));
    assert_string_equal(chosen(&k, 2), "old");
    assert_true(str_eq(device_read(&k.d, LAST), bad));
    authority_done(&stranger);
    desk_done(&k);
}

TEST(without_the_controllers_certificates_nothing_saved_is_believed)
{
    struct desk k;
    desk_init(&k);
    desk_leave(&k, LAST, desk_envelope(&k, &k.d.signing, new_config));
    desk_start(&k);
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 60);
    desk_done(&k);
}

TEST(the_backup_is_made_at_first_and_then_of_what_has_proved_good)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    checkpoint_save(k.z, STR("one"));
    assert_str(device_read(&k.d, LAST), "one");
    assert_str(device_read(&k.d, BACKUP), "one");
    checkpoint_save(k.z, STR("two"));
    checkpoint_prove(k.z);
    assert_str(device_read(&k.d, LAST), "two");
    assert_str(device_read(&k.d, BACKUP), "one");
    k.z->checkpoint.changed_ms -= 600 * 1000 + 1;
    checkpoint_prove(k.z);
    assert_str(device_read(&k.d, BACKUP), "two");
    /* Once is enough. */
    assert_int_equal(unlink(device_path(&k.d, BACKUP)), 0);
    checkpoint_prove(k.z);
    assert_null(device_read(&k.d, BACKUP).p);
    desk_done(&k);
}

/* ---- commands ---------------------------------------------------------------------------------
 */

static enum apply_result apply_reboot(struct desk *k, unsigned counter)
{
    return desk_apply(
        k, arena_printf(k->d.arena,
                        "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"},\"reboot\":{\"counter\":%u,"
                        "\"desiredState\":true,\"opsTime\":\"now\"},\"apps\":[{"
                        "\"uuidandversion\":{\"uuid\":"
                        "\"0a000000-0000-4000-8000-000000000001\"},\"activate\":true}]}",
                        counter)
               .p);
}

static bool is_app_active(struct desk *k)
{
    return json_get_bool(desk_published(k, SECTION_APPS, "0a000000-0000-4000-8000-000000000001"),
                         STR("Activate"), false);
}

TEST(a_reboot_is_acted_on_once_also_across_restarts)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    /* The first says where the counter stands. */
    assert_int_equal(apply_reboot(&k, 5), APPLY_OK);
    assert_int_equal(zedagent_facts(k.z)->reboot_counter, 5);
    assert_str(device_read(&k.d, "persist/status/rebootConfig"),
               "{\"Counter\":5,\"DesiredState\":true,\"OpsTime\":\"now\"}");
    assert_true(is_app_active(&k));
    assert_int_equal(apply_reboot(&k, 5), APPLY_OK);
    assert_int_equal(apply_reboot(&k, 6), APPLY_SKIPPED_REBOOT);
    assert_true(json_get_bool(desk_status(&k), STR("RebootCmd"), false));
    assert_str(json_get_str(desk_status(&k), STR("RequestedRebootReason")),
               "NORMAL: controller reboot");
    assert_int_equal(json_get_int(desk_status(&k), STR("RequestedBootReason"), 0), 2);
    assert_int_equal(json_get_int(desk_status(&k), STR("DeviceState"), 0), ZEDAGENT_REBOOTING);
    assert_false(is_app_active(&k));
    /* The report says so after the restart. */
    assert_int_equal(zedagent_facts(k.z)->reboot_counter, 5);
    /* Until then nothing starts anything again. */
    assert_int_equal(apply_reboot(&k, 6), APPLY_SKIPPED_REBOOT);
    assert_false(is_app_active(&k));
    desk_stop(&k);
    desk_start(&k);
    assert_int_equal(zedagent_facts(k.z)->reboot_counter, 6);
    assert_int_equal(apply_reboot(&k, 6), APPLY_OK);
    assert_false(json_get_bool(desk_status(&k), STR("RebootCmd"), true));
    assert_true(is_app_active(&k));
    desk_done(&k);
}

TEST(a_command_taken_back_begins_anew)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(apply_reboot(&k, 5), APPLY_OK);
    assert_int_equal(desk_apply(&k, "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"}}"), APPLY_OK);
    assert_null(device_read(&k.d, "persist/status/rebootConfig").p);
    assert_int_equal(apply_reboot(&k, 6), APPLY_OK);
    desk_done(&k);
}

TEST(a_command_waits_for_the_test_of_an_update)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(apply_reboot(&k, 5), APPLY_OK);
    desk_say_nodeagent(&k, "{\"UpdateInprogress\":true}");
    assert_int_equal(apply_reboot(&k, 6), APPLY_OK);
    assert_false(json_get_bool(desk_status(&k), STR("RebootCmd"), true));
    desk_say_nodeagent(&k, "{\"UpdateInprogress\":false}");
    assert_true(json_get_bool(desk_status(&k), STR("RebootCmd"), false));
    desk_done(&k);
}

TEST(a_shutdown_has_a_counter_of_its_own)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(desk_apply(&k, "{\"shutdown\":{\"counter\":1}}"), APPLY_OK);
    assert_int_equal(desk_apply(&k, "{\"shutdown\":{\"counter\":2}}"), APPLY_SKIPPED_REBOOT);
    assert_true(json_get_bool(desk_status(&k), STR("ShutdownCmd"), false));
    assert_false(json_get_bool(desk_status(&k), STR("RebootCmd"), true));
    assert_int_equal(json_get_int(desk_status(&k), STR("DeviceState"), 0),
                     ZEDAGENT_PREPARING_POWEROFF);
    desk_say_nodeagent(&k, "{\"DeviceShutdown\":true,\"AllDomainsHalted\":true}");
    assert_int_equal(json_get_int(desk_status(&k), STR("DeviceState"), 0),
                     ZEDAGENT_PREPARED_POWEROFF);
    desk_done(&k);
}

/* ---- maintenance ------------------------------------------------------------------------------
 */

#define STORE "\"datastores\":[{\"id\":\"0f100000-0000-4000-8000-000000000001\"}]"

static size_t n_stores(struct desk *k)
{
    return publication_count(k->z->topics.sections[SECTION_DATASTORES]).n_keys;
}

TEST(in_maintenance_only_items_and_commands_are_taken)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(desk_apply(&k, "{\"maintenanceMode\":true,\"configItems\":[{\"key\":"
                                    "\"timer.config.interval\",\"value\":\"99\"}]," STORE "}"),
                     APPLY_OK);
    assert_true(zedagent_facts(k.z)->is_maintenance);
    assert_int_equal(zedagent_facts(k.z)->maintenance_reasons, 1u << 1);
    assert_true(json_get_bool(desk_status(&k), STR("MaintenanceMode"), false));
    assert_str(json_text(k.d.arena, json_get(desk_status(&k), STR("MaintenanceModeReasons"))),
               "[1]");
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 99);
    assert_int_equal(n_stores(&k), 0);
    /* The item overrides what the configuration says. */
    assert_int_equal(desk_apply(&k, "{\"maintenanceMode\":true,\"configItems\":[{\"key\":"
                                    "\"maintenance.mode\",\"value\":\"disabled\"}]," STORE "}"),
                     APPLY_OK);
    assert_false(zedagent_facts(k.z)->is_maintenance);
    assert_int_equal(n_stores(&k), 1);
    desk_done(&k);
}

TEST(leaving_maintenance_asks_for_everything_again)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    desk_say_nodeagent(&k, "{\"LocalMaintenanceMode\":true,\"LocalMaintenanceModeReasons\":[2,4]}");
    assert_true(zedagent_facts(k.z)->is_maintenance);
    assert_int_equal(zedagent_facts(k.z)->maintenance_reasons, 1u << 2 | 1u << 4);
    (void) strcpy(k.z->cycle.hash, "h");
    assert_int_equal(desk_apply(&k, "{" STORE "}"), APPLY_OK);
    assert_int_equal(n_stores(&k), 0);
    desk_say_nodeagent(&k, "{\"LocalMaintenanceMode\":false}");
    assert_string_equal(k.z->cycle.hash, "");
    assert_int_equal(desk_apply(&k, "{" STORE "}"), APPLY_OK);
    assert_int_equal(n_stores(&k), 1);
    desk_done(&k);
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

TEST(items_out_of_bounds_are_kept_with_their_error)
{
    struct desk k;
    struct items_status *list;
    size_t n_errors = 0;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(
        desk_apply(&k, "{\"configItems\":[{\"key\":\"timer.config.interval\",\"value\":\"90\"},"
                       "{\"key\":\"timer.metric.interval\",\"value\":\"1\"},"
                       "{\"key\":\"no.such.item\",\"value\":\"1\"}]}"),
        APPLY_OK);
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 90);
    assert_int_equal(items_int(zedagent_items(k.z), "timer.metric.interval"), 60);
    const size_t n = items_statuses(k.d.arena, zedagent_items(k.z), &list);
    for (size_t i = 0; i < n; i++)
        n_errors += list[i].error.n > 0;
    assert_int_equal(n, 3);
    assert_int_equal(n_errors, 2);
    /* What is not named any more has its default again. */
    assert_int_equal(desk_apply(&k, "{}"), APPLY_OK);
    assert_int_equal(items_int(zedagent_items(k.z), "timer.config.interval"), 60);
    desk_done(&k);
}

TEST(an_older_configuration_is_not_taken)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(desk_apply(&k, "{\"configTimestamp\":\"2026-01-02T00:00:00Z\"," STORE "}"),
                     APPLY_OK);
    assert_int_equal(desk_apply(&k, "{\"configTimestamp\":\"2026-01-01T00:00:00Z\"}"),
                     APPLY_OBSOLETE);
    assert_int_equal(n_stores(&k), 1);
    assert_int_equal(desk_apply(&k, "{\"configTimestamp\":\"2026-01-02T00:00:00Z\"}"), APPLY_OK);
    assert_int_equal(n_stores(&k), 0);
    desk_done(&k);
}

TEST(ports_keep_their_rank_while_they_are_the_same)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    const char *text =
        "{\"configTimestamp\":\"2026-01-0%dT00:00:00Z\",\"deviceIoList\":[{\"ptype\":"
        "\"PhyIoNetEth\",\"phylabel\":\"eth0\"%s}],\"systemAdapterList\":[{\"name\":"
        "\"eth0\"%s}]}";
    struct {
        const char *io, *adapter, *rank;
    } steps[] = {{"", "", "2026-01-01T00:00:00Z"},
                 {",\"usage\":\"PhyIoUsageShared\"", "", "2026-01-01T00:00:00Z"},
                 {"", ",\"alias\":\"x\"", "2026-01-03T00:00:00Z"}};
    for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
        BUF_AUTO config = {0};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(&config, text, (int) i + 1, steps[i].io, steps[i].adapter);
#pragma GCC diagnostic pop
        assert_int_equal(desk_apply(&k, config.p), APPLY_OK);
        assert_str(json_get_str(desk_published(&k, SECTION_PORTS, "zedagent"), STR("TimePriority")),
                   steps[i].rank);
    }
    desk_done(&k);
}

TEST(an_epoch_is_told_once)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(desk_apply(&k, "{\"controllerEpoch\":\"3\"}"), APPLY_OK);
    assert_int_equal(desk_apply(&k, "{\"controllerEpoch\":\"3\",\"deviceName\":\"x\"}"), APPLY_OK);
    assert_int_equal(k.n_events[ZEDAGENT_EPOCH], 1);
    assert_int_equal(zedagent_facts(k.z)->controller_epoch, 3);
    assert_str(zedagent_facts(k.z)->device_name, "x");
    desk_done(&k);
}

TEST(what_is_not_configured_any_more_is_not_published_any_more)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    assert_int_equal(desk_apply(&k,
                                "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"}," STORE
                                ",\"apps\":[{\"uuidandversion\":{\"uuid\":"
                                "\"0a000000-0000-4000-8000-000000000001\"}}],"
                                "\"patchEnvelopes\":[{\"uuid\":\"e\",\"artifacts\":[{\"inline\":"
                                "{\"base64Data\":\"YQ==\",\"fileNameToUse\":\"a.txt\"}}]}]}"),
                     APPLY_OK);
    assert_int_equal(n_stores(&k), 1);
    assert_str(device_read(&k.d, "persist/patchEnvelopesCache/a.txt"), "YQ==");
    assert_int_equal(desk_apply(&k, "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"}}"), APPLY_OK);
    assert_int_equal(n_stores(&k), 0);
    assert_int_equal(publication_count(k.z->topics.sections[SECTION_APPS]).n_keys, 0);
    assert_null(device_read(&k.d, "persist/patchEnvelopesCache/a.txt").p);
    desk_done(&k);
}

TEST(attestation_shows_in_the_status)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    zedagent_set_attest(k.z, 6, STR("quote refused"));
    zedagent_set_certs_refused(k.z, true);
    assert_int_equal(json_get_int(desk_status(&k), STR("AttestState"), 0), 6);
    assert_str(json_get_str(desk_status(&k), STR("AttestError")), "quote refused");
    assert_true(json_get_bool(desk_status(&k), STR("EdgeNodeCertsRefused"), false));
    desk_done(&k);
}

#define APP \
    "\"apps\":[{\"uuidandversion\":{\"uuid\":\"0a000000-0000-4000-8000-000000000001\"}," \
    "\"activate\":true}]"

TEST(a_device_that_leaves_its_cluster_keeps_what_runs)
{
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    k.z->is_kube = true;
    assert_int_equal(desk_apply(&k, "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"}," APP
                                    ",\"cluster\":{\"clusterId\":"
                                    "\"0e000000-0000-4000-8000-0000000000c1\",\"clusterIpPrefix\":"
                                    "\"10.0.0.2/24\",\"joinServerIp\":\"10.0.0.2\"}}"),
                     APPLY_OK);
    assert_true(json_get_bool(desk_published(&k, SECTION_CLUSTER, "global"), STR("Valid"), false));
    assert_int_equal(desk_apply(&k, "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"}}"), APPLY_OK);
    assert_true(is_app_active(&k));
    /* It comes back, without the application. */
    assert_int_equal(desk_apply(&k,
                                "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"},\"cluster\":{\"clusterId\":"
                                "\"0e000000-0000-4000-8000-0000000000c1\",\"clusterIpPrefix\":"
                                "\"10.0.0.2/24\",\"joinServerIp\":\"10.0.0.2\"}}"),
                     APPLY_OK);
    assert_null(desk_published(&k, SECTION_APPS, "0a000000-0000-4000-8000-000000000001"));
    desk_done(&k);
}

TEST(applications_wait_for_the_base_os_that_is_to_start_them)
{
    static const char config[] =
        "{\"id\":{\"uuid\":\"" DEVICE_UUID "\"},\"baseos\":{\"contentTreeUuid\":"
        "\"0f000000-0000-4000-8000-000000000001\",\"baseOsVersion\":\"2\",\"activate\":true}," APP
        "}";
    const struct pubsub_name partitions = {.agent = STR("baseosmgr"), .topic = STR("ZbootStatus")};
    const struct pubsub_name images = {.agent = STR("baseosmgr"), .topic = STR("BaseOsStatus")};
    struct publication *zboot, *image;
    struct desk k;
    desk_init(&k);
    desk_start(&k);
    /* Nobody manages partitions: nothing to wait for. */
    assert_int_equal(desk_apply(&k, config), APPLY_OK);
    assert_true(is_app_active(&k));
    assert_int_equal(publication_new(k.d.node->pubsub, &partitions, &zboot), 0);
    assert_int_equal(publication_new(k.d.node->pubsub, &images, &image), 0);
    assert_int_equal(
        publication_publish(zboot, STR("IMGA"),
                            json_parse_quick(k.d.arena, STR("{\"CurrentPartition\":true,"
                                                            "\"ShortVersion\":\"1\"}"))),
        0);
    device_run_turns(&k.d, 3);
    topics_forget(k.z, SECTION_APPS);
    assert_int_equal(desk_apply(&k, config), APPLY_SKIPPED_UPDATE);
    assert_int_equal(zedagent_facts(k.z)->device_state, ZEDAGENT_BOOTING);
    /* It could not be started. */
    (void) strcpy(k.z->cycle.hash, "h");
    assert_int_equal(publication_publish(image, STR("0f000000-0000-4000-8000-000000000001"),
                                         json_parse_quick(k.d.arena, STR("{\"Error\":\"no\"}"))),
                     0);
    device_run_turns(&k.d, 3);
    assert_string_equal(k.z->cycle.hash, "");
    assert_int_equal(desk_apply(&k, config), APPLY_OK);
    publication_free(zboot);
    publication_free(image);
    desk_done(&k);
}
