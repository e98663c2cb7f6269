/* SPDX-License-Identifier: Apache-2.0 */
#include "api/user.h"

#include "base/alloc.h"

bool user_has_group(const struct user *u, struct str group)
{
    for (size_t i = 0; i < u->n_groups; i++)
        if (str_eq(u->groups[i], group))
            return true;
    return false;
}

static const struct str *copy_strings(struct arena *a, const struct str *from, size_t n)
{
    struct str *to = ARENA_ARRAY(a, struct str, n);
    for (size_t i = 0; i < n; i++)
        to[i] = arena_str(a, from[i]);
    return to;
}

struct user user_copy(struct arena *a, const struct user *u)
{
    struct user_extra *extra = ARENA_ARRAY(a, struct user_extra, u->n_extra);
    for (size_t i = 0; i < u->n_extra; i++)
        extra[i] = (struct user_extra){arena_str(a, u->extra[i].key),
                                       copy_strings(a, u->extra[i].values, u->extra[i].n_values),
                                       u->extra[i].n_values};
    return (struct user){.name = arena_str(a, u->name),
                         .groups = copy_strings(a, u->groups, u->n_groups),
                         .n_groups = u->n_groups,
                         .uid = arena_str(a, u->uid),
                         .extra = extra,
                         .n_extra = u->n_extra};
}
