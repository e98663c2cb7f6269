/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics by the clock, sent as they are: what does not arrive is lost, the next comes soon. A
 * longer interval is in force only when the controller has been told, so that it does not take the
 * device for dead. */
#include "base/alloc.h"
#include "base/log.h"
#include "report/metrics.h"
#include "report/report_internal.h"

static void schedule(struct report *r)
{
    loop_timer_start(r->metrics_timer, node_jitter_ms(r->node, r->metrics_interval_s), 0);
}

static void on_done(void *arg, const struct uplink_answer *answer)
{
    struct report *r = arg;
    r->metrics_call = NULL;
    char *sent = TAKE(r->metrics_sent);
    if (answer->error == 0) {
        r->n_metrics_sent_total++;
        /* It named the interval that we want. */
        if (r->metrics_interval_s < r->announced_interval_s) {
            r->metrics_interval_s = r->announced_interval_s;
            schedule(r);
        }
        if (sent)
            report_keep(r, "lastmetrics", str_range(sent, r->n_metrics_sent));
    } else {
        r->n_metrics_lost++;
        log_debug("metrics are lost", LOG_TEXT("device", r->device), LOG_STR("why", answer->words));
    }
    mem_free(sent);
}

static void send_copy(struct report *r, struct report_view *v, struct str body)
{
    const struct str server = json_get_str(world_only(&v->world, REPORT_LOC), STR("LocURL"));
    if (!server.n)
        return;
    if (!r->loc)
        return; /* the first info message makes the queue */
    const struct uplink_deferred_message m = {
        .key = STR("metrics"),
        .url = report_url(v->world.arena, r, server, STR("metrics")),
        .body = body,
        .is_discarded = true,
    };
    (void) uplink_deferred_set(r->loc, &m);
}

static void send_metrics(struct report *r)
{
    ARENA_AUTO a = arena_new();
    struct report_view v;
    report_view_init(r, a, &v);
    BUF_AUTO own = {0};
    uplink_metrics_write(r->link->metrics, &own);
    v.ground.own_metrics = buf_str(&own);
    const Eve__Metrics__ZMetricMsg *message = metrics_make(&v.world);
    const struct str body = pb_pack(a, &message->base);
    r->announced_interval_s = items_int(v.ground.items, "timer.metric.interval");
    if (!r->node->is_simulated) {
        r->metrics_sent = mem_dup(body.p, body.n);
        r->n_metrics_sent = body.n;
    }
    const struct uplink_request request = {.url = report_url(a, r, STR_NONE, STR("metrics")),
                                           .body = body};
    r->metrics_call = uplink_send(r->link->uplink, &request, on_done, r);
    send_copy(r, &v, body);
}

static void on_timer(void *arg)
{
    struct report *r = arg;
    /* One at a time: a slow answer is no reason for more of them. */
    if (report_can_send(r) && !r->metrics_call)
        send_metrics(r);
    schedule(r);
}

void report_metrics_init(struct report *r)
{
    r->metrics_timer = loop_timer_new(r->node->loop, on_timer, r);
}

void report_metrics_update(struct report *r)
{
    const int64_t wanted_s = items_int(zedagent_items(r->zedagent), "timer.metric.interval");
    if (!report_can_send(r) || wanted_s == r->metrics_interval_s)
        return;
    /* The first, a shorter one at once; of a longer one the controller hears first. */
    if (!r->metrics_interval_s || wanted_s < r->metrics_interval_s)
        r->metrics_interval_s = wanted_s;
    loop_timer_start(r->metrics_timer, 0, 0);
}

void report_metrics_done(struct report *r)
{
    if (r->metrics_call)
        uplink_cancel(r->metrics_call);
    loop_timer_free(r->metrics_timer);
    mem_free(r->metrics_sent);
}
