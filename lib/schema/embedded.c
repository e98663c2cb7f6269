/* SPDX-License-Identifier: Apache-2.0 */
/* Resources within resources: their apiVersion, kind and metadata, as kube-apiserver checks them.
 */
#include <ctype.h>

#include "schema/schema_internal.h"

#define LABEL_MAX_BYTES 63

/* ---- kind and apiVersion ------------------------------------------------------------------ */

static bool is_label_1035(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = (char) tolower((unsigned char) s.p[i]);
        bool is_letter = c >= 'a' && c <= 'z', is_digit = c >= '0' && c <= '9';
        bool is_edge = i + 1 == s.n;
        if (!is_letter && !(i > 0 && is_digit) && !(i > 0 && !is_edge && c == '-'))
            return false;
    }
    return s.n > 0;
}

static void check_kind(const struct json *kind, const struct field_path *at, struct causes *causes)
{
    struct field_path here = FIELD_NAME(at, STR("kind"));
    if (!json_is(kind, JSON_STRING))
        causes_add(causes, CAUSE_INVALID, &here, kind, "must be a string");
    else if (kind->n == 0)
        causes_add(causes, CAUSE_INVALID, &here, kind, "must not be empty");
    else if (kind->n > LABEL_MAX_BYTES)
        causes_add(causes, CAUSE_INVALID, &here, kind,
                   "may have mixed case, but should otherwise match: must be no more than %d bytes",
                   LABEL_MAX_BYTES);
    else if (!is_label_1035(json_str(kind)))
        causes_add(
            causes, CAUSE_INVALID, &here, kind,
            "may have mixed case, but should otherwise match: a DNS-1035 label must consist of "
            "lower "
            "case alphanumeric characters or '-', start with an alphabetic character, and end with "
            "an "
            "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            "'[a-z]([-a-z0-9]*[a-z0-9])?')");
}

static void check_api_version(const struct json *version, const struct field_path *at,
                              struct causes *causes)
{
    struct field_path here = FIELD_NAME(at, STR("apiVersion"));
    if (!json_is(version, JSON_STRING)) {
        causes_add(causes, CAUSE_INVALID, &here, version, "must be a string");
        return;
    }
    struct str text = json_str(version);
    if (!text.n)
        causes_add(causes, CAUSE_INVALID, &here, version, "must not be empty");
    else if (str_find(text, '/') != str_find_last(text, '/'))
        causes_add(causes, CAUSE_INVALID, &here, version, "unexpected GroupVersion string: %.*s",
                   STR_ARG(text));
}

/* ---- metadata ----------------------------------------------------------------------------- */

static const char *go_type(const struct schema *s)
{
    switch (s->type) {
    case SCHEMA_STRING:
        return s->format.n ? "v1.Time" : "string";
    case SCHEMA_INTEGER:
        return "int64";
    case SCHEMA_BOOLEAN:
        return "bool";
    case SCHEMA_ARRAY:
        return s->items->type == SCHEMA_STRING ? "[]string" : "[]v1.OwnerReference";
    default:
        return s->additional_properties ? "map[string]string" : "v1.ObjectMeta";
    }
}

static bool has_type(const struct schema *s, const struct json *value)
{
    switch (s->type) {
    case SCHEMA_STRING:
        return value->type == JSON_STRING;
    case SCHEMA_INTEGER:
        return value->type == JSON_INT;
    case SCHEMA_BOOLEAN:
        return value->type == JSON_BOOL;
    case SCHEMA_ARRAY:
        return value->type == JSON_ARRAY;
    default:
        return value->type == JSON_OBJECT;
    }
}

static struct str mismatch(struct arena *a, const struct schema *s, const struct json *value,
                           const struct field_path *at)
{
    if (!s || value->type == JSON_NULL)
        return STR_NONE;
    if (!has_type(s, value)) {
        struct str got = value->type == JSON_BOOL     ? STR("bool")
                         : value->type == JSON_INT    ? STR("number")
                         : value->type == JSON_DOUBLE ? STR("number")
                                                      : schema_type_name(value);
        struct str path = schema_path_text(a, at);
        return arena_printf(a, "json: cannot unmarshal %.*s into Go %s%.*s of type %s",
                            STR_ARG(got), path.n ? "struct field ObjectMeta." : "value",
                            STR_ARG(path), go_type(s));
    }
    struct str error = STR_NONE;
    JSON_FOR_EACH_MEMBER (value, m) {
        const struct schema *property = schema_property(s, json_str(&m->key));
        struct field_path here = FIELD_NAME(at, json_str(&m->key));
        error = mismatch(a, property ? property : s->additional_properties, &m->value,
                         property ? &here : at);
        if (error.p)
            return error;
    }
    JSON_FOR_EACH_ITEM (value, item) {
        error = mismatch(a, s->items, item, at);
        if (error.p)
            return error;
    }
    return STR_NONE;
}

