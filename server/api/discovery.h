/* SPDX-License-Identifier: Apache-2.0 */
/* The discovery documents of one registry snapshot, encoded once: /api, /apis and below in their
 * plain forms, the aggregated list of /api and /apis, and the paths of the root. Immutable; shared
 * by threads. */
#pragma once

#include "api/document.h"
#include "api/registry.h"
#include "api/status.h"

struct discovery;

struct discovery_options {
    struct str server_address; /* "10.0.0.5:6443", as /api shows it */
    /* Paths of the root document besides those of the API groups, such as "/healthz". */
    const struct str *paths;
    size_t n_paths;
};

/* Keeps nothing of the registry or the options. One reference, the caller's. */
struct discovery *discovery_new(const struct registry *r, const struct discovery_options *o);
struct discovery *discovery_ref(struct discovery *d);
void discovery_unref(struct discovery *d);
DEFINE_CLEANUP(struct discovery *, discovery_unref)

/* Answers what lies at q->path: "/", "/index.html", "/api", "/apis", "/api/v1", "/apis/<group>",
 * "/apis/<group>/<version>", a slash at the end allowed. -ENOENT, with st untouched: no such
 * document; other failures (406, 405) are in st. */
int discovery_get(struct arena *a, const struct discovery *d, const struct document_request *q,
                  struct document_reply *ret_reply, struct status *st);
