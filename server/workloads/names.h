/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what owners make. Pure functions. */
#pragma once

#include "base/arena.h"

#define NAMES_MAX_BYTES 253
#define NAMES_HASH_BYTES 11 /* with its NUL */

/* Ten characters that names and label values may have, of anything. */
void names_hash(struct str data, char out[NAMES_HASH_BYTES]);
/* The name itself; one that is too long is cut and ends in its hash. */
struct str names_fit(struct arena *a, struct str name);
