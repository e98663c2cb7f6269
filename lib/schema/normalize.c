/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/keywords.h"
#include "schema/schema_internal.h"

struct normalizer {
    struct arena *arena;
    void (*on_unknown)(void *ctx, struct str path);
    void *ctx;
};

static void normalize(struct normalizer *n, struct json *schema, const struct field_path *at);

static void normalize_list(struct normalizer *n, struct json *list, const struct field_path *at)
{
    for (size_t i = 0; i < json_count(list); i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        normalize(n, &list->items[i], &here);
    }
}

static void normalize_map(struct normalizer *n, struct json *map, const struct field_path *at)
{
    JSON_FOR_EACH_MEMBER (map, m) {
        struct field_path here = FIELD_NAME(at, json_str(&m->key));
        normalize(n, &m->value, &here);
    }
}

static void normalize_child(struct normalizer *n, const struct keyword *k, struct json *value,
                            const struct field_path *at)
{
    switch (k->shape) {
    case KEYWORD_SCHEMA:
    case KEYWORD_SCHEMA_OR_BOOL:
    case KEYWORD_SCHEMA_OR_ARRAY:
        normalize(n, value, at);
        if (json_is(value, JSON_ARRAY))
            normalize_list(n, value, at);
        return;
    case KEYWORD_SCHEMAS:
        if (json_is(value, JSON_ARRAY))
            normalize_list(n, value, at);
        return;
    case KEYWORD_SCHEMA_MAP:
        normalize_map(n, value, at);
        return;
    default:
        return;
    }
}

static bool is_empty(const struct json *value)
{
    switch ((enum json_type) value->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !value->b;
    case JSON_STRING:
    case JSON_ARRAY:
    case JSON_OBJECT:
        return value->n == 0;
    default:
        return false;
    }
}

/* Does the member stay. */
static bool normalize_member(struct normalizer *n, struct json_member *m,
                             const struct field_path *at)
{
    struct field_path here = FIELD_NAME(at, json_str(&m->key));
    const struct keyword *k = keyword_find(here.name);
    if (!k) {
        if (n->on_unknown)
            n->on_unknown(n->ctx, schema_path_text(n->arena, &here));
        return false;
    }
    if (json_is(&m->value, JSON_NULL) || (!k->keeps_empty && is_empty(&m->value)))
        return false;
    normalize_child(n, k, &m->value, &here);
    return true;
}

static void normalize(struct normalizer *n, struct json *schema, const struct field_path *at)
{
    if (!json_is(schema, JSON_OBJECT))
        return;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < schema->n; i++) {
        struct json_member *m = &schema->members[i];
        if (!normalize_member(n, m, at))
            continue;
        if (n_kept != i)
            schema->members[n_kept] = *m;
        n_kept++;
    }
    schema->n = n_kept;
}

void schema_normalize(struct arena *a, struct json *source, const struct field_path *at,
                      void (*on_unknown)(void *ctx, struct str path), void *ctx)
{
    struct normalizer n = {.arena = a, .on_unknown = on_unknown, .ctx = ctx};
    normalize(&n, source, at);
}
