/* SPDX-License-Identifier: Apache-2.0 */
/* Who publishes what, and of whom a change tells. */
#include "base/log.h"
#include "report/report_internal.h"

enum effect {
    SILENT = 0,
    DEVICE = 1,     /* of the device */
    OBJECT = 2,     /* of one object, named by the key */
    DEVICE_NEW = 4, /* of the device, when one comes or goes */
    FLOW = 8,
    PATCHES = 32, /* of each patch envelope in it, where nobody publishes them one by one */
    REAL = 16,    /* nobody publishes it in a simulated node */
};

static const struct topic {
    const char *agent, *topic;
    bool is_persistent;
    unsigned effects;
    enum report_kind kind; /* OBJECT */
} topics[REPORT_TOPICS] = {
    [REPORT_ZEDAGENT] = {"zedagent", "ZedAgentStatus", false, DEVICE},
    [REPORT_NETWORK] = {"nim", "DeviceNetworkStatus", false, DEVICE},
    [REPORT_PORT_CONFIGS] = {"nim", "DevicePortConfigList", true, DEVICE},
    [REPORT_NODEAGENT] = {"nodeagent", "NodeAgentStatus", false, DEVICE},
    [REPORT_BASE_OS] = {"baseosmgr", "BaseOsStatus", false, DEVICE},
    [REPORT_BASE_OS_MANAGER] = {"baseosmgr", "BaseOSMgrStatus", false, DEVICE},
    [REPORT_ZBOOT] = {"baseosmgr", "ZbootStatus", false, DEVICE},
    [REPORT_APP] = {"zedmanager", "AppInstanceStatus", false, OBJECT | DEVICE_NEW, KIND_APP},
    [REPORT_APP_CONFIG] = {"zedagent", "AppInstanceConfig", false, SILENT},
    [REPORT_NETWORK_INSTANCE] = {"zedrouter", "NetworkInstanceStatus", false, OBJECT,
                                 KIND_NETWORK_INSTANCE},
    [REPORT_NETWORK_INSTANCE_METRICS] = {"zedrouter", "NetworkInstanceMetrics", false, SILENT},
    [REPORT_NETWORK_METRICS] = {"zedrouter", "NetworkMetrics", false, SILENT},
    [REPORT_FLOW] = {"zedrouter", "IPFlow", false, FLOW},
    [REPORT_CONTAINER_METRICS] = {"zedrouter", "AppContainerMetrics", false, REAL},
    [REPORT_ADAPTERS] = {"domainmgr", "AssignableAdapters", false, DEVICE},
    [REPORT_DOMAIN_METRIC] = {"domainmgr", "DomainMetric", false, SILENT},
    [REPORT_PROCESS_METRIC] = {"domainmgr", "ProcessMetric", false, REAL},
    [REPORT_HOST_MEMORY] = {"domainmgr", "HostMemory", false, SILENT},
    [REPORT_CAPABILITIES] = {"domainmgr", "Capabilities", false, DEVICE | REAL},
    [REPORT_CONTENT] = {"volumemgr", "ContentTreeStatus", false, OBJECT, KIND_CONTENT},
    [REPORT_VOLUME] = {"volumemgr", "VolumeStatus", false, OBJECT, KIND_VOLUME},
    [REPORT_BLOB] = {"volumemgr", "BlobStatus", false, OBJECT, KIND_BLOB},
    [REPORT_DISK_METRIC] = {"volumemgr", "DiskMetric", false, REAL},
    [REPORT_APP_DISK_METRIC] = {"volumemgr", "AppDiskMetric", false, SILENT},
    [REPORT_VAULT] = {"vaultmgr", "VaultStatus", false, DEVICE},
    [REPORT_METADATA] = {"msrv", "AppInstMetaData", true, OBJECT, KIND_METADATA},
    [REPORT_PATCH_USAGE] = {"msrv", "PatchEnvelopeUsage", true, REAL},
    [REPORT_PATCH] = {"msrv", "PatchEnvelopeInfo", false, OBJECT | REAL, KIND_PATCH},
    [REPORT_PATCH_LIST] = {"zedagent", "PatchEnvelopeInfoList", true, PATCHES},
    [REPORT_WWAN_METRICS] = {"wwan", "WwanMetrics", false, REAL},
    [REPORT_WWAN_LOCATION] = {"wwan", "WwanLocationInfo", false, REAL},
    [REPORT_EDGEVIEW] = {"edgeview", "EdgeviewStatus", false, OBJECT | REAL, KIND_EDGEVIEW},
    [REPORT_NEWLOG] = {"newlogd", "NewlogMetrics", false, SILENT},
    [REPORT_LOGUPLOADER] = {"loguploader", "NewlogMetrics", false, SILENT},
    [REPORT_POOL] = {"zfsmanager", "ZFSPoolStatus", false, DEVICE | REAL},
    [REPORT_CERTS] = {"scepclient", "EnrolledCertificateStatus", false, DEVICE | REAL},
    [REPORT_LOC] = {"zedagent", "LOCConfig", false, SILENT},
    [REPORT_MAP_CLIENT] = {"zedclient", "MetricsMap", false, SILENT},
    [REPORT_MAP_LOGUPLOADER] = {"loguploader", "MetricsMap", false, SILENT},
    [REPORT_MAP_DOWNLOADER] = {"downloader", "MetricsMap", false, REAL},
    [REPORT_MAP_DIAG] = {"diag", "MetricsMap", false, REAL},
    [REPORT_MAP_NIM] = {"nim", "MetricsMap", false, SILENT},
    [REPORT_MAP_ZEDROUTER] = {"zedrouter", "MetricsMap", false, REAL},
    [REPORT_MAP_MGMTPROXY] = {"mgmtproxy", "MetricsMap", false, REAL},
    [REPORT_CIPHER_DOWNLOADER] = {"downloader", "CipherMetrics", false, REAL},
    [REPORT_CIPHER_DOMAINMGR] = {"domainmgr", "CipherMetrics", false, REAL},
    [REPORT_CIPHER_NIM] = {"nim", "CipherMetrics", false, REAL},
    [REPORT_CIPHER_ZEDROUTER] = {"zedrouter", "CipherMetrics", false, REAL},
    [REPORT_CIPHER_WWAN] = {"wwan", "CipherMetrics", false, REAL},
};

