/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of an image, a tar plain or packed with gzip or zstd, laid upon a directory. The tar is
 * hostile until proven otherwise: nothing it names lies outside the directory, whatever links it
 * brings. The only module that knows libarchive. */
#pragma once

#include <stdatomic.h>

#include "base/lang.h"

#define LAYER_MAX_ENTRIES 1000000 /* of all layers of an image together */
#define LAYER_MAX_PATH_BYTES 4095
#define LAYER_MAX_DEPTH 256
#define LAYER_DEFAULT_BYTES ((int64_t) 16 << 30)

struct layer_target {
    int root_fd;
    bool keeps_owners;               /* as the tar says; otherwise everything is ours */
    bool is_first;                   /* there is nothing below that a whiteout could hide */
    bool keeps_whiteouts;            /* as files: an archive of blobs, not a layer */
    int64_t bytes_left;              /* of files; goes down */
    int64_t entries_left;            /* goes down */
    int64_t n_skipped;               /* device nodes and sockets, which are never made */
    const atomic_bool *is_cancelled; /* NULL: never */
};

/* The tar is the file, from its beginning, twice. Negative errno with *ret_error (heap): -EPERM for
 * names that lead outside, -EFBIG beyond a limit, -EBADMSG for a broken tar, -ECANCELED. */
int layer_apply(struct layer_target *t, const char *tar_path, char **ret_error);
