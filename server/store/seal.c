/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seal.h"

#include <endian.h>

/* Everything about the row but its text and checksum; the numbers first, since they have a fixed
 * length. With the revision in it not even an older text of the same object can come back. */
#define BOUND_NUMBERS 3
struct bound {
    uint64_t numbers[BOUND_NUMBERS];
    char key[STORE_KEY_MAX_BYTES];
};

static struct str bind(struct bound *b, const struct row *row)
{
    b->numbers[0] = htole64((uint64_t) row->revision);
    b->numbers[1] = htole64((uint64_t) row->type);
    b->numbers[2] = htole64((uint64_t) row->revision_at);
    memcpy(b->key, row->key.p, row->key.n);
    return str_range((const char *) b, offsetof(struct bound, key) + row->key.n);
}

static bool is_wanted(const struct store_cipher *cipher, const struct row *row)
{
    struct str collection = STR_NONE, rest = STR_NONE;
    return cipher && key_split(row->key, &collection, &rest) == 0 &&
           cipher->wants(cipher->ctx, collection);
}

int seal_row(const struct store_cipher *cipher, struct row *row, struct buf *room)
{
    struct bound b;
    buf_reset(room);
    buf_append_char(room, ROW_SEALED_MARK);
    int r = cipher->seal(cipher->ctx, bind(&b, row), row->text, room);
    if (r < 0)
        return r;
    row->text = buf_str(room);
    row->checksum = row_checksum(row);
    return 0;
}

int seal_row_if_wanted(const struct store_cipher *cipher, struct row *row, struct buf *room)
{
    if (is_wanted(cipher, row))
        return seal_row(cipher, row, room);
    row->checksum = row_checksum(row);
    return 0;
}

int open_row(const struct store_cipher *cipher, const struct row *row, struct buf *room,
             struct row *ret_plain, char **ret_error)
{
    struct row plain = *row;
    if (row_is_sealed(row)) {
        struct bound b;
        buf_reset(room);
        int r = cipher->open(cipher->ctx, bind(&b, row), str_from(row->text, 1), room, ret_error);
        if (r < 0)
            return r;
        plain.text = buf_str(room);
    }
    *ret_plain = plain;
    return 0;
}

bool is_row_stale(const struct store_cipher *cipher, const struct row *row)
{
    if (row_is_sealed(row))
        return cipher && !cipher->is_current(cipher->ctx, str_from(row->text, 1));
    return is_wanted(cipher, row);
}
