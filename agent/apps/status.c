/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of applications: zedmanager's AppInstanceStatus and its sum, what it passes on to
 * the network (AppNetworkConfig), zedrouter's AppNetworkStatus, domainmgr's DomainStatus. */
#include "apps/apps_internal.h"

enum sw_state sw_state_of(enum runtime_state s)
{
    static const enum sw_state of[] = {
        [RUNTIME_INVALID] = SW_INITIAL,
        [RUNTIME_INITIAL] = SW_INITIAL,
        [RUNTIME_DOWNLOAD_STARTED] = SW_DOWNLOADING,
        [RUNTIME_DOWNLOADED] = SW_DOWNLOADED,
        [RUNTIME_DELIVERED] = SW_LOADED,
        [RUNTIME_INSTALLED] = SW_INSTALLED,
        [RUNTIME_BOOTING] = SW_BOOTING,
        [RUNTIME_RUNNING] = SW_RUNNING,
        [RUNTIME_HALTING] = SW_HALTING,
        [RUNTIME_HALTED] = SW_HALTED,
        [RUNTIME_RESOLVING_TAG] = SW_RESOLVING_TAG,
        [RUNTIME_RESOLVED_TAG] = SW_RESOLVED_TAG,
        [RUNTIME_CREATING_VOLUME] = SW_CREATING_VOLUME,
        [RUNTIME_CREATED_VOLUME] = SW_CREATED_VOLUME,
        [RUNTIME_VERIFYING] = SW_VERIFYING,
        [RUNTIME_VERIFIED] = SW_VERIFIED,
        [RUNTIME_LOADING] = SW_LOADING,
    };
    return (size_t) s < N_ELEMENTS(of) && of[s] ? of[s] : SW_INITIAL;
}

/* ---- parts --------------------------------------------------------------------------------- */

static struct str domain_name(struct arena *arena, const struct application *p)
{
    return arena_printf(arena, "%s.%s.%d", p->id, p->taken_version ? p->taken_version : "0",
                        p->number);
}

static struct json volume_status(struct arena *arena, const struct application *p,
                                 const struct volume_ref *ref, const struct json *config)
{
    struct json o = json_object();
    const struct volume *v = volume_find(p->apps, str_of(ref->key));
    const struct json *of_volume = topics_get(arena, p->apps, IN_VOLUME, str_of(ref->key));
    put_copy(arena, &o, config, "VolumeID");
    put_copy(arena, &o, config, "GenerationCounter");
    put_copy(arena, &o, config, "LocalGenerationCounter");
    put_str(arena, &o, "AppUUID", str_of(p->id));
    put_int(arena, &o, "State", v ? volume_sw_state(p->apps, v) : SW_INITIAL);
    put_str(arena, &o, "ActiveFileLocation", volume_location(arena, p->apps, v));
    put_int(arena, &o, "ContentFormat", v ? volume_format(p->apps, v) : 0);
    put_copy(arena, &o, of_volume, "ReadOnly");
    put_copy(arena, &o, of_volume, "DisplayName");
    put_copy(arena, &o, of_volume, "MaxVolSize");
    put_str(arena, &o, "MountDir", str_of(ref->mount));
    put_trouble(arena, &o, v ? volume_trouble(p->apps, v) : NULL, "types.VolumeStatus");
    return o;
}

static struct json volume_list(struct arena *arena, const struct application *p,
                               const struct json *config)
{
    const struct json *refs = json_get(config, STR("VolumeRefConfigList"));
    struct json list = json_array();
    for (size_t i = 0; i < p->n_volumes && i < json_count(refs); i++)
        (void) json_push(arena, &list, volume_status(arena, p, &p->volumes[i], &refs->items[i]));
    return list;
}

static struct json adapter_list(struct arena *arena, const struct application *p,
                                const struct json *config)
{
    const struct json *given = json_get(config, STR("AppNetAdapterList"));
    struct json list = json_array();
    for (size_t i = 0; i < p->n_adapters; i++)
        (void) json_push(
            arena, &list,
            adapter_status(arena, p, i, i < json_count(given) ? &given->items[i] : NULL));
    return list;
}

/* ---- topics -------------------------------------------------------------------------------- */

