/* SPDX-License-Identifier: Apache-2.0 */
/* What applications and their volumes use. */
#include "report/metrics.h"

#define MAX_APPS 1024
#define MAX_CONTAINERS 1024

static void set_domain(struct world *w, Eve__Metrics__AppMetric *a, const struct json *d)
{
    const uint64_t used_mb = NUMBER(d, "UsedMemory");
    a->cpu->total_ns = NUMBER(d, "CPUTotalNs");
    a->cpu->total = a->cpu->total_ns / 1000000000;
    a->appmemory->allocatedmb = (uint32_t) NUMBER(d, "AllocatedMB");
    a->appmemory->usedmb = (uint32_t) used_mb;
    a->memory = metrics_memory(w, used_mb, NUMBER(d, "AvailableMemory"),
                               make_double(d, STR("UsedMemoryPercent")));
}

static void add_network(struct world *w, Eve__Metrics__AppMetric *a, const struct json *adapter)
{
    const struct str used = json_get_str(adapter, STR("VifUsed"));
    const struct str vif = used.n ? used : json_get_str(adapter, STR("Vif"));
    const struct json *metric = vif.n ? metrics_find_interface(w, vif) : NULL;
    if (!metric)
        return;
    /* Counted at the end of the host; what xen calls nb* is counted at the other. */
    const bool is_swapped = !str_starts_with(vif, STR("nb"));
    Eve__Metrics__NetworkMetric *n = metrics_network(w, metric, is_swapped);
    n->iname = TEXT(w, adapter, "Name");
    PUSH(w, a, network, n);
}

static void add_disk(struct world *w, Eve__Metrics__AppMetric *a, const struct json *volume)
{
    const struct str location = json_get_str(volume, STR("ActiveFileLocation"));
    const struct json *metric =
        location.n ? world_value(w, REPORT_APP_DISK_METRIC, make_path_key(w, location)) : NULL;
    if (!metric)
        return;
    Eve__Metrics__AppDiskMetric *d =
        MAKE(w, Eve__Metrics__AppDiskMetric, eve__metrics__app_disk_metric);
    d->disk = make_text(w, location);
    d->provisioned = make_mebibytes(NUMBER(metric, "ProvisionedBytes"));
    d->used = make_mebibytes(NUMBER(metric, "UsedBytes"));
    d->disktype = TEXT(w, metric, "DiskType");
    d->dirty = FLAG(metric, "Dirty");
    PUSH(w, a, disk, d);
}

static void add_container(struct world *w, Eve__Metrics__AppMetric *a, const struct json *stats)
{
    Eve__Metrics__AppContainerMetric *c =
        MAKE(w, Eve__Metrics__AppContainerMetric, eve__metrics__app_container_metric);
    c->appcontainername = TEXT(w, stats, "ContainerName");
    c->status = TEXT(w, stats, "Status");
    c->pids = (uint32_t) NUMBER(stats, "Pids");
    c->cpu = MAKE(w, Eve__Metrics__AppCpuMetric, eve__metrics__app_cpu_metric);
    c->cpu->uptime = make_duration(w, make_number(stats, STR("Uptime")) / 1000);
    c->cpu->total_ns = NUMBER(stats, "CPUTotal");
    c->cpu->total = c->cpu->total_ns / 1000000000;
    c->cpu->systemtotal = NUMBER(stats, "SystemCPUTotal") / 1000000000;
    c->appcontainermemory = MAKE(w, Eve__Metrics__AppMemoryMetric, eve__metrics__app_memory_metric);
    c->appcontainermemory->allocatedmb = (uint32_t) NUMBER(stats, "AllocatedMem");
    c->appcontainermemory->usedmb = (uint32_t) NUMBER(stats, "UsedMem");
    c->network = MAKE(w, Eve__Metrics__NetworkMetric, eve__metrics__network_metric);
    c->network->txbytes = NUMBER(stats, "TxBytes");
    c->network->rxbytes = NUMBER(stats, "RxBytes");
    c->disk = MAKE(w, Eve__Metrics__DiskMetric, eve__metrics__disk_metric);
    c->disk->readbytes = NUMBER(stats, "ReadBytes");
    c->disk->writebytes = NUMBER(stats, "WriteBytes");
    PUSH(w, a, container, c);
}

