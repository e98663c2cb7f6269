/* SPDX-License-Identifier: Apache-2.0 */
/* What is ordered nearby: obeyed once, kept across lives, taken back when the controller says so.
 */
#include "zedagent/local.h"

#include <inttypes.h>

#include "desk.h"
#include "protobuf/message.h"
#include "test.h"

#define APP "0a000000-0000-4000-8000-000000000001"
#define OTHER "0a000000-0000-4000-8000-000000000002"
#define VOLUME "0b000000-0000-4000-8000-000000000001"
#define WITH_SERVER \
    "\"localProfileServer\":\"10.1.0.2\",\"profileServerToken\":\"secret\"," \
    "\"globalProfile\":\"global\","
#define APPS \
    "\"volumes\":[{\"uuid\":\"" VOLUME "\",\"generationCount\":\"3\"}]," \
    "\"apps\":[{\"uuidandversion\":{\"uuid\":\"" APP "\",\"version\":\"1\"}," \
    "\"displayname\":\"one\",\"activate\":true,\"fixedresources\":{\"boot_order\":2}," \
    "\"volumeRefList\":[{\"uuid\":\"" VOLUME "\",\"generationCount\":\"3\"}]}," \
    "{\"uuidandversion\":{\"uuid\":\"" OTHER "\",\"version\":\"1\"},\"displayname\":\"two\"}]"
#define CONFIG(rest) "{\"id\":{\"uuid\":\"" DEVICE_UUID "\",\"version\":\"1\"}," rest "}"

static void begin(struct desk *k)
{
    desk_init(k);
    desk_start(k);
    assert_int_equal(desk_apply(k, CONFIG(WITH_SERVER APPS)), APPLY_OK);
}

static void begin_again(struct desk *k)
{
    desk_stop(k);
    desk_start(k);
}

static struct str profile(struct desk *k)
{
    return json_get_str(desk_status(k), STR("CurrentProfile"));
}

static int64_t counter(struct desk *k, const char *app, const char *name)
{
    return json_get_int(json_get(desk_published(k, SECTION_APPS, app), str_of(name)),
                        STR("Counter"), -1);
}

/* ---- the profile ---------------------------------------------------------------------------- */

TEST(a_local_profile_overrides_the_global_one_and_outlives_its_server)
{
    struct desk k;
    begin(&k);
    assert_str(profile(&k), "global");
    zedagent_take_profile(k.z, STR("night"));
    assert_str(profile(&k), "night");
    begin_again(&k);
    assert_str(profile(&k), "night");
    assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER APPS)), APPLY_OK);
    assert_str(profile(&k), "night");
    zedagent_take_profile(k.z, STR(""));
    assert_str(profile(&k), "global");
    desk_done(&k);
}

TEST(without_a_server_its_profile_is_forgotten)
{
    struct desk k;
    begin(&k);
    zedagent_take_profile(k.z, STR("night"));
    assert_int_equal(desk_apply(&k, CONFIG("\"globalProfile\":\"global\"," APPS)), APPLY_OK);
    assert_str(profile(&k), "global");
    assert_null(device_read(&k.d, "persist/checkpoint/lastlocalprofile").p);
    begin_again(&k);
    assert_str(profile(&k), "");
    desk_done(&k);
}

TEST(an_endless_name_of_a_profile_is_not_taken)
{
    struct desk k;
    begin(&k);
    char *name = arena_alloc(k.d.arena, LOCAL_MAX_PROFILE_BYTES + 1);
    memset(name, 'x', LOCAL_MAX_PROFILE_BYTES + 1);
    zedagent_take_profile(k.z, str_range(name, LOCAL_MAX_PROFILE_BYTES + 1));
    assert_str(profile(&k), "global");
    zedagent_take_profile(k.z, str_range(name, LOCAL_MAX_PROFILE_BYTES));
    assert_int_equal(profile(&k).n, LOCAL_MAX_PROFILE_BYTES);
    desk_done(&k);
}

/* ---- applications --------------------------------------------------------------------------- */

static void command(struct desk *k, const char *id, const char *name, int what, uint64_t timestamp)
{
    Eve__Profile__LocalAppCmdList list = EVE__PROFILE__LOCAL_APP_CMD_LIST__INIT;
    Eve__Profile__AppCommand c = EVE__PROFILE__APP_COMMAND__INIT, *all[] = {&c};
    c.id = (char *) (uintptr_t) id;
    c.displayname = (char *) (uintptr_t) name;
    c.command = (Eve__Profile__AppCommand__Command) what;
    c.timestamp = timestamp;
    list.app_commands = all;
    list.n_app_commands = 1;
    zedagent_take_app_commands(k->z, &list);
}

