/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of this directory. All but the queue and the catalog belongs to the worker's
 * thread alone.
 *
 *     take -> queue -> intake: whose is it, is it new? -> target (one object) -> writer -> API
 *                                                              ^
 *     contacts: who fell silent ------------------------------'
 *
 * A target is in one of these places, and in none when nothing is to be done about it:
 *
 *     none -> READY -> written -> RESTING (a second) -> none, or READY when there is more
 *                   -> failed  -> RETRYING           -> READY
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "reports/catalog.h"
#include "reports/derive.h"
#include "reports/reports.h"

#define REPORTS_MAX_QUEUED_BYTES ((size_t) 32 * 1024 * 1024)
#define REPORTS_MAX_NOTE_BYTES 1024 /* of what is told beside messages */
#define REPORTS_REST_US ((int64_t) 1000000)
#define REPORTS_RETRY_US ((int64_t) 5 * 1000000)
#define REPORTS_TICK_US ((int64_t) 3 * 1000000)
/* Whoever was found in order is looked at again after this: options and objects may have changed.
 */
#define REPORTS_QUIET_US ((int64_t) 30 * 1000000)
#define REPORTS_SAVE_US ((int64_t) 5 * 1000000)
/* A clock that is further ahead than this is wrong, and would shut out what comes after. */
#define REPORTS_MAX_AHEAD_US ((int64_t) 10 * 60 * 1000000)
/* Reports of an Application that wait for its next write; each may be a change of state. */
#define REPORTS_MAX_PENDING DERIVE_MAX_STATUSES
#define REPORTS_WRITES_PER_STEP 64
#define REPORTS_REPLAYED_PER_STEP 256
#define REPORTS_FINISH_US ((int64_t) 3 * 1000000)
#define REPORTS_SILENT_POLLS 3
#define REPORTS_MIN_POLL_S 5
#define REPORTS_MAX_POLL_S (7 * 24 * 3600)
#define REPORTS_MAX_CONFLICTS 4
/* Events that one device may cause at once, and after that one in so long. */
#define REPORTS_EVENT_BURST 25
#define REPORTS_EVENT_EVERY_US ((int64_t) 60 * 1000000)

enum report_kind {
    REPORT_DEVICE,
    REPORT_HARDWARE,
    REPORT_METRICS,
    REPORT_APPLICATION,
    REPORT_VOLUME,
    REPORT_CONTENT,
    REPORT_NETWORK,
    REPORT_KUBECONFIG,
    REPORT_CONFIG,    /* a note: the bytes are the hash */
    REPORT_ATTESTED,  /* a note: the bytes are the message */
    REPORT_DELIVERED, /* a note about an Application: what its device has of it */
};

struct report {
    struct list link;
    enum report_kind kind;
    struct uuid device;
    int64_t at_us; /* by the device, or else when it came */
    uint64_t id;   /* of its record; 0: none */
    bool is_replayed;
    bool is_good;                /* of a note */
    int64_t version, rendered_s; /* of REPORT_CONFIG */
    int64_t generation;          /* of REPORT_DELIVERED: struct app_delivery */
    struct str bytes;            /* behind this struct */
};
/* Heap; mem_free(). */
struct report *report_new(enum report_kind kind, const struct uuid *device, struct str bytes);

/* Targets are catalog kinds and this one. */
#define TARGET_KUBECONFIG CATALOG_KINDS
#define TARGET_KEY_BYTES 17

enum target_place { PLACE_NONE, PLACE_READY, PLACE_RESTING, PLACE_RETRYING, PLACES };
struct target {
    char key[TARGET_KEY_BYTES];
    unsigned kind;
    struct uuid uuid; /* of the object; of the Application when it is about its kubeconfig */
    enum target_place place;
    int64_t until_us;    /* monotonic; of RESTING and RETRYING */
    struct list link;    /* in its place */
    struct list reports; /* oldest first */
    size_t n_reports;
    bool is_dirty;     /* to be looked at without a report, too */
    bool is_failing;   /* has been logged */
    struct list facts; /* subjects: what devices say of a shared object */
};

#define SUBJECT_KEY_BYTES 33
/* One device's reports of one kind about one object. */
struct subject {
    char key[SUBJECT_KEY_BYTES]; /* kind, device, object */
    int64_t newest_us;           /* of those taken */
    int64_t written_us;          /* of those written */
    struct list link;            /* in the target's facts */
    enum fact_state fact;
    char *message;  /* of an error; NULL: none */
    bool is_untold; /* no Event tells of it yet */
};

/* A device and when it was last heard of. */
struct contact {
    struct uuid uuid;
    int64_t last_seen_us;   /* wall clock; 0: never */
    int64_t heard_us;       /* monotonic */
    int64_t quiet_until_us; /* monotonic: nothing to write before, unless it is heard again */
    bool is_heard;          /* heard_us counts: since the start, or it was in touch before that */
    bool is_out_of_touch;   /* as judged last */
    bool is_fresh;          /* made since the start: what the object says is still to be asked */
    struct device_word word;
    unsigned tick;
    unsigned n_event_tokens;
    int64_t event_tokens_at_us;
};