static void publish_app(struct arena *arena, struct application *p, const struct json *config)
{
    struct json o = json_object();
    bool is_up = p->state == RUNTIME_RUNNING || p->state == RUNTIME_HALTING;
    put_uuid_and_version(arena, &o, str_of(p->id), str_of(p->taken_version));
    put_str(arena, &o, "DisplayName", str_of(p->name));
    put_str(arena, &o, "DomainName", application_lives(p) ? domain_name(arena, p) : STR(""));
    put_bool(arena, &o, "Activated", is_up);
    put_bool(arena, &o, "ActivateInprogress", p->wants_active && !is_up);
    put_bool(arena, &o, "EffectiveActivate", p->wants_active);
    put_copy(arena, &o, config, "FixedResources");
    put(arena, &o, "VolumeRefStatusList", volume_list(arena, p, config));
    put(arena, &o, "AppNetAdapters", adapter_list(arena, p, config));
    put_time(arena, &o, "BootTime", p->started_us);
    put_copy(arena, &o, config, "IoAdapterList");
    put_int(arena, &o, "RestartInprogress", p->restarting);
    put_time(arena, &o, "RestartStartedAt", p->restart_us);
    put_int(arena, &o, "PurgeInprogress", p->purging);
    put_time(arena, &o, "PurgeStartedAt", p->purge_us);
    put_int(arena, &o, "State", application_sw_state(p));
    put_bool(arena, &o, "MissingNetwork", application_sw_state(p) == SW_AWAIT_NETWORK_INSTANCE);
    put_bool(arena, &o, "MissingMemory", false);
    put_trouble(arena, &o, application_trouble(p), "types.DomainStatus");
    topics_publish(p->apps, OUT_APP, str_of(p->id), &o);
}

static void publish_network(struct arena *arena, struct application *p, const struct json *config)
{
    struct json o = json_object();
    put_uuid_and_version(arena, &o, str_of(p->id), str_of(p->taken_version));
    put_str(arena, &o, "DisplayName", str_of(p->name));
    put_int(arena, &o, "AppNum", p->number);
    put_bool(arena, &o, "Activated", p->network == OPEN);
    put_bool(arena, &o, "ConfigInSync", true);
    put(arena, &o, "AppNetAdapterList", adapter_list(arena, p, config));
    put_bool(arena, &o, "AwaitNetworkInstance",
             application_sw_state(p) == SW_AWAIT_NETWORK_INSTANCE);
    put_trouble(arena, &o, &p->network_trouble, NULL);
    topics_publish(p->apps, OUT_APP_NETWORK, str_of(p->id), &o);
}

static struct json cipher_of(struct arena *arena, const struct json *config)
{
    static const char *const members[] = {
        "CipherBlockID", "CipherContextID", "InitialValue", "pubsub-large-CipherData",
        "ClearTextHash", "IsCipher",        "CipherContext"};
    const struct json *nested = json_get(config, STR("CipherBlockStatus"));
    struct json o = json_object();
    if (json_is(nested, JSON_OBJECT))
        return *nested;
    for (size_t i = 0; i < N_ELEMENTS(members); i++)
        put_copy(arena, &o, config, members[i]);
    return o;
}

static void publish_network_config(struct arena *arena, struct application *p,
                                   const struct json *config)
{
    struct json o = json_object();
    put_uuid_and_version(arena, &o, str_of(p->id), str_of(p->taken_version));
    put_str(arena, &o, "DisplayName", str_of(p->name));
    put_bool(arena, &o, "Activate", p->wants_active);
    put_copy(arena, &o, config, "AppNetAdapterList");
    put_copy(arena, &o, config, "pubsub-large-CloudInitUserData");
    put(arena, &o, "CipherBlockStatus", cipher_of(arena, config));
    put_copy(arena, &o, config, "MetaDataType");
    put_copy(arena, &o, config, "DeploymentType");
    topics_publish(p->apps, OUT_APP_NETWORK_CONFIG, str_of(p->id), &o);
}

static struct json disk_list(struct arena *arena, const struct application *p)
{
    struct json list = json_array();
    for (size_t i = 0; i < p->n_volumes; i++) {
        const struct volume *v = volume_find(p->apps, str_of(p->volumes[i].key));
        const struct json *config =
            topics_get(arena, p->apps, IN_VOLUME, str_of(p->volumes[i].key));
        struct json o = json_object();
        put_str(arena, &o, "VolumeKey", str_of(p->volumes[i].key));
        put_str(arena, &o, "FileLocation", volume_location(arena, p->apps, v));
        put_copy(arena, &o, config, "ReadOnly");
        put_copy(arena, &o, config, "DisplayName");
        put_copy(arena, &o, config, "CustomMeta");
        put_int(arena, &o, "Format", v ? volume_format(p->apps, v) : 0);
        put_str(arena, &o, "MountDir", str_of(p->volumes[i].mount));
        put_str(arena, &o, "Devtype",
                v && v->target == TARGET_APP_CUSTOM ? STR("AppCustom") : STR("hdd"));
        (void) json_push(arena, &list, o);
    }
    return list;
}

