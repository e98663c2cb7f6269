/* SPDX-License-Identifier: Apache-2.0 */
/* What YAML gives must be a value that JSON text can carry. */
#include <stdlib.h>

#include "json/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct json_parse_result r, again;
    if (yaml_parse(a, str_range((const char *) data, size), &r) < 0) {
        require(r.error.n > 0 && !r.value && r.error_at <= size);
        return 0;
    }
    json_write(&text, r.value);
    require(json_parse(a, buf_str(&text), &again) == 0 && !again.duplicates);
    require(json_equal(r.value, again.value));
    return 0;
}
