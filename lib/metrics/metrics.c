/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/map.h"

#define CACHE_LINE_BYTES 64
#define MAX_BOUNDS 64
/* In no UTF-8 text, so it keeps values apart in a key. */
#define KEY_SEPARATOR '\xff'

/* What one slot has added: of a histogram the sum, then its buckets; of others one number. */
struct cells {
    _Atomic double sum;
    atomic_int_least64_t counts[];
};

struct metric_series {
    struct metric *family;
    struct buf key, labels;
    _Atomic double value; /* metric_set() */
    _Atomic(struct cells *) cells[METRICS_SLOTS];
    struct metric_series *next;
};

struct metric {
    const struct metric_family *family;
    size_t n_labels;
    pthread_mutex_t lock; /* of what follows */
    struct map by_key;
    struct metric_series *first, **last, *other;
    size_t n_series;
    struct metric *next;
};

struct metrics {
    struct metric *first, **last;
    struct {
        void (*collect)(void *ctx, struct buf *b);
        void *ctx;
    } collectors[METRICS_MAX_COLLECTORS];
    size_t n_collectors;
};

size_t metrics_slot(void)
{
    static atomic_size_t n_threads;
    static _Thread_local size_t slot_plus_one;
    if (!slot_plus_one)
        slot_plus_one =
            atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) % METRICS_SLOTS + 1;
    return slot_plus_one - 1;
}

/* ---- families ------------------------------------------------------------------------------- */

struct metrics *metrics_new(void)
{
    struct metrics *m = NEW(struct metrics);
    m->last = &m->first;
    return m;
}

static void series_free(struct metric_series *s)
{
    for (size_t i = 0; i < METRICS_SLOTS; i++)
        mem_free(atomic_load(&s->cells[i]));
    buf_done(&s->key);
    buf_done(&s->labels);
    mem_free(s);
}

static void family_free(struct metric *f)
{
    for (struct metric_series *s = f->first, *next; s; s = next) {
        next = s->next;
        series_free(s);
    }
    map_done(&f->by_key);
    (void) pthread_mutex_destroy(&f->lock);
    mem_free(f);
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    for (struct metric *f = m->first, *next; f; f = next) {
        next = f->next;
        family_free(f);
    }
    mem_free(m);
}

struct metric *metric_register(struct metrics *m, const struct metric_family *family)
{
    assert(family->n_bounds <= MAX_BOUNDS);
    struct metric *f = NEW(struct metric);
    f->family = family;
    while (family->labels && family->labels[f->n_labels])
        f->n_labels++;
    (void) pthread_mutex_init(&f->lock, NULL);
    f->last = &f->first;
    *m->last = f;
    m->last = &f->next;
    return f;
}

void metrics_on_collect(struct metrics *m, void (*collect)(void *ctx, struct buf *b), void *ctx)
{
    assert(m->n_collectors < METRICS_MAX_COLLECTORS);
    m->collectors[m->n_collectors].collect = collect;
    m->collectors[m->n_collectors++].ctx = ctx;
}

/* ---- series --------------------------------------------------------------------------------- */

/* values NULL: those of the series that takes what is too much. */
static struct metric_series *add_series(struct metric *f, const struct str *values)
{
    struct metric_series *s = NEW(struct metric_series);
    s->family = f;
    for (size_t i = 0; i < f->n_labels; i++)
        metrics_write_label(&s->labels, f->family->labels[i], values ? values[i] : STR("other"));
    *f->last = s;
    f->last = &s->next;
    f->n_series++;
    return s;
}

static struct metric_series *other_series(struct metric *f)
{
    if (!f->other)
        f->other = add_series(f, NULL);
    return f->other;
}

