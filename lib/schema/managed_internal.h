/* SPDX-License-Identifier: Apache-2.0 */
/* managedFields as a list of entries, for the files that change it. */
#pragma once

#include "schema/fieldset_internal.h"
#include "schema/managed.h"

#define MANAGED_MAX_SENT 1000 /* entries a client may send; with more they are ignored */

struct managed_entry {
    struct str manager, api_version, time, subresource; /* time: STR_NONE when it has none */
    bool is_apply;
    const struct json *stored; /* the entry it was read from; NULL: new or changed */
    const struct json
        *fields; /* canonical FieldsV1, unless set is newer; never NULL before set is there */
    struct fieldset *set; /* NULL: not parsed yet; use managed_set() */
};

struct managed_list {
    struct arena *arena;
    const struct schema *schema; /* with reconciles: by which stored sets are read */
    bool reconciles;
    struct managed_entry *entries;
    size_t n, capacity;
};

/* -EINVAL for what Kubernetes would not decode. is_canonical: it is ours, so FieldsV1 need not be
 * read now. */
int managed_read(struct arena *a, const struct json *managed, bool is_canonical,
                 struct managed_list *ret);
/* The array, sorted as Kubernetes sorts it. */
struct json managed_write(struct managed_list *list);

const struct fieldset *managed_set(struct managed_list *list, struct managed_entry *entry);
void managed_set_fields(struct managed_entry *entry, struct fieldset *set);
void managed_set_time(struct managed_entry *entry, struct str time);
/* Who it is: the manager, its operation, its subresource and, but for appliers, its version. NULL
 * when absent. */
struct managed_entry *managed_find(struct managed_list *list, const struct managed_entry *who);
struct managed_entry *managed_add(struct managed_list *list, struct managed_entry entry);
void managed_remove(struct managed_list *list, struct managed_entry *entry);
/* The order Kubernetes gives to managers: that of their identity written as JSON. */
int managed_compare_identity(const struct managed_entry *a, const struct managed_entry *b);

/* Fields that no write records: apiVersion, kind, the bookkeeping in metadata, and what the options
 * reset. */
const struct fieldset *managed_ignored(struct arena *a, const struct managed_options *options);
/* The set without `metadata` itself, which nobody owns. */
void managed_strip_metadata(struct fieldset *set);

/* What a write changed of all that it may record, old NULL: everything. Native objects are compared
 * with their zero values in place, as Kubernetes' typed objects have them. */
struct fieldset_difference managed_compare(struct arena *a, const struct managed_options *options,
                                           const struct json *old, const struct json *new_value);

/* False when the entry surely owns none of the fields; cheaper than to parse it. */
bool managed_may_own(const struct managed_entry *entry, const struct fieldset *set);
/* Records that the entry's manager changed old into new: others lose what differs, it gains it. */
void managed_take_over(struct managed_list *list, const struct fieldset_difference *difference,
                       const struct managed_entry *by, struct str time);
/* The others lose what differs; entries that own nothing go. skip: the one that keeps its fields,
 * or NULL. */
void managed_release(struct managed_list *list, const struct fieldset_difference *difference,
                     const struct managed_entry *skip);

/* Puts the array into metadata.managedFields, or removes it when empty; copies what object may
 * share. */
void managed_store(struct arena *a, struct json *object, struct json managed);
