/* SPDX-License-Identifier: Apache-2.0 */
/* gnostic's openapi.v3 messages, as far as our documents use them: JSON key, number, type. */
#include "api/openapi_proto.h"

static const struct proto_message schema, schema_or_reference;

static const struct proto_field external_docs_fields[] = {STRING("description", 1),
                                                          STRING("url", 2), EXTENSIONS(3)};
MESSAGE(external_docs, PROTO_OBJECT, external_docs_fields);

static const struct proto_field reference_fields[] = {STRING("$ref", 1), STRING("summary", 2),
                                                      STRING("description", 3)};
MESSAGE(reference, PROTO_OBJECT, reference_fields);

static const struct proto_field additional_properties_fields[] = {ONE(NULL, 1, schema_or_reference),
                                                                  BOOL(NULL, 2)};
MESSAGE(additional_properties, PROTO_OR_BOOL, additional_properties_fields);

static const struct proto_field items_fields[] = {MANY(NULL, 1, schema_or_reference)};
MESSAGE(items, PROTO_WRAPPED, items_fields);

static const struct proto_field properties_fields[] = {NAMED(1, schema_or_reference)};
MESSAGE(properties, PROTO_OBJECT, properties_fields);

static const struct proto_message default_type = {PROTO_DEFAULT, NULL, 0};

static const struct proto_field schema_fields[] = {
    BOOL("nullable", 1),
    BOOL("readOnly", 3),
    BOOL("writeOnly", 4),
    ONE("externalDocs", 6, external_docs),
    ANY("example", 7),
    BOOL("deprecated", 8),
    STRING("title", 9),
    DOUBLE("multipleOf", 10),
    DOUBLE("maximum", 11),
    BOOL("exclusiveMaximum", 12),
    DOUBLE("minimum", 13),
    BOOL("exclusiveMinimum", 14),
    INT("maxLength", 15),
    INT("minLength", 16),
    STRING("pattern", 17),
    INT("maxItems", 18),
    INT("minItems", 19),
    BOOL("uniqueItems", 20),
    INT("maxProperties", 21),
    INT("minProperties", 22),
    STRINGS("required", 23),
    ANYS("enum", 24),
    STRING("type", 25),
    MANY("allOf", 26, schema_or_reference),
    MANY("oneOf", 27, schema_or_reference),
    MANY("anyOf", 28, schema_or_reference),
    ONE("not", 29, schema),
    ONE("items", 30, items),
    ONE("properties", 31, properties),
    ONE("additionalProperties", 32, additional_properties),
    ONE("default", 33, default_type),
    STRING("description", 34),
    STRING("format", 35),
    EXTENSIONS(36),
};
MESSAGE(schema, PROTO_OBJECT, schema_fields);

static const struct proto_field schema_or_reference_fields[] = {ONE(NULL, 1, schema),
                                                                ONE(NULL, 2, reference)};
MESSAGE(schema_or_reference, PROTO_OR_REFERENCE, schema_or_reference_fields);

/* ---- operations --------------------------------------------------------------------------- */

static const struct proto_field parameter_fields[] = {
    STRING("name", 1),
    STRING("in", 2),
    STRING("description", 3),
    BOOL("required", 4),
    BOOL("deprecated", 5),
    BOOL("allowEmptyValue", 6),
    ONE("schema", 10, schema_or_reference),
    EXTENSIONS(14),
};
MESSAGE(parameter, PROTO_OBJECT, parameter_fields);

static const struct proto_field parameter_or_reference_fields[] = {ONE(NULL, 1, parameter),
                                                                   ONE(NULL, 2, reference)};
MESSAGE(parameter_or_reference, PROTO_OR_REFERENCE, parameter_or_reference_fields);

static const struct proto_field media_type_fields[] = {ONE("schema", 1, schema_or_reference),
                                                       EXTENSIONS(5)};
MESSAGE(media_type, PROTO_OBJECT, media_type_fields);

