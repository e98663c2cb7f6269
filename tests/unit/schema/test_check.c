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