struct str schema_metadata_error(struct arena *a, const struct json *metadata)
{
    return mismatch(a, schema_object_meta(), metadata, NULL);
}

static void check_metadata(const struct json *metadata, const struct field_path *at,
                           struct causes *causes)
{
    struct field_path here = FIELD_NAME(at, STR("metadata"));
    struct str error = schema_metadata_error(causes->arena, metadata);
    if (error.p) {
        causes_add(causes, CAUSE_INVALID, &here, metadata, "%.*s", STR_ARG(error));
        return;
    }
    const struct json *name = json_get(metadata, STR("name"));
    struct field_path name_at = FIELD_NAME(&here, STR("name"));
    struct str text = json_str(name);
    if (str_is(text, ".") || str_is(text, ".."))
        causes_add(causes, CAUSE_INVALID, &name_at, name, "may not be '%.*s'", STR_ARG(text));
    if (str_find(text, '/') >= 0)
        causes_add(causes, CAUSE_INVALID, &name_at, name, "may not contain '/'");
    if (str_find(text, '%') >= 0)
        causes_add(causes, CAUSE_INVALID, &name_at, name, "may not contain '%%'");
}

/* ---- the walk ----------------------------------------------------------------------------- */

static void check_resource(const struct json *value, const struct field_path *at,
                           struct causes *causes)
{
    static const char *const needed[] = {"apiVersion", "kind"};
    for (size_t i = 0; i < N_ELEMENTS(needed); i++) {
        struct field_path here = FIELD_NAME(at, str_of(needed[i]));
        if (!json_get(value, here.name))
            causes_add(causes, CAUSE_REQUIRED, &here, NULL, "%s", "");
    }
    JSON_FOR_EACH_MEMBER (value, m) {
        struct str name = json_str(&m->key);
        if (str_is(name, "apiVersion"))
            check_api_version(&m->value, at, causes);
        else if (str_is(name, "kind"))
            check_kind(&m->value, at, causes);
        else if (str_is(name, "metadata"))
            check_metadata(&m->value, at, causes);
    }
}

void schema_check_embedded(const struct schema *schema, const struct json *value, bool is_resource,
                           const struct field_path *at, struct causes *causes)
{
    if (!schema || (!is_resource && !schema->rules->has_embedded))
        return;
    if (value->type == JSON_OBJECT && (is_resource || schema->embedded_resource))
        check_resource(value, at, causes);
    JSON_FOR_EACH_MEMBER (value, m) {
        if (!json_count(&m->value))
            continue;
        struct str name = json_str(&m->key);
        const struct schema *property = schema_property(schema, name);
        struct field_path here = property ? FIELD_NAME(at, name) : FIELD_KEY(at, name);
        schema_check_embedded(property ? property : schema->additional_properties, &m->value, false,
                              &here, causes);
    }
    for (size_t i = 0; schema->items && value->type == JSON_ARRAY && i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        schema_check_embedded(schema->items, &value->items[i], false, &here, causes);
    }
}

/* Finds the first embedded resource with unreadable metadata. */
static struct str malformed(struct arena *a, const struct schema *s, const struct json *value,
                            const struct field_path *at)
{
    if (!s || !s->rules->has_embedded)
        return STR_NONE;
    const struct json *metadata = s->embedded_resource ? json_get(value, STR("metadata")) : NULL;
    struct str error = metadata ? schema_metadata_error(a, metadata) : STR_NONE;
    if (error.p) {
        BUF_AUTO text = {0};
        causes_write_json(a, &text, metadata, CAUSE_VALUE_MAX_BYTES);
        struct field_path here = FIELD_NAME(at, STR("metadata"));
        return arena_printf(a, "%.*s: Invalid value: %.*s: %.*s",
                            STR_ARG(field_path_text(a, &here)), STR_ARG(buf_str(&text)),
                            STR_ARG(error));
    }
    JSON_FOR_EACH_MEMBER (value, m) {
        if (!json_count(&m->value))
            continue;
        struct str name = json_str(&m->key);
        const struct schema *property = schema_property(s, name);
        struct field_path here = property ? FIELD_NAME(at, name) : FIELD_KEY(at, name);
        error = malformed(a, property ? property : s->additional_properties, &m->value, &here);
        if (error.p)
            return error;
    }
    for (size_t i = 0; value->type == JSON_ARRAY && i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        error = malformed(a, s->items, &value->items[i], &here);
        if (error.p)
            return error;
    }
    return STR_NONE;
}

struct str schema_malformed(struct arena *a, const struct schema *schema, const struct json *value)
{
    return malformed(a, schema, value, NULL);
}
