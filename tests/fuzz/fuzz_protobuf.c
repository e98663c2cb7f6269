/* SPDX-License-Identifier: Apache-2.0 */
/* A body as an object of every native kind: whatever comes out of it can be written and read again,
 * and goes through what every object does before it is validated. */
#include <stdlib.h>

#include "api/decode.h"
#include "api/hooks.h"
#include "api/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Behaviour comes after decoding. */
const struct kind_hooks *kind_hooks_find(struct str group, struct str plural)
{
    (void) group;
    (void) plural;
    return NULL;
}

static void check_written(struct arena *a, const struct json *object)
{
    const struct json *again = json_parse_quick(a, json_text(a, object));
    if (!again || !json_equal(again, object))
        abort();
}

static void decode(const struct registry *r, const struct kind *k, struct str bytes)
{
    ARENA_AUTO a = arena_new();
    const struct protobuf_message *m = protobuf_find(r->protobuf, k->api_version, k->kind);
    struct json object = json_object();
    struct str error = STR("");
    if (protobuf_decode(a, m, bytes, &object, &error) < 0) {
        if (error.n == 0)
            abort();
        return;
    }
    check_written(a, &object);
    schema_prune(a, k->schema, &object, NULL);
    if (decode_object(a, k, &object, &error) == 0)
        check_written(a, &object);
}

static void decode_as_every_kind(const struct registry *r, struct str bytes)
{
    for (size_t g = 0; g < r->n_groups; g++)
        for (size_t v = 0; v < r->groups[g].n_versions; v++)
            for (size_t k = 0; k < r->groups[g].versions[v].n_kinds; k++)
                if (r->groups[g].versions[v].kinds[k]->is_native)
                    decode(r, r->groups[g].versions[v].kinds[k], bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct registry *registry;
    struct str error = STR("");
    if (!registry)
        registry = registry_build(NULL, 0, 1, &error);
    if (!registry)
        abort();
    ARENA_AUTO a = arena_new();
    const struct str body = str_range((const char *) data, size);
    struct protobuf_envelope e;
    if (protobuf_open(a, body, &e, &error) == 0)
        decode_as_every_kind(registry, e.object);
    else
        decode_as_every_kind(registry, body);
    return 0;
}
