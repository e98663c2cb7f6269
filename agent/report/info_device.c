/* SPDX-License-Identifier: Apache-2.0 */
/* The device itself. */
#include "eve/config_items.h"
#include "report/info.h"

#define MAX_DISKS 256
#define MAX_VAULTS 16
#define MAX_CERTS 64
#define MAX_POOLS 32

/* Where EVE's own services run, all that the API has; without them, what this agent does itself. */
#define CAPABILITY_OF_EVE EVE__INFO__APICAPABILITY__API_CAPABILITY_APP_INSTANCE_NET_INTERFACE_CHANGE
#define CAPABILITY_ALONE EVE__INFO__APICAPABILITY__API_CAPABILITY_START_DELAY_IN_SECONDS

static void set_machine(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct machine_identity *id = world_identity(w);
    const struct json *host = world_only(w, REPORT_HOST_MEMORY);
    Eve__Info__ZInfoManufacturer *m =
        MAKE(w, Eve__Info__ZInfoManufacturer, eve__info__zinfo_manufacturer);
    d->machinearch = make_text(w, id->architecture);
    d->cpuarch = d->machinearch;
    d->platform = make_text(w, id->platform);
    d->ncpu = NUMBER(host, "Ncpus") ? (uint32_t) NUMBER(host, "Ncpus") : id->n_cpus;
    d->memory = NUMBER(host, "TotalMemoryMB") ? NUMBER(host, "TotalMemoryMB")
                                              : make_mebibytes(id->memory_bytes);
    d->minfo = m;
    m->manufacturer = make_text(w, id->manufacturer);
    m->productname = make_text(w, id->product);
    m->version = make_text(w, id->version);
    m->serialnumber = make_text(w, id->serial);
    m->uuid = make_text(w, id->uuid);
    m->compatible = make_text(w, id->compatible);
    m->biosvendor = make_text(w, id->bios_vendor);
    m->biosversion = make_text(w, id->bios_version);
    m->biosreleasedate = make_text(w, id->bios_release_date);
    d->hostname = make_text(w, id->hostname);
    d->boottime = make_time(w, id->booted_wall_us);
    d->hardware_watchdog_present = id->has_watchdog;
    d->hsmstatus = id->has_tpm ? EVE__INFO__HW_SECURITY_MODULE_STATUS__ENABLED
                               : EVE__INFO__HW_SECURITY_MODULE_STATUS__NOTFOUND;
}

/* ---- storage -------------------------------------------------------------------------------- */

static void add_storage(struct world *w, Eve__Info__ZInfoDevice *d, struct str path, bool is_mount,
                        uint64_t total_bytes)
{
    Eve__Info__ZInfoStorage *s = MAKE(w, Eve__Info__ZInfoStorage, eve__info__zinfo_storage);
    if (is_mount)
        s->mountpath = make_text(w, path);
    else
        s->device = make_text(w, path);
    s->total = make_mebibytes(total_bytes);
    s->storagelocation = str_is(path, "/persist") || str_is(path, w->ground->persist_directory);
    if (s->storagelocation && !d->storage)
        d->storage = s->total;
    PUSH(w, d, storagelist, s);
}

static void add_pool(struct world *w, Eve__Info__ZInfoDevice *d, const struct json *status)
{
    Eve__Info__StorageInfo *s = MAKE(w, Eve__Info__StorageInfo, eve__info__storage_info);
    s->storage_type = EVE__INFO__STORAGE_TYPE_INFO__STORAGE_TYPE_INFO_ZFS;
    s->pool_name = TEXT(w, status, "PoolName");
    s->zfs_version = TEXT(w, status, "ZfsVersion");
    s->current_raid = (Eve__Info__StorageRaidType) NUMBER(status, "CurrentRaid");
    s->compression_ratio = make_double(status, STR("CompressionRatio"));
    s->zpool_size = NUMBER(status, "ZpoolSize");
    s->count_zvols = (uint32_t) NUMBER(status, "CountZvols");
    s->storage_state = (Eve__Info__StorageStatus) NUMBER(status, "StorageState");
    s->collector_errors = TEXT(w, status, "CollectorErrors");
    s->pool_status_msg = TEXT(w, status, "PoolStatusMsgStr");
    PUSH(w, d, storage_info, s);
}

