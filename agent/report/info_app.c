/* SPDX-License-Identifier: Apache-2.0 */
/* An application: AppInstanceStatus, with what its network instances say of its interfaces. */
#include "report/info.h"

#define MAX_SNAPSHOTS 256

/* Named by the version of EVE. */
static const struct json *adapters_of(const struct json *status)
{
    const struct json *list = json_get(status, STR("AppNetAdapters"));
    return json_count(list) ? list : json_get(status, STR("UnderlayNetworks"));
}

static void add_addresses(struct world *w, Eve__Info__ZInfoNetwork *n, const struct json *list)
{
    JSON_FOR_EACH_ITEM (list, item) {
        struct str text =
            json_is(item, JSON_STRING) ? json_str(item) : json_get_str(item, STR("Address"));
        if (text.n)
            PUSH(w, n, ipaddrs, make_text(w, text));
    }
}

/* AssignedAddresses since 2025, before it Allocated... */
static void set_addresses(struct world *w, Eve__Info__ZInfoNetwork *n, const struct json *adapter)
{
    const struct json *assigned = json_get(adapter, STR("AssignedAddresses"));
    const struct str old = json_get_str(adapter, STR("AllocatedIPv4Addr"));
    add_addresses(w, n, json_get(assigned, STR("IPv4Addrs")));
    add_addresses(w, n, json_get(assigned, STR("IPv6Addrs")));
    if (!n->n_ipaddrs && old.n)
        PUSH(w, n, ipaddrs, make_text(w, old));
    if (!assigned)
        add_addresses(w, n, json_get(adapter, STR("AllocatedIPv6List")));
}

static void set_network_instance(struct world *w, Eve__Info__ZInfoNetwork *n, struct str network)
{
    const struct json *status = world_value(w, REPORT_NETWORK_INSTANCE, network);
    if (!status)
        return;
    const struct json *ntp = json_get(status, STR("NtpServers"));
    const struct str gateway = json_get_str(status, STR("Gateway"));
    n->n_ntp_servers = make_texts(w, ntp, NULL, &n->ntp_servers);
    if (gateway.n)
        PUSH(w, n, defaultrouters, make_text(w, gateway));
    n->dns = MAKE(w, Eve__Info__ZInfoDNS, eve__info__zinfo_dns);
    n->dns->n_dnsservers =
        make_texts(w, json_get(status, STR("DnsServers")), NULL, &n->dns->dnsservers);
    n->dns->dnsdomain = TEXT(w, status, "DomainName");
}

static void add_network(struct world *w, Eve__Info__ZInfoApp *app, const struct json *adapter)
{
    if (!json_get_str(adapter, STR("VifUsed")).n && !json_get_str(adapter, STR("Vif")).n)
        return; /* not made yet */
    Eve__Info__ZInfoNetwork *n = MAKE(w, Eve__Info__ZInfoNetwork, eve__info__zinfo_network);
    const struct str used = json_get_str(adapter, STR("VifUsed"));
    n->localname = used.n ? make_text(w, used) : TEXT(w, adapter, "Vif");
    n->devname = TEXT(w, adapter, "Name");
    n->macaddr = make_mac(w, json_get(adapter, STR("Mac")));
    n->ipv4_up = FLAG(adapter, "IPv4Assigned");
    n->ip_addr_mis_match = FLAG(adapter, "IPAddrMisMatch");
    n->networkerr = make_error_text(w, json_get_str(adapter, STR("Error")));
    set_addresses(w, n, adapter);
    set_network_instance(w, n, json_get_str(adapter, STR("Network")));
    PUSH(w, app, network, n);
}

static void add_adapter(struct world *w, Eve__Info__ZInfoApp *app, const struct json *adapter)
{
    Eve__Info__ZioBundle *b = MAKE(w, Eve__Info__ZioBundle, eve__info__zio_bundle);
    b->type = (Eve__Common__PhyIoType) NUMBER(adapter, "Type");
    b->name = TEXT(w, adapter, "Name");
    b->usedbyappuuid = app->appid;
    info_adapter_members(w, b, json_get_str(adapter, STR("Name")));
    PUSH(w, app, assignedadapters, b);
}

static void add_snapshot(struct world *w, Eve__Info__ZInfoApp *app, const struct json *snapshot)
{
    const struct json *what = json_get(snapshot, STR("Snapshot"));
    const struct json *version = json_get(snapshot, STR("ConfigVersion"));
    Eve__Info__ZInfoSnapshot *s = MAKE(w, Eve__Info__ZInfoSnapshot, eve__info__zinfo_snapshot);
    s->id = TEXT(w, what, "SnapshotID");
    s->type = (Eve__Info__SnapshotType) NUMBER(what, "SnapshotType");
    s->config_id = TEXT(w, version, "UUID");
    s->config_version = TEXT(w, version, "Version");
    s->create_time = TIME(w, snapshot, "TimeCreated");
    s->snap_err = make_error(w, json_get(snapshot, STR("Error")));
    PUSH(w, app, snapshots, s);
}

/* As it is, or as it was asked to be: a version that needs a restart is not the one that runs. */
static struct str version_of(const struct json *status)
{
    return json_str(json_at(status, "UUIDandVersion", "Version", NULL));
}

Eve__Info__ZInfoApp *info_app(struct world *w, struct str key, const struct json *status)
{
    Eve__Info__ZInfoApp *app = MAKE(w, Eve__Info__ZInfoApp, eve__info__zinfo_app);
    app->appid = make_text(w, key);
    if (!status)
        return app;
    app->appname = TEXT(w, status, "DisplayName");
    app->appversion = make_text(w, version_of(status));
    app->state = make_state((int64_t) NUMBER(status, "State"));
    app->boottime = TIME(w, status, "BootTime");
    app->cluster_app_running = !FLAG(status, "NoUploadStatsToController") &&
                               FLAG(status, "Activated") && FLAG(status, "ClusterAppRunning");
    Eve__Info__ErrorInfo *error = make_error(w, status);
    if (error)
        PUSH(w, app, apperr, error);
    JSON_FOR_EACH_ITEM (json_get(status, STR("IoAdapterList")), adapter)
        add_adapter(w, app, adapter);
    JSON_FOR_EACH_ITEM (adapters_of(status), adapter)
        add_network(w, app, adapter);
    JSON_FOR_EACH_ITEM (json_get(status, STR("VolumeRefStatusList")), volume)
        PUSH(w, app, volumerefs, TEXT(w, volume, "VolumeID"));
    JSON_FOR_EACH_ITEM (json_at(status, "SnapStatus", "AvailableSnapshots", NULL), snapshot)
        if (app->n_snapshots < MAX_SNAPSHOTS)
            add_snapshot(w, app, snapshot);
    return app;
}
