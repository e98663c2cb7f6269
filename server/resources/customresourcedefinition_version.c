/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a version. kube-apiserver moves what all versions have in common to the spec, in its
 * old form, and so do the paths of its errors: spec.validation, spec.subresources and so on. */
#include "resources/customresourcedefinition.h"
#include "schema/schema.h"
#include "schema/schema_path.h"
#include "json/jsonpath.h"

#define MAX_SELECTABLE_FIELDS 8
#define WARNING_MAX_BYTES 256

static bool is_empty(const struct json *v)
{
    return !v || v->type == JSON_NULL || (v->type == JSON_ARRAY && v->n == 0);
}

/* Do all versions say the same, and something. */
static bool is_shared(const struct json *spec, const char *part)
{
    const struct json *versions = json_get(spec, STR("versions"));
    const struct json *first = json_get(&versions->items[0], str_of(part));
    if (is_empty(first))
        return false;
    JSON_FOR_EACH_ITEM (versions, version) {
        const struct json *value = json_get(version, str_of(part));
        if (is_empty(value) || !json_equal(value, first))
            return false;
    }
    return true;
}

/* ---- schema ------------------------------------------------------------------------------- */

static bool is_allowed_at_root(struct str name)
{
    static const char *const allowed[] = {
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
        "nullable",
    };
    for (size_t i = 0; i < N_ELEMENTS(allowed); i++)
        if (str_is(name, allowed[i]))
            return true;
    return false;
}

/* With a status of its own, the schema of status must be found in properties. */
static void check_root(const struct json *schema, const struct field_path *at,
                       struct causes *causes)
{
    JSON_FOR_EACH_MEMBER (schema, m) {
        if (is_allowed_at_root(json_str(&m->key)))
            continue;
        causes_add(
            causes, CAUSE_INVALID, at, schema,
            "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum "
            "MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items "
            "Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are "
            "allowed "
            "at the root of the schema if the status subresource is enabled");
        return;
    }
    struct str type = json_get_str(schema, STR("type"));
    if (type.n && !str_is(type, "object"))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("type")),
                   json_get(schema, STR("type")),
                   "only \"object\" is allowed as the type at the root of the schema if the status "
                   "subresource is enabled");
}

static void check_schema(const struct json *version, const struct field_path *at_schema,
                         struct causes *causes)
{
    const struct json *schema = json_at(version, "schema", "openAPIV3Schema", NULL);
    const struct field_path at = FIELD_NAME(at_schema, STR("openAPIV3Schema"));
    if (!schema)
        return;
    if (json_at(version, "subresources", "status", NULL))
        check_root(schema, &at, causes);
    schema_check(schema, &at, causes);
}

/* ---- subresources ------------------------------------------------------------------------- */

/* False, and the cause added, when the text is no path at all. */
static bool check_simple_path(const struct json *path, const struct field_path *at,
                              struct causes *causes)
{
    struct jsonpath *compiled = NULL;
    struct str error = STR_NONE;
    if (!str_starts_with(json_str(path), STR("."))) {
        causes_add(causes, CAUSE_INVALID, at, path, "must be a simple json path starting with .");
        return false;
    }
    if (jsonpath_compile(causes->arena, json_str(path), &compiled, &error) < 0) {
        causes_add(causes, CAUSE_INVALID, at, path, "%.*s", STR_ARG(error));
        return false;
    }
    return true;
}

static void check_scale_path(const struct json *scale, const char *name, bool may_be_spec,
                             bool may_be_status, const struct field_path *at_scale,
                             struct causes *causes)
{
    const struct field_path at = FIELD_NAME(at_scale, str_of(name));
    const struct json *path = json_get(scale, at.name);
    struct str text = json_str(path);
    bool is_optional = may_be_spec && may_be_status;
    if (!text.n) {
        if (!is_optional)
            causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
        return;
    }
    if (!check_simple_path(path, &at, causes))
        return;
    if ((may_be_spec && str_starts_with(text, STR(".spec."))) ||
        (may_be_status && str_starts_with(text, STR(".status."))))
        return;
    causes_add(causes, CAUSE_INVALID, &at, path, "should be a json path under %s",
               is_optional   ? "either .spec or .status"
               : may_be_spec ? ".spec"
                             : ".status");
}

