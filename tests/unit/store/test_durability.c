/* SPDX-License-Identifier: Apache-2.0 */
/* What the file promises: what is refused, what is kept, what a full disk does. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fixture.h"

/* ---- looking into the file ----------------------------------------------------------------- */

static int64_t query(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    int rc = sqlite3_step(st);
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);
    return value;
}

static struct buf read_all(const char *path)
{
    struct buf b = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t got = 0;
    while ((got = fread(buf_reserve(&b, 65536), 1, 65536, file)) > 0)
        b.n += got;
    (void) fclose(file);
    return b;
}

static void write_all(const char *path, struct str bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.p, 1, bytes.n, file), bytes.n);
    assert_int_equal(fclose(file), 0);
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static char *sibling(const struct fixture *f, const char *suffix)
{
    struct buf b = {0};
    buf_printf(&b, "%s%s", f->path, suffix);
    return buf_take(&b);
}

/* x and y have a past, z is gone. */
static void open_with_past(struct fixture *f)
{
    fixture_init(f);
    fixture_open(f);
    int64_t x = create(f, "things/a/x", "first"); /* 2 */
    int64_t z = create(f, "things/a/z", "first"); /* 3 */
    (void) create(f, "things/a/y", "only");       /* 4 */
    x = replace(f, "things/a/x", x, "second");    /* 5 */
    (void) remove_key(f, "things/a/z", z);        /* 6 */
    (void) replace(f, "things/a/x", x, "third");  /* 7 */
}

static const struct store_range things = {.collection = {"things", 6}};

/* ---- keeping ------------------------------------------------------------------------------- */

TEST(compaction_deletes_rows_that_nothing_needs)
{
    struct fixture f;
    open_with_past(&f);
    store_compact(f.store, 6);
    fixture_close(&f);
    assert_int_equal(query(&f, "SELECT count(*) FROM log"), 3);
    assert_int_equal(query(&f, "SELECT sum(revision) FROM log"), 4 + 5 + 7);
    assert_int_equal(query(&f, "SELECT value FROM meta WHERE name = 'floor'"), 6);
    fixture_open(&f);
    assert_int_equal(store_compacted(f.store), 5);
    assert_list(&f, &things, "x:7 y:4");
    assert_history(&f, "things", 6, 7, "~7");
    struct store_range range = things;
    range.at = 6;
    assert_list(&f, &range, "x:5 y:4");
    fixture_done(&f);
}

TEST(interrupted_deletion_is_taken_up_by_the_next_start)
{
    struct fixture f;
    open_with_past(&f);
    fixture_close(&f);
    /* As a crash leaves it: the floor has moved and some of the rows below it are gone. */
    (void) query(&f, "UPDATE meta SET value = 7 WHERE name = 'floor'");
    (void) query(&f, "DELETE FROM log WHERE revision IN (2, 3)");
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    assert_int_equal(store_compacted(f.store), 6);
    fixture_close(&f);
    assert_int_equal(query(&f, "SELECT count(*) FROM log"), 2);
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    fixture_done(&f);
}

TEST(close_leaves_one_file_without_a_write_ahead_log)
{
    struct fixture f;
    open_with_past(&f);
    char *wal = sibling(&f, "-wal");
    struct store_stats stats;
    store_stats(f.store, &stats);
    assert_true(stats.wal_bytes > 0 && stats.file_bytes > 0);
    assert_true(exists(wal));
    fixture_close(&f);
    assert_false(exists(wal));
    struct stat st;
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    mem_free(wal);
    fixture_done(&f);
}

TEST(write_ahead_log_does_not_grow_without_bound)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    char *data = mem_zalloc(100001);
    memset(data, 'x', 100000);
    int64_t x = create(&f, "things/a/x", data);
    for (int i = 0; i < 1000; i++)
        x = replace(&f, "things/a/x", x, data);
    struct store_stats stats;
    store_stats(f.store, &stats);
    /* 100 MB went through it. */
    assert_true(stats.wal_bytes < 32 * 1024 * 1024);
    mem_free(data);
    fixture_done(&f);
}

