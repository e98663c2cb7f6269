/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingWebhookConfiguration and ValidatingWebhookConfiguration: what may stand in them. Asking
 * the webhooks is admission's affair. */
#include "resources/webhookconfiguration.h"

#include "resources/checks.h"
#include "resources/resources.h"

#define WEBHOOK_MIN_TIMEOUT_S 1
#define WEBHOOK_MAX_TIMEOUT_S 30
#define WEBHOOK_NAME_MIN_SEGMENTS 3

/* Our versions of AdmissionReview, the better first. */
static const struct str review_versions[] = {STR("v1"), STR("v1beta1")};

static const struct json *member(const struct json *object, const char *name)
{
    return json_get(object, str_of(name));
}

bool webhook_check_count(struct causes *causes, const struct field_path *at,
                         const struct json *list)
{
    const struct json count = json_int((int64_t) json_count(list));
    if (count.i <= WEBHOOK_MAX_ITEMS)
        return true;
    causes_add(causes, CAUSE_TOO_MANY, at, &count, "must have at most %d items", WEBHOOK_MAX_ITEMS);
    return false;
}

static void check_hook_name(struct causes *causes, const struct field_path *at, struct str name)
{
    const struct json value = shown(name);
    if (!name.n) {
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "%s", "");
        return;
    }
    const struct name_errors errors = name_subdomain(causes->arena, name);
    if (errors.n) {
        BUF_AUTO text = {0};
        for (size_t i = 0; i < errors.n; i++)
            buf_printf(&text, "%s%.*s", i ? "," : "", STR_ARG(errors.text[i]));
        causes_add(causes, CAUSE_INVALID, at, &value, "%.*s", STR_ARG(buf_str(&text)));
        return;
    }
    size_t n_segments = 1;
    for (size_t i = 0; i < name.n; i++)
        n_segments += name.p[i] == '.';
    if (n_segments < WEBHOOK_NAME_MIN_SEGMENTS)
        causes_add(causes, CAUSE_INVALID, at, &value,
                   "should be a domain with at least three segments separated by dots");
}

static void check_policies(struct causes *causes, const struct field_path *at,
                           const struct json *hook)
{
    static const struct str failures[] = {STR("Fail"), STR("Ignore")};
    static const struct str matches[] = {STR("Equivalent"), STR("Exact")};
    static const struct str reinvocations[] = {STR("IfNeeded"), STR("Never")};
    static const struct str effects[] = {STR("None"), STR("NoneOnDryRun")};
    const struct json *side_effects = member(hook, "sideEffects");
    const struct field_path at_effects = FIELD_NAME(at, STR("sideEffects"));
    check_supported(causes, &FIELD_NAME(at, STR("failurePolicy")), member(hook, "failurePolicy"),
                    failures, N_ELEMENTS(failures));
    check_supported(causes, &FIELD_NAME(at, STR("matchPolicy")), member(hook, "matchPolicy"),
                    matches, N_ELEMENTS(matches));
    if (!side_effects)
        causes_add(causes, CAUSE_REQUIRED, &at_effects, NULL,
                   "must specify one of None, NoneOnDryRun");
    check_supported(causes, &at_effects, side_effects, effects, N_ELEMENTS(effects));
    check_supported(causes, &FIELD_NAME(at, STR("reinvocationPolicy")),
                    member(hook, "reinvocationPolicy"), reinvocations, N_ELEMENTS(reinvocations));
}

static void check_timeout(struct causes *causes, const struct field_path *at,
                          const struct json *timeout)
{
    if (json_is(timeout, JSON_INT) &&
        (timeout->i < WEBHOOK_MIN_TIMEOUT_S || timeout->i > WEBHOOK_MAX_TIMEOUT_S))
        causes_add(causes, CAUSE_INVALID, at, timeout,
                   "the timeout value must be between 1 and 30 seconds");
}

static bool is_review_version(struct str version)
{
    for (size_t i = 0; i < N_ELEMENTS(review_versions); i++)
        if (str_eq(version, review_versions[i]))
            return true;
    return false;
}

