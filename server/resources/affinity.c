/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/affinity.h"

#include "api/object_meta.h"
#include "resources/checks.h"

static void check_count(struct causes *causes, const struct field_path *at, struct str operator,
                        const struct json * values)
{
    const size_t n = json_count(values);
    const bool is_set = str_is(operator, "In") || str_is(operator, "NotIn"),
               is_presence = str_is(operator, "Exists") || str_is(operator, "DoesNotExist"),
               is_order = str_is(operator, "Gt") || str_is(operator, "Lt");
    const struct field_path at_values = FIELD_NAME(at, STR("values"));
    int64_t number = 0;
    if (is_set && n == 0)
        causes_add(causes, CAUSE_REQUIRED, &at_values, NULL,
                   "must be specified when `operator` is 'In' or 'NotIn'");
    if (is_presence && n > 0)
        causes_add(causes, CAUSE_FORBIDDEN, &at_values, NULL,
                   "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    if (is_order && n != 1)
        causes_add(causes, CAUSE_REQUIRED, &at_values, NULL,
                   "must be specified single value when `operator` is 'Lt' or 'Gt'");
    else if (is_order && str_to_i64(json_str(&values->items[0]), &number) < 0)
        causes_add(causes, CAUSE_INVALID, &at_values, &values->items[0],
                   "must be an integer when `operator` is 'Lt' or 'Gt'");
}

static void check_expressions(struct causes *causes, const struct field_path *at,
                              const struct json *list)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        check_count(causes, &here, json_get_str(item, STR("operator")),
                    json_get(item, STR("values")));
        check_label_name(causes, &FIELD_NAME(&here, STR("key")), json_get_str(item, STR("key")));
    }
}

static void check_fields(struct causes *causes, const struct field_path *at,
                         const struct json *list)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        const struct str operator= json_get_str(item, STR("operator"));
        if (!str_is(json_get_str(item, STR("key")), "metadata.name"))
            causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&here, STR("key")),
                       json_get(item, STR("key")), "not a valid field selector key");
        if (!str_is(operator, "In") && !str_is(operator, "NotIn"))
            causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&here, STR("operator")),
                       json_get(item, STR("operator")), "not a valid selector operator");
        else if (json_count(json_get(item, STR("values"))) != 1)
            causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&here, STR("values")), NULL,
                       "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                       "selector");
    }
}

static void check_term(struct causes *causes, const struct field_path *at, const struct json *term)
{
    check_expressions(causes, &FIELD_NAME(at, STR("matchExpressions")),
                      json_get(term, STR("matchExpressions")));
    check_fields(causes, &FIELD_NAME(at, STR("matchFields")), json_get(term, STR("matchFields")));
}

static void check_required_terms(struct causes *causes, const struct field_path *at,
                                 const struct json *required)
{
    const struct field_path at_terms = FIELD_NAME(at, STR("nodeSelectorTerms"));
    const struct json *terms = json_get(required, STR("nodeSelectorTerms"));
    int64_t i = 0;
    if (json_is(required, JSON_OBJECT) && json_count(terms) == 0)
        causes_add(causes, CAUSE_REQUIRED, &at_terms, NULL,
                   "must have at least one node selector term");
    JSON_FOR_EACH_ITEM (terms, term) {
        const struct field_path here = FIELD_INDEX(&at_terms, i++);
        check_term(causes, &here, term);
    }
}

static void check_preferred(struct causes *causes, const struct field_path *at,
                            const struct json *list)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        check_term(causes, &FIELD_NAME(&here, STR("preference")),
                   json_get(item, STR("preference")));
    }
}

static void check_selector(struct causes *causes, const struct field_path *at,
                           const struct json *selector)
{
    JSON_FOR_EACH_MEMBER (selector, m) {
        const struct name_errors errors = name_label_value(causes->arena, json_str(&m->value));
        check_label_name(causes, at, json_str(&m->key));
        object_meta_add_errors(causes, at, json_str(&m->value), &errors);
    }
}

void affinity_check(struct causes *causes, const struct field_path *at_spec,
                    const struct json *spec)
{
    const struct json *node = json_at(spec, "affinity", "nodeAffinity", NULL);
    const struct field_path at_affinity = FIELD_NAME(at_spec, STR("affinity"));
    const struct field_path at = FIELD_NAME(&at_affinity, STR("nodeAffinity"));
    const struct str required = STR("requiredDuringSchedulingIgnoredDuringExecution"),
                     preferred = STR("preferredDuringSchedulingIgnoredDuringExecution");
    check_selector(causes, &FIELD_NAME(at_spec, STR("nodeSelector")),
                   json_get(spec, STR("nodeSelector")));
    check_required_terms(causes, &FIELD_NAME(&at, required), json_get(node, required));
    check_preferred(causes, &FIELD_NAME(&at, preferred), json_get(node, preferred));
}
