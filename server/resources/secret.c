/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "resources/checks.h"
#include "resources/resources.h"

#define DATA_MAX_BYTES (1024 * 1024)
#define ANNOTATION_ACCOUNT "kubernetes.io/service-account.name"

/* stringData is for writing alone: it goes into data, over keys of the same name. */
static void fold_string_data(struct arena *a, struct json *object)
{
    const struct json *given = json_get(object, STR("stringData"));
    if (json_count(given) > 0) {
        const struct json *old = json_get(object, STR("data"));
        struct json data = json_is(old, JSON_OBJECT) ? json_clone(a, old) : json_object();
        JSON_FOR_EACH_MEMBER (given, m)
            (void) json_set(a, &data, json_str(&m->key),
                            json_string(base64_encode(a, json_str(&m->value), BASE64_STANDARD)));
        json_sort_members(&data);
        (void) json_set(a, object, STR("data"), data);
    }
    (void) json_remove(object, STR("stringData"));
}

static void set_defaults(struct hook_context *h, struct json *object)
{
    fold_string_data(h->arena, object);
    if (json_get_str(object, STR("type")).n == 0)
        (void) json_set(h->arena, object, STR("type"), json_string(STR("Opaque")));
}

/* ---- types -------------------------------------------------------------------------------- */

static void require_key(const struct json *data, struct str key, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("data"));
    if (!json_get(data, key))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_KEY(&at, key), NULL, "%s", "");
}

static void require_json(const struct json *data, struct str key, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("data"));
    const struct json redacted = json_string(STR("<secret contents redacted>"));
    const struct json *value = json_get(data, key);
    struct str bytes;
    struct json_parse_result parsed = {0};
    if (!value) {
        require_key(data, key, causes);
        return;
    }
    if (base64_decode(causes->arena, json_str(value), BASE64_STANDARD, &bytes, NULL) < 0)
        return;
    if (json_parse(causes->arena, bytes, &parsed) < 0)
        causes_add(causes, CAUSE_INVALID, &FIELD_KEY(&at, key), &redacted, "%.*s",
                   STR_ARG(parsed.error));
    else if (parsed.value->type != JSON_OBJECT && parsed.value->type != JSON_NULL)
        causes_add(causes, CAUSE_INVALID, &FIELD_KEY(&at, key), &redacted,
                   "json: cannot unmarshal into Go value of type map[string]interface {}");
}

static void check_token(const struct json *object, struct causes *causes)
{
    const struct field_path at_meta = FIELD_NAME(NULL, STR("metadata"));
    const struct field_path at = FIELD_NAME(&at_meta, STR("annotations"));
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    if (json_get_str(annotations, STR(ANNOTATION_ACCOUNT)).n == 0)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_KEY(&at, STR(ANNOTATION_ACCOUNT)), NULL, "%s",
                   "");
}

static void check_type(const struct json *object, struct causes *causes)
{
    const struct str type = json_get_str(object, STR("type"));
    const struct json *data = json_get(object, STR("data"));
    if (str_is(type, "kubernetes.io/service-account-token")) {
        check_token(object, causes);
    } else if (str_is(type, "kubernetes.io/dockercfg")) {
        require_json(data, STR(".dockercfg"), causes);
    } else if (str_is(type, "kubernetes.io/dockerconfigjson")) {
        require_json(data, STR(".dockerconfigjson"), causes);
    } else if (str_is(type, "kubernetes.io/basic-auth")) {
        if (!json_get(data, STR("username")) && !json_get(data, STR("password"))) {
            require_key(data, STR("username"), causes);
            require_key(data, STR("password"), causes);
        }
    } else if (str_is(type, "kubernetes.io/ssh-auth")) {
        if (json_get_str(data, STR("ssh-privatekey")).n == 0)
            require_key(NULL, STR("ssh-privatekey"), causes);
    } else if (str_is(type, "kubernetes.io/tls")) {
        require_key(data, STR("tls.crt"), causes);
        require_key(data, STR("tls.key"), causes);
    }
}

/* ---- rules -------------------------------------------------------------------------------- */

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    const struct field_path at = FIELD_NAME(NULL, STR("data"));
    const struct json *data = json_get(object, STR("data"));
    size_t n_bytes = 0;
    JSON_FOR_EACH_MEMBER (data, m) {
        const struct str key = json_str(&m->key), value = json_str(&m->value);
        const struct name_errors errors = check_data_key(causes->arena, key);
        object_meta_add_errors(causes, &FIELD_KEY(&at, key), key, &errors);
        n_bytes += value.n / 4 * 3;
        for (size_t i = value.n; i > 0 && value.p[i - 1] == '='; i--)
            n_bytes--;
    }
    if (n_bytes > DATA_MAX_BYTES)
        causes_add(causes, CAUSE_TOO_LONG, &at, NULL, "may not be more than %d bytes",
                   DATA_MAX_BYTES);
    check_type(object, causes);
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    object_meta_check_immutable(causes, &FIELD_NAME(NULL, STR("type")), json_get(old, STR("type")),
                                json_get(object, STR("type")));
    if (!json_get_bool(old, STR("immutable"), false))
        return;
    if (!json_get_bool(object, STR("immutable"), false))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, STR("immutable")), NULL,
                   "field is immutable when `immutable` is set");
    if (!same_member(old, object, STR("data")))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(NULL, STR("data")), NULL,
                   "field is immutable when `immutable` is set");
}

const struct kind_hooks secret_hooks = {
    .group = STR(""),
    .plural = STR("secrets"),
    .set_defaults = set_defaults,
    .validate = validate,
    .validate_update = validate_update,
    .has_users = true,
};
