/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "api/names.h"
#include "base/buf.h"
#include "resources/customresourcedefinition.h"
#include "schema/causes.h"
#include "json/fieldpath.h"

/* All that is wrong with a name as one cause, after `prefix`. */
static void add_errors(struct causes *causes, const struct field_path *at, const struct json *value,
                       const char *prefix, const struct name_errors *errors)
{
    if (!errors->n)
        return;
    BUF_AUTO text = {0};
    for (size_t i = 0; i < errors->n; i++)
        buf_printf(&text, "%s%.*s", i ? "," : "", STR_ARG(errors->text[i]));
    causes_add(causes, CAUSE_INVALID, at, value, "%s%.*s", prefix, STR_ARG(buf_str(&text)));
}

static void check_label(struct causes *causes, const struct field_path *at,
                        const struct json *value)
{
    const struct name_errors errors = name_label_1035(causes->arena, json_str(value));
    add_errors(causes, at, value, "", &errors);
}

/* ---- names -------------------------------------------------------------------------------- */

static void check_mixed_case(struct causes *causes, const struct field_path *at,
                             const struct json *value)
{
    char *lower = arena_strz(causes->arena, json_str(value));
    for (char *c = lower; *c; c++)
        *c = (char) tolower((unsigned char) *c);
    const struct name_errors errors = name_label_1035(causes->arena, str_range(lower, value->n));
    add_errors(causes, at, value, "may have mixed case, but should otherwise match: ", &errors);
}

static void check_labels(struct causes *causes, const struct field_path *at,
                         const struct json *list)
{
    for (size_t i = 0; i < json_count(list); i++) {
        const struct field_path here = FIELD_INDEX(at, (int64_t) i);
        check_label(causes, &here, &list->items[i]);
    }
}

void crd_check_names(const struct json *names, bool is_spec, const struct field_path *at,
                     struct causes *causes)
{
    static const struct {
        const char *name;
        bool is_mixed_case;
    } singles[] = {{"plural", false}, {"singular", false}, {"kind", true}, {"listKind", true}};
    for (size_t i = 0; i < N_ELEMENTS(singles); i++) {
        const struct field_path here = FIELD_NAME(at, str_of(singles[i].name));
        const struct json *value = json_get(names, here.name);
        if (!json_str(value).n && is_spec)
            causes_add(causes, CAUSE_REQUIRED, &here, NULL, "%s", "");
        else if (json_str(value).n && singles[i].is_mixed_case)
            check_mixed_case(causes, &here, value);
        else if (json_str(value).n)
            check_label(causes, &here, value);
    }
    check_labels(causes, &FIELD_NAME(at, STR("shortNames")), json_get(names, STR("shortNames")));
    check_labels(causes, &FIELD_NAME(at, STR("categories")), json_get(names, STR("categories")));
    struct str kind = json_get_str(names, STR("kind"));
    if (kind.n && str_eq(kind, json_get_str(names, STR("listKind"))))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("listKind")),
                   json_get(names, STR("listKind")), "kind and listKind may not be the same");
}

/* ---- group and scope ---------------------------------------------------------------------- */

static void check_group(const struct json *spec, const struct field_path *at_spec,
                        struct causes *causes)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("group"));
    const struct json *group = json_get(spec, STR("group"));
    if (!json_str(group).n) {
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
        return;
    }
    const struct name_errors errors = name_subdomain(causes->arena, json_str(group));
    add_errors(causes, &at, group, "", &errors);
    if (!errors.n && str_find(json_str(group), '.') < 0)
        causes_add(causes, CAUSE_INVALID, &at, group, "should be a domain with at least one dot");
}

static void check_scope(const struct json *spec, const struct field_path *at_spec,
                        struct causes *causes)
{
    static const struct str scopes[] = {{"Cluster", 7}, {"Namespaced", 10}};
    const struct field_path at = FIELD_NAME(at_spec, STR("scope"));
    struct str scope = json_get_str(spec, STR("scope"));
    if (!scope.n)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
    else if (!str_eq(scope, scopes[0]) && !str_eq(scope, scopes[1]))
        causes_add_not_supported(causes, &at, json_get(spec, STR("scope")), scopes,
                                 N_ELEMENTS(scopes));
}

/* ---- versions ----------------------------------------------------------------------------- */

/* The list as kube-apiserver's internal form of it prints; what every version says is not shown
 * there. */
static void add_versions(const struct json *versions, const char *why, struct causes *causes)
{
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    BUF_AUTO text = {0};
    buf_append_str(&text, json_is(versions, JSON_ARRAY) ? STR("[") : STR("null"));
    JSON_FOR_EACH_ITEM (versions, version) {
        const struct json *name = json_get(version, STR("name"));
        const struct json *warning = json_get(version, STR("deprecationWarning"));
        buf_append_str(&text, version == versions->items ? STR("{\"Name\":") : STR(",{\"Name\":"));
        json_write_str(&text, name ? json_str(name) : STR(""));
        buf_printf(&text, ",\"Served\":%s,\"Storage\":%s,\"Deprecated\":%s,\"DeprecationWarning\":",
                   json_get_bool(version, STR("served"), false) ? "true" : "false",
                   json_get_bool(version, STR("storage"), false) ? "true" : "false",
                   json_get_bool(version, STR("deprecated"), false) ? "true" : "false");
        if (json_str(warning).p)
            json_write_str(&text, json_str(warning));
        else
            buf_append_str(&text, STR("null"));
        buf_append_str(
            &text, STR(",\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,"
                       "\"SelectableFields\":null}"));
    }
    if (json_is(versions, JSON_ARRAY))
        buf_append_char(&text, ']');
    causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at_spec, STR("versions")), NULL, "%.*s: %s",
               STR_ARG(str_sub(buf_str(&text), 0, CAUSE_VALUE_MAX_BYTES)), why);
}

