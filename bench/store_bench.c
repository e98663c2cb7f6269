/* SPDX-License-Identifier: Apache-2.0 */
/* How near the store comes to SQLite itself. Raw: rows of 2 KB into a rowid table with a unique
 * key, 64 to a commit, WAL, FULL. Ours: creates, then updates, of 2 KB objects with 64 writes under
 * way. Then the time of a restart and of a list.
 *
 *     store_bench [directory] [rows] [bytes]
 *
 * With the bytes of a row the raw part alone. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "store/store.h"

#define OBJECT_BYTES 2048
#define IN_FLIGHT 64
#define KEY_BYTES 96

static double now(void)
{
    return (double) clock_system.monotonic_us(&clock_system) / 1e6;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why ? why : "failed");
    exit(1);
}

/* Keys come in mixed order, as names do. */
static struct str key_of(char out[KEY_BYTES], size_t i)
{
    uint32_t mixed = (uint32_t) i * 2654435761U;
    int n = snprintf(out, KEY_BYTES, "devices.eve.lfedge.org/default/device-%08x", mixed);
    return str_range(out, (size_t) n);
}

/* ---- raw SQLite ---------------------------------------------------------------------------- */

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
}

static void raw_insert(sqlite3 *db, size_t n_rows, size_t row_bytes)
{
    sqlite3_stmt *st = NULL;
    char *value = mem_alloc(row_bytes), key[KEY_BYTES];
    memset(value, 'x', row_bytes);
    if (sqlite3_prepare_v2(db, "INSERT INTO kv(key, value) VALUES(?,?)", -1, &st, NULL) !=
        SQLITE_OK)
        die("prepare", sqlite3_errmsg(db));
    for (size_t i = 0; i < n_rows; i++) {
        if (i % IN_FLIGHT == 0)
            run(db, "BEGIN IMMEDIATE");
        struct str k = key_of(key, i);
        (void) sqlite3_bind_text(st, 1, k.p, (int) k.n, SQLITE_STATIC);
        (void) sqlite3_bind_blob(st, 2, value, (int) row_bytes, SQLITE_STATIC);
        if (sqlite3_step(st) != SQLITE_DONE)
            die("insert", sqlite3_errmsg(db));
        (void) sqlite3_reset(st);
        if ((i + 1) % IN_FLIGHT == 0 || i + 1 == n_rows)
            run(db, "COMMIT");
    }
    (void) sqlite3_finalize(st);
    mem_free(value);
}

static double raw_rate(const char *directory, size_t n_rows, size_t row_bytes)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/raw.db", directory);
    sqlite3 *db = NULL;
    if (sqlite3_open(path.p, &db) != SQLITE_OK)
        die(path.p, sqlite3_errmsg(db));
    run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE kv(id INTEGER PRIMARY KEY, key TEXT UNIQUE, value BLOB)");
    double start = now();
    raw_insert(db, n_rows, row_bytes);
    double rate = (double) n_rows / (now() - start);
    (void) sqlite3_close(db);
    return rate;
}

/* ---- the store ----------------------------------------------------------------------------- */

struct load {
    struct store *store;
    enum store_condition condition;
    size_t n_next, n_rows, n_open;
    int64_t *revisions;
    pthread_mutex_t lock;
    pthread_cond_t cond;
};

/* One of those under way: its next write goes out when the last is answered. */
struct lane {
    struct store_write w;
    struct load *load;
    size_t i;
    bool is_answered;
    char key[KEY_BYTES];
};

static int parse_head(void *ctx, struct str key, struct str text, struct object_head *ret_head)
{
    (void) ctx;
    (void) key;
    struct str mark = STR("\"resourceVersion\":\"");
    ptrdiff_t at = str_find_str(text, mark);
    if (at < 0)
        return -1;
    *ret_head = (struct object_head){.revision_at = (uint32_t) ((size_t) at + mark.n)};
    return 0;
}

static struct object *make_object(void)
{
    char text[OBJECT_BYTES];
    int n = snprintf(text, sizeof(text), "{\"metadata\":{\"resourceVersion\":\"\"},\"data\":\"");
    memset(text + n, 'x', sizeof(text) - (size_t) n - 2);
    memcpy(text + sizeof(text) - 2, "\"}", 2);
    struct object_head head;
    (void) parse_head(NULL, STR_NONE, str_range(text, sizeof(text)), &head);
    return object_new(str_range(text, sizeof(text)), &head);
}

static void on_done(struct store_write *w)
{
    struct lane *lane = CONTAINER_OF(w, struct lane, w);
    struct load *load = lane->load;
    if (w->result < 0)
        die("write", strerror(-w->result));
    load->revisions[lane->i] = w->revision;
    object_unref(w->committed);
    (void) pthread_mutex_lock(&load->lock);
    lane->is_answered = true;
    load->n_open--;
    (void) pthread_cond_signal(&load->cond);
    (void) pthread_mutex_unlock(&load->lock);
}

