/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: takes what is queued as a group, decides, commits, publishes, answers; in between it
 * keeps history in its bounds and deletes rows that nothing needs. */
#include <errno.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "store/seal.h"
#include "store/store_internal.h"

struct group {
    struct store_write *writes[GROUP_MAX_WRITES];
    size_t n;
    /* Those that passed their condition, in order. */
    struct change changes[GROUP_MAX_WRITES];
    struct store_write *accepted[GROUP_MAX_WRITES];
    struct store_event *events[GROUP_MAX_WRITES];
    size_t n_accepted;
    struct map pending; /* key -> the last accepted write of that key */
};

static const enum store_event_type type_of_condition[] = {
    [STORE_CREATE] = STORE_ADDED,
    [STORE_REPLACE] = STORE_MODIFIED,
    [STORE_REMOVE] = STORE_DELETED,
};

/* ---- conditions ---------------------------------------------------------------------------- */

/* What the key holds once the group's earlier writes are done, and at which revision. */
static struct object *current(struct store *s, const struct group *g, struct str key,
                              int64_t *ret_revision)
{
    const struct store_write *earlier = map_get(&g->pending, key);
    if (earlier) {
        *ret_revision = earlier->revision;
        return earlier->condition == STORE_REMOVE ? NULL : earlier->object;
    }
    struct object *o = index_newest(&s->index, key);
    *ret_revision = o ? o->revision : 0;
    return o;
}

static int check(const struct store_write *w, const struct object *now, int64_t revision)
{
    struct str collection = STR_NONE, rest = STR_NONE;
    if (key_split(w->key, &collection, &rest) < 0 || !w->object || w->object->n > OBJECT_MAX_BYTES)
        return -EINVAL;
    if (w->condition == STORE_CREATE)
        return now ? -EEXIST : 0;
    if (!now)
        return -ENOENT;
    return revision == w->expected_revision ? 0 : -ESTALE;
}

static void decide(struct store *s, struct group *g)
{
    int64_t next = s->index.revision + 1;
    for (size_t i = 0; i < g->n; i++) {
        struct store_write *w = g->writes[i];
        int64_t revision = 0;
        struct object *now = current(s, g, w->key, &revision);
        w->committed = NULL;
        w->revision = 0;
        w->result = check(w, now, revision);
        if (w->result == -EEXIST || w->result == -ESTALE)
            w->committed = object_ref(now);
        if (w->result < 0)
            continue;
        w->revision = next++;
        g->accepted[g->n_accepted] = w;
        g->changes[g->n_accepted++] =
            (struct change){type_of_condition[w->condition], w->key, w->object};
        if (g->n > 1)
            (void) map_put(&g->pending, w->key, w);
    }
}

/* ---- disk ---------------------------------------------------------------------------------- */

