/* SPDX-License-Identifier: Apache-2.0 */
/* `seth import-adam`: takes over what Adam has stored, while neither of the two servers runs. */
#pragma once

#include "cli/options.h"

extern const struct option_spec import_adam_options[];
int import_adam_command(const struct options *o);

/* The certificates that devices know Adam by, from its directory into ours. */
struct adam_certs;
/* Reads and checks; nothing is written. Failure: negative errno and *ret_error (heap). */
int adam_certs_read(struct arena *a, const char *directory, struct adam_certs **ret,
                    char **ret_error);
/* How Adam calls its encryption certificate (32 bytes, or the first 16), and how the server does.
 */
void adam_certs_hashes(const struct adam_certs *c, struct str *ret_adams, struct str *ret_ours);
/* Writes them and their roots; *ret_options: what the server is to be started with, in lines. */
int adam_certs_write(struct adam_certs *c, const char *data_dir, struct str *ret_options,
                     char **ret_error);
void adam_certs_free(struct adam_certs *c); /* NULL allowed */
