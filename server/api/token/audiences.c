/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/audiences.h"

#include "api/status.h"
#include "base/buf.h"

struct audiences audiences_parse(struct arena *a, struct str text)
{
    struct str one = STR_NONE, rest = text;
    struct str *items = NULL;
    size_t n = 0;
    while (str_split(&rest, ',', &one)) {
        one = str_trim(one);
        if (!one.n)
            continue;
        items = arena_grow(a, items, n, sizeof(*items));
        items[n++] = arena_str(a, one);
    }
    return (struct audiences){items, n};
}

struct audiences audiences_copy(struct arena *a, struct audiences from)
{
    struct str *items = ARENA_ARRAY(a, struct str, from.n);
    for (size_t i = 0; i < from.n; i++)
        items[i] = arena_str(a, from.items[i]);
    return (struct audiences){items, from.n};
}

bool audiences_have(struct audiences list, struct str one)
{
    for (size_t i = 0; i < list.n; i++)
        if (str_eq(list.items[i], one))
            return true;
    return false;
}

struct audiences audiences_common(struct arena *a, struct audiences held, struct audiences wanted)
{
    struct str *items = ARENA_ARRAY(a, struct str, held.n);
    size_t n = 0;
    for (size_t i = 0; i < held.n; i++)
        if (audiences_have(wanted, held.items[i]))
            items[n++] = arena_str(a, held.items[i]);
    return (struct audiences){items, n};
}

struct str audiences_text(struct arena *a, struct audiences list)
{
    BUF_AUTO b = {0};
    buf_append_char(&b, '[');
    for (size_t i = 0; i < list.n; i++)
        buf_printf(&b, "%s%.*s", i ? " " : "", STR_ARG(status_quote(a, list.items[i])));
    buf_append_char(&b, ']');
    return arena_str(a, buf_str(&b));
}
