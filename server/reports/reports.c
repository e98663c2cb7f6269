/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/reports.h"

#include <errno.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "reports/reports_internal.h"

/* A record or a note on its way to the worker. */
struct queued {
    struct list link;
    struct report *note;            /* NULL: a record */
    struct telemetry_record record; /* bytes behind this struct */
};

/* ---- from any thread ------------------------------------------------------------------------ */

/* Takes q over; false when there is no room. */
static bool enqueue(struct reports *r, struct queued *q, size_t n_bytes)
{
    (void) pthread_mutex_lock(&r->lock);
    bool has_room = r->n_queued_bytes + n_bytes <= REPORTS_MAX_QUEUED_BYTES;
    if (has_room) {
        list_append(&r->queue, &q->link);
        r->n_queued_bytes += n_bytes;
        (void) pthread_cond_signal(&r->wake);
    } else if (!q->note && q->record.stream == TELEMETRY_INFO) {
        r->missed_id = r->missed_id ? MIN(r->missed_id, q->record.id) : q->record.id;
    }
    (void) pthread_mutex_unlock(&r->lock);
    if (has_room)
        return true;
    (void) atomic_fetch_add_explicit(&r->counters.n_missed, 1, memory_order_relaxed);
    mem_free(q->note);
    mem_free(q);
    return false;
}

static size_t cost(const struct queued *q)
{
    return sizeof(*q) + (q->note ? sizeof(*q->note) + q->note->bytes.n : q->record.bytes.n);
}

void reports_take(struct reports *r, const struct telemetry_record *record)
{
    /* Health of the hardware is for readers of telemetry. */
    if (record->stream != TELEMETRY_INFO && record->stream != TELEMETRY_METRICS)
        return;
    struct queued *q = mem_alloc(sizeof(*q) + record->bytes.n);
    *q = (struct queued){.record = *record};
    memcpy(q + 1, record->bytes.p, record->bytes.n);
    q->record.bytes.p = (char *) (q + 1);
    if (!record->arrived_us) /* known to the store alone */
        q->record.arrived_us = reports_wall_us(r);
    (void) enqueue(r, q, cost(q));
}

static struct queued *note_new(struct reports *r, enum report_kind kind, const struct device *d,
                               bool is_good, struct str text)
{
    struct queued *q = NEW(struct queued);
    q->note = report_new(kind, &d->uuid, str_sub(text, 0, MIN(text.n, REPORTS_MAX_NOTE_BYTES)));
    q->note->at_us = reports_wall_us(r);
    q->note->is_good = is_good;
    return q;
}

void reports_config_fetched(struct reports *r, struct device *d, const struct config_fetched *f)
{
    struct queued *q = note_new(r, REPORT_CONFIG, d, f->is_confirmed, f->hash);
    q->note->version = f->version;
    q->note->rendered_s = f->rendered_s;
    (void) enqueue(r, q, cost(q));
}

void reports_attested(struct reports *r, struct device *d, bool is_good, struct str message)
{
    struct queued *q = note_new(r, REPORT_ATTESTED, d, is_good, message);
    (void) enqueue(r, q, cost(q));
}

void reports_on_event(void *reports, const struct kube_event *e)
{
    struct reports *r = reports;
    bool is_news = e->type == KUBE_SYNCED || catalog_on_event(&r->catalog, e);
    if (!is_news)
        return;
    (void) pthread_mutex_lock(&r->lock);
    r->is_synced = r->is_synced || e->type == KUBE_SYNCED;
    r->has_news = true;
    (void) pthread_cond_signal(&r->wake);
    (void) pthread_mutex_unlock(&r->lock);
}

void reports_stats(const struct reports *r, struct reports_stats *ret)
{
    const struct counters *c = &r->counters;
    *ret = (struct reports_stats){.n_taken = atomic_load(&c->n_taken),
                                  .n_bad = atomic_load(&c->n_bad),
                                  .n_foreign = atomic_load(&c->n_foreign),
                                  .n_stale = atomic_load(&c->n_stale),
                                  .n_missed = atomic_load(&c->n_missed),
                                  .n_writes = atomic_load(&c->n_writes),
                                  .n_failures = atomic_load(&c->n_failures),
                                  .n_events = atomic_load(&c->n_events),
                                  .n_events_shed = atomic_load(&c->n_events_shed)};
    struct reports *unlocked = (struct reports *) r;
    (void) pthread_mutex_lock(&unlocked->lock);
    ret->n_queued_bytes = r->n_queued_bytes;
    (void) pthread_mutex_unlock(&unlocked->lock);
}

/* ---- the worker's steps --------------------------------------------------------------------- */

static void begin_replay(struct reports *r, uint64_t after)
{
    telemetry_cursor_free(r->replay);
    r->replay = telemetry_read(
        r->telemetry, &(struct telemetry_query){.streams = 1u << TELEMETRY_INFO, .after = after});
    r->replayed_id = after;
}

