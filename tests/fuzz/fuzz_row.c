/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a damaged or hostile file may hold them, through the code that loads the store. The input
 * is a floor (one byte) and then rows:
 *
 *     flags  1  bit 0: leave the checksum as the input has it
 *               bit 1: revision follows the last row
 *               bit 2: revision_at is where it belongs
 *               bit 3: the text is sealed with a key we have
 *               bit 4: and a bit of it is turned, the one numbered by revision_at
 *     type   1
 *     revision, revision_at, checksum  8 each, little-endian
 *     n_key  1, n_text 2, then both
 *
 * Whatever was accepted must then be readable, at every revision; what was turned must not be
 * accepted. */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/replay.h"
#include "store/seal.h"
#include "vault.h"

#define IS_AS_GIVEN 1
#define IS_NEXT 2
#define IS_PLACED 4
#define IS_SEALED 8
#define IS_TURNED 16

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

/* ---- sealed texts --------------------------------------------------------------------------- */

static void write_keys(const char *path)
{
    static const char keys[] = "keys:\n- id: fc767b53b246e16c\n"
                               "  secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    FILE *f = fopen(path, "w");
    if (!f || fputs(keys, f) < 0 || fclose(f) != 0)
        abort();
    (void) chmod(path, 0600);
}

/* A vault whose one key is known, made once; its file is gone as soon as it was read. */
static const struct store_cipher *cipher(void)
{
    static struct vault *vault;
    if (vault)
        return vault_cipher(vault);
    ARENA_AUTO a = arena_new();
    char directory[] = "/tmp/seth-fuzz-XXXXXX", *error = NULL;
    if (!mkdtemp(directory))
        abort();
    const char *pki = arena_printf(a, "%s/pki", directory).p;
    struct vault_options o = {.data_dir = directory, .kinds = "secrets", .key_command = ""};
    if (mkdir(pki, 0700) < 0 || vault_new(&o, &vault, &error) < 0)
        abort();
    write_keys(vault_path(vault));
    const struct store_cipher *c = vault_cipher(vault);
    if (c->on_locked(c->ctx, &error) < 0)
        abort();
    (void) unlink(vault_path(vault));
    (void) rmdir(pki);
    (void) rmdir(directory);
    return c;
}

/* Where nobody could have written such a row there is nothing to seal. */
static void seal_text(struct row *row, uint64_t flags, struct buf *room)
{
    struct str collection = STR_NONE, rest = STR_NONE;
    if (!(flags & IS_SEALED) || key_split(row->key, &collection, &rest) < 0)
        return;
    int r = seal_row(cipher(), row, room);
    assert(r == 0);
    if (flags & IS_TURNED) {
        size_t bit = (uint64_t) row->revision_at % (room->n * 8 - 8) + 8; /* not of the mark */
        room->p[bit / 8] ^= (char) (1 << bit % 8);
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static struct row take_row(struct input *in, int64_t last, uint64_t *ret_flags, struct buf *room)
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
    seal_text(&row, flags, room);
    if (!(flags & IS_AS_GIVEN))
        row.checksum = row_checksum(&row);
    *ret_flags = flags;
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
                        .parse_head = parse_head,
                        .cipher = cipher()};
    BUF_AUTO room = {0};
    int r = 0;
    while (r == 0 && in.rest.n) {
        uint64_t flags = 0;
        struct row row = take_row(&in, ix.revision, &flags, &room);
        char *error = NULL;
        r = replay_row(&rp, &row, &error);
        assert((r < 0) == (error != NULL));
        assert(r < 0 || !row_is_sealed(&row) || !(flags & IS_TURNED) || !(flags & IS_SEALED));
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
    replay_done(&rp);
    sweep_done(&sweep);
    index_done(&ix);
    return 0;
}
