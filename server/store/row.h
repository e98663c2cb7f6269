/* SPDX-License-Identifier: Apache-2.0 */
/* A write as the log keeps it, and what makes one believable. Nothing here touches the disk. */
#pragma once

#include "store/object.h"
#include "store/store.h"

#define STORE_KEY_MAX_BYTES 1024
/* No log ever grows this long; a larger number is damage. */
#define STORE_REVISION_MAX (INT64_C(1) << 62)

struct row {
    int64_t revision;
    int64_t type;        /* enum store_event_type */
    int64_t revision_at; /* where the digits of the revision belong in the text */
    int64_t checksum;
    struct str key;
    struct str text; /* as submitted: without the digits; in the file possibly sealed */
};

/* No JSON text begins with it, all sealed ones do. */
#define ROW_SEALED_MARK '\x01'

static inline bool row_is_sealed(const struct row *row)
{
    return row->text.n > 0 && row->text.p[0] == ROW_SEALED_MARK;
}

/* Over everything else in the row. Any change within eight aligned bytes is always noticed. */
int64_t row_checksum(const struct row *row);
/* NULL when the row can be used, else what is wrong with it, for a person. Says nothing about what
 * a sealed text hides. */
const char *row_fault(const struct row *row);
/* The part of it that a text can be asked only when it is plain. */
const char *row_text_fault(const struct row *row);

/* `<collection>/<namespace>/<name>` taken apart at its first slash; -EINVAL when it is no key. */
int key_split(struct str key, struct str *ret_collection, struct str *ret_rest);
