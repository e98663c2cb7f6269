/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as rows of a meta/v1 Table: the columns of a kind and their cells, by JSONPath or, for
 * native kinds, by functions that the manifests name. */
#pragma once

#include "api/kind.h"

/* Times that live in memory and not in objects, for columns of type date. */
struct table_live {
    void *ctx;
    /* Wall clock; 0: what the object says stands. From any thread. */
    int64_t (*time_us)(void *ctx, const struct kind *kind, struct str column,
                       const struct json *object);
};

enum table_include { TABLE_INCLUDE_METADATA, TABLE_INCLUDE_OBJECT, TABLE_INCLUDE_NONE };

struct table_options {
    enum table_include include;
    struct str meta_version;       /* of the PartialObjectMetadata in a row: "v1" or "v1beta1" */
    int64_t now_us;                /* for ages */
    const struct table_live *live; /* NULL: none */
};

/* The array of column definitions. */
void table_write_columns(struct buf *b, const struct kind *kind);
/* One row: cells and what options include of the object, which is in the kind's form. */
void table_write_row(struct buf *b, struct arena *a, const struct kind *kind,
                     const struct json *object, const struct table_options *options);
/* A table without rows has `[]`, but `null` where kube-apiserver knows no columns of the kind but
 * its creation. */
struct str table_no_rows(const struct kind *kind);

#define TABLE_AGE_BYTES 24
/* How long ago in the form of kubectl: 90s, 3m4s, 5d, 2y10d. */
struct str table_age(int64_t age_us, char out[TABLE_AGE_BYTES]);