static void take_queue(struct reports *r, struct list *ret)
{
    list_init(ret);
    (void) pthread_mutex_lock(&r->lock);
    if (!list_is_empty(&r->queue)) {
        *ret = r->queue;
        ret->next->previous = ret->previous->next = ret;
        list_init(&r->queue);
    }
    uint64_t missed_id = r->missed_id;
    bool is_before = !r->replay || missed_id <= r->replayed_id;
    if (missed_id && r->telemetry && is_before)
        begin_replay(r, missed_id - 1);
    r->missed_id = 0;
    r->n_queued_bytes = 0;
    r->has_news = false;
    (void) pthread_mutex_unlock(&r->lock);
}

/* What was read from the disk need not be worked in twice. */
static bool is_replayed(const struct reports *r, const struct telemetry_record *record)
{
    return record->stream == TELEMETRY_INFO && record->id <= r->replayed_id;
}

static void drain_queue(struct reports *r)
{
    struct list queue;
    struct list *l = NULL;
    take_queue(r, &queue);
    while ((l = list_pop_first(&queue)) != NULL) {
        struct queued *q = CONTAINER_OF(l, struct queued, link);
        if (q->note)
            intake_note(r, q->note);
        else if (is_replayed(r, &q->record))
            intake_heard(r, &q->record);
        else
            intake_record(r, &q->record, /* is_replayed= */ false);
        mem_free(q);
    }
}

static void go_on_replaying(struct reports *r)
{
    struct telemetry_record record;
    for (int i = 0; r->replay && i < REPORTS_REPLAYED_PER_STEP; i++) {
        int result = telemetry_next(r->replay, &record);
        if (result <= 0) {
            if (result < 0)
                log_warning("stored reports cannot be read, going on without", LOG_ERRNO(result));
            telemetry_cursor_free(TAKE(r->replay));
            return;
        }
        intake_record(r, &record, /* is_replayed= */ true);
        r->replayed_id = record.id;
    }
}

static void tick(struct reports *r)
{
    r->settled_ids[1] = r->settled_ids[0];
    r->settled_ids[0] = r->newest_id;
    r->tick_at_us = reports_mono_us(r) + REPORTS_TICK_US;
    contacts_tick(r);
}

static void log_failure(struct reports *r, struct target *t, int result)
{
    char uuid[UUID_TEXT_BYTES];
    uuid_text(&t->uuid, uuid);
    (void) atomic_fetch_add_explicit(&r->counters.n_failures, 1, memory_order_relaxed);
    if (!t->is_failing)
        log_warning(result == -EAGAIN ? "status not written, retrying"
                                      : "status refused, ignoring the report",
                    LOG_TEXT("uuid", uuid), LOG_INT("kind", (int64_t) t->kind), LOG_ERRNO(result));
    t->is_failing = true;
}

/* False when it is to be tried again. */
static bool flush(struct reports *r, struct target *t)
{
    int result = writer_flush(r, t);
    if (result < 0 && result != -ENOENT)
        log_failure(r, t, result);
    if (result == -EAGAIN) {
        target_move(r, t, PLACE_RETRYING);
        return false;
    }
    t->is_failing = result < 0 && result != -ENOENT;
    t->is_dirty = false;
    target_forget_reports(t);
    target_move(r, t, PLACE_RESTING);
    return true;
}

static struct target *first_in(struct reports *r, enum target_place place)
{
    struct list *l = r->places[place].next;
    return l == &r->places[place] ? NULL : CONTAINER_OF(l, struct target, link);
}

/* Those in a place stand in the order of their time. */
static void end_rest(struct reports *r, enum target_place place, int64_t now_us)
{
    struct target *t = NULL;
    while ((t = first_in(r, place)) != NULL && t->until_us <= now_us)
        target_settle(r, t);
}

static void write_some(struct reports *r)
{
    int64_t now_us = reports_mono_us(r);
    struct target *t = NULL;
    end_rest(r, PLACE_RESTING, now_us);
    end_rest(r, PLACE_RETRYING, now_us);
    for (int i = 0; i < REPORTS_WRITES_PER_STEP && (t = first_in(r, PLACE_READY)) != NULL; i++)
        (void) flush(r, t);
}

static void look_at_changed(struct reports *r)
{
    struct uuid device;
    while (catalog_take_changed(&r->catalog, &device))
        target_mark(r, target_get(r, CATALOG_DEVICE, &device));
}

static int64_t until_next(struct reports *r)
{
    if (r->replay || first_in(r, PLACE_READY))
        return 0;
    int64_t next_us = r->tick_at_us;
    for (enum target_place p = PLACE_RESTING; p <= PLACE_RETRYING; p++)
        if (first_in(r, p))
            next_us = MIN(next_us, first_in(r, p)->until_us);
    return MAX(next_us - reports_mono_us(r), (int64_t) 0);
}

