/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/wire.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "fleet/dice.h"
#include "loop/loop.h"

enum fate { FATE_ANSWERED, FATE_REQUEST_LOST, FATE_ANSWER_LOST };

struct fleet_wire {
    struct uplink_wire wire;
    struct fleet_wire_options o;
    struct fleet_dice dice;
    size_t n_under_way;
    struct list waiting; /* for their turn */
    struct loop_deferred more;
    bool loses_answer;          /* this time: by turns */
    struct fleet_second beyond; /* for seconds that are not kept */
};

/* Of this wire: others have their own. */
struct uplink_transfer {
    struct fleet_wire *owner;
    struct uplink_exchange x;
    struct uplink_transfer *inner; /* NULL: not sent yet, or over */
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
    enum fleet_endpoint endpoint;
    enum fate fate;
    struct list link; /* of waiting, or by itself */
    int64_t wanted_us;
    struct loop_timer *sending, *giving_up; /* NULL but where there are faults */
};

static struct fleet_tally *tally(const struct fleet_wire *w)
{
    return *w->o.tally;
}

static int64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static struct fleet_second *this_second(struct fleet_wire *w, int64_t at_us)
{
    struct fleet_second *s = fleet_timeline_at(w->o.timeline, at_us - w->o.begin_us);
    return s ? s : &w->beyond;
}

static void leave(struct uplink_transfer *t)
{
    struct fleet_wire *w = t->owner;
    t->inner = NULL;
    w->n_under_way--;
    if (!list_is_empty(&w->waiting))
        loop_defer(w->o.loop, &w->more);
}

static void free_transfer(struct uplink_transfer *t)
{
    list_remove(&t->link);
    if (t->inner) {
        t->owner->o.inner->ops->cancel(t->inner);
        leave(t);
    }
    loop_timer_free(t->sending);
    loop_timer_free(t->giving_up);
    mem_free(t);
}

static void tell(struct uplink_transfer *t, const struct uplink_reply *r)
{
    t->on_done(t->arg, r);
    free_transfer(t);
}

static void on_answer(void *arg, const struct uplink_reply *r)
{
    struct uplink_transfer *t = arg;
    struct fleet_wire *w = t->owner;
    const int64_t at_us = now_us();
    const struct fleet_outcome o = {.endpoint = t->endpoint,
                                    .fault = r->fault,
                                    .http_status = r->http_status,
                                    .is_resumed = r->is_resumed,
                                    .bytes_received = r->body.n,
                                    .latency_us = at_us - t->wanted_us};
    leave(t);
    fleet_tally_outcome(tally(w), &o);
    struct fleet_second *s = this_second(w, at_us);
    s->n_answered += o.fault == UPLINK_FAULT_NONE;
    s->n_failed += fleet_outcome_is_failure(&o);
    if (t->fate == FATE_ANSWERED)
        tell(t, r);
}

static void on_given_up(void *arg)
{
    tell(arg, &(struct uplink_reply){.fault = UPLINK_FAULT_TIMEOUT,
                                     .error = STR("lost by the fleet: i/o timeout")});
}

static void send_now(struct uplink_transfer *t)
{
    struct fleet_wire *w = t->owner;
    this_second(w, now_us())->n_started++;
    tally(w)->endpoints[t->endpoint].n_started++;
    tally(w)->endpoints[t->endpoint].bytes_sent += t->x.body.n;
    w->n_under_way++;
    t->inner = w->o.inner->ops->start(w->o.inner, &t->x, on_answer, t);
}

static bool has_room(const struct fleet_wire *w)
{
    return w->o.max_under_way == 0 || w->n_under_way < w->o.max_under_way;
}

static void on_more(struct loop_deferred *d)
{
    struct fleet_wire *w = CONTAINER_OF(d, struct fleet_wire, more);
    struct list *first;
    while (has_room(w) && (first = list_pop_first(&w->waiting)))
        send_now(CONTAINER_OF(first, struct uplink_transfer, link));
}

static void send_in_turn(void *arg)
{
    struct uplink_transfer *t = arg;
    t->wanted_us = now_us();
    if (has_room(t->owner) && list_is_empty(&t->owner->waiting))
        send_now(t);
    else
        list_append(&t->owner->waiting, &t->link);
}

static enum fate draw_fate(struct fleet_wire *w)
{
    if (fleet_dice_below(&w->dice, 100) >= w->o.faults.drop_percent)
        return FATE_ANSWERED;
    w->loses_answer = !w->loses_answer;
    return w->loses_answer ? FATE_ANSWER_LOST : FATE_REQUEST_LOST;
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct fleet_wire *w = CONTAINER_OF(wire, struct fleet_wire, wire);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    *t = (struct uplink_transfer){.owner = w,
                                  .x = *x,
                                  .on_done = on_done,
                                  .arg = arg,
                                  .endpoint = fleet_endpoint_of(x->url),
                                  .fate = draw_fate(w)};
    list_init(&t->link);
    if (t->fate != FATE_ANSWERED) {
        tally(w)->endpoints[t->endpoint].n_unheard++;
        t->giving_up = loop_timer_new(w->o.loop, on_given_up, t);
        loop_timer_start(t->giving_up, x->timeout_ms, /* repeat_ms= */ 0);
    }
    if (t->fate == FATE_REQUEST_LOST)
        return t;
    if (w->o.faults.slow_ms == 0) {
        send_in_turn(t);
        return t;
    }
    tally(w)->n_delayed++;
    t->sending = loop_timer_new(w->o.loop, send_in_turn, t);
    loop_timer_start_real(t->sending, w->o.faults.slow_ms, /* repeat_ms= */ 0);
    return t;
}

/* ---- scripts: through as they are ------------------------------------------------------------ */

struct uplink_script {
    struct fleet_wire *owner;
    struct uplink_script *inner;
    void (*on_answer)(void *arg, struct str answer);
    void *arg;
};

static void on_script_answer(void *arg, struct str answer)
{
    struct uplink_script *s = arg;
    s->on_answer(s->arg, answer);
    mem_free(s);
}

static struct uplink_script *ask_script(struct uplink_wire *wire, const struct uplink_port *port,
                                        struct str source, struct str url,
                                        void (*on_script)(void *arg, struct str answer), void *arg)
{
    struct fleet_wire *w = CONTAINER_OF(wire, struct fleet_wire, wire);
    struct uplink_script *s = NEW(struct uplink_script);
    *s = (struct uplink_script){.owner = w, .on_answer = on_script, .arg = arg};
    s->inner = w->o.inner->ops->ask_script(w->o.inner, port, source, url, on_script_answer, s);
    return s;
}

static void cancel_script(struct uplink_script *s)
{
    s->owner->o.inner->ops->cancel_script(s->inner);
    mem_free(s);
}

static const struct uplink_wire_ops fleet_ops = {.start = start,
                                                 .cancel = free_transfer,
                                                 .ask_script = ask_script,
                                                 .cancel_script = cancel_script};

struct uplink_wire *fleet_wire_new(const struct fleet_wire_options *o)
{
    struct fleet_wire *w = NEW(struct fleet_wire);
    w->wire.ops = &fleet_ops;
    w->o = *o;
    w->more.fn = on_more;
    list_init(&w->waiting);
    fleet_dice_init(&w->dice, o->faults.seed);
    return &w->wire;
}

void fleet_wire_free(struct uplink_wire *wire)
{
    struct fleet_wire *w = CONTAINER_OF(wire, struct fleet_wire, wire);
    if (!wire)
        return;
    loop_undefer(w->o.loop, &w->more);
    mem_free(w);
}
