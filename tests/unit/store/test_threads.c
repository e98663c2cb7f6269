/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads at once; also what the thread sanitizer runs. */
#include <pthread.h>
#include <sqlite3.h>

#include "fixture.h"

#define N_WRITERS 8
#define N_WRITES 150
#define N_KEYS 10

struct crowd {
    struct fixture f;
    struct store_follower follower;
    int64_t followed; /* the newest revision the follower saw */
    size_t n_followed;
    atomic_int n_writing;
    atomic_llong n_committed;
    atomic_int next_writer;
};

static void follow(struct store_follower *f, struct store_event *const *events, size_t n,
                   int64_t revision)
{
    struct crowd *c = CONTAINER_OF(f, struct crowd, follower);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(events[i]->revision, ++c->followed);
    c->n_followed += n;
    assert_int_equal(c->followed, revision);
}

static struct outcome write_current(struct crowd *c, const char *key, int turn)
{
    struct object *o = store_get(c->f.store, str_of(key));
    int64_t revision = o ? o->revision : 0;
    object_unref(o);
    enum store_condition condition = !revision       ? STORE_CREATE
                                     : turn % 5 == 4 ? STORE_REMOVE
                                                     : STORE_REPLACE;
    return write_one(&c->f, condition, key, revision, "some data to write");
}

static void *write_many(void *ctx)
{
    struct crowd *c = ctx;
    int me = atomic_fetch_add(&c->next_writer, 1);
    for (int i = 0; i < N_WRITES; i++) {
        char key[32];
        (void) snprintf(key, sizeof(key), "things/a/%d", (i * 7 + me) % N_KEYS);
        struct outcome out = write_current(c, key, i);
        if (out.result == 0)
            atomic_fetch_add(&c->n_committed, 1);
        else
            assert_true(out.result == -EEXIST || out.result == -ESTALE || out.result == -ENOENT);
        if (i % 50 == 49)
            store_compact(c->f.store, store_revision(c->f.store) - 100);
    }
    atomic_fetch_sub(&c->n_writing, 1);
    return NULL;
}

/* A list is of one moment: no object is newer than it. */
static void read_once(struct crowd *c)
{
    struct store_range range = {.collection = STR("things")};
    struct store_page page = {0};
    assert_int_equal(store_list(c->f.store, &range, &page), 0);
    for (size_t i = 0; i < page.n; i++)
        assert_true(page.objects[i]->revision <= page.revision);
    range.at = page.revision;
    struct store_page again = {0};
    int r = store_list(c->f.store, &range, &again);
    if (r == 0) {
        assert_int_equal(again.n, page.n);
        for (size_t i = 0; i < page.n; i++)
            assert_ptr_equal(again.objects[i], page.objects[i]);
        store_page_done(&again);
    } else {
        assert_int_equal(r, -ERANGE);
    }
    struct store_event **events = NULL;
    size_t n = 0;
    r = store_history(c->f.store, STR("things"), MAX(page.revision - 20, (int64_t) 1),
                      page.revision, &events, &n);
    for (size_t i = 0; i < n; i++)
        bytes_unref(&events[i]->bytes);
    if (r == 0)
        mem_free(events);
    store_page_done(&page);
    struct store_stats stats;
    store_stats(c->f.store, &stats);
    assert_true(stats.revision > stats.compacted);
}

static void *read_many(void *ctx)
{
    struct crowd *c = ctx;
    while (atomic_load(&c->n_writing) > 0)
        read_once(c);
    return NULL;
}

TEST(crowd_of_writers_and_readers_agrees_on_one_history)
{
    struct crowd c = {.follower = {.on_events = follow}};
    fixture_init(&c.f);
    fixture_open(&c.f);
    atomic_init(&c.n_writing, N_WRITERS);
    store_follow(c.f.store, &c.follower, &c.followed);
    pthread_t threads[N_WRITERS + 1];
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < N_WRITERS ? write_many : read_many, &c), 0);
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    store_unfollow(c.f.store, &c.follower);

    int64_t n_committed = atomic_load(&c.n_committed);
    struct store_stats stats;
    store_stats(c.f.store, &stats);
    assert_int_equal(stats.revision, n_committed + 1);
    assert_int_equal(stats.n_writes, n_committed);
    assert_int_equal(c.n_followed, n_committed);
    fixture_close(&c.f);
    fixture_open(&c.f);
    assert_int_equal(store_revision(c.f.store), n_committed + 1);
    fixture_done(&c.f);
}

/* ---- groups -------------------------------------------------------------------------------- */

#define N_QUEUED 1000

struct batch {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    size_t n_open;
    struct batch_write {
        struct store_write w;
        struct batch *batch;
        char key[32];
    } writes[N_QUEUED];
};

