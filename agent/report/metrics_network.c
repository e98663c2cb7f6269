/* SPDX-License-Identifier: Apache-2.0 */
#include "report/metrics.h"

#define MAX_INSTANCES 1024

const struct json *metrics_find_interface(struct world *w, struct str name)
{
    const struct json *all = world_only(w, REPORT_NETWORK_METRICS);
    JSON_FOR_EACH_ITEM (json_get(all, STR("MetricList")), item)
        if (str_eq(json_get_str(item, STR("IfName")), name))
            return item;
    return NULL;
}

Eve__Metrics__NetworkMetric *metrics_network(struct world *w, const struct json *metric,
                                             bool is_swapped)
{
    Eve__Metrics__NetworkMetric *n =
        MAKE(w, Eve__Metrics__NetworkMetric, eve__metrics__network_metric);
    /* What an application receives its host sends. */
    const struct {
        uint64_t *to;
        const char *tx, *rx;
        bool is_tx;
    } fields[] = {
        {&n->txbytes, "TxBytes", "RxBytes", true},
        {&n->rxbytes, "TxBytes", "RxBytes", false},
        {&n->txpkts, "TxPkts", "RxPkts", true},
        {&n->rxpkts, "TxPkts", "RxPkts", false},
        {&n->txdrops, "TxDrops", "RxDrops", true},
        {&n->rxdrops, "TxDrops", "RxDrops", false},
        {&n->txerrors, "TxErrors", "RxErrors", true},
        {&n->rxerrors, "TxErrors", "RxErrors", false},
        {&n->txacldrops, "TxAclDrops", "RxAclDrops", true},
        {&n->rxacldrops, "TxAclDrops", "RxAclDrops", false},
        {&n->txaclratelimitdrops, "TxAclRateLimitDrops", "RxAclRateLimitDrops", true},
        {&n->rxaclratelimitdrops, "TxAclRateLimitDrops", "RxAclRateLimitDrops", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(fields); i++)
        *fields[i].to = (uint64_t) make_number(
            metric, str_of(fields[i].is_tx != is_swapped ? fields[i].tx : fields[i].rx));
    n->localname = TEXT(w, metric, "IfName");
    return n;
}

static Eve__Metrics__NetworkMetric *from_machine(struct world *w, const struct machine_interface *i)
{
    Eve__Metrics__NetworkMetric *n =
        MAKE(w, Eve__Metrics__NetworkMetric, eve__metrics__network_metric);
    n->localname = make_text(w, i->name);
    n->txbytes = i->counters.tx_bytes;
    n->rxbytes = i->counters.rx_bytes;
    n->txpkts = i->counters.tx_packets;
    n->rxpkts = i->counters.rx_packets;
    n->txdrops = i->counters.tx_drops;
    n->rxdrops = i->counters.rx_drops;
    n->txerrors = i->counters.tx_errors;
    n->rxerrors = i->counters.rx_errors;
    return n;
}

/* Of ports alone, by zedrouter where it measures, else by the machine. */
void metrics_device_network(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    const struct json *ports = json_get(world_only(w, REPORT_NETWORK), STR("Ports"));
    JSON_FOR_EACH_ITEM (ports, port) {
        const struct str name = json_get_str(port, STR("IfName"));
        const struct json *metric = metrics_find_interface(w, name);
        const struct machine_interface *own = metric ? NULL : world_interface(w, name);
        if (!json_get_bool(port, STR("IsL3Port"), true) || (!metric && !own))
            continue;
        Eve__Metrics__NetworkMetric *n =
            metric ? metrics_network(w, metric, /* is_swapped= */ false) : from_machine(w, own);
        n->iname = TEXT(w, port, "Logicallabel");
        n->alias = TEXT(w, port, "Alias");
        PUSH(w, d, network, n);
    }
    d->acl = MAKE(w, Eve__Metrics__AclMetric, eve__metrics__acl_metric);
    d->acl->total_rule_count = NUMBER(world_only(w, REPORT_NETWORK_METRICS), "TotalRuleCount");
}

/* ---- network instances ---------------------------------------------------------------------- */

static Eve__Metrics__NetworkStats *make_stats(struct world *w, const struct json *m, bool is_tx)
{
    Eve__Metrics__NetworkStats *s =
        MAKE(w, Eve__Metrics__NetworkStats, eve__metrics__network_stats);
    const struct {
        uint64_t *to;
        const char *tx, *rx;
    } fields[] = {
        {&s->totalpackets, "TxPkts", "RxPkts"},
        {&s->totalbytes, "TxBytes", "RxBytes"},
        {&s->errors, "TxErrors", "RxErrors"},
        {&s->drops, "TxDrops", "RxDrops"},
        {&s->drops, "TxAclDrops", "RxAclDrops"},
        {&s->drops, "TxAclRateLimitDrops", "RxAclRateLimitDrops"},
    };
    for (size_t i = 0; i < N_ELEMENTS(fields); i++)
        *fields[i].to += (uint64_t) make_number(m, str_of(is_tx ? fields[i].tx : fields[i].rx));
    return s;
}

static char *join(struct world *w, const struct json *list)
{
    BUF_AUTO text = {0};
    JSON_FOR_EACH_ITEM (list, item)
        buf_printf(&text, "%s%.*s", text.n ? ", " : "", STR_ARG(json_str(item)));
    return make_text(w, buf_str(&text));
}

static void add_probed_port(struct world *w, Eve__Metrics__ZProbeNIMetrics *p,
                            const struct json *stats)
{
    Eve__Metrics__ZProbeNIMetrics__ZProbeIntfMetric *i =
        MAKE(w, Eve__Metrics__ZProbeNIMetrics__ZProbeIntfMetric,
             eve__metrics__zprobe_nimetrics__zprobe_intf_metric);
    i->intfname = TEXT(w, stats, "IntfName");
    i->gatewaynexhtop = join(w, json_get(stats, STR("NexthopIPs")));
    i->gatewayup = FLAG(stats, "NexthopUP");
    i->remotehostup = FLAG(stats, "RemoteUP");
    i->nexthopupcount = (uint32_t) NUMBER(stats, "NexthopUPCnt");
    i->nexthopdowncount = (uint32_t) NUMBER(stats, "NexthopDownCnt");
    i->remoteupcount = (uint32_t) NUMBER(stats, "RemoteUPCnt");
    i->remotedowncount = (uint32_t) NUMBER(stats, "RemoteDownCnt");
    i->remoteprobelatency = (uint32_t) NUMBER(stats, "LatencyToRemote");
    PUSH(w, p, intfmetric, i);
}

static void add_probe(struct world *w, Eve__Metrics__ZMetricNetworkInstance *n,
                      const struct json *probe)
{
    Eve__Metrics__ZProbeNIMetrics *p =
        MAKE(w, Eve__Metrics__ZProbeNIMetrics, eve__metrics__zprobe_nimetrics);
    p->dst_network = TEXT(w, probe, "DstNetwork");
    p->current_port = TEXT(w, probe, "SelectedPort");
    p->currentintf = TEXT(w, probe, "SelectedPortIfName");
    p->remoteendpoint = join(w, json_get(probe, STR("RemoteEndpoints")));
    p->pingintv = (uint32_t) NUMBER(probe, "LocalPingIntvl");
    p->remotepingintv = (uint32_t) NUMBER(probe, "RemotePingIntvl");
    p->uplinkcnt = (uint32_t) NUMBER(probe, "PortCount");
    JSON_FOR_EACH_ITEM (json_get(probe, STR("IntfProbeStats")), stats)
        add_probed_port(w, p, stats);
    PUSH(w, n, probe_metrics, p);
}

static void add_vlans(struct world *w, Eve__Metrics__ZMetricNetworkInstance *n,
                      const struct json *vlans)
{
    n->vlan_info = MAKE(w, Eve__Metrics__VlanInfo, eve__metrics__vlan_info);
    n->vlan_info->num_trunk_ports = (uint32_t) NUMBER(vlans, "NumTrunkPorts");
    JSON_FOR_EACH_MEMBER (json_get(vlans, STR("VlanCounts")), m) {
        Eve__Metrics__VlanInfo__VlanCountsEntry *e = MAKE(
            w, Eve__Metrics__VlanInfo__VlanCountsEntry, eve__metrics__vlan_info__vlan_counts_entry);
        int64_t vlan = 0;
        (void) str_to_i64(json_str(&m->key), &vlan);
        e->key = (uint32_t) vlan;
        e->value = json_is(&m->value, JSON_INT) ? (uint32_t) m->value.i : 0;
        PUSH(w, n->vlan_info, vlan_counts, e);
    }
}

void metrics_network_instances(struct world *w, Eve__Metrics__ZMetricMsg *msg)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_NETWORK_INSTANCE_METRICS), m) {
        const struct json *value = &m->value;
        const struct json *list = json_at(value, "NetworkMetrics", "MetricList", NULL);
        const struct json *status = world_value(w, REPORT_NETWORK_INSTANCE, json_str(&m->key));
        if (msg->n_nm == MAX_INSTANCES)
            return;
        Eve__Metrics__ZMetricNetworkInstance *n =
            MAKE(w, Eve__Metrics__ZMetricNetworkInstance, eve__metrics__zmetric_network_instance);
        n->networkid = make_text(w, json_str(&m->key));
        n->networkversion = TEXT(w, json_get(value, STR("UUIDandVersion")), "Version");
        n->displayname = TEXT(w, value, "DisplayName");
        n->insttype = (uint32_t) NUMBER(value, "Type");
        n->activated = FLAG(status, "Activated");
        n->networkstats =
            MAKE(w, Eve__Metrics__ZMetricNetworkStats, eve__metrics__zmetric_network_stats);
        const struct json *first = json_count(list) ? &list->items[0] : NULL;
        n->networkstats->rx = make_stats(w, first, /* is_tx= */ false);
        n->networkstats->tx = make_stats(w, first, /* is_tx= */ true);
        const struct json *probes = json_get(value, STR("ProbeMetrics"));
        JSON_FOR_EACH_ITEM (probes, probe)
            add_probe(w, n, probe);
        add_vlans(w, n, json_get(value, STR("VlanMetrics")));
        PUSH(w, msg, nm, n);
    }
}
