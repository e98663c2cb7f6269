/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that a registration meets or makes. */
#include <errno.h>

#include "api/event_record.h"
#include "base/log.h"
#include "device/onboarding_internal.h"
#include "settings/settings.h"
#include "json/json.h"

/* The first name that is free: eight digits of the hash, more when another device has those. */
#define NAME_DIGITS 8
#define NAME_MORE_DIGITS 8

/* ---- telling --------------------------------------------------------------------------------- */

struct sponsor sponsor_of(const struct registration *r, const struct index_found *f)
{
    const struct str own = r->query.serial.n ? r->query.serial : r->query.soft_serial;
    return (struct sponsor){.api_version = STR("eve.lfedge.org/v1beta1"),
                            .kind = str_of(index_kind_name(f->kind)),
                            .namespace = f->namespace,
                            .name = f->name,
                            .uid = f->uid,
                            .into = f->namespace,
                            .serial = f->serial.p ? f->serial : own};
}

void registration_tell(struct registration *r, const struct sponsor *about, bool is_warning,
                       const char *reason, struct str key)
{
    const struct onboarding_options *o = &r->onboarding->options;
    const struct event_notice n = {
        .about = {about->api_version, about->kind, about->namespace, about->name, about->uid},
        .is_warning = is_warning,
        .reason = reason,
        .message = r->reason,
        .key = key};
    const int result = event_record(o->client, o->clock, &n);
    if (result < 0)
        log_warning("an Event could not be recorded", LOG_TEXT("reason", reason),
                    LOG_STR("name", about->name), LOG_ERRNO(result));
}

/* Of what repeats, now and then. */
static void tell_of(struct registration *r, const struct index_found *f, enum index_notice notice)
{
    static const char *const reasons[] = {[INDEX_AGAIN] = "RegisteredAgain",
                                          [INDEX_CONFLICT] = "RegistrationConflict",
                                          [INDEX_REFUSED] = "RegistrationRefused"};
    const struct clock *clock = r->onboarding->options.clock;
    const struct sponsor about = sponsor_of(r, f);
    int64_t ignored = 0;
    if (onboarding_index_may_tell(&r->onboarding->index, f, notice, clock->wall_us(clock),
                                  &ignored))
        registration_tell(r, &about, /* is_warning= */ notice != INDEX_AGAIN, reasons[notice],
                          STR_NONE);
}

/* ---- a Device that is there --------------------------------------------------------------------
 */

static bool is_certificate_of(const struct registration *r, struct str text)
{
    CLEANUP(pki_cert_freep) struct pki_cert *c = NULL;
    unsigned char hash[SHA256_BYTES];
    const char *reason = NULL;
    if (pki_cert_decode(text, &c, &reason) < 0)
        return false;
    pki_cert_fingerprint(c, hash);
    return memcmp(hash, r->query.certificate_hash, sizeof(hash)) == 0;
}

/* Both learn of a Device before its event comes: the next request of the device must find it. */
static void take(struct registration *r, const struct json *device)
{
    (void) onboarding_index_take(&r->onboarding->index, INDEX_DEVICE, device);
    device_unref(roster_take(r->onboarding->options.roster, json_text(r->arena, device)));
}

/* Another Device came to the certificate before its event came to us. */
static bool is_taken(int result, const struct status *st)
{
    return result == -EINVAL && st->causes && str_is(st->causes->field, "spec.certificate");
}

static int bind(struct registration *r, const struct index_found *f, struct json *device)
{
    struct status st;
    struct json *written = NULL;
    struct json *spec = json_ensure_object(r->arena, device, STR("spec"));
    (void) json_set(r->arena, spec, STR("certificate"),
                    json_string(pki_cert_pem(r->arena, r->certificate)));
    struct kube_request update =
        onboarding_request(VERB_UPDATE, INDEX_DEVICE, f->namespace, f->name);
    update.body = device;
    status_init(&st, r->arena);
    const int result =
        kube_request(r->onboarding->options.client, r->arena, &update, &written, &st);
    if (result == -ESTALE || result == -ENOENT || is_taken(result, &st))
        return -EAGAIN;
    if (result < 0)
        return registration_put_off(r, &st);
    take(r, written);
    (void) registration_settle(r, 201,
                               "registered as Device %.*s/%.*s, which has its onboarding "
                               "certificate or serial number, from %.*s",
                               STR_ARG(f->namespace), STR_ARG(f->name), STR_ARG(r->source));
    const struct sponsor about = sponsor_of(r, f);
    registration_tell(r, &about, /* is_warning= */ false, "Registered", STR_NONE);
    return 0;
}

