/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/keywords.h"

const struct keyword keyword_table[KEYWORD_COUNT] = {
    {"$ref", KEYWORD_STRING, true},
    {"$schema", KEYWORD_STRING, false},
    {"additionalItems", KEYWORD_SCHEMA_OR_BOOL, true},
    {"additionalProperties", KEYWORD_SCHEMA_OR_BOOL, true},
    {"allOf", KEYWORD_SCHEMAS, false},
    {"anyOf", KEYWORD_SCHEMAS, false},
    {"default", KEYWORD_ANY, true},
    {"definitions", KEYWORD_SCHEMA_MAP, false},
    {"dependencies", KEYWORD_OBJECT, true},
    {"description", KEYWORD_STRING, false},
    {"enum", KEYWORD_ARRAY, false},
    {"example", KEYWORD_ANY, true},
    {"exclusiveMaximum", KEYWORD_BOOL, false},
    {"exclusiveMinimum", KEYWORD_BOOL, false},
    {"externalDocs", KEYWORD_OBJECT, true},
    {"format", KEYWORD_STRING, false},
    {"id", KEYWORD_STRING, false},
    {"items", KEYWORD_SCHEMA_OR_ARRAY, true},
    {"maxItems", KEYWORD_INTEGER, true},
    {"maxLength", KEYWORD_INTEGER, true},
    {"maxProperties", KEYWORD_INTEGER, true},
    {"maximum", KEYWORD_NUMBER, true},
    {"minItems", KEYWORD_INTEGER, true},
    {"minLength", KEYWORD_INTEGER, true},
    {"minProperties", KEYWORD_INTEGER, true},
    {"minimum", KEYWORD_NUMBER, true},
    {"multipleOf", KEYWORD_NUMBER, true},
    {"not", KEYWORD_SCHEMA, true},
    {"nullable", KEYWORD_BOOL, false},
    {"oneOf", KEYWORD_SCHEMAS, false},
    {"pattern", KEYWORD_STRING, false},
    {"patternProperties", KEYWORD_SCHEMA_MAP, false},
    {"properties", KEYWORD_SCHEMA_MAP, false},
    {"required", KEYWORD_STRINGS, false},
    {"title", KEYWORD_STRING, false},
    {"type", KEYWORD_STRING, false},
    {"uniqueItems", KEYWORD_BOOL, false},
    {"x-kubernetes-embedded-resource", KEYWORD_BOOL, false},
    {"x-kubernetes-int-or-string", KEYWORD_BOOL, false},
    {"x-kubernetes-list-map-keys", KEYWORD_STRINGS, false},
    {"x-kubernetes-list-type", KEYWORD_STRING, true},
    {"x-kubernetes-map-type", KEYWORD_STRING, true},
    {"x-kubernetes-preserve-unknown-fields", KEYWORD_BOOL, true},
    {"x-kubernetes-validations", KEYWORD_ARRAY, false},
};

const struct keyword *keyword_find(struct str name)
{
    for (size_t i = 0; i < N_ELEMENTS(keyword_table); i++)
        if (str_is(name, keyword_table[i].name))
            return &keyword_table[i];
    return NULL;
}
