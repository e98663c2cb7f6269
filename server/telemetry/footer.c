/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/footer.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "telemetry/crc32c.h"

#define ROW_BYTES ((size_t) 56)
#define ENTRY_BYTES ((size_t) 16)
#define ROWS_AT_ONCE ((size_t) 128)
#define PIECE_BYTES ((size_t) 64 * 1024)

/* Offsets in a row. */
enum {
    ROW_AT_DEVICE = 0,
    ROW_AT_FORGET = 16,
    ROW_AT_LAST_ID = 24,
    ROW_AT_LAST_ARRIVED = 32,
    ROW_AT_BYTES = 40,
    ROW_AT_FIRST = 48,
    ROW_AT_N = 52,
};

/* Offsets in the trailer; the last checksum covers the rest of it. The salt binds it to its frames.
 */
enum {
    TRAILER_AT_NAME = 0,
    TRAILER_AT_END = 8,
    TRAILER_AT_ROWS = 16,
    TRAILER_AT_ENTRIES = 20,
    TRAILER_AT_LAST_ID = 24,
    TRAILER_AT_LAST_ARRIVED = 32,
    TRAILER_AT_MAGIC = 40,
    TRAILER_AT_SEED = 44,
    TRAILER_AT_CRC = 48,
    TRAILER_AT_SUM = 52,
    TRAILER_BYTES = 56,
};

static const char trailer_name[8] = "sethidx1";

/* ---- writing -------------------------------------------------------------------------------- */

static void put_row(unsigned char *p, const struct row *r)
{
    memcpy(p + ROW_AT_DEVICE, r->device.bytes, sizeof(r->device.bytes));
    put_u64(p + ROW_AT_FORGET, r->forget_id);
    put_u64(p + ROW_AT_LAST_ID, r->last_id);
    put_u64(p + ROW_AT_LAST_ARRIVED, (uint64_t) r->last_arrived_us);
    put_u64(p + ROW_AT_BYTES, r->n_bytes);
    put_u32(p + ROW_AT_FIRST, r->first);
    put_u32(p + ROW_AT_N, r->n);
}

static void put_entry(unsigned char *p, const struct entry *e)
{
    put_u32(p, e->position);
    put_u32(p + 4, e->size_stream);
    put_u32(p + 8, e->id_delta);
    put_u32(p + 12, e->arrived_ms);
}

static void append_rows(struct buf *to, struct holding **all, size_t n, uint32_t *ret_n_entries)
{
    uint32_t first = 0;
    for (size_t i = 0; i < n; i++) {
        struct row row = all[i]->row;
        row.first = first;
        first += row.n;
        put_row((unsigned char *) buf_reserve(to, ROW_BYTES), &row);
        to->n += ROW_BYTES;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char *p = (unsigned char *) buf_reserve(to, all[i]->row.n * ENTRY_BYTES);
        for (uint32_t j = 0; j < all[i]->row.n; j++)
            put_entry(p + j * ENTRY_BYTES, &all[i]->entries[j]);
        to->n += all[i]->row.n * ENTRY_BYTES;
    }
    *ret_n_entries = first;
}

static void append_trailer(struct buf *to, const struct segment *s, uint32_t n_rows,
                           uint32_t n_entries)
{
    uint32_t crc = crc32c(0, to->p ? to->p : "", to->n);
    unsigned char *p = (unsigned char *) buf_reserve(to, TRAILER_BYTES);
    memcpy(p + TRAILER_AT_NAME, trailer_name, sizeof(trailer_name));
    put_u64(p + TRAILER_AT_END, atomic_load(&s->end));
    put_u32(p + TRAILER_AT_ROWS, n_rows);
    put_u32(p + TRAILER_AT_ENTRIES, n_entries);
    put_u64(p + TRAILER_AT_LAST_ID, s->last_id);
    put_u64(p + TRAILER_AT_LAST_ARRIVED, (uint64_t) s->last_arrived_us);
    put_u32(p + TRAILER_AT_MAGIC, s->head.salt.magic);
    put_u32(p + TRAILER_AT_SEED, s->head.salt.seed);
    put_u32(p + TRAILER_AT_CRC, crc);
    put_u32(p + TRAILER_AT_SUM, crc32c(0, p, TRAILER_AT_SUM));
    to->n += TRAILER_BYTES;
}

