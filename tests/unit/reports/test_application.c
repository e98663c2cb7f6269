/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "derive_fixture.h"

#define APPLICATION \
    "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Application'," \
    "'metadata':{'namespace':'n','name':'web','uid':'u1','generation':3},'spec':{}," \
    "'status':{'uuid':'0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ab','device':'edge-7'," \
    "'conditions':[{'type':'Scheduled','status':'True'}]}}"

static Eve__Info__ZInfoApp app_in(int state)
{
    Eve__Info__ZInfoApp m;
    eve__info__zinfo_app__init(&m);
    m.appid = (char *) "0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ab";
    m.appname = (char *) "web";
    m.state = (Eve__Info__ZSwState) state;
    return m;
}

TEST(every_state_has_its_name_and_its_phase)
{
    static const struct {
        int state;
        const char *name, *ready, *reason;
    } cases[] = {
        {1, "INITIAL", "False", "Preparing"},
        {2, "DOWNLOAD_STARTED", "False", "Preparing"},
        {3, "DOWNLOADED", "False", "Preparing"},
        {4, "DELIVERED", "False", "Preparing"},
        {5, "INSTALLED", "False", "Stopped"},
        {6, "BOOTING", "False", "Starting"},
        {7, "RUNNING", "True", "Running"},
        {8, "HALTING", "False", "Stopping"},
        {9, "HALTED", "False", "Stopped"},
        {10, "RESTARTING", "False", "Starting"},
        {11, "PURGING", "False", "Preparing"},
        {12, "RESOLVING_TAG", "False", "Preparing"},
        {13, "RESOLVED_TAG", "False", "Preparing"},
        {14, "CREATING_VOLUME", "False", "Preparing"},
        {15, "CREATED_VOLUME", "False", "Preparing"},
        {16, "VERIFYING", "False", "Preparing"},
        {17, "VERIFIED", "False", "Preparing"},
        {18, "LOADING", "False", "Preparing"},
        {19, "LOADED", "False", "Preparing"},
        {20, "AWAITNETWORKINSTANCE", "False", "Starting"},
        {21, "ERROR", "False", "Failed"},
        {22, "START_DELAYED", "False", "Starting"},
        {23, "PENDING", "False", "Starting"},
        {24, "SCHEDULING", "False", "Starting"},
        {77, "STATE_77", "False", "Preparing"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fixture f;
        Eve__Info__ZInfoApp m = app_in(cases[i].state);
        begin(&f, APPLICATION);
        derive_application(&f.d, &m);
        assert_str(text_at(&f, "state", NULL), cases[i].name);
        assert_condition(&f, "Ready", cases[i].ready, cases[i].reason, NULL);
        assert_condition(&f, "Delivered", "True", "OnDevice", NULL);
        assert_true(derivation_has_changed(&f.d));
        end(&f);
    }
}

TEST(others_conditions_and_fields_stay)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    derive_application(&f.d, &m);
    assert_str(derive_condition_text(f.d.status, "Scheduled", "status"), "True");
    assert_str(text_at(&f, "device", NULL), "edge-7");
    const struct json *ready = derive_find_condition(f.d.status, "Ready");
    assert_int_equal(json_get_int(ready, STR("observedGeneration"), 0), 3);
    assert_str(json_get_str(ready, STR("lastTransitionTime")), "2027-01-15T08:00:00Z");
    end(&f);
}

TEST(the_same_report_again_changes_nothing)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    derive_application(&f.d, &m);
    assert_int_equal(f.d.n_events, 1);
    store(&f);
    derive_application(&f.d, &m);
    assert_false(derivation_has_changed(&f.d));
    assert_int_equal(f.d.n_events, 0);
    end(&f);
}

TEST(statuses_keep_the_last_32_changes)
{
    struct fixture f;
    begin(&f, APPLICATION);
    for (int i = 0; i < 100; i++) {
        Eve__Info__ZInfoApp m = app_in(i % 2 ? 7 : 8);
        derive_application(&f.d, &m);
        store(&f);
    }
    const struct json *list = json_get(f.d.status, STR("statuses"));
    assert_int_equal(json_count(list), 32);
    assert_str(json_get_str(&list->items[31], STR("state")), "RUNNING");
    assert_str(json_get_str(&list->items[30], STR("state")), "HALTING");
    assert_str(json_get_str(&list->items[31], STR("timestamp")), "2027-01-15T09:39:00.000000Z");
    assert_int_equal(derive_application_newest(f.object), NOW_US + 99 * 60 * SECOND_US);
    end(&f);
}

