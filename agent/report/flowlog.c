/* SPDX-License-Identifier: Apache-2.0 */
/* Flows of applications, one message after the other. They are many and worth little: what finds no
 * room is dropped and counted. */
#include "base/alloc.h"
#include "base/log.h"
#include "eve/flowlog.pb-c.h"
#include "report/report_internal.h"

/* Above it new ones are dropped. */
#define FULL_PERCENT 90
#define MAX_RECORDS 4096

/* ---- the message ---------------------------------------------------------------------------- */

static Eve__Flowlog__ACLAction action_of(int64_t action)
{
    static const Eve__Flowlog__ACLAction actions[] = {EVE__FLOWLOG__ACLACTION__ActionUnknown,
                                                      EVE__FLOWLOG__ACLACTION__ActionAccept,
                                                      EVE__FLOWLOG__ACLACTION__ActionDrop};
    return action >= 0 && action < (int64_t) N_ELEMENTS(actions) ? actions[action] : actions[0];
}

static void add_flow(struct world *w, Eve__Flowlog__FlowMessage *m, const struct json *record)
{
    const struct json *flow = json_get(record, STR("Flow"));
    Eve__Flowlog__FlowRecord *r = MAKE(w, Eve__Flowlog__FlowRecord, eve__flowlog__flow_record);
    r->flow = MAKE(w, Eve__Flowlog__IpFlow, eve__flowlog__ip_flow);
    r->flow->src = TEXT(w, flow, "Src");
    r->flow->dest = TEXT(w, flow, "Dst");
    r->flow->srcport = (int32_t) make_number(flow, STR("SrcPort"));
    r->flow->destport = (int32_t) make_number(flow, STR("DstPort"));
    r->flow->protocol = (int32_t) make_number(flow, STR("Proto"));
    r->inbound = FLAG(record, "Inbound");
    r->aclid = (int32_t) make_number(record, STR("ACLID"));
    r->action = action_of(make_number(record, STR("Action")));
    /* Nanoseconds. */
    r->starttime = make_time(w, make_number(record, STR("StartTime")) / 1000);
    r->endtime = make_time(w, make_number(record, STR("StopTime")) / 1000);
    r->txbytes = make_number(record, STR("TxBytes"));
    r->txpkts = make_number(record, STR("TxPkts"));
    r->rxbytes = make_number(record, STR("RxBytes"));
    r->rxpkts = make_number(record, STR("RxPkts"));
    PUSH(w, m, flows, r);
}

static void add_request(struct world *w, Eve__Flowlog__FlowMessage *m, const struct json *record)
{
    Eve__Flowlog__DnsRequest *r = MAKE(w, Eve__Flowlog__DnsRequest, eve__flowlog__dns_request);
    r->hostname = TEXT(w, record, "HostName");
    r->n_addrs = make_texts(w, json_get(record, STR("Addrs")), NULL, &r->addrs);
    r->requesttime = make_time(w, make_number(record, STR("RequestTime")) / 1000);
    r->aclnum = (int32_t) make_number(record, STR("ACLNum"));
    PUSH(w, m, dnsreqs, r);
}

static Eve__Flowlog__FlowMessage *make_message(struct world *w, const struct json *flow)
{
    const struct json *scope = json_get(flow, STR("Scope"));
    Eve__Flowlog__FlowMessage *m = MAKE(w, Eve__Flowlog__FlowMessage, eve__flowlog__flow_message);
    m->devid = make_text(w, w->ground->device);
    m->scope = MAKE(w, Eve__Flowlog__ScopeInfo, eve__flowlog__scope_info);
    m->scope->uuid = TEXT(w, scope, "AppUUID");
    m->scope->intf = TEXT(w, scope, "NetAdapterName");
    m->scope->localintf = TEXT(w, scope, "BrIfName");
    m->scope->netinstuuid = TEXT(w, scope, "NetUUID");
    JSON_FOR_EACH_ITEM (json_get(flow, STR("Flows")), record)
        if (m->n_flows < MAX_RECORDS)
            add_flow(w, m, record);
    JSON_FOR_EACH_ITEM (json_get(flow, STR("DNSReqs")), record)
        if (m->n_dnsreqs < MAX_RECORDS)
            add_request(w, m, record);
    return m;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static void count(struct report_flow_counts *to, const struct report_flow_counts *more)
{
    to->messages += more->messages;
    to->flows += more->flows;
    to->requests += more->requests;
}

static void take_first(struct report *r)
{
    struct flow_message *m = CONTAINER_OF(r->flows.next, struct flow_message, link);
    list_remove(&m->link);
    r->n_flows--;
    r->flow_bytes -= m->n;
    mem_free(m);
}

static void send_next(void *arg);

static void on_done(void *arg, const struct uplink_answer *answer)
{
    struct report *r = arg;
    const struct flow_message *m = CONTAINER_OF(r->flows.next, struct flow_message, link);
    r->flow_call = NULL;
    if (answer->error == 0) {
        count(&r->flow_counts.delivered, &m->counts);
        report_keep(r, "lastflowlog", str_range(m->bytes, m->n));
        take_first(r);
        r->flow_wait_s = 0;
        send_next(r);
        return;
    }
    count(&r->flow_counts.failed, &m->counts);
    r->flow_wait_s = r->flow_wait_s ? MIN(r->flow_wait_s * 2, REPORT_MAX_FLOW_WAIT_S) : 1;
    loop_timer_start(r->flow_timer, r->flow_wait_s * 1000, 0);
}

static void send_next(void *arg)
{
    struct report *r = arg;
    if (r->flow_call || list_is_empty(&r->flows) || !report_can_send(r))
        return;
    ARENA_AUTO a = arena_new();
    const struct flow_message *m = CONTAINER_OF(r->flows.next, struct flow_message, link);
    const struct uplink_request request = {.url = report_url(a, r, STR_NONE, STR("flowlog")),
                                           .body = str_range(m->bytes, m->n)};
    r->flow_call = uplink_send(r->link->uplink, &request, on_done, r);
}

static bool has_room(const struct report *r, size_t n_bytes)
{
    return r->n_flows < REPORT_MAX_FLOWS * FULL_PERCENT / 100 &&
           r->flow_bytes + n_bytes <= REPORT_MAX_FLOW_BYTES;
}

void report_flow_add(struct report *r, const struct json *flow)
{
    ARENA_AUTO a = arena_new();
    struct report_view v;
    report_view_init(r, a, &v);
    const Eve__Flowlog__FlowMessage *message = make_message(&v.world, flow);
    const struct report_flow_counts counts = {1, message->n_flows, message->n_dnsreqs};
    const struct str bytes = pb_pack(a, &message->base);
    if (!report_can_send(r) || !has_room(r, bytes.n)) {
        count(&r->flow_counts.dropped, &counts);
        return;
    }
    struct flow_message *m = mem_alloc(sizeof(*m) + bytes.n);
    m->counts = counts;
    m->n = bytes.n;
    memcpy(m->bytes, bytes.p, bytes.n);
    list_append(&r->flows, &m->link);
    r->n_flows++;
    r->flow_bytes += bytes.n;
    if (!r->flow_timer)
        r->flow_timer = loop_timer_new(r->node->loop, send_next, r);
    if (!r->flow_wait_s)
        send_next(r);
}

void report_flow_init(struct report *r)
{
    list_init(&r->flows);
}

void report_flow_done(struct report *r)
{
    if (r->flow_call)
        uplink_cancel(r->flow_call);
    while (!list_is_empty(&r->flows))
        take_first(r);
    loop_timer_free(r->flow_timer);
}
