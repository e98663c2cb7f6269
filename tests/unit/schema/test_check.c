/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "device.h"

static struct str check_text(struct arena *a, const char *schema)
{
    struct field_path at = FIELD_NAME(NULL, STR("x"));
    struct causes c;
    causes_init(&c, a);
    schema_check(parse_text(a, schema), &at, &c);
    return causes_text(a, &c);
}

/* Recorded from kube-apiserver 1.36. */
TEST(says_what_kube_apiserver_says)
{
    static const struct {
        const char *schema, *causes;
    } cases[] = {
        {"{\"type\":\"object\",\"properties\":{\"spec\":{}}}",
         "FieldValueRequired|x.properties[spec].type|Required value: must not be empty for "
         "specified object fields"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"nope\"}}}",
         "FieldValueNotSupported|x.properties[spec].type|Unsupported value: \"nope\": supported "
         "values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\"}}}",
         "FieldValueRequired|x.properties[spec].items|Required value: must be specified"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"a\":"
         "{\"description\":\"no type\"}}}}}",
         "FieldValueRequired|x.properties[spec].properties[a].type|Required value: must not be "
         "empty for specified object fields"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"additionalProperties\":false}}}",
         ""},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"a\":"
         "{\"type\":\"string\"}},\"additionalProperties\":{\"type\":\"string\"}}}}",
         "FieldValueForbidden|x.properties[spec].additionalProperties|Forbidden: "
         "additionalProperties and properties are mutual exclusive"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\",\"pattern\":\"(\"}}}",
         "FieldValueInvalid|x.properties[spec].pattern|Invalid value: \"(\": must be a valid "
         "regular expression, but isn't: error parsing regexp: missing closing ): `(`"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"$ref\":\"#/x\"}}}",
         "FieldValueForbidden|x.properties[spec].$ref|Forbidden: $ref is not supported"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"allOf\":[{"
         "\"properties\":{\"z\":{\"type\":\"string\"}}}]}}}",
         "FieldValueForbidden|x.properties[spec].allOf[0].properties[z].type|Forbidden: must be "
         "empty to be structural"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"object\"},\"x-kubernetes-list-type\":\"map\"}}}",
         "FieldValueRequired|x.properties[spec].x-kubernetes-list-map-keys|Required value: must "
         "not be empty if x-kubernetes-list-type is map"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"object\"},\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"k\"]}}}",
         "FieldValueInvalid|x.properties[spec].x-kubernetes-list-map-keys|Invalid value: [\"k\"]: "
         "entries must all be names of item properties"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"string\"},\"x-kubernetes-list-type\":\"nope\"}}}",
         "FieldValueNotSupported|x.properties[spec].x-kubernetes-list-type|Unsupported value: "
         "\"nope\": supported values: \"atomic\", \"set\", \"map\""},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"object\"},\"x-kubernetes-list-type\":\"set\"}}}",
         "FieldValueInvalid|x.properties[spec].items.x-kubernetes-map-type|Invalid value: null: "
         "must be atomic as item of a list with x-kubernetes-list-type=set"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\",\"default\":5}}}",
         "FieldValueTypeInvalid|x.properties[spec].default|Invalid value: \"integer\":  in body "
         "must be of type string: \"integer\""},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"x-kubernetes-"
         "embedded-resource\":true}}}",
         "FieldValueRequired|x.properties[spec].properties|Required value: must not be empty if "
         "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"},
        {"{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"properties\":{"
         "\"labels\":{\"type\":\"object\"}}}}}",
         "FieldValueForbidden|x.properties[metadata]|Forbidden: must not specify anything other "
         "than name and generateName, but metadata is implicitly specified"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\",\"x-kubernetes-"
         "preserve-unknown-fields\":false}}}",
         "FieldValueInvalid|x.properties[spec].x-kubernetes-preserve-unknown-fields|Invalid value: "
         "false: must be true or undefined"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":"
         "\"integer\"},\"uniqueItems\":true}}}",
         "FieldValueForbidden|x.properties[spec].uniqueItems|Forbidden: uniqueItems cannot be set "
         "to true since the runtime complexity becomes quadratic"},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\",\"enum\":[\"a\",\"a\"]"
         "}}}",
         ""},
        {"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"x-kubernetes-"
         "validations\":[{\"rule\":\"this is not cel\"},{\"message\":\"x\"}]}}}",
         "FieldValueRequired|x.properties[spec].x-kubernetes-validations[1].rule|Required value: "
         "rule is not specified"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(check_text(a, cases[i].schema), cases[i].causes);
    assert_str(check_text(a, device_schema), "");
}

