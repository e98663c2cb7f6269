/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the hooks of a kind as a write does: decode, defaults, prepare, judge. */
#pragma once

#include "api/hooks.h"
#include "api/registry.h"

struct hook_run {
    const char *kind; /* "core/v1/configmaps" */
    const char *subresource;
    const char *namespace;
    const struct json *old; /* NULL: a create */
    struct json *object;
};

/* Changes run->object; the causes as text, "field: message" joined by " | ", "" for none. */
struct str hook_run(struct arena *a, const struct registry *r, const struct hook_run *run);
