/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "device.h"

/* Recorded from kube-apiserver 1.36. */
TEST(says_what_kube_apiserver_says)
{
    static const struct {
        const char *value, *causes;
    } cases[] = {
        {"{\"spec\":{\"serial\":\"lower\"}}",
         "FieldValueInvalid|spec.serial|Invalid value: \"lower\": spec.serial in body should match "
         "'^[A-Z0-9-]+$'"},
        {"{\"spec\":{\"serial\":\"A\"}}", "FieldValueInvalid|spec.serial|Invalid value: \"A\": "
                                          "spec.serial in body should be at least 2 chars long"},
        {"{\"spec\":{\"serial\":\"AAAAAAAAAAAAA\"}}",
         "FieldValueTooLong|spec.serial|Too long: may not be more than 12 bytes"},
        {"{\"spec\":{\"serial\":5}}",
         "FieldValueTypeInvalid|spec.serial|Invalid value: \"integer\": spec.serial in body must "
         "be of type string: \"integer\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"mode\":\"nope\"}}",
         "FieldValueNotSupported|spec.mode|Unsupported value: \"nope\": supported values: "
         "\"active\", \"passive\", \"off\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"cpus\":0}}",
         "FieldValueInvalid|spec.cpus|Invalid value: 0: spec.cpus in body should be greater than "
         "or equal to 1"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"cpus\":65}}",
         "FieldValueInvalid|spec.cpus|Invalid value: 65: spec.cpus in body should be less than or "
         "equal to 64"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"cpus\":1.5}}",
         "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer with "
         "format int32 in spec.cpus\n"
         "FieldValueTypeInvalid|spec.cpus|Invalid value: \"float64\": spec.cpus in body must be of "
         "type int32: \"float64\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"cpus\":\"4\"}}",
         "FieldValueTypeInvalid|spec.cpus|Invalid value: \"string\": spec.cpus in body must be of "
         "type integer: \"string\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"ratio\":0}}",
         "FieldValueInvalid|spec.ratio|Invalid value: 0: factor MultipleOf declared for spec.ratio "
         "must be positive: 0\n"
         "FieldValueInvalid|spec.ratio|Invalid value: 0: spec.ratio in body should be greater than "
         "0"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"ratio\":0.3}}",
         "FieldValueInvalid|spec.ratio|Invalid value: 0.3: spec.ratio in body should be a multiple "
         "of 0.25"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"note\":5}}",
         "FieldValueTypeInvalid|spec.note|Invalid value: \"integer\": spec.note in body must be of "
         "type string: \"integer\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"port\":true}}",
         "FieldValueTypeInvalid|spec.port|Invalid value: \"boolean\": spec.port in body must be of "
         "type integer,string: \"boolean\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"when\":\"yesterday\"}}",
         "FieldValueTypeInvalid|spec.when|Invalid value: \"yesterday\": spec.when in body must be "
         "of type date-time: \"yesterday\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"blob\":\"%%\"}}",
         "FieldValueTypeInvalid|spec.blob|Invalid value: \"%%\": spec.blob in body must be of type "
         "byte: \"%%\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"enabled\":\"yes\"}}",
         "FieldValueTypeInvalid|spec.enabled|Invalid value: \"string\": spec.enabled in body must "
         "be of type boolean: \"string\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"free\":[]}}",
         "FieldValueTypeInvalid|spec.free|Invalid value: \"array\": spec.free in body must be of "
         "type object: \"array\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"labels\":{\"a\":1}}}",
         "FieldValueTypeInvalid|spec.labels.a|Invalid value: \"integer\": spec.labels.a in body "
         "must be of type string: \"integer\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"labels\":{}}}",
         "FieldValueInvalid|spec.labels|Invalid value: 0: spec.labels in body should have at least "
         "1 properties"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"labels\":{\"a\":\"a\",\"b\":\"b\",\"c\":\"c\",\"d\":"
         "\"d\"}}}",
         "FieldValueTooMany|spec.labels|Too many: 4: must have at most 3 items"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"tags\":[\"a\",\"a\"]}}",
         "FieldValueDuplicate|spec.tags[1]|Duplicate value: \"a\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"tags\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}}",
         "FieldValueTooMany|spec.tags|Too many: 5: must have at most 4 items"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"tags\":[1]}}",
         "FieldValueTypeInvalid|spec.tags[0]|Invalid value: \"integer\": spec.tags[0] in body must "
         "be of type string: \"integer\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"ports\":[{\"addr\":\"x\"}]}}",
         "FieldValueRequired|spec.ports[0].name|Required value"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"ports\":[{\"name\":\"a\"},{\"name\":\"a\"}]}}",
         "FieldValueDuplicate|spec.ports[1]|Duplicate value: {\"name\":\"a\"}"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"order\":[]}}",
         "FieldValueInvalid|spec.order|Invalid value: 0: spec.order in body should have at least 1 "
         "items"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"order\":\"x\"}}",
         "FieldValueTypeInvalid|spec.order|Invalid value: \"string\": spec.order in body must be "
         "of type array: \"string\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"template\":{\"kind\":\"X\"}}}",
         "FieldValueRequired|spec.template.apiVersion|Required value"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"template\":\"x\"}}",
         "FieldValueTypeInvalid|spec.template|Invalid value: \"string\": spec.template in body "
         "must be of type object: \"string\""},
        {"{\"spec\":{\"serial\":\"AB-1\",\"choice\":{}}}",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.choice\" must validate one and only "
         "one schema (oneOf). Found none valid\n"
         "FieldValueRequired|spec.choice.x|Required value"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"choice\":{\"x\":\"1\",\"y\":\"2\"}}}",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.choice\" must validate one and only "
         "one schema (oneOf). Found 2 valid alternatives"},
        {"{\"spec\":{\"serial\":null}}", "FieldValueRequired|spec.serial|Required value"},
        {"{\"spec\":{\"serial\":\"AB-1\",\"cpus\":99999999999}}",
         "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer with "
         "format int32 in spec.cpus\n"
         "FieldValueInvalid|spec.cpus|Invalid value: 99999999999: spec.cpus in body should be less "
         "than or equal to 64"},
        {"{}", "FieldValueRequired|spec|Required value"},
        {"{\"spec\":\"x\"}", "FieldValueTypeInvalid|spec|Invalid value: \"string\": spec in body "
                             "must be of type object: \"string\""},
        {"{\"spec\":{}}", "FieldValueRequired|spec.serial|Required value"},
        {"{\"spec\":{\"serial\":\"x\",\"cpus\":0,\"mode\":\"z\",\"tags\":[1]}}",
         "FieldValueInvalid|spec.cpus|Invalid value: 0: spec.cpus in body should be greater than "
         "or equal to 1\n"
         "FieldValueInvalid|spec.serial|Invalid value: \"x\": spec.serial in body should be at "
         "least 2 chars long\n"
         "FieldValueNotSupported|spec.mode|Unsupported value: \"z\": supported values: \"active\", "
         "\"passive\", \"off\"\n"
         "FieldValueTypeInvalid|spec.tags[0]|Invalid value: \"integer\": spec.tags[0] in body must "
         "be of type string: \"integer\""},
    };
    ARENA_AUTO a = arena_new();
    const struct schema *s = compile_text(a, device_schema);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(admit_text(a, s, cases[i].value), cases[i].causes);
}

