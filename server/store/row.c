/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row.h"

#include <endian.h>
#include <errno.h>

/* Each step is a bijection of the state for a given word and of the word for a given state, so that
 * one wrong word can never go unnoticed; the multiplier (odd, from the golden ratio) and the fold
 * spread the rest. */
static uint64_t mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ (state >> 32);
}

static uint64_t mix_bytes(uint64_t state, struct str s)
{
    size_t i = 0;
    uint64_t word = 0;
    for (; i + sizeof(word) <= s.n; i += sizeof(word)) {
        memcpy(&word, s.p + i, sizeof(word));
        state = mix(state, le64toh(word));
    }
    word = 0;
    if (i < s.n)
        memcpy(&word, s.p + i, s.n - i);
    return mix(mix(state, le64toh(word)), s.n);
}

int64_t row_checksum(const struct row *row)
{
    uint64_t state = mix((uint64_t) row->revision, (uint64_t) row->type);
    state = mix(state, (uint64_t) row->revision_at);
    state = mix_bytes(state, row->key);
    return (int64_t) mix_bytes(state, row->text);
}

int key_split(struct str key, struct str *ret_collection, struct str *ret_rest)
{
    ptrdiff_t slash = str_find(key, '/');
    if (slash <= 0 || key.n > STORE_KEY_MAX_BYTES)
        return -EINVAL;
    struct str rest = str_from(key, (size_t) slash + 1);
    if (str_find(rest, '/') < 0)
        return -EINVAL;
    *ret_collection = str_sub(key, 0, (size_t) slash);
    *ret_rest = rest;
    return 0;
}

const char *row_text_fault(const struct row *row)
{
    if (row->text.n > OBJECT_MAX_BYTES)
        return "is larger than any object may be";
    if (row->revision_at < 1 || row->revision_at >= (int64_t) row->text.n ||
        row->text.p[row->revision_at - 1] != '"' || row->text.p[row->revision_at] != '"')
        return "has no place for its revision";
    return NULL;
}

const char *row_fault(const struct row *row)
{
    struct str collection = STR_NONE, rest = STR_NONE;
    if (row->checksum != row_checksum(row))
        return "fails its checksum";
    if (row->revision <= 1 || row->revision > STORE_REVISION_MAX)
        return "has an impossible revision";
    if (row->type < STORE_ADDED || row->type > STORE_DELETED)
        return "is of an unknown type";
    if (key_split(row->key, &collection, &rest) < 0)
        return "has no valid key";
    if (!row_is_sealed(row))
        return row_text_fault(row);
    if (row->text.n > OBJECT_MAX_BYTES + STORE_SEAL_MAX_BYTES)
        return "is larger than any object may be";
    return NULL;
}
