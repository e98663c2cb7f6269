/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that waits for one object, worked into its status: read, derived, written when it is
 * another than before; again when somebody else wrote meanwhile. */
#include <errno.h>
#include <stdio.h>

#include "protobuf/message.h"
#include "reports/reports_internal.h"
#include "reports/words.h"

const Eve__Info__ZInfoMsg *report_message(struct arena *a, const struct report *report,
                                          Eve__Info__ZInfoMsg__InfoContentCase content)
{
    const Eve__Info__ZInfoMsg *m = PB_UNPACK(a, eve__info__zinfo_msg, report->bytes);
    return m && m->info_content_case == content ? m : NULL;
}

struct writing {
    struct reports *reports;
    struct target *target;
    struct catalog_view view;
    struct arena *arena; /* of this attempt */
    struct contact *cause;
    void (*derive)(struct writing *w, struct derivation *d);
    char given_hash[DEVICE_CONFIG_HASH_BYTES + 1]; /* of a Device; empty: it was given nothing */
};

/* ---- the kinds ------------------------------------------------------------------------------ */

static void work_in_device(struct writing *w, struct derivation *d, const struct report *report)
{
    const Eve__Info__ZInfoMsg *m = NULL;
    const Eve__Metrics__ZMetricMsg *metrics = NULL;
    const struct delivery delivery = {.hash = report->bytes,
                                      .at_us = report->at_us,
                                      .version = report->version,
                                      .rendered_s = report->rendered_s,
                                      .is_confirmed = report->is_good};
    switch (report->kind) {
    case REPORT_DEVICE:
        m = report_message(w->arena, report, EVE__INFO__ZINFO_MSG__INFO_CONTENT_DINFO);
        if (m)
            w->cause->word = derive_device(d, m->dinfo);
        break;
    case REPORT_HARDWARE:
        m = report_message(w->arena, report, EVE__INFO__ZINFO_MSG__INFO_CONTENT_HWINFO);
        if (m)
            derive_hardware(d, m->hwinfo);
        break;
    case REPORT_METRICS:
        metrics = PB_UNPACK(w->arena, eve__metrics__zmetric_msg, report->bytes);
        if (metrics && metrics->metric_content_case == EVE__METRICS__ZMETRIC_MSG__METRIC_CONTENT_DM)
            derive_metrics(d, metrics->dm);
        break;
    case REPORT_CONFIG:
        derive_delivery(d, &delivery);
        break;
    case REPORT_ATTESTED:
        derive_attested(d, report->is_good, report->bytes);
        break;
    default:
        break;
    }
}

static void derive_whole_device(struct writing *w, struct derivation *d)
{
    LIST_FOR_EACH (&w->target->reports, link) {
        const struct report *report = CONTAINER_OF(link, struct report, link);
        d->at_us = report->at_us;
        work_in_device(w, d, report);
    }
    derive_base_os_target(d);
    struct contact_view v = contact_judge(w->reports, w->cause, &w->view);
    derive_app_counts(d, w->view.n_running, w->view.n_wanted);
    derive_ready(d, &v);
    derive_heartbeat(d, v.last_seen_us);
    const struct str hash = json_str(json_at(d->status, "config", "hash", NULL));
    (void) snprintf(w->given_hash, sizeof(w->given_hash), "%.*s", STR_ARG(hash));
}

/* The object may have gone to another device since the report was taken. */
static bool is_owners(struct writing *w, const struct report *report, struct str owner)
{
    struct catalog_view v;
    return catalog_find(&w->reports->catalog, w->arena, CATALOG_DEVICE, &report->device, &v) &&
           str_eq(v.name, owner);
}

static void derive_whole_application(struct writing *w, struct derivation *d)
{
    int64_t newest_us = derive_application_newest(d->object);
    struct str owner = json_str(json_at(d->object, "status", "device", NULL));
    LIST_FOR_EACH (&w->target->reports, link) {
        const struct report *report = CONTAINER_OF(link, struct report, link);
        d->at_us = report->at_us;
        if (!is_owners(w, report, owner))
            continue;
        if (report->kind == REPORT_DELIVERED) {
            derive_app_delivery(d, &(struct app_delivery){report->is_good, report->generation});
            continue;
        }
        const Eve__Info__ZInfoMsg *m =
            report_message(w->arena, report, EVE__INFO__ZINFO_MSG__INFO_CONTENT_AINFO);
        /* What is taken up again after a crash may have been written before it. */
        bool is_known = report->is_replayed && report->at_us < newest_us;
        if (m && !is_known)
            derive_application(d, m->ainfo);
    }
}

static void derive_whole_volume(struct writing *w, struct derivation *d)
{
    LIST_FOR_EACH (&w->target->reports, link) {
        const struct report *report = CONTAINER_OF(link, struct report, link);
        const Eve__Info__ZInfoMsg *m =
            report_message(w->arena, report, EVE__INFO__ZINFO_MSG__INFO_CONTENT_VINFO);
        d->at_us = report->at_us;
        if (m && is_owners(w, report, json_str(json_at(d->object, "spec", "device", NULL))))
            derive_volume(d, m->vinfo);
    }
}

