/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/deferred.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "base/random.h"
#include "loop/loop.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US (60 * MINUTE_US)
#define IDLE_MIN_US (24 * HOUR_US)
#define IDLE_MAX_US (48 * HOUR_US)
#define RETRY_MIN_US MINUTE_US
#define RETRY_MAX_US (15 * MINUTE_US)
#define RETRY_NOISE_US MINUTE_US /* in all: half of it to each side */
#define HURRY_MIN_US SECOND_US
#define WARN_ATTEMPTS 20
#define WARN_ENTRIES 50

struct entry {
    struct list link;
    struct uplink_deferred_message m; /* owned */
    uint64_t generation;              /* of the bytes */
    uint64_t seen_in_pass;            /* done with in that one, or too young for it */
    unsigned attempts;                /* refused so often; 0: no back-off */
    int64_t not_before_us;
};

struct uplink_deferred {
    struct uplink_deferred_options o;
    struct list entries;
    struct map by_key;
    struct uplink_deferred_counts counts;
    struct loop_timer *timer;
    int64_t due_us;
    int64_t retry_us; /* the next interval; 0: idle */
    bool is_hurried;
    /* the pass */
    bool is_passing, is_kicked, is_sending, is_stepping;
    uint64_t pass, generation;
    int64_t deadline_us;
    struct str sending_key; /* owned; the entry may be replaced or removed meanwhile */
    uint64_t sending_generation;
    struct uplink_call *call;
    struct loop_deferred step;
};

static int64_t now_us(const struct uplink_deferred *q)
{
    return q->o.clock->monotonic_us(q->o.clock);
}

static uint64_t draw_below(struct uplink_deferred *q, uint64_t bound)
{
    return q->o.random_below ? q->o.random_below(q->o.arg, bound) : random_below(bound);
}

/* ---- entries ------------------------------------------------------------------------------- */

static struct str keep(struct str s)
{
    return s.n ? str_range(mem_dup(s.p, s.n), s.n) : str_range(mem_strdup(""), 0);
}

static void free_message(struct uplink_deferred_message *m)
{
    mem_free((char *) m->key.p);
    mem_free((char *) m->url.p);
    mem_free((char *) m->body.p);
}

static size_t size_of(const struct uplink_deferred_message *m)
{
    return m->key.n + m->url.n + m->body.n;
}

static void drop(struct uplink_deferred *q, struct entry *e)
{
    (void) map_remove(&q->by_key, e->m.key);
    list_remove(&e->link);
    q->counts.entries--;
    q->counts.bytes -= size_of(&e->m);
    free_message(&e->m);
    mem_free(e);
}

static struct entry *oldest_discardable(struct uplink_deferred *q, const struct entry *but)
{
    LIST_FOR_EACH (&q->entries, item) {
        struct entry *e = CONTAINER_OF(item, struct entry, link);
        if (e->m.is_discarded && e != but)
            return e;
    }
    return NULL;
}

/* Counts what would have to go first, so that a refusal changes nothing. */
static bool has_room(const struct uplink_deferred *q, const struct entry *old, size_t more_bytes)
{
    size_t entries = q->counts.entries + (old ? 0 : 1);
    size_t bytes = q->counts.bytes + more_bytes - (old ? size_of(&old->m) : 0);
    LIST_FOR_EACH (&((struct uplink_deferred *) q)->entries, item) {
        const struct entry *e = CONTAINER_OF(item, struct entry, link);
        if (entries <= q->o.max_entries && bytes <= q->o.max_bytes)
            break;
        if (e->m.is_discarded && e != old) {
            entries--;
            bytes -= size_of(&e->m);
        }
    }
    return entries <= q->o.max_entries && bytes <= q->o.max_bytes;
}

