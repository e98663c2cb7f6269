/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/objects.h"

#include "adam/adam_internal.h"
#include "protobuf/protojson.h"
#include "test.h"

TEST(names_of_objects_are_fit_and_told_apart)
{
    static const struct {
        const char *words, *name; /* a hyphen at its end: a digest of eight digits follows */
    } cases[] = {
        {"2d1f7a52-0a0c-4e1e-9d0a-0d1c8a5a3c11", "2d1f7a52-0a0c-4e1e-9d0a-0d1c8a5a3c11"},
        {"onboard", "onboard"},
        {"Onboard", "onboard-"},
        {"a.b", "a-b-"},
        {"a--b", "a-b-"},
        {"-a-", "a-"},
        {"Factory 7: S\xc3\xbc"
         "d",
         "factory-7-s-d-"},
        {"///", "onboard-"},
        {"", "onboard-"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct str name = adam_name_of(a, str_of(cases[i].words)),
                         wanted = str_of(cases[i].name);
        assert_true(str_starts_with(name, wanted));
        assert_int_equal(name.n, wanted.n + (str_ends_with(wanted, STR("-")) ? 8 : 0));
    }
    assert_false(str_eq(adam_name_of(a, STR("A b")), adam_name_of(a, STR("a B"))));
    char longest[1000];
    memset(longest, 'x', sizeof(longest));
    assert_true(adam_name_of(a, str_range(longest, sizeof(longest))).n <= 253);
}

TEST(members_are_found_in_any_case_and_the_exact_one_first)
{
    ARENA_AUTO a = arena_new();
    const struct json *v = json_parse_quick(a, STR("{\"CERT\":\"1\",\"Cert\":\"2\"}"));
    assert_str(json_str(adam_member(v, "Cert")), "2");
    assert_str(json_str(adam_member(v, "cert")), "1");
    assert_null(adam_member(v, "serial"));
    assert_null(adam_member(NULL, "serial"));
}

TEST(bytes_are_for_those_who_take_nothing_else)
{
    static const struct {
        const char *accept;
        bool is_binary;
    } cases[] = {
        {"", false},
        {"*/*", false},
        {"application/x-proto-binary", true},
        {"application/x-proto-binary;q=0.5, text/html", true},
        {"Application/X-Proto-Binary", true},
        {"application/x-proto-binary, application/json", false},
        {"application/*, application/x-proto-binary", false},
        {"text/html", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(adam_wants_binary(str_of(cases[i].accept)), cases[i].is_binary);
}

TEST(media_types_have_no_parameters)
{
    assert_str(adam_media_type(STR("text/plain; charset=utf-8")), "text/plain");
    assert_str(adam_media_type(STR(" application/json ")), "application/json");
    assert_str(adam_media_type(STR("")), "");
    assert_str(adam_media_type(STR(";")), "");
}

TEST(configurations_are_read_in_both_forms_with_both_names)
{
    ARENA_AUTO a = arena_new();
    struct str error = STR_NONE;
    const Eve__Config__EdgeDevConfig *c = adam_read_config(
        a, STR("{\"maintenance_mode\":true,\"deviceName\":\"d\"}"), /* is_binary= */ false, &error);
    assert_non_null(c);
    assert_true(c->maintenance_mode);
    assert_string_equal(c->device_name, "d");
    c = adam_read_config(a, pb_pack(a, &c->message), /* is_binary= */ true, &error);
    assert_non_null(c);
    assert_string_equal(c->device_name, "d");
    assert_null(adam_read_config(a, STR("{\"apps\":[{\"x\":1}]}"), /* is_binary= */ false, &error));
    assert_str(error, "apps[0].x: unknown field");
    assert_null(adam_read_config(a, STR("\xff"), /* is_binary= */ true, &error));
    assert_null(adam_read_config(a, STR(""), /* is_binary= */ false, &error));
}
