/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/volume.h"

#include "resources/checks.h"

void volume_add_finalizer(struct arena *a, struct json *object, struct str finalizer)
{
    struct json *meta = json_ensure_object(a, object, STR("metadata"));
    struct json *finalizers = json_get(meta, STR("finalizers"));
    if (list_has(finalizers, finalizer))
        return;
    struct json list = json_is(finalizers, JSON_ARRAY) ? json_clone(a, finalizers) : json_array();
    (void) json_push(a, &list, json_string(finalizer));
    (void) json_set(a, meta, STR("finalizers"), list);
}

void volume_check_modes(struct causes *causes, const struct field_path *at,
                        const struct json *modes)
{
    static const struct str supported[] = {STR("ReadOnlyMany"), STR("ReadWriteMany"),
                                           STR("ReadWriteOnce"), STR("ReadWriteOncePod")};
    bool has_other = false;
    JSON_FOR_EACH_ITEM (modes, mode) {
        check_supported(causes, at, mode, supported, N_ELEMENTS(supported));
        for (size_t i = 0; i < N_ELEMENTS(supported) - 1; i++)
            has_other |= str_eq(json_str(mode), supported[i]);
    }
    if (has_other && list_has(modes, STR("ReadWriteOncePod")))
        causes_add(causes, CAUSE_FORBIDDEN, at, NULL,
                   "may not use ReadWriteOncePod with other access modes");
}

void volume_check_volume_mode(struct causes *causes, const struct field_path *at_spec,
                              const struct json *spec)
{
    static const struct str modes[] = {STR("Block"), STR("Filesystem")};
    check_supported(causes, &FIELD_NAME(at_spec, STR("volumeMode")),
                    json_get(spec, STR("volumeMode")), modes, N_ELEMENTS(modes));
}
