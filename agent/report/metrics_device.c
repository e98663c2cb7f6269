/* SPDX-License-Identifier: Apache-2.0 */
/* The device's own part: processors, memory, disks, and how its services do. */
#include "report/metrics.h"

#define NIL_UUID STR("00000000-0000-0000-0000-000000000000")
/* A controller that hears nothing for so many intervals may suspect the device. */
#define DORMANT_INTERVALS 3
#define MAX_DISKS 256
#define MAX_MEASURED_AGO_US ((int64_t) 120 * 1000000)
#define MAX_PROCESSES 1024
/* What the agent takes is told in such steps, so that the rest does not move all the time. */
#define OWN_MEMORY_STEP_MB 64

Eve__Metrics__MemoryMetric *metrics_memory(struct world *w, uint64_t used_mb, uint64_t available_mb,
                                           double used_percent)
{
    Eve__Metrics__MemoryMetric *m =
        MAKE(w, Eve__Metrics__MemoryMetric, eve__metrics__memory_metric);
    m->usedmem = (uint32_t) used_mb;
    m->availmem = (uint32_t) available_mb;
    m->usedpercentage = used_percent;
    m->availpercentage = 100.0 - used_percent;
    return m;
}

/* EVE has published the host under either. */
static const struct json *host_metric(struct world *w)
{
    const struct json *host = world_value(w, REPORT_DOMAIN_METRIC, NIL_UUID);
    return host ? host : world_value(w, REPORT_DOMAIN_METRIC, w->ground->device);
}

/* Topic HostMemory, or else the machine. */
struct memory {
    uint64_t total_mb, free_mb, eve_mb;
};

static struct memory read_memory(struct world *w)
{
    const struct json *host = world_only(w, REPORT_HOST_MEMORY);
    const struct machine_load *load = world_load(w);
    struct memory m = {
        .total_mb = make_mebibytes(load->memory_total_bytes),
        .free_mb = make_mebibytes(load->memory_available_bytes),
        .eve_mb = make_mebibytes(load->own_memory_bytes),
    };
    if (NUMBER(host, "TotalMemoryMB")) {
        m.total_mb = NUMBER(host, "TotalMemoryMB");
        m.free_mb = NUMBER(host, "FreeMemoryMB");
    }
    if (NUMBER(host, "UsedEveMB"))
        m.eve_mb = NUMBER(host, "UsedEveMB") + NUMBER(host, "KmemUsedEveMB");
    m.free_mb = MIN(m.free_mb, m.total_mb);
    return m;
}

static uint32_t allocated_to_apps(struct world *w)
{
    uint64_t kilobytes = 0;
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_APP_CONFIG), m) {
        const struct json *domain = world_value(w, REPORT_DOMAIN_METRIC, json_str(&m->key));
        kilobytes += domain ? NUMBER(domain, "AllocatedMB") * 1024
                            : NUMBER(json_get(&m->value, STR("FixedResources")), "Memory");
    }
    return (uint32_t) ((kilobytes + 1023) / 1024);
}

static void set_memory(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    const struct memory m = read_memory(w);
    const uint64_t used_mb = m.total_mb - m.free_mb;
    d->memory = metrics_memory(w, used_mb, m.free_mb,
                               m.total_mb ? 100.0 * (double) used_mb / (double) m.total_mb : 0);
    Eve__Metrics__DeviceMemoryMetric *all =
        MAKE(w, Eve__Metrics__DeviceMemoryMetric, eve__metrics__device_memory_metric);
    d->devicememory = all;
    all->memorymb = (uint32_t) m.total_mb;
    all->allocated_appsmb = allocated_to_apps(w);
    all->used_evemb = (uint32_t) m.eve_mb;
    all->allocated_evemb =
        (uint32_t) ((m.eve_mb + OWN_MEMORY_STEP_MB) / OWN_MEMORY_STEP_MB * OWN_MEMORY_STEP_MB);
    const struct json *host = host_metric(w);
    if (host)
        d->systemservicesmemorymb =
            metrics_memory(w, NUMBER(host, "UsedMemory"), NUMBER(host, "AvailableMemory"),
                           make_double(host, STR("UsedMemoryPercent")));
}

static void set_cpu(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    const struct machine_load *load = world_load(w);
    const struct json *host = host_metric(w);
    d->cpumetric = MAKE(w, Eve__Metrics__AppCpuMetric, eve__metrics__app_cpu_metric);
    d->cpumetric->uptime = make_duration(w, load->uptime_s * 1000000);
    d->cpumetric->total_ns = host ? NUMBER(host, "CPUTotalNs") : (uint64_t) load->cpu_ns;
    d->cpumetric->total = d->cpumetric->total_ns / 1000000000;
}

/* ---- disks ---------------------------------------------------------------------------------- */