/* The schema of a property `a`, and what is wrong below x.properties[a]. */
TEST(what_a_field_may_not_say)
{
    static const struct {
        const char *schema, *causes;
    } cases[] = {
        {"{\"type\":\"string\",\"default\":\"x\"}", ""},
        {"{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}},\"default\":{\"b\":"
         "\"x\",\"c\":1}}",
         "FieldValueInvalid|.default|Invalid value: {\"b\":\"x\",\"c\":1}: must not have unknown "
         "fields"},
        {"{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}},\"default\":{\"b\":1}}",
         "FieldValueTypeInvalid|.default.b|Invalid value: \"integer\": b in body must be of type "
         "string: \"integer\""},
        {"{\"type\":\"object\",\"required\":[\"b\"],\"default\":{}}",
         "FieldValueRequired|.default.b|Required value"},
        {"{\"type\":\"string\",\"pattern\":\"a**\"}",
         "FieldValueInvalid|.pattern|Invalid value: \"a**\": must be a valid regular expression, "
         "but isn't: error "
         "parsing regexp: invalid nested repetition operator: `**`"},
        {"{\"type\":\"array\",\"items\":{}}", "FieldValueRequired|.items.type|Required value: must "
                                              "not be empty for specified array items"},
        {"{\"type\":\"object\",\"additionalProperties\":{}}",
         "FieldValueRequired|.additionalProperties.type|Required value: must not be empty for "
         "specified object fields"},
        {"{\"type\":\"object\",\"additionalProperties\":true,\"properties\":{\"b\":{\"type\":"
         "\"string\"}}}",
         ""},
        {"{\"type\":\"string\",\"anyOf\":[{\"description\":\"x\",\"nullable\":true,\"default\":1}]"
         "}",
         "FieldValueForbidden|.anyOf[0].default|Forbidden: must be undefined to be structural\n"
         "FieldValueForbidden|.anyOf[0].description|Forbidden: must be empty to be structural\n"
         "FieldValueForbidden|.anyOf[0].nullable|Forbidden: must be false to be structural"},
        {"{\"x-kubernetes-int-or-string\":true,\"anyOf\":[{\"type\":\"integer\"},{\"type\":"
         "\"string\"}]}",
         ""},
        {"{\"x-kubernetes-int-or-string\":true,\"allOf\":[{\"anyOf\":[{\"type\":\"integer\"},{"
         "\"type\":\"string\"}]},"
         "{\"pattern\":\"a\"}]}",
         ""},
        {"{\"x-kubernetes-int-or-string\":true,\"x-kubernetes-preserve-unknown-fields\":true}",
         "FieldValueInvalid|.x-kubernetes-preserve-unknown-fields|Invalid value: true: must be "
         "false if "
         "x-kubernetes-int-or-string is true"},
        {"{\"type\":\"string\",\"x-kubernetes-map-type\":\"granular\"}",
         "FieldValueInvalid|.type|Invalid value: \"string\": must be object if "
         "x-kubernetes-map-type is specified"},
        {"{\"type\":\"object\",\"x-kubernetes-map-type\":\"x\"}",
         "FieldValueNotSupported|.x-kubernetes-map-type|Unsupported value: \"x\": supported "
         "values: \"atomic\", "
         "\"granular\""},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"x-kubernetes-list-map-keys\":["
         "\"k\"]}",
         "FieldValueRequired|.x-kubernetes-list-type|Required value: must be map if "
         "x-kubernetes-list-map-keys is "
         "non-empty"},
        {"{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["
         "\"k\",\"k\"],\"items\":{"
         "\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\",\"nullable\":true}}}}",
         "FieldValueForbidden|.items.properties[k].nullable|Forbidden: this property is in "
         "x-kubernetes-list-map-keys, so it cannot be nullable\n"
         "FieldValueForbidden|.items.properties[k].nullable|Forbidden: this property is in "
         "x-kubernetes-list-map-keys, so it cannot be nullable\n"
         "FieldValueInvalid|.x-kubernetes-list-map-keys|Invalid value: [\"k\",\"k\"]: must not "
         "contain duplicate "
         "entries\n"
         "FieldValueRequired|.items.properties[k].default|Required value: this property is in "
         "x-kubernetes-list-map-keys, so it must have a default or be a required property\n"
         "FieldValueRequired|.items.properties[k].default|Required value: this property is in "
         "x-kubernetes-list-map-keys, so it must have a default or be a required property"},
        {"{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["
         "\"k\"],\"items\":{"
         "\"type\":\"object\",\"required\":[\"k\"],\"properties\":{\"k\":{\"type\":\"object\"}}}}",
         "FieldValueInvalid|.items.properties[k].type|Invalid value: \"object\": must be a scalar "
         "type if parent "
         "array's x-kubernetes-list-type is map"},
        {"{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\","
         "\"nullable\":true}}",
         "FieldValueForbidden|.items.nullable|Forbidden: cannot be nullable when "
         "x-kubernetes-list-type is set"},
        {"{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-"
         "unknown-fields\":true,"
         "\"properties\":{\"kind\":{\"type\":\"integer\"},\"metadata\":{\"type\":\"object\","
         "\"properties\":{\"labels\":{"
         "\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,"
         "\"x-kubernetes-preserve-unknown-fields\":true}}}}}",
         "FieldValueForbidden|.properties[metadata].properties[labels].x-kubernetes-embedded-"
         "resource|Forbidden: "
         "must not be used inside of resource meta\n"
         "FieldValueInvalid|.properties[kind].type|Invalid value: \"integer\": must be string"},
        {"{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-"
         "unknown-fields\":true,"
         "\"default\":{\"kind\":\"X\"}}",
         "FieldValueRequired|.default.apiVersion|Required value"},
        {"{\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":\"true\",\"message\":\" "
         "\",\"reason\":\"x\","
         "\"fieldPath\":\".b\"}]}",
         "FieldValueInvalid|.x-kubernetes-validations[0].fieldPath|Invalid value: \".b\": "
         "fieldPath must be a valid "
         "path\n"
         "FieldValueInvalid|.x-kubernetes-validations[0].message|Invalid value: \" \": message "
         "must be non-empty if "
         "specified\n"
         "FieldValueNotSupported|.x-kubernetes-validations[0].reason|Unsupported value: \"x\": "
         "supported values: "
         "\"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", "
         "\"FieldValueRequired\""},
        {"{\"type\":5,\"maxLength\":\"x\"}",
         "FieldValueTypeInvalid|.maxLength|Invalid value: \"string\": must be of type integer\n"
         "FieldValueTypeInvalid|.type|Invalid value: \"integer\": must be of type string"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char *schema = arena_strz(
            a, arena_printf(a, "{\"type\":\"object\",\"properties\":{\"a\":%s}}", cases[i].schema));
        struct str got = check_text(a, schema);
        BUF_AUTO wanted = {0};
        for (const char *p = cases[i].causes; *p; p++) {
            buf_append_char(&wanted, *p);
            if (*p == '|' && (p[1] == '.'))
                buf_append_str(&wanted, STR("x.properties[a]"));
        }
        assert_str(got, wanted.p ? wanted.p : "");
    }
}

