/* SPDX-License-Identifier: Apache-2.0 */
/* Seals what only one device may read, with the controller's present key and the certificate that
 * the device has sent for it. Keeps nothing: same content, same certificates, same bytes. */
#pragma once

#include "api/status.h"
#include "composer/composer.h"

/* As server/fleet wants it; ctx is the struct device_api. The device's certificate is looked for at
 * the first seal, which then blocks; -EAGAIN as long as it has sent none. 0. */
int sealer_open(void *device_api, struct arena *a, const struct json *device,
                compose_seal **ret_seal, void **ret_ctx, struct status *st);
