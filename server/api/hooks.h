/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviour of kinds: optional functions between decoding and storing, one line per kind in
 * resources/table.c. A kind without an entry there has no C at all. */
#pragma once

#include "api/kind.h"
#include "api/names.h"
#include "api/user.h"
#include "base/clock.h"

enum write_operation { WRITE_CREATE, WRITE_UPDATE };

struct hook_context {
    struct arena *arena;
    const struct kind *kind;
    enum write_operation operation;
    struct str subresource; /* "" for the object itself */
    struct str name,
        namespace;           /* of the request; name may be empty for a create with generateName */
    const struct user *user; /* whoever writes */
    int64_t now_us;
    bool is_dry_run;
    /* Adds a Warning header (kube-apiserver's words). */
    void (*warn)(struct hook_context *h, struct str text);
    void *request; /* opaque to hooks */
};

struct call;
struct reference_list;

struct kind_unique {
    const char *field; /* as refusals name it */
    /* STR_NONE: the object has none. */
    struct str (*value)(struct arena *a, const struct json *object);
};

/* What users of this collection hold an object to: these fields of its spec (ends with NULL) stay
 * as long as there is one. */
struct kind_hold {
    struct str collection;
    const char *const *fields;
    const char *why; /* behind the user's kind and name */
};

struct kind_hooks {
    struct str group, plural;
    /* Objects that are answered and never stored (reviews), and what is posted to a subresource
     * (token; c->subresource is set then). Completes the object and returns 0, or fills c->status.
     */
    int (*review)(struct call *c, struct json *object);
    /* Defaults that a schema cannot express, and folding of write-only fields (stringData). Runs
     * before managedFields are written, so what it adds belongs to the writer; what prepare() adds
     * does not. */
    void (*set_defaults)(struct hook_context *h, struct json *object);
    /* Fills in what the server decides (defaults that are no constants, status of a new object,
     * fields a writer may not set); drops `status` on writes to the object and everything else on
     * writes to /status is generic, not done here. old NULL on create. */
    void (*prepare)(struct hook_context *h, const struct json *old, struct json *object);
    /* Appends causes. Field paths as kube-apiserver's. Called for create and, before
     * validate_update, for update. */
    void (*validate)(struct hook_context *h, const struct json *object, struct causes *causes);
    void (*validate_update)(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes);
    /* What no two objects of the kind may share, in all namespaces; ends with an empty one. */
    const struct kind_unique *unique;
    /* What the object refers to by name (api/admission/reference.h): it must exist and fit. Also
     * called on the store's writer thread, for every stored version. */
    void (*refer)(struct reference_list *list, const struct json *object);
    /* Others refer to its objects, which cannot be deleted while they do... */
    bool has_users;
    /* ...but for those of which this says true. */
    bool (*may_dangle)(const struct json *object);
    const struct kind_hold *hold; /* NULL: every field may change under its users */
    /* What a write to the object ("") or one of its subresources leaves alone, as managedFields
     * count it: paths, ending with NULL. Without it that is status, on writes to the object. */
    const char *const *(*reset_fields)(struct str subresource);
    /* How metadata.name must look; NULL: DNS-1123 subdomain. is_prefix: it is a generateName. */
    struct name_errors (*check_name)(struct arena *a, struct str name, bool is_prefix);
    /* Why this object may not be deleted, as the end of a 403 message, or STR_NONE. */
    struct str (*check_delete)(struct hook_context *h, const struct json *object);
    /* A delete that leaves the object in place for now (finalizers, must_stay) marks it here beyond
     * deletionTimestamp. */
    void (*prepare_delete)(struct hook_context *h, struct json *object);
    /* Something besides metadata.finalizers keeps a deleted object alive (spec.finalizers of a
     * Namespace). */
    bool (*must_stay)(const struct json *object);
    /* DELETE answers with the object that is gone, not with a Status. */
    bool returns_deleted;
    /* PUT of an object that does not exist creates it. */
    bool creates_on_update;
    /* PUT without resourceVersion is refused (always so for custom resources). */
    bool needs_revision;
    bool judges_meta_once; /* its own rules leave metadata alone, see object_meta_validate_update()
                            */
    /* For kinds with `storedAs`: become the kind's from_stored and to_stored. */
    void (*from_stored)(struct arena *a, struct json *object);
    void (*to_stored)(struct arena *a, struct json *object);
};

/* The hooks of a kind or NULL. */
const struct kind_hooks *kind_hooks_find(struct str group, struct str plural);
