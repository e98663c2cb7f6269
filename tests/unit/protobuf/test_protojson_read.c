/* SPDX-License-Identifier: Apache-2.0 */
#include "all_messages.h"
#include "base/buf.h"
#include "eve/config.pb-c.h"
#include "every_type.pb-c.h"
#include "protobuf/protojson.h"
#include "random_message.h"
#include "test.h"

static ProtobufCMessage *read_text(struct arena *a, const ProtobufCMessageDescriptor *d,
                                   struct str text, struct str *ret_error)
{
    struct json_parse_result parsed;
    if (json_parse(a, text, &parsed) < 0)
        fail_msg("no JSON: %.*s", STR_ARG(text));
    return protojson_read(a, d, parsed.value, PROTOJSON_REFUSE_UNKNOWN, NULL, ret_error);
}

/* ---- what is taken ------------------------------------------------------------------------ */

static void assert_reads_as(const char *text, const char *canonical)
{
    ARENA_AUTO a = arena_new();
    struct str error = STR("");
    const ProtobufCMessage *m = read_text(a, &test__every_type__descriptor, str_of(text), &error);
    if (!m)
        fail_msg("%s: %.*s", text, STR_ARG(error));
    assert_str(json_text(a, protojson_value(a, m, NULL)), canonical);
}

