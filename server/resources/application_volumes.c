/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/application.h"
#include "resources/checks.h"
#include "resources/volume.h"

/* ---- volumes ------------------------------------------------------------------------------- */

void application_check_claim(struct causes *causes, const struct field_path *at,
                             const struct json *spec)
{
    const struct json *storage = json_at(spec, "resources", "requests", "storage", NULL);
    const struct json *modes = json_get(spec, STR("accessModes"));
    const struct field_path at_modes = FIELD_NAME(at, STR("accessModes"));
    const struct field_path at_resources = FIELD_NAME(at, STR("resources"));
    const struct field_path at_requests = FIELD_NAME(&at_resources, STR("requests"));
    const struct field_path at_storage = FIELD_KEY(&at_requests, STR("storage"));
    if (json_count(modes) == 0)
        causes_add(causes, CAUSE_REQUIRED, &at_modes, NULL, "at least 1 access mode is required");
    volume_check_modes(causes, &at_modes, modes);
    if (!storage)
        causes_add(causes, CAUSE_REQUIRED, &at_storage, NULL, "%s", "");
    else
        check_amount(causes, &at_storage, storage);
}

static void check_volume(struct causes *causes, const struct field_path *at,
                         const struct json *volume)
{
    const struct json *claim = json_get(volume, STR("persistentVolumeClaim")),
                      *own = json_get(volume, STR("ephemeral"));
    const struct field_path at_claim = FIELD_NAME(at, STR("persistentVolumeClaim"));
    const struct field_path at_own = FIELD_NAME(at, STR("ephemeral"));
    const struct field_path at_template = FIELD_NAME(&at_own, STR("volumeClaimTemplate"));
    const struct name_errors errors = name_label(causes->arena, json_get_str(volume, STR("name")));
    object_meta_add_errors(causes, &FIELD_NAME(at, STR("name")), json_get_str(volume, STR("name")),
                           &errors);
    if (!claim && !own)
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "must specify a volume type");
    if (claim && own)
        causes_add(causes, CAUSE_FORBIDDEN, &at_own, NULL,
                   "may not specify more than 1 volume type");
    if (claim)
        check_required(causes, &at_claim, claim, STR("claimName"));
    if (own)
        application_check_claim(causes, &FIELD_NAME(&at_template, STR("spec")),
                                json_at(own, "volumeClaimTemplate", "spec", NULL));
}

/* ---- their use ----------------------------------------------------------------------------- */

static const struct json *find_named(const struct json *list, struct str name)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_get_str(item, STR("name")), name))
            return item;
    return NULL;
}

/* The spec of the claim that is made for the volume; NULL when it is another object's. */
static const struct json *own_claim(const struct application_view *v, struct str name)
{
    const struct json *volume = find_named(json_at(v->object, "spec", "volumes", NULL), name);
    JSON_FOR_EACH_ITEM (v->claim_templates, template)
        if (str_eq(json_str(json_at(template, "metadata", "name", NULL)), name))
            return json_get(template, STR("spec"));
    return json_at(volume, "ephemeral", "volumeClaimTemplate", "spec", NULL);
}

static bool has_volume(const struct application_view *v, struct str name)
{
    return find_named(json_at(v->object, "spec", "volumes", NULL), name) || own_claim(v, name);
}

static void check_path(struct causes *causes, const struct field_path *at, const struct json *path)
{
    if (!str_starts_with(json_str(path), STR("/")))
        causes_add(causes, CAUSE_INVALID, at, path, "must be an absolute path");
    else if (str_find_str(json_str(path), STR("..")) >= 0)
        causes_add(causes, CAUSE_INVALID, at, path, "must not contain '..'");
}

struct volume_use {
    const char *member, *path, *other;
    bool is_block;
};

static const struct volume_use uses[] = {
    {"volumeMounts", "mountPath", "volumeDevices", false},
    {"volumeDevices", "devicePath", "volumeMounts", true},
};

static void check_use(struct causes *causes, const struct field_path *at,
                      const struct application_view *v, const struct json *container,
                      const struct volume_use *use)
{
    const struct field_path at_list = FIELD_NAME(at, str_of(use->member));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (json_get(container, str_of(use->member)), entry) {
        const struct field_path here = FIELD_INDEX(&at_list, i++);
        const struct field_path at_name = FIELD_NAME(&here, STR("name"));
        const struct json *name = json_get(entry, STR("name"));
        const struct json *claim = own_claim(v, json_str(name));
        const bool is_block = str_is(json_get_str(claim, STR("volumeMode")), "Block");
        if (!has_volume(v, json_str(name)))
            causes_add(causes, CAUSE_NOT_FOUND, &at_name, name, "%s", "");
        else if (use->is_block &&
                 find_named(json_get(container, str_of(use->other)), json_str(name)))
            causes_add(causes, CAUSE_INVALID, &at_name, name, "must not already exist in %s",
                       use->other);
        else if (claim && is_block != use->is_block)
            causes_add(causes, CAUSE_INVALID, &at_name, name,
                       "this volume has volumeMode %s: it belongs into %s",
                       is_block ? "Block" : "Filesystem", use->other);
        check_path(causes, &FIELD_NAME(&here, str_of(use->path)),
                   json_get(entry, str_of(use->path)));
    }
}

void application_check_volumes(struct causes *causes, const struct field_path *at_spec,
                               const struct application_view *v)
{
    const struct json *spec = json_get(v->object, STR("spec"));
    const struct field_path at_volumes = FIELD_NAME(at_spec, STR("volumes"));
    const struct field_path at_containers = FIELD_NAME(at_spec, STR("containers"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("volumes")), volume) {
        const struct field_path here = FIELD_INDEX(&at_volumes, i++);
        check_volume(causes, &here, volume);
    }
    i = 0;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("containers")), container) {
        const struct field_path here = FIELD_INDEX(&at_containers, i++);
        for (size_t u = 0; u < N_ELEMENTS(uses); u++)
            check_use(causes, &here, v, container, &uses[u]);
    }
}
