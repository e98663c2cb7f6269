/* SPDX-License-Identifier: Apache-2.0 */
#include "hook_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "../api/causes_text.h"
#include "../api/kinds_fixture.h"
#include "api/native.h"

static void ignore_warning(struct hook_context *h, struct str text)
{
    (void) h;
    (void) text;
}

struct str hook_run(struct arena *a, const struct registry *r, const struct hook_run *run)
{
    const struct kind *kind = fixture_kind(r, run->kind);
    const struct kind_hooks *hooks = kind->hooks;
    static const struct str groups[] = {STR("dev"), STR("ops")};
    static const struct user jane = {.name = STR("jane"), .groups = groups, .n_groups = 2};
    struct hook_context h = {
        .arena = a,
        .user = &jane,
        .kind = kind,
        .operation = run->old ? WRITE_UPDATE : WRITE_CREATE,
        .subresource = run->subresource ? str_of(run->subresource) : STR(""),
        .namespace = str_of(run->namespace),
        .now_us = 1000000,
        .warn = ignore_warning,
    };
    struct causes causes;
    struct str error;
    causes_init(&causes, a);
    if (kind->is_native && native_decode(a, kind, run->object, &error) < 0)
        return error;
    if (hooks->set_defaults)
        hooks->set_defaults(&h, run->object);
    if (hooks->prepare)
        hooks->prepare(&h, run->old, run->object);
    if (hooks->validate)
        hooks->validate(&h, run->object, &causes);
    if (run->old && hooks->validate_update)
        hooks->validate_update(&h, run->old, run->object, &causes);
    return causes_text(a, &causes);
}