static void set_storage(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct machine_load *load = world_load(w);
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_DISK_METRIC), m)
        if (d->n_storagelist < MAX_DISKS)
            add_storage(w, d, json_get_str(&m->value, STR("DiskPath")), FLAG(&m->value, "IsDir"),
                        NUMBER(&m->value, "TotalBytes"));
    for (size_t i = 0; !d->n_storagelist && i < load->n_mounts; i++)
        add_storage(w, d, load->mounts[i].path, /* is_mount= */ true, load->mounts[i].total_bytes);
    /* The first is where the node's own directories are. */
    if (!d->storage && load->n_mounts)
        d->storage = make_mebibytes(load->mounts[0].total_bytes);
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_POOL), m)
        if (d->n_storage_info < MAX_POOLS)
            add_pool(w, d, &m->value);
    if (d->n_storage_info || !load->n_mounts)
        return;
    Eve__Info__StorageInfo *s = MAKE(w, Eve__Info__StorageInfo, eve__info__storage_info);
    s->storage_type = EVE__INFO__STORAGE_TYPE_INFO__STORAGE_TYPE_INFO_EXT4;
    s->pool_name = make_text(w, load->mounts[0].path);
    s->storage_state = EVE__INFO__STORAGE_STATUS__STORAGE_STATUS_ONLINE;
    PUSH(w, d, storage_info, s);
}

/* ---- security ------------------------------------------------------------------------------- */

static void add_vault(struct world *w, Eve__Info__DataSecAtRest *s, const struct json *status)
{
    Eve__Info__VaultInfo *v = MAKE(w, Eve__Info__VaultInfo, eve__info__vault_info);
    v->name = TEXT(w, status, "Name");
    v->status = (Eve__Info__DataSecAtRestStatus) NUMBER(status, "Status");
    v->pcrstatus = (Eve__Info__PCRStatus) NUMBER(status, "PCRStatus");
    v->vaulterr = make_error(w, status);
    PUSH(w, s, vaultlist, v);
}

static Eve__Info__DataSecAtRest *make_vaults(struct world *w)
{
    Eve__Info__DataSecAtRest *s = MAKE(w, Eve__Info__DataSecAtRest, eve__info__data_sec_at_rest);
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_VAULT), m)
        if (s->n_vaultlist < MAX_VAULTS)
            add_vault(w, s, &m->value);
    if (s->n_vaultlist) {
        s->status = s->vaultlist[0]->status;
        return s;
    }
    s->status = EVE__INFO__DATA_SEC_AT_REST_STATUS__DATASEC_AT_REST_DISABLED;
    s->info = make_text(w, STR("there is no vault"));
    return s;
}

static void set_security(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct report_ground *g = w->ground;
    const struct json *agent = world_only(w, REPORT_ZEDAGENT);
    d->datasecatrestinfo = make_vaults(w);
    if (g->has_root_hash) {
        d->sec_info = MAKE(w, Eve__Info__SecurityInfo, eve__info__security_info);
        d->sec_info->sha_root_ca = pb_data(
            arena_str(w->arena, str_range((const char *) g->root_hash, sizeof(g->root_hash))));
    }
    d->attestation_info = MAKE(w, Eve__Info__AttestationInfo, eve__info__attestation_info);
    d->attestation_info->state = (Eve__Info__AttestationState) NUMBER(agent, "AttestState");
    d->attestation_info->error = make_error_text(w, json_get_str(agent, STR("AttestError")));
    d->remote_access_disabled = g->is_remote_access_disabled;
}

