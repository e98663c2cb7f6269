/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a finished segment, on disk behind its frames: rows sorted by device, then the
 * entries of each row, then a trailer at the end of the file that says where they are and whether
 * they are good. Whatever is wrong with it, the frames tell again. Nothing of it stays in memory:
 * looking a device up is a few reads, which the kernel caches. */
#pragma once

#include "telemetry/live.h"

/* Writes the index behind s->end, to disk. The live index must no longer change. The segment is not
 * changed: *ret_n_rows, *ret_file_bytes are what it becomes. */
int footer_write(const struct segment *s, const struct live *l, uint32_t *ret_n_rows,
                 uint64_t *ret_file_bytes);
/* Finds and checks the index of a file that was opened, and sets what the segment knows by it.
 * -EBADMSG: there is none that is good. */
int footer_load(struct segment *s);
/* As for a live one; negative errno when it cannot be read. 0 for row: none. */
int footer_row(const struct segment *s, const struct uuid *device, struct row *ret);
ssize_t footer_entries(const struct segment *s, const struct uuid *device, uint64_t after,
                       struct entry *ret, size_t max);
int footer_each(const struct segment *s, void (*fn)(void *ctx, const struct row *r), void *ctx);
