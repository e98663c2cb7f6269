/* SPDX-License-Identifier: Apache-2.0 */
#include "api/continue.h"

#include <errno.h>
#include <inttypes.h>

#include "base/base64.h"

/* "seth1 <revision> <namespace>/<name>", base64. */
static const struct str magic = {"seth1 ", 6};

struct str continue_encode(struct arena *a, int64_t revision, struct str after)
{
    struct str plain =
        arena_printf(a, "%.*s%" PRId64 " %.*s", STR_ARG(magic), revision, STR_ARG(after));
    return base64_encode(a, plain, BASE64_URL);
}

int continue_decode(struct arena *a, struct str token, int64_t *ret_revision, struct str *ret_after)
{
    struct str plain = STR_NONE;
    if (base64_decode(a, token, BASE64_URL, &plain, NULL) < 0 || !str_starts_with(plain, magic))
        return -EINVAL;
    plain = str_from(plain, magic.n);
    ptrdiff_t blank = str_find(plain, ' ');
    int64_t revision = 0;
    if (blank < 0 || str_to_i64(str_sub(plain, 0, (size_t) blank), &revision) < 0 ||
        (revision < 1 && revision != CONTINUE_NEWEST))
        return -EINVAL;
    struct str after = str_from(plain, (size_t) blank + 1);
    if (str_find(after, '/') < 0)
        return -EINVAL;
    *ret_revision = revision;
    *ret_after = after;
    return 0;
}
