/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and histograms that cost a thread an addition, and the Prometheus text of them all.
 * A family has a fixed set of labels; a series is one combination of their values, found once by
 * whoever counts and then kept. Each thread adds in cells of its own (by its slot, see
 * metrics_slot()); reading sums them. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct metrics;
struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name, *help;
    enum metric_type type;
    const char *const *labels; /* ends with NULL */
    const double *bounds;      /* of a histogram, rising */
    size_t n_bounds;
    size_t max_series; /* beyond it everything counts in one series of "other" values */
};

struct metric;        /* a family, registered */
struct metric_series; /* one combination of label values */

/* f lives as long as m. */
struct metric *metric_register(struct metrics *m, const struct metric_family *f);
/* The series of these label values (as many as labels), made at first. From any thread. */
struct metric_series *metric_series(struct metric *f, const struct str *values);
void metric_add(struct metric_series *s, int64_t n);
void metric_set(struct metric_series *s, double value); /* gauges */
void metric_observe(struct metric_series *s, double value);

/* Values that somebody else keeps, asked when the text is made. */
struct metric_sample {
    const char *name; /* with suffix, e.g. "..._total" */
    const char *help;
    enum metric_type type;
};
/* collect() writes whole lines itself through metrics_write_*(). */
void metrics_on_collect(struct metrics *m, void (*collect)(void *ctx, struct buf *b), void *ctx);
void metrics_write_head(struct buf *b, const char *name, const char *help, enum metric_type type);
void metrics_write_value(struct buf *b, const char *name, const char *labels, double value);

/* The Prometheus text format 0.0.4. */
void metrics_text(struct metrics *m, struct buf *b);
