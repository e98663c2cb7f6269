/* SPDX-License-Identifier: Apache-2.0 */
/* What golden files do not show: hashes, limits, bytes that are no text. */
#include "test.h"

#include "protobuf/protojson.h"
#include "zedagent/gotype.h"
#include "zedagent/parse.h"

static const Eve__Config__EdgeDevConfig *config_of(struct arena *a, const char *text)
{
    struct json_parse_result parsed;
    struct str error = STR_NONE;
    assert_int_equal(json_parse(a, str_of(text), &parsed), 0);
    const void *m = protojson_read(a, &eve__config__edge_dev_config__descriptor, parsed.value,
                                   PROTOJSON_REFUSE_UNKNOWN, NULL, &error);
    if (!m)
        fail_msg("%.*s", STR_ARG(error));
    return m;
}

static bool is_same_hash(enum section_id id, const Eve__Config__EdgeDevConfig *x,
                         const Eve__Config__EdgeDevConfig *y)
{
    unsigned char a[SHA256_BYTES], b[SHA256_BYTES];
    parse_hash(&parse_sections[id], x, a);
    parse_hash(&parse_sections[id], y, b);
    return memcmp(a, b, sizeof(a)) == 0;
}

TEST(a_section_has_another_hash_only_when_its_own_fields_differ)
{
    ARENA_AUTO a = arena_new();
    const Eve__Config__EdgeDevConfig *x = config_of(
        a, "{\"id\":{\"uuid\":\"u\"},\"deviceName\":\"a\",\"datastores\":[{\"id\":\"1\"}]}");
    const Eve__Config__EdgeDevConfig *y = config_of(
        a, "{\"id\":{\"uuid\":\"u\"},\"deviceName\":\"a\",\"datastores\":[{\"id\":\"2\"}]}");
    const Eve__Config__EdgeDevConfig *w = config_of(
        a, "{\"id\":{\"uuid\":\"u\"},\"deviceName\":\"b\",\"datastores\":[{\"id\":\"1\"}]}");
    assert_true(is_same_hash(SECTION_NODE_INFO, x, y));
    assert_false(is_same_hash(SECTION_DATASTORES, x, y));
    assert_false(is_same_hash(SECTION_NODE_INFO, x, w));
    assert_true(is_same_hash(SECTION_DATASTORES, x, w));
    assert_true(is_same_hash(SECTION_APPS, x, y));
}

TEST(every_section_looks_at_fields_that_exist)
{
    for (size_t i = 0; i < SECTIONS; i++) {
        assert_non_null(parse_sections[i].topic);
        assert_true(parse_sections[i].fields[0] != 0);
        for (size_t k = 0; k < SECTION_MAX_FIELDS && parse_sections[i].fields[k]; k++)
            assert_non_null(protobuf_c_message_descriptor_get_field(
                &eve__config__edge_dev_config__descriptor, parse_sections[i].fields[k]));
    }
}

TEST(bytes_that_are_no_text_become_replacement_characters)
{
    ARENA_AUTO a = arena_new();
    const struct json v = gotype_string(a, STR("a\xFF\xC3\xA4\xE2\x82"));
    assert_str(json_str(&v), "a\xEF\xBF\xBD\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(times_are_written_as_go_writes_them)
{
    ARENA_AUTO a = arena_new();
    assert_str(gotype_time_text(a, 0), "0001-01-01T00:00:00Z");
    assert_str(gotype_time_text(a, 1767225600000000), "2026-01-01T00:00:00Z");
    assert_str(gotype_time_text(a, 1767225600120000), "2026-01-01T00:00:00.12Z");
    assert_str(gotype_time_text(a, 1767225600000001), "2026-01-01T00:00:00.000001Z");
}

TEST(timestamps_out_of_range_count_as_absent)
{
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Eve__Config__EdgeDevConfig c = EVE__CONFIG__EDGE_DEV_CONFIG__INIT;
    assert_int_equal(parse_timestamp_us(&c), 0);
    c.config_timestamp = &t;
    t.seconds = 5;
    t.nanos = 7000;
    assert_int_equal(parse_timestamp_us(&c), 5000007);
    t.nanos = -1;
    assert_int_equal(parse_timestamp_us(&c), 0);
    t.nanos = 0;
    t.seconds = INT64_MAX;
    assert_int_equal(parse_timestamp_us(&c), 0);
}

TEST(an_application_too_large_says_why)
{
    ARENA_AUTO a = arena_new();
    const struct json *app = json_parse_quick(
        a, STR("{\"Errors\":null,\"AppNetAdapterList\":[{\"ACLs\":[{},{}]}],"
               "\"pubsub-large-CloudInitUserData\":\"abcd\",\"pubsub-large-CipherData\":null}"));
    assert_str(json_text(a, parse_shrink_app(a, app)),
               "{\"Errors\":[\"App instance cloud-init user data too large: 4 + 0 bytes\"],"
               "\"AppNetAdapterList\":[{\"ACLs\":null}],"
               "\"pubsub-large-CloudInitUserData\":null,\"pubsub-large-CipherData\":null}");
    /* The one it was made of is as it was. */
    assert_int_equal(
        json_count(json_get(&json_get(app, STR("AppNetAdapterList"))->items[0], STR("ACLs"))), 2);
}

TEST(without_a_port_there_is_no_port_configuration)
{
    ARENA_AUTO a = arena_new();
    struct parse p = {.arena = a,
                      .config = config_of(a, "{\"systemAdapterList\":[{\"name\":\"eth0\"}]}"),
                      .source = PARSE_CONTROLLER};
    assert_null(parse_sections[SECTION_PORTS].parse(&p));
}

TEST(a_configuration_without_identity_says_nothing_of_applications)
{
    ARENA_AUTO a = arena_new();
    struct parse p = {.arena = a, .config = config_of(a, "{\"apps\":[{}]}")};
    assert_null(parse_sections[SECTION_APPS].parse(&p));
}

TEST(more_ports_than_anybody_has_are_cut)
{
    ARENA_AUTO a = arena_new();
    struct json list = json_array(), io = json_array(), config = json_object();
    for (int i = 0; i < 2 * PARSE_MAX_PORTS; i++) {
        struct json adapter = json_object(), physical = json_object();
        const struct json name = json_string(arena_printf(a, "p%d", i));
        json_append_member(a, &adapter, STR("name"), name);
        json_append_member(a, &physical, STR("logicallabel"), name);
        json_append_member(a, &physical, STR("ptype"), json_string(STR("PhyIoNetEth")));
        json_push(a, &list, adapter);
        json_push(a, &io, physical);
    }
    json_append_member(a, &config, STR("systemAdapterList"), list);
    json_append_member(a, &config, STR("deviceIoList"), io);
    struct parse p = {.arena = a, .config = config_of(a, json_text(a, &config).p)};
    const struct json *ports =
        json_at(parse_sections[SECTION_PORTS].parse(&p), "zedagent", "Ports", NULL);
    assert_int_equal(json_count(ports), PARSE_MAX_PORTS);
}
