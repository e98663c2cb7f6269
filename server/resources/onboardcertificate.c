/* SPDX-License-Identifier: Apache-2.0 */
/* What lets devices register: certificates, and authorities that sign them. */
#include "resources/device_certificate.h"
#include "resources/resources.h"

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    if (h->operation == WRITE_CREATE)
        device_certificate_check(causes, NULL, object, "certificate");
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    device_certificate_check(causes, old, object, "certificate");
}

const struct kind_hooks onboardcertificate_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("onboardcertificates"),
    .validate = validate,
    .validate_update = validate_update,
};

const struct kind_hooks onboardcertificateauthority_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("onboardcertificateauthorities"),
    .validate = validate,
    .validate_update = validate_update,
};

const struct kind_hooks devicecertificateauthority_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("devicecertificateauthorities"),
    .validate = validate,
    .validate_update = validate_update,
};
