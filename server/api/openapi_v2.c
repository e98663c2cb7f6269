/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi_internal.h"
#include "api/release.h"
#include "base/base64.h"

static struct json strings(struct openapi_builder *b, const char *const *items, size_t n)
{
    struct json list = json_array();
    for (size_t i = 0; i < n; i++)
        json_push(b->a, &list, json_string(str_of(items[i])));
    return list;
}
#define STRINGS(b, ...) \
    strings((b), (const char *const[]){__VA_ARGS__}, \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- parameters --------------------------------------------------------------------------- */

/* FNV-1, 64 bits, of which six bytes are shown: the name under which kube-openapi shares a
 * parameter. */
static struct str hash_name(struct arena *a, struct str name, struct str text)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < text.n; i++)
        h = (h * 1099511628211u) ^ (unsigned char) text.p[i];
    char bytes[6];
    for (int i = 0; i < 6; i++)
        bytes[i] = (char) (h >> (56 - 8 * i));
    const struct str code = base64_encode(a, str_range(bytes, sizeof(bytes)), BASE64_URL);
    return arena_printf(a, "%.*s-%.*s", STR_ARG(name), STR_ARG(code));
}

/* Moves the parameter to the shared ones and gives the reference to it. */
static struct json share(struct openapi_builder *b, struct str name, struct json parameter)
{
    BUF_AUTO text = {0};
    json_write(&text, &parameter);
    const struct str key = hash_name(b->a, name, buf_str(&text));
    if (!json_get(&b->shared_parameters, key))
        json_append_member(b->a, &b->shared_parameters, key, parameter);
    struct json reference = json_object();
    openapi_set_string(b, &reference, "$ref",
                       arena_printf(b->a, "#/parameters/%.*s", STR_ARG(key)));
    return reference;
}

static struct json make_parameter(struct openapi_builder *b, const char *name, const char *in,
                                  struct str description, const char *type)
{
    struct json p = json_object();
    openapi_set(b, &p, "uniqueItems", json_bool(true));
    openapi_set_string(b, &p, "type", str_of(type));
    openapi_set_string(b, &p, "description", description);
    openapi_set_string(b, &p, "name", str_of(name));
    openapi_set_string(b, &p, "in", str_of(in));
    if (str_is(str_of(in), "path"))
        openapi_set(b, &p, "required", json_bool(true));
    return p;
}

static void push_parameters(struct openapi_builder *b, struct json *list, unsigned parameters)
{
    /* kubectl looks for these two at the operation itself. */
    const unsigned unshared =
        PARAMETER_BIT(PARAMETER_DRY_RUN) | PARAMETER_BIT(PARAMETER_FIELD_VALIDATION);
    for (int id = 0; id < PARAMETER_COUNT; id++) {
        if (!(parameters & PARAMETER_BIT(id)))
            continue;
        const struct openapi_parameter *p = &openapi_parameters[id];
        if (b->parameters[id].type == JSON_NULL) {
            const struct json made =
                make_parameter(b, p->name, "query", str_of(p->description), p->type);
            b->parameters[id] =
                unshared & PARAMETER_BIT(id) ? made : share(b, str_of(p->name), made);
        }
        json_push(b->a, list, b->parameters[id]);
    }
}

static struct json make_body(struct openapi_builder *b, const struct openapi_operation *o)
{
    struct json body = json_object();
    openapi_set_string(b, &body, "name", STR("body"));
    openapi_set_string(b, &body, "in", STR("body"));
    if (o->body != BODY_DELETE_OPTIONS)
        openapi_set(b, &body, "required", json_bool(true));
    openapi_set(b, &body, "schema", openapi_reference(b, o->body_definition));
    return o->body == BODY_OBJECT ? body : share(b, STR("body"), body);
}

/* ---- operations --------------------------------------------------------------------------- */

static struct json make_consumes(struct openapi_builder *b, const struct openapi_operation *o)
{
    if (o->body == BODY_PATCH)
        return o->is_native
                   ? STRINGS(b, "application/json-patch+json", "application/merge-patch+json",
                             "application/strategic-merge-patch+json",
                             "application/apply-patch+yaml")
                   : STRINGS(b, "application/json-patch+json", "application/merge-patch+json",
                             "application/apply-patch+yaml");
    return o->is_native ? STRINGS(b, "*/*") : STRINGS(b, "application/json", "application/yaml");
}

