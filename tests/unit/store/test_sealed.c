/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed texts in the file, by a cipher that keeps nobody out but notices everything. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "fixture.h"
#include "store/row.h"

#define SECRET "the crown jewels"

/* ---- the cipher ---------------------------------------------------------------------------- */

/* A sealed text is the letter of its key, a checksum of what it is bound to and of itself, and the
 * text with all bits turned. */
struct toy {
    struct store_cipher cipher;
    const char *wanted; /* one collection */
    const char *keys;   /* the first one seals, all open */
    int n_locked, n_loaded, n_opened;
};

static uint64_t toy_sum(struct str bound, struct str plain)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < bound.n; i++)
        sum = (sum ^ (unsigned char) bound.p[i]) * 1099511628211u;
    for (size_t i = 0; i < plain.n; i++)
        sum = (sum ^ (unsigned char) plain.p[i]) * 1099511628211u;
    return sum;
}

static int toy_on_locked(void *ctx, char **ret_error)
{
    (void) ret_error;
    ((struct toy *) ctx)->n_locked++;
    return 0;
}

static int toy_on_loaded(void *ctx, char **ret_error)
{
    (void) ret_error;
    ((struct toy *) ctx)->n_loaded++;
    return 0;
}

static bool toy_wants(void *ctx, struct str collection)
{
    return str_is(collection, ((struct toy *) ctx)->wanted);
}

static bool toy_is_current(void *ctx, struct str sealed)
{
    return sealed.n && sealed.p[0] == ((struct toy *) ctx)->keys[0];
}

static int toy_seal(void *ctx, struct str bound, struct str plain, struct buf *to)
{
    uint64_t sum = toy_sum(bound, plain);
    buf_append_char(to, ((struct toy *) ctx)->keys[0]);
    buf_append(to, &sum, sizeof(sum));
    for (size_t i = 0; i < plain.n; i++)
        buf_append_char(to, (char) ~plain.p[i]);
    return 0;
}

static int toy_open(void *ctx, struct str bound, struct str sealed, struct buf *to,
                    char **ret_error)
{
    struct toy *t = ctx;
    uint64_t sum = 0;
    if (sealed.n < 1 + sizeof(sum) || !strchr(t->keys, sealed.p[0])) {
        *ret_error = mem_strdup("no such key");
        return -ENOKEY;
    }
    memcpy(&sum, sealed.p + 1, sizeof(sum));
    for (size_t i = 1 + sizeof(sum); i < sealed.n; i++)
        buf_append_char(to, (char) ~sealed.p[i]);
    if (sum != toy_sum(bound, buf_str(to))) {
        *ret_error = mem_strdup("altered");
        return -EBADMSG;
    }
    t->n_opened++;
    return 0;
}

static void toy_init(struct toy *t, struct fixture *f)
{
    *t = (struct toy){.cipher = {.on_locked = toy_on_locked,
                                 .on_loaded = toy_on_loaded,
                                 .wants = toy_wants,
                                 .is_current = toy_is_current,
                                 .seal = toy_seal,
                                 .open = toy_open},
                      .wanted = "secrets",
                      .keys = "a"};
    t->cipher.ctx = t;
    f->options.cipher = &t->cipher;
}

/* ---- looking into the file ----------------------------------------------------------------- */

static void execute(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void) sqlite3_close(db);
}

static int64_t query(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(st, 0);
    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);
    return value;
}

static bool file_holds(const char *path, const char *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    BUF_AUTO b = {0};
    size_t got = 0;
    while ((got = fread(buf_reserve(&b, 65536), 1, 65536, file)) > 0)
        b.n += got;
    (void) fclose(file);
    return str_find_str(buf_str(&b), str_of(bytes)) >= 0;
}

/* The store's file or its write-ahead log. */
static bool disk_holds(struct fixture *f, const char *bytes)
{
    BUF_AUTO wal = {0};
    buf_printf(&wal, "%s-wal", f->path);
    return file_holds(f->path, bytes) || file_holds(wal.p, bytes);
}

static void assert_data(struct fixture *f, const char *key, const char *data)
{
    struct object *o = store_get(f->store, str_of(key));
    assert_non_null(o);
    assert_true(str_find_str(object_text(o), str_of(data)) > 0);
    object_unref(o);
}

