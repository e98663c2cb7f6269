/* SPDX-License-Identifier: Apache-2.0 */
/* What parses must write, and parse again to an equal value; what does not must say why. */
#include <stdlib.h>

#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_text(struct arena *a, const struct json *v, struct str text)
{
    struct json_parse_result r;
    require(json_parse(a, text, &r) == 0 && !r.duplicates);
    require(json_equal(v, r.value) && json_equal(r.value, v));
    const struct json *quick = json_parse_quick(a, text);
    require(quick && json_equal(v, quick));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO compact = {0};
    BUF_AUTO pretty = {0};
    struct json_parse_result r;
    if (json_parse(a, str_range((const char *) data, size), &r) < 0) {
        require(r.error.n > 0 && !r.value && r.error_at <= size);
        return 0;
    }
    json_write(&compact, r.value);
    check_text(a, r.value, buf_str(&compact));
    json_write_pretty(&pretty, r.value);
    check_text(a, r.value, buf_str(&pretty));
    struct json copy = json_clone(a, r.value);
    require(json_equal(&copy, r.value));
    return 0;
}