static void make_room(struct uplink_deferred *q, const struct entry *old, size_t more_bytes)
{
    const size_t freed = old ? size_of(&old->m) : 0;
    while (q->counts.entries + (old ? 0 : 1) > q->o.max_entries ||
           q->counts.bytes + more_bytes - freed > q->o.max_bytes) {
        drop(q, oldest_discardable(q, old));
        q->counts.evicted++;
    }
}

static void replace_message(struct uplink_deferred *q, struct entry *e,
                            const struct uplink_deferred_message *m)
{
    if (!str_eq(e->m.body, m->body)) {
        e->attempts = 0;
        e->not_before_us = 0;
    }
    struct uplink_deferred_message before = e->m;
    q->counts.bytes += size_of(m) - size_of(&e->m);
    e->m = *m;
    e->m.key = keep(m->key);
    e->m.url = keep(m->url);
    e->m.body = keep(m->body);
    (void) map_put(&q->by_key, e->m.key, e);
    e->generation = ++q->generation;
    free_message(&before);
}

static void add_entry(struct uplink_deferred *q, const struct uplink_deferred_message *m)
{
    struct entry *e = NEW(struct entry);
    e->m = *m;
    e->m.key = keep(m->key);
    e->m.url = keep(m->url);
    e->m.body = keep(m->body);
    e->generation = ++q->generation;
    e->seen_in_pass = q->is_passing ? q->pass : 0; /* its turn is the next pass */
    list_append(&q->entries, &e->link);
    (void) map_put(&q->by_key, e->m.key, e);
    q->counts.entries++;
    q->counts.bytes += size_of(m);
}

/* ---- when ---------------------------------------------------------------------------------- */

static void set_due(struct uplink_deferred *q, int64_t due_us)
{
    q->due_us = due_us;
    if (q->timer)
        loop_timer_start(q->timer, MAX(due_us - now_us(q), 0) / 1000 + 1, /* repeat_ms= */ 0);
}

static void set_idle(struct uplink_deferred *q)
{
    q->retry_us = 0;
    q->is_hurried = false;
    set_due(q, now_us(q) + IDLE_MIN_US +
                   (int64_t) draw_below(q, (uint64_t) (IDLE_MAX_US - IDLE_MIN_US)));
}

/* The next interval: the base with noise to both sides, never more noise than base. */
static void set_retry(struct uplink_deferred *q)
{
    const int64_t base = q->retry_us;
    const int64_t noise = MIN(RETRY_NOISE_US, base);
    const int64_t after = base - noise / 2 + (int64_t) draw_below(q, (uint64_t) noise);
    q->retry_us = MIN(2 * base, RETRY_MAX_US);
    set_due(q, now_us(q) + after);
}

static void end_pass(struct uplink_deferred *q)
{
    q->is_passing = false;
    if (q->counts.entries > WARN_ENTRIES)
        log_warning("many messages wait for the controller",
                    LOG_INT("n", (int64_t) q->counts.entries));
    if (q->is_kicked)
        return; /* the step that follows begins the next one, whose end decides */
    if (q->counts.entries == 0) {
        set_idle(q);
    } else if (q->retry_us == 0) {
        q->retry_us = q->is_hurried ? HURRY_MIN_US : RETRY_MIN_US;
        set_retry(q);
    } else if (q->due_us <= now_us(q)) {
        set_retry(q); /* a pass in between does not move it */
    }
}

/* ---- a pass -------------------------------------------------------------------------------- */

static size_t priority_of(const struct uplink_deferred *q, const struct entry *e)
{
    for (size_t i = 0; i < q->o.n_priorities; i++)
        if (q->o.priorities[i](&e->m))
            return i;
    return q->o.n_priorities;
}

static void tell(const struct uplink_deferred *q, const struct entry *e, enum uplink_status s)
{
    if (q->o.on_status)
        q->o.on_status(q->o.arg, &e->m, s);
}

/* The best of those whose turn is still to come: by priority, then those never refused, then in
 * their order. */
