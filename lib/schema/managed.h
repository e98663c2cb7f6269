/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.managedFields and server-side apply: who owns which field, what a write changes in it,
 * when two managers conflict. Works on whole objects (apiVersion, kind, metadata ...), the way the
 * field manager of kube-apiserver does: metadata's own bookkeeping fields are never owned. */
#pragma once

#include "schema/fieldset.h"

#define MANAGED_MAX_UPDATERS 10 /* Update entries; older ones are joined into "ancient-changes" */

struct managed_options {
    struct str manager;          /* fieldManager, or the default from the user agent */
    struct str subresource;      /* "" or "status", "scale" */
    struct str api_version;      /* of the request, e.g. "apps/v1" */
    struct str time;             /* RFC 3339, seconds; STR_NONE: entries get no time */
    const struct schema *schema; /* of the kind in that version; NULL: deduced */
    /* Fields never recorded for this write, as FieldsV1-like paths with '.' between names: "status"
     * for the main resource of a kind with a status subresource, all but "status" for the
     * subresource. NULL-terminated. */
    const char *const *reset_fields;
    bool only_status; /* the write is to /status: everything but status is reset */
    /* What an object of the kind holds before anything is set, Go's zero value:
     * {"spec":{},"status":{}} for many native kinds. Nobody owns these maps themselves. NULL:
     * nothing, as with custom resources. */
    const struct json *zero;
};

struct managed_conflict {
    struct str manager;        /* the name alone */
    struct str operation_text; /* `"kubectl" with subresource "status" using v1`, ready to print
                                  behind "conflict with " */
    struct str field;          /* ".data.a" */
    struct managed_conflict *next;
};

/* After a create or update (any verb but apply): compares old (NULL on create) with new_object and
 * rewrites new_object's metadata.managedFields in place. Also honours what the caller sent in
 * managedFields (an empty list resets; [{}] too; otherwise the sent ones are the base). Caps the
 * number of Update entries at 10 as kube-apiserver does ("ancient-changes"). An unchanged object
 * keeps its managedFields and times. Call it on the object as decoded and defaulted, before hooks
 * add what no client asked for. What new_object shares with old stays as it is. */
void managed_update(struct arena *a, const struct json *old, struct json *new_object,
                    const struct managed_options *options);

/* Server-side apply of `config` onto `old` (NULL: create). On success *ret_new is the merged object
 * with its managedFields, not yet defaulted or validated; equal to old when nothing changed (times
 * kept). Conflicts without force: -EEXIST and the list in *ret_conflicts, by manager. Bad input (a
 * duplicate list-map key, managedFields set in config ...): -EINVAL and *ret_error in
 * kube-apiserver's words. The result shares parts with old and config. */
int managed_apply(struct arena *a, const struct json *old, const struct json *config, bool force,
                  const struct managed_options *options, struct json **ret_new,
                  struct managed_conflict **ret_conflicts, struct str *ret_error);
/* "Apply failed with 1 conflict: conflict with \"one\": .data.a" */
void managed_conflicts_text(struct arena *a, const struct managed_conflict *conflicts,
                            struct buf *b);

/* Once the object is complete: takes old's managedFields back when nothing but their times, or the
 * resourceVersion, differs. An object that defaulting made equal to old again is then not written.
 */
void managed_keep_times(struct arena *a, const struct json *old, struct json *new_object);

/* ---- the scale subresource ---------------------------------------------------------------- */

/* A Scale has managedFields of its own, made from its parent's: who owns the replicas there owns
 * spec.replicas here. replicas_path is dotted: "spec.replicas". Gives an array, possibly empty. */
struct json managed_to_scale(struct arena *a, const struct json *parent_managed,
                             struct str replicas_path);
/* The way back after a write to the Scale: the parent's entries with the ownership of the replicas
 * that scale_managed says. api_version is the parent's. */
struct json managed_from_scale(struct arena *a, const struct json *parent_managed,
                               const struct json *scale_managed, struct str replicas_path,
                               struct str api_version);
