/* SPDX-License-Identifier: Apache-2.0 */
/* Three queues, as EVE has them: what must arrive; what is soon out of date and is discarded when
 * it fails; copies for a local operator console, discarded too. */
#include <errno.h>

#include "base/log.h"
#include "report/report_internal.h"

static bool is_app(const struct uplink_deferred_message *m)
{
    return m->type == EVE__INFO__ZINFO_TYPES__ZiApp;
}

static bool is_hardware(const struct uplink_deferred_message *m)
{
    return m->type == EVE__INFO__ZINFO_TYPES__ZiHardware;
}

static uplink_deferred_priority *const priorities[] = {is_app, is_hardware};

static void on_status(void *arg, const struct uplink_deferred_message *m, enum uplink_status s)
{
    if (s != UPLINK_NONE)
        return;
    if (m->type == EVE__INFO__ZINFO_TYPES__ZiDevice)
        report_keep(arg, "lastdeviceinfo", m->body);
    else if (m->type == EVE__INFO__ZINFO_TYPES__ZiApp)
        report_keep(arg, "lastappinfo", m->body);
    else if (m->type == EVE__INFO__ZINFO_TYPES__ZiHardware)
        report_keep(arg, "lasthardwareinventory", m->body);
}

static struct uplink_deferred *make_queue(struct report *r, bool is_for_events)
{
    return uplink_deferred_new(&(struct uplink_deferred_options){
        .clock = r->node->clock,
        .loop = r->node->loop,
        .uplink = r->link->uplink,
        .priorities = is_for_events ? priorities : NULL,
        .n_priorities = is_for_events ? N_ELEMENTS(priorities) : 0,
        .on_status = is_for_events ? on_status : NULL,
        .arg = r,
    });
}

void report_queues_init(struct report *r)
{
    r->events = make_queue(r, /* is_for_events= */ true);
}

void report_queues_done(struct report *r)
{
    uplink_deferred_free(r->events);
    uplink_deferred_free(r->periodic);
    uplink_deferred_free(r->loc);
}

void report_queues_hurry(struct report *r)
{
    struct uplink_deferred *const all[] = {r->events, r->periodic, r->loc};
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        if (all[i] && uplink_deferred_counts(all[i]).entries)
            uplink_deferred_hurry(all[i]);
}

static int put(struct report *r, struct uplink_deferred *q, const struct uplink_deferred_message *m)
{
    const int result = uplink_deferred_set(q, m);
    if (result == -EMSGSIZE)
        log_warning("a report is too large to be sent, ignoring", LOG_TEXT("device", r->device),
                    LOG_STR("key", m->key), LOG_INT("bytes", (int64_t) m->body.n));
    return result == -ENOSPC ? result : 0;
}

/* Location is old by the time the controller is back. */
static bool is_periodic(enum report_kind kind)
{
    return kind == KIND_LOCATION;
}

static bool bails(enum report_kind kind)
{
    return kind != KIND_LOCATION && kind != KIND_NTP && kind != KIND_PATCH;
}

static void put_copy(struct report *r, struct report_view *v, struct uplink_deferred_message m)
{
    const struct str server = json_get_str(world_only(&v->world, REPORT_LOC), STR("LocURL"));
    if (!server.n)
        return;
    if (!r->loc)
        r->loc = make_queue(r, /* is_for_events= */ false);
    m.url = report_url(v->world.arena, r, server, STR("info"));
    m.is_discarded = true;
    (void) put(r, r->loc, &m);
}

int report_tell(struct report *r, struct report_view *v, const struct info_subject *s)
{
    struct arena *a = v->world.arena;
    const Eve__Info__ZInfoMsg *message = info_make(&v->world, s);
    if (!message)
        return 0;
    const struct uplink_deferred_message m = {
        .key = info_queue_key(&v->world, s),
        .url = report_url(a, r, STR_NONE, STR("info")),
        .body = pb_pack(a, &message->base),
        .type = (int) message->ztype,
        .bails_on_http_error = bails(s->kind),
        .is_discarded = is_periodic(s->kind),
    };
    if (is_periodic(s->kind) && !r->periodic)
        r->periodic = make_queue(r, /* is_for_events= */ false);
    const int result = put(r, is_periodic(s->kind) ? r->periodic : r->events, &m);
    if (result == 0)
        put_copy(r, v, m);
    return result;
}

void report_tell_loc(struct report *r)
{
    ARENA_AUTO a = arena_new();
    struct report_view v;
    const struct info_subject s = {.kind = KIND_DEVICE, .key = str_of(r->device)};
    report_view_init(r, a, &v);
    const Eve__Info__ZInfoMsg *message = report_can_send(r) ? info_make(&v.world, &s) : NULL;
    if (message)
        put_copy(r, &v,
                 (struct uplink_deferred_message){.key = info_queue_key(&v.world, &s),
                                                  .body = pb_pack(a, &message->base),
                                                  .type = (int) message->ztype,
                                                  .bails_on_http_error = bails(s.kind)});
}
