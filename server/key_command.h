/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's program that guards our keys with one we never see (a KMS, a TPM): it wraps a key
 * for the disk and unwraps it again. */
#pragma once

#include "base/buf.h"

#define KEY_COMMAND_TIMEOUT_MS 30000
#define KEY_COMMAND_MAX_BYTES ((size_t) 16 * 1024)

/* Runs the command by the shell with verb ("wrap", "unwrap") as its last argument, input on its
 * standard input; appends what it prints. Failure (it cannot run, fails, prints too much, takes too
 * long, in which case it is killed with its children): negative errno and *ret_error (heap). What
 * it prints to its standard error goes to ours. */
int key_command_run(const char *command, const char *verb, struct str input, struct buf *to,
                    char **ret_error);
