/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "site.h"

#include "base/alloc.h"

static struct str error_of(struct site *s, const char *app)
{
    return json_get_str(site_told(s, OUT_APP, app), STR("Error"));
}

TEST(an_application_comes_goes_and_leaves_nothing)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    assert_str(buf_str(&s.story), "100 101 102 103 104 105 106 107 109 114 115");
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    assert_int_equal(s.errors, 0);
    const struct json *status = site_told(&s, OUT_APP, WEB);
    assert_true(json_get_bool(status, STR("Activated"), false));
    assert_true(node_json_time_us(json_get(status, STR("BootTime"))) > 0);
    assert_str(json_str(json_at(status, "UUIDandVersion", "Version", NULL)), "1");
    assert_int_equal(json_get_int(site_told(&s, OUT_VOLUME, VOLUME "#0"), STR("State"), 0),
                     SW_CREATED_VOLUME);
    assert_int_equal(json_get_int(site_told(&s, OUT_CONTENT, CONTENT), STR("State"), 0), SW_LOADED);
    assert_int_equal(json_get_int(site_told(&s, OUT_SUMMARY, "global"), STR("TotalRunning"), 0), 1);
    struct apps_counts counts = apps_counts(s.apps);
    assert_int_equal(counts.applications, 1);
    assert_int_equal(counts.running, 1);
    assert_true(device_read(&s.device, "persist/apps/" WEB ".json").n > 0);

    buf_reset(&s.story);
    s.config = (struct site_config){.has_store = true};
    site_configure(&s);
    site_run(&s, 120);
    assert_str(buf_str(&s.story), "118 119 gone");
    assert_int_equal(site_objects(&s), 0);
    for (int i = 0; i < N_OUT; i++)
        if (i != OUT_SUMMARY)
            assert_int_equal(site_count(&s, (enum apps_out) i), 0);
    assert_int_equal(device_read(&s.device, "persist/apps/" WEB ".json").n, 0);
    assert_int_equal(device_read(&s.device, "persist/apps/content-" CONTENT).n, 0);
    assert_int_equal(json_get_int(site_told(&s, OUT_SUMMARY, "global"), STR("TotalRunning"), 9), 0);
    site_done(&s);
}

TEST(a_volume_survives_what_its_application_goes_through)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    int64_t made_us =
        node_json_time_us(json_get(site_told(&s, OUT_VOLUME, VOLUME "#0"), STR("CreateTime")));
    buf_reset(&s.story);
    s.config.is_active = false;
    site_configure(&s);
    site_run(&s, 60);
    assert_str(buf_str(&s.story), "118 119");
    assert_false(json_get_bool(site_told(&s, OUT_APP, WEB), STR("Activated"), true));
    /* A restart is ignored now, and not made up for. */
    s.config.restart = 1;
    site_configure(&s);
    site_run(&s, 60);
    s.config.is_active = true;
    site_configure(&s);
    site_run(&s, 60);
    assert_str(buf_str(&s.story), "118 119 114 115");
    s.config.has_app = false;
    site_configure(&s);
    site_run(&s, 60);
    assert_int_equal(site_runtime_state(&s, RUNTIME_VOLUME, VOLUME ".0"), RUNTIME_CREATED_VOLUME);
    assert_int_equal(made_us, node_json_time_us(json_get(site_told(&s, OUT_VOLUME, VOLUME "#0"),
                                                         STR("CreateTime"))));
    site_done(&s);
}

TEST(counters_act_once_when_they_change)
{
    struct site s;
    site_init(&s);
    s.config.restart = 5; /* whatever they are at first */
    s.config.purge = 7;
    site_start(&s);
    site_run(&s, 300);
    buf_reset(&s.story);
    s.config.restart = 6;
    s.config.version = "2";
    site_configure(&s);
    site_run(&s, 0);
    assert_int_equal(json_get_int(site_told(&s, OUT_APP, WEB), STR("RestartInprogress"), 0),
                     BRING_DOWN);
    site_run(&s, 120);
    assert_str(buf_str(&s.story), "118 119 114 115");
    assert_int_equal(json_get_int(site_told(&s, OUT_APP, WEB), STR("RestartInprogress"), 9), 0);
    assert_str(json_str(json_at(site_told(&s, OUT_APP, WEB), "UUIDandVersion", "Version", NULL)),
               "2");
    buf_reset(&s.story);
    site_run(&s, 3600);
    assert_int_equal(s.story.n, 0);
    site_done(&s);
}

