/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a compiled schema that only this directory looks at. */
#pragma once

#include "schema/format.h"
#include "schema/pattern.h"
#include "schema/schema.h"

enum schema_additional {
    ADDITIONAL_UNSET,
    ADDITIONAL_ALLOWED, /* true */
    ADDITIONAL_REFUSED, /* false */
    ADDITIONAL_SCHEMA,
};

struct schema_list {
    const struct schema **schemas;
    size_t n;
};

#define SCHEMA_NO_BOUND (-1)
#define SCHEMA_NO_SLOT UINT32_MAX

struct schema_rules {
    double minimum, maximum, multiple_of;
    bool has_minimum, has_maximum, has_multiple_of;
    bool exclusive_minimum, exclusive_maximum;
    bool unique_items;
    bool has_junctors;
    bool has_list_type; /* x-kubernetes-list-type was given */
    bool has_embedded;  /* here or below is an embedded resource ... */
    bool has_lists;     /* ... a set or a map of items */
    enum schema_additional additional;
    int64_t min_length, max_length, min_items, max_items, min_properties, max_properties;
    const struct pattern *pattern; /* NULL: none */
    struct str pattern_text;
    const struct json *enum_values; /* NULL: none */
    const struct format *format;    /* of strings; NULL: not checked */
    const struct str *required;
    size_t n_required;
    struct schema_list all_of, any_of, one_of;
    const struct schema *none_of; /* `not` */

    /* Properties with a default; each of them knows its place here. */
    const struct schema **defaulted;
    const struct str *defaulted_names;
    size_t n_defaulted;
    uint32_t default_slot; /* SCHEMA_NO_SLOT: its parent has none for it */

    /* The properties again, for looking up by name. */
    const struct schema_slot *slots;
    uint32_t slot_mask;
};

struct schema_slot {
    uint32_t hash;
    struct str name;
    const struct schema *schema; /* NULL: free */
};

uint32_t schema_name_hash(struct str name);
/* The property of that name alone, without additionalProperties. */
const struct schema *schema_property(const struct schema *schema, struct str name);
void schema_index_properties(struct arena *a, const struct schema *schema,
                             struct schema_rules *rules);

/* "integer", "null" ... as messages name the type of a value. */
struct str schema_type_name(const struct json *value);
/* Go's %v of a number. */
void schema_write_number(struct buf *b, double d);

/* A path as kube-apiserver's validator writes it: map keys follow a dot as members do. */
struct str schema_path_text(struct arena *a, const struct field_path *path);

/* apiVersion, kind, metadata. */
bool schema_is_meta_name(struct str name);

/* Sets and maps of items that hold something twice. causes may be NULL. Returns how many do. */
size_t schema_check_lists(const struct schema *schema, const struct json *value,
                          const struct field_path *at, struct causes *causes);
/* Items of a list that is a map, by their keys; {0} finds nothing. Takes over nothing. */
struct schema_items {
    const struct schema *schema;
    const struct json *list;
    struct arena *arena; /* of a long list's index, NULL: none */
    struct map index;
};
/* list may be NULL, or no list, or no map. */
struct schema_items schema_items_of(const struct schema *schema, const struct json *list);
const struct json *schema_items_find(const struct schema_items *items, const struct json *item);
void schema_items_done(struct schema_items *items);

/* Embedded resources; is_resource: the value itself is one, whatever the schema says. */
void schema_check_embedded(const struct schema *schema, const struct json *value, bool is_resource,
                           const struct field_path *at, struct causes *causes);

/* As schema_prune(), for a value that is only a resource if the schema says so: a default. */
void schema_prune_value(struct arena *a, const struct schema *schema, struct json *value);
/* Why metadata is no ObjectMeta, in the words of Go's decoder; STR_NONE: it is one. */
struct str schema_metadata_error(struct arena *a, const struct json *metadata);

/* schema_validate() without embedded resources and lists, as defaults are validated. */
void schema_validate_keywords(const struct schema *schema, const struct json *value,
                              const struct field_path *at, struct causes *causes);
