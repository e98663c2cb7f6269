/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the device API, and what of a URL decides how it is sent. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"

#define UPLINK_MAX_URL_BYTES ((size_t) 4096)

enum uplink_api { UPLINK_API_V2, UPLINK_API_V1 /* until 2025, when Force-API-V1 is there */ };

/* `<server>/api/v2/edgedevice/[id/<uuid>/]<action>`; v1 never has the UUID, nor has a nil one. */
struct str uplink_url_build(struct arena *a, enum uplink_api api, struct str server,
                            const struct uuid *device, struct str action);
/* With https:// where it names neither http: nor https:. */
struct str uplink_url_complete(struct arena *a, struct str url);

struct uplink_url {
    struct str scheme; /* "https" */
    struct str host;   /* IPv6 without brackets */
    unsigned port;
};
/* -EINVAL: no absolute URL of http, https, ws or wss with a host, or one with spaces or
 * control characters; -EMSGSIZE: too long. Strings point into the URL. */
int uplink_url_parse(struct str url, struct uplink_url *ret);
bool uplink_url_is_secure(const struct uplink_url *u);

/* Posts below /edgedevice/ are wrapped, those of a registration by the onboarding identity. */
bool uplink_url_is_wrapped(struct str url);
bool uplink_url_is_registration(struct str url);