TEST(a_purge_prepares_first_then_replaces)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    buf_reset(&s.story);
    s.config.purge = 1;
    s.config.generation = 1;
    site_configure(&s);
    site_run(&s, 0);
    /* It goes on while its new volume is made, and the old one stays for as long. */
    assert_int_equal(json_get_int(site_told(&s, OUT_APP, WEB), STR("PurgeInprogress"), 0),
                     DOWNLOAD_AND_VERIFY);
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    assert_int_equal(site_runtime_state(&s, RUNTIME_VOLUME, VOLUME ".0"), RUNTIME_CREATED_VOLUME);
    site_run(&s, 300);
    assert_str(buf_str(&s.story), "118 119 111 114 115");
    assert_int_equal(site_runtime_state(&s, RUNTIME_VOLUME, VOLUME ".0"), RUNTIME_INVALID);
    assert_int_equal(site_runtime_state(&s, RUNTIME_VOLUME, VOLUME ".1"), RUNTIME_CREATED_VOLUME);
    assert_null(site_told(&s, OUT_VOLUME, VOLUME "#0"));
    assert_int_equal(json_get_int(site_told(&s, OUT_APP, WEB), STR("PurgeInprogress"), 9), 0);
    site_done(&s);
}

TEST(what_needs_a_command_waits_for_it)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    s.config.memory = 131072;
    s.config.version = "2";
    site_configure(&s);
    site_run(&s, 60);
    assert_true(str_find_str(error_of(&s, WEB), STR("Need restart")) >= 0);
    assert_str(json_str(json_at(site_told(&s, OUT_APP, WEB), "UUIDandVersion", "Version", NULL)),
               "1");
    s.config.restart++;
    site_configure(&s);
    site_run(&s, 60);
    assert_int_equal(error_of(&s, WEB).n, 0);
    assert_str(json_str(json_at(site_told(&s, OUT_APP, WEB), "UUIDandVersion", "Version", NULL)),
               "2");
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    site_done(&s);
}

TEST(one_that_ends_by_itself_comes_back_after_growing_waits)
{
    struct site s;
    site_init(&s);
    s.sim.crashes_permille = 1000;
    s.sim.crash_span = (struct runtime_sim_span){1000, 1000};
    site_start(&s);
    site_run(&s, 120);
    const struct application *p = application_find(s.apps, STR(WEB));
    int64_t waits[6];
    for (int i = 0; i < 6; i++) {
        unsigned n = p->trouble.n_times;
        while (p->trouble.n_times == n)
            assert_true(site_step(&s));
        waits[i] = (p->trouble.retry_us - apps_now_us(s.apps)) / 1000000;
        assert_true(error_of(&s, WEB).n > 0);
        assert_int_equal(site_state(&s, WEB), SW_HALTED);
        assert_true(apps_counts(s.apps).failed == 1);
    }
    for (int i = 1; i < 6; i++)
        assert_true(waits[i] == 600 || (waits[i] >= waits[i - 1] * 2 && waits[i] < 600));
    /* The waits are bounded, and the life goes on. */
    for (int i = 0; i < 10; i++) {
        unsigned n = p->trouble.n_times;
        while (p->trouble.n_times == n)
            assert_true(site_step(&s));
        assert_true(p->trouble.retry_us - apps_now_us(s.apps) <= 600 * 1000000LL);
    }
    /* One that lives long begins anew. */
    s.config.is_active = false;
    site_configure(&s);
    site_run(&s, 60);
    assert_int_equal(p->trouble.n_times, 0);
    assert_int_equal(error_of(&s, WEB).n, 0);
    site_done(&s);
}

