/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "../schema/device.h"
#include "resources/customresourcedefinition.h"
#include "schema/patch.h"

static const char device_crd[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/"
    "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"devices.ns.example.org\"},"
    "\"spec\":{\"group\":\"ns.example.org\",\"scope\":\"Namespaced\",\"names\":{\"plural\":"
    "\"devices\",\"singular\":\"device\",\"kind\":\"Device\",\"listKind\":\"DeviceList\","
    "\"shortNames\":[\"edev\"],\"categories\":[\"eve\"]},\"versions\":[{\"name\":\"v1\",\"served\":"
    "true,\"storage\":true,\"schema\":{},\"subresources\":{\"status\":{},\"scale\":{"
    "\"specReplicasPath\":\".spec.replicas\",\"statusReplicasPath\":\".status.replicas\","
    "\"labelSelectorPath\":\".status.selector\"}},\"additionalPrinterColumns\":[{\"name\":"
    "\"Serial\",\"type\":\"string\",\"jsonPath\":\".spec.serial\"},{\"name\":\"CPUs\",\"type\":"
    "\"integer\",\"jsonPath\":\".spec.cpus\",\"format\":\"int32\",\"description\":\"How "
    "many.\"},{\"name\":\"Ratio\",\"type\":\"number\",\"jsonPath\":\".spec.ratio\",\"priority\":1},"
    "{\"name\":\"On\",\"type\":\"boolean\",\"jsonPath\":\".spec.enabled\"},{\"name\":\"Seen\","
    "\"type\":\"date\",\"jsonPath\":\".status.seen\"},{\"name\":\"Ready\",\"type\":\"string\","
    "\"jsonPath\":\".status.conditions[?(@.type==\\\"Ready\\\")].status\"},{\"name\":\"First\","
    "\"type\":\"string\",\"jsonPath\":\".spec.ports[0].name\"},{\"name\":\"Tags\",\"type\":"
    "\"string\",\"jsonPath\":\".spec.tags\"},{\"name\":\"Age\",\"type\":\"date\",\"jsonPath\":\"."
    "metadata.creationTimestamp\"}],\"selectableFields\":[{\"jsonPath\":\".spec.mode\"},{"
    "\"jsonPath\":\".spec.serial\"}]}]}}";

static size_t n_warnings;

static void on_warning(struct hook_context *h, struct str text)
{
    (void) h;
    (void) text;
    n_warnings++;
}

static struct json *device(struct arena *a)
{
    struct json *crd = parse_text(a, device_crd);
    struct json *version = &json_at(crd, "spec", "versions", NULL)->items[0];
    (void) json_set(a, json_get(version, STR("schema")), STR("openAPIV3Schema"),
                    *parse_text(a, device_schema));
    return crd;
}

/* The base manifest after a JSON Patch. */
static struct json *patched(struct arena *a, const char *patch)
{
    struct json *result = NULL;
    struct patch_error error = {0};
    if (patch_json(a, device(a), parse_text(a, patch), &result, &error) < 0)
        fail_msg("%.*s", STR_ARG(error.message));
    struct json *copy = json_new(a, json_clone(a, result));
    return copy;
}

static struct hook_context context(struct arena *a, enum write_operation operation,
                                   const char *subresource)
{
    n_warnings = 0;
    return (struct hook_context){
        .arena = a, .operation = operation, .subresource = str_of(subresource), .warn = on_warning};
}

static struct str create_text(struct arena *a, struct json *crd)
{
    const struct kind_hooks *hooks = &customresourcedefinition_hooks;
    struct hook_context h = context(a, WRITE_CREATE, "");
    struct causes c;
    causes_init(&c, a);
    hooks->set_defaults(&h, crd);
    hooks->prepare(&h, NULL, crd);
    hooks->validate(&h, crd, &c);
    return causes_text(a, &c);
}

/* Recorded from kube-apiserver 1.36. */
TEST(says_what_kube_apiserver_says)
{
    static const struct {
        const char *patch, *causes;
    } cases[] = {
        {/* crd.invalid-spec 1 */
         "[{\"op\":\"replace\",\"path\":\"/metadata/"
         "name\",\"value\":\"x.example.org\"},{\"op\":\"remove\",\"path\":\"/spec\"}]",
         "FieldValueInvalid|metadata.name|Invalid value: \"x.example.org\": must be "
         "spec.names.plural+\".\"+spec.group\n"
         "FieldValueInvalid|spec.versions|Invalid value: null: must have exactly one version "
         "marked as storage version\n"
         "FieldValueInvalid|status.storedVersions|Invalid value: null: must have at least one "
         "stored version\n"
         "FieldValueRequired|spec.group|Required value\n"
         "FieldValueRequired|spec.names.kind|Required value\n"
         "FieldValueRequired|spec.names.listKind|Required value\n"
         "FieldValueRequired|spec.names.plural|Required value\n"
         "FieldValueRequired|spec.names.singular|Required value\n"
         "FieldValueRequired|spec.scope|Required value"},
        {/* crd.invalid-spec 2 */
         "[{\"op\":\"replace\",\"path\":\"/spec/scope\",\"value\":\"Nope\"}]",
         "FieldValueNotSupported|spec.scope|Unsupported value: \"Nope\": supported values: "
         "\"Cluster\", \"Namespaced\""},
        {/* crd.invalid-spec 3 */
         "[{\"op\":\"replace\",\"path\":\"/metadata/name\",\"value\":\"wrong\"}]",
         "FieldValueInvalid|metadata.name|Invalid value: \"wrong\": must be "
         "spec.names.plural+\".\"+spec.group"},
        {/* crd.invalid-spec 4 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/storage\",\"value\":false}]",
         "FieldValueInvalid|spec.versions|Invalid value: "
         "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,"
         "\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,"
         "\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one "
         "version marked as storage version\n"
         "FieldValueInvalid|status.storedVersions|Invalid value: null: must have at least one "
         "stored version"},
        {/* crd.invalid-spec 5 */
         "[{\"op\":\"copy\",\"from\":\"/spec/versions/0\",\"path\":\"/spec/versions/"
         "-\"},{\"op\":\"replace\",\"path\":\"/spec/versions/1/name\",\"value\":\"v2\"}]",
         "FieldValueInvalid|spec.versions|Invalid value: "
         "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,"
         "\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,"
         "\"AdditionalPrinterColumns\":null,\"SelectableFields\":null},{\"Name\":\"v2\",\"Served\":"
         "true,\"Storage\":true,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,"
         "\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: "
         "must have exactly one version marked as storage version\n"
         "FieldValueInvalid|status.storedVersions|Invalid value: [\"v1\"]: must have the storage "
         "version v2"},
        {/* crd.invalid-spec 6 */
         "[{\"op\":\"copy\",\"from\":\"/spec/versions/0\",\"path\":\"/spec/versions/"
         "-\"},{\"op\":\"replace\",\"path\":\"/spec/versions/1/storage\",\"value\":false}]",
         "FieldValueInvalid|spec.versions|Invalid value: "
         "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,"
         "\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,"
         "\"AdditionalPrinterColumns\":null,\"SelectableFields\":null},{\"Name\":\"v1\",\"Served\":"
         "true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,"
         "\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: "
         "must contain unique version names"},
        {/* crd.invalid-spec 7 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/name\",\"value\":\"V_1\"}]",
         "FieldValueInvalid|spec.versions[0].name|Invalid value: \"V_1\": a DNS-1035 label must "
         "consist of lower case alphanumeric characters or '-', start with an alphabetic "
         "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex "
         "used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')\n"
         "FieldValueInvalid|spec.version|Invalid value: \"V_1\": a DNS-1035 label must consist of "
         "lower case alphanumeric characters or '-', start with an alphabetic character, and end "
         "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
         "is '[a-z]([-a-z0-9]*[a-z0-9])?')"},
        {/* crd.invalid-spec 8 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}]}]",
         "FieldValueRequired|spec.versions[0].schema.openAPIV3Schema|Required value"},
        {/* crd.invalid-spec 9 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "names\",\"value\":{\"plural\":\"devices\",\"kind\":\"bad "
         "kind\",\"singular\":\"Up\",\"shortNames\":[\"Up_\"],\"categories\":[\"B "
         "C\"],\"listKind\":\"Device\"}}]",
         "FieldValueInvalid|spec.names.categories[0]|Invalid value: \"B C\": a DNS-1035 label must "
         "consist of lower case alphanumeric characters or '-', start with an alphabetic "
         "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex "
         "used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')\n"
         "FieldValueInvalid|spec.names.kind|Invalid value: \"bad kind\": may have mixed case, but "
         "should otherwise match: a DNS-1035 label must consist of lower case alphanumeric "
         "characters or '-', start with an alphabetic character, and end with an alphanumeric "
         "character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
         "'[a-z]([-a-z0-9]*[a-z0-9])?')\n"
         "FieldValueInvalid|spec.names.shortNames[0]|Invalid value: \"Up_\": a DNS-1035 label must "
         "consist of lower case alphanumeric characters or '-', start with an alphabetic "
         "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex "
         "used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')\n"
         "FieldValueInvalid|spec.names.singular|Invalid value: \"Up\": a DNS-1035 label must "
         "consist of lower case alphanumeric characters or '-', start with an alphabetic "
         "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex "
         "used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"},
        {/* crd.invalid-spec 10 */
         "[{\"op\":\"add\",\"path\":\"/spec/preserveUnknownFields\",\"value\":true}]",
         "FieldValueInvalid|spec.preserveUnknownFields|Invalid value: true: cannot set to true, "
         "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead\n"
         "FieldValueInvalid|spec.preserveUnknownFields|Invalid value: true: must be false in order "
         "to use defaults in the schema"},
        {/* crd.invalid-spec 11 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions\",\"value\":[]}]",
         "FieldValueInvalid|spec.versions|Invalid value: []: must have exactly one version marked "
         "as storage version\n"
         "FieldValueInvalid|status.storedVersions|Invalid value: null: must have at least one "
         "stored version"},
        {/* crd.invalid-spec 12 */
         "[{\"op\":\"replace\",\"path\":\"/spec/names\",\"value\":{\"plural\":\"devices\"}}]",
         "FieldValueRequired|spec.names.kind|Required value\n"
         "FieldValueRequired|spec.names.listKind|Required value\n"
         "FieldValueRequired|spec.names.singular|Required value"},
        {/* crd.invalid-spec 13 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/served\",\"value\":false}]", ""},
        {/* crd.structural-errors 1 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{}}}},\"subresources\":"
         "{},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueRequired|spec.validation.openAPIV3Schema.properties[spec].type|Required value: "
         "must not be empty for specified object fields"},
        {/* crd.structural-errors 2 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"nope\"}}}},"
         "\"subresources\":{},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueNotSupported|spec.validation.openAPIV3Schema.properties[spec].type|Unsupported "
         "value: \"nope\": supported values: \"array\", \"boolean\", \"integer\", \"number\", "
         "\"object\", \"string\""},
        {/* crd.structural-errors 3 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\"}}}}"
         ",\"subresources\":{},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueRequired|spec.validation.openAPIV3Schema.properties[spec].items|Required "
         "value: must be specified"},
        {/* crd.structural-errors 4 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"properties\":{\"a\":{\"description\":\"no "
         "type\"}}}}}},\"subresources\":{},\"additionalPrinterColumns\":[],\"selectableFields\":[]}"
         "]}]",
         "FieldValueRequired|spec.validation.openAPIV3Schema.properties[spec].properties[a].type|"
         "Required value: must not be empty for specified object fields"},
        {/* crd.structural-errors 5 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"additionalProperties\":false}}}},\"subresources\":{},\"additionalPrinterColumns\":[],"
         "\"selectableFields\":[]}]}]",
         ""},
        {/* crd.structural-errors 6 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":{\"type\":"
         "\"string\"}}}}},\"subresources\":{},\"additionalPrinterColumns\":[],\"selectableFields\":"
         "[]}]}]",
         "FieldValueForbidden|spec.validation.openAPIV3Schema.properties[spec]."
         "additionalProperties|Forbidden: additionalProperties and properties are mutual "
         "exclusive"},
        {/* crd.structural-errors 7 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\","
         "\"pattern\":\"(\"}}}},\"subresources\":{},\"additionalPrinterColumns\":[],"
         "\"selectableFields\":[]}]}]",
         "FieldValueInvalid|spec.validation.openAPIV3Schema.properties[spec].pattern|Invalid "
         "value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: "
         "missing closing ): `(`"},
        {/* crd.structural-errors 8 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"$ref\":\"#/"
         "x\"}}}},\"subresources\":{},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueForbidden|spec.validation.openAPIV3Schema.properties[spec].$ref|Forbidden: "
         "$ref is not supported"},
        {/* crd.structural-errors 9 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"allOf\":[{\"properties\":{\"z\":{\"type\":\"string\"}}}]}}}},\"subresources\":{},"
         "\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueForbidden|spec.validation.openAPIV3Schema.properties[spec].allOf[0].properties["
         "z].type|Forbidden: must be empty to be structural"},
        {/* crd.structural-errors 10 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\","
         "\"items\":{\"type\":\"object\"},\"x-kubernetes-list-type\":\"map\"}}}},\"subresources\":{"
         "},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueRequired|spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-"
         "map-keys|Required value: must not be empty if x-kubernetes-list-type is map"},
        {/* crd.structural-errors 11 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\","
         "\"items\":{\"type\":\"object\"},\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
         "map-keys\":[\"k\"]}}}},\"subresources\":{},\"additionalPrinterColumns\":[],"
         "\"selectableFields\":[]}]}]",
         "FieldValueInvalid|spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-map-"
         "keys|Invalid value: [\"k\"]: entries must all be names of item properties"},
        {/* crd.structural-errors 12 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\","
         "\"items\":{\"type\":\"string\"},\"x-kubernetes-list-type\":\"nope\"}}}},\"subresources\":"
         "{},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueNotSupported|spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-"
         "list-type|Unsupported value: \"nope\": supported values: \"atomic\", \"set\", \"map\""},
        {/* crd.structural-errors 13 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\","
         "\"items\":{\"type\":\"object\"},\"x-kubernetes-list-type\":\"set\"}}}},\"subresources\":{"
         "},\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueInvalid|spec.validation.openAPIV3Schema.properties[spec].items.x-kubernetes-"
         "map-type|Invalid value: null: must be atomic as item of a list with "
         "x-kubernetes-list-type=set"},
        {/* crd.structural-errors 14 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\","
         "\"default\":5}}}},\"subresources\":{},\"additionalPrinterColumns\":[],"
         "\"selectableFields\":[]}]}]",
         "FieldValueTypeInvalid|spec.validation.openAPIV3Schema.properties[spec].default|Invalid "
         "value: \"integer\":  in body must be of type string: \"integer\""},
        {/* crd.structural-errors 15 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"x-kubernetes-embedded-resource\":true}}}},\"subresources\":{},"
         "\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueRequired|spec.validation.openAPIV3Schema.properties[spec].properties|Required "
         "value: must not be empty if x-kubernetes-embedded-resource is true without "
         "x-kubernetes-preserve-unknown-fields"},
        {/* crd.structural-errors 16 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":"
         "\"object\",\"properties\":{\"labels\":{\"type\":\"object\"}}}}}},\"subresources\":{},"
         "\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueForbidden|spec.validation.openAPIV3Schema.properties[metadata]|Forbidden: must "
         "not specify anything other than name and generateName, but metadata is implicitly "
         "specified"},
        {/* crd.structural-errors 17 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\","
         "\"x-kubernetes-preserve-unknown-fields\":false}}}},\"subresources\":{},"
         "\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueInvalid|spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-preserve-"
         "unknown-fields|Invalid value: false: must be true or undefined"},
        {/* crd.structural-errors 18 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\","
         "\"items\":{\"type\":\"integer\"},\"uniqueItems\":true}}}},\"subresources\":{},"
         "\"additionalPrinterColumns\":[],\"selectableFields\":[]}]}]",
         "FieldValueForbidden|spec.validation.openAPIV3Schema.properties[spec].uniqueItems|"
         "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
         "quadratic"},
        {/* crd.structural-errors 19 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"string\","
         "\"enum\":[\"a\",\"a\"]}}}},\"subresources\":{},\"additionalPrinterColumns\":[],"
         "\"selectableFields\":[]}]}]",
         ""},
        {/* crd.invalid-extras 1 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/"
         "additionalPrinterColumns\",\"value\":[{\"name\":\"A\",\"type\":\"nope\",\"jsonPath\":\"."
         "x\"}]}]",
         "FieldValueInvalid|spec.additionalPrinterColumns[0].type|Invalid value: \"nope\": must be "
         "one of boolean,date,integer,number,string"},
        {/* crd.invalid-extras 2 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/"
         "additionalPrinterColumns\",\"value\":[{\"name\":\"A\",\"type\":\"string\",\"jsonPath\":"
         "\"x\"},{\"name\":\"\",\"type\":\"\",\"jsonPath\":\"\"}]}]",
         "FieldValueInvalid|spec.additionalPrinterColumns[0].JSONPath|Invalid value: \"x\": must "
         "be a simple json path starting with .\n"
         "FieldValueRequired|spec.additionalPrinterColumns[1].JSONPath|Required value\n"
         "FieldValueRequired|spec.additionalPrinterColumns[1].name|Required value\n"
         "FieldValueRequired|spec.additionalPrinterColumns[1].type|Required value: must be one of "
         "boolean,date,integer,number,string"},
        {/* crd.invalid-extras 3 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/"
         "selectableFields\",\"value\":[{\"jsonPath\":\".spec.absent\"}]}]",
         "FieldValueInvalid|spec.selectableFields[0].jsonPath|Invalid value: \".spec.absent\": is "
         "an invalid path: does not refer to a valid field"},
        {/* crd.invalid-extras 4 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/selectableFields/0/"
         "jsonPath\",\"value\":\".spec.free\"},{\"op\":\"replace\",\"path\":\"/spec/versions/0/"
         "selectableFields/1/jsonPath\",\"value\":\".spec.mode\"},{\"op\":\"add\",\"path\":\"/spec/"
         "versions/0/selectableFields/"
         "-\",\"value\":{\"jsonPath\":\".spec.mode\"}},{\"op\":\"add\",\"path\":\"/spec/versions/0/"
         "selectableFields/-\",\"value\":{\"jsonPath\":\"spec\"}}]",
         "FieldValueDuplicate|spec.selectableFields[2].jsonPath|Duplicate value: \".spec.mode\"\n"
         "FieldValueInvalid|spec.selectableFields[0].jsonPath|Invalid value: \".spec.free\": must "
         "point to a field of type string, boolean or integer. Enum string fields and strings with "
         "formats are allowed.\n"
         "FieldValueInvalid|spec.selectableFields[3].jsonPath|Invalid value: \"spec\": is an "
         "invalid path: expected [ or . but got: spec"},
        {/* crd.invalid-extras 5 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/"
         "subresources\",\"value\":{\"scale\":{\"specReplicasPath\":\"x\",\"statusReplicasPath\":"
         "\"\"}}}]",
         "FieldValueInvalid|spec.subresources.scale.specReplicasPath|Invalid value: \"x\": must be "
         "a simple json path starting with .\n"
         "FieldValueRequired|spec.subresources.scale.statusReplicasPath|Required value"},
        {/* crd.invalid-extras 6 */
         "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/"
         "subresources\",\"value\":{\"scale\":{\"specReplicasPath\":\".status.x\","
         "\"statusReplicasPath\":\".spec.x\",\"labelSelectorPath\":\".spec[0]\"}}}]",
         "FieldValueInvalid|spec.subresources.scale.labelSelectorPath|Invalid value: \".spec[0]\": "
         "should be a json path under either .spec or .status\n"
         "FieldValueInvalid|spec.subresources.scale.specReplicasPath|Invalid value: \".status.x\": "
         "should be a json path under .spec\n"
         "FieldValueInvalid|spec.subresources.scale.statusReplicasPath|Invalid value: \".spec.x\": "
         "should be a json path under .status"},
        {/* crd.invalid-extras 8 */
         "[{\"op\":\"replace\",\"path\":\"/spec/"
         "versions\",\"value\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
         "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
         "\"x-kubernetes-validations\":[{\"rule\":\"this is not "
         "cel\"},{\"message\":\"x\"}]}}}},\"subresources\":{},\"additionalPrinterColumns\":[],"
         "\"selectableFields\":[]}]}]",
         "FieldValueRequired|spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-"
         "validations[1].rule|Required value: rule is not specified"},
        {/* crd.invalid-extras 10 */
         "[{\"op\":\"add\",\"path\":\"/spec/versions/0/nope\",\"value\":true}]", ""},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(create_text(a, patched(a, cases[i].patch)), cases[i].causes);
}

TEST(fills_in_names_conversion_and_status)
{
    ARENA_AUTO a = arena_new();
    struct json *crd = patched(a, "[{\"op\":\"remove\",\"path\":\"/spec/names/singular\"},"
                                  "{\"op\":\"remove\",\"path\":\"/spec/names/listKind\"}]");
    assert_str(create_text(a, crd), "");
    assert_str(json_str(json_at(crd, "spec", "names", "singular", NULL)), "device");
    assert_str(json_str(json_at(crd, "spec", "names", "listKind", NULL)), "DeviceList");
    assert_str(json_str(json_at(crd, "spec", "conversion", "strategy", NULL)), "None");
    assert_str(json_text(a, json_get(crd, STR("status"))),
               "{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},"
               "\"storedVersions\":[\"v1\"]}");
    assert_int_equal(n_warnings, 0);
}

TEST(warns_that_rules_are_not_enforced)
{
    ARENA_AUTO a = arena_new();
    struct json *crd =
        patched(a, "[{\"op\":\"add\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema/"
                   "x-kubernetes-validations\",\"value\":[{\"rule\":\"true\"}]}]");
    assert_str(create_text(a, crd), "");
    assert_int_equal(n_warnings, 1);
}

TEST(drops_what_is_no_keyword_of_a_schema_and_warns)
{
    ARENA_AUTO a = arena_new();
    struct json *crd = patched(
        a, "[{\"op\":\"add\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema/properties/spec/"
           "nope\",\"value\":1}]");
    assert_str(create_text(a, crd), "");
    assert_int_equal(n_warnings, 1);
    const struct json *version = &json_at(crd, "spec", "versions", NULL)->items[0];
    assert_null(json_at(version, "schema", "openAPIV3Schema", "properties", "spec", "nope", NULL));
}

/* An update of an established CRD, which keeps its status as the generic code does. */
static struct str update_text(struct arena *a, const char *patch)
{
    const struct kind_hooks *hooks = &customresourcedefinition_hooks;
    struct json *old = device(a), *crd = patched(a, patch);
    assert_str(create_text(a, old), "");
    (void) json_set(a, json_get(old, STR("status")), STR("conditions"),
                    *parse_text(a, "[{\"type\":\"Established\",\"status\":\"True\"}]"));
    struct hook_context h = context(a, WRITE_UPDATE, "");
    struct causes c;
    causes_init(&c, a);
    hooks->set_defaults(&h, crd);
    (void) json_set(a, crd, STR("status"), *json_get(old, STR("status")));
    hooks->prepare(&h, old, crd);
    hooks->validate(&h, crd, &c);
    hooks->validate_update(&h, old, crd, &c);
    /* What is stored does not change under its readers. */
    assert_int_equal(json_count(json_at(old, "status", "storedVersions", NULL)), 1);
    return causes_text(a, &c);
}

TEST(update_keeps_what_storage_depends_on)
{
    static const struct {
        const char *patch, *causes;
    } cases[] = {
        {"[]", ""},
        {"[{\"op\":\"replace\",\"path\":\"/spec/scope\",\"value\":\"Cluster\"}]",
         "FieldValueInvalid|spec.scope|Invalid value: \"Cluster\": field is immutable"},
        {"[{\"op\":\"replace\",\"path\":\"/spec/group\",\"value\":\"other.example.org\"}]",
         "FieldValueInvalid|spec.group|Invalid value: \"other.example.org\": field is immutable"},
        {"[{\"op\":\"replace\",\"path\":\"/spec/names/plural\",\"value\":\"gadgets\"}]",
         "FieldValueInvalid|spec.names.plural|Invalid value: \"gadgets\": field is immutable"},
        {"[{\"op\":\"replace\",\"path\":\"/spec/names/kind\",\"value\":\"Gadget\"}]",
         "FieldValueInvalid|spec.names.kind|Invalid value: \"Gadget\": field is immutable"},
        {"[{\"op\":\"replace\",\"path\":\"/spec/versions/0/name\",\"value\":\"v9\"}]",
         "FieldValueInvalid|status.storedVersions[0]|Invalid value: \"v1\": missing from "
         "spec.versions; v1 was "
         "previously a storage version, and must remain in spec.versions until a storage migration "
         "ensures no "
         "data remains persisted in v1 and removes v1 from status.storedVersions"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(update_text(a, cases[i].patch), cases[i].causes);
}

TEST(community_groups_need_approval)
{
    static const char move[] =
        "{\"op\":\"replace\",\"path\":\"/spec/group\",\"value\":\"x.k8s.io\"},"
        "{\"op\":\"replace\",\"path\":\"/metadata/name\",\"value\":\"devices.x.k8s.io\"}";
    ARENA_AUTO a = arena_new();
    char *bare = arena_strz(a, arena_printf(a, "[%s]", move));
    assert_str(create_text(a, patched(a, bare)),
               "FieldValueRequired|metadata.annotations[api-approved.kubernetes.io]|Required "
               "value: protected groups "
               "must have approval annotation \"api-approved.kubernetes.io\", see "
               "https://github.com/kubernetes/enhancements/pull/1111");
    char *approved = arena_strz(
        a, arena_printf(a,
                        "[%s,{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{"
                        "\"api-approved.kubernetes.io\":\"unapproved, a test\"}}]",
                        move));
    assert_str(create_text(a, patched(a, approved)), "");
}

TEST(versions_that_differ_are_judged_one_by_one)
{
    ARENA_AUTO a = arena_new();
    struct json *crd = patched(
        a,
        "[{\"op\":\"copy\",\"from\":\"/spec/versions/0\",\"path\":\"/spec/versions/-\"},"
        "{\"op\":\"replace\",\"path\":\"/spec/versions/1/name\",\"value\":\"v2\"},"
        "{\"op\":\"replace\",\"path\":\"/spec/versions/1/storage\",\"value\":false},"
        "{\"op\":\"add\",\"path\":\"/spec/versions/1/deprecationWarning\",\"value\":\"x\"},"
        "{\"op\":\"replace\",\"path\":\"/spec/versions/1/schema/openAPIV3Schema/properties/spec\","
        "\"value\":{}},"
        "{\"op\":\"remove\",\"path\":\"/spec/versions/1/selectableFields\"}]");
    assert_str(create_text(a, crd), "FieldValueInvalid|spec.versions[1].deprecationWarning|Invalid "
                                    "value: \"x\": can only be set for "
                                    "deprecated versions\n"
                                    "FieldValueRequired|spec.versions[1].schema.openAPIV3Schema."
                                    "properties[spec].type|Required value: must "
                                    "not be empty for specified object fields");
}
