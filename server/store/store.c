/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "store/replay.h"
#include "store/reseal.h"
#include "store/store_internal.h"

/* ---- life --------------------------------------------------------------------------------- */

static int replay_one(void *ctx, const struct row *row, char **ret_error)
{
    return replay_row(ctx, row, ret_error);
}

static int load(struct store *s, const struct store_options *options, struct reseal *stale,
                char **ret_error)
{
    struct replay rp = {
        .ix = &s->index,
        .sweep = &s->sweep,
        .path = s->path,
        .floor = disk_floor(s->disk),
        .time_us = s->clock->monotonic_us(s->clock),
        .parse_head = options->parse_head,
        .ctx = options->ctx,
        .cipher = s->cipher,
        .reseal = stale,
    };
    int r = disk_load(s->disk, replay_one, &rp, ret_error);
    replay_done(&rp);
    if (r < 0)
        return r;
    replay_finish(&rp);
    s->disk_floor = rp.floor;
    return 0;
}

/* A file from before texts of the collection were sealed, or whose resealing was interrupted. When
 * it does not work (a full disk) the texts can still be read, so that is no reason not to start. */
static void reseal(struct store *s, const struct reseal *stale)
{
    char *error = NULL;
    if (stale->n == 0 && !disk_is_scrub_wanted(s->disk))
        return;
    if (reseal_run(stale, s->disk, s->path, &error) < 0)
        log_warning("texts stay in the file as they were; the next start tries again",
                    LOG_TEXT("error", error));
    else
        log_info("texts sealed", LOG_TEXT("path", s->path), LOG_INT("rows", (int64_t) stale->n));
    mem_free(error);
}

static int open_file(struct store *s, const struct store_options *options, char **ret_error)
{
    const struct store_cipher *cipher = options->cipher;
    CLEANUP(reseal_done) struct reseal stale = {.cipher = cipher};
    int r = disk_open(s->path, DISK_SERVE, &s->disk, ret_error);
    if (r == 0 && cipher)
        r = cipher->on_locked(cipher->ctx, ret_error);
    if (r == 0)
        r = load(s, options, &stale, ret_error);
    if (r == 0 && cipher)
        r = cipher->on_loaded(cipher->ctx, ret_error);
    if (r == 0)
        reseal(s, &stale);
    return r;
}

/* Signals are for the threads that expect them. */
static int start_thread(pthread_t *thread, void *(*body)(void *), struct store *s, const char *name)
{
    sigset_t all, before;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(thread, NULL, body, s);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        (void) pthread_setname_np(*thread, name);
    return -r;
}

static int start_threads(struct store *s)
{
    int r = start_thread(&s->checkpointer, checkpointer_run, s, "checkpointer");
    if (r < 0)
        return r;
    r = start_thread(&s->writer, writer_run, s, "store writer");
    if (r < 0) {
        checkpointer_wake(s, /* end= */ true);
        (void) pthread_join(s->checkpointer, NULL);
    }
    return r;
}

static void init_queue_cond(struct store *s)
{
    pthread_condattr_t attributes;
    (void) pthread_condattr_init(&attributes);
    (void) pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&s->queue_cond, &attributes);
    (void) pthread_condattr_destroy(&attributes);
}

static struct store *store_new(const struct store_options *options)
{
    int64_t age_ms = options->history_max_age_ms ? options->history_max_age_ms : HISTORY_MAX_AGE_MS;
    struct store *s = NEW(struct store);
    s->path = mem_strdup(options->path);
    s->cipher = options->cipher;
    s->clock = options->clock ? options->clock : &clock_system;
    s->history_max_age_us = age_ms * 1000;
    s->history_max_bytes =
        options->history_max_bytes ? options->history_max_bytes : HISTORY_MAX_BYTES;
    index_init(&s->index, /* floor= */ 1);
    list_init(&s->queue);
    list_init(&s->followers);
    init_queue_cond(s);
    (void) pthread_cond_init(&s->compact_cond, NULL);
    (void) pthread_cond_init(&s->checkpoint_cond, NULL);
    (void) pthread_mutex_init(&s->queue_lock, NULL);
    (void) pthread_mutex_init(&s->followers_lock, NULL);
    (void) pthread_mutex_init(&s->commit_lock, NULL);
    (void) pthread_mutex_init(&s->checkpoint_lock, NULL);
    return s;
}

/* Once the threads are gone, or were never there. */
static void store_free(struct store *s)
{
    disk_close(s->disk);
    buf_done(&s->sealed);
    sweep_done(&s->sweep);
    index_done(&s->index);
    (void) pthread_cond_destroy(&s->queue_cond);
    (void) pthread_cond_destroy(&s->compact_cond);
    (void) pthread_cond_destroy(&s->checkpoint_cond);
    (void) pthread_mutex_destroy(&s->queue_lock);
    (void) pthread_mutex_destroy(&s->followers_lock);
    (void) pthread_mutex_destroy(&s->commit_lock);
    (void) pthread_mutex_destroy(&s->checkpoint_lock);
    mem_free(s->path);
    mem_free(s);
}
DEFINE_CLEANUP(struct store *, store_free)

