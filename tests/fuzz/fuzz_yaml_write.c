/* SPDX-License-Identifier: Apache-2.0 */
/* Any JSON value, written as YAML, must read back as it was. */
#include <stdlib.h>

#include "json/yaml.h"
#include "json/yaml_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct json_parse_result r, back;
    if (json_parse(a, str_range((const char *) data, size), &r) < 0)
        return 0;
    yaml_write(&text, r.value);
    if (yaml_parse(a, buf_str(&text), &back) < 0 || !json_equal(r.value, back.value))
        abort();
    return 0;
}
