/* SPDX-License-Identifier: Apache-2.0 */
/* Images on disk. Content is a directory of verified blobs with a manifest of ours; a volume is the
 * tree of its layers. Both appear under their name whole or not at all. Blocks: for worker threads.
 */
#pragma once

#include <stdatomic.h>

#include "runtime/image.h"
#include "runtime/runtime.h"

#define CONTENT_DEFAULT_BYTES ((int64_t) 16 << 30)
#define CONTENT_ROOT "root"        /* of a volume: its tree */
#define CONTENT_IMAGE "image.json" /* of a volume: the configuration of its image, if any */

struct content_task {
    const char *directory; /* where contents are kept */
    const char *curl;
    const struct runtime_content *asked;
    const atomic_bool *is_cancelled;
    /* From the worker's thread. */
    void (*on_state)(void *arg, enum runtime_state state, int percent);
    void *arg;
};
/* Fetches and verifies it; *ret_error (heap) says what went wrong. */
int content_fetch(const struct content_task *t, char **ret_error);

struct content_volume {
    const char *directory; /* where volumes are kept */
    const char *id;
    const char *qemu_img;
    int64_t size_bytes;       /* of a disk; 0: that of its content */
    const char *content_path; /* NULL: an empty volume */
    bool keeps_owners;
    const atomic_bool *is_cancelled;
};
int content_make_volume(const struct content_volume *v, char **ret_error);

/* ---- where blobs come from ----------------------------------------------------------------- */

struct content_source {
    /* The document asked for (hex STR_NONE), or one that another names. */
    int (*manifest)(struct content_source *s, struct str hex, struct buf *ret, char **ret_error);
    int (*blob)(struct content_source *s, const struct image_blob *b, const char *to,
                char **ret_error);
};

struct registry_reference {
    struct str host, repository, tag, hex; /* tag "latest" unless it says; hex STR_NONE: none */
};
/* docker://host/repository:tag@sha256:... -EINVAL */
int registry_parse(struct arena *a, struct str url, struct registry_reference *ret);

struct registry;
struct registry *registry_new(const struct content_task *t, const struct registry_reference *r,
                              const char *work_path);
struct content_source *registry_source(struct registry *r);
void registry_free(struct registry *r);
DEFINE_CLEANUP(struct registry *, registry_free)

/* A challenge of WWW-Authenticate: 'Bearer realm="..",service=".."'. STR_NONE: not in it. */
struct str registry_challenge(struct str header, const char *parameter);