/* Makes every row pass its checksum as it is. */
static void fix_checksums(struct fixture *f)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *read = NULL, *write = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT revision, type, revision_at, key, text FROM log",
                                        -1, &read, NULL),
                     SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "UPDATE log SET checksum = ? WHERE revision = ?", -1, &write, NULL),
        SQLITE_OK);
    while (sqlite3_step(read) == SQLITE_ROW) {
        struct row row = {.revision = sqlite3_column_int64(read, 0),
                          .type = sqlite3_column_int64(read, 1),
                          .revision_at = sqlite3_column_int64(read, 2)};
        row.key = str_range(sqlite3_column_blob(read, 3), (size_t) sqlite3_column_bytes(read, 3));
        row.text = str_range(sqlite3_column_blob(read, 4), (size_t) sqlite3_column_bytes(read, 4));
        (void) sqlite3_bind_int64(write, 1, row_checksum(&row));
        (void) sqlite3_bind_int64(write, 2, row.revision);
        assert_int_equal(sqlite3_step(write), SQLITE_DONE);
        (void) sqlite3_reset(write);
    }
    (void) sqlite3_finalize(read);
    (void) sqlite3_finalize(write);
    (void) sqlite3_close(db);
}

#define COUNT_SEALED "SELECT count(*) FROM log WHERE substr(text, 1, 1) = x'01'"

/* ---- writing and reading ------------------------------------------------------------------- */

TEST(wanted_collections_are_sealed_in_the_file_and_plain_in_memory)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    fixture_open(&f);
    assert_int_equal(t.n_locked, 1);
    assert_int_equal(t.n_loaded, 1);
    int64_t x = create(&f, "secrets/a/x", SECRET);
    (void) create(&f, "things/a/x", "for everybody");
    assert_data(&f, "secrets/a/x", SECRET);
    assert_false(disk_holds(&f, SECRET));
    assert_true(disk_holds(&f, "for everybody"));
    x = replace(&f, "secrets/a/x", x, SECRET " twice");
    (void) create(&f, "secrets/a/y", SECRET);
    (void) remove_key(&f, "secrets/a/y", x + 1);
    assert_false(disk_holds(&f, SECRET));
    fixture_close(&f);
    assert_false(disk_holds(&f, SECRET));
    assert_int_equal(query(&f, COUNT_SEALED), 4);

    fixture_open(&f);
    assert_int_equal(t.n_opened, 4);
    assert_data(&f, "secrets/a/x", SECRET " twice");
    assert_history(&f, "secrets", 1, 6, "+2 ~4 +5 -6");
    fixture_done(&f);
}

TEST(largest_object_fits_sealed)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    fixture_open(&f);
    struct object *small = make_object("secrets/a/x", "");
    size_t n = OBJECT_MAX_BYTES - small->n;
    object_unref(small);
    char *data = mem_zalloc(n + 1);
    memset(data, 'x', n);
    (void) create(&f, "secrets/a/x", data);
    fixture_close(&f);
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", "xxxx");
    mem_free(data);
    fixture_done(&f);
}

TEST(sealed_text_without_its_key_is_refused_by_name)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    fixture_open(&f);
    (void) create(&f, "secrets/a/x", SECRET);
    fixture_close(&f);

    t.keys = "b";
    char *error = fixture_open_fails(&f, -ENOKEY);
    assert_non_null(strstr(error, "secrets/a/x"));
    assert_non_null(strstr(error, "no such key"));
    assert_null(strstr(error, "seth restore"));
    mem_free(error);
    assert_int_equal(t.n_loaded, 1);
    f.options.cipher = NULL;
    error = fixture_open_fails(&f, -ENOKEY);
    assert_non_null(strstr(error, "sealed"));
    mem_free(error);

    f.options.cipher = &t.cipher;
    t.keys = "ba";
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", SECRET);
    fixture_done(&f);
}

