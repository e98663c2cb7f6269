/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of onboarding: one registration and what is done with it. */
#pragma once

#include "base/list.h"
#include "device/endpoint.h"
#include "device/onboarding.h"
#include "device/onboarding_index.h"

struct onboarding {
    struct onboarding_options options;
    struct onboarding_index index;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t freed;
    struct list under_way; /* registrations; no two of one device or one identity */
    size_t n_waiting;
    int64_t seen_revision; /* of the newest event */
    int64_t warned_us;     /* monotonic: of what goes wrong for many devices at once; 0: never */
};

struct registration {
    struct list link;
    struct onboarding *onboarding;
    struct arena *arena;
    struct pki_cert *certificate, *onboard; /* owned; the device's and the one it came with */
    struct index_query query;
    struct str source;
    bool has_caught_up; /* the index knows all that was there when it asked */
    /* The outcome: 0 while nothing is decided. */
    int status;
    struct str reason; /* in words */
    int retry_after_s;
};
void registration_done(struct registration *r);

/* ---- onboarding_message.c ------------------------------------------------------------------- */

/* Fills certificates and query from the call; false: it is answered (401, 422). */
bool registration_read(struct device_call *c, struct registration *r);

/* ---- onboarding.c --------------------------------------------------------------------------- */

/* Waits until no other registration of the same device or identity is under way. -EAGAIN: too many
 * wait. */
int registration_begin(struct registration *r);
void registration_end(struct registration *r);
/* Each returns 0 so that a step may `return registration_settle(...)`. */
int registration_settle(struct registration *r, int status, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Whether users are to be told of a trouble that all devices meet: now and then. */
bool registration_may_warn(struct registration *r);
/* The API server could not do it now. */
int registration_put_off(struct registration *r, const struct status *st);

/* ---- onboarding_device.c -------------------------------------------------------------------- */

/* What let a device in: an object of the index, or something else by its own words. */
struct sponsor {
    struct str api_version, kind, namespace, name, uid;
    struct str into;   /* namespace of the Device */
    struct str serial; /* as it is to be kept */
};
struct sponsor sponsor_of(const struct registration *r, const struct index_found *f);

/* Cases 1 and 2 with a Device that the index found. -EAGAIN: it is not so any more, look again. */
int registration_meet(struct registration *r, const struct index_found *f);
/* That the object which lets it in is still as the index has it. -EAGAIN: it is not. */
int registration_check(struct registration *r, const struct index_found *f);
/* Makes the Device. -EAGAIN: somebody else did. ret_name may be NULL. */
int registration_make(struct registration *r, const struct sponsor *s, struct str *ret_name);
void registration_tell(struct registration *r, const struct sponsor *about, bool is_warning,
                       const char *reason, struct str key);

/* ---- onboarding_enrollment.c ---------------------------------------------------------------- */

/* Case 7. */
int registration_enroll(struct registration *r);
/* An EnrollmentRequest was approved: makes its Device. Runs on a worker. */
void onboarding_approve(struct onboarding *o, struct str namespace, struct str name);
/* The device was let in after all: a request that nobody decided goes. */
void registration_clear_enrollment(struct registration *r);

/* ---- requests ------------------------------------------------------------------------------- */

static inline struct kube_request onboarding_request(enum verb verb, enum index_kind kind,
                                                     struct str namespace, struct str name)
{
    return (struct kube_request){.verb = verb,
                                 .group = STR("eve.lfedge.org"),
                                 .version = STR("v1beta1"),
                                 .resource = str_of(index_kind_plural(kind)),
                                 .namespace = namespace,
                                 .name = name};
}