/* One property `a` with the schema given, validated with the value given. */
static struct str of_a(struct arena *a, const char *schema, const char *value,
                       const char *old_value)
{
    char *text =
        arena_strz(a, arena_printf(a, "{\"type\":\"object\",\"properties\":{\"a\":%s}}", schema));
    char *wrapped = arena_strz(a, arena_printf(a, "{\"a\":%s}", value));
    char *before = old_value ? arena_strz(a, arena_printf(a, "{\"a\":%s}", old_value)) : NULL;
    return validate_text(a, compile_text(a, text), wrapped, before);
}

TEST(keywords)
{
    static const struct {
        const char *schema, *value, *causes;
    } cases[] = {
        /* types */
        {"{\"type\":\"string\"}", "null",
         "FieldValueTypeInvalid|a|Invalid value: \"null\": a in body must be of type string: "
         "\"null\""},
        {"{\"type\":\"string\",\"nullable\":true}", "null", ""},
        {"{\"x-kubernetes-preserve-unknown-fields\":true}", "null", ""},
        {"{\"type\":\"integer\"}", "1.0", ""},
        {"{\"type\":\"integer\"}", "1.5",
         "FieldValueTypeInvalid|a|Invalid value: \"number\": a in body must be of type integer: "
         "\"number\""},
        {"{\"type\":\"number\"}", "1", ""},
        {"{\"type\":\"boolean\"}", "{}",
         "FieldValueTypeInvalid|a|Invalid value: \"object\": a in body must be of type boolean: "
         "\"object\""},
        {"{\"type\":\"integer\",\"format\":\"int64\"}", "true",
         "FieldValueTypeInvalid|a|Invalid value: \"\": a in body must be of type int64: \"\""},
        {"{\"x-kubernetes-int-or-string\":true}", "\"x\"", ""},
        {"{\"x-kubernetes-int-or-string\":true}", "5", ""},
        {"{\"x-kubernetes-int-or-string\":true,\"anyOf\":[{\"type\":\"integer\"},{\"type\":"
         "\"string\"}]}",
         "\"x\"", ""},
        /* numbers */
        {"{\"type\":\"integer\",\"maximum\":3,\"exclusiveMaximum\":true}", "3",
         "FieldValueInvalid|a|Invalid value: 3: a in body should be less than 3"},
        {"{\"type\":\"number\",\"minimum\":0.5}", "0.25",
         "FieldValueInvalid|a|Invalid value: 0.25: a in body should be greater than or equal to "
         "0.5"},
        {"{\"type\":\"number\",\"multipleOf\":0.1}", "0.3", ""},
        {"{\"type\":\"integer\",\"multipleOf\":3}", "7",
         "FieldValueInvalid|a|Invalid value: 7: a in body should be a multiple of 3"},
        {"{\"type\":\"number\",\"maximum\":0.00001}", "1.5",
         "FieldValueInvalid|a|Invalid value: 1.5: a in body should be less than or equal to 1e-05"},
        {"{\"type\":\"integer\",\"format\":\"int64\"}", "1e19",
         "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer with "
         "format int64 in a\n"
         "FieldValueTypeInvalid|a|Invalid value: \"float64\": a in body must be of type int64: "
         "\"float64\""},
        /* strings, by runes */
        {"{\"type\":\"string\",\"maxLength\":2}", "\"\u00e9\u00e9\"", ""},
        {"{\"type\":\"string\",\"minLength\":3}", "\"\u00e9\u00e9\"",
         "FieldValueInvalid|a|Invalid value: \"\u00e9\u00e9\": a in body should be at least 3 "
         "chars long"},
        {"{\"type\":\"string\",\"maxLength\":1}", "\"ab\"",
         "FieldValueTooLong|a|Too long: may not be more than 1 byte"},
        /* the first failure of a string alone, and its format */
        {"{\"type\":\"string\",\"minLength\":9,\"pattern\":\"^b\",\"format\":\"ipv4\"}", "\"a\"",
         "FieldValueInvalid|a|Invalid value: \"a\": a in body should be at least 9 chars long\n"
         "FieldValueTypeInvalid|a|Invalid value: \"a\": a in body must be of type ipv4: \"a\""},
        {"{\"type\":\"string\",\"format\":\"unheard-of\"}", "\"a\"", ""},
        {"{\"type\":\"string\",\"enum\":[\"x\",1,null]}", "\"a\"",
         "FieldValueNotSupported|a|Unsupported value: \"a\": supported values: \"x\", \"1\", "
         "\"null\""},
        {"{\"type\":\"integer\",\"enum\":[1,2]}", "2", ""},
        /* arrays */
        {"{\"type\":\"array\",\"maxItems\":1,\"items\":{\"type\":\"integer\"}}", "[1,2]",
         "FieldValueTooMany|a|Too many: 2: must have at most 1 item"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"integer\"}}", "[1,2,1]",
         "FieldValueInvalid|a|Invalid value: \"\": a in body shouldn't contain duplicates"},
        {"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}",
         "[[\"x\"],[1]]",
         "FieldValueTypeInvalid|a[1][0]|Invalid value: \"integer\": a[1][0] in body must be of "
         "type string: "
         "\"integer\""},
        /* objects */
        {"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"b\":{\"type\":"
         "\"string\"}}}",
         "{\"b\":\"x\",\"c\":1}",
         "FieldValueInvalid|a|Invalid value: \"c\": a.c in body is a forbidden property"},
        {"{\"type\":\"object\",\"minProperties\":2,\"required\":[\"x\"]}", "{}",
         "FieldValueInvalid|a|Invalid value: 0: a in body should have at least 2 properties"},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"array\",\"x-kubernetes-list-"
         "type\":\"set\","
         "\"items\":{\"type\":\"integer\"}}}",
         "{\"k.x\":[1,1]}", "FieldValueDuplicate|a[k.x][1]|Duplicate value: 1"},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}", "{\"k.x\":\"y\"}",
         "FieldValueTypeInvalid|a.k.x|Invalid value: \"string\": a.k.x in body must be of type "
         "integer: \"string\""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(of_a(a, cases[i].schema, cases[i].value, NULL), cases[i].causes);
}