int store_open(const struct store_options *options, struct store **ret_store, char **ret_error)
{
    CLEANUP(store_freep) struct store *s = store_new(options);
    int r = open_file(s, options, ret_error);
    if (r < 0)
        return r;
    r = start_threads(s);
    if (r < 0)
        *ret_error = disk_complaint(s->path, "cannot start its threads", r);
    else
        *ret_store = TAKE(s);
    return r;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    (void) pthread_mutex_lock(&s->queue_lock);
    s->is_closing = true;
    (void) pthread_cond_signal(&s->queue_cond);
    (void) pthread_mutex_unlock(&s->queue_lock);
    (void) pthread_join(s->writer, NULL);
    checkpointer_wake(s, /* end= */ true);
    (void) pthread_join(s->checkpointer, NULL);
    assert(list_is_empty(&s->followers));
    store_free(s);
}

/* ---- writing ------------------------------------------------------------------------------ */

void store_submit(struct store *s, struct store_write *w)
{
    (void) pthread_mutex_lock(&s->queue_lock);
    assert(!s->is_closing);
    bool was_empty = list_is_empty(&s->queue);
    list_append(&s->queue, &w->link);
    if (was_empty)
        (void) pthread_cond_signal(&s->queue_cond);
    (void) pthread_mutex_unlock(&s->queue_lock);
}

struct waiter {
    struct store_write w;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool is_done;
};

static void wake_waiter(struct store_write *w)
{
    struct waiter *waiter = CONTAINER_OF(w, struct waiter, w);
    (void) pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    (void) pthread_cond_signal(&waiter->cond);
    (void) pthread_mutex_unlock(&waiter->lock);
}

int store_write_sync(struct store *s, struct store_write *w)
{
    struct waiter waiter = {
        .w = *w, .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    waiter.w.on_done = wake_waiter;
    store_submit(s, &waiter.w);
    (void) pthread_mutex_lock(&waiter.lock);
    while (!waiter.is_done)
        (void) pthread_cond_wait(&waiter.cond, &waiter.lock);
    (void) pthread_mutex_unlock(&waiter.lock);
    (void) pthread_cond_destroy(&waiter.cond);
    (void) pthread_mutex_destroy(&waiter.lock);
    w->object = waiter.w.object;
    w->result = waiter.w.result;
    w->revision = waiter.w.revision;
    w->committed = waiter.w.committed;
    return w->result;
}

/* Answers come in order, also that to a write which is none. */
void store_settle(struct store *s)
{
    struct store_write none = {.condition = STORE_REMOVE, .key = STR("")};
    (void) store_write_sync(s, &none);
}

/* ---- reading ------------------------------------------------------------------------------ */

int64_t store_revision(struct store *s)
{
    return index_revision(&s->index);
}

int64_t store_compacted(struct store *s)
{
    return index_floor(&s->index) - 1;
}

struct object *store_get(struct store *s, struct str key)
{
    return index_get(&s->index, key);
}

int store_list(struct store *s, const struct store_range *range, struct store_page *ret_page)
{
    return index_list(&s->index, range, ret_page);
}

size_t store_count(struct store *s, struct str collection)
{
    return index_count(&s->index, collection);
}

/* ---- following ---------------------------------------------------------------------------- */

void store_follow(struct store *s, struct store_follower *f, int64_t *ret_revision)
{
    (void) pthread_mutex_lock(&s->followers_lock);
    *ret_revision = index_revision(&s->index);
    list_append(&s->followers, &f->link);
    (void) pthread_mutex_unlock(&s->followers_lock);
}

void store_unfollow(struct store *s, struct store_follower *f)
{
    (void) pthread_mutex_lock(&s->followers_lock);
    list_remove(&f->link);
    (void) pthread_mutex_unlock(&s->followers_lock);
}

int store_history(struct store *s, struct str collection, int64_t from, int64_t to,
                  struct store_event ***ret_events, size_t *ret_n)
{
    return index_history(&s->index, collection, from, to, ret_events, ret_n);
}

/* ---- upkeep ------------------------------------------------------------------------------- */

void store_compact(struct store *s, int64_t before)
{
    before = MIN(before, store_revision(s));
    (void) pthread_mutex_lock(&s->queue_lock);
    if (before > s->compact_before) {
        s->compact_before = before;
        (void) pthread_cond_signal(&s->queue_cond);
    }
    while (s->compact_done_before < before)
        (void) pthread_cond_wait(&s->compact_cond, &s->queue_lock);
    (void) pthread_mutex_unlock(&s->queue_lock);
}

static int64_t size_of(const char *path, const char *suffix)
{
    struct stat st;
    char *sibling = disk_sibling(path, suffix);
    int64_t n = stat(sibling, &st) == 0 ? (int64_t) st.st_size : 0;
    mem_free(sibling);
    return n;
}

void store_stats(struct store *s, struct store_stats *ret_stats)
{
    index_lock_read(&s->index);
    int64_t n_objects = (int64_t) index_n_objects(&s->index);
    *ret_stats = (struct store_stats){
        .revision = s->index.revision,
        .compacted = s->index.floor - 1,
        .n_objects = n_objects,
        .n_versions = n_objects + (int64_t) s->index.n_superseded,
    };
    index_unlock(&s->index);
    ret_stats->file_bytes = size_of(s->path, "");
    ret_stats->wal_bytes = size_of(s->path, "-wal");
    ret_stats->n_commits = atomic_load(&s->n_commits);
    ret_stats->n_writes = atomic_load(&s->n_writes);
    ret_stats->is_full = atomic_load(&s->is_full);
}
