/* SPDX-License-Identifier: Apache-2.0 */
/* What decisions need of an AppInstanceConfig. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/base64.h"

struct application *application_find(const struct apps *a, struct str id)
{
    LIST_FOR_EACH (&a->applications, item) {
        struct application *p = CONTAINER_OF(item, struct application, link);
        if (str_is(id, p->id))
            return p;
    }
    return NULL;
}

static void replace(char **at, struct str s)
{
    mem_free(*at);
    *at = str_dup(s);
}

struct application *application_new(struct apps *a, struct str id)
{
    struct application *p = NEW(struct application);
    p->apps = a;
    p->id = str_dup(id);
    p->exit_code = RUNTIME_EXIT_UNKNOWN;
    list_append(&a->applications, &p->link);
    return p;
}

static void free_volumes(struct application *p)
{
    for (size_t i = 0; i < p->n_volumes; i++) {
        mem_free(p->volumes[i].key);
        mem_free(p->volumes[i].mount);
    }
    mem_free(TAKE(p->volumes));
    p->n_volumes = 0;
}

static void free_adapters(struct application *p)
{
    for (size_t i = 0; i < p->n_adapters; i++)
        mem_free(p->adapters[i].network);
    mem_free(TAKE(p->adapters));
    p->n_adapters = 0;
}

void application_free(struct application *p)
{
    list_remove(&p->link);
    free_volumes(p);
    free_adapters(p);
    trouble_done(&p->trouble);
    trouble_done(&p->network_trouble);
    trouble_done(&p->staged);
    mem_free(p->id);
    mem_free(p->name);
    mem_free(p->version);
    mem_free(p->taken_version);
    mem_free(p);
}

static void read_volumes(struct application *p, struct arena *arena, const struct json *list)
{
    free_volumes(p);
    p->volumes = mem_zalloc(MIN(json_count(list), APPS_MAX_VOLUMES) * sizeof(*p->volumes) + 1);
    uint64_t h = APPS_HASH;
    JSON_FOR_EACH_ITEM (list, item) {
        struct str mount = json_get_str(item, STR("MountDir"));
        struct str key = volume_key(arena, item);
        h = apps_hash(apps_hash(h, key), mount);
        if (p->n_volumes == APPS_MAX_VOLUMES)
            continue;
        p->volumes[p->n_volumes++] = (struct volume_ref){str_dup(key), str_dup(mount)};
    }
    p->volumes_hash = h & INT64_MAX;
}

/* Go writes a hardware address as base64 of its bytes; people write it with colons. */
static bool read_mac(struct arena *arena, struct str text, unsigned char out[6])
{
    unsigned b[6];
    struct str bytes;
    char end;
    if (text.n == 17 && sscanf(arena_strz(arena, text), "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1],
                               &b[2], &b[3], &b[4], &b[5], &end) == 6) {
        for (int i = 0; i < 6; i++)
            out[i] = (unsigned char) b[i];
        return true;
    }
    if (base64_decode(arena, text, BASE64_STANDARD, &bytes, NULL) < 0 || bytes.n != 6)
        return false;
    memcpy(out, bytes.p, 6);
    return true;
}

/* Of the application's own: locally administered, the same on every start. */
static void make_mac(const struct application *p, size_t index, unsigned char out[6])
{
    uint64_t h = apps_hash_int(apps_hash(APPS_HASH, str_of(p->id)), index);
    const unsigned char mac[6] = {0x02,
                                  0x16,
                                  0x3e,
                                  (unsigned char) (h >> 8),
                                  (unsigned char) (h >> 16),
                                  (unsigned char) (h >> 24)};
    memcpy(out, mac, sizeof(mac));
}

static uint32_t read_address(struct arena *arena, struct str text)
{
    struct in_addr in;
    return text.n && inet_pton(AF_INET, arena_strz(arena, text), &in) == 1 ? ntohl(in.s_addr) : 0;
}

void application_read_adapters(struct application *p, struct arena *arena,
                               const struct json *config)
{
    const struct json *list = json_get(config, STR("AppNetAdapterList"));
    struct adapter before[APPS_MAX_ADAPTERS];
    size_t n_before = p->n_adapters;
    for (size_t i = 0; i < n_before; i++) {
        before[i] = p->adapters[i];
        before[i].network = arena_strz(arena, str_of(p->adapters[i].network));
    }
    free_adapters(p);
    p->adapters = mem_zalloc(MIN(json_count(list), APPS_MAX_ADAPTERS) * sizeof(*p->adapters) + 1);
    JSON_FOR_EACH_ITEM (list, item) {
        if (p->n_adapters == APPS_MAX_ADAPTERS)
            break;
        struct adapter *d = &p->adapters[p->n_adapters];
        d->network = str_dup(json_get_str(item, STR("Network")));
        d->fixed = d->address = read_address(arena, json_get_str(item, STR("AppIPAddr")));
        if (!read_mac(arena, json_get_str(item, STR("AppMacAddr")), d->mac))
            make_mac(p, p->n_adapters, d->mac);
        if (!d->fixed && p->n_adapters < n_before &&
            strcmp(before[p->n_adapters].network, d->network) == 0)
            d->address = before[p->n_adapters].address;
        p->n_adapters++;
    }
}

