/* SPDX-License-Identifier: Apache-2.0 */
/* EnrollmentRequests: one for each device that was not let in. What it asked cannot be changed, and
 * what was decided is decided. */
#include "resources/checks.h"
#include "resources/device_certificate.h"
#include "resources/resources.h"

/* The fingerprint is the server's to say, and the certificate does not change. */
static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    struct str fingerprint = json_str(json_at(old, "status", "fingerprint", NULL));
    if (!fingerprint.n)
        fingerprint =
            device_certificate_fingerprint(h->arena, json_at(object, "spec", "certificate", NULL));
    if (!fingerprint.n)
        return;
    struct json *status = json_ensure_object(h->arena, object, STR("status"));
    json_unshare(h->arena, status, /* n_more= */ 1); /* it may still be the old one's */
    (void) json_set(h->arena, status, STR("fingerprint"), json_string(fingerprint));
}

static bool has_condition(const struct json *object, const char *type)
{
    JSON_FOR_EACH_ITEM (json_at(object, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), type) &&
            str_is(json_get_str(c, STR("status")), "True"))
            return true;
    return false;
}

static void check_decision(const struct json *old, const struct json *object, struct causes *causes)
{
    const struct field_path status = FIELD_NAME(NULL, STR("status"));
    const struct field_path at = FIELD_NAME(&status, STR("conditions"));
    const bool is_approved = has_condition(object, "Approved");
    if (is_approved && has_condition(object, "Denied"))
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL, "Approved and Denied exclude each other");
    if (has_condition(old, "Approved") && !is_approved)
        causes_add(causes, CAUSE_FORBIDDEN, &at, NULL,
                   "an approval cannot be taken back: delete the Device");
    if (has_condition(old, "Approved") &&
        !same_member(json_get(old, STR("status")), json_get(object, STR("status")),
                     STR("namespace")))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(&status, STR("namespace")), NULL,
                   "may not change once the request is approved");
}

static void check_namespace(const struct json *object, struct causes *causes)
{
    const struct field_path status = FIELD_NAME(NULL, STR("status"));
    const struct str namespace = json_str(json_at(object, "status", "namespace", NULL));
    if (!namespace.p)
        return;
    const struct name_errors errors = name_label(causes->arena, namespace);
    object_meta_add_errors(causes, &FIELD_NAME(&status, STR("namespace")), namespace, &errors);
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    if (h->operation == WRITE_CREATE) {
        device_certificate_check(causes, NULL, object, "certificate");
        device_certificate_check(causes, NULL, object, "onboard");
    }
    check_namespace(object, causes);
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    object_meta_check_immutable(causes, &FIELD_NAME(NULL, STR("spec")), json_get(old, STR("spec")),
                                json_get(object, STR("spec")));
    check_decision(old, object, causes);
}

static struct str certificate_of(struct arena *a, const struct json *object)
{
    const struct str known = json_str(json_at(object, "status", "fingerprint", NULL));
    return known.n
               ? known
               : device_certificate_fingerprint(a, json_at(object, "spec", "certificate", NULL));
}

static const struct kind_unique unique[] = {{"spec.certificate", certificate_of}, {NULL, NULL}};

const struct kind_hooks enrollmentrequest_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("enrollmentrequests"),
    .prepare = prepare,
    .validate = validate,
    .validate_update = validate_update,
    .unique = unique,
};