TEST(all_spellings_of_a_value_are_taken)
{
    static const char *const cases[][2] = {
        /* names */
        {"{\"an_int32\":1}", "{\"anInt32\":1}"},
        {"{\"anInt32\":1}", "{\"anInt32\":1}"},
        {"{\"_leading\":1,\"trailing\":2}", "{\"Leading\":1,\"trailing\":2}"},
        /* integers */
        {"{\"anInt32\":\"-12\"}", "{\"anInt32\":-12}"},
        {"{\"anInt32\":1.0}", "{\"anInt32\":1}"},
        {"{\"anInt32\":1e3}", "{\"anInt32\":1000}"},
        {"{\"anInt32\":\"1e3\"}", "{\"anInt32\":1000}"},
        {"{\"anInt32\":-2147483648}", "{\"anInt32\":-2147483648}"},
        {"{\"aUint32\":4294967295}", "{\"aUint32\":4294967295}"},
        {"{\"aUint64\":-0}", "{}"},
        {"{\"anInt64\":5}", "{\"anInt64\":\"5\"}"},
        {"{\"anInt64\":\"-9223372036854775808\"}", "{\"anInt64\":\"-9223372036854775808\"}"},
        {"{\"anInt64\":-9223372036854775808}", "{\"anInt64\":\"-9223372036854775808\"}"},
        {"{\"aUint64\":\"18446744073709551615\"}", "{\"aUint64\":\"18446744073709551615\"}"},
        /* other numbers */
        {"{\"aDouble\":\"0.25\"}", "{\"aDouble\":0.25}"},
        {"{\"aDouble\":3}", "{\"aDouble\":3}"},
        {"{\"aDouble\":\"NaN\"}", "{\"aDouble\":\"NaN\"}"},
        {"{\"aFloat\":\"-Infinity\"}", "{\"aFloat\":\"-Infinity\"}"},
        {"{\"aFloat\":3.4028235e38}", "{\"aFloat\":3.4028235e+38}"},
        {"{\"aFloat\":1e-60}", "{}"},
        {"{\"doubles\":[-0.0]}", "{\"doubles\":[-0]}"},
        /* enums */
        {"{\"aColour\":\"COLOUR_RED\"}", "{\"aColour\":\"COLOUR_RED\"}"},
        {"{\"aColour\":-1}", "{\"aColour\":\"COLOUR_BELOW\"}"},
        {"{\"aColour\":42}", "{\"aColour\":42}"},
        /* bytes */
        {"{\"someBytes\":\"+//+AA==\"}", "{\"someBytes\":\"+//+AA==\"}"},
        {"{\"someBytes\":\"+//+AA\"}", "{\"someBytes\":\"+//+AA==\"}"},
        {"{\"someBytes\":\"-__-AA==\"}", "{\"someBytes\":\"+//+AA==\"}"},
        {"{\"someBytes\":\"-__-AA\"}", "{\"someBytes\":\"+//+AA==\"}"},
        {"{\"someBytes\":\"\"}", "{}"},
        /* times */
        {"{\"aTime\":\"2023-11-14T22:13:20Z\"}", "{\"aTime\":\"2023-11-14T22:13:20Z\"}"},
        {"{\"aTime\":\"2023-11-14T23:13:20.5+01:00\"}", "{\"aTime\":\"2023-11-14T22:13:20.500Z\"}"},
        {"{\"aTime\":\"1969-12-31T23:59:59.123456789Z\"}",
         "{\"aTime\":\"1969-12-31T23:59:59.123456789Z\"}"},
        {"{\"aTime\":\"0001-01-01T00:00:00Z\"}", "{\"aTime\":\"0001-01-01T00:00:00Z\"}"},
        {"{\"aTime\":\"9999-12-31T23:59:59.999999999Z\"}",
         "{\"aTime\":\"9999-12-31T23:59:59.999999999Z\"}"},
        /* null is unset */
        {"{\"anInt32\":null,\"aMessage\":null,\"strings\":null,\"byString\":null,\"maybe\":null}",
         "{}"},
        {"{\"chosenText\":null,\"chosenBool\":false}", "{\"chosenBool\":false}"},
        {"{\"maybe\":\"0\"}", "{\"maybe\":\"0\"}"},
        {"{\"aMessage\":{},\"messages\":[{}]}", "{\"aMessage\":{},\"messages\":[{}]}"},
        /* maps */
        {"{\"byInt32\":{\"-1\":\"a\",\"2\":\"b\"}}", "{\"byInt32\":{\"-1\":\"a\",\"2\":\"b\"}}"},
        {"{\"byBool\":{\"true\":1}}", "{\"byBool\":{\"true\":\"COLOUR_RED\"}}"},
        {"{\"byString\":{\"\":{\"number\":1}}}", "{\"byString\":{\"\":{\"number\":1}}}"},
        {"{\"byUint32\":{\"7\":\"1970-01-01T00:00:01Z\"}}",
         "{\"byUint32\":{\"7\":\"1970-01-01T00:00:01Z\"}}"},
        {"{\"bySint64\":{\"-9223372036854775808\":\"AA==\"}}",
         "{\"bySint64\":{\"-9223372036854775808\":\"AA==\"}}"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_reads_as(cases[i][0], cases[i][1]);
}

/* ---- what is refused ---------------------------------------------------------------------- */

TEST(what_is_wrong_is_refused_with_its_place)
{
    static const char *const cases[][2] = {
        {"[]", "expected an object"},
        {"null", "expected an object"},
        {"{\"nothing\":1}", "nothing: unknown field"},
        {"{\"an_Int32\":1}", "an_Int32: unknown field"},
        {"{\"anInt3\":1}", "anInt3: unknown field"},
        {"{\"anInt32x\":1}", "anInt32x: unknown field"},
        {"{\"\":1}", ": unknown field"},
        {"{\"aMessage\":{\"deeper\":{\"x\":1}}}", "aMessage.deeper.x: unknown field"},
        {"{\"messages\":[{},{\"number\":true}]}",
         "messages[1].number: expected an integer of 32 bits"},
        {"{\"byString\":{\"a.b\":5}}", "byString[a.b]: expected an object"},
        {"{\"byString\":[]}", "byString: expected an object"},
        {"{\"byString\":{\"a\":null}}", "byString[a]: expected an object"},
        {"{\"byInt32\":{\"x\":\"\"}}", "byInt32[x]: a bad key for this map"},
        {"{\"byInt32\":{\"01\":\"\"}}", "byInt32[01]: a bad key for this map"},
        {"{\"byInt32\":{\"-0\":\"\"}}", "byInt32[-0]: a bad key for this map"},
        {"{\"byInt32\":{\"2147483648\":\"\"}}", "byInt32[2147483648]: a bad key for this map"},
        {"{\"byBool\":{\"yes\":0}}", "byBool[yes]: a bad key for this map"},
        {"{\"strings\":\"a\"}", "strings: expected an array"},
        {"{\"strings\":[null]}", "strings[0]: expected a string without NUL"},
        {"{\"aString\":1}", "aString: expected a string without NUL"},
        {"{\"aString\":\"a\\u0000b\"}", "aString: expected a string without NUL"},
        {"{\"aMessage\":\"a\"}", "aMessage: expected an object"},
        {"{\"anInt32\":1,\"an_int32\":1}",
         "an_int32: the field stands twice, under both its names"},
        {"{\"chosenText\":\"\",\"chosenBool\":false}",
         "chosenBool: another field of the same oneof is set too"},
        {"{\"anInt32\":2147483648}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":-2147483649}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":1.5}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\" 1\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"1 \"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"+1\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"01\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"0x1\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"-\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"anInt32\":\"true\"}", "anInt32: expected an integer of 32 bits"},
        {"{\"aUint32\":-1}", "aUint32: expected an unsigned integer of 32 bits"},
        {"{\"aUint32\":4294967296}", "aUint32: expected an unsigned integer of 32 bits"},
        {"{\"anInt64\":\"9223372036854775808\"}", "anInt64: expected an integer of 64 bits"},
        /* Read as a double, it would be another number. */
        {"{\"aUint64\":18446744073709551614}",
         "aUint64: expected an unsigned integer of 64 bits, as a string beyond 2^53"},
        {"{\"aUint64\":\"18446744073709551616\"}",
         "aUint64: expected an unsigned integer of 64 bits, as a string beyond 2^53"},
        {"{\"aFloat\":1e39}", "aFloat: expected a number in the range of a float"},
        {"{\"aDouble\":\"inf\"}", "aDouble: expected a number"},
        {"{\"aDouble\":\"1e999\"}", "aDouble: expected a number"},
        {"{\"aDouble\":true}", "aDouble: expected a number"},
        {"{\"aBool\":\"true\"}", "aBool: expected true or false"},
        {"{\"aBool\":1}", "aBool: expected true or false"},
        {"{\"aColour\":\"COLOUR_PLAID\"}", "aColour: unknown value \"COLOUR_PLAID\" of Colour"},
        {"{\"aColour\":\"1\"}", "aColour: unknown value \"1\" of Colour"},
        {"{\"aColour\":1.5}",
         "aColour: expected the name of an enum's value or a number of 32 bits"},
        {"{\"aColour\":2147483648}",
         "aColour: expected the name of an enum's value or a number of 32 bits"},
        {"{\"someBytes\":\"+_==\"}", "someBytes: expected a string of base64"},
        {"{\"someBytes\":\"A\"}", "someBytes: expected a string of base64"},
        {"{\"someBytes\":\"A===\"}", "someBytes: expected a string of base64"},
        {"{\"someBytes\":\"AAA==\"}", "someBytes: expected a string of base64"},
        {"{\"someBytes\":\"AA!=\"}", "someBytes: expected a string of base64"},
        {"{\"someBytes\":1}", "someBytes: expected a string of base64"},
        {"{\"aTime\":5}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":{}}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":\"yesterday\"}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":\"2023-02-29T00:00:00Z\"}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":\"2023-02-28T00:00:00\"}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":\"2023-02-28T00:00:00.1234567891Z\"}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":\"0001-01-01T00:00:00+01:00\"}", "aTime: expected an RFC 3339 time"},
        {"{\"aTime\":\"9999-12-31T23:59:59-01:00\"}", "aTime: expected an RFC 3339 time"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct str error = STR_NONE;
        if (read_text(a, &test__every_type__descriptor, str_of(cases[i][0]), &error))
            fail_msg("taken: %s", cases[i][0]);
        assert_str(error, cases[i][1]);
    }
}

TEST(what_is_unknown_is_ignored_on_demand)
{
    ARENA_AUTO a = arena_new();
    const struct json *value = json_parse_quick(
        a, STR("{\"new\":{\"a\":[1]},\"anInt32\":1,\"aColour\":\"COLOUR_NEW\","
               "\"colours\":[\"COLOUR_NEW\",\"COLOUR_RED\"],\"byBool\":{\"true\":\"COLOUR_NEW\"},"
               "\"messages\":[{\"newer\":null}]}"));
    size_t n_ignored = 0;
    ProtobufCMessage *m = protojson_read(a, &test__every_type__descriptor, value,
                                         PROTOJSON_IGNORE_UNKNOWN, &n_ignored, NULL);
    assert_non_null(m);
    assert_int_equal(n_ignored, 5);
    assert_str(json_text(a, protojson_value(a, m, NULL)),
               "{\"anInt32\":1,\"colours\":[\"COLOUR_RED\"],\"messages\":[{}]}");
    /* What is known must still be right. */
    value = json_parse_quick(a, STR("{\"aColour\":true}"));
    assert_null(protojson_read(a, &test__every_type__descriptor, value, PROTOJSON_IGNORE_UNKNOWN,
                               NULL, NULL));
}

/* ---- limits ------------------------------------------------------------------------------- */

/* So many messages, each in the one before. */
static struct json *nested_value(struct arena *a, struct str member, unsigned depth)
{
    struct json *value = json_new(a, json_object());
    for (unsigned i = 1; i < depth; i++) {
        struct json *outer = json_new(a, json_object());
        json_set(a, outer, member, *value);
        value = outer;
    }
    return value;
}

TEST(nesting_is_limited_as_it_is_in_packed_messages)
{
    ARENA_AUTO a = arena_new();
    ProtobufCMessage *m =
        protojson_read(a, &test__nested__descriptor, nested_value(a, STR("deeper"), PB_MAX_DEPTH),
                       PROTOJSON_REFUSE_UNKNOWN, NULL, NULL);
    assert_non_null(m);
    assert_non_null(pb_unpack(a, &test__nested__descriptor, pb_pack(a, m)));
    struct str error = STR_NONE;
    assert_null(protojson_read(a, &test__nested__descriptor,
                               nested_value(a, STR("deeper"), PB_MAX_DEPTH + 1),
                               PROTOJSON_REFUSE_UNKNOWN, NULL, &error));
    assert_true(str_ends_with(error, STR(".deeper: nested deeper than 64 messages")));
}

/* {"named":{"k":{"named":{"k":...}}}}: each level is an entry and a message. */
static struct json *nested_maps(struct arena *a, unsigned n_maps)
{
    struct json *value = json_new(a, json_object());
    for (unsigned i = 0; i < n_maps; i++) {
        struct json map = json_object(), outer = json_object();
        json_set(a, &map, STR("k"), *value);
        json_set(a, &outer, STR("named"), map);
        value = json_new(a, outer);
    }
    return value;
}

TEST(what_is_read_from_nested_maps_can_be_unpacked_again)
{
    for (unsigned n = PB_MAX_DEPTH / 2 - 2; n < PB_MAX_DEPTH / 2 + 2; n++) {
        ARENA_AUTO a = arena_new();
        ProtobufCMessage *m = protojson_read(a, &test__nested__descriptor, nested_maps(a, n),
                                             PROTOJSON_REFUSE_UNKNOWN, NULL, NULL);
        assert_int_equal(m != NULL, 1 + 2 * n <= PB_MAX_DEPTH);
        if (m)
            assert_non_null(pb_unpack(a, &test__nested__descriptor, pb_pack(a, m)));
    }
}

static void assert_too_large(const ProtobufCMessageDescriptor *d, struct str member, size_t n,
                             const char *reason)
{
    ARENA_AUTO a = arena_new();
    struct json empty = json_object(), list = json_array(), object = json_object();
    for (size_t i = 0; i < n; i++)
        json_push(a, &list, empty);
    json_set(a, &object, member, list);
    ARENA_AUTO b = arena_new();
    struct str error = STR_NONE;
    assert_null(protojson_read(b, d, &object, PROTOJSON_REFUSE_UNKNOWN, NULL, &error));
    if (str_find_str(error, str_of(reason)) < 0)
        fail_msg("%.*s", STR_ARG(error));
    assert_true(arena_used(b) <= PB_MAX_UNPACKED_BYTES + 4096);
}

TEST(memory_and_number_of_values_are_limited)
{
    assert_too_large(&eve__config__edge_dev_config__descriptor, STR("apps"),
                     PB_MAX_UNPACKED_BYTES / sizeof(Eve__Config__AppInstanceConfig),
                     "the message takes more than");
    assert_too_large(&test__nested__descriptor, STR("children"), PB_MAX_VALUES + 1,
                     "the message has more than");
}

/* ---- round trips -------------------------------------------------------------------------- */

static void check_round_trip(const ProtobufCMessageDescriptor *d, uint64_t seed,
                             const struct protojson_options *options)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct source r = {seed};
    ProtobufCMessage *m = random_message(a, d, &r, 6);
    protojson_write(&text, m, options);
    struct str error = STR("");
    ProtobufCMessage *again = read_text(a, d, buf_str(&text), &error);
    if (!again)
        fail_msg("%s, seed %llu: %.*s in %.*s", d->name, (unsigned long long) seed, STR_ARG(error),
                 STR_ARG(buf_str(&text)));
    struct str before = pb_pack(a, m), after = pb_pack(a, again);
    if (!str_eq(before, after))
        fail_msg("%s, seed %llu: changed by %.*s", d->name, (unsigned long long) seed,
                 STR_ARG(buf_str(&text)));
}

