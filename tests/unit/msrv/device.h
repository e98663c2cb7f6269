/* SPDX-License-Identifier: Apache-2.0 */
/* A device as the metadata server sees it: two applications, documents, envelopes and files in a
 * temporary directory. What is missing on a worse day is switched off by its members. */
#pragma once

#include "msrv/msrv_internal.h"

/* "web" has OpenStack's metadata and may discover; "db" neither; "odd" has no configuration. */
#define WEB_ADDRESS "10.1.0.2"
#define WEB_UUID "11111111-1111-4111-8111-111111111111"
#define DB_ADDRESS "10.1.0.3"
#define DB_UUID "22222222-2222-4222-8222-222222222222"
#define ODD_ADDRESS "10.1.0.4"
#define ODD_UUID "33333333-3333-4333-8333-333333333333"
#define NOBODY "10.1.0.99"

struct device {
    char root[64];
    char *blob_path, *patch_path, *diag_path;
    struct arena *arena;
    struct clock_virtual clock;
    bool is_not_ready, has_no_documents, has_no_network, has_no_ports, fails_tpm, fails_publish;
    bool has_cipher; /* user data is encrypted */
    struct str user_data;
    struct str published_key, published; /* the last, as text */
    size_t n_published, n_described, n_downloaded;
    int64_t patch_size;
};

extern const struct msrv_world device_world;

/* The directory and the files in it: a blob of "0123456789", a patch of "patch bytes". */
void device_init(struct device *d);
void device_done(struct device *d);
void device_write(struct device *d, const char *path, const void *bytes, size_t n);
