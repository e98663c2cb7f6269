/* SPDX-License-Identifier: Apache-2.0 */
#include "nim/verifier.h"

/* Times timer.port.testduration. */
#define WAITS_FOR_INTERFACE 2
#define WAITS_FOR_APPLYING 2
#define WAITS_FOR_MODEM 3
#define WAITS_FOR_ADDRESS 5

enum node_network_state verifier_judge(const struct verifier_findings *f, int64_t elapsed_ms,
                                       int64_t duration_ms)
{
    const bool waits_for_address = elapsed_ms < WAITS_FOR_ADDRESS * duration_ms;
    if (f->is_assigned)
        return NODE_NETWORK_FAIL;
    if (f->is_being_applied && elapsed_ms < WAITS_FOR_APPLYING * duration_ms)
        return NODE_NETWORK_ASYNC_WAIT;
    if (f->is_reachable)
        return NODE_NETWORK_SUCCESS;
    if (f->is_temporary)
        return NODE_NETWORK_REMOTE_WAIT;
    if (f->is_held && elapsed_ms < WAITS_FOR_INTERFACE * duration_ms)
        return NODE_NETWORK_PCI_WAIT;
    if (f->awaits_modem && elapsed_ms < WAITS_FOR_MODEM * duration_ms)
        return NODE_NETWORK_WWAN_WAIT;
    if (f->n_missing > 0 && elapsed_ms < WAITS_FOR_INTERFACE * duration_ms)
        return NODE_NETWORK_INTERFACE_WAIT;
    if (f->n_present == 0)
        return NODE_NETWORK_FAIL;
    if (!f->has_ip_and_dns)
        return waits_for_address ? NODE_NETWORK_IPDNS_WAIT : NODE_NETWORK_FAIL;
    if (f->is_not_ready && waits_for_address)
        return NODE_NETWORK_IPDNS_WAIT;
    return NODE_NETWORK_FAIL_WITH_IP_AND_DNS;
}

void verifier_init(struct verifier *v, struct dpc_list *list, const struct clock *clock)
{
    *v = (struct verifier){.list = list, .clock = clock};
}

static int64_t after_ms(const struct verifier *v, int64_t ms)
{
    return v->clock->monotonic_us(v->clock) + ms * 1000;
}

static int64_t wall_us(const struct verifier *v)
{
    return v->clock->wall_us(v->clock);
}

static void begin(struct verifier *v, int at)
{
    v->list->current = at;
    v->is_running = true;
    v->stays = false;
    v->begun_us = v->clock->monotonic_us(v->clock);
    v->retry_us = v->test_us = v->better_us = 0;
    v->wants_test = true;
}

static void test_later(struct verifier *v)
{
    v->test_us = v->interval_ms > 0 ? after_ms(v, v->interval_ms) : 0;
}

static int64_t better_later(const struct verifier *v)
{
    for (int i = 0; i < v->list->current && v->better_ms > 0; i++)
        if (dpc_is_usable(v->list->items[i]))
            return after_ms(v, v->better_ms);
    return 0;
}

/* What is in use now stays so for a while. */
static void settle(struct verifier *v)
{
    v->is_running = false;
    v->retry_us = 0;
    v->better_us = better_later(v);
    dpc_list_compress(v->list, v->keeps_last_resort);
    test_later(v);
}

/* Nothing can be tested: the best there is, until some of it may be tried again. */
static void park(struct verifier *v)
{
    v->works = false;
    v->list->current = dpc_list_parking(v->list);
    settle(v);
}

void verifier_restart(struct verifier *v)
{
    if (v->is_running || (v->is_silent && v->list->current >= 0))
        return;
    int at = dpc_list_next_testable(v->list, 0, wall_us(v));
    if (v->stays && v->list->current >= 0 && (at < 0 || at > v->list->current))
        at = v->list->current;
    if (at >= 0)
        begin(v, at);
    else if (v->list->current < 0)
        park(v);
    else
        test_later(v);
}

void verifier_restart_anew(struct verifier *v)
{
    v->is_running = false;
    v->stays = false;
    v->wants_test = false;
    v->retry_us = 0;
    verifier_restart(v);
}

void verifier_hurry(struct verifier *v)
{
    if (!v->is_running || v->retry_us == 0)
        return;
    v->retry_us = 0;
    v->wants_test = true;
}

/* What is wrong with it would be wrong with every other one. */
static void stay(struct verifier *v)
{
    v->works = false;
    v->stays = true;
    settle(v);
}