static void check_subresources(const struct json *version, const struct field_path *at,
                               struct causes *causes)
{
    const struct json *scale = json_at(version, "subresources", "scale", NULL);
    const struct field_path at_scale = FIELD_NAME(at, STR("scale"));
    if (!json_is(scale, JSON_OBJECT))
        return;
    check_scale_path(scale, "specReplicasPath", true, false, &at_scale, causes);
    check_scale_path(scale, "statusReplicasPath", false, true, &at_scale, causes);
    check_scale_path(scale, "labelSelectorPath", true, true, &at_scale, causes);
}

/* ---- columns ------------------------------------------------------------------------------ */

static bool is_one_of(struct str s, const char *words)
{
    struct str rest = str_of(words);
    for (struct str word; str_split(&rest, ',', &word);)
        if (str_eq(word, s))
            return true;
    return false;
}

static void check_column(const struct json *column, const struct field_path *at,
                         struct causes *causes)
{
    static const char types[] = "boolean,date,integer,number,string";
    static const char formats[] = "byte,date,date-time,double,float,int32,int64,password";
    const struct json *type = json_get(column, STR("type")),
                      *format = json_get(column, STR("format"));
    const struct json *path = json_get(column, STR("jsonPath"));
    const struct field_path at_path = FIELD_NAME(at, STR("JSONPath"));
    if (!json_get_str(column, STR("name")).n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, STR("name")), NULL, "%s", "");
    if (!json_str(type).n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, STR("type")), NULL, "must be one of %s",
                   types);
    else if (!is_one_of(json_str(type), types))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("type")), type, "must be one of %s",
                   types);
    if (json_str(format).n && !is_one_of(json_str(format), formats))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("format")), format,
                   "must be one of %s", formats);
    if (!json_str(path).n)
        causes_add(causes, CAUSE_REQUIRED, &at_path, NULL, "%s", "");
    else
        (void) check_simple_path(path, &at_path, causes);
}

static void check_columns(const struct json *version, const struct field_path *at,
                          struct causes *causes)
{
    const struct json *columns = json_get(version, STR("additionalPrinterColumns"));
    for (size_t i = 0; i < json_count(columns); i++) {
        const struct field_path here = FIELD_INDEX(at, (int64_t) i);
        check_column(&columns->items[i], &here, causes);
    }
}

/* ---- selectable fields -------------------------------------------------------------------- */

static void check_selectable(const struct json *schema, const struct json *path,
                             const struct field_path *at, struct causes *causes)
{
    struct str error = STR_NONE;
    const struct json *field = schema_path_find(causes->arena, schema, json_str(path),
                                                /* allow_brackets= */ false, &error);
    if (!field) {
        causes_add(causes, CAUSE_INVALID, at, path, "is an invalid path: %.*s", STR_ARG(error));
        return;
    }
    struct str text = json_str(path);
    if (str_is(text, ".metadata") || str_starts_with(text, STR(".metadata.")))
        causes_add(causes, CAUSE_INVALID, at, path, "must not point to fields in metadata");
    if (!is_one_of(json_get_str(field, STR("type")), "string,boolean,integer"))
        causes_add(causes, CAUSE_INVALID, at, path,
                   "must point to a field of type string, boolean or integer. Enum string fields "
                   "and strings "
                   "with formats are allowed.");
}

static bool is_repeated(const struct json *fields, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq(json_get_str(&fields->items[k], STR("jsonPath")),
                   json_get_str(&fields->items[i], STR("jsonPath"))))
            return true;
    return false;
}

