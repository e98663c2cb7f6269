/* SPDX-License-Identifier: Apache-2.0 */
/* gnostic's openapi.v2 messages, as far as our documents use them: JSON key, number, type. */
#include "api/openapi_proto.h"

static const struct proto_message schema;

static const struct proto_field external_docs_fields[] = {STRING("description", 1),
                                                          STRING("url", 2), EXTENSIONS(3)};
MESSAGE(external_docs, PROTO_OBJECT, external_docs_fields);

static const struct proto_field json_reference_fields[] = {STRING("$ref", 1),
                                                           STRING("description", 2)};
MESSAGE(json_reference, PROTO_OBJECT, json_reference_fields);

static const struct proto_field additional_properties_fields[] = {ONE(NULL, 1, schema),
                                                                  BOOL(NULL, 2)};
MESSAGE(additional_properties, PROTO_OR_BOOL, additional_properties_fields);

static const struct proto_field type_fields[] = {STRINGS(NULL, 1)};
MESSAGE(type, PROTO_WRAPPED, type_fields);

static const struct proto_field items_fields[] = {MANY(NULL, 1, schema)};
MESSAGE(items, PROTO_WRAPPED, items_fields);

static const struct proto_field properties_fields[] = {NAMED(1, schema)};
MESSAGE(properties, PROTO_OBJECT, properties_fields);

static const struct proto_field schema_fields[] = {
    STRING("$ref", 1),
    STRING("format", 2),
    STRING("title", 3),
    STRING("description", 4),
    ANY("default", 5),
    DOUBLE("multipleOf", 6),
    DOUBLE("maximum", 7),
    BOOL("exclusiveMaximum", 8),
    DOUBLE("minimum", 9),
    BOOL("exclusiveMinimum", 10),
    INT("maxLength", 11),
    INT("minLength", 12),
    STRING("pattern", 13),
    INT("maxItems", 14),
    INT("minItems", 15),
    BOOL("uniqueItems", 16),
    INT("maxProperties", 17),
    INT("minProperties", 18),
    STRINGS("required", 19),
    ANYS("enum", 20),
    ONE("additionalProperties", 21, additional_properties),
    ONE("type", 22, type),
    ONE("items", 23, items),
    MANY("allOf", 24, schema),
    ONE("properties", 25, properties),
    STRING("discriminator", 26),
    BOOL("readOnly", 27),
    ONE("externalDocs", 29, external_docs),
    ANY("example", 30),
    EXTENSIONS(31),
};
MESSAGE(schema, PROTO_OBJECT, schema_fields);

/* ---- operations --------------------------------------------------------------------------- */

static const struct proto_field body_parameter_fields[] = {
    STRING("description", 1), STRING("name", 2),        STRING("in", 3),
    BOOL("required", 4),      ONE("schema", 5, schema), EXTENSIONS(6),
};
MESSAGE(body_parameter, PROTO_OBJECT, body_parameter_fields);

static const struct proto_field query_parameter_fields[] = {
    BOOL("required", 1),
    STRING("in", 2),
    STRING("description", 3),
    STRING("name", 4),
    BOOL("allowEmptyValue", 5),
    STRING("type", 6),
    STRING("format", 7),
    BOOL("uniqueItems", 20),
    EXTENSIONS(23),
};
MESSAGE(query_parameter, PROTO_OBJECT, query_parameter_fields);

static const struct proto_field path_parameter_fields[] = {
    BOOL("required", 1), STRING("in", 2),     STRING("description", 3), STRING("name", 4),
    STRING("type", 5),   STRING("format", 6), BOOL("uniqueItems", 19),  EXTENSIONS(22),
};
MESSAGE(path_parameter, PROTO_OBJECT, path_parameter_fields);

static const struct proto_field non_body_parameter_fields[] = {ONE("query", 3, query_parameter),
                                                               ONE("path", 4, path_parameter)};
MESSAGE(non_body_parameter, PROTO_BY_PLACE, non_body_parameter_fields);

static const struct proto_field parameter_fields[] = {ONE("body", 1, body_parameter),
                                                      ONE(NULL, 2, non_body_parameter)};