TEST(second_process_is_told_who_has_the_file)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    struct store *second = NULL;
    char *error = NULL;
    assert_int_equal(store_open(&f.options, &second, &error), -EBUSY);
    char pid[32];
    (void) snprintf(pid, sizeof(pid), "pid %d", (int) getpid());
    assert_non_null(strstr(error, pid));
    mem_free(error);
    fixture_close(&f);
    fixture_open(&f);
    fixture_done(&f);
}

/* ---- refusing ------------------------------------------------------------------------------ */

/* Opening must say that the file is damaged and what mends it, and leave it as it was. */
static void assert_refused(struct fixture *f)
{
    struct buf before = read_all(f->path);
    char *error = fixture_open_fails(f, -EBADMSG);
    BUF_AUTO remedy = {0};
    buf_printf(&remedy, "seth restore <backup> --data-dir %s", f->directory);
    assert_non_null(strstr(error, remedy.p));
    struct buf after = read_all(f->path);
    assert_true(str_eq(buf_str(&before), buf_str(&after)));
    buf_done(&before);
    buf_done(&after);
    mem_free(error);
}

TEST(any_flipped_byte_of_an_object_is_noticed)
{
    struct fixture f;
    open_with_past(&f);
    fixture_close(&f);
    struct buf whole = read_all(f.path);
    static const char *const places[] = {"only", "third", "resourceVersion\":\"\"},\"data\":\"only",
                                         "things/a/y", "second"};
    for (size_t i = 0; i < N_ELEMENTS(places); i++) {
        ptrdiff_t at = str_find_str(buf_str(&whole), str_of(places[i]));
        assert_true(at > 0);
        whole.p[at] ^= 0x20;
        write_all(f.path, buf_str(&whole));
        assert_refused(&f);
        whole.p[at] ^= 0x20;
    }
    write_all(f.path, buf_str(&whole));
    buf_done(&whole);
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    fixture_done(&f);
}

TEST(damaged_files_are_refused)
{
    static const struct {
        const char *name;
        const char *sql; /* how the file is damaged from within */
    } cases[] = {
        {"row missing", "DELETE FROM log WHERE revision = 4"},
        {"last row moved", "UPDATE log SET revision = 9 WHERE revision = 7"},
        {"text of another row",
         "UPDATE log SET text = (SELECT text FROM log WHERE revision = 2) WHERE revision = 5"},
        {"key changed", "UPDATE log SET key = 'things/a/w' WHERE revision = 7"},
        {"type changed", "UPDATE log SET type = 1 WHERE revision = 6"},
        {"no log", "DROP TABLE log"},
        {"no meta", "DROP TABLE meta"},
        {"no floor", "DELETE FROM meta"},
        {"floor out of range", "UPDATE meta SET value = 0"},
        {"foreign", "PRAGMA application_id = 7"},
    };
    struct fixture f;
    open_with_past(&f);
    fixture_close(&f);
    struct buf whole = read_all(f.path);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        write_all(f.path, buf_str(&whole));
        (void) query(&f, cases[i].sql);
        assert_refused(&f);
    }
    buf_done(&whole);
    fixture_done(&f);
}

TEST(truncated_empty_and_foreign_files_are_refused)
{
    struct fixture f;
    open_with_past(&f);
    fixture_close(&f);
    struct buf whole = read_all(f.path);
    static const size_t lengths[] = {0, 1, 99, 100, 4096, 16384};
    for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
        assert_true(lengths[i] < whole.n);
        write_all(f.path, str_range(whole.p, lengths[i]));
        assert_refused(&f);
    }
    write_all(f.path, str_range(whole.p, whole.n - 1));
    assert_refused(&f);
    write_all(f.path,
              STR("dear diary, this is not a database, but it is long enough to look at\n"));
    assert_refused(&f);
    buf_done(&whole);
    fixture_done(&f);
}

/* The count of cells in a leaf page, lowered: SQLite itself would read on and never miss the row.
 */
TEST(hidden_row_is_noticed)
{
    struct fixture f;
    open_with_past(&f);
    store_compact(f.store, 7);
    fixture_close(&f);
    int64_t page = query(&f, "SELECT rootpage FROM sqlite_schema WHERE name = 'log'");
    struct buf whole = read_all(f.path);
    char *header = whole.p + (page - 1) * 16384;
    assert_int_equal(header[0], 0x0d);
    assert_int_equal(header[4], 2);
    header[4] = 1;
    write_all(f.path, buf_str(&whole));
    assert_int_equal(query(&f, "SELECT count(*) FROM log"), 1);
    assert_refused(&f);
    buf_done(&whole);
    fixture_done(&f);
}