static void add_cert(struct world *w, Eve__Info__ZInfoDevice *d, const struct json *status)
{
    Eve__Info__CertInfo *c = MAKE(w, Eve__Info__CertInfo, eve__info__cert_info);
    c->cert_enrollment_profile_name = TEXT(w, status, "CertEnrollmentProfileName");
    c->issue_timestamp = TIME(w, status, "IssueTimestamp");
    c->expiration_timestamp = TIME(w, status, "ExpirationTimestamp");
    c->sha256_fingerprint = TEXT(w, status, "SHA256Fingerprint");
    c->status = (Eve__Info__CertStatus) NUMBER(status, "CertStatus");
    c->err = make_error(w, status);
    PUSH(w, d, enrolled_certs, c);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static void set_dns(struct world *w, Eve__Info__ZInfoDevice *d)
{
    size_t n;
    const struct machine_interface *list = world_interfaces(w, &n);
    d->dns = MAKE(w, Eve__Info__ZInfoDNS, eve__info__zinfo_dns);
    for (size_t i = 0; i < n && !d->dns->n_dnsservers; i++) {
        for (size_t s = 0; s < list[i].n_dns_servers; s++)
            PUSH(w, d->dns, dnsservers, make_text(w, list[i].dns_servers[s]));
        if (list[i].n_dns_servers && list[i].domain.n)
            PUSH(w, d->dns, dnssearch, make_text(w, list[i].domain));
    }
}

static void set_boot(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct json *node = world_only(w, REPORT_NODEAGENT);
    d->lastrebootreason = TEXT(w, node, "RebootReason");
    d->lastrebootstack = TEXT(w, node, "RebootStack");
    d->lastreboottime = TIME(w, node, "RebootTime");
    d->last_boot_reason = (Eve__Info__BootReason) NUMBER(node, "BootReason");
    d->restartcounter = (uint32_t) NUMBER(node, "RestartCounter");
}

static void set_facts(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct zedagent_facts *f = &w->ground->facts;
    d->state = (Eve__Info__ZDeviceState) f->device_state;
    d->rebootconfigcounter = f->reboot_counter;
    d->shutdown_config_counter = f->shutdown_counter;
    d->reboot_inprogress = f->is_rebooting;
    d->maintenance_mode = f->is_maintenance;
    for (unsigned i = 1; i < 32; i++)
        if (f->maintenance_reasons & (1u << i))
            PUSH(w, d, maintenance_mode_reasons, (Eve__Info__MaintenanceModeReason) i);
    d->local_profile = make_text(w, f->local_profile);
    d->device_name = make_text(w, f->device_name);
    d->enterprise_name = make_text(w, f->enterprise_name);
    d->enterprise_id = make_text(w, f->enterprise_id);
    d->project_name = make_text(w, f->project_name);
    d->project_id = make_text(w, f->project_id);
}

static bool is_known(struct str name)
{
    struct str agent, setting;
    return config_item_find(name) || config_item_of_agent(name, &agent, &setting);
}

static void set_items(struct world *w, Eve__Info__ZInfoDevice *d)
{
    struct items_status *list = NULL;
    const size_t n = w->ground->items ? items_statuses(w->arena, w->ground->items, &list) : 0;
    Eve__Info__ZInfoConfigItemStatus *s =
        MAKE(w, Eve__Info__ZInfoConfigItemStatus, eve__info__zinfo_config_item_status);
    d->configitemstatus = s;
    for (size_t i = 0; i < n; i++) {
        Eve__Info__ZInfoConfigItem *item =
            MAKE(w, Eve__Info__ZInfoConfigItem, eve__info__zinfo_config_item);
        item->value = make_text(w, list[i].value);
        item->error = make_text(w, list[i].error);
        if (is_known(list[i].name)) {
            Eve__Info__ZInfoConfigItemStatus__ConfigItemsEntry *e =
                MAKE(w, Eve__Info__ZInfoConfigItemStatus__ConfigItemsEntry,
                     eve__info__zinfo_config_item_status__config_items_entry);
            e->key = make_text(w, list[i].name);
            e->value = item;
            PUSH(w, s, configitems, e);
        } else {
            Eve__Info__ZInfoConfigItemStatus__UnknownConfigItemsEntry *e =
                MAKE(w, Eve__Info__ZInfoConfigItemStatus__UnknownConfigItemsEntry,
                     eve__info__zinfo_config_item_status__unknown_config_items_entry);
            e->key = make_text(w, list[i].name);
            e->value = item;
            PUSH(w, s, unknownconfigitems, e);
        }
    }
}

/* What is on the device, whether or not the configuration still names it. */
static void set_apps(struct world *w, Eve__Info__ZInfoDevice *d)
{
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_APP), m) {
        Eve__Info__ZInfoAppInstance *a =
            MAKE(w, Eve__Info__ZInfoAppInstance, eve__info__zinfo_app_instance);
        a->uuid = make_text(w, json_str(&m->key));
        a->name = TEXT(w, &m->value, "DisplayName");
        a->domainname = TEXT(w, &m->value, "DomainName");
        PUSH(w, d, appinstances, a);
    }
}

static void set_capabilities(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct str hypervisor = world_identity(w)->hypervisor;
    const struct json *capabilities = world_only(w, REPORT_CAPABILITIES);
    const bool is_eve = !str_is(hypervisor, "none");
    if (capabilities) {
        d->capabilities = MAKE(w, Eve__Info__Capabilities, eve__info__capabilities);
        d->capabilities->hwassistedvirtualization = FLAG(capabilities, "HWAssistedVirtualization");
        d->capabilities->iovirtualization = FLAG(capabilities, "IOVirtualization");
    }
    d->api_capability = is_eve ? CAPABILITY_OF_EVE : CAPABILITY_ALONE;
    d->optional_capabilities =
        MAKE(w, Eve__Info__OptionalCapabilities, eve__info__optional_capabilities);
    d->optional_capabilities->hw_inventory_support = true;
    d->optional_capabilities->hv_type_kubevirt =
        str_is(hypervisor, "k") || str_is(hypervisor, "kubevirt");
    d->baseos_update_counter =
        (uint32_t) NUMBER(world_only(w, REPORT_BASE_OS_MANAGER), "CurrentRetryUpdateCounter");
}

Eve__Info__ZInfoDevice *info_device(struct world *w)
{
    Eve__Info__ZInfoDevice *d = MAKE(w, Eve__Info__ZInfoDevice, eve__info__zinfo_device);
    set_machine(w, d);
    set_storage(w, d);
    info_device_software(w, d);
    info_device_ports(w, d);
    info_device_adapters(w, d);
    set_dns(w, d);
    set_boot(w, d);
    set_facts(w, d);
    set_security(w, d);
    set_capabilities(w, d);
    set_items(w, d);
    set_apps(w, d);
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_CERTS), m)
        if (d->n_enrolled_certs < MAX_CERTS)
            add_cert(w, d, &m->value);
    return d;
}
