/* SPDX-License-Identifier: Apache-2.0 */
/* ApplicationDeployments, -DaemonSets and -StatefulSets: their templates are Applications, and what
 * they select is what they make. */
#include "api/selector.h"
#include "resources/application.h"
#include "resources/checks.h"
#include "resources/eve_references.h"
#include "resources/resources.h"

static struct application_view view_of(const struct field_path *at, const struct json *object)
{
    return (struct application_view){
        .at = at,
        .object = json_at(object, "spec", "template", NULL),
        .claim_templates = json_at(object, "spec", "volumeClaimTemplates", NULL),
        .namespace = eve_namespace_of(object),
    };
}

/* ---- rules --------------------------------------------------------------------------------- */

static void check_selector(struct causes *causes, const struct field_path *at,
                           const struct field_path *at_template, const struct json *spec)
{
    const struct json *selector = json_get(spec, STR("selector")),
                      *labels = json_at(spec, "template", "metadata", "labels", NULL);
    const struct field_path at_selector = FIELD_NAME(at, STR("selector"));
    const struct field_path at_meta = FIELD_NAME(at_template, STR("metadata"));
    const struct json none = json_object();
    const struct causes_mark before = causes_mark(causes);
    struct selector parsed = {0};
    check_label_selector(causes, &at_selector, selector);
    if (causes->n > before.n || selector_from_json(causes->arena, selector, &parsed) < 0)
        return;
    if (selector_is_empty(&parsed))
        causes_add(causes, CAUSE_INVALID, &at_selector, selector,
                   "empty selector is invalid for a workload");
    else if (!selector_matches_labels(&parsed, labels))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at_meta, STR("labels")),
                   labels ? labels : &none, "`selector` does not match template `labels`");
}

static void check_claims(struct causes *causes, const struct field_path *at,
                         const struct json *templates)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (templates, template) {
        const struct field_path here = FIELD_INDEX(at, i++);
        const struct field_path at_meta = FIELD_NAME(&here, STR("metadata"));
        const struct str name = json_str(json_at(template, "metadata", "name", NULL));
        const struct name_errors errors = name_label(causes->arena, name);
        object_meta_add_errors(causes, &FIELD_NAME(&at_meta, STR("name")), name, &errors);
        application_check_claim(causes, &FIELD_NAME(&here, STR("spec")),
                                json_get(template, STR("spec")));
    }
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_template = FIELD_NAME(&at, STR("template"));
    const struct json *spec = json_get(object, STR("spec"));
    struct application_view v = view_of(&at_template, object);
    if (h->subresource.n)
        return;
    v.namespace = h->namespace;
    check_selector(causes, &at, &at_template, spec);
    check_claims(causes, &FIELD_NAME(&at, STR("volumeClaimTemplates")), v.claim_templates);
    application_check(causes, &v);
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    static const char *const frozen[] = {"selector", "volumeClaimTemplates"};
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    if (h->subresource.n)
        return;
    for (size_t i = 0; i < N_ELEMENTS(frozen); i++)
        object_meta_check_immutable(causes, &FIELD_NAME(&at, str_of(frozen[i])),
                                    json_at(old, "spec", frozen[i], NULL),
                                    json_at(object, "spec", frozen[i], NULL));
}

/* ---- references ---------------------------------------------------------------------------- */

static void refer(struct reference_list *l, const struct json *object)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_template = FIELD_NAME(&at, STR("template"));
    const struct field_path at_claims = FIELD_NAME(&at, STR("volumeClaimTemplates"));
    const struct application_view v = view_of(&at_template, object);
    int64_t i = 0;
    application_refer(l, &v);
    JSON_FOR_EACH_ITEM (v.claim_templates, template) {
        const struct field_path here = FIELD_INDEX(&at_claims, i++);
        eve_refer_claim_spec(l, &FIELD_NAME(&here, STR("spec")), v.namespace,
                             json_get(template, STR("spec")), /* is_ours= */ true);
    }
}

const struct kind_hooks applicationdaemonset_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("applicationdaemonsets"),
    .validate = validate,
    .validate_update = validate_update,
    .refer = refer,
};

const struct kind_hooks applicationdeployment_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("applicationdeployments"),
    .validate = validate,
    .validate_update = validate_update,
    .refer = refer,
};

const struct kind_hooks applicationstatefulset_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("applicationstatefulsets"),
    .validate = validate,
    .validate_update = validate_update,
    .refer = refer,
};
