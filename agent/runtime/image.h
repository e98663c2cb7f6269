/* SPDX-License-Identifier: Apache-2.0 */
/* What an image says of itself: which of an index's manifests is for this machine, which blobs a
 * manifest names, how its program wants to be run. Pure functions over JSON. */
#pragma once

#include "json/json.h"

#define IMAGE_MAX_MANIFEST_BYTES ((size_t) 4 << 20)
#define IMAGE_MAX_CONFIG_BYTES ((size_t) 8 << 20)
#define IMAGE_MAX_LAYERS 256
#define IMAGE_MAX_TEXTS 4096 /* of a command, of an environment */
#define IMAGE_HEX_BYTES 64

struct image_blob {
    struct str hex; /* of its sha256 */
    int64_t size_bytes;
    struct str media_type;
    struct str role; /* of a layer of an artifact: "disk-root" */
};

struct image_manifest {
    struct image_blob config;
    struct image_blob *layers;
    size_t n_layers;
};

/* "sha256:<64 hex digits>"; -EINVAL for anything else, also for other algorithms. */
int image_digest_hex(struct str digest, struct str *ret_hex);
/* As Go calls this machine: "amd64". */
struct str image_architecture(void);

enum image_document { IMAGE_IS_INDEX, IMAGE_IS_MANIFEST };
/* By its mediaType, or by what it holds. -EINVAL: neither. */
int image_classify(const struct json *document, enum image_document *ret);
/* The manifest of an index that is for Linux on this architecture, or the only one there is.
 * -ENOEXEC: none fits. */
int image_choose(const struct json *index, struct str architecture, struct image_blob *ret);
int image_read_manifest(struct arena *a, const struct json *manifest, struct image_manifest *ret,
                        char **ret_error);

/* How its program wants to be run. Every string lives with the JSON. */
struct image_config {
    struct str *args; /* Entrypoint and Cmd */
    size_t n_args;
    struct str *env;
    size_t n_env;
    struct str working_directory; /* "/" when it names none */
    struct str user;
    int stop_signal;
};
/* An absent config (a volume without image) gives the defaults. */
int image_read_config(struct arena *a, const struct json *config, struct image_config *ret,
                      char **ret_error);
/* "SIGTERM", "TERM", "15"; -EINVAL. */
int image_signal(struct str name);

struct image_user {
    uint32_t uid, gid;
};
/* "", "0", "0:0", "name", "name:group", by the texts of the image's own passwd and group. -ENOENT:
 * it knows no such user. */
int image_find_user(struct str user, struct str passwd, struct str group, struct image_user *ret);
