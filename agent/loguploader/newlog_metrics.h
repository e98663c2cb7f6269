/* SPDX-License-Identifier: Apache-2.0 */
/* NewlogMetrics as EVE's services publish it. */
#pragma once

#include "node/node.h"

/* Of the device's files, or those of applications. Times are wall clock, 0: never. */
struct newlog_stream_metrics {
    uint64_t n_sent, gzip_bytes, n_bytes, n_events, n_retries, n_kept_local;
    size_t n_waiting;
    int64_t recent_us; /* what the name of the last file sent says */
    int64_t sent_us;
};

struct newlog_metrics {
    bool is_failing;
    int64_t failing_since_us, refused_us;
    uint64_t n_bytes_sent, n_4xx, n_429;
    unsigned interval_s;
    struct {
        int64_t min, max, current;
        int64_t total; /* of all sent: the average follows */
    } latency_ms;
    struct {
        double cpu_percent, average_cpu_percent;
        int64_t process_ms, average_process_ms;
    } server;
    struct newlog_stream_metrics device, apps;

    /* Of the collector. */
    int64_t rotate_s, oldest_us;
    uint64_t max_gzip, average_gzip, n_removed, n_broken, n_skipped, n_kernel, n_syslog, disk_bytes;
    const struct json *top_sources; /* NULL: none */
};

/* The answer of a controller: {"cpuPercentage":..,"logProcessDelayMsec":..}, after a file of the
 * device was sent and counted. Anything else is ignored. */
void newlog_metrics_take_reply(struct newlog_metrics *m, struct str body);
void newlog_metrics_take_latency(struct newlog_metrics *m, int64_t ms);

struct json *newlog_metrics_json(struct arena *a, const struct newlog_metrics *m);
/* Replaces what the uploader knows in the collector's by the uploader's own. */
void newlog_metrics_merge(struct arena *a, struct json *to, const struct json *uploader);