static void submit_next(struct load *load, struct lane *lane)
{
    lane->i = load->n_next++;
    lane->load = load;
    lane->is_answered = false;
    lane->w = (struct store_write){.condition = load->condition,
                                   .key = key_of(lane->key, lane->i),
                                   .expected_revision = load->revisions[lane->i],
                                   .object = make_object(),
                                   .on_done = on_done};
    load->n_open++;
}

/* Keeps IN_FLIGHT writes under way until all are answered. */
static double store_rate(struct load *load)
{
    static struct lane lanes[IN_FLIGHT];
    struct store_write *ready[IN_FLIGHT];
    for (size_t i = 0; i < IN_FLIGHT; i++)
        lanes[i].is_answered = true;
    double start = now();
    load->n_next = 0;
    (void) pthread_mutex_lock(&load->lock);
    while (load->n_open || load->n_next < load->n_rows) {
        size_t n_ready = 0;
        for (size_t i = 0; i < IN_FLIGHT && load->n_next < load->n_rows; i++)
            if (lanes[i].is_answered) {
                submit_next(load, &lanes[i]);
                ready[n_ready++] = &lanes[i].w;
            }
        (void) pthread_mutex_unlock(&load->lock);
        for (size_t i = 0; i < n_ready; i++)
            store_submit(load->store, ready[i]);
        (void) pthread_mutex_lock(&load->lock);
        if (load->n_open == IN_FLIGHT || load->n_next == load->n_rows)
            while (load->n_open > 0 && (load->n_open == IN_FLIGHT || load->n_next == load->n_rows))
                (void) pthread_cond_wait(&load->cond, &load->lock);
    }
    (void) pthread_mutex_unlock(&load->lock);
    return (double) load->n_rows / (now() - start);
}

static struct store *open_store(const char *path, double *ret_seconds)
{
    struct store_options options = {.path = path, .parse_head = parse_head, .clock = &clock_system};
    struct store *s = NULL;
    char *error = NULL;
    double start = now();
    if (store_open(&options, &s, &error) < 0)
        die(path, error);
    *ret_seconds = now() - start;
    return s;
}

static void report(const char *what, double rate, double raw, struct store *s)
{
    struct store_stats stats;
    store_stats(s, &stats);
    printf(
        "%-8s %9.0f rows/s  %5.2f of raw  (%.1f writes to a commit, wal %.1f MiB, file %.1f MiB)\n",
        what, rate, rate / raw, (double) stats.n_writes / (double) stats.n_commits,
        (double) stats.wal_bytes / 1048576, (double) stats.file_bytes / 1048576);
}

static void time_list(struct store *s)
{
    struct store_range range = {.collection = STR("devices.eve.lfedge.org")};
    struct store_page page;
    double best = 1e9;
    size_t n = 0;
    for (int i = 0; i < 5; i++) {
        double start = now();
        if (store_list(s, &range, &page) < 0)
            die("list", NULL);
        best = MIN(best, now() - start);
        n = page.n;
        store_page_done(&page);
    }
    printf("list     %.0f ns per object of %zu\n", best * 1e9 / (double) n, n);
}

static void remove_directory(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        (void) unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void) closedir(d);
    (void) rmdir(path);
}

int main(int argc, char **argv)
{
    const char *parent = argc > 1 ? argv[1] : "/tmp";
    size_t n_rows = argc > 2 ? (size_t) strtoul(argv[2], NULL, 10) : 40000;
    size_t row_bytes = argc > 3 ? (size_t) strtoul(argv[3], NULL, 10) : 0;
    BUF_AUTO directory = {0}, path = {0};
    buf_printf(&directory, "%s/store-bench-XXXXXX", parent);
    if (!mkdtemp(directory.p))
        die(directory.p, "cannot create");
    buf_printf(&path, "%s/store.db", directory.p);

    double raw = raw_rate(directory.p, n_rows, row_bytes ? row_bytes : OBJECT_BYTES), seconds = 0;
    printf("raw      %9.0f rows/s  (%d to a commit)\n", raw, IN_FLIGHT);
    if (row_bytes) {
        remove_directory(directory.p);
        return 0;
    }
    struct load load = {.store = open_store(path.p, &seconds),
                        .condition = STORE_CREATE,
                        .n_rows = n_rows,
                        .revisions = mem_zalloc(n_rows * sizeof(int64_t)),
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .cond = PTHREAD_COND_INITIALIZER};
    printf("empty    ready in %.1f ms\n", seconds * 1e3);
    report("create", store_rate(&load), raw, load.store);
    load.condition = STORE_REPLACE;
    report("update", store_rate(&load), raw, load.store);
    report("update", store_rate(&load), raw, load.store);
    store_close(load.store);
    load.store = open_store(path.p, &seconds);
    printf("restart  %.0f ms for %zu objects\n", seconds * 1e3, n_rows);
    time_list(load.store);
    store_close(load.store);
    mem_free(load.revisions);
    remove_directory(directory.p);
    return 0;
}
