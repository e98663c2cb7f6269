/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever asks, as authentication found out. Strings belong to whoever made it. */
#pragma once

#include "base/arena.h"

#define GROUP_MASTERS "system:masters"
#define GROUP_AUTHENTICATED "system:authenticated"
#define GROUP_UNAUTHENTICATED "system:unauthenticated"
#define USER_ANONYMOUS "system:anonymous"

struct user_extra {
    struct str key; /* lower case */
    const struct str *values;
    size_t n_values;
};

struct user {
    struct str name;
    const struct str *groups;
    size_t n_groups;
    struct str uid;
    const struct user_extra *extra;
    size_t n_extra;
};

bool user_has_group(const struct user *u, struct str group);
/* A copy with everything it refers to. */
struct user user_copy(struct arena *a, const struct user *u);
