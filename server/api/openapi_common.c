/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi_internal.h"

void openapi_builder_init(struct openapi_builder *b, struct arena *a, const struct registry *r,
                          enum openapi_version version)
{
    *b = (struct openapi_builder){
        .a = a,
        .version = version,
        .registry = r,
        .paths = json_object(),
        .definitions = json_object(),
        .shared_parameters = json_object(),
    };
}

void openapi_builder_done(struct openapi_builder *b)
{
    map_done(&b->known_definitions);
}

void openapi_set(struct openapi_builder *b, struct json *object, const char *key, struct json value)
{
    json_append_member(b->a, object, str_of(key), value);
}

void openapi_set_string(struct openapi_builder *b, struct json *object, const char *key,
                        struct str value)
{
    openapi_set(b, object, key, json_string(value));
}

struct json openapi_group_version_kind(struct openapi_builder *b, struct str group,
                                       struct str version, struct str kind)
{
    struct json gvk = json_object();
    openapi_set_string(b, &gvk, "group", group);
    openapi_set_string(b, &gvk, "kind", kind);
    openapi_set_string(b, &gvk, "version", version);
    return gvk;
}
