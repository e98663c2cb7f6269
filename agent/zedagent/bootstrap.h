/* SPDX-License-Identifier: Apache-2.0 */
/* What an installer may leave for a device that has never met its controller: a configuration with
 * the certificates that vouch for it, in bootstrap-config.pb. */
#pragma once

#include "base/arena.h"
#include "eve/config.pb-c.h"

/* The signature must be of the signing certificate beside it, and that must lead to one of the
 * roots at that time (seconds since 1970). -EBADMSG, -EKEYREJECTED with *ret_reason (static). */
int bootstrap_open(struct arena *a, struct str file, struct str roots_pem, int64_t at_s,
                   const Eve__Config__EdgeDevConfig **ret, const char **ret_reason);