static void publish_domain(struct arena *arena, struct application *p)
{
    struct json o = json_object();
    if (!p->was_started) {
        topics_unpublish(p->apps, OUT_DOMAIN, str_of(p->id));
        return;
    }
    put_uuid_and_version(arena, &o, str_of(p->id), str_of(p->taken_version));
    put_str(arena, &o, "DisplayName", str_of(p->name));
    put_int(arena, &o, "State", p->state ? sw_state_of(p->state) : SW_HALTED);
    put_bool(arena, &o, "Activated", p->state == RUNTIME_RUNNING);
    put_int(arena, &o, "AppNum", p->number);
    put_str(arena, &o, "DomainName", domain_name(arena, p));
    put_int(arena, &o, "DomainId", application_lives(p) ? p->number : 0);
    put_time(arena, &o, "BootTime", p->started_us);
    put(arena, &o, "DiskStatusList", disk_list(arena, p));
    put_bool(arena, &o, "DisableLogs", p->hides_logs);
    put_int(arena, &o, "TriedCount", p->trouble.n_times);
    put_bool(arena, &o, "BootFailed", p->trouble.text != NULL);
    put_trouble(arena, &o, &p->trouble, NULL);
    topics_publish(p->apps, OUT_DOMAIN, str_of(p->id), &o);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static uint64_t fingerprint(const struct application *p)
{
    const struct trouble *t = application_trouble(p);
    uint64_t h = apps_hash_int(APPS_HASH, application_sw_state(p));
    const uint64_t numbers[] = {p->state,
                                p->restarting,
                                p->purging,
                                p->wants_active,
                                (uint64_t) p->started_us,
                                p->network,
                                p->trouble.n_times,
                                (uint64_t) p->is_configured};
    for (size_t i = 0; i < N_ELEMENTS(numbers); i++)
        h = apps_hash_int(h, numbers[i]);
    for (size_t i = 0; i < p->n_volumes; i++) {
        const struct volume *v = volume_find(p->apps, str_of(p->volumes[i].key));
        h = apps_hash_int(h, v ? volume_sw_state(p->apps, v) : 0);
    }
    h = apps_hash(h, str_of(p->taken_version));
    return apps_hash(h, str_of(t ? t->text : NULL));
}

void status_publish_app(struct application *p)
{
    uint64_t now = fingerprint(p);
    if (p->published == now)
        return;
    ARENA_AUTO arena = arena_new();
    const struct json *config = topics_get(arena, p->apps, IN_APP, str_of(p->id));
    publish_app(arena, p, config);
    publish_network(arena, p, config);
    if (!p->apps->node->is_simulated) {
        publish_network_config(arena, p, config);
        publish_domain(arena, p);
    }
    p->published = now;
}

void status_unpublish_app(struct application *p)
{
    static const enum apps_out all[] = {OUT_APP, OUT_APP_NETWORK_CONFIG, OUT_APP_NETWORK,
                                        OUT_DOMAIN, OUT_DOMAIN_METRIC};
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        topics_unpublish(p->apps, all[i], str_of(p->id));
}

void status_publish_summary(struct apps *a)
{
    int starting = 0, running = 0, stopping = 0, wrong = 0;
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        if (!p->version)
            continue;
        enum sw_state s = application_sw_state(p);
        wrong += application_trouble(p) != NULL;
        running += s == SW_RUNNING;
        stopping += s == SW_HALTING;
        starting += p->wants_active && s != SW_RUNNING && s != SW_HALTING;
    }
    uint64_t now = apps_hash_int(APPS_HASH, (uint64_t) starting << 48 | (uint64_t) running << 32 |
                                                (uint64_t) stopping << 16 | (uint64_t) wrong);
    if (now == a->summary || (!a->summary && list_is_empty(&a->applications)))
        return;
    ARENA_AUTO arena = arena_new_with(512);
    struct json o = json_object();
    put_uuid_and_version(arena, &o, STR("00000000-0000-0000-0000-000000000000"), STR(""));
    put_int(arena, &o, "TotalStarting", starting);
    put_int(arena, &o, "TotalRunning", running);
    put_int(arena, &o, "TotalStopping", stopping);
    put_int(arena, &o, "TotalError", wrong);
    topics_publish(a, OUT_SUMMARY, STR("global"), &o);
    a->summary = now;
}
