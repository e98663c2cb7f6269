/* SPDX-License-Identifier: Apache-2.0 */
/* Topic PatchEnvelopeInfoList as the server wants it. */
#pragma once

#include "msrv/msrv.h"

/* Those that are active and allowed to the application; strings point into the list. The secret of
 * an encrypted file is its JSON, of CipherBlobs. */
size_t envelopes_read(struct arena *a, const struct json *list, struct str app_uuid,
                      struct msrv_envelope **ret);
