/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte is the format (j, m, s), then a line with the old object, then the patch. */
#include <stdlib.h>

#include "schema/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char workload[] =
    "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"list\":{"
    "\"type\":\"array\","
    "\"x-kubernetes-patch-strategy\":\"merge\",\"x-kubernetes-patch-merge-key\":\"name\",\"items\":"
    "{\"type\":\"object\","
    "\"properties\":{\"name\":{\"type\":\"string\"},\"inner\":{\"type\":\"array\",\"x-kubernetes-"
    "patch-strategy\":\"merge\","
    "\"x-kubernetes-patch-merge-key\":\"port\",\"items\":{\"type\":\"object\"}}}}},\"tags\":{"
    "\"type\":\"array\","
    "\"x-kubernetes-patch-strategy\":\"merge\",\"items\":{\"type\":\"string\"}}}}}}";

static int run(struct arena *a, char format, const struct json *old, const struct json *patch,
               struct json **ret_new)
{
    struct patch_error error = {0};
    struct str why;
    const struct schema *schema = NULL;
    int r = 0;
    if (format == 'j')
        r = patch_json(a, old, patch, ret_new, &error);
    else if (format == 'm')
        r = patch_merge(a, old, patch, ret_new, &error);
    else if (schema_compile(a, json_parse_quick(a, str_of(workload)), &schema, &why) < 0)
        abort();
    else
        r = patch_strategic(a, old, patch, schema, ret_new, &error);
    if (r < 0 && !error.message.n)
        abort();
    return r;
}

/* As the server reads it: a repeated key counts once. */
static struct json *parse(struct arena *a, struct str text)
{
    struct json_parse_result parsed = {0};
    return json_parse(a, text, &parsed) < 0 ? NULL : parsed.value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    ARENA_AUTO a = arena_new();
    struct str rest = str_range((const char *) data + 1, size - 1), line = STR("");
    (void) str_split(&rest, '\n', &line);
    struct json *old = parse(a, line), *patch = parse(a, rest), *result = NULL;
    if (!json_is(old, JSON_OBJECT) || !patch)
        return 0;
    struct json before = json_clone(a, old), asked = json_clone(a, patch);
    int r = run(a, (char) data[0], old, patch, &result);
    if (!json_equal(old, &before) || !json_equal(patch, &asked))
        abort();
    /* What was accepted can be stored and read again. */
    if (r == 0 && !json_parse_quick(a, json_text(a, result)))
        abort();
    return 0;
}
