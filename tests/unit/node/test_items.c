/* SPDX-License-Identifier: Apache-2.0 */
#include "node/items.h"

#include <errno.h>

#include "test.h"

TEST(what_nobody_set_has_its_default)
{
    struct items *i = items_new();
    assert_int_equal(items_int(i, "timer.config.interval"), 60);
    assert_int_equal(items_int(i, "timer.reboot.no.network"), 604800);
    assert_int_equal(items_int(i, "storage.dom0.disk.maxusagebytes"), (int64_t) 2 << 30);
    assert_true(items_bool(i, "debug.enable.usb"));
    assert_false(items_bool(i, "newlog.allow.fastupload"));
    assert_int_equal(items_tristate(i, "network.fallback.any.eth"), ITEMS_DISABLED);
    assert_int_equal(items_tristate(i, "maintenance.mode"), ITEMS_NONE);
    assert_str(items_text(i, "debug.default.loglevel"), "info");
    assert_str(items_text(i, "debug.enable.ssh"), "");
    assert_str(items_agent_level(i, STR("nim"), /* is_remote= */ true), "info");
    items_free(i);
}

TEST(a_controller_sets_within_bounds_and_the_rest_returns_to_its_default)
{
    static const struct {
        const char *name, *value;
        int result;
        int64_t interval_s; /* of the configuration's cycle, afterwards */
    } steps[] = {
        {"timer.config.interval", "5", 0, 5},
        {"timer.config.interval", "4", -EINVAL, 5},
        {"timer.config.interval", "86401", -EINVAL, 5},
        {"timer.config.interval", "sixty", -EINVAL, 5},
        {"timer.config.interval", "", -EINVAL, 5},
        {"timer.config.interval", "86400", 0, 86400},
        {"debug.enable.usb", "maybe", -EINVAL, 60},
        {"no.such.item", "1", -ENOENT, 60},
        {"agent.nim.debug.loglevel", "debug", 0, 60},
        {"agent.nim.debug.loglevel", "loud", -EINVAL, 60},
        {"agent.nim.colour", "red", -ENOENT, 60},
    };
    struct items *i = items_new();
    for (size_t k = 0; k < N_ELEMENTS(steps); k++) {
        items_begin(i);
        const int r = items_set(i, str_of(steps[k].name), str_of(steps[k].value));
        if (r != steps[k].result)
            fail_msg("%s=%s: %d", steps[k].name, steps[k].value, r);
        assert_int_equal(items_int(i, "timer.config.interval"), steps[k].interval_s);
        /* True until a controller has spoken. */
        assert_false(items_bool(i, "debug.enable.vga"));
    }
    items_free(i);
}

TEST(a_bad_value_keeps_the_one_of_before_and_is_reported)
{
    ARENA_AUTO a = arena_new();
    struct items *i = items_new();
    struct items_status *s;
    items_begin(i);
    assert_int_equal(items_set(i, STR("timer.metric.interval"), STR("30")), 0);
    assert_int_equal(items_set(i, STR("debug.enable.ssh"), STR("ssh-ed25519 AAAA me")), 0);
    assert_int_equal(items_set(i, STR("debug.nim.loglevel"), STR("trace")), 0);
    items_begin(i);
    assert_int_equal(items_set(i, STR("timer.metric.interval"), STR("1")), -EINVAL);
    assert_int_equal(items_set(i, STR("debug.nim.loglevel"), STR("very")), -EINVAL);
    assert_int_equal(items_set(i, STR("a.b"), STR("c")), -ENOENT);
    assert_int_equal(items_set(i, STR("maintenance.mode"), STR("enabled")), 0);
    assert_int_equal(items_int(i, "timer.metric.interval"), 30);
    assert_str(items_text(i, "debug.enable.ssh"), "");
    assert_str(items_agent_level(i, STR("nim"), /* is_remote= */ false), "trace");
    assert_int_equal(items_statuses(a, i, &s), 4);
    assert_str(s[0].name, "timer.metric.interval");
    assert_str(s[0].value, "30");
    assert_str(s[0].error, "'1': must be an integer between 5 and 3600");
    assert_str(s[1].value, "trace");
    assert_non_null(s[1].error.p);
    assert_str(s[2].value, "c");
    assert_str(s[2].error, "'c': nobody knows this item");
    assert_str(s[3].value, "enabled");
    assert_null(s[3].error.p);
    items_free(i);
}

