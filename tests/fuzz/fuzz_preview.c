/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent to preview and provenance: objects in a body, a path, and configurations that
 * anybody may have written. The difference of two makes the one of the other. */
#include <stdlib.h>

#include "preview/difference.h"
#include "preview/manifest.h"
#include "preview/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
    "\"map\",\"x-kubernetes-list-map-keys\":[\"k\",\"a\"],\"items\":{\"type\":\"object\","
    "\"properties\":{\"k\":{\"type\":\"string\",\"default\":\"\"},\"a\":{\"type\":\"string\"},"
    "\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["
    "\"k\"],\"items\":{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"}}}}}}},"
    "\"o\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}";

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Empty lists are none, as in protobuf; nor is a member that is null. */
static void drop_empty(struct json *v)
{
    for (size_t i = v->type == JSON_OBJECT ? v->n : 0; i-- > 0;) {
        struct json_member *m = &v->members[i];
        drop_empty(&m->value);
        if (m->value.type == JSON_ARRAY && !m->value.n)
            (void) json_remove(v, json_str(&m->key));
    }
    JSON_FOR_EACH_ITEM (v, item)
        drop_empty(item);
}

/* Names with what separates steps stand for themselves in no place. */
static bool has_plain_names(const struct json *v)
{
    JSON_FOR_EACH_MEMBER (v, m) {
        const struct str name = json_str(&m->key);
        if (!name.n || str_find(name, '.') >= 0 || str_find(name, '[') >= 0 ||
            str_find(name, '"') >= 0 || !has_plain_names(&m->value))
            return false;
    }
    JSON_FOR_EACH_ITEM (v, item)
        if (!has_plain_names(item))
            return false;
    return true;
}

static void compare(struct arena *a, const struct schema *schema, struct str one, struct str two)
{
    struct json *old = json_parse_quick(a, one), *new = json_parse_quick(a, two);
    if (!old || !new || old->type != JSON_OBJECT || new->type != JSON_OBJECT)
        return;
    drop_empty(old);
    drop_empty(new);
    const struct difference d = difference_make(a, schema, old, new);
    require((d.n == 0) == json_equal(old, new));
    const struct json made = difference_apply(a, schema, old, &d);
    require(json_equal(&made, new) || !has_plain_names(old) || !has_plain_names(new));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO a = arena_new();
    const struct schema *schema = NULL;
    struct str error = STR_NONE, one, two = str_range((const char *) data, size);
    require(schema_compile(a, json_parse_quick(a, str_of(schema_text)), &schema, &error) == 0);
    if (!str_split(&two, '\n', &one))
        return 0;
    two = two.p ? two : STR("");
    compare(a, schema, one, two);

    struct manifest *m = ARENA_NEW(a, struct manifest);
    struct status st;
    status_init(&st, a);
    require(manifest_read(a, two, m, &st) < 0 ? st.code != 0 : m->n > 0);

    const struct json *value = json_parse_quick(a, two);
    const struct str place = place_of_path(a, schema, value, one);
    require(place_is_within(place, place_first(place)));
    (void) place_value(a, schema, value, place);
    return 0;
}
