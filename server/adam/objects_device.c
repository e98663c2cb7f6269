/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and their configurations. */
#include <errno.h>

#include "adam/objects.h"
#include "protobuf/protojson.h"
#include "settings/settings.h"

#define DEVICES STR("devices")
#define CONFIGS STR("deviceconfigs")
/* What server/resources/device.c gives the Device as its uuid. */
#define GIVEN_UUID SETTINGS_PREFIX "uuid"
/* On a Device that is not whole yet. */
#define HELD_BACK SETTINGS_PREFIX "import"
/* Digits of the certificate's digest in the name of its Device, as of one that registers. */
#define NAME_DIGITS 8

static struct str meta_of(const struct json *object, const char *key)
{
    return json_str(json_at(object, "metadata", key, NULL));
}

/* ---- making ---------------------------------------------------------------------------------- */

static struct json annotations_of(struct arena *a, const struct adam_new_device *d)
{
    struct json annotations = json_object();
    adam_add(a, &annotations, SETTINGS_ACTIVATE, d->is_held_back ? STR("false") : STR("true"));
    if (d->is_held_back)
        adam_add(a, &annotations, HELD_BACK, STR("incomplete"));
    if (d->uuid.n)
        adam_add(a, &annotations, GIVEN_UUID, d->uuid);
    return annotations;
}

