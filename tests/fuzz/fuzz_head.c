/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a stored text, as it may come from a damaged file: what is accepted must be usable.
 */
#include <stdlib.h>

#include "api/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct object_head head = {0};
    struct str text = str_range((const char *) data, size);
    if (codec_parse_head(text, &head) < 0)
        return 0;
    ARENA_AUTO a = arena_new();
    if (json_parse_quick(a, text) && !json_parse_quick(a, codec_without_managed(a, text)))
        abort();
    CLEANUP(object_unrefp) struct object *o = object_new(text, &head);
    object_set_revision(o, 123456);
    CLEANUP(object_unrefp) struct object *last = codec_farewell(o);
    if (last)
        object_set_revision(last, 7);
    return 0;
}
