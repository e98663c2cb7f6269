/* SPDX-License-Identifier: Apache-2.0 */
/* Who may register, by the policy of seven cases: the first that fits wins, and the object that
 * decided is told by an Event. What the policy needs of the objects is held in memory, fed by their
 * events; the objects themselves are read again before they are relied on.
 *
 *  1. A Device whose spec.certificate is the presented one: it is that Device.
 *  2. A Device with matching spec.onboard and spec.serial, either of which may be absent; the
 *     presented certificate is written into it.
 *  3. A DeviceCertificateAuthority that signed the device's certificate.
 *  4. An OnboardCertificate equal to the presented one that allows the serial number.
 *  5. An OnboardCertificateAuthority that signed the onboarding certificate.
 *  6. ConfigMap eve-system/global-options with `registration: open`; Devices are made in the
 *     namespace that `registration.namespace` names (absent: default).
 *  7. Otherwise an EnrollmentRequest in eve-system; setting its condition Approved makes the
 * Device.
 *
 * A device that comes with an identity (onboarding certificate and serial number) whose Device has
 * another certificate is refused with 409. An approval lets in once: a Device that is deleted later
 * stays so until its EnrollmentRequest is deleted as well.
 *
 * Among several objects of one case the oldest wins, so that nobody takes over what another was
 * given by adding one later. */
#pragma once

#include "api/client.h"
#include "base/clock.h"

#define ONBOARDING_MAX_ENROLLMENTS 10000
#define ONBOARDING_NAMESPACE "eve-system"

struct roster;
struct workers;

struct onboarding_options {
    struct kube_client *client;
    const struct clock *clock;
    struct roster *roster;
    struct workers *workers; /* where approved requests become Devices */
};

struct onboarding;
struct onboarding *onboarding_new(const struct onboarding_options *o);
/* When neither events nor work come any more. NULL allowed. */
void onboarding_free(struct onboarding *o);
/* From kube_watch; registrations are put off with 503 until KUBE_SYNCED. */
void onboarding_on_event(void *onboarding, const struct kube_event *e);
