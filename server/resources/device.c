/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: each has its uuid from the moment it is made, and no two the same certificate. */
#include <inttypes.h>

#include "base/uuid.h"
#include "resources/checks.h"
#include "resources/device_certificate.h"
#include "resources/device_options.h"
#include "resources/eve_references.h"
#include "resources/identity.h"
#include "resources/resources.h"

/* For those who may do everything: the uuid that a device has had elsewhere. */
#define GIVEN_UUID STR("eve.lfedge.org/uuid")
/* eve.lfedge.org/network-<port>: the DeviceNetwork of a port. */
#define PORT_NETWORK STR("eve.lfedge.org/network-")

/* ---- what the server writes ---------------------------------------------------------------- */

static struct json *annotations_of(const struct json *object)
{
    return json_at(object, "metadata", "annotations", NULL);
}

static bool may_give_uuid(const struct hook_context *h)
{
    return h->user && user_has_group(h->user, STR(GROUP_MASTERS));
}

/* A device that moves here from another controller keeps its uuid. */
static struct str given_uuid(struct hook_context *h, struct json *object)
{
    char text[UUID_TEXT_BYTES];
    struct uuid uuid;
    struct json *annotations = annotations_of(object);
    const struct str given = json_get_str(annotations, GIVEN_UUID);
    if (!given.p || !may_give_uuid(h) || uuid_parse(given, &uuid) < 0 || uuid_is_zero(&uuid))
        return STR_NONE;
    (void) json_remove(annotations, GIVEN_UUID);
    if (json_count(annotations) == 0)
        (void) json_remove(json_get(object, STR("metadata")), STR("annotations"));
    uuid_text(&uuid, text);
    return arena_str(h->arena, str_of(text));
}

/* running/wanted, which no path of a column could show. */
static void sum_up(struct hook_context *h, struct json *object)
{
    struct json *apps = json_at(object, "status", "apps", NULL);
    if (!json_is(apps, JSON_OBJECT))
        return;
    const struct str summary =
        arena_printf(h->arena, "%" PRId64 "/%" PRId64, json_get_int(apps, STR("running"), 0),
                     json_get_int(apps, STR("wanted"), 0));
    (void) json_set(h->arena, apps, STR("summary"), json_string(summary));
}

static void begin_apps(struct hook_context *h, struct json *object)
{
    struct json *status = identity_own_status(h, object, /* n_more= */ 1);
    struct json apps = json_object();
    (void) json_append_member(h->arena, &apps, STR("wanted"), json_int(0));
    (void) json_append_member(h->arena, &apps, STR("running"), json_int(0));
    (void) json_set(h->arena, status, STR("apps"), apps);
}

/* Kept so that nobody has to read certificates to tell devices apart. */
static void set_fingerprint(struct hook_context *h, const struct json *old, struct json *object)
{
    const struct json *certificate = json_at(object, "spec", "certificate", NULL),
                      *was = json_at(old, "spec", "certificate", NULL);
    struct str fingerprint = json_str(json_at(old, "status", "fingerprint", NULL));
    if (!certificate || !was || !fingerprint.n || !json_equal(certificate, was))
        fingerprint = device_certificate_fingerprint(h->arena, certificate);
    struct json *status = json_get(object, STR("status"));
    if (fingerprint.n)
        (void) json_set(h->arena, status, STR("fingerprint"), json_string(fingerprint));
    else
        (void) json_remove(status, STR("fingerprint"));
}

static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    identity_prepare_as(h, old, object, old ? STR_NONE : given_uuid(h, object));
    if (!old) {
        identity_begin_ready(h, object, STR("NeverSeen"),
                             STR("the device has not been in touch yet"));
        begin_apps(h, object);
    }
    (void) identity_own_status(h, object, /* n_more= */ 1);
    set_fingerprint(h, old, object);
    if (!old || str_is(h->subresource, "status"))
        sum_up(h, object);
}

/* ---- rules --------------------------------------------------------------------------------- */

static void check(struct hook_context *h, const struct json *old, const struct json *object,
                  struct causes *causes)
{
    device_certificate_check(causes, old, object, "certificate");
    device_certificate_check(causes, old, object, "onboard");
    device_options_check_annotations(h, annotations_of(old), annotations_of(object), causes);
}

/* It is gone by now where it counted. */
static void check_given_uuid(const struct hook_context *h, const struct json *object,
                             struct causes *causes)
{
    const struct field_path meta = FIELD_NAME(NULL, STR("metadata"));
    const struct field_path annotations = FIELD_NAME(&meta, STR("annotations"));
    const struct field_path at = FIELD_KEY(&annotations, GIVEN_UUID);
    const struct json *given = json_get(annotations_of(object), GIVEN_UUID);
    if (!given)
        return;
    if (may_give_uuid(h))
        causes_add(causes, CAUSE_INVALID, &at, given, "must be a UUID");
    else
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "only members of " GROUP_MASTERS " may choose the uuid of a device");
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    if (h->operation != WRITE_CREATE)
        return;
    check(h, NULL, object, causes);
    check_given_uuid(h, object, causes);
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    check(h, old, object, causes);
    identity_check(h, old, object, causes);
}

static struct str certificate_of(struct arena *a, const struct json *object)
{
    const struct str known = json_str(json_at(object, "status", "fingerprint", NULL));
    return known.n
               ? known
               : device_certificate_fingerprint(a, json_at(object, "spec", "certificate", NULL));
}

static struct str uuid_of(struct arena *a, const struct json *object)
{
    (void) a;
    return json_str(json_at(object, "status", "uuid", NULL));
}

/* ---- references ---------------------------------------------------------------------------- */

/* A version may be named before there is an Image of it, and need not be while the device runs it.
 */
static void refer_version(struct reference_list *l, const struct json *object)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    const struct str wanted = json_str(json_at(object, "spec", "eve-os-version", NULL)),
                     runs = json_str(json_at(object, "status", "eve-os-version", NULL));
    struct str warning = STR_NONE;
    if (l->wants_fields && wanted.n && !str_eq(wanted, runs))
        warning = arena_printf(l->arena,
                               "spec.eve-os-version: no Image of type eve-os in this namespace has "
                               "the tag \"%.*s\": the device stays as it is until there is one",
                               STR_ARG(wanted));
    reference_add(l, &FIELD_NAME(&spec, STR("eve-os-version")),
                  &(struct reference){.collection = REFERENCE_EVE_OS_DEVICES,
                                      .namespace = eve_namespace_of(object),
                                      .name = wanted,
                                      .flags = REFERENCE_WEAK,
                                      .wants = REFERENCE_EVE_OS_IMAGES,
                                      .warning = warning});
}

static void refer(struct reference_list *l, const struct json *object)
{
    const struct field_path meta = FIELD_NAME(NULL, STR("metadata"));
    const struct field_path annotations = FIELD_NAME(&meta, STR("annotations"));
    JSON_FOR_EACH_MEMBER (annotations_of(object), m)
        if (str_starts_with(json_str(&m->key), PORT_NETWORK))
            reference_add(l, &FIELD_KEY(&annotations, json_str(&m->key)),
                          &(struct reference){.collection = COLLECTION_NETWORKS,
                                              .namespace = eve_namespace_of(object),
                                              .name = json_str(&m->value)});
    refer_version(l, object);
}

static const struct kind_unique unique[] = {
    {"spec.certificate", certificate_of}, {"status.uuid", uuid_of}, {NULL, NULL}};

const struct kind_hooks device_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("devices"),
    .prepare = prepare,
    .validate = validate,
    .validate_update = validate_update,
    .unique = unique,
    .refer = refer,
};