TEST(an_error_is_shown_in_the_devices_own_words)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(1);
    begin(&f, APPLICATION);
    Eve__Info__ErrorInfo *e = error_of(f.arena, "no space left for volume", 3);
    Eve__Info__DeviceEntity entity, *entities[] = {&entity};
    eve__info__device_entity__init(&entity);
    entity.entity = EVE__INFO__ENTITY__ENTITY_VOLUME;
    entity.entity_name = (char *) "web-disk";
    e->entities = entities;
    e->n_entities = 1;
    e->retry_condition = (char *) "when space is freed";
    m.apperr = &e;
    m.n_apperr = 1;
    derive_application(&f.d, &m);
    const char *words =
        "no space left for volume; concerns volume web-disk; retried: when space is freed";
    assert_condition(&f, "Ready", "False", "DeviceError", words);
    assert_str(text_at(&f, "state", NULL), "INITIAL");
    assert_event(&f, 0, true, "DeviceError", words);
    /* Again: nothing new. */
    store(&f);
    derive_application(&f.d, &m);
    assert_int_equal(f.d.n_events, 0);
    /* A later message without it clears it. */
    m.n_apperr = 0;
    m.state = EVE__INFO__ZSW_STATE__RUNNING;
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "True", "Running", "RUNNING");
    end(&f);
}

TEST(severity_unset_is_an_error_and_a_warning_a_hint)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    Eve__Info__ErrorInfo *e = error_of(f.arena, "waiting for memory", 2);
    m.apperr = &e;
    m.n_apperr = 1;
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "True", "Running", "RUNNING; waiting for memory");
    assert_event(&f, 0, true, "DeviceHint", "waiting for memory");
    e->severity = EVE__INFO__SEVERITY__SEVERITY_UNSPECIFIED;
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "False", "DeviceError", "waiting for memory");
    end(&f);
}

TEST(a_message_with_only_the_id_says_that_it_is_gone)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    derive_application(&f.d, &m);
    store(&f);
    m = app_in(0);
    m.appname = (char *) "";
    derive_application(&f.d, &m);
    assert_str(text_at(&f, "state", NULL), "INVALID");
    assert_condition(&f, "Ready", "False", "Deleted", NULL);
    assert_condition(&f, "Delivered", "False", "Deleted", NULL);
    end(&f);
}

TEST(stopped_as_wanted_is_told_apart)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(9);
    begin(&f, APPLICATION);
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "False", "Stopped",
                     "HALTED: ready on the device, and not running");
    (void) json_set(f.arena, json_get(f.object, STR("spec")), STR("activate"), json_bool(false));
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "False", "Stopped", "HALTED: stopped as wanted");
    end(&f);
}

TEST(a_new_boot_time_is_a_restart)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    m.boottime = time_of(f.arena, NOW_US);
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "True", "Running", "running since 2027-01-15T08:00:00Z");
    store(&f);
    m.boottime = time_of(f.arena, NOW_US + 30 * SECOND_US);
    derive_application(&f.d, &m);
    assert_event(&f, 0, false, "Restarted", "running since 2027-01-15T08:00:30Z");
    end(&f);
}

TEST(addresses_are_checked_and_bounded)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    Eve__Info__ZInfoNetwork net, *nets[] = {&net};
    char *addresses[] = {(char *) "10.1.0.2/24",    (char *) "10.1.0.2",   (char *) "fe80::1",
                         (char *) "2001:db8::5",    (char *) "127.0.0.1",  (char *) "::1",
                         (char *) "not an address", (char *) "\xff\xfe.1", (char *) ""};
    begin(&f, APPLICATION);
    eve__info__zinfo_network__init(&net);
    net.ipaddrs = addresses;
    net.n_ipaddrs = N_ELEMENTS(addresses);
    m.network = nets;
    m.n_network = 1;
    derive_application(&f.d, &m);
    const struct json *list = json_get(f.d.status, STR("addresses"));
    assert_int_equal(json_count(list), 2);
    assert_str(json_get_str(&list->items[0], STR("address")), "10.1.0.2");
    assert_str(json_get_str(&list->items[1], STR("address")), "2001:db8::5");
    assert_str(json_get_str(&list->items[1], STR("type")), "InternalIP");
    char text[10000][16], *many[10000];
    for (int i = 0; i < 10000; i++) {
        (void) snprintf(text[i], sizeof(text[i]), "10.2.%d.%d", i / 250, i % 250 + 1);
        many[i] = text[i];
    }
    net.ipaddrs = many;
    net.n_ipaddrs = 10000;
    derive_application(&f.d, &m);
    assert_int_equal(json_count(json_get(f.d.status, STR("addresses"))), DERIVE_MAX_ADDRESSES);
    end(&f);
}

