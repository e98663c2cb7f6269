/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes, what devices share, kubeconfigs. */
#include "derive_fixture.h"

#define VOLUME \
    "{'metadata':{'namespace':'n','name':'disk','uid':'u2'},'spec':{'device':'edge-7'}," \
    "'status':{'uuid':'0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ac'}}"
#define IMAGE "{'metadata':{'namespace':'n','name':'img','uid':'u3'},'status':{}}"

static Eve__Info__ZInfoVolume volume_in(int state)
{
    Eve__Info__ZInfoVolume m;
    eve__info__zinfo_volume__init(&m);
    m.uuid = (char *) "0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ac";
    m.displayname = (char *) "disk";
    m.state = (Eve__Info__ZSwState) state;
    return m;
}

TEST(a_volume_is_ready_when_it_is_created)
{
    struct fixture f;
    Eve__Info__ZInfoVolume m = volume_in(2);
    Eve__Info__VolumeResources r;
    begin(&f, VOLUME);
    eve__info__volume_resources__init(&r);
    r.maxsizebytes = (uint64_t) 10 << 30;
    m.resources = &r;
    m.progresspercentage = 47;
    derive_volume(&f.d, &m);
    assert_str(text_at(&f, "state", NULL), "DOWNLOAD_STARTED");
    assert_condition(&f, "Ready", "False", "Preparing", "DOWNLOAD_STARTED, 40 %");
    assert_str(text_at(&f, "capacity", "storage"), "10Gi");
    m.state = EVE__INFO__ZSW_STATE__CREATED_VOLUME;
    derive_volume(&f.d, &m);
    assert_condition(&f, "Ready", "True", "Created", "");
    m.volumeerr = error_of(f.arena, "disk is broken", 3);
    derive_volume(&f.d, &m);
    assert_condition(&f, "Ready", "False", "DeviceError", "disk is broken");
    assert_event(&f, 0, true, "DeviceError", "disk is broken");
    m = volume_in(0);
    m.displayname = (char *) "";
    derive_volume(&f.d, &m);
    assert_str(text_at(&f, "state", NULL), "INVALID");
    assert_condition(&f, "Ready", "False", "Deleted", NULL);
    end(&f);
}

TEST(amounts_beyond_all_bounds_stay_quantities)
{
    struct fixture f;
    Eve__Info__ZInfoVolume m = volume_in(15);
    Eve__Info__VolumeResources r;
    begin(&f, VOLUME);
    eve__info__volume_resources__init(&r);
    r.maxsizebytes = UINT64_MAX;
    m.resources = &r;
    m.progresspercentage = UINT32_MAX;
    derive_volume(&f.d, &m);
    struct quantity q;
    struct str error;
    assert_int_equal(quantity_parse(text_at(&f, "capacity", "storage"), &q, &error), 0);
    assert_true(quantity_sign(&q) > 0);
    end(&f);
}

TEST(content_ends_with_delivered_or_loaded)
{
    static const struct {
        int state;
        enum fact_state is;
    } cases[] = {{1, FACT_PREPARING},  {2, FACT_PREPARING},  {12, FACT_PREPARING},
                 {16, FACT_PREPARING}, {18, FACT_PREPARING}, {4, FACT_READY},
                 {19, FACT_READY},     {99, FACT_PREPARING}, {0, FACT_PREPARING}};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        Eve__Info__ZInfoContentTree m;
        eve__info__zinfo_content_tree__init(&m);
        m.displayname = (char *) "img";
        m.state = (Eve__Info__ZSwState) cases[i].state;
        assert_int_equal(fact_of_content(a, &m).state, cases[i].is);
        m.err = error_of(a, "404 from the registry", 3);
        assert_int_equal(fact_of_content(a, &m).state, FACT_ERROR);
    }
    Eve__Info__ZInfoContentTree gone;
    eve__info__zinfo_content_tree__init(&gone);
    assert_int_equal(fact_of_content(a, &gone).state, FACT_GONE);
}