struct counters {
    atomic_uint_fast64_t n_taken, n_bad, n_foreign, n_stale, n_missed, n_writes, n_failures,
        n_events, n_events_shed;
};

struct reports {
    struct kube_client *client;
    struct roster *roster;
    struct telemetry *telemetry;
    const struct clock *clock;
    char *checkpoint_path;
    struct catalog catalog;
    struct counters counters;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct list queue; /* struct queued */
    size_t n_queued_bytes;
    uint64_t missed_id; /* the first info that found no room; 0: none */
    bool is_synced, is_stopping, has_news;

    pthread_t thread;
    bool has_thread;

    /* The worker's. */
    struct map targets, subjects, contacts;
    struct list places[PLACES];
    struct telemetry_cursor *replay; /* NULL: all is taken up */
    uint64_t replayed_id;
    uint64_t newest_id;      /* of all that was taken */
    uint64_t settled_ids[2]; /* what newest_id was at the last ticks, latest first */
    unsigned n_ticks;
    int64_t started_us, tick_at_us, save_at_us; /* monotonic */
    bool is_unsaved;
};

static inline int64_t reports_mono_us(const struct reports *r)
{
    return r->clock->monotonic_us(r->clock);
}
static inline int64_t reports_wall_us(const struct reports *r)
{
    return r->clock->wall_us(r->clock);
}

/* reports.c, for tests that move time themselves: without a thread. */
int reports_create(const struct reports_options *o, struct reports **ret, char **ret_error);
/* Does what is due. Returns how long there is nothing to do, in microseconds. */
int64_t reports_step(struct reports *r);
/* As after a crash: nothing is written. */
void reports_abandon(struct reports *r);

/* targets.c */
struct target *target_get(struct reports *r, unsigned kind, const struct uuid *uuid);
/* Takes the report over. */
void target_push(struct reports *r, struct target *t, struct report *report);
/* To be looked at soon. */
void target_mark(struct reports *r, struct target *t);
void target_move(struct reports *r, struct target *t, enum target_place place);
/* Frees what is of no use any more. */
void target_forget_reports(struct target *t);
void target_settle(struct reports *r, struct target *t);
void targets_free(struct reports *r);
/* The smallest id of a record that waits to be written; UINT64_MAX: none. */
uint64_t targets_oldest_id(const struct reports *r);
struct subject *subject_find(const struct reports *r, enum report_kind kind,
                             const struct uuid *device, const struct uuid *object);
struct subject *subject_get(struct reports *r, enum report_kind kind, const struct uuid *device,
                            const struct uuid *object);
void subject_remove(struct reports *r, struct subject *s);
struct uuid subject_device(const struct subject *s);
struct uuid subject_object(const struct subject *s);
void subject_set_fact(struct reports *r, struct subject *s, const struct fact *f);

/* intake.c */
void intake_record(struct reports *r, const struct telemetry_record *record, bool is_replayed);
/* Only that the device is in touch. */
void intake_heard(struct reports *r, const struct telemetry_record *record);
void intake_note(struct reports *r, struct report *note); /* takes it over */

/* delivered.c: what became of the configuration that the device was given (hash; empty: none), in
 * its DeviceConfig and its Applications. 0, or a negative errno as from writer_flush(). */
int delivered_flush(struct reports *r, const struct target *t, const struct catalog_view *device,
                    struct str given_hash);

/* writer.c: everything that waits for one object. 0, or a negative errno: -EAGAIN try again. */
int writer_flush(struct reports *r, struct target *t);
/* request.c: the API in a line. */
struct place {
    struct str group, version, resource, namespace, name;
};
struct place place_of(unsigned kind, struct str namespace, struct str name);
int place_get(struct reports *r, struct arena *a, const struct place *p, struct json **ret);
int place_put_status(struct reports *r, struct arena *a, const struct place *p,
                     const struct json *object, struct json *status);
int place_create(struct reports *r, struct arena *a, const struct place *p,
                 const struct json *object);
int place_update(struct reports *r, struct arena *a, const struct place *p,
                 const struct json *object);
int place_delete(struct reports *r, struct arena *a, const struct place *p, struct str uid);

/* kubeconfig.c */
int kubeconfig_flush(struct reports *r, struct target *t);
/* A ZInfoMsg with that content and of that kind; NULL otherwise. */
const Eve__Info__ZInfoMsg *report_message(struct arena *a, const struct report *report,
                                          Eve__Info__ZInfoMsg__InfoContentCase content);

/* events.c: tells about an object; what a device may cause is bounded. */
void events_tell(struct reports *r, struct contact *cause, const struct json *object,
                 const struct derived_event *event);

/* contacts.c */
struct contact *contact_get(struct reports *r, const struct uuid *device);
void contact_heard(struct reports *r, struct contact *c, int64_t at_us);
struct contact_view contact_judge(struct reports *r, struct contact *c,
                                  const struct catalog_view *device);
/* Looks at every device: who was heard, who fell silent. */
void contacts_tick(struct reports *r);
void contacts_free(struct reports *r);

/* checkpoint.c */
int checkpoint_load(struct reports *r, uint64_t *ret_id, char **ret_error);
void checkpoint_save(struct reports *r, bool is_last);