TEST(random_messages_survive_their_text)
{
    static const struct protojson_options options[] = {
        {0}, {.use_proto_names = true}, {.write_defaults = true}};
    for (size_t i = 0; i < n_all_messages; i++) {
        for (uint64_t seed = 1; seed <= 6; seed++)
            check_round_trip(all_messages[i], seed, &options[seed % N_ELEMENTS(options)]);
    }
    for (uint64_t seed = 1; seed <= 300; seed++)
        check_round_trip(&test__every_type__descriptor, seed, &options[seed % N_ELEMENTS(options)]);
}

/* ---- what only a newer API knows ----------------------------------------------------------- */

TEST(fields_of_a_newer_api_survive_json)
{
    ARENA_AUTO a = arena_new();
    /* id {uuid "u", field 99 = "new"}, field 1000 = 7 */
    const struct str bytes = STR("\x0a\x09\x0a\x01u\x9a\x06\x03new\xc0\x3e\x07");
    const struct protojson_options keep = {.keep_unknown = true};
    const ProtobufCMessage *m = PB_UNPACK(a, eve__config__edge_dev_config, bytes);
    const struct json *value = protojson_value(a, m, &keep);
    struct str error = STR("");
    assert_str(json_text(a, value),
               "{\"id\":{\"uuid\":\"u\",\"@unknown\":\"mgYDbmV3\"},\"@unknown\":\"wD4H\"}");
    const ProtobufCMessage *back = protojson_read(a, m->descriptor, value, PROTOJSON_REFUSE_UNKNOWN,
                                                  /* ret_n_ignored= */ NULL, &error);
    assert_non_null(back);
    assert_true(str_eq(pb_pack(a, back), bytes));
    assert_str(json_text(a, protojson_value(a, m, NULL)), "{\"id\":{\"uuid\":\"u\"}}");
}

TEST(what_is_no_wire_form_is_refused_as_such)
{
    ARENA_AUTO a = arena_new();
    static const char *const bad[] = {"{\"id\":{\"@unknown\":7}}", "{\"id\":{\"@unknown\":\"?\"}}",
                                      "{\"id\":{\"@unknown\":\"/w==\"}}"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct str error = STR("");
        assert_null(
            read_text(a, &eve__config__edge_dev_config__descriptor, str_of(bad[i]), &error));
        assert_str(error, "id.@unknown: expected base64 of fields in their wire form");
    }
}
