/* SPDX-License-Identifier: Apache-2.0 */
/* How an OpenAPI document comes about. Kinds give operations (openapi_paths.c) and schemas
 * (openapi_schema.c), both free of the OpenAPI version; openapi_v2.c and openapi_v3.c write them
 * down; openapi_proto.c turns the JSON into protobuf. */
#pragma once

#include "api/openapi.h"

#define META_PREFIX "io.k8s.apimachinery.pkg.apis.meta.v1."

enum openapi_version { OPENAPI_V2, OPENAPI_V3 };

/* ---- parameters --------------------------------------------------------------------------- */

/* By name, which is the order they are shown in. */
enum openapi_parameter_id {
    PARAMETER_ALLOW_WATCH_BOOKMARKS,
    PARAMETER_CONTINUE,
    PARAMETER_DRY_RUN,
    PARAMETER_FIELD_MANAGER,
    PARAMETER_FIELD_MANAGER_PATCH,
    PARAMETER_FIELD_SELECTOR,
    PARAMETER_FIELD_VALIDATION,
    PARAMETER_FORCE,
    PARAMETER_GRACE_PERIOD_SECONDS,
    PARAMETER_IGNORE_STORE_READ_ERROR_WITH_CLUSTER_BREAKING_POTENTIAL,
    PARAMETER_LABEL_SELECTOR,
    PARAMETER_LIMIT,
    PARAMETER_ORPHAN_DEPENDENTS,
    PARAMETER_PRETTY,
    PARAMETER_PROPAGATION_POLICY,
    PARAMETER_RESOURCE_VERSION,
    PARAMETER_RESOURCE_VERSION_MATCH,
    PARAMETER_SEND_INITIAL_EVENTS,
    PARAMETER_SHARD_SELECTOR,
    PARAMETER_TIMEOUT_SECONDS,
    PARAMETER_WATCH,
    PARAMETER_COUNT,
};
#define PARAMETER_BIT(id) (1u << (id))

struct openapi_parameter {
    const char *name, *type, *description;
};
extern const struct openapi_parameter openapi_parameters[PARAMETER_COUNT];

/* ---- operations --------------------------------------------------------------------------- */

enum openapi_body { BODY_NONE, BODY_OBJECT, BODY_PATCH, BODY_DELETE_OPTIONS };

struct openapi_response {
    int code;
    const char *text;
    struct str definition; /* STR_NONE: no content */
};

#define OPENAPI_MAX_RESPONSES 4
#define OPENAPI_MAX_OPERATIONS 5 /* of one path */

struct openapi_operation {
    const char *method; /* "get" */
    const char *action; /* x-kubernetes-action; NULL: none */
    struct str id, tag, description;
    unsigned parameters; /* PARAMETER_BIT, those of the path taken out */
    enum openapi_body body;
    struct str body_definition;
    bool is_native, is_list;
    struct str group, version, kind; /* x-kubernetes-group-version-kind; kind STR_NONE: none */
    struct openapi_response responses[OPENAPI_MAX_RESPONSES];
    size_t n_responses;
};

struct openapi_path {
    struct str path;
    struct str name_of; /* kind of {name}; STR_NONE: the path has none */
    bool has_namespace;
    unsigned parameters; /* that all its operations have */
    struct openapi_operation operations[OPENAPI_MAX_OPERATIONS];
    size_t n_operations;
};

/* ---- building ----------------------------------------------------------------------------- */

struct openapi_builder {
    struct arena *a;
    enum openapi_version version;
    const struct registry *registry;
    const struct registry_group *group; /* v3: of the document; NULL: the document is of no group */
    const struct registry_version *group_version; /* likewise */
    struct json paths, definitions, shared_parameters;
    struct map known_definitions;            /* names in definitions or about to be */
    struct json parameters[PARAMETER_COUNT]; /* made on first use; JSON_NULL before */
};

void openapi_builder_init(struct openapi_builder *b, struct arena *a, const struct registry *r,
                          enum openapi_version version);
void openapi_builder_done(struct openapi_builder *b);

/* All paths of a group version: its kinds and its discovery document. */
void openapi_add_group_version(struct openapi_builder *b, const struct registry_group *g,
                               const struct registry_version *v);
/* The discovery document at "/api/", "/apis/", "/apis/<group>/" or "/version/". */
void openapi_add_core_versions(struct openapi_builder *b);
void openapi_add_groups(struct openapi_builder *b);
void openapi_add_group(struct openapi_builder *b, const struct registry_group *g);
void openapi_add_release(struct openapi_builder *b);

/* Writes the path down, with references to the definitions it needs. */
void openapi_v2_add_path(struct openapi_builder *b, const struct openapi_path *p);
void openapi_v3_add_path(struct openapi_builder *b, const struct openapi_path *p);
/* The whole document out of what was added. */
struct json openapi_v2_finish(struct openapi_builder *b);
struct json openapi_v3_finish(struct openapi_builder *b, bool is_native);

/* {"$ref": ...} to a definition, which is added when it is one of the machinery's and missing. */
struct json openapi_reference(struct openapi_builder *b, struct str definition);
/* Adds the definitions of a kind and its list, and what they refer to. */
void openapi_add_kind(struct openapi_builder *b, const struct kind *k);
struct str openapi_list_definition(struct arena *a, const struct kind *k);
/* A definition that says nothing but its kind, unless there is one already. */
void openapi_add_opaque(struct openapi_builder *b, struct str definition, struct str group,
                        struct str version, struct str kind);
/* The definitions of the API machinery (ObjectMeta, Status ...), in the form of a native kind's
 * schema; JSON_NULL: it is none. has_group_version_kind is set for those that every group version
 * has. */
struct json openapi_meta_definition(struct arena *a, struct str name,
                                    bool *ret_has_group_version_kind);
/* apiVersion or kind as every object has it. */
struct str openapi_type_meta_description(struct str property);

/* Shorthands. */
void openapi_set_string(struct openapi_builder *b, struct json *object, const char *key,
                        struct str value);
void openapi_set(struct openapi_builder *b, struct json *object, const char *key,
                 struct json value);
struct json openapi_group_version_kind(struct openapi_builder *b, struct str group,
                                       struct str version, struct str kind);

/* ---- protobuf ----------------------------------------------------------------------------- */

/* The document as gnostic's openapi.v2.Document or openapi.v3.Document. */
void openapi_proto_write(struct buf *out, enum openapi_version version,
                         const struct json *document);
