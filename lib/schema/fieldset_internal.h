/* SPDX-License-Identifier: Apache-2.0 */
/* What apply and managedFields know of a set of fields beyond fieldset.h: its nodes, path elements
 * in their canonical text, and the walks over an object that give or use sets.
 *
 * A path element is the text FieldsV1 has for it, in one spelling only (no blanks, keys sorted,
 * numbers as Go writes them), so that equal elements are equal strings. */
#pragma once

#include "schema/fieldset.h"

/* Deeper fields belong to whoever owns their ancestor at this depth: a set is itself stored inside
 * the object, some levels below its root, and must stay within JSON_MAX_DEPTH there. */
#define FIELDSET_MAX_DEPTH (JSON_MAX_DEPTH - 16)

struct fieldset_node {
    struct str element;
    struct fieldset *children; /* NULL: none, else not empty */
    bool is_member;            /* the field itself is in the set */
};

struct fieldset {
    struct fieldset_node *nodes; /* sorted by element; each is a member or has children */
    uint32_t n, capacity;
};

/* ---- elements ----------------------------------------------------------------------------- */

/* As structured-merge-diff orders them: fields, keys, values, indexes; numbers by value. */
int element_compare(struct str a, struct str b);
struct str element_of_field(struct arena *a, struct str name);
static inline bool element_is_field(struct str element)
{
    return element.p[0] == 'f';
}
/* The name of a field element. */
static inline struct str element_field_name(struct str element)
{
    return str_from(element, 2);
}
/* The element of an item of a list of type set or map. -EINVAL and *ret_error, if not NULL, when it
 * can have none: no scalar in a set, no key at all in a map. */
int element_of_item(struct arena *a, const struct schema *list, const struct json *item,
                    struct str *ret_element, struct str *ret_error);
/* What alone identifies the item; items have the same element if these are identical. NULL: several
 * values do, or none that is a string or an integer. */
const struct json *element_only_key(const struct schema *list, const struct json *item);
/* Brings what a user wrote into its canonical spelling. 1: of a kind this version does not know, to
 * be ignored; -EINVAL: malformed. */
int element_parse(struct arena *a, struct str text, struct str *ret_element);
/* As messages show it: ".name", "[name=\"x\"]", "[=\"x\"]", "[0]". */
void element_write(struct arena *a, struct buf *b, struct str element);

/* ---- nodes -------------------------------------------------------------------------------- */

/* Appends; in order or fieldset_sort() afterwards. The node is valid until the next append. */
struct fieldset_node *fieldset_append(struct arena *a, struct fieldset *set, struct str element);
void fieldset_sort(struct fieldset *set);
/* Room for n nodes, in a set that is empty still. */
void fieldset_reserve(struct arena *a, struct fieldset *set, uint32_t n);
/* With nodes of its own; what is below is shared. */
struct fieldset *fieldset_copy(struct arena *a, const struct fieldset *set);
/* NULL when absent. */
const struct fieldset_node *fieldset_find(const struct fieldset *set, struct str element);
const struct fieldset_node *fieldset_find_field(const struct fieldset *set, struct str name);
/* Without the members of `roots` and all that is below them. */
struct fieldset *fieldset_without_trees(struct arena *a, const struct fieldset *set,
                                        const struct fieldset *roots);
/* Adds the path of dotted names, in any order of calls; returns its node. */
struct fieldset_node *fieldset_add_path(struct arena *a, struct fieldset *set, struct str dotted);

/* ---- FieldsV1 as it is stored -------------------------------------------------------------- */

/* Whether canonical FieldsV1 holds every member of the set, or may hold any of them, without
 * parsing it. Quick for a small set; fieldset_is_small() says whether it is. */
bool fieldset_json_has_all(const struct json *fields_v1, const struct fieldset *set);
bool fieldset_json_has_any(const struct json *fields_v1, const struct fieldset *set);
bool fieldset_is_small(const struct fieldset *set);
/* Whether canonical FieldsV1 is what fieldset_to_json() makes of the set. */
bool fieldset_json_is(const struct json *fields_v1, const struct fieldset *set);
/* Takes the members of the set out of canonical FieldsV1, as fieldset_difference() does; copies
 * what it changes. False when none was there. */
bool fieldset_json_take(struct arena *a, const struct fieldset *set, struct json *fields_v1);
/* The same for fieldset_union(). False when all were there. */
bool fieldset_json_add(struct arena *a, const struct fieldset *set, struct json *fields_v1);
/* What stands behind the node's element in FieldsV1. */
struct json fieldset_node_to_json(struct arena *a, const struct fieldset_node *node);
/* Whether fieldset_reconcile() would leave FieldsV1 as it is. */
bool fieldset_json_fits(const struct json *fields_v1, const struct schema *schema);

/* ---- objects ------------------------------------------------------------------------------ */

/* How the owners of a value see it. */
enum shape {
    SHAPE_LEAF, /* one field: a scalar, or whatever is atomic */
    SHAPE_MAP,  /* members are fields */
    SHAPE_LIST, /* items are fields, by key or value */
};
enum shape shape_of(const struct schema *schema, const struct json *value, unsigned depth);
/* The schema of a member as apply sees it: `metadata` of the root and of embedded resources is
 * ObjectMeta. */
const struct schema *shape_member(const struct schema *schema, struct str name, bool is_root);
/* Whether the schema names this member, as opposed to a key of a map or an unknown field. */
bool shape_names_member(const struct schema *schema, struct str name, bool is_root);
/* Both at once. */
const struct schema *shape_find(const struct schema *schema, struct str name, bool is_root,
                                bool *ret_is_named);
/* Whether everything below is typed by what it is: no schema, or one that says nothing. */
bool shape_is_deduced(const struct schema *schema);

struct fieldset_difference {
    struct fieldset *changed; /* added, or of another value */
    struct fieldset *removed;
};
/* Compares two objects field by field. Fields in `ignored` (may be NULL), and what is below them,
 * do not count. */
struct fieldset_difference fieldset_compare(struct arena *a, const struct schema *schema,
                                            const struct json *old, const struct json *new_value,
                                            const struct fieldset *ignored);
/* The set as this schema has it: fields below what is one field today belong to that. The other way
 * round, what was one field is taken as the field itself without those below, as Kubernetes does.
 */
struct fieldset *fieldset_reconcile(struct arena *a, struct fieldset *set,
                                    const struct schema *schema);
/* The set with every named field above a member made a member too. */
struct fieldset *fieldset_with_named(struct arena *a, const struct fieldset *set,
                                     const struct schema *schema);