/* With checksums that fit, as somebody who knows the format can make them. */
TEST(sealed_texts_cannot_change_places)
{
    static const char *const tricks[] = {
        "UPDATE log SET text = (SELECT text FROM log WHERE revision = 2) WHERE revision = 3",
        "UPDATE log SET text = (SELECT text FROM log WHERE revision = 3) WHERE revision = 4",
        "UPDATE log SET key = 'secrets/a/z' WHERE revision = 2",
        "UPDATE log SET revision_at = revision_at + 1 WHERE revision = 4",
    };
    for (size_t i = 0; i < N_ELEMENTS(tricks); i++) {
        struct fixture f;
        struct toy t;
        fixture_init(&f);
        toy_init(&t, &f);
        fixture_open(&f);
        (void) create(&f, "secrets/a/x", "one");
        int64_t y = create(&f, "secrets/a/y", "two");
        (void) replace(&f, "secrets/a/y", y, "six");
        fixture_close(&f);
        execute(&f, tricks[i]);
        fix_checksums(&f);
        char *error = fixture_open_fails(&f, -EBADMSG);
        assert_non_null(strstr(error, "altered"));
        mem_free(error);
        fixture_done(&f);
    }
}

/* ---- from plain to sealed ------------------------------------------------------------------- */

TEST(plain_texts_are_sealed_at_the_next_start_and_nothing_of_them_stays)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    fixture_open(&f);
    BUF_AUTO large = {0};
    while (large.n < 100000)
        buf_append_str(&large, STR(SECRET " "));
    int64_t x = create(&f, "secrets/a/x", large.p), y = create(&f, "secrets/a/y", SECRET);
    for (int i = 0; i < 20; i++)
        y = replace(&f, "secrets/a/y", y, SECRET " again");
    (void) create(&f, "secrets/a/gone", SECRET);
    (void) remove_key(&f, "secrets/a/gone", y + 1);
    store_compact(f.store, y + 2); /* so that deleted ones lie in free pages */
    (void) replace(&f, "secrets/a/x", x, "short");
    (void) create(&f, "things/a/x", "for everybody");
    fixture_close(&f);
    execute(&f, "PRAGMA user_version = 1");
    assert_true(disk_holds(&f, SECRET));

    toy_init(&t, &f);
    fixture_open(&f);
    assert_false(disk_holds(&f, SECRET));
    assert_true(disk_holds(&f, "for everybody"));
    assert_data(&f, "secrets/a/y", SECRET " again");
    fixture_close(&f);
    assert_false(disk_holds(&f, SECRET));
    assert_int_equal(query(&f, "PRAGMA user_version"), 2);
    assert_int_equal(query(&f, "SELECT count(*) FROM meta"), 1);
    assert_int_equal(query(&f, COUNT_SEALED), query(&f, "SELECT count(*) - 1 FROM log"));
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", "short");
    fixture_done(&f);
}

TEST(interrupted_scrub_is_taken_up_by_the_next_start)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    fixture_open(&f);
    int64_t x = create(&f, "things/a/x", SECRET);
    (void) remove_key(&f, "things/a/x", x);
    store_compact(f.store, x + 1);
    fixture_close(&f);
    assert_int_equal(query(&f, "SELECT count(*) FROM log"), 0);
    assert_true(disk_holds(&f, SECRET));
    execute(&f, "INSERT INTO meta VALUES('scrub', 1)");
    toy_init(&t, &f);
    fixture_open(&f);
    assert_false(disk_holds(&f, SECRET));
    fixture_close(&f);
    assert_int_equal(query(&f, "SELECT count(*) FROM meta"), 1);
    fixture_open(&f);
    assert_int_equal(store_revision(f.store), x + 1);
    fixture_done(&f);
}

/* A full disk keeps nobody from reading, so it must not keep the server from starting. */
TEST(plain_texts_stay_readable_when_there_is_no_room_to_seal_them)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    fixture_open(&f);
    BUF_AUTO large = {0};
    while (large.n < 300000)
        buf_append_str(&large, STR(SECRET " "));
    int64_t x = create(&f, "secrets/a/x", large.p);
    fixture_close(&f);
    toy_init(&t, &f);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    (void) signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", SECRET);
    limit.rlim_cur = RLIM_INFINITY;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_true(disk_holds(&f, SECRET));
    (void) replace(&f, "secrets/a/x", x, "short");
    fixture_close(&f);
    fixture_open(&f);
    assert_false(disk_holds(&f, SECRET));
    assert_data(&f, "secrets/a/x", "short");
    fixture_done(&f);
}

TEST(unwanted_collection_stays_sealed_until_written)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    fixture_open(&f);
    int64_t x = create(&f, "secrets/a/x", SECRET);
    fixture_close(&f);
    t.wanted = "";
    fixture_open(&f);
    assert_false(disk_holds(&f, SECRET));
    assert_data(&f, "secrets/a/x", SECRET);
    (void) replace(&f, "secrets/a/x", x, SECRET);
    assert_true(disk_holds(&f, SECRET));
    fixture_done(&f);
}

