/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread writes its events into a queue of its own; one more thread gathers them into few
 * large writes. Nobody but that thread ever waits for the disk. */
#include "api/audit/audit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/audit/event.h"
#include "api/audit/log_file.h"
#include "api/audit/policy.h"
#include "base/alloc.h"
#include "base/log.h"
#include "metrics/metrics.h"

/* Of all threads together; what comes on top is dropped and counted. */
#define QUEUE_MAX_BYTES ((size_t) 32 * 1024 * 1024)
/* Events wait so long for others to be written with: waking the writer costs as much as a hundred
 * of them. */
#define GATHER_MS 25
/* After a write has failed. */
#define RETRY_MS 1000
/* A queue that grew beyond this in a burst gives its memory back. */
#define KEPT_BYTES ((size_t) 4 * 1024 * 1024)

/* A thread's own, as long as there are no more than METRICS_SLOTS of them. */
struct queue {
    pthread_mutex_t lock;
    const struct audit_policy *policy; /* that of all */
    struct buf lines;
    struct audit_second second;
    int64_t n_events, n_dropped;
    char apart[64]; /* from the next one's cache line */
};

struct audit {
    struct queue queues[METRICS_SLOTS];
    atomic_size_t queued_bytes;
    char *policy_path; /* NULL: the default policy */
    struct audit_policy *policy;

    /* The writer's. */
    pthread_t thread;
    struct log_file *file;
    struct buf batch; /* taken from one queue */
    size_t n_taken;   /* of its bytes that are written */
    bool is_failing;
    atomic_int_least64_t n_errors, n_lost;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    atomic_bool is_idle; /* the writer sleeps until it is woken; read without the lock, too */
    bool is_closing, wants_reopen;
};

/* ---- writing -------------------------------------------------------------------------------- */

/* For at most so long, or until it is time to close. */
static void rest(struct audit *a, int64_t ms)
{
    struct timespec until;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + ms * 1000000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    (void) pthread_mutex_lock(&a->lock);
    while (!a->is_closing && !a->wants_reopen &&
           pthread_cond_timedwait(&a->wake, &a->lock, &until) != ETIMEDOUT)
        continue;
    (void) pthread_mutex_unlock(&a->lock);
}

static void sleep_until_woken(struct audit *a)
{
    (void) pthread_mutex_lock(&a->lock);
    atomic_store(&a->is_idle, true);
    /* An event may have come before it could see that we sleep. */
    while (atomic_load(&a->is_idle) && atomic_load(&a->queued_bytes) == 0 && !a->is_closing &&
           !a->wants_reopen)
        (void) pthread_cond_wait(&a->wake, &a->lock);
    atomic_store(&a->is_idle, false);
    (void) pthread_mutex_unlock(&a->lock);
}

static void wake_writer(struct audit *a)
{
    if (!atomic_load(&a->is_idle))
        return;
    (void) pthread_mutex_lock(&a->lock);
    atomic_store(&a->is_idle, false);
    (void) pthread_cond_signal(&a->wake);
    (void) pthread_mutex_unlock(&a->lock);
}

static void report(struct audit *a, int r)
{
    if (r < 0) {
        atomic_fetch_add(&a->n_errors, 1);
        if (!a->is_failing)
            log_error("cannot write the audit log, retrying", LOG_ERRNO(r));
    } else if (a->is_failing) {
        log_info("the audit log is written again");
    }
    a->is_failing = r < 0;
}

/* False: some of it is left, for want of space or another reason. */
static bool write_batch(struct audit *a)
{
    size_t taken = 0;
    if (a->n_taken == a->batch.n)
        return true;
    int r = log_file_follow(a->file);
    if (r == 0)
        r = log_file_write(a->file, str_from(buf_str(&a->batch), a->n_taken), &taken);
    a->n_taken += taken;
    atomic_fetch_sub(&a->queued_bytes, taken);
    report(a, r);
    return r == 0;
}