static const struct proto_field media_types_fields[] = {NAMED(1, media_type)};
MESSAGE(media_types, PROTO_OBJECT, media_types_fields);

static const struct proto_field request_body_fields[] = {
    STRING("description", 1), ONE("content", 2, media_types), BOOL("required", 3), EXTENSIONS(4)};
MESSAGE(request_body, PROTO_OBJECT, request_body_fields);

static const struct proto_field request_body_or_reference_fields[] = {ONE(NULL, 1, request_body),
                                                                      ONE(NULL, 2, reference)};
MESSAGE(request_body_or_reference, PROTO_OR_REFERENCE, request_body_or_reference_fields);

static const struct proto_field response_fields[] = {STRING("description", 1),
                                                     ONE("content", 3, media_types), EXTENSIONS(5)};
MESSAGE(response, PROTO_OBJECT, response_fields);

static const struct proto_field response_or_reference_fields[] = {ONE(NULL, 1, response),
                                                                  ONE(NULL, 2, reference)};
MESSAGE(response_or_reference, PROTO_OR_REFERENCE, response_or_reference_fields);

static const struct proto_field responses_fields[] = {NAMED(2, response_or_reference),
                                                      EXTENSIONS(3)};
MESSAGE(responses, PROTO_OBJECT, responses_fields);

static const struct proto_field operation_fields[] = {
    STRINGS("tags", 1),
    STRING("summary", 2),
    STRING("description", 3),
    ONE("externalDocs", 4, external_docs),
    STRING("operationId", 5),
    MANY("parameters", 6, parameter_or_reference),
    ONE("requestBody", 7, request_body_or_reference),
    ONE("responses", 8, responses),
    BOOL("deprecated", 10),
    EXTENSIONS(13),
};
MESSAGE(operation, PROTO_OBJECT, operation_fields);

static const struct proto_field path_item_fields[] = {
    STRING("summary", 2),
    STRING("description", 3),
    ONE("get", 4, operation),
    ONE("put", 5, operation),
    ONE("post", 6, operation),
    ONE("delete", 7, operation),
    ONE("patch", 10, operation),
    MANY("parameters", 13, parameter_or_reference),
    EXTENSIONS(14),
};
MESSAGE(path_item, PROTO_OBJECT, path_item_fields);

static const struct proto_field paths_fields[] = {NAMED(1, path_item)};
MESSAGE(paths, PROTO_OBJECT, paths_fields);

/* ---- the document ------------------------------------------------------------------------- */

static const struct proto_field info_fields[] = {STRING("title", 1), STRING("description", 2),
                                                 STRING("version", 6)};
MESSAGE(info, PROTO_OBJECT, info_fields);

static const struct proto_field schemas_fields[] = {NAMED(1, schema_or_reference)};
MESSAGE(schemas, PROTO_OBJECT, schemas_fields);

static const struct proto_field security_scheme_fields[] = {
    STRING("type", 1), STRING("description", 2), STRING("name", 3), STRING("in", 4)};
MESSAGE(security_scheme, PROTO_OBJECT, security_scheme_fields);

static const struct proto_field security_scheme_or_reference_fields[] = {
    ONE(NULL, 1, security_scheme), ONE(NULL, 2, reference)};
MESSAGE(security_scheme_or_reference, PROTO_OR_REFERENCE, security_scheme_or_reference_fields);

static const struct proto_field security_schemes_fields[] = {
    NAMED(1, security_scheme_or_reference)};
MESSAGE(security_schemes, PROTO_OBJECT, security_schemes_fields);

static const struct proto_field components_fields[] = {ONE("schemas", 1, schemas),
                                                       ONE("securitySchemes", 7, security_schemes)};
MESSAGE(components, PROTO_OBJECT, components_fields);

static const struct proto_field document_fields[] = {
    STRING("openapi", 1),
    ONE("info", 2, info),
    ONE("paths", 4, paths),
    ONE("components", 5, components),
};
const struct proto_message openapi_v3_document_message = {PROTO_OBJECT, document_fields,
                                                          N_ELEMENTS(document_fields)};
