/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to FieldsV1 as it is stored, and small changes of it, without making a set of it. */
#include "schema/fieldset_internal.h"

#define SMALL_SET 32 /* nodes up to which looking each up in stored FieldsV1 beats parsing it */

/* Whether the field itself is in the set; "." is written first. */
static bool is_member(const struct json *fields)
{
    return json_count(fields) == 0 || str_is(json_str(&fields->members[0].key), ".");
}

bool fieldset_json_has_all(const struct json *fields_v1, const struct fieldset *set)
{
    for (uint32_t i = 0; set && i < set->n; i++) {
        const struct fieldset_node *node = &set->nodes[i];
        const struct json *fields = json_get(fields_v1, node->element);
        if (!fields || (node->is_member && !is_member(fields)) ||
            !fieldset_json_has_all(fields, node->children))
            return false;
    }
    return true;
}

bool fieldset_json_has_any(const struct json *fields_v1, const struct fieldset *set)
{
    for (uint32_t i = 0; set && i < set->n; i++) {
        const struct fieldset_node *node = &set->nodes[i];
        const struct json *fields = json_get(fields_v1, node->element);
        /* What was several fields may be one today. */
        bool has_itself = node->is_member && (is_member(fields) || !node->children);
        if (fields && (has_itself || fieldset_json_has_any(fields, node->children)))
            return true;
    }
    return false;
}

static bool is_level(const struct json *fields, const struct fieldset *set, bool with_itself)
{
    uint32_t n = set ? set->n : 0, first = n && with_itself;
    if (!json_is(fields, JSON_OBJECT) || fields->n != n + first ||
        (first && !str_is(json_str(&fields->members[0].key), ".")))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct fieldset_node *node = &set->nodes[i];
        const struct json_member *m = &fields->members[first + i];
        if (!str_eq(json_str(&m->key), node->element) ||
            !is_level(&m->value, node->children, node->is_member))
            return false;
    }
    return true;
}

bool fieldset_json_is(const struct json *fields_v1, const struct fieldset *set)
{
    return is_level(fields_v1, set, /* with_itself= */ false);
}

/* ---- taking away -------------------------------------------------------------------------- */

enum outcome {
    OUTCOME_SAME,
    OUTCOME_CHANGED,
    OUTCOME_GONE,
};

static enum outcome take_node(struct arena *a, const struct fieldset_node *node,
                              struct json *fields);

/* Copies the members before the first change. */
static bool take_below(struct arena *a, const struct fieldset *set, struct json *fields)
{
    bool is_own = false;
    for (uint32_t i = 0; set && i < set->n; i++) {
        const struct fieldset_node *node = &set->nodes[i];
        const struct json *found = json_get(fields, node->element);
        struct json below = found ? *found : json_null();
        enum outcome outcome = found ? take_node(a, node, &below) : OUTCOME_SAME;
        if (outcome == OUTCOME_SAME)
            continue;
        if (!is_own)
            json_unshare(a, fields, 0);
        is_own = true;
        if (outcome == OUTCOME_GONE)
            (void) json_remove(fields, node->element);
        else
            *json_get(fields, node->element) = below;
    }
    return is_own;
}

static enum outcome take_node(struct arena *a, const struct fieldset_node *node,
                              struct json *fields)
{
    bool was_member = is_member(fields), has_mark = was_member && fields->n;
    bool is_changed = take_below(a, node->children, fields);
    if (was_member && node->is_member) {
        if (has_mark && !is_changed)
            json_unshare(a, fields, 0);
        if (has_mark)
            (void) json_remove(fields, STR("."));
        return fields->n ? OUTCOME_CHANGED : OUTCOME_GONE;
    }
    if (!is_changed)
        return OUTCOME_SAME;
    if (has_mark && fields->n == 1)
        *fields = json_object(); /* nothing is below it any more */
    return fields->n || was_member ? OUTCOME_CHANGED : OUTCOME_GONE;
}

bool fieldset_json_take(struct arena *a, const struct fieldset *set, struct json *fields_v1)
{
    return take_below(a, set, fields_v1);
}

/* ---- adding ------------------------------------------------------------------------------- */

static bool add_node(struct arena *a, const struct fieldset_node *node, struct json *fields);

static void insert_member(struct arena *a, struct json *object, size_t at, struct json_member m)
{
    (void) json_append_member(a, object, STR(""), json_null());
    struct json_member *place = object->members + at;
    memmove(place + 1, place, (object->n - 1 - at) * sizeof(*place));
    *place = m;
}

static size_t place_of(const struct json *fields, struct str element)
{
    size_t at = fields->n && is_member(fields);
    while (at < fields->n && element_compare(json_str(&fields->members[at].key), element) < 0)
        at++;
    return at;
}

static bool add_below(struct arena *a, const struct fieldset *set, struct json *fields)
{
    bool is_own = false;
    for (uint32_t i = 0; set && i < set->n; i++) {
        const struct fieldset_node *node = &set->nodes[i];
        const struct json *found = json_get(fields, node->element);
        struct json below = found ? *found : json_null();
        if (found && !add_node(a, node, &below))
            continue;
        if (!is_own)
            json_unshare(a, fields, set->n - i);
        is_own = true;
        if (found)
            *json_get(fields, node->element) = below;
        else
            insert_member(
                a, fields, place_of(fields, node->element),
                (struct json_member){json_string(node->element), fieldset_node_to_json(a, node)});
    }
    return is_own;
}

static bool add_node(struct arena *a, const struct fieldset_node *node, struct json *fields)
{
    bool was_member = is_member(fields);
    bool had_mark = was_member && fields->n;
    bool is_changed = add_below(a, node->children, fields);
    bool needs_mark = (was_member || node->is_member) && !had_mark && fields->n;
    if (!needs_mark)
        return is_changed;
    if (!is_changed)
        json_unshare(a, fields, 1);
    insert_member(a, fields, 0, (struct json_member){json_string(STR(".")), json_object()});
    return true;
}

bool fieldset_json_add(struct arena *a, const struct fieldset *set, struct json *fields_v1)
{
    return add_below(a, set, fields_v1);
}

/* ---- size --------------------------------------------------------------------------------- */

/* Nodes counted up to the limit, never further. */
static size_t count_nodes(const struct fieldset *set, size_t limit)
{
    size_t n = set ? set->n : 0;
    for (uint32_t i = 0; set && i < set->n && n <= limit; i++)
        n += count_nodes(set->nodes[i].children, limit - n);
    return n;
}

bool fieldset_is_small(const struct fieldset *set)
{
    return count_nodes(set, SMALL_SET) <= SMALL_SET;
}