static struct entry *next_entry(struct uplink_deferred *q)
{
    struct entry *best = NULL;
    size_t best_priority = 0;
    LIST_FOR_EACH (&q->entries, item) {
        struct entry *e = CONTAINER_OF(item, struct entry, link);
        if (e->seen_in_pass == q->pass)
            continue;
        const size_t priority = priority_of(q, e);
        if (!best || priority < best_priority ||
            (priority == best_priority && best->attempts > 0 && e->attempts == 0)) {
            best = e;
            best_priority = priority;
        }
    }
    return best;
}

static void on_answer(void *arg, const struct uplink_answer *a)
{
    struct uplink_deferred *q = arg;
    q->call = NULL;
    uplink_deferred_sent(q, a->error, a->status, a->last_http_status);
}

static void send_entry(struct uplink_deferred *q, struct entry *e, int64_t budget_ms)
{
    q->is_sending = true;
    q->sending_key = keep(e->m.key);
    q->sending_generation = e->generation;
    if (q->o.send) {
        q->o.send(q->o.arg, &e->m, budget_ms);
        return;
    }
    const struct uplink_request r = {.url = e->m.url,
                                     .body = e->m.body,
                                     .bails_on_http_error = e->m.bails_on_http_error,
                                     .budget_ms = budget_ms};
    q->call = uplink_send(q->o.uplink, &r, on_answer, q);
}

/* Sends what comes next, or ends the pass. */
static void advance(struct uplink_deferred *q)
{
    struct entry *e;
    while ((e = next_entry(q))) {
        const int64_t left_us = q->deadline_us - now_us(q);
        e->seen_in_pass = q->pass;
        if (e->m.body.n == 0) {
            drop(q, e);
        } else if (e->not_before_us > now_us(q)) {
            tell(q, e, UPLINK_DEBUG);
        } else if (left_us <= 0) {
            break;
        } else {
            send_entry(q, e, MAX(left_us / 1000, 1));
            return;
        }
    }
    end_pass(q);
}

static void begin_pass(struct uplink_deferred *q)
{
    q->is_kicked = false;
    q->is_passing = true;
    q->pass++;
    q->counts.passes++;
    q->deadline_us = now_us(q) + q->o.budget_ms * 1000;
    advance(q);
}

/* A send() may end inside its own call: passes run in this loop, not in one another. */
static void step(struct uplink_deferred *q)
{
    if (q->is_stepping)
        return;
    q->is_stepping = true;
    while (!q->is_sending) {
        if (q->is_passing)
            advance(q);
        else if (q->is_kicked || q->due_us <= now_us(q))
            begin_pass(q);
        else
            break;
    }
    q->is_stepping = false;
}

static void on_step(struct loop_deferred *d)
{
    step(CONTAINER_OF(d, struct uplink_deferred, step));
}

static void on_timer(void *arg)
{
    uplink_deferred_wake(arg);
}

static void kick(struct uplink_deferred *q)
{
    q->is_kicked = true;
    if (q->o.loop)
        loop_defer(q->o.loop, &q->step);
}

/* ---- what became of it --------------------------------------------------------------------- */

static void put_off(struct uplink_deferred *q, struct entry *e)
{
    int64_t wait_us = RETRY_MIN_US;
    for (unsigned i = 0; i < e->attempts && wait_us < RETRY_MAX_US; i++)
        wait_us *= 2;
    e->attempts++;
    e->not_before_us = now_us(q) + MIN(wait_us, RETRY_MAX_US);
    if (e->attempts % WARN_ATTEMPTS == 0)
        log_warning("the controller keeps refusing a message", LOG_STR("key", e->m.key),
                    LOG_INT("attempts", e->attempts));
}

/* An entry that was set again meanwhile waits for its own turn. */
static void settle(struct uplink_deferred *q, struct entry *e, enum uplink_refusal refusal)
{
    const bool is_same = e->generation == q->sending_generation;
    if (!is_same)
        return;
    if (refusal == UPLINK_REFUSAL_NONE) {
        q->counts.delivered++;
        drop(q, e);
    } else if (refusal == UPLINK_REFUSAL_FINAL || e->m.is_discarded) {
        log_error("the controller refuses a message for good", LOG_STR("key", e->m.key),
                  LOG_STR("url", e->m.url));
        q->counts.dropped++;
        drop(q, e);
    } else {
        put_off(q, e);
    }
}

