/* SPDX-License-Identifier: Apache-2.0 */
#include "api/timestamp.h"
#include "resources/checks.h"
#include "resources/go_struct.h"
#include "resources/resources.h"
#include "resources/volume.h"

#define FINALIZER "kubernetes.io/pv-protection"

/* The kinds of storage, in the order of kube-apiserver's struct, with what each cannot do without.
 */
static const struct {
    const char *name;
    const char *shown_as; /* in messages about its fields; NULL: as name */
    const char *required[3];
} sources[] = {
    {"gcePersistentDisk", "persistentDisk", {"pdName"}},
    {"awsElasticBlockStore", NULL, {"volumeID"}},
    {"hostPath", NULL, {"path"}},
    {"glusterfs", NULL, {"endpoints", "path"}},
    {"nfs", NULL, {"server", "path"}},
    {"rbd", NULL, {"monitors", "image"}},
    {"quobyte", NULL, {"registry", "volume"}},
    {"iscsi", NULL, {"targetPortal", "iqn"}},
    {"flexVolume", NULL, {"driver"}},
    {"cinder", NULL, {"volumeID"}},
    {"cephfs", NULL, {"monitors"}},
    {"fc", NULL, {NULL}},
    {"flocker", NULL, {NULL}},
    {"azureFile", NULL, {"secretName", "shareName"}},
    {"vsphereVolume", NULL, {"volumePath"}},
    {"azureDisk", NULL, {"diskName", "diskURI"}},
    {"photonPersistentDisk", NULL, {"pdID"}},
    {"portworxVolume", NULL, {"volumeID"}},
    {"scaleIO", NULL, {"gateway", "system", "volumeName"}},
    {"local", NULL, {"path"}},
    {"storageos", NULL, {"volumeName"}},
    {"csi", NULL, {"driver", "volumeHandle"}},
};

/* ---- preparing ---------------------------------------------------------------------------- */

static void stamp_phase(struct hook_context *h, struct json *status)
{
    (void) json_set(h->arena, status, STR("lastPhaseTransitionTime"),
                    json_string(timestamp_text(h->arena, h->now_us, TIMESTAMP_SECONDS)));
}

static void prepare_status(struct hook_context *h, const struct json *old, struct json *object)
{
    struct json *status = json_ensure_object(h->arena, object, STR("status"));
    const struct json *before = json_get(old, STR("status"));
    const bool has_moved = !same_member(before, status, STR("phase"));
    if (has_moved && same_member(before, status, STR("lastPhaseTransitionTime")))
        stamp_phase(h, status);
}

static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    if (str_is(h->subresource, "status")) {
        prepare_status(h, old, object);
    } else if (!old) {
        struct json status = json_object();
        (void) json_append_member(h->arena, &status, STR("phase"), json_string(STR("Pending")));
        stamp_phase(h, &status);
        (void) json_set(h->arena, object, STR("status"), status);
        volume_add_finalizer(h->arena, object, STR(FINALIZER));
    }
}

/* ---- sources ------------------------------------------------------------------------------ */

static bool has_back_step(struct str path)
{
    struct str part;
    while (str_split(&path, '/', &part))
        if (str_is(part, ".."))
            return true;
    return false;
}

static void check_path(struct causes *causes, const struct field_path *at,
                       const struct json *source)
{
    const struct json path = shown(json_get_str(source, STR("path")));
    if (has_back_step(json_str(&path)))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("path")), &path,
                   "must not contain '..'");
}

static void check_host_path(struct causes *causes, const struct field_path *at,
                            const struct json *source)
{
    static const struct str types[] = {STR(""),
                                       STR("BlockDevice"),
                                       STR("CharDevice"),
                                       STR("Directory"),
                                       STR("DirectoryOrCreate"),
                                       STR("File"),
                                       STR("FileOrCreate"),
                                       STR("Socket")};
    check_path(causes, at, source);
    check_supported(causes, &FIELD_NAME(at, STR("type")), json_get(source, STR("type")), types,
                    N_ELEMENTS(types));
}

static void check_absolute(struct causes *causes, const struct field_path *at,
                           const struct json *source)
{
    const struct json path = shown(json_get_str(source, STR("path")));
    if (!str_starts_with(json_str(&path), STR("/")))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("path")), &path,
                   "must be an absolute path");
}

static void check_source(struct causes *causes, const struct field_path *at_spec, size_t i,
                         const struct json *source)
{
    const struct field_path at =
        FIELD_NAME(at_spec, str_of(sources[i].shown_as ? sources[i].shown_as : sources[i].name));
    for (size_t j = 0; j < N_ELEMENTS(sources[i].required) && sources[i].required[j]; j++)
        check_required(causes, &at, source, str_of(sources[i].required[j]));
    if (str_is(str_of(sources[i].name), "hostPath"))
        check_host_path(causes, &at, source);
    else if (str_is(str_of(sources[i].name), "local"))
        check_path(causes, &at, source);
    else if (str_is(str_of(sources[i].name), "nfs"))
        check_absolute(causes, &at, source);
}

static void check_sources(struct causes *causes, const struct field_path *at,
                          const struct json *spec)
{
    size_t n = 0;
    for (size_t i = 0; i < N_ELEMENTS(sources); i++) {
        const struct json *source = json_get(spec, str_of(sources[i].name));
        if (!json_is(source, JSON_OBJECT))
            continue;
        if (n++ > 0)
            causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(at, str_of(sources[i].name)), NULL,
                       "may not specify more than 1 volume type");
        else
            check_source(causes, at, i, source);
    }
    if (n == 0)
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "must specify a volume type");
    if (json_is(json_get(spec, STR("local")), JSON_OBJECT) &&
        !json_is(json_get(spec, STR("nodeAffinity")), JSON_OBJECT))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, STR("nodeAffinity")), NULL,
                   "Local volume requires node affinity");
}