TEST(a_network_that_works_is_ready_whatever_its_state_says)
{
    ARENA_AUTO a = arena_new();
    Eve__Info__ZInfoNetworkInstance m;
    eve__info__zinfo_network_instance__init(&m);
    assert_int_equal(fact_of_network(a, &m).state, FACT_GONE);
    m.displayname = (char *) "lan";
    assert_int_equal(fact_of_network(a, &m).state, FACT_PREPARING);
    m.state = EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_INIT;
    assert_int_equal(fact_of_network(a, &m).state, FACT_PREPARING);
    m.state = EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_ONLINE;
    m.activated = true;
    assert_int_equal(fact_of_network(a, &m).state, FACT_READY);
    m.state = EVE__INFO__ZNETWORK_INSTANCE_STATE__ZNETINST_STATE_ERROR;
    Eve__Info__ErrorInfo *e = error_of(a, "MTU differs", 2);
    m.networkerr = &e;
    m.n_networkerr = 1;
    assert_int_equal(fact_of_network(a, &m).state, FACT_READY);
    e->severity = EVE__INFO__SEVERITY__SEVERITY_ERROR;
    assert_int_equal(fact_of_network(a, &m).state, FACT_ERROR);
    assert_str(fact_of_network(a, &m).message, "MTU differs");
    m.n_networkerr = 0;
    m.activated = false;
    assert_int_equal(fact_of_network(a, &m).state, FACT_ERROR);
}

TEST(one_condition_speaks_for_all_devices)
{
    struct fixture f;
    begin(&f, IMAGE);
    struct fact facts[] = {{FACT_READY, STR(""), STR("b")},
                           {FACT_PREPARING, STR(""), STR("a")},
                           {FACT_ERROR, STR("no route"), STR("d")},
                           {FACT_ERROR, STR("404"), STR("c")}};
    derive_shared(&f.d, facts, 0);
    assert_condition(&f, "Ready", "Unknown", "NotOnDevices", NULL);
    derive_shared(&f.d, facts, 2);
    assert_condition(&f, "Ready", "False", "Preparing", "on 1 of 2 devices");
    derive_shared(&f.d, facts, 4);
    assert_condition(&f, "Ready", "False", "DeviceError", "device c: 404 (and on 1 other devices)");
    derive_shared(&f.d, facts, 1);
    assert_condition(&f, "Ready", "True", "OnDevices", "on 1 of 1 devices");
    end(&f);
}

TEST(a_kubeconfig_becomes_a_secret_of_its_application)
{
    ARENA_AUTO a = arena_new();
    const struct json *app =
        json_of(a, "{'apiVersion':'eve.lfedge.org/v1beta1','kind':'Application',"
                   "'metadata':{'namespace':'n','name':'web','uid':'u1'}}");
    const struct json *secret = derive_kubeconfig(a, app, STR("{\"a\":\"\xff\"}"));
    assert_str(
        json_text(a, secret),
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"web-kubeconfig\","
        "\"ownerReferences\":[{\"apiVersion\":\"eve.lfedge.org/v1beta1\",\"kind\":"
        "\"Application\",\"name\":\"web\",\"uid\":\"u1\",\"controller\":true}]},\"type\":"
        "\"Opaque\",\"data\":{\"kubeconfig\":\"eyJhIjoi/yJ9\"}}");
    assert_true(derive_kubeconfig_is_ours(secret, app));
    assert_false(
        derive_kubeconfig_is_ours(secret, json_of(a, "{'metadata':{'name':'web','uid':'u9'}}")));
    assert_false(
        derive_kubeconfig_is_ours(json_of(a, "{'metadata':{}}"), json_of(a, "{'metadata':{}}")));
}

TEST(times_that_cannot_be_are_none)
{
    Google__Protobuf__Timestamp t;
    google__protobuf__timestamp__init(&t);
    assert_int_equal(words_time(NULL), 0);
    static const struct {
        int64_t seconds;
        int32_t nanos;
        int64_t us;
    } cases[] = {{0, 0, 0},  {-1, 0, 0},         {INT64_MAX, 0, 0},  {INT64_MIN, 5, 0},
                 {1, -1, 0}, {1, 1000000000, 0}, {1, 2000, 1000002}, {253402300800, 0, 0}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        t.seconds = cases[i].seconds;
        t.nanos = cases[i].nanos;
        assert_int_equal(words_time(&t), cases[i].us);
    }
}

TEST(reasons_are_single_words)
{
    ARENA_AUTO a = arena_new();
    assert_str(words_reason(a, STR("ZDEVICE_STATE_POWERING_OFF"), "ZDEVICE_STATE_"), "PoweringOff");
    assert_str(words_clean(a, STR("  a\nb\tc\x01 "), 100), "a b c");
    assert_str(words_clean(a, STR("\xc3\xa4\xc3\xa4"), 3), "\xc3\xa4");
    assert_str(words_clean(a, STR("a\xc3"), 10), "a\xef\xbf\xbd");
}
