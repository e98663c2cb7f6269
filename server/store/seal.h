/* SPDX-License-Identifier: Apache-2.0 */
/* Between rows as memory has them and rows as the file has them, by the cipher the store was given.
 * What a text is sealed with is the cipher's affair. */
#pragma once

#include "store/row.h"

/* Makes a plain row one for the file: sealed when its collection is to be (its text then lies in
 * room), with its checksum. cipher NULL: it stays plain. */
int seal_row_if_wanted(const struct store_cipher *cipher, struct row *row, struct buf *room);
/* The same for any collection. */
int seal_row(const struct store_cipher *cipher, struct row *row, struct buf *room);
/* The plain row of one from the file that has no fault; a sealed one's text lies in room. Failure:
 * as store_cipher.open(). */
int open_row(const struct store_cipher *cipher, const struct row *row, struct buf *room,
             struct row *ret_plain, char **ret_error);
/* Whether the row of the file should be written again: plain where it should be sealed, or sealed
 * otherwise than it would be now. */
bool is_row_stale(const struct store_cipher *cipher, const struct row *row);