static void add_published_disk(struct world *w, Eve__Metrics__DeviceMetric *d,
                               const struct json *value)
{
    Eve__Metrics__DiskMetric *m = MAKE(w, Eve__Metrics__DiskMetric, eve__metrics__disk_metric);
    if (FLAG(value, "IsDir"))
        m->mountpath = TEXT(w, value, "DiskPath");
    else
        m->disk = TEXT(w, value, "DiskPath");
    m->readbytes = make_mebibytes(NUMBER(value, "ReadBytes"));
    m->writebytes = make_mebibytes(NUMBER(value, "WriteBytes"));
    m->readcount = NUMBER(value, "ReadCount");
    m->writecount = NUMBER(value, "WriteCount");
    m->total = make_mebibytes(NUMBER(value, "TotalBytes"));
    m->used = make_mebibytes(NUMBER(value, "UsedBytes"));
    m->free = make_mebibytes(NUMBER(value, "FreeBytes"));
    PUSH(w, d, disk, m);
}

static void add_own_disks(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    const struct machine_load *load = world_load(w);
    for (size_t i = 0; i < load->n_mounts; i++) {
        Eve__Metrics__DiskMetric *m = MAKE(w, Eve__Metrics__DiskMetric, eve__metrics__disk_metric);
        m->mountpath = make_text(w, load->mounts[i].path);
        m->total = make_mebibytes(load->mounts[i].total_bytes);
        m->used = make_mebibytes(load->mounts[i].used_bytes);
        m->free = make_mebibytes(load->mounts[i].free_bytes);
        PUSH(w, d, disk, m);
    }
    for (size_t i = 0; i < MIN(load->n_disks, (size_t) MAX_DISKS); i++) {
        Eve__Metrics__DiskMetric *m = MAKE(w, Eve__Metrics__DiskMetric, eve__metrics__disk_metric);
        m->disk = make_text(w, load->disks[i].name);
        m->readbytes = make_mebibytes(load->disks[i].read_bytes);
        m->writebytes = make_mebibytes(load->disks[i].write_bytes);
        m->readcount = load->disks[i].n_reads;
        m->writecount = load->disks[i].n_writes;
        PUSH(w, d, disk, m);
    }
}

static uint64_t used_by_apps(struct world *w)
{
    uint64_t bytes = 0;
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_APP_DISK_METRIC), m)
        bytes += NUMBER(&m->value, "UsedBytes");
    return bytes;
}

static uint64_t used_in_all(struct world *w)
{
    const struct json *persist = world_value(w, REPORT_DISK_METRIC, STR("persist"));
    const struct machine_load *load = world_load(w);
    if (persist)
        return NUMBER(persist, "UsedBytes");
    return load->n_mounts ? load->mounts[0].used_bytes : 0;
}

static void set_disks(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_DISK_METRIC), m)
        if (d->n_disk < MAX_DISKS)
            add_published_disk(w, d, &m->value);
    if (!d->n_disk)
        add_own_disks(w, d);
    const uint64_t all = used_in_all(w), apps = MIN(used_by_apps(w), all);
    d->runtimestorageoverheadmb = (all - apps + (1 << 20) - 1) >> 20;
    d->appruntimestoragemb = (apps + (1 << 20) - 1) >> 20;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static Eve__Metrics__FlowlogCounters *make_flow_counts(struct world *w, uint64_t delivered,
                                                       uint64_t dropped, uint64_t failed)
{
    Eve__Metrics__FlowlogCounters *c =
        MAKE(w, Eve__Metrics__FlowlogCounters, eve__metrics__flowlog_counters);
    c->success = delivered;
    c->drops = dropped;
    c->failed_attempts = failed;
    return c;
}

static void set_flowlog(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    const struct report_flow_counts *ok = &w->ground->flowlog.delivered,
                                    *lost = &w->ground->flowlog.dropped,
                                    *failed = &w->ground->flowlog.failed;
    d->flowlog = MAKE(w, Eve__Metrics__FlowlogMetric, eve__metrics__flowlog_metric);
    d->flowlog->messages = make_flow_counts(w, ok->messages, lost->messages, failed->messages);
    d->flowlog->flows = make_flow_counts(w, ok->flows, lost->flows, failed->flows);
    d->flowlog->dns_requests = make_flow_counts(w, ok->requests, lost->requests, failed->requests);
}

static Eve__Metrics__NetworkStats *make_cellular_stats(struct world *w, const struct json *stats,
                                                       bool is_tx)
{
    Eve__Metrics__NetworkStats *s =
        MAKE(w, Eve__Metrics__NetworkStats, eve__metrics__network_stats);
    s->totalbytes = is_tx ? NUMBER(stats, "tx-bytes") : NUMBER(stats, "rx-bytes");
    s->totalpackets = is_tx ? NUMBER(stats, "tx-packets") : NUMBER(stats, "rx-packets");
    s->drops = is_tx ? NUMBER(stats, "tx-drops") : NUMBER(stats, "rx-drops");
    return s;
}

