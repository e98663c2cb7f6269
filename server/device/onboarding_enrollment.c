/* SPDX-License-Identifier: Apache-2.0 */
/* EnrollmentRequests: devices that nothing lets in, and what becomes of those that are approved. */
#include <errno.h>

#include "base/log.h"
#include "device/onboarding_internal.h"
#include "json/json.h"

#define MAX_ATTEMPTS 8

static int ask(struct registration *r, const struct kube_request *request, struct json **ret,
               struct status *st)
{
    status_init(st, r->arena);
    return kube_request(r->onboarding->options.client, r->arena, request, ret, st);
}

static void add(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct json *new_request(const struct registration *r)
{
    struct arena *a = r->arena;
    struct json *request = json_new(a, json_object());
    struct json meta = json_object(), spec = json_object();
    add(a, &meta, "name", pki_hex(a, r->query.certificate_hash, SHA256_BYTES));
    add(a, &meta, "namespace", STR(ONBOARDING_NAMESPACE));
    add(a, &spec, "certificate", pki_cert_pem(a, r->certificate));
    add(a, &spec, "onboard", pki_cert_pem(a, r->onboard));
    if (r->query.serial.n)
        add(a, &spec, "serial", r->query.serial);
    if (r->query.soft_serial.n)
        add(a, &spec, "softSerial", r->query.soft_serial);
    if (r->source.n)
        add(a, &spec, "sourceAddress", r->source);
    add(a, request, "apiVersion", STR("eve.lfedge.org/v1beta1"));
    add(a, request, "kind", STR("EnrollmentRequest"));
    (void) json_append_member(a, request, STR("metadata"), meta);
    (void) json_append_member(a, request, STR("spec"), spec);
    return request;
}

/* The namespace is ours: whoever needs it first makes it. */
static int make_namespace(struct registration *r, struct status *st)
{
    struct json namespace = json_object(), meta = json_object();
    add(r->arena, &meta, "name", STR(ONBOARDING_NAMESPACE));
    (void) json_append_member(r->arena, &namespace, STR("metadata"), meta);
    const struct kube_request create = {.verb = VERB_CREATE,
                                        .group = STR(""),
                                        .version = STR("v1"),
                                        .resource = STR("namespaces"),
                                        .body = &namespace};
    const int result = ask(r, &create, NULL, st);
    return result == -EEXIST ? 0 : result;
}

static int create_request(struct registration *r, struct json **ret, struct status *st)
{
    struct kube_request create =
        onboarding_request(VERB_CREATE, INDEX_ENROLLMENT, STR(ONBOARDING_NAMESPACE), STR_NONE);
    create.body = new_request(r);
    int result = ask(r, &create, ret, st);
    if (result == -ENOENT && make_namespace(r, st) == 0)
        result = ask(r, &create, ret, st);
    return result;
}

/* How often and when, now and then; and an Event. */
static void count(struct registration *r, const struct index_found *f)
{
    const struct clock *clock = r->onboarding->options.clock;
    const int64_t now_us = clock->wall_us(clock);
    int64_t n = 0;
    if (!onboarding_index_may_tell(&r->onboarding->index, f, INDEX_REFUSED, now_us, &n))
        return;
    struct status st;
    struct json *request = NULL;
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(now_us, now);
    const struct kube_request get =
        onboarding_request(VERB_GET, INDEX_ENROLLMENT, f->namespace, f->name);
    if (ask(r, &get, &request, &st) == 0) {
        struct json *status = json_ensure_object(r->arena, request, STR("status"));
        n += json_get_int(status, STR("requests"), 0);
        (void) json_set(r->arena, status, STR("requests"), json_int(n));
        (void) json_set(r->arena, status, STR("lastRequestTime"), json_string(str_of(now)));
        (void) json_set(r->arena, status, STR("fingerprint"),
                        json_string(pki_hex(r->arena, r->query.certificate_hash, SHA256_BYTES)));
        struct kube_request update =
            onboarding_request(VERB_UPDATE, INDEX_ENROLLMENT, f->namespace, f->name);
        update.subresource = STR("status");
        update.body = request;
        /* Whoever decides meanwhile is more important than a count. */
        (void) ask(r, &update, NULL, &st);
    }
    const struct sponsor about = sponsor_of(r, f);
    registration_tell(r, &about, /* is_warning= */ true, "RegistrationRefused", STR_NONE);
}

static int refuse(struct registration *r, const struct index_found *f)
{
    (void) registration_settle(r, 403,
                               f->is_denied ? "EnrollmentRequest %.*s/%.*s is denied"
                               : f->is_spent
                                   ? "the Device that EnrollmentRequest %.*s/%.*s let in was "
                                     "deleted; delete the request to let the device ask anew"
                                   : "nothing lets the device in: no Device, OnboardCertificate or "
                                     "authority fits; approve EnrollmentRequest %.*s/%.*s to do so",
                               STR_ARG(f->namespace), STR_ARG(f->name));
    count(r, f);
    return 0;
}

static int enroll_anew(struct registration *r)
{
    struct onboarding_index *x = &r->onboarding->index;
    struct status st;
    struct json *request = NULL;
    struct index_found f;
    if (!onboarding_index_reserve(x, ONBOARDING_MAX_ENROLLMENTS)) {
        if (registration_may_warn(r))
            log_warning("devices are refused without an EnrollmentRequest: there are too many",
                        LOG_INT("limit", ONBOARDING_MAX_ENROLLMENTS));
        return registration_settle(r, 403,
                                   "nothing lets the device in, and %d EnrollmentRequests wait "
                                   "already",
                                   ONBOARDING_MAX_ENROLLMENTS);
    }
    const int result = create_request(r, &request, &st);
    if (result == 0)
        (void) onboarding_index_take(x, INDEX_ENROLLMENT, request);
    onboarding_index_release(x);
    if (result < 0 && result != -EEXIST)
        return registration_put_off(r, &st);
    if (!onboarding_index_enrollment(x, r->arena, &r->query, &f))
        return registration_settle(r, 403, "nothing lets the device in");
    return refuse(r, &f);
}

/* ---- approved -------------------------------------------------------------------------------- */

static struct sponsor sponsor_in(struct registration *r, const struct index_found *f,
                                 const struct json *request)
{
    struct sponsor s = sponsor_of(r, f);
    const struct str namespace = json_str(json_at(request, "status", "namespace", NULL));
    s.into = namespace.n ? namespace : STR("default");
    return s;
}

static void clear_failed(struct json *conditions)
{
    for (size_t i = json_count(conditions); i-- > 0;)
        if (str_is(json_get_str(&conditions->items[i], STR("type")), "Failed"))
            json_remove_at(conditions, i);
}

static void set_failed(struct registration *r, struct json *conditions)
{
    char now[CLOCK_SECONDS_BYTES];
    const struct clock *clock = r->onboarding->options.clock;
    struct json failed = json_object();
    clock_format_seconds(clock->wall_us(clock), now);
    add(r->arena, &failed, "type", STR("Failed"));
    add(r->arena, &failed, "status", STR("True"));
    add(r->arena, &failed, "reason", STR("DeviceNotMade"));
    add(r->arena, &failed, "message", r->reason);
    add(r->arena, &failed, "lastTransitionTime", arena_str(r->arena, str_of(now)));
    if (conditions)
        (void) json_push(r->arena, conditions, failed);
}

/* What became of it. -ESTALE: somebody else wrote to it. */
static int write_outcome_once(struct registration *r, const struct index_found *f,
                              struct str device)
{
    struct status st;
    struct json *request = NULL, *written = NULL;
    const struct kube_request get =
        onboarding_request(VERB_GET, INDEX_ENROLLMENT, f->namespace, f->name);
    int result = ask(r, &get, &request, &st);
    if (result < 0)
        return result;
    struct json *status = json_ensure_object(r->arena, request, STR("status"));
    clear_failed(json_get(status, STR("conditions")));
    if (device.n)
        (void) json_set(r->arena, status, STR("device"), json_string(device));
    else
        set_failed(r, json_get(status, STR("conditions")));
    struct kube_request update =
        onboarding_request(VERB_UPDATE, INDEX_ENROLLMENT, f->namespace, f->name);
    update.subresource = STR("status");
    update.body = request;
    result = ask(r, &update, &written, &st);
    if (result == 0)
        (void) onboarding_index_take(&r->onboarding->index, INDEX_ENROLLMENT, written);
    return result;
}

static void write_outcome(struct registration *r, const struct index_found *f, struct str device)
{
    int result = -ESTALE;
    for (int i = 0; i < MAX_ATTEMPTS && result == -ESTALE; i++)
        result = write_outcome_once(r, f, device);
    if (result < 0)
        log_warning("an EnrollmentRequest does not tell its outcome", LOG_STR("name", f->name),
                    LOG_ERRNO(result));
}

static int let_in(struct registration *r, const struct index_found *f)
{
    struct status st;
    struct json *request = NULL;
    struct str name = STR_NONE;
    const struct kube_request get =
        onboarding_request(VERB_GET, INDEX_ENROLLMENT, f->namespace, f->name);
    const int result = ask(r, &get, &request, &st);
    if (result == -ENOENT) {
        onboarding_index_forget(&r->onboarding->index, INDEX_ENROLLMENT, f->namespace, f->name);
        return -EAGAIN;
    }
    if (result < 0)
        return registration_put_off(r, &st);
    const struct sponsor s = sponsor_in(r, f, request);
    const int made = registration_make(r, &s, &name);
    if (made == 0)
        write_outcome(r, f, r->status == 201 ? name : STR_NONE);
    return made;
}

int registration_enroll(struct registration *r)
{
    struct index_found f;
    if (!onboarding_index_enrollment(&r->onboarding->index, r->arena, &r->query, &f))
        return enroll_anew(r);
    return f.is_approved && !f.is_spent ? let_in(r, &f) : refuse(r, &f);
}

/* ---- on a worker -------------------------------------------------------------------------------
 */

/* The registration as the device made it. */
static bool recall(struct registration *r, const struct json *request)
{
    const struct json *spec = json_get(request, STR("spec"));
    const char *reason = NULL;
    if (pki_cert_decode(json_get_str(spec, STR("certificate")), &r->certificate, &reason) < 0)
        return false;
    pki_cert_fingerprint(r->certificate, r->query.certificate_hash);
    r->query.certificate = r->certificate;
    if (pki_cert_decode(json_get_str(spec, STR("onboard")), &r->onboard, &reason) == 0)
        pki_cert_fingerprint(r->onboard, r->query.onboard_hash);
    r->query.onboard = r->onboard;
    const struct str serial = json_get_str(spec, STR("serial"));
    const struct str soft_serial = json_get_str(spec, STR("softSerial"));
    r->query.serial = serial.p ? serial : STR("");
    r->query.soft_serial = soft_serial.p ? soft_serial : STR("");
    r->source = json_get_str(spec, STR("sourceAddress"));
    return true;
}

/* A device that came in some other way meanwhile is the request's Device as well. */
static void approve(struct registration *r)
{
    struct onboarding_index *x = &r->onboarding->index;
    struct index_found f, device;
    for (int i = 0; i < MAX_ATTEMPTS && !r->status; i++) {
        if (!onboarding_index_enrollment(x, r->arena, &r->query, &f) || !f.is_approved)
            return;
        if (!onboarding_index_by_certificate(x, r->arena, &r->query, &device)) {
            (void) let_in(r, &f);
        } else if (registration_meet(r, &device) == 0) {
            write_outcome(r, &f, device.name);
        }
    }
}

void onboarding_approve(struct onboarding *o, struct str namespace, struct str name)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registration_done) struct registration r = {.onboarding = o, .arena = a};
    struct status st;
    struct json *request = NULL;
    const struct kube_request get = onboarding_request(VERB_GET, INDEX_ENROLLMENT, namespace, name);
    if (ask(&r, &get, &request, &st) < 0 || !recall(&r, request))
        return;
    r.query.now_s = o->options.clock->wall_us(o->options.clock) / 1000000;
    if (registration_begin(&r) < 0)
        return;
    approve(&r);
    registration_end(&r);
}

void registration_clear_enrollment(struct registration *r)
{
    struct index_found f;
    struct status st;
    if (!onboarding_index_enrollment(&r->onboarding->index, r->arena, &r->query, &f) ||
        f.is_approved || f.is_denied)
        return;
    const struct kube_request delete =
        onboarding_request(VERB_DELETE, INDEX_ENROLLMENT, f.namespace, f.name);
    (void) ask(r, &delete, NULL, &st);
}
