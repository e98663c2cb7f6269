/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are to be sealed again, gathered while the file is read, written while nobody else
 * writes. */
#pragma once

#include "store/disk.h"

struct reseal {
    const struct store_cipher *cipher; /* NULL: there is nothing to do */
    bool takes_all; /* also rows that are sealed as they would be now: that is about to change */
    int64_t *revisions;
    size_t n;
    size_t capacity;
};

void reseal_note(struct reseal *rs, const struct row *row);
/* Writes the noted rows again, then has the file forget what it held. */
int reseal_run(const struct reseal *rs, struct disk *d, const char *path, char **ret_error);
void reseal_done(struct reseal *rs);