MESSAGE(parameter, PROTO_BY_PLACE, parameter_fields);

static const struct proto_field parameters_item_fields[] = {ONE(NULL, 1, parameter),
                                                            ONE(NULL, 2, json_reference)};
MESSAGE(parameters_item, PROTO_OR_REFERENCE, parameters_item_fields);

static const struct proto_field parameter_definitions_fields[] = {NAMED(1, parameter)};
MESSAGE(parameter_definitions, PROTO_OBJECT, parameter_definitions_fields);

static const struct proto_field schema_item_fields[] = {ONE(NULL, 1, schema)};
MESSAGE(schema_item, PROTO_WRAPPED, schema_item_fields);

static const struct proto_field response_fields[] = {STRING("description", 1),
                                                     ONE("schema", 2, schema_item), EXTENSIONS(5)};
MESSAGE(response, PROTO_OBJECT, response_fields);

static const struct proto_field response_value_fields[] = {ONE(NULL, 1, response),
                                                           ONE(NULL, 2, json_reference)};
MESSAGE(response_value, PROTO_OR_REFERENCE, response_value_fields);

static const struct proto_field responses_fields[] = {NAMED(1, response_value), EXTENSIONS(2)};
MESSAGE(responses, PROTO_OBJECT, responses_fields);

static const struct proto_field operation_fields[] = {
    STRINGS("tags", 1),
    STRING("summary", 2),
    STRING("description", 3),
    ONE("externalDocs", 4, external_docs),
    STRING("operationId", 5),
    STRINGS("produces", 6),
    STRINGS("consumes", 7),
    MANY("parameters", 8, parameters_item),
    ONE("responses", 9, responses),
    STRINGS("schemes", 10),
    BOOL("deprecated", 11),
    EXTENSIONS(13),
};
MESSAGE(operation, PROTO_OBJECT, operation_fields);

static const struct proto_field path_item_fields[] = {
    ONE("get", 2, operation),
    ONE("put", 3, operation),
    ONE("post", 4, operation),
    ONE("delete", 5, operation),
    ONE("patch", 8, operation),
    MANY("parameters", 9, parameters_item),
    EXTENSIONS(10),
};
MESSAGE(path_item, PROTO_OBJECT, path_item_fields);

static const struct proto_field paths_fields[] = {NAMED(2, path_item)};
MESSAGE(paths, PROTO_OBJECT, paths_fields);

/* ---- the document ------------------------------------------------------------------------- */

static const struct proto_field info_fields[] = {STRING("title", 1), STRING("version", 2),
                                                 STRING("description", 3)};
MESSAGE(info, PROTO_OBJECT, info_fields);

static const struct proto_field definitions_fields[] = {NAMED(1, schema)};
MESSAGE(definitions, PROTO_OBJECT, definitions_fields);

static const struct proto_field api_key_fields[] = {STRING("type", 1), STRING("name", 2),
                                                    STRING("in", 3), STRING("description", 4)};
MESSAGE(api_key, PROTO_OBJECT, api_key_fields);

static const struct proto_field security_item_fields[] = {ONE(NULL, 2, api_key)};
MESSAGE(security_item, PROTO_WRAPPED, security_item_fields);

static const struct proto_field security_definitions_fields[] = {NAMED(1, security_item)};
MESSAGE(security_definitions, PROTO_OBJECT, security_definitions_fields);

static const struct proto_field string_array_fields[] = {STRINGS(NULL, 1)};
MESSAGE(string_array, PROTO_WRAPPED, string_array_fields);

static const struct proto_field security_requirement_fields[] = {NAMED(1, string_array)};
MESSAGE(security_requirement, PROTO_OBJECT, security_requirement_fields);

static const struct proto_field document_fields[] = {
    STRING("swagger", 1),
    ONE("info", 2, info),
    ONE("paths", 8, paths),
    ONE("definitions", 9, definitions),
    ONE("parameters", 10, parameter_definitions),
    MANY("security", 12, security_requirement),
    ONE("securityDefinitions", 13, security_definitions),
};
const struct proto_message openapi_v2_document_message = {PROTO_OBJECT, document_fields,
                                                          N_ELEMENTS(document_fields)};