/* ---- handlers ------------------------------------------------------------------------------- */

static const struct topic *topic_of(const struct report_topic_slot *slot)
{
    return &topics[slot - slot->report->topics];
}

static void mark_patches(struct report *r, const struct json *list)
{
    const struct subscription *each = r->topics[REPORT_PATCH].subscription;
    if (each && subscription_count(each).n_keys)
        return;
    JSON_FOR_EACH_ITEM (json_get(list, STR("Envelopes")), envelope)
        report_mark(r, KIND_PATCH, json_get_str(envelope, STR("PatchID")), NULL);
}

static void on_change(struct report_topic_slot *slot, struct str key, const struct json *value,
                      const struct json *last, bool is_modified)
{
    const struct topic *t = topic_of(slot);
    struct report *r = slot->report;
    if ((t->effects & DEVICE) || ((t->effects & DEVICE_NEW) && !is_modified))
        report_mark_device(r);
    if (t->effects & OBJECT)
        report_mark(r, t->kind, key, last);
    if ((t->effects & FLOW) && value)
        report_flow_add(r, value);
    if (t->effects & PATCHES)
        mark_patches(r, value);
}

static void on_create(void *arg, struct str key, const struct json *value)
{
    on_change(arg, key, value, NULL, /* is_modified= */ false);
}

static void on_modify(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) old;
    on_change(arg, key, value, NULL, /* is_modified= */ true);
}

static void on_delete(void *arg, struct str key, const struct json *last)
{
    on_change(arg, key, NULL, last, /* is_modified= */ false);
}

static const struct subscription_handlers loud = {
    .on_create = on_create, .on_modify = on_modify, .on_delete = on_delete};
static const struct subscription_handlers silent = {0};

int report_subscribe(struct report *r)
{
    for (size_t i = 0; i < REPORT_TOPICS; i++) {
        const struct topic *t = &topics[i];
        r->topics[i].report = r;
        if (r->node->is_simulated && (t->effects & REAL))
            continue;
        const struct pubsub_name name = {.agent = str_of(t->agent),
                                         .topic = str_of(t->topic),
                                         .is_persistent = t->is_persistent};
        const bool is_loud = t->effects & ~(unsigned) REAL;
        const int result = subscription_new(r->node->pubsub, &name, is_loud ? &loud : &silent,
                                            &r->topics[i], &r->topics[i].subscription);
        if (result < 0)
            return result;
    }
    return 0;
}

void report_unsubscribe(struct report *r)
{
    for (size_t i = 0; i < REPORT_TOPICS; i++)
        subscription_free(TAKE(r->topics[i].subscription));
}

void report_mark_all(struct report *r)
{
    report_mark_device(r);
    report_mark(r, KIND_HARDWARE, STR(""), NULL);
    for (size_t i = 0; i < REPORT_TOPICS; i++) {
        const struct subscription *s = r->topics[i].subscription;
        struct str key, text;
        if (!s || !(topics[i].effects & OBJECT))
            continue;
        for (size_t at = 0; subscription_next(s, &at, &key, &text);)
            report_mark(r, topics[i].kind, key, NULL);
    }
    report_ntp_tell(r);
}

/* ---- the world ------------------------------------------------------------------------------ */

static struct json *load(void *arg, struct arena *a, enum report_topic topic)
{
    const struct report *r = arg;
    const struct subscription *s = r->topics[topic].subscription;
    struct json *all = NULL;
    struct str key, text;
    for (size_t at = 0; s && subscription_next(s, &at, &key, &text);) {
        const struct json *value = json_parse_quick(a, text);
        if (!value)
            continue;
        if (!all)
            all = json_new(a, json_object());
        (void) json_append_member(a, all, arena_str(a, key), *value);
    }
    /* The copy is a hash table: by key is the order of every message. */
    if (all)
        json_sort_members(all);
    return all;
}

static const char *persist_directory(const struct report *r, struct arena *a)
{
    struct str path = str_of(node_path(a, r->node, NODE_PERSIST, STR("")));
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return arena_strz(a, path);
}

void report_view_init(struct report *r, struct arena *a, struct report_view *v)
{
    *v = (struct report_view){
        .ground = {.device = arena_str(a, str_of(r->device)),
                   .machine = r->node->machine,
                   .facts = *zedagent_facts(r->zedagent),
                   .items = zedagent_items(r->zedagent),
                   .persist_directory = persist_directory(r, a),
                   .has_root_hash = r->has_root_hash,
                   .is_remote_access_disabled = r->is_remote_access_disabled,
                   .flowlog = {r->flow_counts.delivered, r->flow_counts.dropped,
                               r->flow_counts.failed}},
        .world = {.arena = a,
                  .now_us = r->node->clock->wall_us(r->node->clock),
                  .load = load,
                  .arg = r},
    };
    memcpy(v->ground.root_hash, r->root_hash, sizeof(r->root_hash));
    v->world.ground = &v->ground;
}