/* ---- rules -------------------------------------------------------------------------------- */

static void check_capacity(struct causes *causes, const struct field_path *at_spec,
                           const struct json *capacity)
{
    static const struct str storage[] = {STR("storage")};
    const struct field_path at = FIELD_NAME(at_spec, STR("capacity"));
    const struct json nothing = json_null();
    if (json_count(capacity) == 0)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL, "%s", "");
    if (!json_get(capacity, storage[0]) || json_count(capacity) > 1)
        causes_add_not_supported(causes, &at, capacity ? capacity : &nothing, storage,
                                 N_ELEMENTS(storage));
    JSON_FOR_EACH_MEMBER (capacity, m)
        check_positive(causes, &FIELD_KEY(&at, json_str(&m->key)), &m->value);
}

static void check_affinity(struct causes *causes, const struct field_path *at_spec,
                           const struct json *affinity)
{
    const struct field_path at = FIELD_NAME(at_spec, STR("nodeAffinity"));
    const struct field_path at_required = FIELD_NAME(&at, STR("required"));
    const struct json *required = json_get(affinity, STR("required"));
    if (!json_is(affinity, JSON_OBJECT))
        return;
    if (!json_is(required, JSON_OBJECT))
        causes_add(causes, CAUSE_REQUIRED, &at_required, NULL,
                   "must specify required node constraints");
    else if (json_count(json_get(required, STR("nodeSelectorTerms"))) == 0)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&at_required, STR("nodeSelectorTerms")),
                   NULL, "must have at least one node selector term");
}

static void check_class(struct causes *causes, const struct field_path *at_spec,
                        const struct json *spec)
{
    const struct str name = json_get_str(spec, STR("storageClassName"));
    if (name.n == 0)
        return;
    const struct name_errors errors = name_subdomain(causes->arena, name);
    object_meta_add_errors(causes, &FIELD_NAME(at_spec, STR("storageClassName")), name, &errors);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    static const struct str policies[] = {STR("Delete"), STR("Recycle"), STR("Retain")};
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_policy = FIELD_NAME(&at, STR("persistentVolumeReclaimPolicy"));
    const struct json *spec = json_get(object, STR("spec"));
    const struct json *policy = json_get(spec, STR("persistentVolumeReclaimPolicy"));
    if (str_is(h->subresource, "status"))
        return;
    check_required(causes, &at, spec, STR("accessModes"));
    volume_check_modes(causes, &FIELD_NAME(&at, STR("accessModes")),
                       json_get(spec, STR("accessModes")));
    check_capacity(causes, &at, json_get(spec, STR("capacity")));
    check_supported(causes, &at_policy, policy, policies, N_ELEMENTS(policies));
    check_affinity(causes, &at, json_get(spec, STR("nodeAffinity")));
    check_sources(causes, &at, spec);
    if (str_is(json_str(json_at(spec, "hostPath", "path", NULL)), "/") &&
        str_is(json_str(policy), "Recycle"))
        causes_add(causes, CAUSE_FORBIDDEN, &at_policy, NULL,
                   "may not be 'recycle' for a hostPath mount of '/'");
    check_class(causes, &at, spec);
    volume_check_volume_mode(causes, &at, spec);
}

/* The source alone, as kube-apiserver's struct holds it. */
static struct json source_struct(struct hook_context *h, const struct json *object)
{
    const struct schema *spec_schema = schema_member(h->kind->schema, STR("spec"));
    const struct json *spec = json_get(object, STR("spec"));
    struct json out = json_object();
    for (size_t i = 0; i < N_ELEMENTS(sources); i++) {
        const struct str name = str_of(sources[i].name);
        const struct json *source = json_get(spec, name);
        (void) json_append_member(
            h->arena, &out, go_field_name(h->arena, STR(""), name),
            json_is(source, JSON_OBJECT)
                ? go_struct_of(h->arena, schema_member(spec_schema, name), source, name)
                : json_null());
    }
    return out;
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    if (str_is(h->subresource, "status"))
        return;
    const struct json before = source_struct(h, old), after = source_struct(h, object);
    if (!json_equal(&before, &after))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(&at, STR("persistentvolumesource")), NULL,
                   "spec.persistentvolumesource is immutable after creation\n%.*s",
                   STR_ARG(go_struct_diff(h->arena, &before, &after)));
    object_meta_check_immutable(causes, &FIELD_NAME(NULL, STR("volumeMode")),
                                json_at(old, "spec", "volumeMode", NULL),
                                json_at(object, "spec", "volumeMode", NULL));
    const struct json *affinity = json_at(old, "spec", "nodeAffinity", NULL);
    if (affinity)
        object_meta_check_immutable(causes, &FIELD_NAME(NULL, STR("nodeAffinity")), affinity,
                                    json_at(object, "spec", "nodeAffinity", NULL));
}

const struct kind_hooks persistentvolume_hooks = {
    .group = STR(""),
    .plural = STR("persistentvolumes"),
    .prepare = prepare,
    .validate = validate,
    .validate_update = validate_update,
    .returns_deleted = true,
};
