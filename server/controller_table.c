/* SPDX-License-Identifier: Apache-2.0 */
/* Every controller of the server, one line each; the runner starts them all and tells them of
 * events in this order. */
#include "controller_table.h"

#include "controllers/accounts.h"
#include "controllers/aggregation.h"
#include "controllers/certificates.h"
#include "controllers/crd.h"
#include "controllers/device_apps.h"
#include "controllers/enrollment.h"
#include "controllers/events.h"
#include "controllers/gc.h"
#include "controllers/namespace.h"
#include "controllers/onboard_certificates.h"
#include "controllers/protection.h"
#include "controllers/quota.h"
#include "controllers/token_secrets.h"
#include "device/delivery.h"
#include "fleet/composing.h"
#include "scheduling/scheduler.h"
#include "volumes/network_devices.h"
#include "volumes/volumes.h"
#include "workloads/workloads.h"

const struct controller *const controller_table[] = {
    &crd_controller,
    &namespace_controller,
    &accounts_controller,
    &gc_controller,
    &protection_controller,
    &aggregation_controller,
    &events_controller,
    &quota_controller,
    &token_secrets_controller,
    &certificates_controller,
    &certificate_cleanup_controller,
    &onboard_certificates_controller,
    &enrollment_controller,
    &scheduler_controller,
    &volumes_controller,
    &device_apps_controller,
    &network_devices_controller,
    &composing_controller,
    &delivery_controller,
    &workloads_controller,
    NULL,
};
