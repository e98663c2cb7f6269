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
