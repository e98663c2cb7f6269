/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema_internal.h"

/* Defaults of one object whose presence fits one word. */
#define MAX_SEEN_SLOTS 64

static bool is_unwanted_null(const struct schema *s, const struct json *value)
{
    return value->type == JSON_NULL && !s->nullable;
}

/* The value takes its default for null, and those below it. True when it changed. */
static bool default_value(struct arena *a, const struct schema *s, struct json *value,
                          const struct json *old);

static const struct json *member_before(const struct json *old, uint32_t at, struct str name)
{
    bool is_there = json_is(old, JSON_OBJECT) && at < old->n;
    return is_there && str_eq(json_str(&old->members[at].key), name) ? &old->members[at].value
                                                                     : NULL;
}

/* One pass over the members there are: drops nulls, descends. Returns which defaults are not
 * needed. */
static uint64_t default_members(struct arena *a, const struct schema *s, struct json *object,
                                const struct json *old, bool *is_own)
{
    uint64_t seen = 0;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < object->n; i++) {
        struct json_member m = object->members[i];
        const struct schema *child = schema_member(s, json_str(&m.key));
        bool drops = child && is_unwanted_null(child, &m.value) && !child->default_value;
        bool is_changed =
            child && !drops &&
            default_value(a, child, &m.value, member_before(old, i, json_str(&m.key)));
        if (child && !drops && child->rules->default_slot < MAX_SEEN_SLOTS)
            seen |= UINT64_C(1) << child->rules->default_slot;
        if ((drops || is_changed) && !*is_own) {
            json_unshare(a, object, s->rules->n_defaulted);
            *is_own = true;
        }
        if (drops)
            continue;
        if (*is_own)
            object->members[n_kept] = m;
        n_kept++;
    }
    object->n = n_kept;
    return seen;
}

static bool default_object(struct arena *a, const struct schema *s, struct json *object,
                           const struct json *old)
{
    bool is_own = false;
    uint64_t seen = default_members(a, s, object, old, &is_own);
    const struct schema_rules *r = s->rules;
    for (size_t i = 0; i < r->n_defaulted; i++) {
        bool is_there = i < MAX_SEEN_SLOTS ? (seen >> i & 1) != 0
                                           : json_get(object, r->defaulted_names[i]) != NULL;
        if (is_there)
            continue;
        struct json value = json_clone(a, r->defaulted[i]->default_value);
        (void) default_value(a, r->defaulted[i], &value, NULL);
        if (!is_own)
            json_unshare(a, object, r->n_defaulted - i);
        is_own = true;
        (void) json_append_member(a, object, r->defaulted_names[i], value);
    }
    return is_own;
}

static bool default_array(struct arena *a, const struct schema *items, struct json *array,
                          const struct json *old)
{
    bool is_own = false;
    for (uint32_t i = 0; i < array->n; i++) {
        struct json item = array->items[i];
        const struct json *was = json_is(old, JSON_ARRAY) && i < old->n ? &old->items[i] : NULL;
        if (is_unwanted_null(items, &item) && !items->default_value)
            continue;
        if (!default_value(a, items, &item, was))
            continue;
        if (!is_own)
            json_unshare(a, array, 0);
        is_own = true;
        array->items[i] = item;
    }
    return is_own;
}

static bool default_value(struct arena *a, const struct schema *s, struct json *value,
                          const struct json *old)
{
    bool is_changed = is_unwanted_null(s, value);
    if (is_changed)
        *value = json_clone(a, s->default_value);
    if (!json_is_container(value) || (old && json_is_shared(value, old)))
        return is_changed;
    if (value->type == JSON_OBJECT)
        return default_object(a, s, value, old) || is_changed;
    return (s->items && default_array(a, s->items, value, old)) || is_changed;
}

void schema_default(struct arena *a, const struct schema *schema, struct json *value)
{
    schema_default_over(a, schema, value, NULL);
}

void schema_default_over(struct arena *a, const struct schema *schema, struct json *value,
                         const struct json *old)
{
    if (!schema)
        return;
    if (value->type == JSON_OBJECT)
        (void) default_object(a, schema, value, old);
    else if (value->type == JSON_ARRAY && schema->items)
        (void) default_array(a, schema->items, value, old);
}
