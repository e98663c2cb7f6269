/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a path, the rest the document it is evaluated on. */
#include <stdlib.h>

#include "json/jsonpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool touch(void *ctx, const struct json *value)
{
    json_write(ctx, value);
    return ((struct buf *) ctx)->n < 100000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct str rest = str_range((const char *) data, size), line = STR(""), error = STR_NONE;
    (void) str_split(&rest, '\n', &line);
    struct jsonpath *path = NULL;
    if (jsonpath_compile(a, line, &path, &error) < 0) {
        if (!error.n || path)
            abort();
        return 0;
    }
    const struct json *v = json_parse_quick(a, rest);
    if (!v)
        return 0;
    jsonpath_eval(path, v, touch, &text);
    const struct json *first = jsonpath_first(path, v);
    if ((first != NULL) != (text.n > 0))
        abort();
    return 0;
}
