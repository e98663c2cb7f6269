/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a kind that uses most of what a schema can say, and helpers that compare causes as
 * text. */
#pragma once

#include <stdlib.h>

#include "schema/schema.h"

static const char device_schema[] =
    "{\"type\":\"object\",\"required\":[\"spec\"],\"properties\":{\"spec\":{\"type\":\"object\""
    ",\"required\":[\"serial\"],\"properties\":{\"serial\":{\"type\":\"string\""
    ",\"pattern\":\"^[A-Z0-9-]+$\",\"minLength\":2,\"maxLength\":12},\"mode\":{\"type\":\"string\""
    ",\"enum\":[\"active\",\"passive\",\"off\"],\"default\":\"active\"},\"cpus\":{\"type\":"
    "\"integer\""
    ",\"format\":\"int32\",\"minimum\":1,\"maximum\":64},\"ratio\":{\"type\":\"number\","
    "\"minimum\":0"
    ",\"exclusiveMinimum\":true,\"maximum\":1,\"multipleOf\":0.25},\"replicas\":{\"type\":"
    "\"integer\""
    ",\"default\":1},\"note\":{\"type\":\"string\",\"nullable\":true}"
    ",\"port\":{\"x-kubernetes-int-or-string\":true},\"when\":{\"type\":\"string\""
    ",\"format\":\"date-time\"},\"blob\":{\"type\":\"string\",\"format\":\"byte\"}"
    ",\"enabled\":{\"type\":\"boolean\",\"default\":true},\"free\":{\"type\":\"object\""
    ",\"x-kubernetes-preserve-unknown-fields\":true},\"labels\":{\"type\":\"object\""
    ",\"additionalProperties\":{\"type\":\"string\"},\"maxProperties\":3,\"minProperties\":1}"
    ",\"tags\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
    "\"string\"}"
    ",\"maxItems\":4},\"ports\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\""
    ",\"x-kubernetes-list-map-keys\":[\"name\"],\"items\":{\"type\":\"object\",\"required\":["
    "\"name\"]"
    ",\"properties\":{\"name\":{\"type\":\"string\"},\"addr\":{\"type\":\"string\"}"
    ",\"mtu\":{\"type\":\"integer\",\"default\":1500}}}},\"order\":{\"type\":\"array\""
    ",\"x-kubernetes-list-type\":\"atomic\",\"minItems\":1,\"items\":{\"type\":\"string\"}}"
    ",\"unique\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},\"nested\":{\"type\":"
    "\"object\""
    ",\"properties\":{\"a\":{\"type\":\"object\",\"default\":{},\"properties\":{\"b\":{\"type\":"
    "\"string\""
    ",\"default\":\"deep\"}}}}},\"template\":{\"type\":\"object\""
    ",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}"
    ",\"choice\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"},\"y\":{\"type\":"
    "\"string\"}}"
    ",\"oneOf\":[{\"required\":[\"x\"]},{\"required\":[\"y\"]}]}}},\"status\":{\"type\":\"object\""
    ",\"properties\":{\"replicas\":{\"type\":\"integer\"},\"selector\":{\"type\":\"string\"}"
    ",\"phase\":{\"type\":\"string\",\"enum\":[\"Up\",\"Down\"]},\"seen\":{\"type\":\"string\""
    ",\"format\":\"date-time\"},\"conditions\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
    "\"map\""
    ",\"x-kubernetes-list-map-keys\":[\"type\"],\"items\":{\"type\":\"object\",\"required\":["
    "\"type\""
    ",\"status\"],\"properties\":{\"type\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"}}}"
    "}}}}}";

static inline const struct schema *compile_text(struct arena *a, const char *text)
{
    const struct json *source = json_parse_quick(a, str_of(text));
    assert_non_null(source);
    const struct schema *schema = NULL;
    struct str error = STR_NONE;
    if (schema_compile(a, source, &schema, &error) < 0)
        fail_msg("%.*s", STR_ARG(error));
    return schema;
}

static inline struct json *parse_text(struct arena *a, const char *text)
{
    struct json *v = json_parse_quick(a, str_of(text));
    if (!v)
        fail_msg("no JSON: %s", text);
    return v;
}

static inline int compare_lines(const void *a, const void *b)
{
    return str_cmp(*(const struct str *) a, *(const struct str *) b);
}

/* Sorted lines "reason|field|message": the order of causes means nothing. */
static inline struct str causes_text(struct arena *a, const struct causes *c)
{
    struct str *lines = ARENA_ARRAY(a, struct str, c->n + 1);
    size_t n = 0;
    for (const struct cause *x = c->first; x; x = x->next)
        lines[n++] = arena_printf(a, "%.*s|%.*s|%.*s", STR_ARG(cause_reason(x->type)),
                                  STR_ARG(x->field), STR_ARG(x->message));
    qsort(lines, n, sizeof(*lines), compare_lines);
    BUF_AUTO b = {0};
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%.*s", i ? "\n" : "", STR_ARG(lines[i]));
    return arena_str(a, buf_str(&b));
}

static inline struct str validate_text(struct arena *a, const struct schema *s, const char *value,
                                       const char *old_value)
{
    struct causes c;
    causes_init(&c, a);
    schema_validate(s, parse_text(a, value), old_value ? parse_text(a, old_value) : NULL, NULL, &c);
    return causes_text(a, &c);
}

/* As the server does it: defaults and pruning first. */
static inline struct str admit_text(struct arena *a, const struct schema *s, const char *value)
{
    struct json *v = parse_text(a, value);
    schema_default(a, s, v);
    schema_prune(a, s, v, NULL);
    struct causes c;
    causes_init(&c, a);
    schema_validate(s, v, NULL, NULL, &c);
    return causes_text(a, &c);
}