struct metric_series *metric_series(struct metric *f, const struct str *values)
{
    BUF_AUTO key = {0};
    for (size_t i = 0; i < f->n_labels; i++) {
        buf_append_str(&key, values[i]);
        buf_append_char(&key, KEY_SEPARATOR);
    }
    const size_t limit = f->family->max_series ? f->family->max_series : METRICS_DEFAULT_SERIES;
    (void) pthread_mutex_lock(&f->lock);
    struct metric_series *s = map_get(&f->by_key, buf_str(&key));
    if (!s && f->by_key.n_items >= limit) {
        s = other_series(f);
    } else if (!s) {
        s = add_series(f, values);
        s->key = key;
        key = (struct buf){0};
        (void) map_put(&f->by_key, buf_str(&s->key), s);
    }
    (void) pthread_mutex_unlock(&f->lock);
    return s;
}

/* ---- counting ------------------------------------------------------------------------------- */

static size_t n_counts(const struct metric *f)
{
    return f->family->type == METRIC_HISTOGRAM ? f->family->n_bounds + 1 : 1;
}

/* Whole cache lines: slots must not slow each other down. */
static struct cells *make_cells(struct metric_series *s, size_t slot)
{
    size_t n_bytes = sizeof(struct cells) + n_counts(s->family) * sizeof(atomic_int_least64_t);
    n_bytes = (n_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    struct cells *made = mem_zalloc(n_bytes + CACHE_LINE_BYTES), *there = NULL;
    if (atomic_compare_exchange_strong(&s->cells[slot], &there, made))
        return made;
    mem_free(made);
    return there;
}

static inline struct cells *own_cells(struct metric_series *s)
{
    size_t slot = metrics_slot();
    struct cells *c = atomic_load_explicit(&s->cells[slot], memory_order_acquire);
    return c ? c : make_cells(s, slot);
}

void metric_add(struct metric_series *s, int64_t n)
{
    atomic_fetch_add_explicit(&own_cells(s)->counts[0], n, memory_order_relaxed);
}

void metric_set(struct metric_series *s, double value)
{
    atomic_store_explicit(&s->value, value, memory_order_relaxed);
}

/* Most of what is measured is small: the first bounds are met soonest. */
static size_t bucket_of(const struct metric_family *f, double value)
{
    size_t i = 0;
    while (i < f->n_bounds && value > f->bounds[i])
        i++;
    return i;
}

void metric_observe(struct metric_series *s, double value)
{
    struct cells *c = own_cells(s);
    size_t bucket = bucket_of(s->family->family, value);
    atomic_fetch_add_explicit(&c->counts[bucket], 1, memory_order_relaxed);
    double sum = atomic_load_explicit(&c->sum, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&c->sum, &sum, sum + value, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void write_series(struct buf *b, struct metric_series *s)
{
    const struct metric_family *f = s->family->family;
    int64_t counts[MAX_BOUNDS + 1] = {0};
    double sum = 0;
    for (size_t slot = 0; slot < METRICS_SLOTS; slot++) {
        struct cells *c = atomic_load_explicit(&s->cells[slot], memory_order_acquire);
        for (size_t i = 0; c && i < n_counts(s->family); i++)
            counts[i] += atomic_load_explicit(&c->counts[i], memory_order_relaxed);
        sum += c ? atomic_load_explicit(&c->sum, memory_order_relaxed) : 0;
    }
    if (f->type == METRIC_HISTOGRAM)
        metrics_write_histogram(b, f->name, &s->labels,
                                &(struct metric_histogram){f->bounds, f->n_bounds, counts, sum});
    else
        metrics_write_value(b, f->name, &s->labels,
                            (double) counts[0] +
                                atomic_load_explicit(&s->value, memory_order_relaxed));
}

static void write_family(struct buf *b, struct metric *f)
{
    (void) pthread_mutex_lock(&f->lock);
    if (f->first)
        metrics_write_head(b, f->family->name, f->family->help, f->family->type);
    for (struct metric_series *s = f->first; s; s = s->next)
        write_series(b, s);
    (void) pthread_mutex_unlock(&f->lock);
}

void metrics_text(struct metrics *m, struct buf *b)
{
    for (struct metric *f = m->first; f; f = f->next)
        write_family(b, f);
    for (size_t i = 0; i < m->n_collectors; i++)
        m->collectors[i].collect(m->collectors[i].ctx, b);
}