static void check_review_versions(struct causes *causes, const struct field_path *at,
                                  const struct json *versions)
{
    if (!json_count(versions)) {
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "must specify one of v1, v1beta1");
        return;
    }
    if (!webhook_check_count(causes, at, versions))
        return;
    bool has_ours = false;
    for (size_t i = 0; i < versions->n; i++) {
        const struct json *version = &versions->items[i];
        const struct field_path here = FIELD_INDEX(at, (int64_t) i);
        bool is_duplicate = false;
        for (size_t j = 0; j < i; j++)
            is_duplicate |= json_equal(&versions->items[j], version);
        if (is_duplicate) {
            causes_add(causes, CAUSE_INVALID, &here, version, "duplicate version");
            continue;
        }
        const struct name_errors errors = name_label_1035(causes->arena, json_str(version));
        object_meta_add_errors(causes, &here, json_str(version), &errors);
        has_ours |= is_review_version(json_str(version));
    }
    if (!has_ours)
        causes_add(causes, CAUSE_INVALID, at, versions, "must include at least one of v1, v1beta1");
}

/* Without an evaluator for their language a webhook would be asked too often or too seldom: neither
 * is what its author wrote. */
static void check_conditions(struct causes *causes, const struct field_path *at,
                             const struct json *conditions)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (conditions, condition) {
        const struct field_path here = FIELD_INDEX(at, i++);
        const struct field_path at_name = FIELD_NAME(&here, STR("name"));
        const struct str name = json_get_str(condition, STR("name"));
        const struct json expression = shown(json_get_str(condition, STR("expression")));
        if (!name.n) {
            causes_add(causes, CAUSE_REQUIRED, &at_name, NULL, "%s", "");
        } else {
            const struct name_errors errors = name_qualified(causes->arena, name);
            object_meta_add_errors(causes, &at_name, name, &errors);
        }
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&here, STR("expression")), &expression,
                   "this server does not evaluate match conditions yet: narrow the rules or the "
                   "selectors instead");
    }
}

static void check_hook(struct causes *causes, const struct field_path *at, const struct json *hook)
{
    const struct json *rules = member(hook, "rules");
    const struct field_path at_rules = FIELD_NAME(at, STR("rules"));
    check_hook_name(causes, &FIELD_NAME(at, STR("name")), json_get_str(hook, STR("name")));
    for (size_t i = 0; i < json_count(rules); i++)
        webhook_check_rule(causes, &FIELD_INDEX(&at_rules, (int64_t) i), &rules->items[i]);
    check_policies(causes, at, hook);
    check_timeout(causes, &FIELD_NAME(at, STR("timeoutSeconds")), member(hook, "timeoutSeconds"));
    check_label_selector(causes, &FIELD_NAME(at, STR("namespaceSelector")),
                         member(hook, "namespaceSelector"));
    check_label_selector(causes, &FIELD_NAME(at, STR("objectSelector")),
                         member(hook, "objectSelector"));
    webhook_check_client(causes, &FIELD_NAME(at, STR("clientConfig")),
                         member(hook, "clientConfig"));
    check_conditions(causes, &FIELD_NAME(at, STR("matchConditions")),
                     member(hook, "matchConditions"));
    check_review_versions(causes, &FIELD_NAME(at, STR("admissionReviewVersions")),
                          member(hook, "admissionReviewVersions"));
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    const struct field_path at = FIELD_NAME(NULL, STR("webhooks"));
    const struct json *hooks = member(object, "webhooks");
    if (!webhook_check_count(causes, &at, hooks))
        return;
    for (size_t i = 0; i < json_count(hooks); i++) {
        const struct field_path here = FIELD_INDEX(&at, (int64_t) i);
        const struct json *name = member(&hooks->items[i], "name");
        check_hook(causes, &here, &hooks->items[i]);
        bool is_duplicate = false;
        for (size_t j = 0; j < i; j++)
            is_duplicate |= json_str(name).n && json_equal(member(&hooks->items[j], "name"), name);
        if (is_duplicate)
            causes_add(causes, CAUSE_DUPLICATE, &FIELD_NAME(&here, STR("name")), name, "%s", "");
    }
}

const struct kind_hooks mutatingwebhookconfiguration_hooks = {
    .group = STR("admissionregistration.k8s.io"),
    .plural = STR("mutatingwebhookconfigurations"),
    .validate = validate,
};

const struct kind_hooks validatingwebhookconfiguration_hooks = {
    .group = STR("admissionregistration.k8s.io"),
    .plural = STR("validatingwebhookconfigurations"),
    .validate = validate,
};
