/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of a device with its topics, on a clock that a test moves. */
#include "nodeagent/nodeagent.h"

#include <errno.h>
#include <stdio.h>

#include "device.h"
#include "nodeagent/reasons.h"
#include "test.h"

/* Timers only wake: the virtual clock says what is due. */
#define SPEED 1e7
#define HOUR_US INT64_C(3600000000)

struct bench {
    struct device device;
    struct nodeagent *nodeagent;
    struct publication *zedagent, *apps, *wanted, *vault;
    struct subscription *status, *partitions, *images;
    int64_t step_us; /* how far the clock moves in a turn */
    bool (*is_so)(struct bench *b);
    int n_restarts;
    enum machine_restart how;
    int64_t restarted_us;
    char why[200];
};

static struct bench *current; /* machines of tests have no state of their own */

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("1"), .eve_version = STR("13.4.0\n")};
    return 0;
}

static int restart(struct machine *m, enum machine_restart how, struct str reason)
{
    (void) m;
    current->n_restarts++;
    current->how = how;
    current->restarted_us = current->device.clock.now_us;
    (void) snprintf(current->why, sizeof(current->why), "%.*s", STR_ARG(reason));
    return 0;
}

static void bench_init(struct bench *b)
{
    static const struct machine_functions functions = {
        .name = "test", .identity = identity, .restart = restart};
    *b = (struct bench){0};
    device_init(&b->device);
    b->device.machine.functions = &functions;
    loop_set_speed(b->device.loop, SPEED);
    current = b;
}

static void start(struct bench *b)
{
    static const struct subscription_handlers none = {0};
    const struct pubsub_name zedagent = {.agent = STR("zedagent"), .topic = STR("ZedAgentStatus")};
    const struct pubsub_name wanted = {.agent = STR("zedagent"), .topic = STR("BaseOsConfig")};
    const struct pubsub_name apps = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")};
    const struct pubsub_name status = {.agent = STR("nodeagent"), .topic = STR("NodeAgentStatus")};
    const struct pubsub_name partitions = {.agent = STR("baseosmgr"), .topic = STR("ZbootStatus")};
    const struct pubsub_name images = {.agent = STR("baseosmgr"), .topic = STR("BaseOsStatus")};
    const struct pubsub_name vault = {.agent = STR("vaultmgr"), .topic = STR("VaultStatus")};
    device_start(&b->device, /* is_simulated= */ true);
    struct pubsub *ps = b->device.node->pubsub;
    assert_int_equal(publication_new(ps, &vault, &b->vault), 0);
    assert_int_equal(publication_new(ps, &zedagent, &b->zedagent), 0);
    assert_int_equal(publication_new(ps, &wanted, &b->wanted), 0);
    assert_int_equal(publication_new(ps, &apps, &b->apps), 0);
    assert_int_equal(subscription_new(ps, &status, &none, NULL, &b->status), 0);
    assert_int_equal(subscription_new(ps, &partitions, &none, NULL, &b->partitions), 0);
    assert_int_equal(subscription_new(ps, &images, &none, NULL, &b->images), 0);
    assert_int_equal(nodeagent_new(b->device.node, &b->nodeagent), 0);
    device_run_turns(&b->device, 3);
}

static void stop(struct bench *b)
{
    nodeagent_free(b->nodeagent);
    publication_free(b->zedagent);
    publication_free(b->apps);
    publication_free(b->wanted);
    publication_free(b->vault);
    subscription_free(b->status);
    subscription_free(b->partitions);
    subscription_free(b->images);
    device_stop(&b->device);
}

static bool on_turn(void *arg)
{
    struct bench *b = arg;
    if (b->is_so(b))
        return true;
    b->device.clock.now_us += b->step_us;
    return false;
}

static void run_until(struct bench *b, int64_t step_us, bool (*is_so)(struct bench *b))
{
    b->step_us = step_us;
    b->is_so = is_so;
    device_run_until(&b->device, on_turn, b);
}

static struct json *status(struct bench *b)
{
    return subscription_get(b->device.arena, b->status, STR("nodeagent"));
}

static void say(struct bench *b, const char *json)
{
    assert_int_equal(publication_publish(b->zedagent, STR("zedagent"),
                                         json_parse_quick(b->device.arena, str_of(json))),
                     0);
    device_run_turns(&b->device, 3);
}

static bool has_restarted(struct bench *b)
{
    return b->n_restarts > 0;
}

/* ---- reasons -------------------------------------------------------------------------------- */

