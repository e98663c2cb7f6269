/* SPDX-License-Identifier: Apache-2.0 */
/* A structural schema, compiled from the openAPIV3Schema of a CRD (or of a native kind, which is
 * written in the same form), and what it does to an object: validate, default, prune. Immutable
 * once compiled; shared by threads; owned by the arena it was compiled into. */
#pragma once

#include "base/map.h"
#include "schema/causes.h"
#include "json/json.h"

enum schema_type {
    SCHEMA_ANY, /* no type given */
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
};

enum schema_list_type { SCHEMA_LIST_ATOMIC, SCHEMA_LIST_SET, SCHEMA_LIST_MAP };

struct schema_rules; /* bounds, patterns, enums, junctors: private to validate.c */

/* The parts that patches, apply, tables and OpenAPI look at. A missing list type means atomic, a
 * missing map type granular, as server-side apply has it. */
struct schema {
    enum schema_type type;
    bool nullable;
    bool int_or_string;
    bool preserve_unknown_fields;
    bool embedded_resource;
    bool map_is_atomic; /* x-kubernetes-map-type: atomic */
    enum schema_list_type list_type;
    const struct str *list_map_keys; /* SCHEMA_LIST_MAP */
    size_t n_list_map_keys;

    /* Strategic merge patch, native kinds only (x-kubernetes-patch-strategy, -patch-merge-key). */
    bool patch_merge;           /* strategy contains "merge" */
    bool patch_replace_keys;    /* strategy contains "retainKeys" */
    struct str patch_merge_key; /* STR_NONE when absent */

    struct map properties;            /* name -> struct schema *, values owned by the arena */
    const struct str *property_names; /* in the manifest's order */
    size_t n_properties;
    const struct schema *items;                 /* arrays */
    const struct schema *additional_properties; /* objects used as maps */

    const struct json *default_value; /* NULL: none */
    struct str format;
    const struct schema_rules *rules;
    const struct json *source; /* the JSON it was compiled from, for OpenAPI */
};

/* Compiles. The schema must have passed schema_check() or be one of ours: returns -EINVAL and
 * *ret_error on what cannot be compiled (a bad pattern, a wrong JSON type). `source` must live as
 * long as a. */
int schema_compile(struct arena *a, const struct json *source, const struct schema **ret_schema,
                   struct str *ret_error);

/* The schema of a member of an object with this schema: properties, then additionalProperties, else
 * NULL (unknown, or kept because of preserve_unknown_fields). schema may be NULL. */
const struct schema *schema_member(const struct schema *schema, struct str name);

/* ObjectMeta as every kind has it: list types and atomicity of labels, ownerReferences (map by
 * uid), finalizers (set), managedFields (atomic). Used by apply for `metadata` whatever the kind's
 * schema says. */
const struct schema *schema_object_meta(void);

/* ---- what a schema does ------------------------------------------------------------------- */

/* Fills defaults, also below freshly defaulted objects; members that are null and not nullable take
 * their default or are dropped, as kube-apiserver does. Defaults are cloned into a. Changes value
 * itself, but copies whatever it changes below: other trees may share that. */
void schema_default(struct arena *a, const struct schema *schema, struct json *value);
/* The same, without looking into what value shares with old, which has its defaults. */
void schema_default_over(struct arena *a, const struct schema *schema, struct json *value,
                         const struct json *old);

struct unknown_field {
    struct str path; /* spec.nope, spec.list[0].nope */
    struct unknown_field *next;
};
/* At most so many are listed; all are removed. */
#define SCHEMA_MAX_UNKNOWN 1000
#define SCHEMA_MAX_UNKNOWN_BYTES ((size_t) 1024 * 1024)
/* Removes what the schema does not know (respecting preserve-unknown-fields and embedded resources,
 * whose apiVersion, kind and metadata stay) and lists it when ret_unknown is not NULL, in
 * kube-apiserver's order: metadata's, the rest sorted, that of embedded metadata. At the root,
 * apiVersion, kind and metadata always stay; of metadata, the root's and an embedded one, only what
 * ObjectMeta has stays. Changes value itself, but copies whatever it changes below. */
void schema_prune(struct arena *a, const struct schema *schema, struct json *value,
                  struct unknown_field **ret_unknown);

/* What kube-apiserver's decoder refuses before validation: metadata of an embedded resource that is
 * no ObjectMeta. STR_NONE, or the text behind `... cannot be handled as a Device: `. */
struct str schema_malformed(struct arena *a, const struct schema *schema, const struct json *value);

/* Appends every violation, in kube-apiserver's words. old_value (may be NULL) is for ratcheting:
 * what did not change is not judged again. */
void schema_validate(const struct schema *schema, const struct json *value,
                     const struct json *old_value, const struct field_path *at,
                     struct causes *causes);

/* Is this schema acceptable in a CRD: structural rules, defaults that validate, list-map keys,
 * bounds, patterns, forbidden keywords; messages as kube-apiserver's. `at` is the path of
 * openAPIV3Schema. */
void schema_check(const struct json *source, const struct field_path *at, struct causes *causes);

/* Brings a schema into the form that decoding it into Go's structs and writing it again gives:
 * without nulls, without empty values where Go cannot tell them from none, without what is no
 * keyword. on_unknown (may be NULL) is called for each of those. Changes in place; what has a wrong
 * type stays for schema_check(). */
void schema_normalize(struct arena *a, struct json *source, const struct field_path *at,
                      void (*on_unknown)(void *ctx, struct str path), void *ctx);
