/* SPDX-License-Identifier: Apache-2.0 */
#include "store/reseal.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/replay.h"
#include "store/seal.h"

/* What one transaction rewrites; one row always fits. */
#define BATCH_MAX_ROWS 512
#define BATCH_MAX_BYTES (4 * 1024 * 1024)

/* ---- gathering ------------------------------------------------------------------------------ */

void reseal_note(struct reseal *rs, const struct row *row)
{
    bool is_due = is_row_stale(rs->cipher, row) || (rs->takes_all && row_is_sealed(row));
    if (!is_due)
        return;
    if (rs->n == rs->capacity) {
        rs->capacity = MAX(rs->capacity * 2, (size_t) 64);
        rs->revisions = mem_realloc_array(rs->revisions, rs->capacity, sizeof(int64_t));
    }
    rs->revisions[rs->n++] = row->revision;
}

void reseal_done(struct reseal *rs)
{
    mem_free(rs->revisions);
    *rs = (struct reseal){0};
}

/* ---- writing -------------------------------------------------------------------------------- */

struct rooms {
    struct buf stored, plain, sealed;
};

static void rooms_done(struct rooms *rooms)
{
    buf_done(&rooms->stored);
    buf_done(&rooms->plain);
    buf_done(&rooms->sealed);
}

/* Positive: the bytes it wrote. */
static int64_t rewrite_row(const struct reseal *rs, struct disk *d, int64_t revision,
                           struct rooms *rooms)
{
    struct row row = {0};
    char *why = NULL;
    int r = disk_read(d, revision, &rooms->stored, &row);
    if (r == 0)
        r = open_row(rs->cipher, &row, &rooms->plain, &row, &why);
    mem_free(why); /* it could be opened a moment ago */
    if (r == 0)
        r = seal_row(rs->cipher, &row, &rooms->sealed);
    if (r == 0)
        r = disk_rewrite(d, &row);
    return r < 0 ? r : (int64_t) row.text.n;
}

/* One transaction from the row number `first` on; returns how many rows it took. */
static int64_t rewrite_some(const struct reseal *rs, struct disk *d, size_t first,
                            struct rooms *rooms)
{
    int64_t n_bytes = 0, r = disk_begin(d);
    size_t i = first;
    if (r == 0)
        r = disk_want_scrub(d);
    for (; r >= 0 && i < rs->n && i - first < BATCH_MAX_ROWS && n_bytes < BATCH_MAX_BYTES; i++) {
        r = rewrite_row(rs, d, rs->revisions[i], rooms);
        n_bytes += r;
    }
    if (r >= 0)
        r = disk_commit(d);
    if (r < 0)
        disk_rollback(d);
    return r < 0 ? r : (int64_t) (i - first);
}

int reseal_run(const struct reseal *rs, struct disk *d, const char *path, char **ret_error)
{
    CLEANUP(rooms_done) struct rooms rooms = {0};
    int64_t r = disk_begin_rewriting(d);
    /* Also when there is no row: that the file is to be scrubbed must be in it first. */
    for (size_t at = 0; r >= 0 && (at == 0 || at < rs->n); at += (size_t) MAX(r, 1)) {
        r = rewrite_some(rs, d, at, &rooms);
        if (disk_wal_bytes(d) > DISK_CHECKPOINT_BYTES)
            disk_checkpoint(d);
    }
    if (r >= 0)
        r = disk_scrub(d);
    if (r < 0) {
        BUF_AUTO doing = {0};
        buf_printf(&doing, "cannot seal its texts (%s)", disk_last_error(d));
        *ret_error = disk_complaint(path, doing.p, (int) r);
        return (int) r;
    }
    return 0;
}

/* ---- a whole store -------------------------------------------------------------------------- */

struct store_reseal {
    char *path;
    struct disk *disk;
    struct reseal rows;
};

static int replay_one(void *ctx, const struct row *row, char **ret_error)
{
    return replay_row(ctx, row, ret_error);
}

static int load(struct store_reseal *rs, const struct store_options *options, char **ret_error)
{
    struct index ix;
    struct sweep sweep = {0};
    index_init(&ix, /* floor= */ 1);
    struct replay rp = {.ix = &ix,
                        .sweep = &sweep,
                        .path = rs->path,
                        .floor = disk_floor(rs->disk),
                        .parse_head = options->parse_head,
                        .ctx = options->ctx,
                        .cipher = options->cipher,
                        .reseal = &rs->rows};
    int r = disk_load(rs->disk, replay_one, &rp, ret_error);
    replay_done(&rp);
    sweep_done(&sweep);
    index_done(&ix);
    return r;
}

int store_reseal_open(const struct store_options *options, struct store_reseal **ret_reseal,
                      char **ret_error)
{
    const struct store_cipher *cipher = options->cipher;
    if (access(options->path, F_OK) < 0) {
        int r = -errno;
        *ret_error = disk_complaint(options->path, "there is no store to seal", r);
        return r;
    }
    CLEANUP(store_reseal_closep) struct store_reseal *rs = NEW(struct store_reseal);
    rs->path = mem_strdup(options->path);
    rs->rows = (struct reseal){.cipher = cipher, .takes_all = true};
    int r = disk_open(rs->path, DISK_SERVE, &rs->disk, ret_error);
    if (r == 0)
        r = cipher->on_locked(cipher->ctx, ret_error);
    if (r == 0)
        r = load(rs, options, ret_error);
    if (r == 0)
        *ret_reseal = TAKE(rs);
    return r;
}

int store_reseal_run(struct store_reseal *rs, size_t *ret_n_rows, char **ret_error)
{
    int r = reseal_run(&rs->rows, rs->disk, rs->path, ret_error);
    if (r == 0)
        *ret_n_rows = rs->rows.n;
    return r;
}

void store_reseal_close(struct store_reseal *rs)
{
    if (!rs)
        return;
    disk_close(rs->disk);
    reseal_done(&rs->rows);
    mem_free(rs->path);
    mem_free(rs);
}
