/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/buf.h"
#include "eve/config.pb-c.h"
#include "every_type.pb-c.h"
#include "protobuf/protojson.h"
#include "test.h"

static void assert_written(const ProtobufCMessage *m, const struct protojson_options *options,
                           const char *expected)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    protojson_write(&text, m, options);
    assert_str(buf_str(&text), expected);
    assert_str(json_text(a, protojson_value(a, m, options)), expected);
}

static void assert_json(const Test__EveryType *m, const char *expected)
{
    assert_written(&m->base, NULL, expected);
}

TEST(names_are_those_of_protoc)
{
    static const struct {
        struct str proto;
        const char *json;
    } cases[] = {
        {STR("maintenance_mode"), "maintenanceMode"},
        {STR("HostName"), "HostName"},
        {STR("displayname"), "displayname"},
        {STR("_leading"), "Leading"},
        {STR("double__underscore"), "doubleUnderscore"},
        {STR("trailing_"), "trailing"},
        {STR("with_2_digits"), "with2Digits"},
        {STR("top10_input_sources"), "top10InputSources"},
        {STR("a_B"), "aB"},
        {STR(""), ""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(protojson_name(a, cases[i].proto), cases[i].json);
}

TEST(fields_at_their_default_are_left_out)
{
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    assert_json(&m, "{}");
    Test__Nested nested = TEST__NESTED__INIT;
    m.a_message = &nested;
    assert_json(&m, "{\"aMessage\":{}}");
}

TEST(numbers_of_32_bits_are_numbers)
{
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    m.an_int32 = INT32_MIN;
    m.a_sint32 = -1;
    m.a_sfixed32 = INT32_MAX;
    m.a_uint32 = UINT32_MAX;
    m.a_fixed32 = 1;
    assert_json(&m, "{\"anInt32\":-2147483648,\"aSint32\":-1,\"aSfixed32\":2147483647,"
                    "\"aUint32\":4294967295,\"aFixed32\":1}");
}

TEST(numbers_of_64_bits_are_strings)
{
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    m.an_int64 = INT64_MIN;
    m.a_sint64 = -1;
    m.a_sfixed64 = INT64_MAX;
    m.a_uint64 = UINT64_MAX;
    m.a_fixed64 = 1;
    assert_json(&m, "{\"anInt64\":\"-9223372036854775808\",\"aSint64\":\"-1\","
                    "\"aSfixed64\":\"9223372036854775807\",\"aUint64\":\"18446744073709551615\","
                    "\"aFixed64\":\"1\"}");
}

TEST(floats_have_the_fewest_digits)
{
    static const struct {
        float value;
        const char *json;
    } cases[] = {
        {0.1f, "{\"aFloat\":0.1}"},
        {1.0f / 3, "{\"aFloat\":0.33333334}"},
        {16777216.0f, "{\"aFloat\":16777216}"},
        {3.4028235e38f, "{\"aFloat\":3.4028235e+38}"},
        {1e-45f, "{\"aFloat\":1e-45}"},
        {1.17549435e-38f, "{\"aFloat\":1.1754944e-38}"},
        {-0.0f, "{\"aFloat\":-0}"},
        {NAN, "{\"aFloat\":\"NaN\"}"},
        {INFINITY, "{\"aFloat\":\"Infinity\"}"},
        {-INFINITY, "{\"aFloat\":\"-Infinity\"}"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        Test__EveryType m = TEST__EVERY_TYPE__INIT;
        m.a_float = cases[i].value;
        assert_json(&m, cases[i].json);
    }
}

TEST(doubles_have_the_fewest_digits)
{
    static const struct {
        double value;
        const char *json;
    } cases[] = {
        {0.1, "{\"aDouble\":0.1}"},
        {1.5, "{\"aDouble\":1.5}"},
        {1e21, "{\"aDouble\":1e+21}"},
        {1e-7, "{\"aDouble\":1e-7}"},
        {5e-324, "{\"aDouble\":5e-324}"},
        {1.7976931348623157e308, "{\"aDouble\":1.7976931348623157e+308}"},
        {(double) 0.1f, "{\"aDouble\":0.10000000149011612}"},
        {(double) NAN, "{\"aDouble\":\"NaN\"}"},
        {(double) -INFINITY, "{\"aDouble\":\"-Infinity\"}"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        Test__EveryType m = TEST__EVERY_TYPE__INIT;
        m.a_double = cases[i].value;
        assert_json(&m, cases[i].json);
    }
}

TEST(enums_have_names_and_unknown_ones_numbers)
{
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    m.a_colour = TEST__COLOUR__COLOUR_BELOW;
    assert_json(&m, "{\"aColour\":\"COLOUR_BELOW\"}");
    m.a_colour = (Test__Colour) 17;
    assert_json(&m, "{\"aColour\":17}");
    Test__Colour colours[] = {TEST__COLOUR__COLOUR_NONE, TEST__COLOUR__COLOUR_RED};
    m.a_colour = TEST__COLOUR__COLOUR_NONE;
    m.colours = colours, m.n_colours = 2;
    assert_json(&m, "{\"colours\":[\"COLOUR_NONE\",\"COLOUR_RED\"]}");
}

TEST(bytes_are_base64_with_padding)
{
    uint8_t data[] = {0xfb, 0xff, 0xfe, 0x00};
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    ProtobufCBinaryData list[] = {{1, data}, {2, data}, {3, data}, {0, NULL}};
    m.some_bytes = (ProtobufCBinaryData){4, data};
    m.byte_strings = list, m.n_byte_strings = 4;
    assert_json(&m,
                "{\"someBytes\":\"+//+AA==\",\"byteStrings\":[\"+w==\",\"+/8=\",\"+//+\",\"\"]}");
}

TEST(bad_bytes_in_text_become_replacements)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"plain", "{\"aString\":\"plain\"}"},
        {"\xc3\xa9\xf0\x9f\x98\x80", "{\"aString\":\"\xc3\xa9\xf0\x9f\x98\x80\"}"},
        {"a\xff\xfe", "{\"aString\":\"a\xef\xbf\xbd\xef\xbf\xbd\"}"},
        {"\xe2\x82", "{\"aString\":\"\xef\xbf\xbd\xef\xbf\xbd\"}"}, /* cut short */
        {"\xe2\x82z", "{\"aString\":\"\xef\xbf\xbd\xef\xbf\xbdz\"}"},
        {"\"\\\n\x01", "{\"aString\":\"\\\"\\\\\\n\\u0001\"}"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        Test__EveryType m = TEST__EVERY_TYPE__INIT;
        m.a_string = (char *) (uintptr_t) cases[i].text;
        assert_json(&m, cases[i].json);
    }
}

TEST(times_have_0_3_6_or_9_decimals)
{
    static const struct {
        int64_t seconds;
        int32_t nanos;
        const char *text;
    } cases[] = {
        {0, 0, "1970-01-01T00:00:00Z"},
        {1700000000, 500000000, "2023-11-14T22:13:20.500Z"},
        {1700000000, 10000, "2023-11-14T22:13:20.000010Z"},
        {1700000000, 1, "2023-11-14T22:13:20.000000001Z"},
        {-1, 999000000, "1969-12-31T23:59:59.999Z"},
        {-62135596800, 0, "0001-01-01T00:00:00Z"},
        {253402300799, 999999999, "9999-12-31T23:59:59.999999999Z"},
        /* What is no time is the nearest one. */
        {INT64_MIN, 0, "0001-01-01T00:00:00Z"},
        {INT64_MAX, -5, "9999-12-31T23:59:59Z"},
        {0, INT32_MAX, "1970-01-01T00:00:00.999999999Z"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
        t.seconds = cases[i].seconds, t.nanos = cases[i].nanos;
        Test__EveryType m = TEST__EVERY_TYPE__INIT;
        m.a_time = &t;
        assert_json(&m, arena_printf(a, "{\"aTime\":\"%s\"}", cases[i].text).p);
        assert_written(&t.base, NULL, arena_printf(a, "\"%s\"", cases[i].text).p);
    }
}

TEST(a_oneof_is_written_even_when_it_is_zero)
{
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    m.choice_case = TEST__EVERY_TYPE__CHOICE_CHOSEN_BOOL;
    assert_json(&m, "{\"chosenBool\":false}");
    m.choice_case = TEST__EVERY_TYPE__CHOICE_CHOSEN_TEXT;
    m.chosen_text = (char *) (uintptr_t) "";
    m._maybe_case = TEST__EVERY_TYPE___MAYBE_MAYBE;
    assert_json(&m, "{\"chosenText\":\"\",\"maybe\":\"0\"}");
}

/* ---- maps --------------------------------------------------------------------------------- */

/* by_int32 {10: "x"}, {9: "y"}, {-1: ""}, {10: "last"} */
#define BY_INT32 \
    "\x9a\x03\x05\x08\x0a\x12\x01x" \
    "\x9a\x03\x05\x08\x09\x12\x01y" \
    "\x9a\x03\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" \
    "\x9a\x03\x08\x08\x0a\x12\x04last"

TEST(maps_are_sorted_and_the_last_of_a_key_counts)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = PB_UNPACK(a, test__every_type, STR(BY_INT32));
    assert_json(m, "{\"byInt32\":{\"-1\":\"\",\"9\":\"y\",\"10\":\"last\"}}");
    /* by_bool {true: RED}, {false: NONE} */
    m = PB_UNPACK(a, test__every_type, STR("\xb2\x03\x04\x08\x01\x10\x01\xb2\x03\x00"));
    assert_json(m, "{\"byBool\":{\"false\":\"COLOUR_NONE\",\"true\":\"COLOUR_RED\"}}");
    /* by_fixed64 {2^64-1: 0.5}, {1: 0} */
    m = PB_UNPACK(a, test__every_type,
                  STR("\xaa\x03\x12\x09\xff\xff\xff\xff\xff\xff\xff\xff\x11\x00\x00\x00\x00\x00\x00"
                      "\xe0\x3f\xaa\x03\x09\x09\x01\x00\x00\x00\x00\x00\x00\x00"));
    assert_json(m, "{\"byFixed64\":{\"1\":0,\"18446744073709551615\":0.5}}");
}

TEST(a_map_entry_without_a_value_has_the_default)
{
    ARENA_AUTO a = arena_new();
    /* by_string {"k"}, by_uint32 {7} */
    Test__EveryType *m =
        PB_UNPACK(a, test__every_type, STR("\xba\x03\x03\x0a\x01k\xc2\x03\x02\x08\x07"));
    assert_json(m, "{\"byString\":{\"k\":{}},\"byUint32\":{\"7\":\"1970-01-01T00:00:00Z\"}}");
}

TEST(keys_that_become_the_same_text_stand_once)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = PB_UNPACK(a, test__every_type,
                                   STR("\xba\x03\x03\x0a\x01\xfe\xba\x03\x04\x0a\x02\xfez"
                                       "\xba\x03\x07\x0a\x01\xff\x12\x02\x08\x01"));
    assert_json(m, "{\"byString\":{\"\xef\xbf\xbd\":{\"number\":1},\"\xef\xbf\xbdz\":{}}}");
}

/* ---- options ------------------------------------------------------------------------------ */

TEST(proto_names_on_demand)
{
    Test__EveryType m = TEST__EVERY_TYPE__INIT;
    m.an_int32 = 1;
    m.httpstatus = 2;
    m._leading = 3;
    m.trailing_ = 4;
    assert_json(&m, "{\"anInt32\":1,\"HTTPStatus\":2,\"Leading\":3,\"trailing\":4}");
    assert_written(&m.base, &(struct protojson_options){.use_proto_names = true},
                   "{\"an_int32\":1,\"HTTPStatus\":2,\"_leading\":3,\"trailing_\":4}");
}

TEST(defaults_on_demand)
{
    Test__Nested nested = TEST__NESTED__INIT;
    assert_written(&nested.base, &(struct protojson_options){.write_defaults = true},
                   "{\"number\":0,\"deeper\":null,\"children\":[],\"named\":{}}");
    /* Members of oneofs stay out. */
    Eve__Config__EvePatchEnvelope envelope = EVE__CONFIG__EVE_PATCH_ENVELOPE__INIT;
    assert_written(&envelope.base, &(struct protojson_options){.write_defaults = true},
                   "{\"displayName\":\"\",\"uuid\":\"\",\"action\":\"STORE\",\"artifacts\":[],"
                   "\"appInstIdsAllowed\":[],\"createTime\":null}");
}

TEST(unknown_fields_are_left_out)
{
    ARENA_AUTO a = arena_new();
    Test__EveryType *m = PB_UNPACK(a, test__every_type, STR("\x08\x01\xb8\x3e\x96\x01"));
    assert_json(m, "{\"anInt32\":1}");
}

TEST(a_device_configuration_reads_as_people_expect)
{
    Eve__Config__UUIDandVersion id = EVE__CONFIG__UUIDAND_VERSION__INIT;
    id.uuid = (char *) (uintptr_t) "2e3a5f1c-6f9d-4b7e-9a44-0d2d6f1b8c11";
    id.version = (char *) (uintptr_t) "4";
    Eve__Config__AppInstanceConfig app = EVE__CONFIG__APP_INSTANCE_CONFIG__INIT;
    app.displayname = (char *) (uintptr_t) "nginx";
    app.activate = 1;
    Eve__Config__AppInstanceConfig *apps[] = {&app};
    Eve__Config__EdgeDevConfig config = EVE__CONFIG__EDGE_DEV_CONFIG__INIT;
    config.id = &id;
    config.apps = apps, config.n_apps = 1;
    config.maintenance_mode = 1;
    assert_written(&config.message, NULL,
                   "{\"id\":{\"uuid\":\"2e3a5f1c-6f9d-4b7e-9a44-0d2d6f1b8c11\",\"version\":\"4\"},"
                   "\"apps\":[{\"displayname\":\"nginx\",\"activate\":true}],"
                   "\"maintenanceMode\":true}");
}