/* ---- another key ---------------------------------------------------------------------------- */

static struct store_reseal *open_reseal(struct fixture *f)
{
    struct store_reseal *rs = NULL;
    char *error = NULL;
    int r = store_reseal_open(&f->options, &rs, &error);
    if (r < 0)
        fail_msg("reseal: %d: %s", r, error);
    return rs;
}

TEST(resealing_leaves_nothing_under_the_old_key)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    fixture_open(&f);
    char name[32];
    for (int i = 0; i < 1300; i++) { /* more than two groups */
        (void) snprintf(name, sizeof(name), "secrets/a/%d", i);
        (void) create(&f, name, SECRET);
    }
    (void) create(&f, "things/a/x", "for everybody");
    char *error = NULL;
    struct store_reseal *rs = NULL;
    assert_int_equal(store_reseal_open(&f.options, &rs, &error), -EBUSY);
    mem_free(TAKE(error));
    fixture_close(&f);

    rs = open_reseal(&f);
    char *held = fixture_open_fails(&f, -EBUSY);
    mem_free(held);
    t.keys = "ba";
    t.wanted = ""; /* what is sealed stays so */
    size_t n = 0;
    assert_int_equal(store_reseal_run(rs, &n, &error), 0);
    assert_int_equal(n, 1300);
    store_reseal_close(rs);
    assert_int_equal(query(&f, COUNT_SEALED " AND substr(text, 2, 1) = x'62'"), 1300);
    assert_false(disk_holds(&f, SECRET));
    t.keys = "b";
    fixture_open(&f);
    assert_data(&f, "secrets/a/1299", SECRET);
    assert_data(&f, "things/a/x", "for everybody");
    assert_int_equal(store_revision(f.store), 1302);
    fixture_done(&f);
}

TEST(half_resealed_store_opens_with_both_keys_and_is_finished)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    fixture_open(&f);
    (void) create(&f, "secrets/a/x", SECRET);
    t.keys = "ba";
    (void) create(&f, "secrets/a/y", SECRET);
    fixture_close(&f);
    assert_int_equal(query(&f, COUNT_SEALED " AND substr(text, 2, 1) = x'61'"), 1);
    fixture_open(&f);
    fixture_close(&f);
    assert_int_equal(query(&f, COUNT_SEALED " AND substr(text, 2, 1) = x'62'"), 2);
    t.keys = "b";
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", SECRET);
    fixture_done(&f);
}

TEST(resealing_refuses_what_it_cannot_read_and_changes_nothing)
{
    struct fixture f;
    struct toy t;
    fixture_init(&f);
    toy_init(&t, &f);
    struct store_reseal *rs = NULL;
    char *error = NULL;
    assert_int_equal(store_reseal_open(&f.options, &rs, &error), -ENOENT);
    mem_free(TAKE(error));
    fixture_open(&f);
    (void) create(&f, "secrets/a/x", SECRET);
    fixture_close(&f);
    t.keys = "b";
    assert_int_equal(store_reseal_open(&f.options, &rs, &error), -ENOKEY);
    assert_non_null(strstr(error, f.path));
    mem_free(error);
    t.keys = "a";
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", SECRET);
    fixture_done(&f);
}

TEST(backup_needs_no_key_and_its_restore_does)
{
    struct fixture f, copy;
    struct toy t;
    fixture_init(&f);
    fixture_init(&copy);
    toy_init(&t, &f);
    fixture_open(&f);
    (void) create(&f, "secrets/a/x", SECRET);
    char *error = NULL;
    assert_int_equal(store_backup(f.path, copy.path, &error), 0);
    assert_false(disk_holds(&copy, SECRET));
    char *refused = fixture_open_fails(&copy, -ENOKEY);
    mem_free(refused);
    copy.options.cipher = &t.cipher;
    fixture_open(&copy);
    assert_data(&copy, "secrets/a/x", SECRET);
    fixture_close(&copy);
    fixture_close(&f);
    assert_int_equal(store_restore(copy.path, f.path, &error), 0);
    fixture_open(&f);
    assert_data(&f, "secrets/a/x", SECRET);
    fixture_done(&f);
    fixture_done(&copy);
}
