/* SPDX-License-Identifier: Apache-2.0 */
/* What a device would be told, before anybody writes anything, and why it is told what it is told:
 * the subresources preview and provenance of Devices, and what dry runs say of devices. */
#pragma once

#include "api/annex.h"
#include "api/client.h"
#include "api/forecast.h"
#include "fleet/fleet.h"

/* Lives as long as the annex and the forecast. */
struct preview {
    struct api *api;
    struct kube_client *client;
    struct fleet *fleet;
    const struct clock *clock;
};

struct annex preview_annex(struct preview *p);
struct forecast preview_forecast(struct preview *p);