TEST(a_failed_download_is_tried_again_and_told)
{
    struct site s;
    site_init(&s);
    s.sim.fetch_fails_permille = 600;
    s.sim.boot_fails_permille = 300;
    s.sim.create_fails_permille = 300;
    site_start(&s);
    for (int i = 0; i < 200 && site_state(&s, WEB) != SW_RUNNING; i++)
        site_run(&s, 600);
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    assert_true(s.errors > 0);
    assert_int_equal(error_of(&s, WEB).n, 0);
    site_done(&s);
}

TEST(what_is_not_supported_says_so)
{
    static const struct {
        struct site_config change;
        const char *error;
    } cases[] = {
        {{.store_type = "DsS3"}, "datastore of type DsS3"},
        {{.format = 6}, "images of format OVA"},
        {{.user_data = "no variable"}, "not NAME=value"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct site s;
        site_init(&s);
        s.config.store_type = cases[i].change.store_type;
        s.config.format = cases[i].change.format;
        s.config.user_data = cases[i].change.user_data;
        site_start(&s);
        site_run(&s, 300);
        struct str error = error_of(&s, WEB);
        if (str_find_str(error, str_of(cases[i].error)) < 0)
            fail_msg("%zu: '%.*s'", i, STR_ARG(error));
        /* What is put right is taken up. */
        s.config.store_type = NULL;
        s.config.format = 0;
        s.config.user_data = "NAME=value";
        site_configure(&s);
        site_run(&s, 1300);
        assert_int_equal(site_state(&s, WEB), SW_RUNNING);
        site_done(&s);
    }
}

TEST(a_profile_decides_who_is_active)
{
    struct site s;
    site_init(&s);
    s.config.profiles = "[\"day\"]";
    site_start(&s);
    site_run(&s, 300);
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    static const struct {
        const char *profile;
        int state;
    } cases[] = {{"night", SW_HALTED}, {"day", SW_RUNNING}, {"night", SW_HALTED}, {"", SW_RUNNING}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct json *status = json_parse_quick(
            s.device.arena,
            arena_printf(s.device.arena, "{\"ConfigGetStatus\":1,\"CurrentProfile\":\"%s\"}",
                         cases[i].profile));
        assert_int_equal(publication_publish(s.in[IN_AGENT], STR("zedagent"), status), 0);
        site_run(&s, 60);
        assert_int_equal(site_state(&s, WEB), cases[i].state);
    }
    site_done(&s);
}

TEST(another_content_is_fetched_again)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    s.config.format = FORMAT_QCOW2;
    site_configure(&s);
    (void) site_step(&s);
    assert_int_not_equal(site_runtime_state(&s, RUNTIME_CONTENT, CONTENT), RUNTIME_DELIVERED);
    site_run(&s, 300);
    assert_int_equal(site_runtime_state(&s, RUNTIME_CONTENT, CONTENT), RUNTIME_DELIVERED);
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    site_done(&s);
}

TEST(metrics_are_there_for_whoever_runs)
{
    struct site s;
    site_init(&s);
    site_start(&s);
    site_run(&s, 300);
    metrics_publish(s.apps);
    const struct json *m = site_told(&s, OUT_DOMAIN_METRIC, WEB);
    assert_true(json_get_bool(m, STR("Activated"), false));
    assert_true(json_get_int(m, STR("UsedMemory"), 0) > 0);
    assert_true(json_get_int(m, STR("CPUTotalNs"), 0) > 0);
    assert_non_null(site_told(&s, OUT_NETWORK_METRIC, NETWORK));
    s.config.is_active = false;
    site_configure(&s);
    site_run(&s, 60);
    metrics_publish(s.apps);
    assert_false(json_get_bool(site_told(&s, OUT_DOMAIN_METRIC, WEB), STR("Activated"), true));
    site_done(&s);
}