TEST(missing_file_with_remains_is_not_started_over)
{
    static const char *const remains[] = {"-wal", ".restoring"};
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(remains); i++) {
        char *path = sibling(&f, remains[i]);
        write_all(path, STR("something"));
        char *error = fixture_open_fails(&f, -EBADMSG);
        assert_non_null(strstr(error, "seth restore"));
        assert_false(exists(f.path));
        mem_free(error);
        assert_int_equal(unlink(path), 0);
        mem_free(path);
    }
    fixture_done(&f);
}

TEST(newer_format_is_refused_and_named)
{
    struct fixture f;
    open_with_past(&f);
    fixture_close(&f);
    (void) query(&f, "PRAGMA user_version = 3");
    char *error = fixture_open_fails(&f, -ENOTSUP);
    assert_non_null(strstr(error, "newer"));
    assert_non_null(strstr(error, "format 3"));
    mem_free(error);
    fixture_done(&f);
}

TEST(object_that_the_api_cannot_read_is_refused)
{
    struct fixture f;
    open_with_past(&f);
    struct store_write w = {.condition = STORE_CREATE, .key = STR("things/a/w")};
    struct object_head head = {.revision_at = 1};
    w.object = object_new(STR("\"\" unreadable"), &head);
    assert_int_equal(store_write_sync(f.store, &w), 0);
    object_unref(w.committed);
    fixture_close(&f);
    char *error = fixture_open_fails(&f, -EBADMSG);
    assert_non_null(strstr(error, "revision 8"));
    mem_free(error);
    fixture_done(&f);
}

TEST(missing_directory_is_named)
{
    struct fixture f;
    fixture_init(&f);
    struct store_options options = f.options;
    options.path = "/nonexistent/directory/store.db";
    struct store *s = NULL;
    char *error = NULL;
    assert_int_equal(store_open(&options, &s, &error), -ENOENT);
    assert_non_null(strstr(error, options.path));
    mem_free(error);
    fixture_done(&f);
}

/* ---- a full disk --------------------------------------------------------------------------- */

