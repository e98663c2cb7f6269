/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema_internal.h"

/* Defaults of one object whose presence fits one word. */
#define MAX_SEEN_SLOTS 64

static bool is_unwanted_null(const struct schema *s, const struct json *value)
{
    return value->type == JSON_NULL && !s->nullable;
}

/* One pass over the members there are: drops nulls, descends. Returns which defaults are not
 * needed. */
static uint64_t default_members(struct arena *a, const struct schema *s, struct json *object)
{
    uint64_t seen = 0;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < object->n; i++) {
        struct json_member *m = &object->members[i];
        const struct schema *child = schema_member(s, json_str(&m->key));
        if (child && is_unwanted_null(child, &m->value)) {
            if (!child->default_value)
                continue;
            m->value = json_clone(a, child->default_value);
        }
        if (child) {
            schema_default(a, child, &m->value);
            if (child->rules->default_slot < MAX_SEEN_SLOTS)
                seen |= UINT64_C(1) << child->rules->default_slot;
        }
        if (n_kept != i)
            object->members[n_kept] = *m;
        n_kept++;
    }
    object->n = n_kept;
    return seen;
}

static void default_object(struct arena *a, const struct schema *s, struct json *object)
{
    uint64_t seen = default_members(a, s, object);
    const struct schema_rules *r = s->rules;
    for (size_t i = 0; i < r->n_defaulted; i++) {
        bool is_there = i < MAX_SEEN_SLOTS ? (seen >> i & 1) != 0
                                           : json_get(object, r->defaulted_names[i]) != NULL;
        if (is_there)
            continue;
        struct json value = json_clone(a, r->defaulted[i]->default_value);
        schema_default(a, r->defaulted[i], &value);
        (void) json_append_member(a, object, r->defaulted_names[i], value);
    }
}

void schema_default(struct arena *a, const struct schema *schema, struct json *value)
{
    if (!schema)
        return;
    if (value->type == JSON_OBJECT) {
        default_object(a, schema, value);
    } else if (value->type == JSON_ARRAY && schema->items) {
        JSON_FOR_EACH_ITEM (value, item) {
            if (is_unwanted_null(schema->items, item) && schema->items->default_value)
                *item = json_clone(a, schema->items->default_value);
            schema_default(a, schema->items, item);
        }
    }
}
