/* SPDX-License-Identifier: Apache-2.0 */
/* Health checks: a table of named questions and the texts of /livez, /readyz and /healthz that
 * answer them. */
#pragma once

#include "api/document.h"

/* Which endpoints ask a check; a check may be of several. */
enum health_endpoint { HEALTH_LIVEZ = 1, HEALTH_READYZ = 2, HEALTH_HEALTHZ = 4 };
#define HEALTH_ALL (HEALTH_LIVEZ | HEALTH_READYZ | HEALTH_HEALTHZ)

#define HEALTH_MAX_CHECKS 64
#define HEALTH_REASON_BYTES 256

struct health_check {
    struct str name;
    unsigned endpoints; /* of enum health_endpoint */
    /* True: healthy. False: `reason` (HEALTH_REASON_BYTES, empty at first) may be filled; it is for
     * our log and for who may ask the single check. NULL: always healthy. Called on any thread. */
    bool (*is_healthy)(void *ctx, char *reason);
    void *ctx;
};

/* The table, in the order the checks are shown. All checks are added before the first question. */
struct health {
    struct health_check checks[HEALTH_MAX_CHECKS];
    size_t n_checks;
};

/* Begins with `ping`, which only asks whether we answer, and `log`. */
void health_init(struct health *h);
void health_add(struct health *h, const struct health_check *check);

/* Answers "/livez", "/readyz", "/healthz" (parameters verbose and exclude) and
 * "/<endpoint>/<check>". False: no such path. Failed checks are logged. */
bool health_get(struct arena *a, const struct health *h, const struct document_request *q,
                struct document_reply *ret_reply);
/* True for the paths of health_get(), whether or not the check exists. */
bool health_has_path(struct str path);
/* Every path health_get() answers, for the root document. */
size_t health_paths(struct arena *a, const struct health *h, struct str **ret_paths);