static void limit_file_size(rlim_t n)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(full_disk_fails_writes_and_nothing_else)
{
    struct fixture f;
    open_with_past(&f);
    (void) signal(SIGXFSZ, SIG_IGN);
    struct store_stats stats;
    store_stats(f.store, &stats);
    limit_file_size((rlim_t) stats.wal_bytes + 4096);
    log_set_level((enum log_level) - 1);
    char *data = mem_zalloc(200001);
    memset(data, 'x', 200000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(write_one(&f, STORE_CREATE, "things/a/big", 0, data).result, -ENOSPC);
    store_stats(f.store, &stats);
    assert_true(stats.is_full);
    assert_int_equal(store_revision(f.store), 7);
    assert_null(store_get(f.store, STR("things/a/big")));
    assert_list(&f, &things, "x:7 y:4");

    limit_file_size(RLIM_INFINITY);
    assert_int_equal(create(&f, "things/a/big", data), 8);
    store_stats(f.store, &stats);
    assert_false(stats.is_full);
    mem_free(data);
    fixture_close(&f);
    fixture_open(&f);
    assert_list(&f, &things, "big:8 x:7 y:4");
    fixture_done(&f);
}

/* ---- backup and restore -------------------------------------------------------------------- */

TEST(backup_of_a_running_store_is_a_whole_store)
{
    struct fixture f, copy;
    open_with_past(&f);
    fixture_init(&copy);
    char *error = NULL;
    assert_int_equal(store_backup(f.path, copy.path, &error), 0);
    (void) create(&f, "things/a/later", "");
    assert_int_equal(store_backup(f.path, copy.path, &error), -EEXIST);
    assert_non_null(strstr(error, copy.path));
    mem_free(error);
    struct stat st;
    assert_int_equal(stat(copy.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    fixture_open(&copy);
    assert_list(&copy, &things, "x:7 y:4");
    assert_history(&copy, "things", 1, 7, "+2 +3 +4 ~5 -6 ~7");
    fixture_done(&copy);
    fixture_done(&f);
}

TEST(backup_of_what_is_not_there_or_damaged_leaves_nothing)
{
    struct fixture f, copy;
    fixture_init(&f);
    fixture_init(&copy);
    char *error = NULL;
    assert_int_equal(store_backup(f.path, copy.path, &error), -ENOENT);
    mem_free(error);
    assert_false(exists(f.path));

    fixture_open(&f);
    (void) create(&f, "things/a/x", "only");
    fixture_close(&f);
    struct buf whole = read_all(f.path);
    whole.p[str_find_str(buf_str(&whole), STR("only"))] ^= 1;
    write_all(f.path, buf_str(&whole));
    buf_done(&whole);
    assert_int_equal(store_backup(f.path, copy.path, &error), -EBADMSG);
    assert_non_null(strstr(error, f.path));
    mem_free(error);
    char *partial = sibling(&copy, ".partial");
    assert_false(exists(copy.path) || exists(partial));
    mem_free(partial);
    fixture_done(&f);
    fixture_done(&copy);
}

TEST(restore_brings_the_backup_back_and_keeps_what_was_there)
{
    struct fixture f, copy;
    open_with_past(&f);
    fixture_init(&copy);
    char *error = NULL;
    assert_int_equal(store_backup(f.path, copy.path, &error), 0);
    (void) create(&f, "things/a/later", "");

    assert_int_equal(store_restore(copy.path, f.path, &error), -EBUSY);
    assert_non_null(strstr(error, "another process"));
    mem_free(error);
    fixture_close(&f);

    assert_int_equal(store_restore(copy.path, f.path, &error), 0);
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    fixture_close(&f);
    char *kept = sibling(&f, ".before-restore");
    struct fixture old = f;
    old.options.path = kept;
    fixture_open(&old);
    assert_list(&old, &things, "later:8 x:7 y:4");
    fixture_close(&old);

    /* A second time, over a file that is beyond reading. */
    write_all(f.path, STR("garbage"));
    assert_int_equal(store_restore(copy.path, f.path, &error), 0);
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    fixture_close(&f);
    char *second = sibling(&f, ".before-restore-2");
    assert_true(exists(kept) && exists(second));
    mem_free(kept);
    mem_free(second);
    fixture_done(&copy);
    fixture_done(&f);
}

TEST(restore_takes_the_old_write_ahead_log_out_of_the_way)
{
    struct fixture f, copy;
    open_with_past(&f);
    fixture_init(&copy);
    char *error = NULL;
    assert_int_equal(store_backup(f.path, copy.path, &error), 0);
    (void) create(&f, "things/a/later", "");
    /* As a crash leaves it: the file with its log. */
    char *wal = sibling(&f, "-wal"), *kept_wal = sibling(&f, ".before-restore-wal");
    struct buf file = read_all(f.path), log = read_all(wal);
    fixture_close(&f);
    write_all(f.path, buf_str(&file));
    write_all(wal, buf_str(&log));
    assert_int_equal(store_restore(copy.path, f.path, &error), 0);
    assert_false(exists(wal));
    assert_true(exists(kept_wal));
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    buf_done(&file);
    buf_done(&log);
    mem_free(wal);
    mem_free(kept_wal);
    fixture_done(&copy);
    fixture_done(&f);
}

TEST(damaged_backup_is_refused_and_the_data_stays)
{
    struct fixture f, copy;
    open_with_past(&f);
    fixture_init(&copy);
    char *error = NULL;
    assert_int_equal(store_backup(f.path, copy.path, &error), 0);
    fixture_close(&f);
    struct buf whole = read_all(copy.path);
    whole.p[str_find_str(buf_str(&whole), STR("third"))] ^= 1;
    write_all(copy.path, buf_str(&whole));
    buf_done(&whole);
    assert_int_equal(store_restore(copy.path, f.path, &error), -EBADMSG);
    assert_non_null(strstr(error, copy.path));
    mem_free(error);
    assert_int_equal(store_restore("/nonexistent", f.path, &error), -ENOENT);
    mem_free(error);
    fixture_open(&f);
    assert_list(&f, &things, "x:7 y:4");
    fixture_done(&copy);
    fixture_done(&f);
}
