/* SPDX-License-Identifier: Apache-2.0 */
/* Whole contents of files, past interrupted calls and short reads and writes. */
#pragma once

#include "base/buf.h"

/* Closed at the end of its scope; negative: there is none. */
void file_close(const int *fd);
#define FD_AUTO CLEANUP(file_close) int

int file_write_all(int fd, struct str bytes);
/* Appends all that is left to read; on errors `to` has what it had before. -EFBIG: these are more
 * than max_bytes. */
int file_read_all(int fd, size_t max_bytes, struct buf *to);
/* -EINVAL besides, for what is no ordinary file. */
int file_read_regular(int fd, size_t max_bytes, struct buf *to);
int file_read(const char *path, size_t max_bytes, struct buf *to);
