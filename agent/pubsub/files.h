/* SPDX-License-Identifier: Apache-2.0 */
/* Values as files: whole or not at all, also after a power cut where the place asks for it. */
#pragma once

#include "base/buf.h"
#include "pubsub/pubsub.h"

struct pubsub_place;

/* With its parents, for the owner alone. */
int pubsub_directory_make(const char *path);

/* Of a place without files the following do and find nothing. */
int pubsub_values_make(const struct pubsub_place *place);
int pubsub_value_write(const struct pubsub_place *place, struct str key, struct str text);
int pubsub_value_remove(const struct pubsub_place *place, struct str key);
/* -EFBIG beyond PUBSUB_MAX_VALUE_BYTES. */
int pubsub_value_read(const struct pubsub_place *place, struct str key, struct buf *ret_text);
/* The key that a file's name stands for; STR_NONE for other files. */
struct str pubsub_value_key(struct str file_name);

/* on_value answers false when it can make nothing of the text. The owner of a directory also clears
 * away what a crash has left and restores a persistent file from its backup. A directory that is
 * not there has no values. */
struct pubsub_loader {
    bool (*on_value)(void *arg, struct str key, struct str text);
    void *arg;
    bool is_owner;
};
int pubsub_values_load(const struct pubsub_place *place, const struct pubsub_loader *loader);

/* 0 removes the file. */
int pubsub_restarted_write(const struct pubsub_place *place, int64_t counter);
/* 0 without a file, 1 when it holds no number. */
int64_t pubsub_restarted_read(const struct pubsub_place *place);

/* A fresh file of that content in a directory, which is made if need be; appends the name's random
 * part to prefix. */
int pubsub_file_create(const char *directory, struct buf *name, struct str content);
/* -ENOENT, -EFBIG from max_bytes on, -EINVAL for what is no ordinary file. */
int pubsub_file_read(const char *path, size_t max_bytes, struct buf *ret_content);
