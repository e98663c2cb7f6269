/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi_internal.h"
#include "api/release.h"

static const char *const native_types[] = {
    "application/json", "application/vnd.kubernetes.protobuf", "application/yaml"};
static const char *const native_list_types[] = {
    "application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch", "application/yaml"};
static const char *const custom_types[] = {"application/json", "application/yaml"};
static const char *const any_type[] = {"*/*"};
static const char *const native_patches[] = {
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json"};
static const char *const custom_patches[] = {
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"};

struct types {
    const char *const *names;
    size_t n;
};
#define TYPES(array) ((struct types){array, N_ELEMENTS(array)})

/* ---- parts -------------------------------------------------------------------------------- */

static struct json make_parameter(struct openapi_builder *b, const char *name, const char *in,
                                  struct str description, const char *type)
{
    struct json p = json_object(), schema = json_object();
    openapi_set_string(b, &p, "name", str_of(name));
    openapi_set_string(b, &p, "in", str_of(in));
    openapi_set_string(b, &p, "description", description);
    if (str_is(str_of(in), "path"))
        openapi_set(b, &p, "required", json_bool(true));
    openapi_set_string(b, &schema, "type", str_of(type));
    openapi_set(b, &schema, "uniqueItems", json_bool(true));
    openapi_set(b, &p, "schema", schema);
    return p;
}

static void push_parameters(struct openapi_builder *b, struct json *list, unsigned parameters)
{
    for (int id = 0; id < PARAMETER_COUNT; id++) {
        if (!(parameters & PARAMETER_BIT(id)))
            continue;
        const struct openapi_parameter *p = &openapi_parameters[id];
        if (b->parameters[id].type == JSON_NULL)
            b->parameters[id] =
                make_parameter(b, p->name, "query", str_of(p->description), p->type);
        json_push(b->a, list, b->parameters[id]);
    }
}

static struct json make_content(struct openapi_builder *b, struct types types,
                                struct str definition)
{
    struct json content = json_object(), media = json_object();
    openapi_set(b, &media, "schema", openapi_reference(b, definition));
    for (size_t i = 0; i < types.n; i++)
        openapi_set(b, &content, types.names[i], media);
    return content;
}

static struct json make_body(struct openapi_builder *b, const struct openapi_operation *o)
{
    struct types types = o->is_native ? TYPES(any_type) : TYPES(custom_types);
    if (o->body == BODY_PATCH)
        types = o->is_native ? TYPES(native_patches) : TYPES(custom_patches);
    struct json body = json_object();
    openapi_set(b, &body, "content", make_content(b, types, o->body_definition));
    if (o->body != BODY_DELETE_OPTIONS)
        openapi_set(b, &body, "required", json_bool(true));
    return body;
}

static struct json make_responses(struct openapi_builder *b, const struct openapi_operation *o)
{
    const struct types types = !o->is_native ? TYPES(custom_types)
                               : o->is_list  ? TYPES(native_list_types)
                                             : TYPES(native_types);
    struct json responses = json_object();
    for (size_t i = 0; i < o->n_responses; i++) {
        const struct openapi_response *r = &o->responses[i];
        struct json response = json_object();
        openapi_set_string(b, &response, "description", str_of(r->text));
        if (r->definition.n)
            openapi_set(b, &response, "content", make_content(b, types, r->definition));
        json_append_member(b->a, &responses, arena_printf(b->a, "%d", r->code), response);
    }
    return responses;
}

static struct json make_operation(struct openapi_builder *b, const struct openapi_operation *o)
{
    struct json out = json_object(), tags = json_array();
    json_push(b->a, &tags, json_string(o->tag));
    openapi_set(b, &out, "tags", tags);
    openapi_set_string(b, &out, "description", o->description);
    openapi_set_string(b, &out, "operationId", o->id);
    if (o->parameters) {
        struct json parameters = json_array();
        push_parameters(b, &parameters, o->parameters);
        openapi_set(b, &out, "parameters", parameters);
    }
    if (o->body != BODY_NONE)
        openapi_set(b, &out, "requestBody", make_body(b, o));
    openapi_set(b, &out, "responses", make_responses(b, o));
    if (o->action)
        openapi_set_string(b, &out, "x-kubernetes-action", str_of(o->action));
    if (o->kind.n)
        openapi_set(b, &out, "x-kubernetes-group-version-kind",
                    openapi_group_version_kind(b, o->group, o->version, o->kind));
    return out;
}

void openapi_v3_add_path(struct openapi_builder *b, const struct openapi_path *p)
{
    struct json item = json_object(), parameters = json_array();
    for (size_t i = 0; i < p->n_operations; i++)
        openapi_set(b, &item, p->operations[i].method, make_operation(b, &p->operations[i]));
    if (p->name_of.n)
        json_push(b->a, &parameters,
                  make_parameter(b, "name", "path",
                                 arena_printf(b->a, "name of the %.*s", STR_ARG(p->name_of)),
                                 "string"));
    if (p->has_namespace)
        json_push(b->a, &parameters,
                  make_parameter(b, "namespace", "path",
                                 STR("object name and auth scope, such as for teams and projects"),
                                 "string"));
    push_parameters(b, &parameters, p->parameters);
    if (parameters.n)
        openapi_set(b, &item, "parameters", parameters);
    json_append_member(b->a, &b->paths, p->path, item);
}

/* ---- the document ------------------------------------------------------------------------- */

static struct json make_security(struct openapi_builder *b)
{
    struct json schemes = json_object(), bearer = json_object();
    openapi_set_string(b, &bearer, "type", STR("apiKey"));
    openapi_set_string(b, &bearer, "description", STR("Bearer Token authentication"));
    openapi_set_string(b, &bearer, "name", STR("authorization"));
    openapi_set_string(b, &bearer, "in", STR("header"));
    openapi_set(b, &schemes, "BearerToken", bearer);
    return schemes;
}

struct json openapi_v3_finish(struct openapi_builder *b, bool is_native)
{
    struct json document = json_object(), info = json_object(), components = json_object();
    openapi_set_string(b, &document, "openapi", STR("3.0.0"));
    openapi_set_string(b, &info, "title",
                       is_native ? STR("Kubernetes") : STR("Kubernetes CRD Swagger"));
    openapi_set_string(b, &info, "version", is_native ? STR(RELEASE_VERSION) : STR("v0.1.0"));
    openapi_set(b, &document, "info", info);
    json_sort_members(&b->paths);
    openapi_set(b, &document, "paths", b->paths);
    json_sort_members(&b->definitions);
    if (b->definitions.n)
        openapi_set(b, &components, "schemas", b->definitions);
    if (is_native)
        openapi_set(b, &components, "securitySchemes", make_security(b));
    openapi_set(b, &document, "components", components);
    return document;
}
