/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a process may open, where the kernel can keep it to them (Linux 5.13). */
#pragma once

#include "base/lang.h"

enum landlock_use {
    LANDLOCK_READ,       /* and run */
    LANDLOCK_READ_WRITE, /* but make and remove nothing */
};

struct landlock_rule {
    const char *path; /* with all below it; NULL or one that is not there is passed over */
    enum landlock_use use;
};

/* What a process restricts itself to by landlock_enter(): an fd. -EOPNOTSUPP: the kernel cannot. */
int landlock_make(const struct landlock_rule *rules, size_t n);
/* Safe between fork and exec; no new privileges must have been renounced. */
int landlock_enter(int fd);
