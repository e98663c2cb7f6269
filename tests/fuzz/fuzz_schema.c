/* SPDX-License-Identifier: Apache-2.0 */
/* {"schema": ..., "value": ..., "old": ...}: a CRD's schema is checked and compiled, then does its
 * work on the value. What was pruned and defaulted once must stay as it is. */
#include <stdint.h>
#include <stdlib.h>

#include "schema/schema.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* A value that another run of the same would change is one of which two readers see two truths. */
static void settle(struct arena *a, const struct schema *s, struct json *value)
{
    struct unknown_field *unknown = NULL;
    schema_default(a, s, value);
    schema_prune(a, s, value, &unknown);
    struct json once = json_clone(a, value);
    schema_prune(a, s, value, &unknown);
    expect(unknown == NULL);
    schema_default(a, s, value);
    expect(json_equal(&once, value));
}

static void run(struct arena *a, struct json *input)
{
    struct json *source = json_get(input, STR("schema")), *value = json_get(input, STR("value"));
    const struct json *old = json_get(input, STR("old"));
    struct field_path at = FIELD_NAME(NULL, STR("schema"));
    struct causes causes;
    causes_init(&causes, a);
    if (!source)
        return;
    schema_check(source, &at, &causes);
    bool is_good = causes.n == 0;
    schema_normalize(a, source, &at, NULL, NULL);
    const struct schema *schema = NULL;
    struct str error = STR_NONE;
    int r = schema_compile(a, source, &schema, &error);
    expect(r == 0 || !is_good);
    if (r < 0 || !value)
        return;
    if (is_good)
        settle(a, schema, value);
    causes_init(&causes, a);
    (void) schema_malformed(a, schema, value);
    schema_validate(schema, value, old, NULL, &causes);
    size_t n = 0;
    for (const struct cause *c = causes.first; c; c = c->next, n++)
        expect(c->message.n > 0);
    expect(n == MIN(causes.n, (size_t) CAUSES_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result input = {0};
    if (json_parse(a, str_range((const char *) data, size), &input) == 0)
        run(a, input.value);
    return 0;
}
