/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static void stop(const char *what, struct str why)
{
    fprintf(stderr, "%s: %.*s\n", what, STR_ARG(why));
    abort();
}

struct registry *fixture_registry(void)
{
    struct str error = STR("");
    struct registry *r = registry_build(NULL, 0, 1, &error);
    if (!r)
        stop("the built-in kinds do not compile", error);
    return r;
}

struct registry *fixture_registry_with(const char *crd_json)
{
    ARENA_AUTO a = arena_new();
    const struct json *crd = fixture_json(a, crd_json);
    struct str error = STR("");
    struct registry *r = registry_build(&crd, 1, 1, &error);
    if (!r)
        stop("the definition does not compile", error);
    return r;
}

const struct kind *fixture_kind(const struct registry *r, const char *path)
{
    struct str rest = str_of(path), part[3] = {{0}};
    for (size_t i = 0; i < 3; i++)
        (void) str_split(&rest, '/', &part[i]);
    const struct kind *k =
        registry_find(r, str_is(part[0], "core") ? STR("") : part[0], part[1], part[2]);
    if (!k)
        stop("no such kind", str_of(path));
    return k;
}

struct json *fixture_json(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json *v = json_parse_quick(a, str_of(copy));
    if (!v)
        stop("bad JSON in a test", str_of(text));
    return v;
}