static bool has_twins(const struct json *versions)
{
    for (size_t i = 1; i < json_count(versions); i++)
        for (size_t k = 0; k < i; k++)
            if (str_eq(json_get_str(&versions->items[i], STR("name")),
                       json_get_str(&versions->items[k], STR("name"))))
                return true;
    return false;
}

static void check_version_names(const struct json *versions, const struct field_path *at_spec,
                                struct causes *causes)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("versions"));
    const struct json none = json_string(STR(""));
    for (size_t i = 0; i < json_count(versions); i++) {
        const struct field_path here = FIELD_INDEX(&at, (int64_t) i);
        const struct json *name = json_get(&versions->items[i], STR("name"));
        name = name ? name : &none;
        check_label(causes, &FIELD_NAME(&here, STR("name")), name);
        /* The first one is also what the field of old manifests would hold. */
        if (i == 0 && json_str(name).n)
            check_label(causes, &FIELD_NAME(at_spec, STR("version")), name);
    }
}

static void check_versions(const struct json *spec, const struct field_path *at_spec,
                           struct causes *causes)
{
    const struct json *versions = json_get(spec, STR("versions"));
    size_t n_stored = 0;
    JSON_FOR_EACH_ITEM (versions, version)
        n_stored += json_get_bool(version, STR("storage"), false);
    if (json_count(versions) > CRD_MAX_VERSIONS) {
        const struct json count = json_int((int64_t) versions->n);
        causes_add(causes, CAUSE_TOO_MANY, &FIELD_NAME(at_spec, STR("versions")), &count,
                   "must have at most %d items", CRD_MAX_VERSIONS);
        return;
    }
    check_version_names(versions, at_spec, causes);
    if (has_twins(versions))
        add_versions(versions, "must contain unique version names", causes);
    if (n_stored != 1)
        add_versions(versions, "must have exactly one version marked as storage version", causes);
    for (size_t i = 0; i < json_count(versions); i++)
        crd_check_version(spec, i, causes);
    if (json_count(versions))
        crd_check_shared(spec, causes);
}

/* ---- the rest ----------------------------------------------------------------------------- */

static void check_conversion(const struct json *spec, const struct field_path *at_spec,
                             struct causes *causes)
{
    static const struct str strategies[] = {{"None", 4}};
    const struct field_path at = FIELD_NAME(at_spec, STR("conversion"));
    const struct json *conversion = json_get(spec, STR("conversion"));
    const struct json *strategy = json_get(conversion, STR("strategy"));
    if (!conversion)
        return;
    if (!json_str(strategy).n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&at, STR("strategy")), NULL, "%s", "");
    else if (!str_eq(json_str(strategy), strategies[0]))
        causes_add_not_supported(causes, &FIELD_NAME(&at, STR("strategy")), strategy, strategies,
                                 N_ELEMENTS(strategies));
    else if (json_is(json_get(conversion, STR("webhook")), JSON_OBJECT))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(&at, STR("webhookClientConfig")), NULL,
                   "should not be set when strategy is not set to Webhook");
}

static bool has_defaults(const struct json *v)
{
    if (json_is(v, JSON_OBJECT) && json_get(v, STR("default")))
        return true;
    JSON_FOR_EACH_MEMBER (v, m)
        if (has_defaults(&m->value))
            return true;
    JSON_FOR_EACH_ITEM (v, item)
        if (has_defaults(item))
            return true;
    return false;
}

static void check_preserve(const struct json *spec, const struct field_path *at_spec,
                           struct causes *causes)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("preserveUnknownFields"));
    const struct json *preserve = json_get(spec, STR("preserveUnknownFields"));
    if (!json_get_bool(spec, STR("preserveUnknownFields"), false))
        return;
    causes_add(causes, CAUSE_INVALID, &at, preserve,
               "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
               "spec.versions[*].schema instead");
    bool any = false;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("versions")), version)
        any |= has_defaults(json_get(version, STR("schema")));
    if (any)
        causes_add(causes, CAUSE_INVALID, &at, preserve,
                   "must be false in order to use defaults in the schema");
}

void crd_check_spec(const struct json *spec, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    check_group(spec, &at, causes);
    check_scope(spec, &at, causes);
    crd_check_names(json_get(spec, STR("names")), /* is_spec= */ true,
                    &FIELD_NAME(&at, STR("names")), causes);
    check_versions(spec, &at, causes);
    check_preserve(spec, &at, causes);
    check_conversion(spec, &at, causes);
}
