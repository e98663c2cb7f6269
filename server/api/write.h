/* SPDX-License-Identifier: Apache-2.0 */
/* The way every write goes, whichever verb began it: defaults, managedFields, the kind's own
 * preparation, validation, then the store. Retried from the current version when somebody else was
 * faster and the writer did not insist on one. */
#pragma once

#include "api/body.h"
#include "schema/managed.h"

/* Of one object: what is stored must be readable again. */
#define WRITE_MAX_VALUES 1000000

/* How a write arrives at the new object from the current one (NULL: there is none). Fills c->status
 * on failure. */
struct write_plan {
    int (*build)(struct call *c, const struct json *old, struct json **ret_new);
    bool is_apply;    /* build() has written managedFields itself */
    bool may_create;  /* no current object: build(NULL) and create */
    bool must_create; /* a current object is an error */
    /* Answers with something else than the object (a Scale). NULL: the object. */
    void (*on_changed)(struct call *c, struct object *o);
};

/* Runs the plan on the object of c's name (c->key is set) and ends the call. */
void write_run(struct call *c, const struct write_plan *plan);

/* Checks dryRun, fieldManager, fieldValidation (and force, for a patch) of the query; options_kind
 * as errors name it. */
int write_check_options(struct call *c, const char *options_kind, bool is_apply);
/* How this call's write is recorded in managedFields. */
struct managed_options write_managed_options(struct call *c);
/* fieldManager, or what stands before the slash in the user agent. */
struct str write_manager(struct call *c);
/* Readies an object that shares parts with the current one for what comes behind build(). Where the
 * kind has behaviour of its own all of it is copied, since hooks change what they like; else only
 * the root and metadata, and whoever changes more below copies it first. */
void write_unshare(struct call *c, struct json *object);
struct patch_error;
/* Why a patch cannot be applied, as a Status. */
int patch_fail(struct call *c, const struct patch_error *e);
/* 409 of server-side apply. */
int patch_fail_conflicts(struct call *c, const struct managed_conflict *conflicts);
/* The namespace of the object must be the request's if it names one, its name the URL's. */
int write_check_names(struct call *c, const struct json *object);
/* As write_check_names(), and fills the namespace in. */
int write_check_identity(struct call *c, struct json *object);