static void expect(struct bench *b, enum boot_reason boot, const char *reason, int counter)
{
    const struct json *s = status(b);
    assert_int_equal(json_get_int(s, STR("BootReason"), -1), boot);
    assert_int_equal(json_get_int(s, STR("RestartCounter"), -1), counter);
    const struct str said = json_get_str(s, STR("RebootReason"));
    if (!str_starts_with(said, str_of(reason)))
        fail_msg("%.*s", STR_ARG(said));
}

TEST(every_start_is_told_its_reason_once)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    expect(&b, BOOT_FIRST, "NORMAL: First boot of device - at 20", 0);
    stop(&b);
    start(&b);
    expect(&b, BOOT_UNKNOWN, "Unknown reboot reason - power failure or crash - at 20", 1);
    stop(&b);

    device_write(&b.device, "persist/reboot-reason", STR("NORMAL: controller reboot at X\n"));
    device_write(&b.device, "persist/boot-reason", STR("BootReasonRebootCmd"));
    start(&b);
    expect(&b, BOOT_REBOOT_COMMAND, "NORMAL: controller reboot at X", 2);
    assert_true(node_json_time_us(json_get(status(&b), STR("RebootTime"))) > 0);
    assert_null(device_read(&b.device, "persist/reboot-reason").p);
    assert_null(device_read(&b.device, "persist/boot-reason").p);
    assert_str(device_read(&b.device, "persist/status/restartcounter"), "3");
    stop(&b);
    start(&b);
    expect(&b, BOOT_UNKNOWN, "Unknown reboot reason", 3);
    stop(&b);
    device_done(&b.device);
}

TEST(last_words_may_be_anything)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    stop(&b);
    struct buf stack = {0};
    for (int i = 0; i < 1000; i++)
        buf_append_str(&stack, STR("a\xc3\xa4"));
    device_write(&b.device, "persist/reboot-reason", STR("died \xff of \x80 something"));
    device_write(&b.device, "persist/boot-reason", STR("of a newer version"));
    device_write(&b.device, "persist/reboot-stack", buf_str(&stack));
    device_write(&b.device, "persist/reboot-image", STR("IMGB\n"));
    device_write(&b.device, "persist/status/restartcounter", STR("nonsense"));
    buf_done(&stack);
    start(&b);
    expect(&b, BOOT_PARSE_FAIL, "died ? of ? something", 0);
    const struct str cut = json_get_str(status(&b), STR("RebootStack"));
    assert_true(str_starts_with(cut, STR("Truncated stack: a\xc3\xa4")));
    assert_true(cut.n > 1500 && cut.n < 1700 && str_is_utf8(cut));
    assert_str(json_get_str(status(&b), STR("RebootImage")), "IMGB");
    stop(&b);
    device_done(&b.device);
}

TEST(names_of_reasons_are_those_of_eve)
{
    static const enum boot_reason all[] = {BOOT_FIRST, BOOT_DISCONNECT, BOOT_VAULT_FAILURE,
                                           BOOT_POWEROFF_COMMAND, BOOT_HARDWARE_WATCHDOG};
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        assert_int_equal(boot_reason_parse(str_of(boot_reason_name(all[i]))), all[i]);
    assert_int_equal(boot_reason_parse(STR("")), BOOT_NONE);
    assert_int_equal(boot_reason_parse(STR("BootReasonOOM\n")), BOOT_OUT_OF_MEMORY);
    assert_string_equal(boot_reason_name(BOOT_PARSE_FAIL), "BootReasonParseFail");
}

TEST(the_first_reason_of_a_life_counts)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    assert_int_equal(reasons_leave(b.device.node, STR("fatal: died"), BOOT_FATAL), 0);
    assert_int_equal(reasons_leave(b.device.node, STR("watchdog\n"), BOOT_WATCHDOG_HUNG), 0);
    stop(&b);
    start(&b);
    expect(&b, BOOT_FATAL, "fatal: died at EVE version 13.4.0 at 20", 1);
    assert_true(str_find_str(json_get_str(status(&b), STR("RebootReason")),
                             STR("\nwatchdog at EVE version")) > 0);
    stop(&b);
    device_done(&b.device);
}

/* ---- commands ------------------------------------------------------------------------------- */

#define REBOOT \
    "{\"ConfigGetStatus\":1,\"RebootCmd\":true,\"RequestedRebootReason\":\"NORMAL: controller " \
    "reboot\",\"RequestedBootReason\":2}"

static void set_app(struct bench *b, bool is_activated)
{
    struct json *v = json_new(b->device.arena, json_object());
    json_set(b->device.arena, v, STR("Activated"), json_bool(is_activated));
    assert_int_equal(publication_publish(b->apps, STR("app"), v), 0);
    device_run_turns(&b->device, 3);
}

