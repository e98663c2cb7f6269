/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values (RFC 4180) as Go's encoding/csv reads them: empty lines skipped, quotes
 * only around a whole field, any number of fields. */
#pragma once

#include "base/arena.h"

#define CSV_MAX_FIELDS 64

struct csv_reader {
    struct str rest;
    size_t line; /* of what is read next, from 1 */
};

struct csv_record {
    struct str fields[CSV_MAX_FIELDS]; /* in the text or the arena */
    size_t n;
    size_t line; /* where it begins */
};

void csv_init(struct csv_reader *r, struct str text);
/* 1: a record; 0: the end; -EINVAL with *ret_error (static) about reader->line. */
int csv_next(struct csv_reader *r, struct arena *a, struct csv_record *ret, const char **ret_error);
