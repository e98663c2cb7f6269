/* SPDX-License-Identifier: Apache-2.0 */
/* A user's schema in the OpenAPI documents: what a CRD may hold is shown in all forms, whatever it
 * says. */
#include <stdio.h>
#include <stdlib.h>

#include "api/hooks.h"
#include "api/openapi.h"
#include "base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Behaviour plays no part in documents. */
const struct kind_hooks *kind_hooks_find(struct str group, struct str plural)
{
    (void) group;
    (void) plural;
    return NULL;
}

static const char before[] =
    "{\"metadata\":{\"name\":\"things.example.org\"},\"spec\":{\"group\":\"example.org\","
    "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"things\",\"singular\":\"thing\",\"kind\":"
    "\"Thing\",\"listKind\":\"ThingList\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
    "\"storage\":true,\"schema\":{\"openAPIV3Schema\":";

static void check(struct arena *a, struct openapi *o, struct str path, struct str accept,
                  bool is_json)
{
    const struct document_request q = {.method = HTTP_GET, .path = path, .accept = accept};
    struct document_reply reply = {0};
    if (!openapi_get(a, o, &q, &reply) || reply.status != 200 || reply.body.s.n == 0)
        abort();
    if (is_json && !json_parse_quick(a, reply.body.s))
        abort();
    slice_unref(reply.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result schema;
    if (json_parse(a, str_range((const char *) data, size), &schema) < 0)
        return 0;
    BUF_AUTO text = {0};
    buf_append_str(&text, str_range(before, sizeof(before) - 1));
    json_write(&text, schema.value);
    buf_append_str(&text, STR("}}]}}"));
    const struct json *crd = json_parse_quick(a, buf_str(&text));
    log_set_level(LOG_ERROR); /* CRDs that cannot be compiled are left out with a warning */
    struct str error = STR_NONE;
    struct registry *r = crd ? registry_build(&crd, 1, 1, &error) : NULL;
    if (!r)
        return 0;
    struct openapi *o = openapi_new(r);
    const struct str v3 = STR("/openapi/v3/apis/example.org/v1"), v2 = STR("/openapi/v2");
    if (registry_group(r, STR("example.org"))) {
        check(a, o, v3, STR_NONE, true);
        check(a, o, v3, STR("application/com.github.proto-openapi.spec.v3.v1.0+protobuf"), false);
    }
    check(a, o, v2, STR_NONE, true);
    check(a, o, v2, STR("application/com.github.proto-openapi.spec.v2.v1.0+protobuf"), false);
    openapi_unref(o);
    registry_unref(r);
    return 0;
}