static bool is_halted(struct bench *b)
{
    return json_get_bool(status(b), STR("AllDomainsHalted"), false);
}

static bool has_written(struct bench *b)
{
    return device_read(&b->device, "persist/boot-reason").p != NULL;
}

TEST(a_command_is_carried_out_once_applications_have_halted)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    set_app(&b, true);
    const int64_t begin_us = b.device.clock.now_us;
    say(&b, REBOOT);
    assert_true(json_get_bool(status(&b), STR("DeviceReboot"), false));
    assert_false(has_written(&b));
    run_until(&b, 1000000, has_written);
    const int64_t written_us = b.device.clock.now_us - begin_us;
    assert_true(written_us >= 30000000 && written_us < 40000000);
    say(&b, REBOOT); /* again */
    b.device.clock.now_us += 60000000;
    device_run_turns(&b.device, 10);
    assert_false(is_halted(&b));
    set_app(&b, false);
    run_until(&b, 0, is_halted);
    assert_int_equal(b.n_restarts, 0);
    run_until(&b, 1000000, has_restarted);
    assert_int_equal(b.n_restarts, 1);
    assert_int_equal(b.how, MACHINE_REBOOT);
    assert_string_equal(b.why, "NORMAL: controller reboot");
    stop(&b);
    b.n_restarts = 0;
    start(&b);
    expect(&b, BOOT_REBOOT_COMMAND, "NORMAL: controller reboot at EVE version 13.4.0 at 20", 1);
    assert_false(json_get_bool(status(&b), STR("DeviceReboot"), true));
    stop(&b);
    device_done(&b.device);
}

TEST(an_application_that_does_not_halt_is_left_behind)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    set_app(&b, true);
    const int64_t begin_us = b.device.clock.now_us;
    say(&b, "{\"ConfigGetStatus\":1,\"PoweroffCmd\":true,\"RequestedRebootReason\":\"off\","
            "\"RequestedBootReason\":14}");
    run_until(&b, 1000000, has_restarted);
    assert_int_equal(b.how, MACHINE_POWEROFF);
    const int64_t took_us = b.restarted_us - begin_us;
    assert_true(took_us >= 360 * INT64_C(1000000) && took_us < 380 * INT64_C(1000000));
    stop(&b);
    start(&b);
    expect(&b, BOOT_POWEROFF_COMMAND, "off at EVE", 1);
    stop(&b);
    device_done(&b.device);
}

TEST(a_shutdown_leaves_the_machine_on)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    say(&b, "{\"ConfigGetStatus\":1,\"ShutdownCmd\":true}");
    run_until(&b, 1000000, is_halted);
    assert_true(json_get_bool(status(&b), STR("DeviceShutdown"), false));
    b.device.clock.now_us += HOUR_US;
    device_run_turns(&b.device, 20);
    assert_int_equal(b.n_restarts, 0);
    assert_false(has_written(&b));
    say(&b, REBOOT);
    assert_false(is_halted(&b));
    run_until(&b, 1000000, has_restarted);
    stop(&b);
    device_done(&b.device);
}

/* ---- without a controller ------------------------------------------------------------------- */

static void run_for(struct bench *b, int64_t us, int64_t step_us)
{
    const int64_t end_us = b->device.clock.now_us + us;
    while (b->device.clock.now_us < end_us) {
        b->device.clock.now_us += step_us;
        device_run_turns(&b->device, 3);
    }
}

TEST(a_week_without_a_controller_is_the_end)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    say(&b, "{\"ConfigGetStatus\":1}");
    run_for(&b, 20 * 24 * HOUR_US, 24 * HOUR_US); /* reached all the time */
    assert_false(json_get_bool(status(&b), STR("DeviceReboot"), true));
    say(&b, "{\"ConfigGetStatus\":2}");
    run_for(&b, 3 * 24 * HOUR_US, 12 * HOUR_US);
    say(&b, "{\"ConfigGetStatus\":3}"); /* it answers, if not with a configuration */
    run_for(&b, 6 * 24 * HOUR_US, 24 * HOUR_US);
    say(&b, "{\"ConfigGetStatus\":4}");
    run_for(&b, 6 * 24 * HOUR_US, 12 * HOUR_US);
    assert_false(json_get_bool(status(&b), STR("DeviceReboot"), true));
    const int64_t lost_us = b.device.clock.now_us - 6 * 24 * HOUR_US;
    run_until(&b, HOUR_US, has_restarted);
    const int64_t took_us = b.restarted_us - lost_us;
    assert_true(took_us > 7 * 24 * HOUR_US && took_us < 8 * 24 * HOUR_US);
    assert_true(
        str_starts_with(str_of(b.why), STR("Exceeded outage for cloud connectivity 604800 by ")));
    stop(&b);
    start(&b);
    expect(&b, BOOT_DISCONNECT, "Exceeded outage for cloud connectivity 604800 by ", 1);
    stop(&b);
    device_done(&b.device);
}