TEST(junctors)
{
    static const struct {
        const char *schema, *value, *causes;
    } cases[] = {
        {"{\"type\":\"string\",\"anyOf\":[{\"pattern\":\"^x\"},{\"maxLength\":2}]}", "\"ab\"", ""},
        /* none: the errors of the first that got as far as any */
        {"{\"type\":\"string\",\"anyOf\":[{\"pattern\":\"^x\"},{\"maxLength\":2}]}", "\"abc\"",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"a\" must validate at least one schema "
         "(anyOf)\n"
         "FieldValueInvalid|a|Invalid value: \"abc\": a in body should match '^x'"},
        {"{\"type\":\"object\",\"anyOf\":[{\"required\":[\"p\"]},{\"properties\":{\"q\":{"
         "\"maximum\":1}},"
         "\"required\":[\"r\"]}]}",
         "{\"q\":1}",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"a\" must validate at least one schema "
         "(anyOf)\n"
         "FieldValueRequired|a.r|Required value"},
        {"{\"type\":\"integer\",\"allOf\":[{\"maximum\":3},{\"minimum\":5}]}", "4",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"a\" must validate all the schemas "
         "(allOf). None validated\n"
         "FieldValueInvalid|a|Invalid value: 4: a in body should be greater than or equal to 5\n"
         "FieldValueInvalid|a|Invalid value: 4: a in body should be less than or equal to 3"},
        {"{\"type\":\"integer\",\"allOf\":[{\"maximum\":9},{\"minimum\":5}]}", "4",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"a\" must validate all the schemas "
         "(allOf)\n"
         "FieldValueInvalid|a|Invalid value: 4: a in body should be greater than or equal to 5"},
        {"{\"type\":\"integer\",\"not\":{\"enum\":[4]}}", "4",
         "FieldValueInvalid|<nil>|Invalid value: \"\": \"a\" must not validate the schema (not)"},
        {"{\"type\":\"integer\",\"not\":{\"enum\":[4]}}", "5", ""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(of_a(a, cases[i].schema, cases[i].value, NULL), cases[i].causes);
}

TEST(what_did_not_change_is_not_judged_again)
{
    static const char ports[] = "{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-"
                                "kubernetes-list-map-keys\":[\"n\"],\"items\":{"
                                "\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{"
                                "\"type\":\"string\"},\"v\":{\"type\":"
                                "\"integer\",\"maximum\":3}}}}";
    static const char list[] =
        "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"maximum\":3}}";
    static const char set[] =
        "{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"integer\"}}";
    static const char pair[] =
        "{\"type\":\"object\",\"required\":[\"z\"],\"properties\":{\"x\":{\"type\":\"integer\","
        "\"maximum\":3},\"y\":{\"type\":\"integer\",\"maximum\":3},\"z\":{\"type\":\"integer\"}}}";
    static const struct {
        const char *schema, *old_value, *value, *causes;
    } cases[] = {
        {pair, "{\"x\":9}", "{\"x\":9}", ""},
        {pair, "{\"x\":9,\"z\":1}", "{\"x\":9,\"y\":1,\"z\":1}", ""},
        {pair, "{\"x\":9,\"z\":1}", "{\"x\":8,\"z\":1}",
         "FieldValueInvalid|a.x|Invalid value: 8: a.x in body should be less than or equal to 3"},
        /* the object changed, so what it lacks counts */
        {pair, "{\"x\":9}", "{\"x\":9,\"y\":1}", "FieldValueRequired|a.z|Required value"},
        /* items of a map are found by their key */
        {ports, "[{\"n\":\"b\",\"v\":9}]", "[{\"n\":\"a\",\"v\":9},{\"n\":\"b\",\"v\":9}]",
         "FieldValueInvalid|a[0].v|Invalid value: 9: a[0].v in body should be less than or equal "
         "to 3"},
        /* other items are not found again */
        {list, "[9]", "[9,1]",
         "FieldValueInvalid|a[0]|Invalid value: 9: a[0] in body should be less than or equal to 3"},
        {list, "[9]", "[9]", ""},
        /* a list that had duplicates may have them */
        {set, "[1,1]", "[1,1,2,2]", ""},
        {set, "[1]", "[1,1]", "FieldValueDuplicate|a[1]|Duplicate value: 1"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(of_a(a, cases[i].schema, cases[i].value, cases[i].old_value), cases[i].causes);
}

TEST(long_lists_find_their_duplicates_too)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO value = {0};
    for (int i = 0; i < 100; i++)
        buf_printf(&value, "%s{\"n\":%d,\"m\":\"x\"}", i ? "," : "[", i % 98);
    buf_append_char(&value, ']');
    const char *schema = "{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-"
                         "list-map-keys\":[\"n\",\"m\"],"
                         "\"items\":{\"type\":\"object\"}}";
    assert_str(of_a(a, schema, value.p, NULL),
               "FieldValueDuplicate|a[98]|Duplicate value: {\"m\":\"x\",\"n\":0}\n"
               "FieldValueDuplicate|a[99]|Duplicate value: {\"m\":\"x\",\"n\":1}");
}

TEST(embedded_resources_are_resources)
{
    static const char schema[] = "{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-"
                                 "kubernetes-preserve-unknown-fields\":true}";
    ARENA_AUTO a = arena_new();
    assert_str(of_a(a, schema,
                    "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"n\"}}", NULL),
               "");
    assert_str(of_a(a, schema,
                    "{\"apiVersion\":\"a/b/c\",\"kind\":\"\",\"metadata\":{\"name\":\"a/b\"}}",
                    NULL),
               "FieldValueInvalid|a.apiVersion|Invalid value: \"a/b/c\": unexpected GroupVersion "
               "string: a/b/c\n"
               "FieldValueInvalid|a.kind|Invalid value: \"\": must not be empty\n"
               "FieldValueInvalid|a.metadata.name|Invalid value: \"a/b\": may not contain '/'");
}

TEST(values_are_quoted_as_go_quotes_them)
{
    ARENA_AUTO a = arena_new();
    assert_str(of_a(a, "{\"type\":\"string\",\"pattern\":\"x\"}",
                    "\"a\\n\\\"\\u0001\\u007f\\u00a0\u00e9\"", NULL),
               "FieldValueInvalid|a|Invalid value: \"a\\n\\\"\\x01\\x7f\\u00a0\u00e9\": a in body "
               "should match 'x'");
}

TEST(errors_are_bounded)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO value = {0};
    for (int i = 0; i < CAUSES_MAX + 500; i++)
        buf_printf(&value, "%s1", i ? "," : "{\"a\":[");
    buf_append_str(&value, STR("]}"));
    const struct schema *s = compile_text(a, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                                             "\"array\",\"items\":{\"type\":\"string\"}}}}");
    struct causes c;
    causes_init(&c, a);
    schema_validate(s, parse_text(a, value.p), NULL, NULL, &c);
    size_t n = 0;
    for (const struct cause *x = c.first; x; x = x->next)
        n++;
    assert_int_equal(n, CAUSES_MAX);
    assert_int_equal(c.n, CAUSES_MAX + 500);
}

TEST(a_good_value_costs_no_memory)
{
    ARENA_AUTO a = arena_new();
    const struct schema *s = compile_text(a, device_schema);
    struct json *v = parse_text(
        a, "{\"spec\":{\"serial\":\"AB-1\",\"port\":\"http\",\"choice\":{\"x\":\"1\"},\"tags\":["
           "\"a\",\"b\"],\"ports\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}");
    struct causes c;
    causes_init(&c, a);
    size_t before = arena_used(a);
    schema_validate(s, v, v, NULL, &c);
    assert_int_equal(c.n, 0);
    assert_int_equal(arena_used(a), before);
}

TEST(nested_junctors_do_not_multiply_the_work)
{
    ARENA_AUTO a = arena_new();
    struct str schema = STR("{\"maximum\":1}");
    for (int i = 0; i < 50; i++)
        schema = arena_printf(a, "{\"anyOf\":[%.*s]}", STR_ARG(schema));
    schema = arena_printf(a, "{\"type\":\"integer\",\"allOf\":[%.*s]}", STR_ARG(schema));
    struct str causes = of_a(a, arena_strz(a, schema), "5", "4");
    assert_true(str_find_str(causes, STR("a in body should be less than or equal to 1")) > 0);
}

/* Two large versions of an object, each wrong in many places that did not change. */
TEST(wide_values_are_compared_in_linear_time)
{
    enum { N = 20000 };
    ARENA_AUTO a = arena_new();
    BUF_AUTO list = {0};
    BUF_AUTO map = {0};
    for (int i = 0; i < N; i++) {
        buf_printf(&list, "%s{\"n\":\"k%d\",\"v\":9}", i ? "," : "", i);
        buf_printf(&map, "%s\"k%d\":9", i ? "," : "", i);
    }
    char *lists = arena_strz(a, arena_printf(a, "[%.*s]", STR_ARG(buf_str(&list))));
    char *longer = arena_strz(a, arena_printf(a, "[{\"n\":\"x\"},%.*s]", STR_ARG(buf_str(&list))));
    char *maps = arena_strz(a, arena_printf(a, "{%.*s}", STR_ARG(buf_str(&map))));
    char *wider = arena_strz(a, arena_printf(a, "{\"x\":1,%.*s}", STR_ARG(buf_str(&map))));
    assert_str(of_a(a,
                    "{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
                    "map-keys\":[\"n\"],"
                    "\"items\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\","
                    "\"maximum\":1}}}}",
                    longer, lists),
               "");
    assert_str(
        of_a(a,
             "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\",\"maximum\":1}}",
             wider, maps),
        "");
}

TEST(texts_of_errors_are_bounded)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO key = {0};
    BUF_AUTO value = {0};
    for (int i = 0; i < 1000000; i++)
        buf_append_char(&key, 'k');
    buf_printf(&value, "{\"%.*s\":[", STR_ARG(buf_str(&key)));
    for (int i = 0; i < 500; i++)
        buf_printf(&value, "%s1", i ? "," : "");
    buf_append_str(&value, STR("]}"));
    const struct schema *s =
        compile_text(a, "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"array\","
                        "\"items\":{\"type\":\"string\"}}}");
    struct causes c;
    causes_init(&c, a);
    schema_validate(s, parse_text(a, value.p), NULL, NULL, &c);
    assert_int_equal(c.n, 500);
    assert_in_range(c.n_bytes, CAUSES_MAX_BYTES / 2, 2 * CAUSES_MAX_BYTES);
}
