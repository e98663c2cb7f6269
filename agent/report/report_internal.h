/* SPDX-License-Identifier: Apache-2.0 */
/* The reporter's own parts: what has changed, the queues, the timers. */
#pragma once

#include "base/map.h"
#include "controllerconn/deferred.h"
#include "loop/loop.h"
#include "node/link.h"
#include "report/info.h"
#include "report/report.h"
#include "zedagent/zedagent.h"

/* What changes within so long is told once. */
#define REPORT_OBJECT_MS 200
#define REPORT_DEVICE_MS 1000
/* The queue is full: what is marked stays so, and is looked at again. */
#define REPORT_FULL_MS 60000
/* Objects that wait to be told: beyond it the oldest is told first. */
#define REPORT_MAX_DIRTY 4096
#define REPORT_DEVICE_SPREAD_PERCENT 20
#define REPORT_HEALTH_RETRY_S 120
#define REPORT_MAX_FLOWS 100
#define REPORT_MAX_FLOW_BYTES ((size_t) 4 * 1024 * 1024)
#define REPORT_MAX_FLOW_WAIT_S 128

/* Something that must be told. */
struct dirty {
    struct list link;
    enum report_kind kind;
    char *id;   /* kind and key, its place in the map */
    char *last; /* JSON of something that is gone; NULL: it is there */
    size_t n_id, n_last;
};

/* A subscription knows whose it is. */
struct report_topic_slot {
    struct report *report;
    struct subscription *subscription;
};

struct flow_message {
    struct list link;
    struct report_flow_counts counts;
    size_t n;
    char bytes[];
};

struct report {
    struct zedagent *zedagent;
    struct node *node;
    struct node_link *link;
    struct node_watch watch;
    struct zedagent_listener listener;
    struct report_topic_slot topics[REPORT_TOPICS];
    char device[UUID_TEXT_BYTES]; /* "": not onboarded yet */
    unsigned char root_hash[32];
    bool has_root_hash, is_remote_access_disabled;

    struct map dirty_by_id;
    struct list dirty;
    bool is_device_dirty;
    struct loop_timer *flush_timer;
    int64_t flush_at_ms; /* 0: not running */

    struct uplink_deferred *events;
    struct uplink_deferred *periodic, *loc; /* NULL: not needed yet */
    struct loop_timer *device_timer, *location_timer;
    int64_t device_interval_s, location_interval_s; /* 0: not running */

    struct loop_timer *metrics_timer;
    struct uplink_call *metrics_call;
    char *metrics_sent; /* what the call carries; NULL for a simulated node */
    size_t n_metrics_sent;
    int64_t metrics_interval_s, announced_interval_s;
    uint64_t n_metrics_sent_total, n_metrics_lost;

    struct loop_timer *health_timer;
    struct uplink_call *health_call;
    struct buf health_sent; /* what the call carries; empty for a simulated node */
    int64_t health_interval_s;

    struct list flows; /* the first is on its way */
    size_t n_flows, flow_bytes;
    struct uplink_call *flow_call;
    struct loop_timer *flow_timer; /* NULL: none was needed */
    int64_t flow_wait_s;
    struct {
        struct report_flow_counts delivered, dropped, failed;
    } flow_counts;

    struct ntp_task *ntp; /* NULL: no chrony here */
};

/* topics.c */
int report_subscribe(struct report *r);
void report_unsubscribe(struct report *r);
/* Everything that there is must be told again. */
void report_mark_all(struct report *r);

/* dirty.c: last NULL: it is there. */
void report_mark(struct report *r, enum report_kind kind, struct str key, const struct json *last);
void report_mark_device(struct report *r);
void report_dirty_done(struct report *r);
/* Tells all that waits, now. */
void report_flush(struct report *r);

/* queues.c */
void report_queues_init(struct report *r);
void report_queues_done(struct report *r);
void report_queues_hurry(struct report *r);
/* -ENOSPC: there is no room in the queue now. */
int report_tell(struct report *r, struct report_view *v, const struct info_subject *s);
/* The device itself to the operator console alone, which the controller has not answered for. */
void report_tell_loc(struct report *r);

/* metrics_task.c */
void report_metrics_init(struct report *r);
void report_metrics_done(struct report *r);
/* The interval may be another, or sending has become possible. */
void report_metrics_update(struct report *r);

/* health.c */
void report_health_init(struct report *r);
void report_health_done(struct report *r);
/* It may begin, or the interval may be another. */
void report_health_update(struct report *r);

/* flowlog.c */
void report_flow_init(struct report *r);
void report_flow_done(struct report *r);
void report_flow_add(struct report *r, const struct json *flow);

/* ntp.c: chrony's sources; nothing where it is not installed. */
void report_ntp_init(struct report *r);
void report_ntp_done(struct report *r);
void report_ntp_update(struct report *r);
void report_ntp_tell(struct report *r);

bool report_can_send(const struct report *r);
/* The file `checkpoint/<name>`, for people; nothing for a simulated node. */
void report_keep(struct report *r, const char *name, struct str message);
/* URL of the controller, or of the local one when server is given. */
struct str report_url(struct arena *a, const struct report *r, struct str server,
                      struct str action);
