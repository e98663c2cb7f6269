/* SPDX-License-Identifier: Apache-2.0 */
/* One gzip file in the making, in memory: takes lines as long as it stays within the size that is
 * uploaded. */
#pragma once

#include <zlib.h>

#include "base/buf.h"

struct gzip_part {
    z_stream z;
    gz_header head;
    char *label; /* Latin-1, as the header holds it */
    struct buf out;
    size_t n_pending; /* bytes taken whose compressed size is not known yet */
    size_t n_lines;
    bool is_open;
};

/* The label (UTF-8) becomes the header's name for applications, its comment for the device. */
int gzip_part_begin(struct gzip_part *p, bool is_app, struct str label, int64_t created_s);
/* Whether a line may still be added; the first always may. */
bool gzip_part_has_room(const struct gzip_part *p, size_t n_bytes);
/* With its newline. */
int gzip_part_add(struct gzip_part *p, struct str line);
/* The file is then p->out. */
int gzip_part_finish(struct gzip_part *p);
void gzip_part_done(struct gzip_part *p);