TEST(who_never_was_reached_counts_from_the_start)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    const int64_t begin_us = b.device.clock.now_us;
    run_until(&b, HOUR_US, has_restarted);
    assert_true(b.restarted_us - begin_us > 7 * 24 * HOUR_US);
    stop(&b);
    device_done(&b.device);
}

/* ---- vault ---------------------------------------------------------------------------------- */

static bool is_maintained(struct bench *b)
{
    return json_get_bool(status(b), STR("LocalMaintenanceMode"), false);
}

static bool is_not_maintained(struct bench *b)
{
    return !is_maintained(b);
}

static void set_vault(struct bench *b, int value)
{
    struct json *v = json_new(b->device.arena, json_object());
    json_set(b->device.arena, v, STR("ConversionComplete"), json_bool(true));
    json_set(b->device.arena, v, STR("Status"), json_int(value));
    assert_int_equal(publication_publish(b->vault, STR("Application Data Store"), v), 0);
    device_run_turns(&b->device, 3);
}

TEST(a_vault_that_stays_locked_is_a_case_for_maintenance)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    set_vault(&b, 4);
    run_for(&b, HOUR_US, HOUR_US / 4);
    assert_false(is_maintained(&b));
    const int64_t reached_us = b.device.clock.now_us;
    say(&b, "{\"ConfigGetStatus\":1}");
    run_until(&b, 10000000, is_maintained);
    assert_true(b.device.clock.now_us - reached_us >= 300 * INT64_C(1000000));
    assert_int_equal(json_get(status(&b), STR("LocalMaintenanceModeReasons"))->items[0].i, 2);
    set_vault(&b, 1);
    run_until(&b, 0, is_not_maintained);
    stop(&b);
    device_done(&b.device);
}

/* ---- the image ------------------------------------------------------------------------------ */

static bool has_image(struct bench *b)
{
    return subscription_count(b->images).n_keys == 1;
}

static bool has_no_image(struct bench *b)
{
    return subscription_count(b->images).n_keys == 0;
}

TEST(there_is_one_image_and_it_runs)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    struct arena *a = b.device.arena;
    const struct json *p = subscription_get(a, b.partitions, STR("IMGA"));
    assert_str(json_get_str(p, STR("ShortVersion")), "13.4.0");
    assert_str(json_get_str(p, STR("PartitionState")), "active");
    assert_true(json_get_bool(p, STR("CurrentPartition"), false));
    assert_true(subscription_restarted(b.partitions) > 0);

    struct json *wanted = json_new(a, json_object());
    json_set(a, wanted, STR("BaseOsVersion"), json_string(STR("13.4.0")));
    json_set(a, wanted, STR("ContentTreeUUID"), json_string(STR("u")));
    json_set(a, wanted, STR("Activate"), json_bool(true));
    assert_int_equal(publication_publish(b.wanted, STR("u"), wanted), 0);
    run_until(&b, 0, has_image);
    const struct json *image = subscription_get(a, b.images, STR("u"));
    assert_true(json_get_bool(image, STR("Activated"), false));
    assert_str(json_get_str(image, STR("PartitionLabel")), "IMGA");
    assert_str(json_get_str(image, STR("Error")), "");
    assert_int_equal(publication_unpublish(b.wanted, STR("u")), 0);
    run_until(&b, 0, has_no_image);
    json_set(a, wanted, STR("BaseOsVersion"), json_string(STR("14.0.0")));
    assert_int_equal(publication_publish(b.wanted, STR("u"), wanted), 0);
    run_until(&b, 0, has_image);
    image = subscription_get(a, b.images, STR("u"));
    assert_false(json_get_bool(image, STR("Activated"), true));
    assert_true(json_get_str(image, STR("Error")).n > 0);
    stop(&b);
    device_done(&b.device);
}

TEST(who_comes_second_is_not_needed)
{
    struct bench b;
    struct nodeagent *second = NULL;
    bench_init(&b);
    start(&b);
    assert_int_equal(nodeagent_new(b.device.node, &second), -EADDRINUSE);
    stop(&b);
    device_done(&b.device);
}
