/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make contents share. */
#pragma once

#include "runtime/content.h"

#define CONTENT_MANIFEST "manifest.json" /* ours: {"config": hex, "layers": [hex, ...]} */
#define CONTENT_SCRATCH "scratch"        /* gone before the content gets its name */

struct work {
    const struct content_task *task;
    struct arena *arena;
    const char *path; /* of the draft */
    bool is_expected; /* something had the digest that was asked for */
};

int content_hash(const char *path, char out[IMAGE_HEX_BYTES + 1]);
/* All of from, at most so many bytes, into a new file. */
int content_copy(const struct content_task *t, int from, const char *to, int64_t limit_bytes);
/* Blobs, verified, and the manifest, from a source. */
int content_collect(struct work *w, struct content_source *s, struct str hex, char **ret_error);
int content_write_manifest(struct work *w, const struct image_manifest *m, char **ret_error);
/* A directory or a tar: an OCI image layout or what `docker save` writes. */
int content_from_disk(struct work *w, const char *path, char **ret_error);