static void add_patches(struct world *w, Eve__Metrics__AppMetric *a, struct str app)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_PATCH_USAGE), m) {
        if (!str_eq(json_get_str(&m->value, STR("AppUUID")), app))
            continue;
        Eve__Metrics__AppPatchEnvelopeMetric *p =
            MAKE(w, Eve__Metrics__AppPatchEnvelopeMetric, eve__metrics__app_patch_envelope_metric);
        p->uuid = TEXT(w, &m->value, "PatchID");
        p->version = TEXT(w, &m->value, "Version");
        p->patch_api_call_count = NUMBER(&m->value, "PatchAPICallCount");
        p->download_count = NUMBER(&m->value, "DownloadCount");
        PUSH(w, a, patch_envelope, p);
    }
}

static void add_app(struct world *w, Eve__Metrics__ZMetricMsg *msg, struct str key,
                    const struct json *status)
{
    Eve__Metrics__AppMetric *a = MAKE(w, Eve__Metrics__AppMetric, eve__metrics__app_metric);
    const int64_t booted_us = node_json_time_us(json_get(status, STR("BootTime")));
    const struct json *domain = world_value(w, REPORT_DOMAIN_METRIC, key);
    const struct json *adapters = json_get(status, STR("AppNetAdapters"));
    a->appid = make_text(w, key);
    a->appname = TEXT(w, status, "DisplayName");
    a->appversion = TEXT(w, json_get(status, STR("UUIDandVersion")), "Version");
    a->cpu = MAKE(w, Eve__Metrics__AppCpuMetric, eve__metrics__app_cpu_metric);
    a->appmemory = MAKE(w, Eve__Metrics__AppMemoryMetric, eve__metrics__app_memory_metric);
    if (booted_us && FLAG(status, "Activated"))
        a->cpu->uptime = make_duration(w, MAX(w->now_us - booted_us, 0));
    if (domain)
        set_domain(w, a, domain);
    JSON_FOR_EACH_ITEM (adapters ? adapters : json_get(status, STR("UnderlayNetworks")), adapter)
        add_network(w, a, adapter);
    JSON_FOR_EACH_ITEM (json_get(status, STR("VolumeRefStatusList")), volume)
        add_disk(w, a, volume);
    const struct json *containers = world_value(w, REPORT_CONTAINER_METRICS, key);
    JSON_FOR_EACH_ITEM (json_get(containers, STR("StatsList")), stats)
        if (a->n_container < MAX_CONTAINERS)
            add_container(w, a, stats);
    add_patches(w, a, key);
    PUSH(w, msg, am, a);
}

void metrics_apps(struct world *w, Eve__Metrics__ZMetricMsg *msg)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_APP), m)
        if (msg->n_am < MAX_APPS && !FLAG(&m->value, "NoUploadStatsToController"))
            add_app(w, msg, json_str(&m->key), &m->value);
}

void metrics_volumes(struct world *w, Eve__Metrics__ZMetricMsg *msg)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_VOLUME), m) {
        const struct str location = json_get_str(&m->value, STR("FileLocation"));
        const struct json *metric =
            location.n ? world_value(w, REPORT_APP_DISK_METRIC, make_path_key(w, location)) : NULL;
        Eve__Metrics__ZMetricVolume *v =
            MAKE(w, Eve__Metrics__ZMetricVolume, eve__metrics__zmetric_volume);
        if (msg->n_vm == MAX_APPS)
            return;
        v->uuid = TEXT(w, &m->value, "VolumeID");
        v->displayname = TEXT(w, &m->value, "DisplayName");
        v->usedbytes = NUMBER(metric, "UsedBytes");
        v->totalbytes = NUMBER(metric, "ProvisionedBytes");
        v->freebytes = v->totalbytes - MIN(v->usedbytes, v->totalbytes);
        PUSH(w, msg, vm, v);
    }
}
