/* SPDX-License-Identifier: Apache-2.0 */
/* Which message an input is about. */
#pragma once

#include <stdlib.h>

#include "all_messages.h"
#include "base/str.h"

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

/* The first line names it, for people; where it does not, the first two bytes choose one. Takes
 * what chose off *input. */
static inline const ProtobufCMessageDescriptor *choose_message(struct str *input)
{
    struct str rest = *input, name = STR("");
    (void) str_split(&rest, '\n', &name);
    for (size_t i = 0; i < n_all_messages; i++) {
        if (str_is(name, all_messages[i]->name)) {
            *input = rest;
            return all_messages[i];
        }
    }
    if (input->n < 2)
        return NULL;
    size_t number = (size_t) (unsigned char) input->p[0] << 8 | (unsigned char) input->p[1];
    *input = str_from(*input, 2);
    return all_messages[number % n_all_messages];
}
