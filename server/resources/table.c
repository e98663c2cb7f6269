/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/customresourcedefinition.h"
#include "resources/resources.h"

static const struct kind_hooks *const table[] = {
    &configmap_hooks,
    &secret_hooks,
    &namespace_hooks,
    &serviceaccount_hooks,
    &event_hooks,
    &event_v1_hooks,
    &persistentvolumeclaim_hooks,
    &persistentvolume_hooks,
    &resourcequota_hooks,
    &limitrange_hooks,
    &lease_hooks,
    &storageclass_hooks,
    &controllerrevision_hooks,
    &tokenreview_hooks,
    &selfsubjectreview_hooks,
    &tokenrequest_hooks,
    &role_hooks,
    &clusterrole_hooks,
    &rolebinding_hooks,
    &clusterrolebinding_hooks,
    &mutatingwebhookconfiguration_hooks,
    &validatingwebhookconfiguration_hooks,
    &subjectaccessreview_hooks,
    &localsubjectaccessreview_hooks,
    &selfsubjectaccessreview_hooks,
    &selfsubjectrulesreview_hooks,
    &certificatesigningrequest_hooks,
    &customresourcedefinition_hooks,
    &device_hooks,
    &onboardcertificate_hooks,
    &onboardcertificateauthority_hooks,
    &devicecertificateauthority_hooks,
    &enrollmentrequest_hooks,
    &application_hooks,
    &applicationdaemonset_hooks,
    &applicationdeployment_hooks,
    &applicationstatefulset_hooks,
    &devicenetwork_hooks,
    &image_hooks,
    &networkconfig_hooks,
    &eve_volume_hooks,
};

const struct kind_hooks *kind_hooks_find(struct str group, struct str plural)
{
    for (size_t i = 0; i < N_ELEMENTS(table); i++)
        if (str_eq(table[i]->group, group) && str_eq(table[i]->plural, plural))
            return table[i];
    return NULL;
}
