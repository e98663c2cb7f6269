/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a token is meant for. */
#pragma once

#include "base/arena.h"

struct audiences {
    const struct str *items;
    size_t n;
};

/* The members of a comma-separated list, without blanks around them; copied. */
struct audiences audiences_parse(struct arena *a, struct str text);
struct audiences audiences_copy(struct arena *a, struct audiences from);
bool audiences_have(struct audiences list, struct str one);
/* Those of `wanted` that `held` has too, in the order of `held`. */
struct audiences audiences_common(struct arena *a, struct audiences held, struct audiences wanted);
/* ["a" "b"], as Go prints a list of strings quoted. */
struct str audiences_text(struct arena *a, struct audiences list);