static bool is_active(const struct json *device)
{
    const struct json *annotations = json_at(device, "metadata", "annotations", NULL);
    return !str_is(json_get_str(annotations, STR(SETTINGS_ACTIVATE)), "false");
}

static int meet(struct registration *r, const struct index_found *f, struct json *device)
{
    const struct str certificate = json_str(json_at(device, "spec", "certificate", NULL));
    if (json_at(device, "metadata", "deletionTimestamp", NULL)) {
        r->retry_after_s = 5;
        return registration_settle(r, 503, "Device %.*s/%.*s is being deleted",
                                   STR_ARG(f->namespace), STR_ARG(f->name));
    }
    if (!is_active(device)) {
        (void) registration_settle(r, 403, "Device %.*s/%.*s is not active", STR_ARG(f->namespace),
                                   STR_ARG(f->name));
        tell_of(r, f, INDEX_REFUSED);
        return 0;
    }
    if (!certificate.n)
        return bind(r, f, device);
    if (!is_certificate_of(r, certificate)) {
        (void) registration_settle(r, 409,
                                   "another certificate is registered with this onboarding "
                                   "certificate and serial number, as Device %.*s/%.*s; delete it "
                                   "or remove its certificate to let the device in",
                                   STR_ARG(f->namespace), STR_ARG(f->name));
        tell_of(r, f, INDEX_CONFLICT);
        return 0;
    }
    (void) registration_settle(r, 200, "registered again as Device %.*s/%.*s from %.*s",
                               STR_ARG(f->namespace), STR_ARG(f->name), STR_ARG(r->source));
    tell_of(r, f, INDEX_AGAIN);
    return 0;
}

int registration_meet(struct registration *r, const struct index_found *f)
{
    struct status st;
    struct json *device = NULL;
    const struct kube_request get =
        onboarding_request(VERB_GET, INDEX_DEVICE, f->namespace, f->name);
    status_init(&st, r->arena);
    const int result = kube_request(r->onboarding->options.client, r->arena, &get, &device, &st);
    if (result == -ENOENT) {
        onboarding_index_forget(&r->onboarding->index, INDEX_DEVICE, f->namespace, f->name);
        return -EAGAIN;
    }
    if (result < 0)
        return registration_put_off(r, &st);
    (void) onboarding_index_take(&r->onboarding->index, INDEX_DEVICE, device);
    /* The index knows it better now: does it still fit? */
    struct index_found again;
    if (!(onboarding_index_by_certificate(&r->onboarding->index, r->arena, &r->query, &again) ||
          onboarding_index_by_identity(&r->onboarding->index, r->arena, &r->query, &again)) ||
        !str_eq(again.name, f->name) || !str_eq(again.namespace, f->namespace))
        return -EAGAIN;
    return meet(r, f, device);
}

/* ---- what lets it in ------------------------------------------------------------------------ */

int registration_check(struct registration *r, const struct index_found *f)
{
    struct status st;
    struct json *object = NULL;
    const struct kube_request get = onboarding_request(VERB_GET, f->kind, f->namespace, f->name);
    status_init(&st, r->arena);
    const int result = kube_request(r->onboarding->options.client, r->arena, &get, &object, &st);
    if (result == -ENOENT) {
        onboarding_index_forget(&r->onboarding->index, f->kind, f->namespace, f->name);
        return -EAGAIN;
    }
    if (result < 0) {
        (void) registration_put_off(r, &st);
        return result;
    }
    return onboarding_index_take(&r->onboarding->index, f->kind, object) ? -EAGAIN : 0;
}

/* ---- a Device that is made ----------------------------------------------------------------- */

