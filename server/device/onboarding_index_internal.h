/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the index: its entries. */
#pragma once

#include "device/onboarding_index.h"
#include "json/json.h"

/* Where an entry is found; those before INDEX_MAP_LINKS by a map. */
enum index_link {
    INDEX_BY_CERTIFICATE,
    INDEX_BY_IDENTITY,
    INDEX_BY_ONBOARD,
    INDEX_BY_ENROLLMENT,
    INDEX_MAP_LINKS,
    INDEX_BY_AUTHORITY = INDEX_MAP_LINKS,
    INDEX_LINKS
};

struct index_entry {
    enum index_kind kind;
    struct str key; /* owned; namespace and name lie in it */
    struct str namespace, name;
    struct str uid; /* owned */
    int64_t revision, created_us;
    unsigned char digest[SHA256_BYTES];    /* of what it was made of */
    unsigned char hash[SHA256_BYTES];      /* of its certificate, when it has one */
    struct str identity;                   /* of a Device; owned */
    struct str at[INDEX_MAP_LINKS];        /* its keys; absent: not to be found there */
    struct index_entry *next[INDEX_LINKS]; /* of the same key, younger */
    struct str *serials;                   /* of an OnboardCertificate; owned */
    size_t n_serials;
    bool allows_any;
    struct pki_cert *authority;
    bool is_approved, is_denied;    /* of an EnrollmentRequest */
    bool is_spent, has_failed;      /* its Device was made, or could not be */
    int64_t told_us[INDEX_NOTICES]; /* when users were last told of it */
    int64_t n_untold[INDEX_NOTICES];
};

/* How a Device names who it is for: onboarding certificate and serial number, or one of them. */
enum index_identity { INDEX_EXACT, INDEX_ONBOARD_ONLY, INDEX_SERIAL_ONLY };
struct str onboarding_identity(struct arena *a, enum index_identity form,
                               const unsigned char onboard[SHA256_BYTES], struct str serial);

/* What failed is tried again when the device asks. */
static inline bool onboarding_wants_device(const struct index_entry *e)
{
    return e->is_approved && !e->is_spent && !e->has_failed;
}
