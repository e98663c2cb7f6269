/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's program that guards our keys with one we never see (a KMS, a TPM): it wraps a key
 * for the disk and unwraps it again. */
#pragma once

#include "base/buf.h"

#define KEY_COMMAND_TIMEOUT_MS 30000
#define KEY_COMMAND_MAX_BYTES ((size_t) 16 * 1024)

struct key_command {
    const char *command; /* for the shell, which gets the verb behind it */
    const char *verb;    /* "wrap" or "unwrap" */
    struct str input;    /* for its standard input */
    int64_t timeout_ms;  /* 0: KEY_COMMAND_TIMEOUT_MS */
};

/* Runs it and appends what it prints. Failure (it cannot run, fails, prints too much, or takes too
 * long, in which case it is killed with its children): negative errno and *ret_error (heap). What
 * it prints to its standard error goes to ours. */
int key_command_run(const struct key_command *k, struct buf *to, char **ret_error);