static void derive_whole_shared(struct writing *w, struct derivation *d)
{
    struct reports *r = w->reports;
    struct fact *facts = NULL;
    size_t n = 0;
    LIST_FOR_EACH (&w->target->facts, link) {
        struct subject *s = CONTAINER_OF(link, struct subject, link);
        struct uuid device = subject_device(s);
        struct catalog_view v;
        if (!catalog_find(&r->catalog, w->arena, CATALOG_DEVICE, &device, &v)) {
            subject_remove(r, s);
            continue;
        }
        facts = arena_grow(w->arena, facts, n, sizeof(*facts));
        facts[n++] = (struct fact){s->fact, s->message ? str_of(s->message) : STR(""), v.name};
        /* More than fit are told the next time. */
        if (!s->is_untold || d->n_events == DERIVE_MAX_EVENTS)
            continue;
        derive_event(d, true, "DeviceError",
                     arena_printf(w->arena, "device %.*s: %s", STR_ARG(v.name), s->message));
        d->events[d->n_events - 1].key = v.name;
    }
    derive_shared(d, facts, n);
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool is_still_it(const struct writing *w, const struct json *object)
{
    struct uuid uuid;
    return str_eq(json_str(json_at(object, "metadata", "uid", NULL)), w->view.uid) &&
           uuid_parse(json_str(json_at(object, "status", "uuid", NULL)), &uuid) == 0 &&
           uuid_eq(&uuid, &w->target->uuid);
}

static void tell(struct writing *w, const struct derivation *d)
{
    for (size_t i = 0; i < d->n_events; i++)
        events_tell(w->reports, w->cause, d->object, &d->events[i]);
    size_t n_told = 0;
    LIST_FOR_EACH (&w->target->facts, link) {
        struct subject *s = CONTAINER_OF(link, struct subject, link);
        if (s->is_untold && n_told++ < d->n_events)
            s->is_untold = false;
    }
}

static int attempt(struct writing *w)
{
    struct reports *r = w->reports;
    struct json *object = NULL;
    struct derivation d;
    struct place p = place_of(w->target->kind, w->view.namespace, w->view.name);
    int result = place_get(r, w->arena, &p, &object);
    if (result < 0)
        return result;
    if (!is_still_it(w, object))
        return -ENOENT;
    derivation_init(&d, w->arena, object);
    d.now_us = reports_wall_us(r);
    w->derive(w, &d);
    if (derivation_has_changed(&d)) {
        result = place_put_status(r, w->arena, &p, object, d.status);
        if (result < 0)
            return result;
        (void) atomic_fetch_add_explicit(&r->counters.n_writes, 1, memory_order_relaxed);
    }
    tell(w, &d);
    return 0;
}

static int write_all(struct writing *w)
{
    int result = -ESTALE;
    for (int i = 0; i < REPORTS_MAX_CONFLICTS && result == -ESTALE; i++) {
        ARENA_AUTO a = arena_new();
        w->arena = a;
        result = attempt(w);
    }
    return result == -ESTALE ? -EAGAIN : result;
}

/* Whoever it was that a report about the object came from pays for its Events. */
static struct contact *cause_of(struct reports *r, const struct target *t)
{
    if (t->kind == CATALOG_DEVICE || list_is_empty(&t->reports))
        return contact_get(r, &t->uuid);
    return contact_get(r, &CONTAINER_OF(t->reports.previous, struct report, link)->device);
}

static int flush_status(struct reports *r, struct target *t)
{
    static void (*const derivers[CATALOG_KINDS])(struct writing *, struct derivation *) = {
        [CATALOG_DEVICE] = derive_whole_device,  [CATALOG_APPLICATION] = derive_whole_application,
        [CATALOG_VOLUME] = derive_whole_volume,  [CATALOG_IMAGE] = derive_whole_shared,
        [CATALOG_NETWORK] = derive_whole_shared,
    };
    ARENA_AUTO a = arena_new();
    struct writing w = {.reports = r, .target = t, .derive = derivers[t->kind]};
    if (!catalog_find(&r->catalog, a, (enum catalog_kind) t->kind, &t->uuid, &w.view))
        return -ENOENT;
    w.cause = cause_of(r, t);
    int result = write_all(&w);
    return result == 0 && t->kind == CATALOG_DEVICE
               ? delivered_flush(r, t, &w.view, str_of(w.given_hash))
               : result;
}

static void note_written(struct reports *r, const struct target *t)
{
    LIST_FOR_EACH (&t->reports, link) {
        const struct report *report = CONTAINER_OF(link, struct report, link);
        struct subject *s = subject_find(r, report->kind, &report->device, &t->uuid);
        if (s)
            s->written_us = MAX(s->written_us, report->at_us);
    }
}

int writer_flush(struct reports *r, struct target *t)
{
    int result = t->kind == TARGET_KUBECONFIG ? kubeconfig_flush(r, t) : flush_status(r, t);
    if (result == 0)
        note_written(r, t);
    return result;
}
