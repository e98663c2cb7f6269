/* SPDX-License-Identifier: Apache-2.0 */
/* What Adam has stored, as it stands in its directory or in its Redis. Reading changes nothing
 * there, and judges nothing but what it cannot read at all. */
#pragma once

#include "base/arena.h"

/* One file, one value: configurations are the largest. */
#define ADAM_STORE_MAX_VALUE_BYTES ((size_t) 16 * 1024 * 1024)
#define ADAM_STORE_MAX_BYTES ((size_t) 1024 * 1024 * 1024)
#define ADAM_STORE_MAX_ENTRIES ((size_t) 1000000)

/* A certificate that devices register with. */
struct adam_stored_onboard {
    struct str where;   /* for people */
    struct str cert;    /* PEM */
    struct str serials; /* separated by blanks */
    struct str problem; /* why it cannot be taken; NULL: none */
};

enum adam_part {
    ADAM_CERT,
    ADAM_ONBOARD,
    ADAM_SERIAL,
    ADAM_CONFIG,       /* EdgeDevConfig: bytes, or JSON of older releases */
    ADAM_CERTS,        /* {"certs": [ZCert]} in Go's plain JSON */
    ADAM_STORAGE_KEYS, /* AttestStorageKeys, likewise */
    ADAM_OPTIONS,
    ADAM_PARTS
};

struct adam_stored_device {
    struct str where;
    struct str uuid;
    struct str parts[ADAM_PARTS]; /* NULL: absent */
    struct str problem;
};

struct adam_store {
    struct arena *arena;
    struct adam_stored_onboard *onboards;
    size_t n_onboards;
    struct adam_stored_device *devices;
    size_t n_devices;
    struct str global_options; /* JSON; NULL: absent */
};

/* All in the arena. Failure: negative errno and *ret_error (heap). */
int adam_store_read_directory(struct arena *a, const char *path, struct adam_store *ret,
                              char **ret_error);
/* redis://[password@]host[:port][/database] */
int adam_store_read_redis(struct arena *a, const char *url, struct adam_store *ret,
                          char **ret_error);

/* ---- for the two readers --------------------------------------------------------------------- */

struct adam_stored_onboard *adam_store_add_onboard(struct adam_store *s);
struct adam_stored_device *adam_store_add_device(struct adam_store *s, struct str uuid);
/* The list in msgpack that Adam keeps serial numbers in, separated by blanks. -EBADMSG. */
int adam_store_unpack_serials(struct arena *a, struct str msgpack, struct str *ret_serials);
