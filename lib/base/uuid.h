/* SPDX-License-Identifier: Apache-2.0 */
/* A UUID as 16 bytes, for keys and files, and its text. */
#pragma once

#include "base/random.h"
#include "base/str.h"

struct uuid {
    unsigned char bytes[16];
};

/* The form with hyphens in either case; -EINVAL otherwise. */
int uuid_parse(struct str text, struct uuid *ret);
/* Lower case, with its NUL. */
void uuid_text(const struct uuid *u, char out[UUID_TEXT_BYTES]);
bool uuid_is_zero(const struct uuid *u);
static inline bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
