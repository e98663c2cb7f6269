/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses (see flags below), then a line with the old object, empty for none, then
 * the new object or the configuration. */
#include <stdlib.h>

#include "schema/fieldset.h"
#include "schema/managed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IS_APPLY = 1, HAS_SCHEMA = 2, IS_FORCED = 4, IS_STATUS = 8, IS_KUBECTL = 16 };

static const char device[] =
    "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"serial\":"
    "{\"type\":\"string\"},"
    "\"labels\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},\"tags\":{"
    "\"type\":\"array\","
    "\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\"}},\"ports\":{\"type\":"
    "\"array\","
    "\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"port\",\"name\"],"
    "\"items\":{\"type\":\"object\","
    "\"properties\":{\"port\":{\"type\":\"integer\",\"default\":1},\"name\":{\"type\":\"string\"},"
    "\"more\":{\"type\":\"object\","
    "\"x-kubernetes-preserve-unknown-fields\":true}}}},\"order\":{\"type\":\"array\",\"items\":{"
    "\"type\":\"string\"}},"
    "\"free\":{\"x-kubernetes-preserve-unknown-fields\":true},\"template\":{\"type\":\"object\","
    "\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}}},"
    "\"status\":{\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\",\"x-kubernetes-preserve-"
    "unknown-fields\":true}}}";

/* What is stored is FieldsV1 in its one spelling. */
static void check_managed(struct arena *a, const struct json *object)
{
    JSON_FOR_EACH_ITEM (json_at(object, "metadata", "managedFields", NULL), entry) {
        struct fieldset *set = NULL;
        const struct json *fields = json_get(entry, STR("fieldsV1"));
        if (!fields || fieldset_from_json(a, fields, &set) < 0 || fieldset_is_empty(set))
            abort();
        struct json again = fieldset_to_json(a, set);
        if (!str_eq(json_text(a, &again), json_text(a, fields)))
            abort();
    }
    if (!json_parse_quick(a, json_text(a, object)))
        abort();
}

static void run_apply(struct arena *a, const struct json *old, const struct json *config,
                      bool force, const struct managed_options *options)
{
    struct json *first = NULL, *second = NULL;
    struct managed_conflict *conflicts = NULL;
    struct str error = STR_NONE;
    BUF_AUTO text = {0};
    int r = managed_apply(a, old, config, force, options, &first, &conflicts, &error);
    if (conflicts)
        managed_conflicts_text(a, conflicts, &text);
    if (r < 0 && !error.n && !text.n)
        abort();
    if (r < 0)
        return;
    check_managed(a, first);
    if (managed_apply(a, first, config, false, options, &second, &conflicts, &error) < 0 ||
        !json_equal(first, second))
        abort();
}

/* As the server reads it: a repeated key counts once. */
static struct json *parse(struct arena *a, struct str text)
{
    struct json_parse_result parsed = {0};
    return json_parse(a, text, &parsed) < 0 ? NULL : parsed.value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const status[] = {"status", NULL};
    if (size < 2)
        return 0;
    ARENA_AUTO a = arena_new();
    unsigned flags = data[0];
    struct str rest = str_range((const char *) data + 1, size - 1), line = STR(""), why;
    (void) str_split(&rest, '\n', &line);
    struct json *old = parse(a, line), *object = parse(a, rest);
    if (!json_is(object, JSON_OBJECT) || (line.n && !json_is(old, JSON_OBJECT)))
        return 0;
    struct managed_options options = {
        .manager = flags & IS_KUBECTL ? STR("kubectl") : STR("m"),
        .subresource = flags & IS_STATUS ? STR("status") : STR(""),
        .api_version = STR("v1"),
        .time = STR("2026-01-02T03:04:05Z"),
        .reset_fields = flags & IS_STATUS ? NULL : status,
        .only_status = flags & IS_STATUS,
    };
    if (flags & HAS_SCHEMA &&
        schema_compile(a, json_parse_quick(a, str_of(device)), &options.schema, &why) < 0)
        abort();
    /* What is stored went through an update or apply before. */
    if (old)
        managed_update(a, NULL, old, &options);
    struct json before = json_clone(a, old ? old : object);
    if (flags & IS_APPLY) {
        run_apply(a, old, object, flags & IS_FORCED, &options);
    } else {
        managed_update(a, old, object, &options);
        check_managed(a, object);
    }
    if (old && !json_equal(old, &before))
        abort();
    return 0;
}
