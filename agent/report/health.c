/* SPDX-License-Identifier: Apache-2.0 */
/* The health of the hardware, twice a day: errors that memory controllers have counted. */
#include "eve/hardwarehealth.pb-c.h"
#include "report/report_internal.h"

static void add_controller(struct world *w, Eve__Hardwarehealth__ECCMemoryReport *to,
                           const struct machine_memory_controller *from)
{
    Eve__Hardwarehealth__ECCMemoryControllerInfo *c =
        MAKE(w, Eve__Hardwarehealth__ECCMemoryControllerInfo,
             eve__hardwarehealth__eccmemory_controller_info);
    c->controller_name = make_text(w, from->name);
    c->ce_count = from->n_corrected;
    c->ue_count = from->n_uncorrected;
    for (size_t i = 0; i < from->n_ranks; i++) {
        Eve__Hardwarehealth__DimmRankInfo *rank =
            MAKE(w, Eve__Hardwarehealth__DimmRankInfo, eve__hardwarehealth__dimm_rank_info);
        rank->rank_name = make_text(w, from->ranks[i].name);
        rank->ce_count = from->ranks[i].n_corrected;
        rank->ue_count = from->ranks[i].n_uncorrected;
        PUSH(w, c, ranks, rank);
    }
    PUSH(w, to, memory_controllers, c);
}

static Eve__Hardwarehealth__ZHardwareHealth *make_message(struct world *w)
{
    struct machine *m = w->ground->machine;
    struct machine_hardware hardware = {0};
    (void) m->functions->hardware(m, w->arena, &hardware);
    Eve__Hardwarehealth__ZHardwareHealth *h =
        MAKE(w, Eve__Hardwarehealth__ZHardwareHealth, eve__hardwarehealth__zhardware_health);
    h->dev_id = make_text(w, w->ground->device);
    h->at_time_stamp = make_time(w, w->now_us);
    h->mr = MAKE(w, Eve__Hardwarehealth__ECCMemoryReport, eve__hardwarehealth__eccmemory_report);
    for (size_t i = 0; i < hardware.n_memory; i++)
        add_controller(w, h->mr, &hardware.memory[i]);
    return h;
}

static void schedule(struct report *r, bool is_retry)
{
    loop_timer_start(
        r->health_timer,
        is_retry ? REPORT_HEALTH_RETRY_S * 1000 : node_jitter_ms(r->node, r->health_interval_s), 0);
}

static void on_done(void *arg, const struct uplink_answer *answer)
{
    struct report *r = arg;
    r->health_call = NULL;
    if (answer->error == 0)
        report_keep(r, "lasthardwarehealth", buf_str(&r->health_sent));
    buf_done(&r->health_sent);
    schedule(r, /* is_retry= */ answer->error != 0);
}

static void on_timer(void *arg)
{
    struct report *r = arg;
    if (!report_can_send(r)) {
        schedule(r, /* is_retry= */ true);
        return;
    }
    ARENA_AUTO a = arena_new();
    struct report_view v;
    report_view_init(r, a, &v);
    const Eve__Hardwarehealth__ZHardwareHealth *h = make_message(&v.world);
    const struct str body = pb_pack(a, &h->base);
    const struct uplink_request request = {.url = report_url(a, r, STR_NONE, STR("hardwarehealth")),
                                           .body = body};
    r->health_call = uplink_send(r->link->uplink, &request, on_done, r);
    if (!r->node->is_simulated)
        buf_append_str(&r->health_sent, body);
}

void report_health_init(struct report *r)
{
    r->health_timer = loop_timer_new(r->node->loop, on_timer, r);
}

void report_health_update(struct report *r)
{
    const int64_t interval_s =
        items_int(zedagent_items(r->zedagent), "timer.hardwarehealth.interval");
    if (interval_s == r->health_interval_s)
        return;
    r->health_interval_s = interval_s;
    if (!r->health_call)
        schedule(r, /* is_retry= */ false);
}

void report_health_done(struct report *r)
{
    if (r->health_call)
        uplink_cancel(r->health_call);
    buf_done(&r->health_sent);
    loop_timer_free(r->health_timer);
}