int footer_write(const struct segment *s, const struct live *l, uint32_t *ret_n_rows,
                 uint64_t *ret_file_bytes)
{
    size_t n = 0;
    uint32_t n_entries = 0;
    struct holding **all = live_sorted(l, &n);
    BUF_AUTO b = {0};
    append_rows(&b, all, n, &n_entries);
    append_trailer(&b, s, (uint32_t) n, n_entries);
    mem_free(all);
    uint64_t end = atomic_load(&s->end);
    /* What a failed write left behind the frames must not follow the trailer. */
    int r = ftruncate(s->fd, (off_t) end) < 0 ? -errno : 0;
    if (r == 0)
        r = segment_pwrite(s, b.p, b.n, end);
    if (r == 0 && fdatasync(s->fd) < 0)
        r = -errno;
    if (r < 0) {
        (void) !ftruncate(s->fd, (off_t) end);
        return r;
    }
    *ret_n_rows = (uint32_t) n;
    *ret_file_bytes = end + b.n;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static struct row get_row(const unsigned char *p)
{
    struct row r = {
        .forget_id = get_u64(p + ROW_AT_FORGET),
        .last_id = get_u64(p + ROW_AT_LAST_ID),
        .last_arrived_us = (int64_t) get_u64(p + ROW_AT_LAST_ARRIVED),
        .n_bytes = get_u64(p + ROW_AT_BYTES),
        .first = get_u32(p + ROW_AT_FIRST),
        .n = get_u32(p + ROW_AT_N),
    };
    memcpy(r.device.bytes, p + ROW_AT_DEVICE, sizeof(r.device.bytes));
    return r;
}

static struct entry get_entry(const unsigned char *p)
{
    return (struct entry){get_u32(p), get_u32(p + 4), get_u32(p + 8), get_u32(p + 12)};
}

static uint64_t row_position(const struct segment *s, size_t i)
{
    return atomic_load(&s->end) + i * ROW_BYTES;
}

static uint64_t entry_position(const struct segment *s, size_t i)
{
    return row_position(s, s->n_rows) + i * ENTRY_BYTES;
}

static int check_pieces(const struct segment *s, uint64_t from, uint64_t to, uint32_t expected)
{
    CLEANUP(buf_done) struct buf b = {0};
    unsigned char *piece = (unsigned char *) buf_reserve(&b, PIECE_BYTES);
    uint32_t crc = 0;
    while (from < to) {
        size_t n = (size_t) MIN(PIECE_BYTES, to - from);
        int r = segment_pread(s, piece, n, from);
        if (r < 0)
            return r;
        crc = crc32c(crc, piece, n);
        from += n;
    }
    return crc == expected ? 0 : -EBADMSG;
}

static void note_row(void *ctx, const struct row *r)
{
    const struct segment **bad = ctx;
    const struct segment *s = *bad;
    if (s && (r->first > s->n_entries || r->n > s->n_entries - r->first))
        *bad = NULL;
}

int footer_load(struct segment *s)
{
    unsigned char t[TRAILER_BYTES];
    if (s->file_bytes < SEGMENT_HEAD_BYTES + TRAILER_BYTES)
        return -EBADMSG;
    int r = segment_pread(s, t, sizeof(t), s->file_bytes - TRAILER_BYTES);
    if (r < 0)
        return r;
    uint64_t end = get_u64(t + TRAILER_AT_END);
    uint64_t n_rows = get_u32(t + TRAILER_AT_ROWS), n_entries = get_u32(t + TRAILER_AT_ENTRIES);
    uint64_t n_index = n_rows * ROW_BYTES + n_entries * ENTRY_BYTES;
    if (memcmp(t, trailer_name, sizeof(trailer_name)) != 0 ||
        get_u32(t + TRAILER_AT_SUM) != crc32c(0, t, TRAILER_AT_SUM) ||
        get_u32(t + TRAILER_AT_MAGIC) != s->head.salt.magic ||
        get_u32(t + TRAILER_AT_SEED) != s->head.salt.seed || end < SEGMENT_HEAD_BYTES ||
        n_index > s->file_bytes || end != s->file_bytes - TRAILER_BYTES - n_index)
        return -EBADMSG;
    r = check_pieces(s, end, end + n_index, get_u32(t + TRAILER_AT_CRC));
    if (r < 0)
        return r;
    atomic_store(&s->end, end);
    s->n_rows = (uint32_t) n_rows;
    s->n_entries = (uint32_t) n_entries;
    const struct segment *good = s;
    r = footer_each(s, note_row, &good);
    if (r < 0 || !good)
        return r < 0 ? r : -EBADMSG;
    s->n_records = n_entries;
    s->last_id = get_u64(t + TRAILER_AT_LAST_ID);
    s->last_arrived_us = (int64_t) get_u64(t + TRAILER_AT_LAST_ARRIVED);
    return 0;
}

int footer_each(const struct segment *s, void (*fn)(void *ctx, const struct row *r), void *ctx)
{
    unsigned char rows[ROWS_AT_ONCE * ROW_BYTES];
    for (size_t i = 0; i < s->n_rows; i += ROWS_AT_ONCE) {
        size_t n = MIN(ROWS_AT_ONCE, s->n_rows - i);
        int r = segment_pread(s, rows, n * ROW_BYTES, row_position(s, i));
        if (r < 0)
            return r;
        for (size_t j = 0; j < n; j++) {
            struct row row = get_row(rows + j * ROW_BYTES);
            fn(ctx, &row);
        }
    }
    return 0;
}

int footer_row(const struct segment *s, const struct uuid *device, struct row *ret)
{
    unsigned char p[ROW_BYTES];
    size_t low = 0, high = s->n_rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int r = segment_pread(s, p, sizeof(p), row_position(s, middle));
        if (r < 0)
            return r;
        int order = memcmp(p + ROW_AT_DEVICE, device->bytes, sizeof(device->bytes));
        if (order == 0) {
            *ret = get_row(p);
            return 1;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* The first of the row's entries above id `after`. */
static int first_above(const struct segment *s, const struct row *row, uint64_t after,
                       size_t *ret_i)
{
    unsigned char p[ENTRY_BYTES];
    size_t low = 0, high = row->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int r = segment_pread(s, p, sizeof(p), entry_position(s, row->first + middle));
        if (r < 0)
            return r;
        struct entry e = get_entry(p);
        if (entry_id(s, &e) <= after)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_i = low;
    return 0;
}

ssize_t footer_entries(const struct segment *s, const struct uuid *device, uint64_t after,
                       struct entry *ret, size_t max)
{
    struct row row;
    size_t first = 0;
    int r = footer_row(s, device, &row);
    if (r <= 0)
        return r;
    r = after < s->head.first_id ? 0 : first_above(s, &row, after, &first);
    if (r < 0)
        return r;
    size_t n = MIN(max, row.n - first);
    _Static_assert(sizeof(struct entry) == ENTRY_BYTES, "entries are decoded in their place");
    r = segment_pread(s, ret, n * ENTRY_BYTES, entry_position(s, row.first + first));
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        ret[i] = get_entry((const unsigned char *) &ret[i]);
    return (ssize_t) n;
}