static uint32_t counter(const struct json *config, const char *name, const char *local)
{
    int64_t sum = json_get_int(json_get(config, str_of(name)), STR("Counter"), 0) +
                  json_get_int(json_get(config, str_of(local)), STR("Counter"), 0);
    return (uint32_t) sum;
}

static void read_errors(struct application *p, struct arena *arena, const struct json *config)
{
    const struct json *errors = json_get(config, STR("Errors"));
    struct str all = STR_NONE;
    JSON_FOR_EACH_ITEM (errors, item)
        all = arena_printf(arena, "%.*s%s%.*s", STR_ARG(all), all.n ? "; " : "",
                           STR_ARG(json_str(item)));
    if (p->has_config_errors || all.n)
        trouble_set(&p->trouble, p->apps, all);
    p->has_config_errors = all.n > 0;
}

void application_set_activity(struct application *p, const struct json *config)
{
    const struct json *profiles = json_get(config, STR("ProfileList"));
    const char *profile = p->apps->profile ? p->apps->profile : "";
    bool is_in_profile = !*profile || json_count(profiles) == 0;
    JSON_FOR_EACH_ITEM (profiles, item)
        is_in_profile |= str_is(json_str(item), profile);
    p->wants_active = json_get_bool(config, STR("Activate"), false) && is_in_profile;
}

/* The rules of all its interfaces, which may change while it runs. */
static uint64_t hash_rules(struct arena *arena, const struct json *config)
{
    uint64_t h = APPS_HASH;
    JSON_FOR_EACH_ITEM (json_get(config, STR("AppNetAdapterList")), item) {
        const struct json *acls = json_get(item, STR("ACLs"));
        if (acls)
            h = apps_hash(h, json_text(arena, acls));
    }
    return h;
}

/* Another order to boot in that was given nearby needs no restart at once. */
static uint64_t hash_resources(struct arena *arena, const struct json *config)
{
    const struct json *resources = json_get(config, STR("FixedResources"));
    const struct json *order = json_get(config, STR("ControllerBootOrder"));
    if (!resources)
        return 0;
    struct json as_controlled = json_clone(arena, resources);
    if (order && json_get(resources, STR("BootOrder")))
        (void) json_set(arena, &as_controlled, STR("BootOrder"), *order);
    return apps_hash(APPS_HASH, json_text(arena, &as_controlled)) & INT64_MAX;
}

static void configure(struct application *p, const struct json *config)
{
    ARENA_AUTO arena = arena_new();
    const struct json *identity = json_get(config, STR("UUIDandVersion"));
    bool is_first = !p->version;
    replace(&p->version, json_get_str(identity, STR("Version")));
    replace(&p->name, json_get_str(config, STR("DisplayName")));
    p->is_configured = true;
    p->hides_logs = json_get_bool(config, STR("DisableLogs"), false);
    p->restart = counter(config, "RestartCmd", "LocalRestartCmd");
    p->purge = counter(config, "PurgeCmd", "LocalPurgeCmd");
    p->delay_s = json_get_int(config, STR("Delay"), 0) / 1000000000;
    p->resources_hash = hash_resources(arena, config);
    p->network_asked = hash_rules(arena, config);
    p->published = 0;
    read_volumes(p, arena, json_get(config, STR("VolumeRefConfigList")));
    read_errors(p, arena, config);
    application_set_activity(p, config);
    /* Those of one that has its interfaces stay until they are made anew. */
    if (p->network == CLOSED)
        application_read_adapters(p, arena, config);
    if (is_first)
        record_load(p);
    if (!p->apps->delay_base_us)
        p->apps->delay_base_us = apps_now_us(p->apps);
}

void application_configure(struct apps *a, struct str id, const struct json *config)
{
    struct application *p = application_find(a, id);
    if (!config) {
        if (p) {
            p->is_configured = false;
            p->published = 0;
        }
        return;
    }
    configure(p ? p : application_new(a, id), config);
}