TEST(words_of_any_bytes_come_out_as_bounded_utf8)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    char *words = arena_alloc(f.arena, 100001);
    for (size_t i = 0; i < 100000; i++)
        words[i] = (char) (i % 255 + 1);
    words[100000] = '\0';
    Eve__Info__ErrorInfo *e = error_of(f.arena, words, 3);
    e->retry_condition = words;
    m.apperr = &e;
    m.n_apperr = 1;
    m.appversion = words;
    derive_application(&f.d, &m);
    struct str message = derive_condition_text(f.d.status, "Ready", "message");
    assert_true(message.n > 0 && message.n <= WORDS_MAX_MESSAGE);
    assert_true(str_is_utf8(json_text(f.arena, f.d.status)));
    assert_non_null(json_parse_quick(f.arena, json_text(f.arena, f.d.status)));
    end(&f);
}

TEST(ten_thousand_errors_are_one)
{
    struct fixture f;
    Eve__Info__ZInfoApp m = app_in(7);
    begin(&f, APPLICATION);
    Eve__Info__ErrorInfo **list = ARENA_ARRAY(f.arena, Eve__Info__ErrorInfo *, 10000);
    for (size_t i = 0; i < 10000; i++)
        list[i] = error_of(f.arena, "too much", i == 5 ? 3 : 1);
    m.apperr = list;
    m.n_apperr = 10000;
    derive_application(&f.d, &m);
    assert_condition(&f, "Ready", "False", "DeviceError", "too much");
    assert_int_equal(f.d.n_events, 1);
    end(&f);
}

/* ---- delivery -------------------------------------------------------------------------------- */

#define AT_GENERATION_2 "{'metadata':{'name':'web','generation':2},'status':{'device':'edge-7'}}"

static int64_t observed(const struct fixture *f)
{
    return json_get_int(derive_find_condition(f->d.status, "Delivered"), STR("observedGeneration"),
                        0);
}

TEST(an_application_is_delivered_as_it_is_or_not)
{
    static const struct {
        struct app_delivery told;
        const char *status, *reason;
    } cases[] = {
        {{true, 2}, "True", "Fetched"},
        {{true, APP_GENERATION_ANY}, "True", "Fetched"},
        {{true, 1}, "False", "Outdated"},
        {{true, 0}, "False", "NotInConfiguration"},
        {{false, 0}, "", ""}, /* it never was there */
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fixture f;
        begin(&f, AT_GENERATION_2);
        derive_app_delivery(&f.d, &cases[i].told);
        assert_condition(&f, "Delivered", cases[i].status, cases[i].reason, NULL);
        assert_int_equal(observed(&f), cases[i].status[0] ? 2 : 0);
        end(&f);
    }
}

TEST(an_edit_takes_delivered_back_until_it_is_fetched)
{
    struct fixture f;
    begin(&f, AT_GENERATION_2);
    derive_app_delivery(&f.d, &(struct app_delivery){true, 2});
    store(&f);
    (void) json_set(f.arena, json_get(f.object, STR("metadata")), STR("generation"), json_int(3));
    derive_app_delivery(&f.d, &(struct app_delivery){.is_current = false});
    assert_condition(&f, "Delivered", "False", "Outdated", NULL);
    /* What the device says of the old one is no news of the new one. */
    Eve__Info__ZInfoApp m = EVE__INFO__ZINFO_APP__INIT;
    m.appname = (char *) "web";
    m.state = EVE__INFO__ZSW_STATE__RUNNING;
    derive_application(&f.d, &m);
    assert_condition(&f, "Delivered", "False", "Outdated", NULL);
    derive_app_delivery(&f.d, &(struct app_delivery){true, 3});
    assert_condition(&f, "Delivered", "True", "Fetched", NULL);
    end(&f);
}

TEST(a_fetch_before_anybody_saw_the_edit_counts_for_it)
{
    struct fixture f;
    begin(&f, AT_GENERATION_2);
    derive_app_delivery(&f.d, &(struct app_delivery){true, 2});
    store(&f);
    (void) json_set(f.arena, json_get(f.object, STR("metadata")), STR("generation"), json_int(3));
    derive_app_delivery(&f.d, &(struct app_delivery){true, 3});
    assert_condition(&f, "Delivered", "True", "Fetched", NULL);
    assert_int_equal(observed(&f), 3);
    end(&f);
}
