/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds with behaviour: one line here, one in table.c, one file each. */
#pragma once

#include "api/hooks.h"

extern const struct kind_hooks configmap_hooks;
extern const struct kind_hooks secret_hooks;
extern const struct kind_hooks namespace_hooks;
extern const struct kind_hooks serviceaccount_hooks;
extern const struct kind_hooks event_hooks;
extern const struct kind_hooks event_v1_hooks;
extern const struct kind_hooks persistentvolumeclaim_hooks;
extern const struct kind_hooks persistentvolume_hooks;
extern const struct kind_hooks resourcequota_hooks;
extern const struct kind_hooks limitrange_hooks;
extern const struct kind_hooks lease_hooks;
extern const struct kind_hooks storageclass_hooks;
extern const struct kind_hooks controllerrevision_hooks;
extern const struct kind_hooks tokenreview_hooks;
extern const struct kind_hooks selfsubjectreview_hooks;
extern const struct kind_hooks tokenrequest_hooks;
extern const struct kind_hooks role_hooks;
extern const struct kind_hooks clusterrole_hooks;
extern const struct kind_hooks rolebinding_hooks;
extern const struct kind_hooks clusterrolebinding_hooks;
extern const struct kind_hooks mutatingwebhookconfiguration_hooks;
extern const struct kind_hooks validatingwebhookconfiguration_hooks;
extern const struct kind_hooks subjectaccessreview_hooks;
extern const struct kind_hooks localsubjectaccessreview_hooks;
extern const struct kind_hooks selfsubjectaccessreview_hooks;
extern const struct kind_hooks selfsubjectrulesreview_hooks;
extern const struct kind_hooks certificatesigningrequest_hooks;
extern const struct kind_hooks device_hooks;
extern const struct kind_hooks onboardcertificate_hooks;
extern const struct kind_hooks onboardcertificateauthority_hooks;
extern const struct kind_hooks devicecertificateauthority_hooks;
extern const struct kind_hooks enrollmentrequest_hooks;
extern const struct kind_hooks application_hooks;
extern const struct kind_hooks applicationdaemonset_hooks;
extern const struct kind_hooks applicationdeployment_hooks;
extern const struct kind_hooks applicationstatefulset_hooks;
extern const struct kind_hooks devicenetwork_hooks;
extern const struct kind_hooks image_hooks;
extern const struct kind_hooks networkconfig_hooks;
extern const struct kind_hooks eve_volume_hooks;