static void check_selectable_fields(const struct json *version, const struct field_path *at,
                                    struct causes *causes)
{
    const struct json *fields = json_get(version, STR("selectableFields"));
    const struct json *schema = json_at(version, "schema", "openAPIV3Schema", NULL);
    const struct json nothing = json_string(STR(""));
    size_t n_different = 0;
    if (!json_count(fields))
        return;
    if (!schema) {
        causes_add(
            causes, CAUSE_INVALID, at, &nothing,
            "selectableFields may only be set when version.schema.openAPIV3Schema is not included");
        return;
    }
    for (size_t i = 0; i < fields->n && n_different <= MAX_SELECTABLE_FIELDS; i++) {
        const struct field_path here = FIELD_INDEX(at, (int64_t) i);
        const struct field_path at_path = FIELD_NAME(&here, STR("jsonPath"));
        const struct json *path = json_get(&fields->items[i], STR("jsonPath"));
        if (!json_str(path).n) {
            causes_add(causes, CAUSE_REQUIRED, &at_path, NULL, "%s", "");
            continue;
        }
        check_selectable(schema, path, &at_path, causes);
        if (is_repeated(fields, i))
            causes_add(causes, CAUSE_DUPLICATE, &at_path, path, "%s", "");
        else
            n_different++;
    }
    const struct json count = json_int((int64_t) n_different);
    if (n_different > MAX_SELECTABLE_FIELDS)
        causes_add(causes, CAUSE_TOO_MANY, at, &count, "must have at most %d items",
                   MAX_SELECTABLE_FIELDS);
}

/* ---- one version, and all ----------------------------------------------------------------- */

static void check_deprecation(const struct json *version, const struct field_path *at,
                              struct causes *causes)
{
    const struct field_path here = FIELD_NAME(at, STR("deprecationWarning"));
    const struct json *warning = json_get(version, STR("deprecationWarning"));
    if (!json_is(warning, JSON_STRING))
        return;
    struct str text = json_str(warning);
    if (!json_get_bool(version, STR("deprecated"), false)) {
        causes_add(causes, CAUSE_INVALID, &here, warning,
                   "can only be set for deprecated versions");
        return;
    }
    if (text.n > WARNING_MAX_BYTES)
        causes_add(causes, CAUSE_INVALID, &here, warning, "must be <= %d characters long",
                   WARNING_MAX_BYTES);
    if (!text.n)
        causes_add(causes, CAUSE_INVALID, &here, warning, "must not be an empty string");
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char) text.p[i] >= 0x20 && text.p[i] != 0x7f)
            continue;
        causes_add(causes, CAUSE_INVALID, &here, warning,
                   "must only contain printable UTF-8 characters; non-printable character found at "
                   "index %zu",
                   i);
        return;
    }
}

static const struct {
    const char *name, *shared_name;
    void (*check)(const struct json *version, const struct field_path *at, struct causes *causes);
} parts[] = {
    {"schema", "validation", check_schema},
    {"subresources", "subresources", check_subresources},
    {"additionalPrinterColumns", "additionalPrinterColumns", check_columns},
    {"selectableFields", "selectableFields", check_selectable_fields},
};

void crd_check_version(const struct json *spec, size_t i, struct causes *causes)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_versions = FIELD_NAME(&at_spec, STR("versions"));
    const struct field_path at = FIELD_INDEX(&at_versions, (int64_t) i);
    const struct json *version = &json_get(spec, STR("versions"))->items[i];
    check_deprecation(version, &at, causes);
    for (size_t k = 0; k < N_ELEMENTS(parts); k++) {
        const struct field_path here = FIELD_NAME(&at, str_of(parts[k].name));
        if (!is_shared(spec, parts[k].name))
            parts[k].check(version, &here, causes);
    }
    const struct field_path at_schema = FIELD_NAME(&at, STR("schema"));
    if (!json_at(version, "schema", "openAPIV3Schema", NULL))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&at_schema, STR("openAPIV3Schema")), NULL,
                   "%s", "");
}

void crd_check_shared(const struct json *spec, struct causes *causes)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *first = &json_get(spec, STR("versions"))->items[0];
    for (size_t k = 0; k < N_ELEMENTS(parts); k++) {
        const struct field_path here = FIELD_NAME(&at_spec, str_of(parts[k].shared_name));
        if (is_shared(spec, parts[k].name))
            parts[k].check(first, &here, causes);
    }
}