int64_t reports_step(struct reports *r)
{
    (void) pthread_mutex_lock(&r->lock);
    bool is_synced = r->is_synced;
    (void) pthread_mutex_unlock(&r->lock);
    if (!is_synced)
        return REPORTS_TICK_US;
    /* What came earlier first. */
    go_on_replaying(r);
    if (!r->replay)
        drain_queue(r);
    if (reports_mono_us(r) >= r->tick_at_us)
        tick(r);
    look_at_changed(r);
    write_some(r);
    if (r->is_unsaved && reports_mono_us(r) >= r->save_at_us)
        checkpoint_save(r, /* is_last= */ false);
    return until_next(r);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void wait_for(struct reports *r, int64_t us)
{
    struct timespec until;
    if (us <= 0)
        return;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += (time_t) (us / 1000000 + ns / 1000000000);
    until.tv_nsec = (long) (ns % 1000000000);
    while (!r->is_stopping && !r->has_news && list_is_empty(&r->queue) &&
           pthread_cond_timedwait(&r->wake, &r->lock, &until) == 0)
        ;
}

static void *run(void *arg)
{
    struct reports *r = arg;
    (void) pthread_mutex_lock(&r->lock);
    while (!r->is_stopping) {
        (void) pthread_mutex_unlock(&r->lock);
        int64_t idle_us = reports_step(r);
        (void) pthread_mutex_lock(&r->lock);
        if (!r->is_synced)
            r->has_news = false;
        wait_for(r, idle_us);
    }
    (void) pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */

static struct reports *allocate(const struct reports_options *o)
{
    struct reports *r = NEW(struct reports);
    pthread_condattr_t monotonic;
    r->client = o->client;
    r->roster = o->roster;
    r->telemetry = o->telemetry;
    r->clock = o->clock;
    r->checkpoint_path = o->checkpoint_path ? mem_strdup(o->checkpoint_path) : NULL;
    catalog_init(&r->catalog);
    (void) pthread_mutex_init(&r->lock, NULL);
    (void) pthread_condattr_init(&monotonic);
    (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&r->wake, &monotonic);
    (void) pthread_condattr_destroy(&monotonic);
    list_init(&r->queue);
    for (size_t i = 0; i < PLACES; i++)
        list_init(&r->places[i]);
    r->started_us = reports_mono_us(r);
    return r;
}

int reports_create(const struct reports_options *o, struct reports **ret, char **ret_error)
{
    struct reports *r = allocate(o);
    uint64_t id = 0;
    int result = checkpoint_load(r, &id, ret_error);
    if (result < 0) {
        reports_abandon(r);
        return result;
    }
    r->newest_id = r->settled_ids[0] = r->settled_ids[1] = id;
    if (r->telemetry)
        begin_replay(r, id);
    *ret = r;
    return 0;
}

int reports_new(const struct reports_options *o, struct reports **ret, char **ret_error)
{
    struct reports *r = NULL;
    int result = reports_create(o, &r, ret_error);
    if (result < 0)
        return result;
    result = -pthread_create(&r->thread, NULL, run, r);
    if (result < 0) {
        *ret_error = mem_strdup("no thread for reports");
        reports_abandon(r);
        return result;
    }
    r->has_thread = true;
    *ret = r;
    return 0;
}

void reports_abandon(struct reports *r)
{
    struct list *l = NULL;
    while ((l = list_pop_first(&r->queue)) != NULL) {
        struct queued *q = CONTAINER_OF(l, struct queued, link);
        mem_free(q->note);
        mem_free(q);
    }
    telemetry_cursor_free(r->replay);
    targets_free(r);
    contacts_free(r);
    catalog_done(&r->catalog);
    (void) pthread_cond_destroy(&r->wake);
    (void) pthread_mutex_destroy(&r->lock);
    mem_free(r->checkpoint_path);
    mem_free(r);
}

/* Everything that is known by now, without rest between two writes, each once. What does not fit
 * into the time is taken up by the next start. */
static void finish(struct reports *r)
{
    struct map_entry e;
    int64_t end_us = reports_mono_us(r) + REPORTS_FINISH_US;
    drain_queue(r);
    look_at_changed(r);
    for (size_t at = 0; reports_mono_us(r) < end_us && map_next(&r->targets, &at, &e);)
        if (((struct target *) e.value)->is_dirty)
            (void) flush(r, e.value);
    checkpoint_save(r, /* is_last= */ true);
}

void reports_free(struct reports *r)
{
    if (!r)
        return;
    (void) pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    bool is_synced = r->is_synced;
    (void) pthread_cond_signal(&r->wake);
    (void) pthread_mutex_unlock(&r->lock);
    if (r->has_thread)
        (void) pthread_join(r->thread, NULL);
    /* Without the objects nothing could be said of the queue; the telemetry has it. */
    if (is_synced)
        finish(r);
    reports_abandon(r);
}
