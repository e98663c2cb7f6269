/* SPDX-License-Identifier: Apache-2.0 */
/* One device of Adam's, read and found good. */
#pragma once

#include "adam/store.h"
#include "eve/config.pb-c.h"
#include "pki/pki.h"
#include "roster/state.h"

struct taken_device {
    struct str uuid;
    struct pki_cert *cert, *onboard; /* onboard NULL: none */
    struct str serial;
    Eve__Config__EdgeDevConfig *config;
    struct device_state state;
};
/* -EINVAL with *ret_reason; what there is of it is freed by the next in either case. */
int taken_device_read(struct arena *a, const struct adam_stored_device *stored,
                      struct taken_device *ret, struct str *ret_reason);
void taken_device_done(struct taken_device *d);