TEST(what_the_root_may_not_say)
{
    static const struct {
        const char *schema, *causes;
    } cases[] = {
        {"{\"type\":\"object\"}", ""},
        {"{}", "FieldValueRequired|x.type|Required value: must not be empty at the root"},
        {"{\"type\":\"string\"}",
         "FieldValueInvalid|x.type|Invalid value: \"string\": must be object at the root"},
        {"{\"type\":\"object\",\"nullable\":true}",
         "FieldValueForbidden|x.nullable|Forbidden: nullable cannot be true at the root"},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
         "FieldValueForbidden|x.additionalProperties|Forbidden: must not be used at the root"},
        {"{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"properties\":{"
         "\"name\":{\"type\":"
         "\"string\",\"maxLength\":9}}}}}",
         ""},
        {"{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"default\":{}}}}",
         "FieldValueForbidden|x.properties[metadata].default|Forbidden: must not be set in "
         "top-level metadata"},
        {"{\"type\":\"object\",\"anyOf\":[{\"properties\":{\"b\":{\"maximum\":1}}}]}",
         "FieldValueRequired|x.properties[b]|Required value: because it is defined in "
         "x.anyOf[0].properties[b]"},
        {"{\"type\":\"object\",\"definitions\":{\"d\":{\"type\":\"string\"}},\"id\":\"i\",\"$"
         "schema\":\"s\"}",
         "FieldValueForbidden|x.definitions|Forbidden: definitions is not supported\n"
         "FieldValueForbidden|x.id|Forbidden: id is not supported"},
        {"[]", "FieldValueTypeInvalid|x|Invalid value: \"array\": must be of type object"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(check_text(a, cases[i].schema), cases[i].causes);
}

static void count_unknown(void *ctx, struct str path)
{
    buf_printf(ctx, " %.*s", STR_ARG(path));
}

TEST(normalizes_as_go_writes_it_again)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO unknown = {0};
    struct field_path at = FIELD_NAME(NULL, STR("x"));
    struct json *schema = parse_text(
        a, "{\"type\":\"object\",\"description\":\"\",\"nullable\":false,\"required\":[],\"nope\":"
           "1,\"default\":null,"
           "\"x-kubernetes-preserve-unknown-fields\":false,\"properties\":{\"a\":{\"type\":"
           "\"string\",\"minLength\":0,"
           "\"enum\":[],\"x-kubernetes-patch-merge-key\":\"k\"}},\"anyOf\":[{\"title\":\"\"}]}");
    schema_normalize(a, schema, &at, count_unknown, &unknown);
    assert_str(json_text(a, schema), "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-"
                                     "fields\":false,\"properties\":{\"a\":{\"type\":"
                                     "\"string\",\"minLength\":0}},\"anyOf\":[{}]}");
    assert_str(buf_str(&unknown), " x.nope x.properties.a.x-kubernetes-patch-merge-key");
}