/* Swaps an empty buffer in. */
static void take_queue(struct audit *a, struct queue *q)
{
    if (a->batch.capacity > KEPT_BYTES)
        buf_done(&a->batch);
    buf_reset(&a->batch);
    a->n_taken = 0;
    (void) pthread_mutex_lock(&q->lock);
    if (q->lines.n) {
        struct buf lines = q->lines;
        q->lines = a->batch;
        a->batch = lines;
    }
    (void) pthread_mutex_unlock(&q->lock);
}

static bool write_queues(struct audit *a)
{
    bool is_written = write_batch(a);
    for (size_t i = 0; is_written && i < METRICS_SLOTS; i++) {
        take_queue(a, &a->queues[i]);
        is_written = write_batch(a);
    }
    return is_written;
}

/* The file may have been moved away while there was nothing to write. */
static void reopen(struct audit *a)
{
    (void) pthread_mutex_lock(&a->lock);
    bool is_wanted = a->wants_reopen;
    a->wants_reopen = false;
    (void) pthread_mutex_unlock(&a->lock);
    if (is_wanted)
        report(a, log_file_follow(a->file));
}

static bool is_closing(struct audit *a)
{
    (void) pthread_mutex_lock(&a->lock);
    bool is = a->is_closing;
    (void) pthread_mutex_unlock(&a->lock);
    return is;
}

static void *run_writer(void *arg)
{
    struct audit *a = arg;
    while (!is_closing(a)) {
        reopen(a);
        if (!write_queues(a))
            rest(a, RETRY_MS);
        else if (atomic_load(&a->queued_bytes) == 0)
            sleep_until_woken(a);
        rest(a, GATHER_MS);
    }
    return NULL;
}

/* ---- recording ------------------------------------------------------------------------------ */

void audit_begin(struct audit *a, struct audit_record *r)
{
    struct queue *q = &a->queues[metrics_slot()];
    (void) pthread_mutex_lock(&q->lock);
    audit_policy_judge(q->policy, r);
    (void) pthread_mutex_unlock(&q->lock);
}

void audit_emit(struct audit *a, const struct audit_record *r, enum audit_stage stage)
{
    if (r->level == AUDIT_NONE || r->omitted_stages & 1u << stage)
        return;
    struct queue *q = &a->queues[metrics_slot()];
    (void) pthread_mutex_lock(&q->lock);
    if (atomic_load_explicit(&a->queued_bytes, memory_order_relaxed) >= QUEUE_MAX_BYTES) {
        q->n_dropped++;
    } else {
        size_t before = q->lines.n;
        audit_event_write(&q->lines, &q->second, r, stage);
        q->n_events++;
        atomic_fetch_add(&a->queued_bytes, q->lines.n - before);
    }
    (void) pthread_mutex_unlock(&q->lock);
    wake_writer(a);
}