void metrics_cellular(struct world *w, Eve__Metrics__DeviceMetric *d)
{
    const struct json *all = world_only(w, REPORT_WWAN_METRICS);
    JSON_FOR_EACH_ITEM (json_get(all, STR("networks")), network) {
        const struct json *stats = json_get(network, STR("packet-stats"));
        const struct json *signal = json_get(network, STR("signal-info"));
        if (!json_get_str(network, STR("logical-label")).n)
            continue; /* nobody manages it */
        Eve__Metrics__CellularMetric *c =
            MAKE(w, Eve__Metrics__CellularMetric, eve__metrics__cellular_metric);
        c->logicallabel = TEXT(w, network, "logical-label");
        c->signal_strength =
            MAKE(w, Eve__Metrics__CellularSignalStrength, eve__metrics__cellular_signal_strength);
        c->signal_strength->rssi = (int32_t) make_number(signal, STR("rssi"));
        c->signal_strength->rsrq = (int32_t) make_number(signal, STR("rsrq"));
        c->signal_strength->rsrp = (int32_t) make_number(signal, STR("rsrp"));
        c->signal_strength->snr = (int32_t) make_number(signal, STR("snr"));
        c->packet_stats =
            MAKE(w, Eve__Metrics__CellularPacketStats, eve__metrics__cellular_packet_stats);
        c->packet_stats->rx = make_cellular_stats(w, stats, /* is_tx= */ false);
        c->packet_stats->tx = make_cellular_stats(w, stats, /* is_tx= */ true);
        PUSH(w, d, cellular, c);
    }
}

Eve__Metrics__DeviceMetric *metrics_device(struct world *w)
{
    const struct zedagent_facts *f = &w->ground->facts;
    Eve__Metrics__DeviceMetric *d =
        MAKE(w, Eve__Metrics__DeviceMetric, eve__metrics__device_metric);
    set_memory(w, d);
    set_cpu(w, d);
    set_disks(w, d);
    metrics_device_network(w, d);
    metrics_transport(w, d);
    metrics_ciphers(w, d);
    d->newlog = metrics_newlog(w);
    d->last_received_config = make_time(w, f->config_received_us);
    d->last_processed_config = make_time(w, f->config_processed_us);
    if (w->ground->items)
        d->dormant_time_in_seconds =
            (uint64_t) items_int(w->ground->items, "timer.metric.interval") * DORMANT_INTERVALS;
    set_flowlog(w, d);
    metrics_cellular(w, d);
    return d;
}

static void add_processes(struct world *w, Eve__Metrics__ZMetricMsg *msg)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_PROCESS_METRIC), m) {
        Eve__Metrics__ZMetricProcess *p =
            MAKE(w, Eve__Metrics__ZMetricProcess, eve__metrics__zmetric_process);
        if (msg->n_pr == MAX_PROCESSES)
            return;
        p->pid = (int32_t) make_number(&m->value, STR("Pid"));
        p->name = TEXT(w, &m->value, "Name");
        p->user_process = FLAG(&m->value, "UserProcess");
        p->watched = FLAG(&m->value, "Watched");
        p->num_fds = (int32_t) make_number(&m->value, STR("NumFDs"));
        p->num_threads = (int32_t) make_number(&m->value, STR("NumThreads"));
        p->user_time = make_double(&m->value, STR("UserTime"));
        p->system_time = make_double(&m->value, STR("SystemTime"));
        p->cpu_percent = make_double(&m->value, STR("CPUPercent"));
        p->create_time = TIME(w, &m->value, "CreateTime");
        p->vm_bytes = NUMBER(&m->value, "VMBytes");
        p->rss_bytes = NUMBER(&m->value, "RssBytes");
        p->memory_percent = (float) make_double(&m->value, STR("MemoryPercent"));
        PUSH(w, msg, pr, p);
    }
}

Eve__Metrics__ZMetricMsg *metrics_make(struct world *w)
{
    const int64_t measured_us = node_json_time_us(json_get(host_metric(w), STR("LastHeard")));
    const bool is_fresh = measured_us <= w->now_us && measured_us > w->now_us - MAX_MEASURED_AGO_US;
    Eve__Metrics__ZMetricMsg *m = MAKE(w, Eve__Metrics__ZMetricMsg, eve__metrics__zmetric_msg);
    m->devid = make_text(w, w->ground->device);
    /* Use of the processor is computed from two of these, so it is the time of the measurement. */
    m->attimestamp = make_time(w, is_fresh ? measured_us : w->now_us);
    m->metric_content_case = EVE__METRICS__ZMETRIC_MSG__METRIC_CONTENT_DM;
    m->dm = metrics_device(w);
    metrics_apps(w, m);
    metrics_network_instances(w, m);
    metrics_volumes(w, m);
    add_processes(w, m);
    return m;
}
