/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request that failed (and to a delete that succeeded): meta/v1 Status with reason,
 * details and causes in kube-apiserver's words. In api/ and above a function that fails fills one,
 * once, and returns a negative errno. */
#pragma once

#include "api/kind.h"
#include "schema/causes.h"

struct status {
    struct arena *arena;
    int code;          /* HTTP; 0: nothing has failed */
    struct str reason; /* STR_NONE: left out */
    struct str message;
    bool has_details;                  /* `details: {}` is written even when empty */
    struct str name, group, kind, uid; /* of details */
    const struct cause *causes;        /* with `field` */
    struct str cause_reason, cause_message, cause_field; /* a single cause of no validation */
    int retry_after_s;                                   /* 0: none */
    struct str continue_token;                           /* metadata.continue of an expired list */
};

void status_init(struct status *st, struct arena *a);

/* Each fills st and returns the errno that callers pass on. */
int status_fail(struct status *st, int code, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
int status_bad_request(struct status *st, const char *format, ...) PRINTF_LIKE(2, 3);
int status_not_found(struct status *st, const struct kind *kind, struct str name);
/* No such path or resource. */
int status_no_resource(struct status *st);
int status_no_method(struct status *st);
int status_already_exists(struct status *st, const struct kind *kind, struct str name);
int status_conflict(struct status *st, const struct kind *kind, struct str name, const char *format,
                    ...) PRINTF_LIKE(4, 5);
int status_modified(struct status *st, const struct kind *kind, struct str name);
int status_forbidden(struct status *st, const struct kind *kind, struct str name,
                     const char *format, ...) PRINTF_LIKE(4, 5);
int status_invalid(struct status *st, struct str group, struct str kind, struct str name,
                   const struct causes *causes);
int status_unauthorized(struct status *st);
int status_expired(struct status *st, const char *message);
int status_too_large_version(struct status *st, int64_t asked, int64_t current);
/* The one place where a failed write's errno becomes a Status. */
int status_from_store(struct status *st, const struct kind *kind, struct str name, int error);

/* The JSON text. */
void status_write(struct buf *b, const struct status *st);
/* {"status":"Success"} of a delete, with details. */
void status_write_deleted(struct buf *b, const struct kind *kind, struct str name, struct str uid);

/* "configmaps", "devices.eve.lfedge.org": the resource as messages name it. */
struct str status_resource(struct arena *a, const struct kind *kind);
/* Go's %q of a name. */
struct str status_quote(struct arena *a, struct str s);
