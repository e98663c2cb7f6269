/* SPDX-License-Identifier: Apache-2.0 */
/* The string formats that kube-apiserver checks in custom resources, and how. */
#pragma once

#include "base/str.h"

struct format {
    const char *name; /* without dashes, as they are compared */
    bool (*matches)(struct str s);
};

/* NULL: no format that is checked; such are ignored. Dashes in the name do not count. */
const struct format *format_find(struct str name);