TEST(an_item_named_twice_is_reported_once)
{
    ARENA_AUTO a = arena_new();
    struct items *i = items_new();
    struct items_status *s;
    items_begin(i);
    assert_int_equal(items_set(i, STR("app.allow.vnc"), STR("what")), -EINVAL);
    assert_int_equal(items_set(i, STR("app.allow.vnc"), STR("true")), 0);
    assert_int_equal(items_statuses(a, i, &s), 1);
    assert_null(s[0].error.p);
    assert_str(s[0].value, "true");
    items_free(i);
}

static void check_read(struct items *to, const struct json *map)
{
    assert_int_equal(items_read(to, map), 0);
    assert_int_equal(items_int(to, "timer.config.interval"), 7);
    assert_true(items_bool(to, "debug.enable.console"));
    assert_false(items_bool(to, "debug.enable.usb"));
    assert_int_equal(items_tristate(to, "airgap.mode"), ITEMS_ENABLED);
    assert_str(items_text(to, "debug.enable.ssh"), "key");
    assert_str(items_agent_level(to, STR("zedagent"), /* is_remote= */ true), "none");
}

TEST(the_topic_carries_everything_there_and_back)
{
    ARENA_AUTO a = arena_new();
    struct items *from = items_new(), *to = items_new();
    items_begin(from);
    assert_int_equal(items_set(from, STR("timer.config.interval"), STR("7")), 0);
    assert_int_equal(items_set(from, STR("debug.enable.console"), STR("true")), 0);
    assert_int_equal(items_set(from, STR("airgap.mode"), STR("enabled")), 0);
    assert_int_equal(items_set(from, STR("debug.enable.ssh"), STR("key")), 0);
    assert_int_equal(items_set(from, STR("agent.zedagent.debug.remote.loglevel"), STR("none")), 0);
    const struct json *map = items_write(a, from);
    assert_str(
        json_text(a, json_at(map, "GlobalSettings", "timer.config.interval", NULL)),
        "{\"BoolValue\":false,\"IntValue\":7,\"ItemType\":1,\"Key\":\"timer.config.interval\","
        "\"StrValue\":\"\",\"TriStateValue\":0}");
    assert_str(json_text(a, json_get(map, STR("AgentSettings"))),
               "{\"zedagent\":{\"debug.remote.loglevel\":{\"BoolValue\":false,\"IntValue\":0,"
               "\"ItemType\":3,\"Key\":\"debug.remote.loglevel\",\"StrValue\":\"none\","
               "\"TriStateValue\":0}}}");
    check_read(to, json_parse_quick(a, json_text(a, map)));
    const struct str brief = json_text(a, items_write_brief(a, from));
    assert_true(brief.n < 1500);
    check_read(to, json_parse_quick(a, brief));
    items_free(from);
    items_free(to);
}

TEST(a_topic_of_another_version_is_read_leniently)
{
    static const char *const texts[] = {
        "{}",
        "{\"GlobalSettings\":null,\"AgentSettings\":[]}",
        "{\"GlobalSettings\":{\"timer.config.interval\":{\"ItemType\":3,\"StrValue\":\"9\"},"
        "\"unknown\":{\"ItemType\":1,\"IntValue\":3},\"maintenance.mode\":{\"ItemType\":4,"
        "\"TriStateValue\":9}},\"AgentSettings\":{\"nim\":7}}",
    };
    ARENA_AUTO a = arena_new();
    struct items *i = items_new();
    for (size_t k = 0; k < N_ELEMENTS(texts); k++) {
        assert_int_equal(items_read(i, json_parse_quick(a, str_of(texts[k]))), 0);
        assert_int_equal(items_int(i, "timer.config.interval"), 60);
        assert_int_equal(items_tristate(i, "maintenance.mode"), ITEMS_NONE);
    }
    assert_int_equal(items_read(i, json_parse_quick(a, STR("[1]"))), -EINVAL);
    assert_int_equal(items_read(i, NULL), -EINVAL);
    items_free(i);
}
