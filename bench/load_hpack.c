/* SPDX-License-Identifier: Apache-2.0 */
#include "load_hpack.h"

#define TABLE_BYTES 4096 /* what every server has until told otherwise */
#define ENTRY_BYTES 32
#define FIRST_DYNAMIC 62

static void put_integer(struct buf *b, unsigned pattern, unsigned prefix_bits, size_t n)
{
    size_t most = (1u << prefix_bits) - 1;
    if (n < most) {
        buf_append_char(b, (char) (pattern | n));
        return;
    }
    buf_append_char(b, (char) (pattern | most));
    for (n -= most; n >= 128; n /= 128)
        buf_append_char(b, (char) (n % 128 + 128));
    buf_append_char(b, (char) n);
}

static void put_text(struct buf *b, struct str s)
{
    put_integer(b, 0, 7, s.n);
    buf_append_str(b, s);
}

static bool remember(struct hpack *h, struct str name, struct str value)
{
    size_t n_bytes = name.n + value.n + ENTRY_BYTES;
    if (h->n == HPACK_MAX_ENTRIES || h->n_bytes + n_bytes > TABLE_BYTES)
        return false;
    h->entries[h->n].name = name;
    h->entries[h->n++].value = value;
    h->n_bytes += n_bytes;
    return true;
}

void hpack_encode(struct hpack *h, struct buf *b, struct str name, struct str value, bool is_steady)
{
    for (size_t i = 0; i < h->n && is_steady; i++)
        if (str_eq(h->entries[i].name, name) && str_eq(h->entries[i].value, value)) {
            put_integer(b, 0x80, 7, FIRST_DYNAMIC + h->n - 1 - i);
            return;
        }
    bool is_kept = is_steady && remember(h, name, value);
    buf_append_char(b, is_kept ? 0x40 : 0);
    put_text(b, name);
    put_text(b, value);
}