TEST(a_restart_counts_up_once_for_each_timestamp)
{
    struct desk k;
    begin(&k);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 0);
    command(&k, APP, "", 1, 100);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 1);
    command(&k, "", "one", 1, 100);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 1);
    command(&k, "", "one", 1, 99);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 2);
    begin_again(&k);
    /* The same configuration after a restart: nothing restarts again. */
    assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER APPS)), APPLY_OK);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 2);
    command(&k, APP, "one", 1, 99);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 2);
    assert_int_equal(counter(&k, OTHER, "LocalRestartCmd"), 0);
    desk_done(&k);
}

static int64_t reference(struct desk *k)
{
    const struct json *refs =
        json_get(desk_published(k, SECTION_APPS, APP), STR("VolumeRefConfigList"));
    return json_get_int(&refs->items[0], STR("LocalGenerationCounter"), -1);
}

TEST(a_purge_makes_the_volumes_anew)
{
    struct desk k;
    begin(&k);
    assert_non_null(desk_published(&k, SECTION_VOLUMES, VOLUME "#3"));
    command(&k, APP, "", 2, 5);
    assert_null(desk_published(&k, SECTION_VOLUMES, VOLUME "#3"));
    const struct json *volume = desk_published(&k, SECTION_VOLUMES, VOLUME "#4");
    assert_int_equal(json_get_int(volume, STR("GenerationCounter"), 0), 3);
    assert_int_equal(json_get_int(volume, STR("LocalGenerationCounter"), 0), 1);
    assert_int_equal(counter(&k, APP, "LocalPurgeCmd"), 1);
    assert_int_equal(reference(&k), 1);
    begin_again(&k);
    assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER "\"deviceName\":\"b\"," APPS)), APPLY_OK);
    assert_non_null(desk_published(&k, SECTION_VOLUMES, VOLUME "#4"));
    assert_null(desk_published(&k, SECTION_VOLUMES, VOLUME "#3"));
    assert_int_equal(counter(&k, APP, "LocalPurgeCmd"), 1);
    assert_int_equal(reference(&k), 1);
    desk_done(&k);
}

TEST(what_is_gone_is_forgotten)
{
    struct desk k;
    begin(&k);
    command(&k, APP, "", 2, 5);
    assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER "\"deviceName\":\"b\"")), APPLY_OK);
    assert_str(device_read(&k.d, "persist/checkpoint/appCommands"),
               "{\"AppCommands\":{},\"AppCounters\":{},\"VolumeGenCounters\":{}}");
    assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER APPS)), APPLY_OK);
    assert_int_equal(counter(&k, APP, "LocalPurgeCmd"), 0);
    assert_non_null(desk_published(&k, SECTION_VOLUMES, VOLUME "#3"));
    desk_done(&k);
}

TEST(commands_that_make_no_sense_change_nothing)
{
    static const struct {
        const char *id, *name;
        int what;
        uint64_t timestamp;
    } cases[] = {
        {"", "", 1, 1},
        {"nobody", "", 1, 1},
        {"0a000000-0000-4000-8000-000000000009", "", 1, 1},
        {APP, "two", 1, 1},
        {APP, "", 0, 1},
        {APP, "", 3, 1},
        {APP, "", -1, 1},
        {APP, "", 1, (uint64_t) INT64_MAX + 1},
        {"00000000-0000-0000-0000-000000000000", "", 2, 1},
    };
    struct desk k;
    begin(&k);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        command(&k, cases[i].id, cases[i].name, cases[i].what, cases[i].timestamp);
        assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 0);
        assert_int_equal(counter(&k, APP, "LocalPurgeCmd"), 0);
        assert_null(device_read(&k.d, "persist/checkpoint/appCommands").p);
    }
    desk_done(&k);
}

TEST(of_many_commands_one_is_for_each_application)
{
    struct desk k;
    Eve__Profile__LocalAppCmdList list = EVE__PROFILE__LOCAL_APP_CMD_LIST__INIT;
    begin(&k);
    list.n_app_commands = 4 * LOCAL_MAX_APPS;
    list.app_commands = ARENA_ARRAY(k.d.arena, Eve__Profile__AppCommand *, list.n_app_commands);
    for (size_t i = 0; i < list.n_app_commands; i++) {
        Eve__Profile__AppCommand *c = ARENA_NEW(k.d.arena, Eve__Profile__AppCommand);
        eve__profile__app_command__init(c);
        c->displayname = (char *) (uintptr_t) "one";
        c->command = EVE__PROFILE__APP_COMMAND__COMMAND__COMMAND_RESTART;
        c->timestamp = i + 1;
        list.app_commands[i] = c;
    }
    zedagent_take_app_commands(k.z, &list);
    assert_int_equal(counter(&k, APP, "LocalRestartCmd"), 1);
    desk_done(&k);
}

