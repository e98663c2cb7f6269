/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a damaged or hostile file may hold them, through the code that loads the store. The input
 * is a floor (one byte) and then rows:
 *
 *     flags  1  bit 0: leave the checksum as the input has it, bit 1: revision follows the last
 * row, bit 2: revision_at is where it belongs type   1 revision, revision_at, checksum  8 each,
 * little-endian n_key  1, n_text 2, then both
 *
 * Whatever was accepted must then be readable, at every revision. */
#include <assert.h>
#include <endian.h>
#include <errno.h>

#include "base/alloc.h"
#include "store/replay.h"

#define IS_AS_GIVEN 1
#define IS_NEXT 2
#define IS_PLACED 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    struct str rest;
};

static struct str take(struct input *in, size_t n)
{
    struct str s = str_sub(in->rest, 0, n);
    in->rest = str_from(in->rest, n);
    return s;
}

static uint64_t take_number(struct input *in, size_t n_bytes)
{
    uint64_t value = 0;
    struct str s = take(in, n_bytes);
    if (s.n)
        memcpy(&value, s.p, s.n);
    return le64toh(value);
}

static struct row take_row(struct input *in, int64_t last)
{
    uint64_t flags = take_number(in, 1);
    struct row row = {.type = (int8_t) take_number(in, 1)};
    row.revision = (int64_t) take_number(in, 8);
    row.revision_at = (int64_t) take_number(in, 8);
    row.checksum = (int64_t) take_number(in, 8);
    size_t n_key = take_number(in, 1), n_text = take_number(in, 2);
    row.key = take(in, n_key);
    row.text = take(in, n_text);
    if (flags & IS_NEXT)
        row.revision = last + 1;
    if (flags & IS_PLACED)
        row.revision_at = str_find_str(row.text, STR("\"\"")) + 1;
    if (!(flags & IS_AS_GIVEN))
        row.checksum = row_checksum(&row);
    return row;
}

static int parse_head(void *ctx, struct str key, struct str text, struct object_head *ret_head)
{
    (void) ctx;
    ptrdiff_t slash = str_find_last(key, '/');
    struct str name = str_from(key, (size_t) slash + 1);
    ptrdiff_t at = str_find_str(text, name);
    if (at < 0)
        return -EINVAL;
    *ret_head = (struct object_head){.name = {(uint32_t) at, (uint32_t) name.n}};
    return 0;
}

static void read_everything(struct index *ix, struct str collection)
{
    struct store_event **events = NULL;
    size_t n = 0;
    int r = index_history(ix, collection, ix->floor, ix->revision, &events, &n);
    assert(r == 0);
    for (size_t i = 0; i < n; i++) {
        struct store_range range = {
            .collection = collection, .at = events[i]->revision, .limit = 1 + i % 3};
        struct store_page page = {0};
        r = index_list(ix, &range, &page);
        assert(r == 0 && page.n <= range.limit);
        for (size_t j = 0; j < page.n; j++)
            assert(page.objects[j]->revision <= range.at);
        store_page_done(&page);
        bytes_unref(&events[i]->bytes);
    }
    mem_free(events);
}

/* Oldest first, a few at a time, until nothing is left to forget. */
static void forget_everything(struct index *ix, struct sweep *sweep)
{
    while (ix->oldest)
        sweep_events(sweep, index_trim(ix, ix->revision, 3));
    size_t n_left = index_n_objects(ix);
    assert(n_left <= (size_t) ix->revision);
    (void) n_left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {str_range((const char *) data, size)};
    struct index ix;
    struct sweep sweep = {0};
    index_init(&ix, /* floor= */ 1);
    struct replay rp = {.ix = &ix,
                        .sweep = &sweep,
                        .path = "fuzz.db",
                        .floor = 1 + (int64_t) take_number(&in, 1),
                        .parse_head = parse_head};
    int r = 0;
    while (r == 0 && in.rest.n) {
        struct row row = take_row(&in, ix.revision);
        char *error = NULL;
        r = replay_row(&rp, &row, &error);
        assert((r < 0) == (error != NULL));
        mem_free(error);
    }
    if (r == 0) {
        replay_finish(&rp);
        assert(ix.revision >= rp.floor && ix.floor == rp.floor);
        size_t position = 0;
        struct map_entry item;
        while (map_next(&ix.collections, &position, &item))
            read_everything(&ix, item.key);
        forget_everything(&ix, &sweep);
    }
    sweep_done(&sweep);
    index_done(&ix);
    return 0;
}
