/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/device_options.h"

#include "resources/checks.h"
#include "settings/settings.h"

static void judge(struct hook_context *h, const struct field_path *at, struct str option,
                  const struct json *value, struct causes *causes)
{
    struct str reason = STR("");
    switch (settings_judge(h->arena, option, json_str(value), &reason)) {
    case SETTINGS_BAD:
        causes_add(causes, CAUSE_INVALID, at, value, "%.*s", STR_ARG(reason));
        break;
    case SETTINGS_UNKNOWN:
        h->warn(h, arena_printf(h->arena, "%.*s: no option \"%.*s\" is known",
                                STR_ARG(field_path_text(h->arena, at)), STR_ARG(option)));
        break;
    case SETTINGS_GOOD:
        break;
    }
}

static bool is_as_before(const struct json *old, const struct json_member *m)
{
    const struct json *was = json_get(old, json_str(&m->key));
    return was && json_equal(was, &m->value);
}

static void warn_misplaced(struct hook_context *h, const struct field_path *at)
{
    h->warn(h, arena_printf(h->arena, "%.*s: has effect only in ConfigMap %s/%s",
                            STR_ARG(field_path_text(h->arena, at)), SETTINGS_GLOBAL_NAMESPACE,
                            SETTINGS_GLOBAL_NAME));
}

static void check_activate(const struct field_path *at, const struct json *value,
                           struct causes *causes)
{
    static const struct str supported[] = {STR("true"), STR("false")};
    check_supported(causes, at, value, supported, N_ELEMENTS(supported));
}

void device_options_check_annotations(struct hook_context *h, const struct json *old,
                                      const struct json *annotations, struct causes *causes)
{
    const struct field_path meta = FIELD_NAME(NULL, STR("metadata"));
    const struct field_path here = FIELD_NAME(&meta, STR("annotations"));
    JSON_FOR_EACH_MEMBER (annotations, m) {
        const struct str key = json_str(&m->key), option = settings_of_annotation(key);
        const struct field_path at = FIELD_KEY(&here, key);
        if (is_as_before(old, m))
            continue;
        if (str_is(key, SETTINGS_ACTIVATE))
            check_activate(&at, &m->value, causes);
        if (!option.p)
            continue;
        judge(h, &at, option, &m->value, causes);
        if (settings_is_global(option))
            warn_misplaced(h, &at);
    }
}

void device_options_check_data(struct hook_context *h, const struct json *old,
                               const struct json *data, struct causes *causes)
{
    const struct field_path here = FIELD_NAME(NULL, STR("data"));
    JSON_FOR_EACH_MEMBER (data, m) {
        const struct str option = json_str(&m->key);
        const struct field_path at = FIELD_KEY(&here, option);
        if (is_as_before(old, m))
            continue;
        judge(h, &at, option, &m->value, causes);
        if (settings_is_global(option) && !str_is(h->namespace, SETTINGS_GLOBAL_NAMESPACE))
            warn_misplaced(h, &at);
    }
}