static bool is_acknowledged(void *arg)
{
    return zedagent_app_command_done(((struct desk *) arg)->z, STR(APP)) == 7;
}

TEST(a_command_is_acknowledged_when_it_is_carried_out)
{
    struct desk k;
    struct publication *apps;
    const struct pubsub_name name = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")};
    begin(&k);
    command(&k, APP, "", 1, 7);
    assert_int_equal(publication_new(k.d.node->pubsub, &name, &apps), 0);
    struct json *v = json_new(k.d.arena, json_object());
    json_set(k.d.arena, v, STR("RestartInprogress"), json_int(2));
    json_set(k.d.arena, v, STR("RestartStartedAt"),
             *node_json_time(k.d.arena, k.d.node->clock->wall_us(k.d.node->clock) + 1));
    assert_int_equal(publication_publish(apps, STR(APP), v), 0);
    device_run_turns(&k.d, 10);
    assert_int_equal(zedagent_app_command_done(k.z, STR(APP)), 0);
    json_set(k.d.arena, v, STR("RestartInprogress"), json_int(0));
    assert_int_equal(publication_publish(apps, STR(APP), v), 0);
    device_run_until(&k.d, is_acknowledged, &k);
    assert_null(k.z->local.apps);
    publication_free(apps);
    begin_again(&k);
    assert_int_equal(zedagent_app_command_done(k.z, STR(APP)), 7);
    desk_done(&k);
}

TEST(damaged_commands_of_an_earlier_life_are_passed_over)
{
    static const char *const texts[] = {"x", "[]", "{\"AppCommands\":7,\"AppCounters\":[1]}",
                                        "{\"VolumeGenCounters\":{\"" VOLUME "\":\"x\"}}"};
    struct desk k;
    desk_init(&k);
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        desk_leave(&k, "persist/checkpoint/appCommands", str_of(texts[i]));
        desk_start(&k);
        assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER APPS)), APPLY_OK);
        command(&k, APP, "", 2, 1);
        assert_int_equal(counter(&k, APP, "LocalPurgeCmd"), 1);
        desk_stop(&k);
    }
    desk_start(&k);
    desk_done(&k);
}

/* ---- boot orders ---------------------------------------------------------------------------- */

static void order(struct desk *k, const char *id, int what)
{
    Eve__Profile__AppBootConfigList list = EVE__PROFILE__APP_BOOT_CONFIG_LIST__INIT;
    Eve__Profile__AppBootConfig c = EVE__PROFILE__APP_BOOT_CONFIG__INIT, *all[] = {&c};
    c.id = (char *) (uintptr_t) (id ? id : "");
    c.usb_boot = (Eve__Common__BootOrder) what;
    list.app_configs = all;
    list.n_app_configs = id ? 1 : 0;
    zedagent_take_boot_orders(k->z, &list);
}

static void assert_order(struct desk *k, int wanted, int source)
{
    const struct json *app = desk_published(k, SECTION_APPS, APP);
    assert_int_equal(json_get_int(json_get(app, STR("FixedResources")), STR("BootOrder"), -1),
                     wanted);
    assert_int_equal(json_get_int(app, STR("BootOrderSource"), -1), source);
}

TEST(a_local_boot_order_overrides_the_controllers_until_it_is_taken_back)
{
    struct desk k;
    begin(&k);
    assert_order(&k, 2, 2);
    order(&k, APP, 1);
    assert_order(&k, 1, 1);
    begin_again(&k);
    assert_int_equal(desk_apply(&k, CONFIG(WITH_SERVER APPS)), APPLY_OK);
    assert_order(&k, 1, 1);
    order(&k, APP, 77);
    assert_order(&k, 2, 2);
    order(&k, APP, 1);
    order(&k, NULL, 0);
    assert_order(&k, 2, 2);
    desk_done(&k);
}

/* ---- the device ----------------------------------------------------------------------------- */

static void order_device(struct desk *k, int what, uint64_t timestamp)
{
    Eve__Profile__LocalDevCmd c = EVE__PROFILE__LOCAL_DEV_CMD__INIT;
    c.command = (Eve__Profile__LocalDevCmd__Command) what;
    c.timestamp = timestamp;
    zedagent_take_device_command(k->z, &c);
}

