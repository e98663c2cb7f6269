/* SPDX-License-Identifier: Apache-2.0 */
/* A software TPM in a directory of its own. */
#pragma once

#include <sys/types.h>

#include "base/arena.h"

struct chip {
    char root[64];
    pid_t process;
    struct arena *arena;
    const char *tcti;
};
void chip_init(struct chip *c);
void chip_done(struct chip *c);
const char *chip_path(struct chip *c, const char *below);
/* One of tpm2-tools, with `-T` for this TPM; fails the test when it does. */
void chip_tool(struct chip *c, const char *command);
/* Without a TPM. */
void chip_run(struct chip *c, const char *command);
/* Something else has booted. */
void chip_extend(struct chip *c, int pcr);
