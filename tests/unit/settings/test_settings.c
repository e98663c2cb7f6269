/* SPDX-License-Identifier: Apache-2.0 */
#include "settings/settings.h"

#include <errno.h>

#include "test.h"

static struct json *parse(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json *v = json_parse_quick(a, str_of(copy));
    assert_non_null(v);
    return v;
}

TEST(options_are_judged_by_type_and_range)
{
    static const struct {
        const char *option, *value;
        enum settings_verdict verdict;
        const char *reason;
    } cases[] = {
        {"config.timer.config.interval", "5", SETTINGS_GOOD, ""},
        {"config.timer.config.interval", "86400", SETTINGS_GOOD, ""},
        {"config.timer.config.interval", "4", SETTINGS_BAD,
         "must be an integer between 5 and 86400"},
        {"config.timer.config.interval", "86401", SETTINGS_BAD,
         "must be an integer between 5 and 86400"},
        {"config.timer.config.interval", "+60", SETTINGS_BAD,
         "must be an integer between 5 and 86400"},
        {"config.timer.config.interval", "60s", SETTINGS_BAD,
         "must be an integer between 5 and 86400"},
        {"config.timer.config.interval", "", SETTINGS_BAD,
         "must be an integer between 5 and 86400"},
        {"config.timer.reboot.no.network", "4294967295", SETTINGS_GOOD, ""},
        {"config.timer.reboot.no.network", "4294967296", SETTINGS_BAD,
         "must be an integer between 120 and 4294967295"},
        {"config.debug.enable.usb", "true", SETTINGS_GOOD, ""},
        {"config.debug.enable.usb", "yes", SETTINGS_BAD, "must be true or false"},
        {"config.maintenance.mode", "none", SETTINGS_GOOD, ""},
        {"config.maintenance.mode", "true", SETTINGS_BAD, "must be enabled, disabled or none"},
        {"config.debug.default.loglevel", "trace", SETTINGS_GOOD, ""},
        {"config.debug.default.loglevel", "loud", SETTINGS_BAD,
         "must be none, panic, fatal, error, warning, info, debug, trace or all"},
        {"config.debug.kernel.loglevel", "notice", SETTINGS_GOOD, ""},
        {"config.debug.kernel.loglevel", "trace", SETTINGS_BAD,
         "must be none, emerg, alert, crit, err, warning, notice, info, debug or all"},
        {"config.agent.zedagent.debug.loglevel", "debug", SETTINGS_GOOD, ""},
        {"config.debug.zedagent.remote.loglevel", "x", SETTINGS_BAD,
         "must be none, panic, fatal, error, warning, info, debug, trace or all"},
        {"config.agent..loglevel", "x", SETTINGS_UNKNOWN, ""},
        {"config.agent.zedagent.colour", "x", SETTINGS_UNKNOWN, ""},
        {"config.debug.enable.ssh", "ssh-ed25519 AAAA me", SETTINGS_GOOD, ""},
        {"config.vector.config", "YWJj", SETTINGS_GOOD, ""},
        {"config.vector.config", "not base64", SETTINGS_BAD, "must be base64"},
        {"config.no.such.item", "x", SETTINGS_UNKNOWN, ""},
        {"config.", "x", SETTINGS_UNKNOWN, ""},
        {"attestation", "off", SETTINGS_GOOD, ""},
        {"attestation", "report", SETTINGS_GOOD, ""},
        {"attestation", "enforce", SETTINGS_GOOD, ""},
        {"attestation", "on", SETTINGS_BAD, "must be off, report or enforce"},
        {"registration", "open", SETTINGS_GOOD, ""},
        {"registration", "closed", SETTINGS_GOOD, ""},
        {"registration", "opened", SETTINGS_BAD, "must be closed or open"},
        {"registration.namespace", "enterprise1", SETTINGS_GOOD, ""},
        {"registration.namespace", "Not A Name", SETTINGS_BAD, "must be the name of a namespace"},
        {"registration.namespace", "-a", SETTINGS_BAD, "must be the name of a namespace"},
        {"registration.namespace", "", SETTINGS_BAD, "must be the name of a namespace"},
        {"telemetry.retention", "30d", SETTINGS_GOOD, ""},
        {"telemetry.retention", "59s", SETTINGS_BAD,
         "must be a duration of at least a minute, such as 12h, 30d or 1d12h"},
        {"telemetry.retention", "30", SETTINGS_BAD,
         "must be a duration of at least a minute, such as 12h, 30d or 1d12h"},
        {"colour", "blue", SETTINGS_UNKNOWN, ""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str reason = STR("");
        const enum settings_verdict v =
            settings_judge(a, str_of(cases[i].option), str_of(cases[i].value), &reason);
        if (v != cases[i].verdict)
            fail_msg("%s=%s: %d", cases[i].option, cases[i].value, v);
        assert_str(reason, cases[i].reason);
    }
}

TEST(durations_have_units_and_are_bounded)
{
    static const struct {
        const char *text;
        int64_t s; /* 0: refused */
    } cases[] = {
        {"1s", 1},       {"90m", 5400},     {"12h", 43200}, {"30d", 2592000},
        {"2w", 1209600}, {"1d12h", 129600}, {"", 0},        {"0s", 0},
        {"h", 0},        {"1", 0},          {"1h2", 0},     {"-1h", 0},
        {"1y", 0},       {"1.5h", 0},       {"999999w", 0}, {"99999999999999999999s", 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int64_t s = 0;
        const int r = settings_parse_duration(str_of(cases[i].text), &s);
        assert_int_equal(r, cases[i].s ? 0 : -EINVAL);
        assert_int_equal(s, cases[i].s);
    }
}

TEST(the_nearest_option_that_is_not_bad_wins)
{
    ARENA_AUTO a = arena_new();
    const struct settings_sources s = {
        .annotations = parse(a, "{'eve.lfedge.org/config.timer.config.interval':'10',"
                                "'eve.lfedge.org/attestation':'nonsense',"
                                "'eve.lfedge.org/activate':'true',"
                                "'config.app.allow.vnc':'true','example.org/attestation':'off'}"),
        .namespace = parse(a, "{'config.timer.config.interval':'20','attestation':'enforce',"
                              "'config.debug.enable.usb':'true','config.zz':'1'}"),
        .global = parse(a, "{'config.timer.config.interval':'30','attestation':'off',"
                           "'telemetry.retention':'2d','config.debug.enable.usb':'false',"
                           "'config.timer.metric.interval':'bad'}"),
    };
    assert_str(settings_find(&s, STR("config.timer.config.interval")), "10");
    assert_int_equal(settings_poll_interval_s(&s), 10);
    assert_int_equal(settings_attestation(&s), SETTINGS_ATTESTATION_ENFORCE);
    assert_int_equal(settings_retention_s(&s, 7), 172800);
    assert_null(settings_find(&s, STR("registration")).p);

    struct settings_item *items = NULL;
    assert_int_equal(settings_items(a, &s, &items), 3);
    assert_str(items[0].name, "debug.enable.usb");
    assert_str(items[0].value, "true");
    assert_int_equal(items[0].from, SETTINGS_NAMESPACE);
    assert_str(items[1].name, "timer.config.interval");
    assert_str(items[1].value, "10");
    assert_int_equal(items[1].from, SETTINGS_DEVICE);
    assert_str(items[2].name, "zz");
}

TEST(without_options_there_are_defaults)
{
    ARENA_AUTO a = arena_new();
    const struct settings_sources none = {.annotations = NULL};
    struct settings_item *items = NULL;
    assert_int_equal(settings_items(a, &none, &items), 0);
    assert_int_equal(settings_attestation(&none), SETTINGS_ATTESTATION_REPORT);
    assert_int_equal(settings_retention_s(&none, 7), 7);
    assert_int_equal(settings_poll_interval_s(&none), 60);
    assert_false(settings_registration(NULL).is_open);
}

TEST(registration_names_its_namespace)
{
    ARENA_AUTO a = arena_new();
    struct settings_registration r = settings_registration(parse(a, "{'registration':'open'}"));
    assert_true(r.is_open);
    assert_str(r.namespace, "default");
    r = settings_registration(parse(a, "{'registration':'open','registration.namespace':'a-1'}"));
    assert_true(r.is_open);
    assert_str(r.namespace, "a-1");
    r = settings_registration(parse(a, "{'registration':'open','registration.namespace':'-'}"));
    assert_str(r.namespace, "default");
    assert_false(settings_registration(parse(a, "{'registration':'closed'}")).is_open);
    assert_false(settings_registration(parse(a, "{'registration':'anybody'}")).is_open);
}

TEST(only_our_annotations_and_config_maps_hold_options)
{
    assert_str(settings_of_annotation(STR("eve.lfedge.org/config.x")), "config.x");
    assert_str(settings_of_annotation(STR("eve.lfedge.org/attestation")), "attestation");
    assert_null(settings_of_annotation(STR("eve.lfedge.org/activate")).p);
    assert_null(settings_of_annotation(STR("eve.lfedge.org/config.")).p);
    assert_null(settings_of_annotation(STR("example.org/config.x")).p);
    assert_true(settings_is_options(STR("eve-system"), STR("global-options")));
    assert_false(settings_is_options(STR("a"), STR("global-options")));
    assert_true(settings_is_options(STR("a"), STR("eve-options")));
    assert_false(settings_is_options(STR("a"), STR("b")));
    assert_true(settings_is_global(STR("registration")));
    assert_false(settings_is_global(STR("attestation")));
}
