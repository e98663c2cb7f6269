/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.managedFields and server-side apply: who owns which field, what a write changes in it, when two
 * managers conflict. Works on whole objects (apiVersion, kind, metadata ...), the way the field manager of
 * kube-apiserver does: metadata's own bookkeeping fields are never owned. */
#pragma once

#include "schema/fieldset.h"

struct managed_options {
    struct str manager;       /* fieldManager, or the default from the user agent */
    struct str subresource;   /* "" or "status", "scale" */
    struct str api_version;   /* of the request, e.g. "apps/v1" */
    struct str time;          /* RFC 3339, seconds */
    const struct schema *schema; /* of the kind in that version; NULL: deduced */
    /* Fields never recorded for this write, as FieldsV1-like paths with '.' between names: "status" for
     * the main resource of a kind with a status subresource, all but "status" for the subresource. NULL-terminated. */
    const char *const *reset_fields;
    bool only_status; /* the write is to /status: everything but status is reset */
};

struct managed_conflict {
    struct str manager;     /* as in the message: "one" using v1 at <time> */
    struct str operation_text; /* `"kubectl" using v1 at 2026-01-02T03:04:05Z` ready to print */
    struct str field;       /* ".data.a" */
    struct managed_conflict *next;
};

/* After a create or update (any verb but apply): compares old (NULL on create) with new_object and rewrites
 * new_object's metadata.managedFields in place. Also honours what the caller sent in managedFields
 * (an empty list resets; [{}] too; otherwise the sent ones are the base). Caps the number of Update entries at 10
 * as kube-apiserver does ("ancient-changes"). An unchanged object keeps its managedFields and times. */
void managed_update(struct arena *a, const struct json *old, struct json *new_object,
                    const struct managed_options *options);

/* Server-side apply of `config` onto `old` (NULL: create). On success *ret_new is the merged object with its
 * managedFields, not yet defaulted or validated; equal to old when nothing changed (times kept). Conflicts
 * without force: -EEXIST and the list in *ret_conflicts. Bad input (a duplicate list-map key, managedFields
 * set in config ...): -EINVAL and *ret_error in kube-apiserver's words. */
int managed_apply(struct arena *a, const struct json *old, const struct json *config, bool force,
                  const struct managed_options *options, struct json **ret_new,
                  struct managed_conflict **ret_conflicts, struct str *ret_error);
