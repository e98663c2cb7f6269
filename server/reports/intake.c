/* SPDX-License-Identifier: Apache-2.0 */
/* A message of a device: whose is it, what is it about, is it new? A device speaks for itself and
 * for what belongs to it; everything else is counted and ignored. Cluster state, blobs, edgeview,
 * location, time sources, patch envelopes and custom statuses have no object that would carry them:
 * they stay readable as telemetry. */
#include "base/alloc.h"
#include "protobuf/message.h"
#include "reports/reports_internal.h"
#include "reports/words.h"

#define MAX_APPLICATIONS 10000 /* of one device */

struct intake {
    struct reports *reports;
    struct arena *arena;
    const struct telemetry_record *record;
    struct catalog_view device;
    int64_t at_us;
    bool is_replayed;
};

static void count(atomic_uint_fast64_t *n)
{
    (void) atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static int64_t time_of(const Google__Protobuf__Timestamp *t, const struct telemetry_record *record)
{
    int64_t at_us = words_time(t);
    bool is_odd = !at_us || at_us > record->arrived_us + REPORTS_MAX_AHEAD_US;
    return is_odd ? record->arrived_us : at_us;
}

/* Whether this is the newest of its kind about the object; an equal time is the later word. */
static bool is_new(const struct intake *in, enum report_kind kind, const struct uuid *object)
{
    struct reports *r = in->reports;
    struct subject *s = subject_get(r, kind, &in->record->device, object);
    if (in->at_us < s->newest_us) {
        count(&r->counters.n_stale);
        return false;
    }
    s->newest_us = in->at_us;
    return true;
}

static void push(const struct intake *in, enum report_kind kind, unsigned target_kind,
                 const struct uuid *object)
{
    struct report *report = report_new(kind, &in->record->device, in->record->bytes);
    report->at_us = in->at_us;
    report->id = in->record->id;
    report->is_replayed = in->is_replayed;
    count(&in->reports->counters.n_taken);
    target_push(in->reports, target_get(in->reports, target_kind, object), report);
}

/* ---- whose ---------------------------------------------------------------------------------- */

static bool find_own(const struct intake *in, enum catalog_kind kind, const char *uuid_string,
                     struct uuid *ret)
{
    struct catalog_view v;
    return uuid_parse(pb_text(uuid_string), ret) == 0 &&
           catalog_find(&in->reports->catalog, in->arena, kind, ret, &v) &&
           str_eq(v.namespace, in->device.namespace) && v.device.n &&
           str_eq(v.device, in->device.name);
}

/* Nobody owns what several devices share: a device may speak of what its configuration names. Who
 * was once let in stays so until it says that the thing is gone. */
static bool find_shared(const struct intake *in, enum report_kind report, enum catalog_kind kind,
                        const char *uuid_string, struct uuid *ret)
{
    struct catalog_view v;
    struct json *config = NULL;
    char text[UUID_TEXT_BYTES];
    if (uuid_parse(pb_text(uuid_string), ret) < 0 ||
        !catalog_find(&in->reports->catalog, in->arena, kind, ret, &v) ||
        !str_eq(v.namespace, in->device.namespace))
        return false;
    const struct subject *s = subject_find(in->reports, report, &in->record->device, ret);
    if (s && !list_is_empty(&s->link))
        return true;
    struct place p = {STR("eve.lfedge.org"), STR("v1beta1"), STR("deviceconfigs"),
                      in->device.namespace, in->device.name};
    if (place_get(in->reports, in->arena, &p, &config) < 0)
        return false;
    uuid_text(ret, text);
    return str_find_str(json_text(in->arena, json_at(config, "spec", "config", NULL)),
                        str_of(text)) >= 0;
}

/* ---- what about ----------------------------------------------------------------------------- */

static struct report *deletion_of(const struct intake *in, const struct uuid *application)
{
    char text[UUID_TEXT_BYTES];
    Eve__Info__ZInfoApp app;
    Eve__Info__ZInfoMsg m;
    eve__info__zinfo_app__init(&app);
    eve__info__zinfo_msg__init(&m);
    uuid_text(application, text);
    app.appid = text;
    m.info_content_case = EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO;
    m.ainfo = &app;
    struct report *report =
        report_new(REPORT_APPLICATION, &in->record->device, pb_pack(in->arena, &m.base));
    report->at_us = in->at_us;
    report->id = in->record->id;
    return report;
}

/* An Application that is being deleted is gone when a newer list of the device lacks it. Others are
 * left alone: after a boot the list fills only slowly. */
static void look_for_deleted(const struct intake *in, const Eve__Info__ZInfoDevice *m)
{
    struct reports *r = in->reports;
    struct catalog_view *list = NULL;
    size_t n = catalog_applications(&r->catalog, in->arena, &in->device, MAX_APPLICATIONS, &list);
    struct map present = {0};
    for (size_t i = 0; n && i < m->n_appinstances; i++) {
        struct uuid *u = ARENA_NEW(in->arena, struct uuid);
        if (uuid_parse(pb_text(m->appinstances[i]->uuid), u) == 0)
            (void) map_put(&present, str_range((const char *) u->bytes, sizeof(u->bytes)), u);
    }
    for (size_t i = 0; i < n; i++) {
        const struct uuid *u = &list[i].uuid;
        if (!list[i].is_deleting || !list[i].has_state ||
            map_get(&present, str_range((const char *) u->bytes, sizeof(u->bytes))))
            continue;
        if (is_new(in, REPORT_APPLICATION, u))
            target_push(r, target_get(r, CATALOG_APPLICATION, u), deletion_of(in, u));
    }
    map_done(&present);
}

static bool take_device(const struct intake *in, const Eve__Info__ZInfoDevice *m)
{
    const struct uuid *self = &in->record->device;
    if (is_new(in, REPORT_DEVICE, self)) {
        push(in, REPORT_DEVICE, CATALOG_DEVICE, self);
        look_for_deleted(in, m);
    }
    return true;
}

static bool take_own(const struct intake *in, enum report_kind kind, enum catalog_kind of,
                     const char *uuid)
{
    struct uuid object;
    if (!find_own(in, of, uuid, &object))
        return false;
    if (is_new(in, kind, &object))
        push(in, kind, kind == REPORT_KUBECONFIG ? (unsigned) TARGET_KUBECONFIG : (unsigned) of,
             &object);
    return true;
}

static bool take_shared(const struct intake *in, enum report_kind kind, enum catalog_kind of,
                        const char *uuid, const struct fact *f)
{
    struct uuid object;
    if (!find_shared(in, kind, of, uuid, &object))
        return false;
    if (!is_new(in, kind, &object))
        return true;
    subject_set_fact(in->reports, subject_get(in->reports, kind, &in->record->device, &object), f);
    push(in, kind, of, &object);
    return true;
}

static bool take_self(const struct intake *in, enum report_kind kind)
{
    if (is_new(in, kind, &in->record->device))
        push(in, kind, CATALOG_DEVICE, &in->record->device);
    return true;
}

static bool take_content(const struct intake *in, const Eve__Info__ZInfoMsg *m)
{
    struct fact f;
    switch (m->info_content_case) {
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO:
        return take_device(in, m->dinfo);
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO:
        return take_own(in, REPORT_APPLICATION, CATALOG_APPLICATION, m->ainfo->appid);
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_VINFO:
        return take_own(in, REPORT_VOLUME, CATALOG_VOLUME, m->vinfo->uuid);
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_AMDINFO:
        return m->amdinfo->type !=
                   EVE__INFO__APP_INST_META_DATA_TYPE__APP_INST_META_DATA_TYPE_KUBE_CONFIG ||
               take_own(in, REPORT_KUBECONFIG, CATALOG_APPLICATION, m->amdinfo->uuid);
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_CINFO:
        f = fact_of_content(in->arena, m->cinfo);
        return take_shared(in, REPORT_CONTENT, CATALOG_IMAGE, m->cinfo->uuid, &f);
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_NIINFO:
        f = fact_of_network(in->arena, m->niinfo);
        return take_shared(in, REPORT_NETWORK, CATALOG_NETWORK, m->niinfo->networkid, &f);
    case EVE__INFO__ZINFO_MSG__INFO_CONTENT_HWINFO:
        return take_self(in, REPORT_HARDWARE);
    default:
        return true;
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

static bool is_sender(const struct telemetry_record *record, const char *device_text)
{
    struct uuid u;
    return uuid_parse(pb_text(device_text), &u) == 0 && uuid_eq(&u, &record->device);
}

/* False: not this device's to say. */
static bool take_info(struct intake *in)
{
    const Eve__Info__ZInfoMsg *m = PB_UNPACK(in->arena, eve__info__zinfo_msg, in->record->bytes);
    if (!m) {
        count(&in->reports->counters.n_bad);
        return true;
    }
    in->at_us = time_of(m->attimestamp, in->record);
    return is_sender(in->record, m->devid) && take_content(in, m);
}

static bool take_metrics(struct intake *in)
{
    const Eve__Metrics__ZMetricMsg *m =
        PB_UNPACK(in->arena, eve__metrics__zmetric_msg, in->record->bytes);
    if (!m) {
        count(&in->reports->counters.n_bad);
        return true;
    }
    in->at_us = time_of(m->attimestamp, in->record);
    if (!is_sender(in->record, m->devid))
        return false;
    return m->metric_content_case != EVE__METRICS__ZMETRIC_MSG__METRIC_CONTENT_DM ||
           take_self(in, REPORT_METRICS);
}

void intake_record(struct reports *r, const struct telemetry_record *record, bool is_replayed)
{
    ARENA_AUTO a = arena_new();
    struct intake in = {.reports = r, .arena = a, .record = record, .is_replayed = is_replayed};
    r->newest_id = MAX(r->newest_id, record->id);
    r->is_unsaved = true;
    /* A device that is gone: nobody is left to show it. */
    if (!catalog_find(&r->catalog, a, CATALOG_DEVICE, &record->device, &in.device))
        return;
    if (!is_replayed)
        contact_heard(r, contact_get(r, &record->device), record->arrived_us);
    bool is_own = record->stream == TELEMETRY_INFO      ? take_info(&in)
                  : record->stream == TELEMETRY_METRICS ? take_metrics(&in)
                                                        : true;
    if (!is_own)
        count(&r->counters.n_foreign);
}

void intake_heard(struct reports *r, const struct telemetry_record *record)
{
    if (catalog_has(&r->catalog, CATALOG_DEVICE, &record->device))
        contact_heard(r, contact_get(r, &record->device), record->arrived_us);
}

void intake_note(struct reports *r, struct report *note)
{
    if (!catalog_has(&r->catalog, CATALOG_DEVICE, &note->device)) {
        mem_free(note);
        return;
    }
    contact_heard(r, contact_get(r, &note->device), note->at_us);
    target_push(r, target_get(r, CATALOG_DEVICE, &note->device), note);
}