static void on_batch_done(struct store_write *w)
{
    struct batch *b = CONTAINER_OF(w, struct batch_write, w)->batch;
    (void) pthread_mutex_lock(&b->lock);
    if (--b->n_open == 0)
        (void) pthread_cond_signal(&b->cond);
    (void) pthread_mutex_unlock(&b->lock);
}

static void wait_for(struct batch *b)
{
    (void) pthread_mutex_lock(&b->lock);
    while (b->n_open)
        (void) pthread_cond_wait(&b->cond, &b->lock);
    (void) pthread_mutex_unlock(&b->lock);
}

static void submit(struct fixture *f, struct batch *b, size_t i, enum store_condition condition,
                   int64_t expected)
{
    struct batch_write *bw = &b->writes[i];
    bw->batch = b;
    bw->w = (struct store_write){.condition = condition,
                                 .key = str_of(bw->key),
                                 .expected_revision = expected,
                                 .object = make_object(bw->key, "data"),
                                 .on_done = on_batch_done};
    (void) pthread_mutex_lock(&b->lock);
    b->n_open++;
    (void) pthread_mutex_unlock(&b->lock);
    store_submit(f->store, &bw->w);
}

static struct batch *batch_new(void)
{
    struct batch *b = NEW(struct batch);
    (void) pthread_mutex_init(&b->lock, NULL);
    (void) pthread_cond_init(&b->cond, NULL);
    return b;
}

static void batch_free(struct batch *b)
{
    for (size_t i = 0; i < N_QUEUED; i++)
        object_unref(b->writes[i].w.committed);
    (void) pthread_mutex_destroy(&b->lock);
    (void) pthread_cond_destroy(&b->cond);
    mem_free(b);
}

TEST(writes_that_wait_together_share_a_commit)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    struct batch *b = batch_new();
    for (size_t i = 0; i < N_QUEUED; i++) {
        (void) snprintf(b->writes[i].key, sizeof(b->writes[i].key), "things/a/%zu", i);
        submit(&f, b, i, STORE_CREATE, 0);
    }
    wait_for(b);
    for (size_t i = 0; i < N_QUEUED; i++) {
        assert_int_equal(b->writes[i].w.result, 0);
        assert_int_equal(b->writes[i].w.revision, 2 + (int64_t) i);
    }
    struct store_stats stats;
    store_stats(f.store, &stats);
    assert_int_equal(stats.n_writes, N_QUEUED);
    assert_true(stats.n_commits < N_QUEUED / 4);
    batch_free(b);
    fixture_done(&f);
}

/* Holds the writer in the middle of a group, so that what is submitted meanwhile becomes one group.
 */
struct gate {
    struct store_follower follower;
    pthread_mutex_t lock;
};

static void wait_at_gate(struct store_follower *f, struct store_event *const *events, size_t n,
                         int64_t revision)
{
    (void) events;
    (void) n;
    (void) revision;
    struct gate *g = CONTAINER_OF(f, struct gate, follower);
    (void) pthread_mutex_lock(&g->lock);
    (void) pthread_mutex_unlock(&g->lock);
}

TEST(conditions_see_the_earlier_writes_of_their_group)
{
    static const struct {
        enum store_condition condition;
        int64_t expected;
        int result;
        int64_t revision, committed;
    } steps[] = {
        {STORE_CREATE, 0, 0, 3, 3},       {STORE_CREATE, 0, -EEXIST, 0, 3},
        {STORE_REPLACE, 3, 0, 4, 4},      {STORE_REPLACE, 3, -ESTALE, 0, 4},
        {STORE_REMOVE, 4, 0, 5, 5},       {STORE_REPLACE, 4, -ENOENT, 0, 0},
        {STORE_REMOVE, 5, -ENOENT, 0, 0}, {STORE_CREATE, 0, 0, 6, 6},
        {STORE_REPLACE, 6, 0, 7, 7},
    };
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    struct gate gate = {.follower = {.on_events = wait_at_gate}, .lock = PTHREAD_MUTEX_INITIALIZER};
    int64_t from = 0;
    store_follow(f.store, &gate.follower, &from);
    struct batch *b = batch_new();

    (void) pthread_mutex_lock(&gate.lock);
    (void) snprintf(b->writes[0].key, sizeof(b->writes[0].key), "things/a/first");
    submit(&f, b, 0, STORE_CREATE, 0);
    for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
        (void) snprintf(b->writes[i + 1].key, sizeof(b->writes[i + 1].key), "things/a/x");
        submit(&f, b, i + 1, steps[i].condition, steps[i].expected);
    }
    (void) pthread_mutex_unlock(&gate.lock);
    wait_for(b);
    store_unfollow(f.store, &gate.follower);

    for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
        const struct store_write *w = &b->writes[i + 1].w;
        assert_int_equal(w->result, steps[i].result);
        assert_int_equal(w->revision, steps[i].revision);
        assert_int_equal(w->committed ? w->committed->revision : 0, steps[i].committed);
    }
    assert_history(&f, "things", 2, 7, "+3 ~4 -5 +6 ~7");
    struct store_range range = {.collection = STR("things"), .at = 4};
    assert_list(&f, &range, "first:2 x:4");
    range.at = 5;
    assert_list(&f, &range, "first:2");
    batch_free(b);
    fixture_done(&f);
}

