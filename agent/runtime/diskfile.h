/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of virtual machines: images that were fetched become content, and content the disk of a
 * volume, by qemu-img. Blocks: for worker threads. */
#pragma once

#include "runtime/content_internal.h"
#include "json/json.h"

/* The disk of a volume has one of these names, which tells its format. */
#define DISKFILE_QCOW2 "disk.qcow2" /* of an image */
#define DISKFILE_RAW "disk.raw"     /* of an empty volume */
#define DISKFILE_ISO "disk.iso"     /* a medium, only to be read */

/* Takes over a file of the draft as the content's disk, once it is checked. */
int diskfile_take(struct work *w, const char *path, char **ret_error);
/* A copy of a file, which stays. */
int diskfile_copy(struct work *w, const char *path, char **ret_error);
/* The disk among the blobs of an artifact. */
int diskfile_choose(struct work *w, const struct image_manifest *m, char **ret_error);

/* The disk of a volume in its draft; the manifest is that of its content. */
int diskfile_make(const struct content_volume *v, const struct json *manifest, const char *draft,
                  char **ret_error);
/* A disk without content; takes no room before it is written to. */
int diskfile_make_empty(const char *draft, int64_t size_bytes, char **ret_error);
