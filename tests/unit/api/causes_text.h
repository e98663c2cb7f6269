/* SPDX-License-Identifier: Apache-2.0 */
/* Causes as one text, for comparing: "field: message" in order, joined by " | ". */
#pragma once

#include "schema/causes.h"

static inline struct str causes_text(struct arena *a, const struct causes *causes)
{
    BUF_AUTO b = {0};
    for (const struct cause *c = causes->first; c; c = c->next) {
        if (b.n > 0)
            buf_append_str(&b, STR(" | "));
        buf_printf(&b, "%.*s: %.*s", STR_ARG(c->field), STR_ARG(c->message));
    }
    return arena_str(a, buf_str(&b));
}
