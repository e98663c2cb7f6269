/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "resources/checks.h"
#include "resources/resources.h"

#define PARAMETERS_MAX_BYTES (256 * 1024)
#define PARAMETERS_MAX 512

static void check_provisioner(const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("provisioner"));
    const struct str name = json_get_str(object, STR("provisioner"));
    if (name.n == 0) {
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
        return;
    }
    char *lower = arena_strz(causes->arena, name);
    for (size_t i = 0; i < name.n; i++)
        lower[i] = (char) tolower((unsigned char) lower[i]);
    const struct name_errors errors = name_qualified(causes->arena, str_range(lower, name.n));
    object_meta_add_errors(causes, &at, str_range(lower, name.n), &errors);
}

static void check_parameters(const struct json *parameters, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("parameters"));
    size_t n_bytes = 0;
    if (json_count(parameters) > PARAMETERS_MAX) {
        causes_add(causes, CAUSE_TOO_LONG, &at, NULL, "may not be more than %d bytes",
                   PARAMETERS_MAX);
        return;
    }
    JSON_FOR_EACH_MEMBER (parameters, m) {
        if (m->key.n == 0)
            causes_add(causes, CAUSE_INVALID, &at, &m->key, "field can not be empty.");
        n_bytes += m->key.n + json_str(&m->value).n;
    }
    if (n_bytes > PARAMETERS_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at, NULL, "may not be more than %d bytes",
                   PARAMETERS_MAX_BYTES);
}

static void check_topology(struct causes *causes, const struct field_path *at,
                           const struct json *conditions)
{
    const struct field_path at_conditions = FIELD_NAME(at, STR("matchLabelExpressions"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (conditions, condition) {
        const struct field_path at_condition = FIELD_INDEX(&at_conditions, i++);
        check_required(causes, &at_condition, condition, STR("values"));
        check_label_name(causes, &FIELD_NAME(&at_condition, STR("key")),
                         json_get_str(condition, STR("key")));
    }
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    static const struct str policies[] = {STR("Delete"), STR("Retain")};
    static const struct str modes[] = {STR("Immediate"), STR("WaitForFirstConsumer")};
    check_provisioner(object, causes);
    check_parameters(json_get(object, STR("parameters")), causes);
    check_supported(causes, &FIELD_NAME(NULL, STR("reclaimPolicy")),
                    json_get(object, STR("reclaimPolicy")), policies, N_ELEMENTS(policies));
    check_supported(causes, &FIELD_NAME(NULL, STR("volumeBindingMode")),
                    json_get(object, STR("volumeBindingMode")), modes, N_ELEMENTS(modes));
    const struct field_path at = FIELD_NAME(NULL, STR("allowedTopologies"));
    const struct json *topologies = json_get(object, STR("allowedTopologies"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (topologies, topology)
        check_topology(causes, &FIELD_INDEX(&at, i++),
                       json_get(topology, STR("matchLabelExpressions")));
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    static const char *const frozen[] = {"parameters", "provisioner", "reclaimPolicy",
                                         "volumeBindingMode"};
    for (size_t i = 0; i < N_ELEMENTS(frozen); i++) {
        const struct str name = str_of(frozen[i]);
        object_meta_check_immutable(causes, &FIELD_NAME(NULL, name), json_get(old, name),
                                    json_get(object, name));
    }
}

const struct kind_hooks storageclass_hooks = {
    .group = STR("storage.k8s.io"),
    .plural = STR("storageclasses"),
    .validate = validate,
    .validate_update = validate_update,
    .returns_deleted = true,
};