static int append_all(struct store *s, const struct group *g)
{
    for (size_t i = 0; i < g->n_accepted; i++) {
        const struct store_write *w = g->accepted[i];
        struct row row = {
            .revision = w->revision,
            .type = g->changes[i].type,
            .revision_at = w->object->head.revision_at,
            .key = w->key,
            .text = object_text(w->object),
        };
        int r = seal_row_if_wanted(s->cipher, &row, &s->sealed);
        if (r == 0)
            r = disk_append(s->disk, &row);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The floor goes first into the file: a row may only go missing below it. */
static int delete_some(struct store *s, size_t n_rows, int64_t floor)
{
    int r = floor > s->disk_floor ? disk_set_floor(s->disk, floor) : 0;
    for (size_t i = 0; i < n_rows && r == 0; i++)
        r = disk_delete(s->disk, sweep_at(&s->sweep, i));
    return r;
}

static void note_result(struct store *s, int r)
{
    bool was_full = atomic_exchange(&s->is_full, r == -ENOSPC);
    if (r == 0 && was_full)
        log_info("the disk has room again", LOG_TEXT("path", s->path));
    if (r < 0 && !(r == -ENOSPC && was_full))
        log_error("cannot write to the store", LOG_TEXT("path", s->path), LOG_ERRNO(r),
                  LOG_TEXT("cause", disk_last_error(s->disk)));
}

/* One transaction: the group's rows (NULL: none) and the deletion of n_rows useless ones. */
static int commit(struct store *s, const struct group *g, size_t n_rows)
{
    int64_t floor = s->index.floor;
    (void) pthread_mutex_lock(&s->commit_lock);
    int r = disk_begin(s->disk);
    if (r == 0 && g)
        r = append_all(s, g);
    if (r == 0 && (n_rows || !g))
        r = delete_some(s, n_rows, floor);
    if (r == 0)
        r = disk_commit(s->disk);
    note_result(s, r);
    if (r < 0)
        disk_rollback(s->disk);
    (void) pthread_mutex_unlock(&s->commit_lock);
    if (r < 0)
        return r;
    if (n_rows || !g)
        s->disk_floor = MAX(s->disk_floor, floor);
    sweep_forget(&s->sweep, n_rows);
    if (disk_wal_bytes(s->disk) > DISK_CHECKPOINT_BYTES)
        checkpointer_wake(s, /* end= */ false);
    return 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

static void fail_all(struct group *g, int error)
{
    for (size_t i = 0; i < g->n; i++) {
        struct store_write *w = g->writes[i];
        object_unref(TAKE(w->committed));
        w->result = error;
        w->revision = 0;
    }
}

static void publish(struct store *s, struct group *g)
{
    for (size_t i = 0; i < g->n_accepted; i++) {
        struct store_write *w = g->accepted[i];
        object_set_revision(w->object, w->revision);
        w->committed = object_ref(w->object);
        w->object = NULL; /* the reference moves into the index */
    }
    (void) pthread_mutex_lock(&s->followers_lock);
    index_apply(&s->index, g->changes, g->n_accepted, s->clock->monotonic_us(s->clock), g->events);
    LIST_FOR_EACH (&s->followers, item) {
        struct store_follower *f = CONTAINER_OF(item, struct store_follower, link);
        f->on_events(f, g->events, g->n_accepted, s->index.revision);
    }
    (void) pthread_mutex_unlock(&s->followers_lock);
}

static void answer_all(struct group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct store_write *w = g->writes[i];
        object_unref(TAKE(w->object));
        w->on_done(w); /* w may be gone from here on */
    }
}

static void write_group(struct store *s, struct group *g)
{
    g->n_accepted = 0;
    decide(s, g);
    map_done(&g->pending);
    if (g->n_accepted) {
        size_t n_waiting = sweep_n_waiting(&s->sweep);
        size_t n_rows =
            n_waiting > SWEEP_BACKLOG ? MIN(2 * g->n_accepted, (size_t) SWEEP_BATCH) : 0;
        int r = commit(s, g, n_rows);
        if (r == 0) {
            atomic_fetch_add(&s->n_commits, 1);
            atomic_fetch_add(&s->n_writes, (long long) g->n_accepted);
            publish(s, g);
        } else {
            fail_all(g, r);
        }
    }
    answer_all(g);
}

/* ---- history ------------------------------------------------------------------------------- */

static void trim(struct store *s, int64_t before)
{
    while (s->index.floor < MIN(before, s->index.revision))
        sweep_events(&s->sweep, index_trim(&s->index, before, INDEX_TRIM_CHUNK));
}

/* Drops what is too old or too much, so much at a time that writes do not wait for it. True when
 * more is due. */
static bool keep_history_bounded(struct store *s)
{
    int64_t oldest_us = s->clock->monotonic_us(s->clock) - s->history_max_age_us;
    int64_t n_bytes = s->index.history_bytes, before = 0;
    size_t n = 0;
    for (const struct event *e = s->index.oldest; e && n < INDEX_TRIM_CHUNK; e = e->next, n++) {
        if (e->time_us >= oldest_us && n_bytes <= s->history_max_bytes)
            break;
        n_bytes -= index_event_bytes(e);
        before = e->shared.revision;
    }
    if (n)
        sweep_events(&s->sweep, index_trim(&s->index, before, n));
    return n == INDEX_TRIM_CHUNK;
}

static void compact_as_asked(struct store *s)
{
    (void) pthread_mutex_lock(&s->queue_lock);
    int64_t before = s->compact_before;
    bool is_new = before > s->compact_done_before;
    (void) pthread_mutex_unlock(&s->queue_lock);
    if (!is_new)
        return;
    trim(s, before);
    (void) pthread_mutex_lock(&s->queue_lock);
    s->compact_done_before = before;
    (void) pthread_cond_broadcast(&s->compact_cond);
    (void) pthread_mutex_unlock(&s->queue_lock);
}

static bool has_useless(const struct store *s)
{
    return sweep_n_waiting(&s->sweep) > 0 || s->index.floor > s->disk_floor;
}

static bool has_upkeep(const struct store *s)
{
    return has_useless(s) || atomic_load(&s->is_full);
}

/* Whether a full disk has room again is found out by writing a row and taking it back: nobody else
 * may write to a server that says it is not ready. */
static int probe(struct store *s)
{
    struct row row = {.revision = s->index.revision + 1, .key = STR("probe"), .text = STR("")};
    (void) pthread_mutex_lock(&s->commit_lock);
    int r = disk_begin(s->disk);
    if (r == 0)
        r = disk_append(s->disk, &row);
    if (r == 0)
        r = disk_delete(s->disk, row.revision);
    if (r == 0)
        r = disk_commit(s->disk);
    note_result(s, r);
    if (r < 0)
        disk_rollback(s->disk);
    (void) pthread_mutex_unlock(&s->commit_lock);
    return r;
}

/* Deletes one batch of useless rows. */
static int upkeep_once(struct store *s)
{
    if (!has_useless(s))
        return probe(s);
    return commit(s, NULL, MIN(sweep_n_waiting(&s->sweep), (size_t) SWEEP_BATCH));
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void take_group(struct store *s, struct group *g)
{
    size_t n_bytes = 0;
    g->n = 0;
    while (!list_is_empty(&s->queue) && g->n < GROUP_MAX_WRITES && n_bytes < GROUP_MAX_BYTES) {
        struct store_write *w = CONTAINER_OF(list_pop_first(&s->queue), struct store_write, link);
        n_bytes += w->object ? w->object->n : 0;
        g->writes[g->n++] = w;
    }
}

static bool is_asked(const struct store *s)
{
    return !list_is_empty(&s->queue) || s->compact_before > s->compact_done_before || s->is_closing;
}

/* Waits for something to do. History and useless rows are looked at once in a while, without being
 * asked. */
static void wait_until_asked(struct store *s)
{
    struct timespec until;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += UPKEEP_INTERVAL_MS / 1000;
    int r = 0;
    while (!is_asked(s) && r == 0)
        r = s->index.oldest || has_upkeep(s)
                ? pthread_cond_timedwait(&s->queue_cond, &s->queue_lock, &until)
                : pthread_cond_wait(&s->queue_cond, &s->queue_lock);
}

/* Until there is none left or something is asked. A failure waits for the next turn. */
static void do_upkeep(struct store *s)
{
    bool is_idle = true;
    while (is_idle && has_upkeep(s) && upkeep_once(s) == 0) {
        (void) pthread_mutex_lock(&s->queue_lock);
        is_idle = !is_asked(s);
        (void) pthread_mutex_unlock(&s->queue_lock);
    }
}

/* One turn: a group, or upkeep when there is none. False at the end. */
static bool turn(struct store *s, struct group *g)
{
    (void) pthread_mutex_lock(&s->queue_lock);
    if (!s->is_history_due)
        wait_until_asked(s);
    bool is_idle = !is_asked(s);
    take_group(s, g);
    bool is_last = s->is_closing && g->n == 0;
    (void) pthread_mutex_unlock(&s->queue_lock);

    if (g->n)
        write_group(s, g);
    compact_as_asked(s);
    s->is_history_due = keep_history_bounded(s);
    if (is_idle)
        do_upkeep(s);
    return !is_last;
}

void *writer_run(void *store)
{
    struct store *s = store;
    struct group *g = NEW(struct group);
    while (turn(s, g))
        ;
    mem_free(g);
    for (size_t n = 0; has_upkeep(s) && n < SWEEP_AT_CLOSE; n += SWEEP_BATCH)
        if (upkeep_once(s) < 0)
            break;
    return NULL;
}
