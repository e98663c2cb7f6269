/* SPDX-License-Identifier: Apache-2.0 */
/* The collector as its own files see it. */
#pragma once

#include "loguploader/collector.h"
#include "loguploader/pack.h"
#include "loop/loop.h"

#define COLLECTOR_MAX_RAW_BYTES ((size_t) 550000) /* then a raw file is packed */
#define COLLECTOR_MAX_CONTENT_BYTES ((size_t) 16 * 1024)
#define COLLECTOR_MAX_WORD_BYTES ((size_t) 256) /* of source, file name and the like */
#define COLLECTOR_MAX_APPS 256                  /* whose message ids are remembered */
#define COLLECTOR_MAX_SOURCES 32                /* that are counted by name */
#define COLLECTOR_ROTATE_S 300
#define COLLECTOR_FAST_ROTATE_S 10
#define COLLECTOR_METRICS_S 300

/* Lines of the device, or of one application. */
struct collector_stream {
    struct list link;
    struct uuid app; /* zero: the device */
    char *name;      /* to display; NULL: unknown */
    uint64_t next_msgid;
    int64_t raw_ms; /* of the open raw file; 0: there is none */
    size_t raw_bytes;
    unsigned n_unsynced;
    int64_t opened_us; /* monotonic */
    bool is_skipped;   /* not to be uploaded */
    bool is_raw_skipped;
};

struct collector_counts {
    uint64_t n_events[2], n_bytes[2], gzip_bytes[2]; /* of the device, of applications */
    uint64_t n_kernel, n_syslog, n_refused;
    uint64_t n_removed, n_broken, n_skipped_files;
    uint64_t n_files, max_gzip, total_gzip;
    uint64_t disk_bytes; /* of gzip files, when last looked at or guessed since */
    int64_t oldest_ms;
};

struct collector_source {
    struct str name;
    uint64_t n_bytes;
};

struct collector {
    struct node *node;
    struct node_watch watch;
    char *root;
    int64_t rotate_s; /* 0: by the configuration */
    struct loop_timer *rotation;
    struct list streams; /* the device's first */
    size_t n_streams;
    int64_t last_ms; /* of names that were given */
    int64_t synced_us;
    bool is_unfinished; /* a raw file could not be packed */

    size_t disk_files;
    int64_t lost_us; /* when it was last said that files go unsent; 0: never */

    struct collector_counts counts;
    struct collector_source *sources; /* since the last publication */
    size_t n_sources;
    struct publication *metrics;
    struct subscription *uploads, *apps;
    struct loop_timer *publishing;
    bool is_publishing; /* it is due some time */

    struct collector_inputs *inputs; /* NULL: none */
};

/* collector.c */
struct collector_stream *collector_stream_of(struct collector *c, const struct uuid *app);
void collector_rotate_stream(struct collector *c, struct collector_stream *s);

/* collector_line.c: appends the line as newlogd writes it, with its newline. */
void collector_encode(struct buf *b, const struct collector_line *line, uint64_t msgid);
/* The first line of a raw file. */
void collector_encode_head(struct buf *b, const struct collector *c,
                           const struct collector_stream *s);

/* collector_state.c: message ids, kept over restarts. */
void collector_state_load(struct collector *c);
int collector_state_save(struct collector *c);

/* collector_quota.c */
void collector_quota_measure(struct collector *c);
/* After so many bytes in so many files were added. */
void collector_quota_check(struct collector *c, uint64_t n_bytes, size_t n_files);

/* collector_metrics.c: NewlogMetrics in newlogd's place. */
int collector_metrics_begin(struct collector *c);
void collector_metrics_changed(struct collector *c);
void collector_metrics_source(struct collector *c, struct str source, size_t n_bytes);
void collector_metrics_end(struct collector *c);

/* collector_inputs.c */
int collector_inputs_new(struct collector *c, const struct collector_options *o);
void collector_inputs_free(struct collector_inputs *in);