void audit_stats(struct audit *a, struct audit_stats *ret)
{
    *ret = (struct audit_stats){.n_dropped = atomic_load(&a->n_lost),
                                .n_errors = atomic_load(&a->n_errors)};
    for (size_t i = 0; i < METRICS_SLOTS; i++) {
        (void) pthread_mutex_lock(&a->queues[i].lock);
        ret->n_events += a->queues[i].n_events;
        ret->n_dropped += a->queues[i].n_dropped;
        (void) pthread_mutex_unlock(&a->queues[i].lock);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

static int load_policy(const char *path, struct audit_policy **ret, char **ret_error)
{
    if (path)
        return audit_policy_load(path, ret, ret_error);
    *ret = audit_policy_default();
    return 0;
}

/* One queue after the other: a thread judges by the old one or by the new. */
static void use_policy(struct audit *a, struct audit_policy *p)
{
    for (size_t i = 0; i < METRICS_SLOTS; i++) {
        (void) pthread_mutex_lock(&a->queues[i].lock);
        a->queues[i].policy = p;
        (void) pthread_mutex_unlock(&a->queues[i].lock);
    }
    a->policy = p;
}

static void init_locks(struct audit *a)
{
    pthread_condattr_t monotonic;
    (void) pthread_condattr_init(&monotonic);
    (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&a->wake, &monotonic);
    (void) pthread_condattr_destroy(&monotonic);
    (void) pthread_mutex_init(&a->lock, NULL);
    for (size_t i = 0; i < METRICS_SLOTS; i++)
        (void) pthread_mutex_init(&a->queues[i].lock, NULL);
}

static int open_file(const struct audit_options *o, struct log_file **ret, char **ret_error)
{
    int r = log_file_open(&(struct log_file_options){o->log_path, o->max_size_bytes, o->max_age_s,
                                                     o->max_backups, o->clock},
                          ret);
    if (r < 0) {
        BUF_AUTO b = {0};
        buf_printf(&b, "cannot open the audit log %s: %s", o->log_path, strerror(-r));
        *ret_error = buf_take(&b);
    }
    return r;
}

int audit_open(const struct audit_options *o, struct audit **ret_audit, char **ret_error)
{
    struct audit_policy *policy = NULL;
    struct log_file *file = NULL;
    int r = load_policy(o->policy_path, &policy, ret_error);
    if (r == 0)
        r = open_file(o, &file, ret_error);
    if (r < 0) {
        audit_policy_free(policy);
        return r;
    }
    struct audit *a = NEW(struct audit);
    a->file = file;
    a->policy_path = o->policy_path ? mem_strdup(o->policy_path) : NULL;
    init_locks(a);
    use_policy(a, policy);
    if (pthread_create(&a->thread, NULL, run_writer, a) != 0)
        abort();
    *ret_audit = a;
    return 0;
}

int audit_reload(struct audit *a, char **ret_error)
{
    struct audit_policy *fresh = NULL;
    (void) pthread_mutex_lock(&a->lock);
    a->wants_reopen = true;
    (void) pthread_cond_signal(&a->wake);
    (void) pthread_mutex_unlock(&a->lock);
    int r = load_policy(a->policy_path, &fresh, ret_error);
    if (r < 0)
        return r;
    (void) pthread_mutex_lock(&a->lock); /* one reload at a time */
    struct audit_policy *old = a->policy;
    use_policy(a, fresh);
    (void) pthread_mutex_unlock(&a->lock);
    audit_policy_free(old);
    return 0;
}

static int64_t count_lines(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

/* What cannot be written now never will be. */
static void give_up(struct audit *a)
{
    int64_t n = count_lines(str_from(buf_str(&a->batch), a->n_taken));
    for (size_t i = 0; i < METRICS_SLOTS; i++)
        n += count_lines(buf_str(&a->queues[i].lines));
    atomic_fetch_add(&a->n_lost, n);
    if (n)
        log_error("the audit log ends without its last events", LOG_INT("n_events", n));
}

static void stop_writer(struct audit *a)
{
    (void) pthread_mutex_lock(&a->lock);
    a->is_closing = true;
    (void) pthread_cond_signal(&a->wake);
    (void) pthread_mutex_unlock(&a->lock);
    (void) pthread_join(a->thread, NULL);
}

void audit_close(struct audit *a)
{
    if (!a)
        return;
    stop_writer(a);
    if (!write_queues(a))
        give_up(a);
    for (size_t i = 0; i < METRICS_SLOTS; i++) {
        buf_done(&a->queues[i].lines);
        (void) pthread_mutex_destroy(&a->queues[i].lock);
    }
    buf_done(&a->batch);
    log_file_close(a->file);
    audit_policy_free(a->policy);
    (void) pthread_mutex_destroy(&a->lock);
    (void) pthread_cond_destroy(&a->wake);
    mem_free(a->policy_path);
    mem_free(a);
}
