/* SPDX-License-Identifier: Apache-2.0 */
/* What onboarding must find without walking all objects: Devices by certificate, by onboarding
 * certificate and serial number, OnboardCertificates by hash, authorities, EnrollmentRequests. A
 * hint: an object may have changed since its last event. From any thread. */
#pragma once

#include <pthread.h>

#include "api/client.h"
#include "base/map.h"
#include "pki/pki.h"

enum index_kind {
    INDEX_DEVICE,
    INDEX_DEVICE_CA,
    INDEX_ONBOARD,
    INDEX_ONBOARD_CA,
    INDEX_ENROLLMENT,
    INDEX_KINDS
};
/* "Device", "OnboardCertificate" ..., and as resources. */
const char *index_kind_name(enum index_kind k);
const char *index_kind_plural(enum index_kind k);

struct index_entry;
struct index_options {
    bool is_open;         /* `registration: open` */
    struct str namespace; /* heap */
    struct str uid;       /* of the ConfigMap; heap */
};

struct onboarding_index {
    pthread_rwlock_t lock;
    struct map objects;                                 /* "<kind>/<namespace>/<name>" */
    struct map by_certificate, by_identity, by_onboard; /* chains, the oldest first */
    struct map enrollments;                             /* by the device certificate's hash */
    struct index_entry *authorities[INDEX_KINDS];       /* chains as well */
    struct index_options options;
    size_t n_reserved; /* EnrollmentRequests about to be made */
    bool is_synced;
    /* Fleets share few onboarding certificates: the last one's text and hash. */
    unsigned char last_text[SHA256_BYTES], last_hash[SHA256_BYTES];
};

void onboarding_index_init(struct onboarding_index *x);
void onboarding_index_done(struct onboarding_index *x);

/* An EnrollmentRequest that waits for its Device, from onboarding_index_event(). */
bool onboarding_index_event(struct onboarding_index *x, const struct kube_event *e);
/* An object just written or read. True: what is known of it is another than before. */
bool onboarding_index_take(struct onboarding_index *x, enum index_kind kind,
                           const struct json *object);
/* It was not there any more. */
void onboarding_index_forget(struct onboarding_index *x, enum index_kind kind, struct str namespace,
                             struct str name);
bool onboarding_index_is_synced(struct onboarding_index *x);

/* ---- looking; strings in the arena ---------------------------------------------------------- */

struct index_found {
    enum index_kind kind;
    struct str namespace, name, uid;
    struct str serial; /* OnboardCertificate: the one of the two that it allows */
    /* EnrollmentRequest: */
    bool is_approved, is_denied;
    bool is_spent; /* its Device was made */
};

struct index_query {
    unsigned char certificate_hash[SHA256_BYTES], onboard_hash[SHA256_BYTES];
    const struct pki_cert *certificate, *onboard;
    struct str serial, soft_serial;
    int64_t now_s;
};

/* Case 1. */
bool onboarding_index_by_certificate(struct onboarding_index *x, struct arena *a,
                                     const struct index_query *q, struct index_found *ret);
/* Case 2: those that have no certificate yet before those that have one. */
bool onboarding_index_by_identity(struct onboarding_index *x, struct arena *a,
                                  const struct index_query *q, struct index_found *ret);
/* Cases 3 and 5: kind INDEX_DEVICE_CA or INDEX_ONBOARD_CA. Neither the authority nor what it signed
 * may have expired. */
bool onboarding_index_authority(struct onboarding_index *x, struct arena *a, enum index_kind kind,
                                const struct index_query *q, struct index_found *ret);
/* Case 4. */
bool onboarding_index_onboard(struct onboarding_index *x, struct arena *a,
                              const struct index_query *q, struct index_found *ret);
/* Case 6: the ConfigMap's uid and the namespace that it names. */
bool onboarding_index_is_open(struct onboarding_index *x, struct arena *a, struct str *ret_uid,
                              struct str *ret_namespace);
/* Case 7. */
bool onboarding_index_enrollment(struct onboarding_index *x, struct arena *a,
                                 const struct index_query *q, struct index_found *ret);
/* Room for one more EnrollmentRequest, given back by onboarding_index_release(). */
bool onboarding_index_reserve(struct onboarding_index *x, size_t max);
void onboarding_index_release(struct onboarding_index *x);
/* What may happen to an object again and again, and is told now and then. */
enum index_notice { INDEX_AGAIN, INDEX_CONFLICT, INDEX_REFUSED, INDEX_NOTICES };
/* Whether it is time to tell, and how often it happened since that was last done. */
bool onboarding_index_may_tell(struct onboarding_index *x, const struct index_found *f,
                               enum index_notice notice, int64_t now_us, int64_t *ret_n);
/* Calls fn with namespace and name of every EnrollmentRequest that waits for its Device. */
void onboarding_index_each_approved(struct onboarding_index *x,
                                    void (*fn)(void *ctx, struct str namespace, struct str name),
                                    void *ctx);
