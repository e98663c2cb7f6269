/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that must be whole: keys, certificates, and what else is read at once. */
#pragma once

#include "base/buf.h"

/* Keys and certificates are small; anything larger is not one. */
#define PKI_FILE_MAX_BYTES ((size_t) 1024 * 1024)
int pki_file_read(const char *path, struct buf *ret_content);
/* With the mode: the file belongs to whom its directory belongs to, so that what root does for a
 * server that runs as somebody else is of use to it. */
#define PKI_FILE_FOR_DIRECTORY_OWNER 0x10000U
/* Whole or not at all: a temporary file, synced, then renamed over the old. */
int pki_file_write(const char *path, struct str content, unsigned mode);
