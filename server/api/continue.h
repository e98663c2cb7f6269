/* SPDX-License-Identifier: Apache-2.0 */
/* The continue token of a paged list: the version it shows and the key it stopped behind. Opaque to
 * clients. */
#pragma once

#include "base/arena.h"

#define CONTINUE_NEWEST (-1)

struct str continue_encode(struct arena *a, int64_t revision, struct str after);
/* -EINVAL: not one of ours. */
int continue_decode(struct arena *a, struct str token, int64_t *ret_revision,
                    struct str *ret_after);