static struct json make_produces(struct openapi_builder *b, const struct openapi_operation *o)
{
    if (!o->is_native)
        return STRINGS(b, "application/json", "application/yaml");
    if (!o->is_list)
        return STRINGS(b, "application/json", "application/yaml",
                       "application/vnd.kubernetes.protobuf");
    return STRINGS(b, "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
                   "application/json;stream=watch",
                   "application/vnd.kubernetes.protobuf;stream=watch");
}

static struct json make_responses(struct openapi_builder *b, const struct openapi_operation *o)
{
    struct json responses = json_object();
    for (size_t i = 0; i < o->n_responses; i++) {
        struct json response = json_object();
        openapi_set_string(b, &response, "description", str_of(o->responses[i].text));
        if (o->responses[i].definition.n)
            openapi_set(b, &response, "schema", openapi_reference(b, o->responses[i].definition));
        json_append_member(b->a, &responses, arena_printf(b->a, "%d", o->responses[i].code),
                           response);
    }
    return responses;
}

static struct json make_operation(struct openapi_builder *b, const struct openapi_operation *o)
{
    struct json out = json_object(), tags = json_array(), parameters = json_array();
    openapi_set_string(b, &out, "description", o->description);
    openapi_set(b, &out, "consumes", make_consumes(b, o));
    openapi_set(b, &out, "produces", make_produces(b, o));
    openapi_set(b, &out, "schemes", STRINGS(b, "https"));
    json_push(b->a, &tags, json_string(o->tag));
    openapi_set(b, &out, "tags", tags);
    openapi_set_string(b, &out, "operationId", o->id);
    if (o->body != BODY_NONE)
        json_push(b->a, &parameters, make_body(b, o));
    push_parameters(b, &parameters, o->parameters);
    if (parameters.n)
        openapi_set(b, &out, "parameters", parameters);
    openapi_set(b, &out, "responses", make_responses(b, o));
    if (o->action)
        openapi_set_string(b, &out, "x-kubernetes-action", str_of(o->action));
    if (o->kind.n)
        openapi_set(b, &out, "x-kubernetes-group-version-kind",
                    openapi_group_version_kind(b, o->group, o->version, o->kind));
    return out;
}

void openapi_v2_add_path(struct openapi_builder *b, const struct openapi_path *p)
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
        json_push(
            b->a, &parameters,
            share(b, STR("namespace"),
                  make_parameter(b, "namespace", "path",
                                 STR("object name and auth scope, such as for teams and projects"),
                                 "string")));
    push_parameters(b, &parameters, p->parameters);
    if (parameters.n)
        openapi_set(b, &item, "parameters", parameters);
    json_append_member(b->a, &b->paths, p->path, item);
}

/* ---- the document ------------------------------------------------------------------------- */

struct json openapi_v2_finish(struct openapi_builder *b)
{
    struct json document = json_object(), info = json_object();
    openapi_set_string(b, &document, "swagger", STR("2.0"));
    openapi_set_string(b, &info, "title", STR("Kubernetes"));
    openapi_set_string(b, &info, "version", STR(RELEASE_VERSION));
    openapi_set(b, &document, "info", info);
    json_sort_members(&b->paths);
    openapi_set(b, &document, "paths", b->paths);
    json_sort_members(&b->definitions);
    openapi_set(b, &document, "definitions", b->definitions);
    json_sort_members(&b->shared_parameters);
    openapi_set(b, &document, "parameters", b->shared_parameters);

    struct json definitions = json_object(), bearer = json_object(), security = json_array(),
                any = json_object();
    openapi_set_string(b, &bearer, "description", STR("Bearer Token authentication"));
    openapi_set_string(b, &bearer, "type", STR("apiKey"));
    openapi_set_string(b, &bearer, "name", STR("authorization"));
    openapi_set_string(b, &bearer, "in", STR("header"));
    openapi_set(b, &definitions, "BearerToken", bearer);
    openapi_set(b, &document, "securityDefinitions", definitions);
    openapi_set(b, &any, "BearerToken", json_array());
    json_push(b->a, &security, any);
    openapi_set(b, &document, "security", security);
    return document;
}