static void add(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

static struct json *new_device(const struct registration *r, const struct sponsor *s,
                               struct str name)
{
    struct arena *a = r->arena;
    struct json *device = json_new(a, json_object());
    struct json meta = json_object(), annotations = json_object(), spec = json_object();
    add(a, &annotations, SETTINGS_ACTIVATE, STR("true"));
    add(a, &annotations, SETTINGS_ONBOARDED_BY,
        arena_printf(a, "%.*s/%.*s", STR_ARG(s->kind), STR_ARG(s->name)));
    add(a, &meta, "name", name);
    add(a, &meta, "namespace", s->into);
    (void) json_append_member(a, &meta, STR("annotations"), annotations);
    add(a, &spec, "certificate", pki_cert_pem(a, r->certificate));
    if (r->onboard)
        add(a, &spec, "onboard", pki_cert_pem(a, r->onboard));
    if (s->serial.n)
        add(a, &spec, "serial", s->serial);
    add(a, device, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    add(a, device, "kind", STR("Device"));
    (void) json_append_member(a, device, STR("metadata"), meta);
    (void) json_append_member(a, device, STR("spec"), spec);
    return device;
}

/* -EEXIST: the name is taken. */
static int create(struct registration *r, const struct sponsor *s, struct str name,
                  struct json **ret, struct status *st)
{
    struct kube_request request = onboarding_request(VERB_CREATE, INDEX_DEVICE, s->into, STR_NONE);
    request.body = new_device(r, s, name);
    status_init(st, r->arena);
    return kube_request(r->onboarding->options.client, r->arena, &request, ret, st);
}

/* The name is taken: by this very device, whose event has not come yet, or by another. */
static bool is_there(struct registration *r, const struct sponsor *s, struct str name)
{
    struct status st;
    struct json *device = NULL;
    const struct kube_request get = onboarding_request(VERB_GET, INDEX_DEVICE, s->into, name);
    status_init(&st, r->arena);
    if (kube_request(r->onboarding->options.client, r->arena, &get, &device, &st) < 0 ||
        !is_certificate_of(r, json_str(json_at(device, "spec", "certificate", NULL))))
        return false;
    (void) onboarding_index_take(&r->onboarding->index, INDEX_DEVICE, device);
    return true;
}

static int made(struct registration *r, const struct sponsor *s, const struct json *device,
                struct str name)
{
    take(r, device);
    (void) registration_settle(r, 201,
                               "registered as Device %.*s/%.*s by %.*s %.*s, serial number "
                               "\"%.*s\", from %.*s",
                               STR_ARG(s->into), STR_ARG(name), STR_ARG(s->kind), STR_ARG(s->name),
                               STR_ARG(s->serial), STR_ARG(r->source));
    registration_tell(r, s, /* is_warning= */ false, "DeviceRegistered", name);
    return 0;
}

/* A quota, a webhook, a namespace that is gone: for people to mend. The device asks again. */
static int could_not(struct registration *r, const struct sponsor *s, int result,
                     const struct status *st)
{
    (void) registration_put_off(r, st);
    if (result == -EPERM)
        r->status = 403;
    r->reason = arena_printf(r->arena, "no Device could be made in namespace %.*s: %.*s",
                             STR_ARG(s->into), STR_ARG(st->message));
    if (registration_may_warn(r))
        registration_tell(r, s, /* is_warning= */ true, "DeviceNotMade", STR_NONE);
    return 0;
}

int registration_make(struct registration *r, const struct sponsor *s, struct str *ret_name)
{
    const struct str hex = pki_hex(r->arena, r->query.certificate_hash, SHA256_BYTES);
    for (size_t digits = NAME_DIGITS; digits <= hex.n; digits += NAME_MORE_DIGITS) {
        struct status st;
        struct json *device = NULL;
        const struct str name =
            arena_printf(r->arena, "eve-%.*s", STR_ARG(str_sub(hex, 0, digits)));
        const int result = create(r, s, name, &device, &st);
        if (ret_name)
            *ret_name = name;
        if (result == 0)
            return made(r, s, device, name);
        if (is_taken(result, &st) || (result == -EEXIST && is_there(r, s, name)))
            return -EAGAIN;
        if (result != -EEXIST)
            return could_not(r, s, result, &st);
    }
    return registration_settle(r, 503, "all names for this certificate are taken");
}
