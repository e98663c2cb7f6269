/* SPDX-License-Identifier: Apache-2.0 */
/* What selectors say about labels that an index can answer, so that only few Devices need be looked
 * at. Pure functions. */
#pragma once

#include "json/json.h"

struct label_pair {
    struct str key, value; /* `name` is the name of the Device */
};

/* A Device that matches has at least one of these pairs. None: nothing matches. */
struct narrowing {
    struct label_pair *pairs;
    size_t n;
};

/* Each of them holds for every Device that matches spec; none: it may be any. In the arena. */
size_t narrowing_of(struct arena *a, const struct json *spec, struct narrowing **ret);
/* The same for Devices of which a preference holds. False: it may be any. */
bool narrowing_of_preferences(struct arena *a, const struct json *spec, struct narrowing *ret);