static struct json *device_object(const struct adam_place *p, const struct adam_new_device *d,
                                  struct str name)
{
    struct arena *a = p->arena;
    struct json *object = json_new(a, json_object());
    struct json metadata = json_object(), spec = json_object();
    adam_add(a, &metadata, "name", name);
    adam_add(a, &metadata, "namespace", p->namespace);
    (void) json_append_member(a, &metadata, STR("annotations"), annotations_of(a, d));
    adam_add(a, &spec, "certificate", pki_cert_pem(a, d->cert));
    if (d->onboard)
        adam_add(a, &spec, "onboard", pki_cert_pem(a, d->onboard));
    if (d->serial.n)
        adam_add(a, &spec, "serial", d->serial);
    adam_add(a, object, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    adam_add(a, object, "kind", STR("Device"));
    (void) json_append_member(a, object, STR("metadata"), metadata);
    (void) json_append_member(a, object, STR("spec"), spec);
    return object;
}

static bool is_taken(int result, const struct status *st)
{
    return result == -EINVAL && st->causes && str_is(st->causes->field, "spec.certificate");
}

int adam_create_device(const struct adam_place *p, const struct adam_new_device *d,
                       struct json **ret_device)
{
    unsigned char hash[SHA256_BYTES];
    pki_cert_fingerprint(d->cert, hash);
    const struct str hex = pki_hex(p->arena, hash, sizeof(hash));
    int r = -EEXIST;
    for (size_t n = NAME_DIGITS; n <= hex.n && r == -EEXIST; n += NAME_DIGITS) {
        const struct str name = arena_printf(p->arena, "eve-%.*s", STR_ARG(str_sub(hex, 0, n)));
        r = adam_write(p, VERB_CREATE, DEVICES, STR_NONE, device_object(p, d, name), ret_device);
        if (is_taken(r, p->st))
            return -EEXIST;
    }
    return r == -EEXIST ? status_fail(p->st, 409, "Conflict", "all names for it are taken") : r;
}

/* ---- holding back ---------------------------------------------------------------------------- */

bool adam_is_held_back(const struct json *device)
{
    return json_get(json_at(device, "metadata", "annotations", NULL), STR(HELD_BACK)) != NULL;
}

int adam_release_device(const struct adam_place *p, const struct json *device)
{
    struct arena *a = p->arena;
    struct json patch = json_object(), metadata = json_object(), annotations = json_object();
    adam_add(a, &annotations, SETTINGS_ACTIVATE, STR("true"));
    (void) json_append_member(a, &annotations, STR(HELD_BACK), json_null());
    (void) json_append_member(a, &metadata, STR("annotations"), annotations);
    (void) json_append_member(a, &patch, STR("metadata"), metadata);
    return adam_write(p, VERB_PATCH, DEVICES, meta_of(device, "name"), &patch, NULL);
}

/* ---- configurations -------------------------------------------------------------------------- */

Eve__Config__EdgeDevConfig *adam_read_config(struct arena *a, struct str text, bool is_binary,
                                             struct str *ret_error)
{
    struct json_parse_result parsed = {0};
    if (is_binary) {
        *ret_error = STR("these bytes are no EdgeDevConfig");
        return PB_UNPACK(a, eve__config__edge_dev_config, text);
    }
    if (json_parse(a, text, &parsed) < 0) {
        *ret_error = parsed.error;
        return NULL;
    }
    return (void *) protojson_read(a, &eve__config__edge_dev_config__descriptor, parsed.value,
                                   PROTOJSON_REFUSE_UNKNOWN, /* ret_n_ignored= */ NULL, ret_error);
}

/* What the device is told when the configuration itself does not say. */
static void set_version(struct arena *a, Eve__Config__EdgeDevConfig *config, struct str version)
{
    if (!version.n || (config->id && pb_text(config->id->version).n))
        return;
    if (!config->id) {
        config->id = ARENA_NEW(a, Eve__Config__UUIDandVersion);
        eve__config__uuidand_version__init(config->id);
    }
    config->id->version = arena_strz(a, version);
}

int adam_get_config(const struct adam_place *p, const struct json *device,
                    Eve__Config__EdgeDevConfig **ret_config)
{
    struct json *object = NULL;
    struct str error = STR_NONE;
    int r = adam_get(p, CONFIGS, meta_of(device, "name"), &object);
    const struct json *config = r < 0 ? NULL : json_at(object, "spec", "config", NULL);
    if (r < 0 || !config)
        return r < 0 ? r : -ENOENT;
    *ret_config =
        (void *) protojson_read(p->arena, &eve__config__edge_dev_config__descriptor, config,
                                PROTOJSON_IGNORE_UNKNOWN, /* ret_n_ignored= */ NULL, &error);
    if (*ret_config) {
        set_version(p->arena, *ret_config, json_str(json_at(object, "status", "version", NULL)));
        return 0;
    }
    (void) status_fail(p->st, 500, "InternalError", "the DeviceConfig cannot be read: %.*s",
                       STR_ARG(error));
    return -EBADMSG;
}

static struct json *new_config(const struct adam_place *p, const struct json *device,
                               struct json spec)
{
    struct arena *a = p->arena;
    struct json *object = json_new(a, json_object());
    struct json metadata = json_object(), owners = json_array(), owner = json_object();
    adam_add(a, &owner, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    adam_add(a, &owner, "kind", STR("Device"));
    adam_add(a, &owner, "name", meta_of(device, "name"));
    adam_add(a, &owner, "uid", meta_of(device, "uid"));
    (void) json_push(a, &owners, owner);
    adam_add(a, &metadata, "name", meta_of(device, "name"));
    adam_add(a, &metadata, "namespace", p->namespace);
    (void) json_append_member(a, &metadata, STR("ownerReferences"), owners);
    adam_add(a, object, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    adam_add(a, object, "kind", STR("DeviceConfig"));
    (void) json_append_member(a, object, STR("metadata"), metadata);
    (void) json_append_member(a, object, STR("spec"), spec);
    return object;
}

/* Nothing is composed into it: all of it is its writer's. */
static void claim_whole(struct arena *a, struct json *object)
{
    struct json *metadata = json_ensure_object(a, object, STR("metadata"));
    struct json *annotations = json_ensure_object(a, metadata, STR("annotations"));
    (void) json_set(a, annotations, STR(SETTINGS_COMPOSED), json_string(STR("false")));
}

static int put_once(const struct adam_place *p, const struct json *device, struct json spec,
                    struct json **ret_object)
{
    const struct str name = meta_of(device, "name");
    struct json *object = NULL;
    const int r = adam_get(p, CONFIGS, name, &object);
    if (r < 0 && r != -ENOENT)
        return r;
    if (r == -ENOENT)
        object = new_config(p, device, spec);
    claim_whole(p->arena, object);
    (void) json_set(p->arena, object, STR("spec"), spec);
    return adam_write(p, r == -ENOENT ? VERB_CREATE : VERB_UPDATE, CONFIGS, name, object,
                      ret_object);
}

int adam_put_config(const struct adam_place *p, const struct json *device,
                    const Eve__Config__EdgeDevConfig *config, struct json **ret_object)
{
    static const struct protojson_options keep = {.keep_unknown = true};
    struct json spec = json_object();
    (void) json_append_member(p->arena, &spec, STR("config"),
                              *protojson_value(p->arena, &config->message, &keep));
    int r = -ESTALE;
    for (int i = 0; i < ADAM_MAX_ATTEMPTS && (r == -ESTALE || r == -EEXIST); i++)
        r = put_once(p, device, spec, ret_object);
    return r;
}
