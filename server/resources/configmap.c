/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "resources/checks.h"
#include "resources/device_options.h"
#include "resources/resources.h"
#include "settings/settings.h"

#define DATA_MAX_BYTES (1024 * 1024)

static void check_keys(const struct json *data, struct str member, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, member);
    JSON_FOR_EACH_MEMBER (data, m) {
        const struct str key = json_str(&m->key);
        const struct name_errors errors = check_data_key(causes->arena, key);
        object_meta_add_errors(causes, &FIELD_KEY(&at, key), key, &errors);
    }
}

static size_t decoded_bytes(struct str base64)
{
    size_t n = base64.n / 4 * 3;
    for (size_t i = base64.n; i > 0 && base64.p[i - 1] == '='; i--)
        n--;
    return n;
}

static void check_options(struct hook_context *h, const struct json *old, const struct json *object,
                          struct causes *causes)
{
    const struct str name = json_str(json_at(object, "metadata", "name", NULL));
    if (settings_is_options(h->namespace, name))
        device_options_check_data(h, json_get(old, STR("data")), json_get(object, STR("data")),
                                  causes);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct json *data = json_get(object, STR("data"));
    const struct json *binary = json_get(object, STR("binaryData"));
    const struct field_path at_data = FIELD_NAME(NULL, STR("data"));
    size_t n_bytes = 0;
    check_keys(data, STR("data"), causes);
    check_keys(binary, STR("binaryData"), causes);
    JSON_FOR_EACH_MEMBER (data, m) {
        const struct str key = json_str(&m->key);
        const struct json value = json_string(key);
        n_bytes += json_str(&m->value).n;
        if (json_get(binary, key))
            causes_add(causes, CAUSE_INVALID, &FIELD_KEY(&at_data, key), &value,
                       "duplicate of key present in binaryData");
    }
    JSON_FOR_EACH_MEMBER (binary, m)
        n_bytes += decoded_bytes(json_str(&m->value));
    if (n_bytes > DATA_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &FIELD_KEY(NULL, STR("")), NULL,
                   "may not be more than %d bytes", DATA_MAX_BYTES);
    if (h->operation == WRITE_CREATE)
        check_options(h, NULL, object, causes);
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    static const char *const frozen[] = {"data", "binaryData"};
    check_options(h, old, object, causes);
    if (!json_get_bool(old, STR("immutable"), false))
        return;
    if (!json_get_bool(object, STR("immutable"), false))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, STR("immutable")), NULL,
                   "field is immutable when `immutable` is set");
    for (size_t i = 0; i < N_ELEMENTS(frozen); i++)
        if (!same_member(old, object, str_of(frozen[i])))
            causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, str_of(frozen[i])), NULL,
                       "field is immutable when `immutable` is set");
}

const struct kind_hooks configmap_hooks = {
    .group = STR(""),
    .plural = STR("configmaps"),
    .validate = validate,
    .validate_update = validate_update,
    .has_users = true,
};