static void go_on(struct verifier *v)
{
    const struct dpc *first = v->list->items[0];
    const int next =
        dpc_is_untested(first) || dpc_was_working(first)
            ? 0
            : dpc_list_next_testable(v->list, (size_t) v->list->current + 1, wall_us(v));
    if (next >= 0)
        begin(v, next);
    else
        park(v);
}

static void found_working(struct verifier *v)
{
    v->works = true;
    settle(v);
    /* One came while this was tested. */
    if (dpc_is_untested(v->list->items[0]))
        verifier_restart(v);
}

static void record(struct dpc *d, const struct verifier_findings *f, int64_t now_us)
{
    switch (d->state) {
    case NODE_NETWORK_SUCCESS:
        if (f->has_ip_and_dns)
            d->ip_and_dns_us = now_us;
        dpc_results_succeed(&d->results, now_us, STR_NONE);
        break;
    case NODE_NETWORK_REMOTE_WAIT:
        dpc_results_succeed(&d->results, now_us, f->words);
        break;
    case NODE_NETWORK_FAIL_WITH_IP_AND_DNS:
        dpc_results_fail(&d->results, now_us, f->words);
        if (!f->is_not_ready)
            d->ip_and_dns_us = now_us;
        break;
    case NODE_NETWORK_FAIL:
        dpc_results_fail(&d->results, now_us, f->words);
        break;
    default: /* it waits: nothing is known yet */
        break;
    }
}

static void take_verification(struct verifier *v, struct dpc *d, const struct verifier_findings *f)
{
    const int64_t elapsed_ms = (v->clock->monotonic_us(v->clock) - v->begun_us) / 1000;
    d->state = verifier_judge(f, elapsed_ms, v->duration_ms);
    record(d, f, wall_us(v));
    switch (d->state) {
    case NODE_NETWORK_SUCCESS:
    case NODE_NETWORK_REMOTE_WAIT:
        found_working(v);
        break;
    case NODE_NETWORK_FAIL:
    case NODE_NETWORK_FAIL_WITH_IP_AND_DNS:
        if (f->is_local && !dpc_is_untested(v->list->items[0]))
            stay(v);
        else
            go_on(v);
        break;
    default:
        v->retry_us = after_ms(v, MAX(v->duration_ms, 1));
    }
}

/* Of what is in use: one failure is an accident, two are a reason to look around. */
static void take_test(struct verifier *v, struct dpc *d, const struct verifier_findings *f)
{
    if (f->is_reachable) {
        d->state = NODE_NETWORK_SUCCESS;
        record(d, f, wall_us(v));
    }
    const bool worked = v->works;
    v->works = f->is_reachable || f->is_temporary;
    if (v->works || worked)
        test_later(v);
    else
        verifier_restart(v);
}

void verifier_take(struct verifier *v, const struct verifier_findings *f)
{
    struct dpc *d = dpc_list_current(v->list);
    v->wants_test = false;
    if (!d)
        verifier_restart_anew(v);
    else if (v->is_running)
        take_verification(v, d, f);
    else
        take_test(v, d, f);
}

int64_t verifier_due_us(const struct verifier *v)
{
    const int64_t times[] = {v->retry_us, v->test_us, v->better_us};
    int64_t due_us = 0;
    for (size_t i = 0; i < N_ELEMENTS(times); i++)
        if (times[i] && (due_us == 0 || times[i] < due_us))
            due_us = times[i];
    return due_us;
}

static bool is_due(const struct verifier *v, int64_t *at_us)
{
    if (*at_us == 0 || v->clock->monotonic_us(v->clock) < *at_us)
        return false;
    *at_us = 0;
    return true;
}

void verifier_wake(struct verifier *v)
{
    if (is_due(v, &v->retry_us) && v->is_running)
        v->wants_test = true;
    if (is_due(v, &v->better_us))
        verifier_restart(v);
    if (is_due(v, &v->test_us) && !v->is_running) {
        if (v->is_silent || !dpc_list_current(v->list))
            test_later(v);
        else
            v->wants_test = true;
    }
}

void verifier_set_times(struct verifier *v, int64_t duration_ms, int64_t interval_ms,
                        int64_t better_ms)
{
    const bool is_other = v->interval_ms != interval_ms;
    const bool is_better = v->better_ms != better_ms;
    v->duration_ms = duration_ms;
    v->interval_ms = interval_ms;
    v->better_ms = better_ms;
    if (is_other && !v->is_running && dpc_list_current(v->list))
        test_later(v);
    if (is_better && !v->is_running)
        v->better_us = better_later(v);
}
