/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors, request paths, queries and continue tokens: all that a URL brings. */
#include "api/continue.h"
#include "api/request.h"
#include "api/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    struct str text = arena_str(a, str_range((const char *) data, size)), error = STR_NONE;
    struct kind kind = {0};
    struct selector s = {0};
    struct request_path path = {0};
    int64_t revision = 0;
    (void) selector_parse_labels(a, text, &s, &error);
    s = (struct selector){0};
    (void) selector_parse_fields(a, text, &kind, &s, &error);
    (void) request_parse_query(a, text);
    struct str decoded = STR_NONE;
    if (request_decode_path(a, text, &decoded) == 0)
        request_parse_path(decoded, &path);
    (void) continue_decode(a, text, &revision, &decoded);
    return 0;
}
