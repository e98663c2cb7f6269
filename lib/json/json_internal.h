/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this directory share. */
#pragma once

#include "json/fieldpath.h"
#include "json/json.h"

#define JSON_SMALL_OBJECT 16 /* members up to which comparing each pair beats an index */

/* What Go's decoder says about a text that is no JSON. False when Go would accept the syntax, in
 * which case the outputs are untouched. Nested at most JSON_MAX_DEPTH deep up to its fault. */
bool json_go_error(struct arena *a, struct str text, struct str *ret_error, size_t *ret_at);

/* Finds repeated keys of one object while its members arrive; {.object = o} is the empty state. */
struct json_keys {
    const struct json *object;
    uint32_t *slots; /* member number + 1; 0: free. NULL while the object is small */
    size_t n_slots;
};
void json_keys_done(struct json_keys *keys);
/* The member of that key. Call for each key in turn, before it is appended to the object. */
struct json_member *json_keys_find(struct json_keys *keys, struct str key);

/* A list of duplicates that takes each path once and stops at JSON_MAX_DUPLICATES. */
struct json_duplicates {
    struct json_duplicate *first, **end;
    size_t n, n_path_bytes;
};
void json_duplicates_add(struct arena *a, struct json_duplicates *list,
                         const struct field_path *path, struct str yaml_message);
