/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and histograms that cost a thread an addition, and the Prometheus text of them all.
 * A family has a fixed set of labels; a series is one combination of their values, found once by
 * whoever counts and then kept. Each thread adds in cells of its own (by its slot, see
 * metrics_slot()); reading sums them. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* Threads beyond so many share. */
#define METRICS_SLOTS 32
/* Of a family that does not say. */
#define METRICS_DEFAULT_SERIES 1000
#define METRICS_MAX_COLLECTORS 16

/* A small number of the calling thread, for what each keeps apart from the others. */
size_t metrics_slot(void);

struct metrics;
struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name, *help;
    enum metric_type type;
    const char *const *labels; /* ends with NULL; NULL: none */
    const double *bounds;      /* of a histogram, rising */
    size_t n_bounds;
    size_t max_series; /* beyond it everything counts in one series of "other" values */
};

struct metric;        /* a family, registered */
struct metric_series; /* one combination of label values */

/* f lives as long as m. Before other threads use m. */
struct metric *metric_register(struct metrics *m, const struct metric_family *f);
/* The series of these label values (as many as labels, in UTF-8), made at first. From any thread.
 * Lives as long as m. */
struct metric_series *metric_series(struct metric *f, const struct str *values);
/* n is negative for gauges alone. */
void metric_add(struct metric_series *s, int64_t n);
/* Of gauges: what was added stays on top. */
void metric_set(struct metric_series *s, double value);
void metric_observe(struct metric_series *s, double value);

/* Values that somebody else keeps, asked when the text is made: collect() writes whole lines itself
 * through metrics_write_*(). Before other threads use m. */
void metrics_on_collect(struct metrics *m, void (*collect)(void *ctx, struct buf *b), void *ctx);
void metrics_write_head(struct buf *b, const char *name, const char *help, enum metric_type type);
/* labels: what metrics_write_label() made; NULL: none. */
void metrics_write_value(struct buf *b, const char *name, const struct buf *labels, double value);
/* Appends name="value" behind a comma if any went before. */
void metrics_write_label(struct buf *labels, const char *name, struct str value);
/* A whole histogram: counts of each bucket alone, the last one (of n_bounds + 1) is +Inf's. */
struct metric_histogram {
    const double *bounds;
    size_t n_bounds;
    const int64_t *counts;
    double sum;
};
void metrics_write_histogram(struct buf *b, const char *name, const struct buf *labels,
                             const struct metric_histogram *h);

/* The Prometheus text format 0.0.4. */
void metrics_text(struct metrics *m, struct buf *b);