TEST(device_commands_are_obeyed_once_and_stop_applications)
{
    static const struct {
        int what;
        const char *flag;
        int boot_reason, state;
    } cases[] = {
        {1, "ShutdownCmd", 0, ZEDAGENT_PREPARING_POWEROFF},
        {2, "PoweroffCmd", 14, ZEDAGENT_PREPARING_POWEROFF},
        {3, "RebootCmd", 2, ZEDAGENT_REBOOTING},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct desk k;
        begin(&k);
        order_device(&k, cases[i].what, UINT64_MAX - i);
        assert_true(json_get_bool(desk_status(&k), str_of(cases[i].flag), false));
        assert_int_equal(json_get_int(desk_status(&k), STR("RequestedBootReason"), -1),
                         cases[i].boot_reason);
        assert_int_equal(json_get_int(desk_status(&k), STR("DeviceState"), -1), cases[i].state);
        assert_false(json_get_bool(desk_published(&k, SECTION_APPS, APP), STR("Activate"), true));
        begin_again(&k);
        assert_true(zedagent_device_command_done(k.z) == UINT64_MAX - i);
        order_device(&k, cases[i].what, UINT64_MAX - i);
        assert_false(json_get_bool(desk_status(&k), str_of(cases[i].flag), true));
        desk_done(&k);
    }
}

TEST(nonsense_is_no_command_to_the_device)
{
    struct desk k;
    begin(&k);
    order_device(&k, 0, 1);
    order_device(&k, 5, 1);
    order_device(&k, -1, 1);
    order_device(&k, INT32_MAX, 1);
    assert_false(zedagent_facts(k.z)->is_rebooting);
    assert_int_equal(zedagent_device_command_done(k.z), 0);
    desk_done(&k);
}

TEST(a_device_command_waits_for_the_test_of_an_update)
{
    struct desk k;
    begin(&k);
    desk_say_nodeagent(&k, "{\"UpdateInprogress\":true}");
    order_device(&k, 3, 9);
    assert_false(zedagent_facts(k.z)->is_rebooting);
    assert_int_equal(zedagent_device_command_done(k.z), 0);
    desk_say_nodeagent(&k, "{\"UpdateInprogress\":false}");
    assert_true(json_get_bool(desk_status(&k), STR("RebootCmd"), false));
    desk_done(&k);
}

TEST(information_is_collected_by_who_can)
{
    struct desk k;
    begin(&k);
    order_device(&k, 4, 1700000000000000000);
    const struct json *v = publication_get(k.d.arena, k.z->topics.collect_info, STR("command"));
    assert_str(json_get_str(v, STR("Time")), "2023-11-14T22:13:20Z");
    assert_false(zedagent_facts(k.z)->is_rebooting);
    order_device(&k, 4, UINT64_MAX);
    assert_true(zedagent_device_command_done(k.z) == UINT64_MAX);
    desk_done(&k);
}

TEST(a_damaged_timestamp_is_none)
{
    static const char *const texts[] = {"x", "-1", "18446744073709551616", "123456789012345678901",
                                        "1 "};
    struct desk k;
    desk_init(&k);
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        desk_leave(&k, "persist/status/lastdevcmdtimestamp", str_of(texts[i]));
        desk_start(&k);
        assert_int_equal(zedagent_device_command_done(k.z), 0);
        desk_stop(&k);
    }
    desk_start(&k);
    desk_done(&k);
}

/* ---- radios --------------------------------------------------------------------------------- */

static const struct json *silence(struct desk *k)
{
    return json_get(desk_status(k), STR("RadioSilence"));
}

static bool is_settled(void *arg)
{
    return !zedagent_radio(((struct desk *) arg)->z).is_changing;
}

TEST(radio_silence_is_imposed_until_nim_says_so_and_again_after_a_restart)
{
    struct desk k;
    struct publication *nim;
    const struct pubsub_name name = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    begin(&k);
    zedagent_take_radio_silence(k.z, true);
    assert_true(json_get_bool(silence(&k), STR("Imposed"), false));
    assert_true(json_get_bool(silence(&k), STR("ChangeInProgress"), false));
    assert_int_equal(publication_new(k.d.node->pubsub, &name, &nim), 0);
    struct json *v = json_new(k.d.arena, json_object());
    struct json echo = json_clone(k.d.arena, silence(&k));
    json_set(k.d.arena, v, STR("RadioSilence"), echo);
    assert_int_equal(publication_publish(nim, STR("global"), v), 0);
    device_run_turns(&k.d, 10);
    assert_true(zedagent_radio(k.z).is_changing);
    json_set(k.d.arena, json_get(v, STR("RadioSilence")), STR("ChangeInProgress"),
             json_bool(false));
    assert_int_equal(publication_publish(nim, STR("global"), v), 0);
    device_run_until(&k.d, is_settled, &k);
    assert_false(json_get_bool(silence(&k), STR("ChangeInProgress"), true));
    publication_free(nim);
    begin_again(&k);
    assert_true(json_get_bool(silence(&k), STR("Imposed"), false));
    /* Nobody is left who could end it. */
    assert_int_equal(desk_apply(&k, CONFIG(APPS)), APPLY_OK);
    assert_false(json_get_bool(silence(&k), STR("Imposed"), true));
    desk_done(&k);
}
