/* SPDX-License-Identifier: Apache-2.0 */
/* A regular expression, a line break, a text to match. */
#include <stdint.h>
#include <stdlib.h>

#include "schema/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = str_range((const char *) data, size);
    ptrdiff_t end = str_find(input, '\n');
    struct str text = end < 0 ? STR("") : str_from(input, (size_t) end + 1);
    struct str pattern = end < 0 ? input : str_sub(input, 0, (size_t) end);
    if (!str_is_utf8(input))
        return 0;
    ARENA_AUTO a = arena_new();
    const struct pattern *compiled = NULL;
    struct str error = STR_NONE;
    if (pattern_compile(a, pattern, /* is_fast= */ true, &compiled, &error) < 0) {
        if (!error.n)
            abort();
        return 0;
    }
    struct pattern_matcher m = {0};
    bool first = pattern_matches(&m, compiled, text);
    if (pattern_matches(&m, compiled, text) != first)
        abort();
    pattern_matcher_done(&m);
    return 0;
}