/* ---- deletion of rows along with groups ------------------------------------------------------ */

static int64_t count_rows(const struct fixture *f)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM log", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);
    return n;
}

TEST(writer_without_a_pause_still_deletes_what_nothing_needs)
{
    struct fixture f;
    fixture_init(&f);
    f.options.history_max_bytes = 1;
    fixture_open(&f);
    int64_t revisions[N_QUEUED] = {0};
    for (int round = 0; round < 16; round++) {
        struct batch *b = batch_new();
        for (size_t i = 0; i < N_QUEUED; i++) {
            (void) snprintf(b->writes[i].key, sizeof(b->writes[i].key), "things/a/%04zu", i);
            submit(&f, b, i, round ? STORE_REPLACE : STORE_CREATE, revisions[i]);
        }
        wait_for(b);
        for (size_t i = 0; i < N_QUEUED; i++) {
            assert_int_equal(b->writes[i].w.result, 0);
            revisions[i] = b->writes[i].w.revision;
        }
        batch_free(b);
    }
    assert_in_range(count_rows(&f), N_QUEUED, 13 * N_QUEUED);
    fixture_close(&f);
    assert_int_equal(count_rows(&f), N_QUEUED);
    fixture_open(&f);
    assert_int_equal(store_count(f.store, STR("things")), N_QUEUED);
    assert_int_equal(store_revision(f.store), 16 * N_QUEUED + 1);
    fixture_done(&f);
}

/* ---- backup beside writers ------------------------------------------------------------------- */

static void *back_up(void *ctx)
{
    struct crowd *c = ctx;
    char *error = NULL;
    BUF_AUTO to = {0};
    for (int i = 0; atomic_load(&c->n_writing) > 0; i++) {
        buf_reset(&to);
        buf_printf(&to, "%s/copy-%d.db", c->f.directory, i);
        int64_t before = store_revision(c->f.store);
        assert_int_equal(store_backup(c->f.path, to.p, &error), 0);
        struct store_options options = c->f.options;
        options.path = to.p;
        struct store *copy = NULL;
        assert_int_equal(store_open(&options, &copy, &error), 0);
        assert_in_range(store_revision(copy), before, store_revision(c->f.store));
        store_close(copy);
    }
    return NULL;
}

TEST(backup_beside_writers_is_one_state)
{
    struct crowd c = {0};
    fixture_init(&c.f);
    fixture_open(&c.f);
    atomic_init(&c.n_writing, N_WRITERS);
    pthread_t threads[N_WRITERS + 1];
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < N_WRITERS ? write_many : back_up, &c), 0);
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    fixture_done(&c.f);
}

/* ---- a list that history overtakes ----------------------------------------------------------- */

/* Takes every other object, so that the page needs a second chunk. */
static bool compact_once(void *ctx, const struct object *o)
{
    struct fixture *f = ctx;
    struct object *x = store_get(f->store, STR("things/a/0000"));
    if (x->revision < 100)
        store_compact(f->store, replace(f, "things/a/0000", x->revision, "newer"));
    object_unref(x);
    struct str name = object_span(o, o->head.name);
    return name.p[name.n - 1] % 2 == 0;
}

/* The filter runs without the lock: it changes the past under the list, which then begins anew. */
TEST(list_of_the_newest_state_survives_compaction_on_its_way)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    struct batch *b = batch_new();
    for (size_t i = 0; i < N_QUEUED; i++) {
        (void) snprintf(b->writes[i].key, sizeof(b->writes[i].key), "things/a/%04zu", i);
        submit(&f, b, i, STORE_CREATE, 0);
    }
    wait_for(b);
    struct store_range range = {
        .collection = STR("things"), .filter = compact_once, .ctx = &f, .limit = 300};
    struct store_page page = {0};
    assert_int_equal(store_list(f.store, &range, &page), 0);
    assert_int_equal(page.n, 300);
    assert_int_equal(page.revision, N_QUEUED + 2);
    assert_int_equal(page.objects[0]->revision, N_QUEUED + 2);
    store_page_done(&page);
    batch_free(b);
    fixture_done(&f);
}