/* Nobody answered: the others would fare no better. */
static void stop_pass(struct uplink_deferred *q, struct entry *e)
{
    if (e && e->m.is_discarded && e->generation == q->sending_generation) {
        q->counts.dropped++;
        drop(q, e);
    }
    end_pass(q);
}

void uplink_deferred_sent(struct uplink_deferred *q, int error, enum uplink_status status,
                          int last_http_status)
{
    struct entry *e = map_get(&q->by_key, q->sending_key);
    if (e)
        tell(q, e, error == 0 || status != UPLINK_NONE ? status : UPLINK_FAILED);
    e = map_get(&q->by_key, q->sending_key); /* who was told may have taken it away */
    mem_free((char *) q->sending_key.p);
    q->sending_key = STR_NONE;
    q->is_sending = false;
    if (error < 0 && last_http_status == 0)
        stop_pass(q, e);
    else if (e)
        settle(q, e, error == 0 ? UPLINK_REFUSAL_NONE : uplink_refusal_of(last_http_status));
    step(q);
}

/* ---- for its users ------------------------------------------------------------------------- */

struct uplink_deferred *uplink_deferred_new(const struct uplink_deferred_options *o)
{
    struct uplink_deferred *q = NEW(struct uplink_deferred);
    q->o = *o;
    q->o.max_entries = o->max_entries ? o->max_entries : UPLINK_DEFERRED_MAX_ENTRIES;
    q->o.max_bytes = o->max_bytes ? o->max_bytes : UPLINK_DEFERRED_MAX_BYTES;
    q->o.budget_ms = o->budget_ms ? o->budget_ms : UPLINK_MAX_BUDGET_MS;
    list_init(&q->entries);
    q->step.fn = on_step;
    if (o->loop)
        q->timer = loop_timer_new(o->loop, on_timer, q);
    set_idle(q);
    return q;
}

void uplink_deferred_free(struct uplink_deferred *q)
{
    if (!q)
        return;
    if (q->call)
        uplink_cancel(q->call);
    if (q->o.loop)
        loop_undefer(q->o.loop, &q->step);
    loop_timer_free(q->timer);
    LIST_FOR_EACH (&q->entries, item)
        drop(q, CONTAINER_OF(item, struct entry, link));
    map_done(&q->by_key);
    mem_free((char *) q->sending_key.p);
    mem_free(q);
}

int uplink_deferred_set(struct uplink_deferred *q, const struct uplink_deferred_message *m)
{
    struct entry *e = map_get(&q->by_key, m->key);
    if (size_of(m) > q->o.max_bytes)
        return -EMSGSIZE;
    if (!has_room(q, e, size_of(m))) {
        q->counts.rejected++;
        return -ENOSPC;
    }
    make_room(q, e, size_of(m));
    if (e)
        replace_message(q, e, m);
    else
        add_entry(q, m);
    kick(q);
    return 0;
}

void uplink_deferred_remove(struct uplink_deferred *q, struct str key)
{
    struct entry *e = map_get(&q->by_key, key);
    if (e)
        drop(q, e);
}

void uplink_deferred_hurry(struct uplink_deferred *q)
{
    q->is_hurried = true;
    q->retry_us = 0;
    kick(q);
}

int64_t uplink_deferred_due_us(const struct uplink_deferred *q)
{
    return q->is_kicked ? now_us(q) : q->due_us;
}

void uplink_deferred_wake(struct uplink_deferred *q)
{
    step(q);
}

struct uplink_deferred_counts uplink_deferred_counts(const struct uplink_deferred *q)
{
    return q->counts;
}
