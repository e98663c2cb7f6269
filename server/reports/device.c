/* SPDX-License-Identifier: Apache-2.0 */
/* ZInfoDevice: what the machine is, where it is, what runs on it. */
#include "base/clock.h"
#include "protobuf/message.h"
#include "reports/derive.h"
#include "reports/words.h"

static void set_addresses(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    struct arena *a = d->arena;
    struct json list = json_array();
    /* The ways to the outside first. */
    for (int is_uplink = 1; is_uplink >= 0; is_uplink--)
        for (size_t i = 0; i < m->n_network && json_count(&list) < DERIVE_MAX_ADDRESSES; i++)
            if (!!m->network[i]->uplink == is_uplink)
                derive_addresses(a, &list, m->network[i]->ipaddrs, m->network[i]->n_ipaddrs);
    struct str host = words_name(a, m->hostname);
    if (host.n) {
        struct json item = json_object();
        (void) json_append_member(a, &item, STR("type"), json_string(STR("Hostname")));
        (void) json_append_member(a, &item, STR("address"), json_string(host));
        (void) json_push(a, &list, item);
    }
    if (json_count(&list))
        (void) json_set(a, d->status, STR("addresses"), list);
    else
        (void) json_remove(d->status, STR("addresses"));
}

static void set_amount(struct derivation *d, const char *key, struct str amount)
{
    struct json *capacity = json_ensure_object(d->arena, d->status, STR("capacity"));
    (void) json_set(d->arena, capacity, str_of(key), json_string(amount));
    /* Until the metrics tell what EVE itself needs, all of it counts. */
    struct json *allocatable = json_ensure_object(d->arena, d->status, STR("allocatable"));
    if (!json_get(allocatable, str_of(key)) || str_is(str_of(key), "cpu"))
        (void) json_set(d->arena, allocatable, str_of(key), json_string(amount));
}

static void set_capacity(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    if (m->ncpu)
        set_amount(d, "cpu", arena_printf(d->arena, "%u", m->ncpu));
    if (m->memory) /* both in MiB */
        set_amount(d, "memory", words_mebibytes(d->arena, m->memory));
    if (m->storage)
        set_amount(d, "ephemeral-storage", words_mebibytes(d->arena, m->storage));
}

/* As Kubernetes calls them. */
static struct str architecture(struct arena *a, const char *machine)
{
    static const struct {
        const char *machine, *name;
    } names[] = {{"x86_64", "amd64"},
                 {"aarch64", "arm64"},
                 {"armv7l", "arm"},
                 {"riscv64", "riscv64"},
                 {"i686", "386"}};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (str_is(pb_text(machine), names[i].machine))
            return str_of(names[i].name);
    return words_name(a, machine);
}

/* EVE's versions end with it: 13.4.0-kvm-amd64. */
static struct str hypervisor(const Eve__Info__ZInfoDevice *m, struct str version)
{
    if (m->optional_capabilities && m->optional_capabilities->hv_type_kubevirt)
        return STR("kubevirt");
    static const char *const names[] = {"kvm", "xen", "kubevirt"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (str_find_str(version, str_of(names[i])) >= 0)
            return str_of(names[i]);
    return STR_NONE;
}

static void set_node_info(struct derivation *d, const Eve__Info__ZInfoDevice *m, struct str version)
{
    struct arena *a = d->arena;
    struct json *info = json_ensure_object(a, d->status, STR("nodeInfo"));
    derive_text(a, info, "operatingSystem", STR("linux"));
    derive_text(a, info, "architecture", architecture(a, m->machinearch));
    if (version.n) {
        derive_text(a, info, "osImage", arena_printf(a, "EVE-OS %.*s", STR_ARG(version)));
        derive_text(a, info, "hypervisor", hypervisor(m, version));
    }
    if (!m->minfo)
        return;
    derive_text(a, info, "manufacturer", words_name(a, m->minfo->manufacturer));
    derive_text(a, info, "productName", words_name(a, m->minfo->productname));
    derive_text(a, info, "serialNumber", words_name(a, m->minfo->serialnumber));
    derive_text(a, info, "machineID", words_name(a, m->minfo->serialnumber));
    derive_text(a, info, "systemUUID", words_name(a, m->minfo->uuid));
    derive_text(a, info, "biosVersion", words_name(a, m->minfo->biosversion));
}

/* A boot is known by its time; a device without a clock at boot corrects that by a little. */
#define SAME_BOOT_US ((int64_t) 120 * 1000000)

static void note_boot(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    struct arena *a = d->arena;
    struct json *info = json_ensure_object(a, d->status, STR("nodeInfo"));
    int64_t boot_us = words_time(m->boottime), old_us = 0;
    struct str old = json_get_str(info, STR("bootID"));
    if (!boot_us)
        return;
    bool has_old = old.n && clock_parse(old, &old_us) == 0;
    if (has_old && boot_us - old_us < SAME_BOOT_US && old_us - boot_us < SAME_BOOT_US)
        return;
    derive_text(a, info, "bootID", words_stamp(a, boot_us));
    if (!has_old)
        return;
    struct str reason =
        words_enum(a, &eve__info__boot_reason__descriptor, (int) m->last_boot_reason);
    struct str words = words_clean(a, pb_text(m->lastrebootreason), WORDS_MAX_MESSAGE / 2);
    bool is_wanted = m->last_boot_reason == EVE__INFO__BOOT_REASON__BOOT_REASON_REBOOT_CMD ||
                     m->last_boot_reason == EVE__INFO__BOOT_REASON__BOOT_REASON_POWEROFF_CMD ||
                     m->last_boot_reason == EVE__INFO__BOOT_REASON__BOOT_REASON_UPDATE ||
                     m->last_boot_reason == EVE__INFO__BOOT_REASON__BOOT_REASON_FIRST;
    derive_event(d, !is_wanted, "Rebooted",
                 arena_printf(a, "%.*s%s%.*s; booted at %.*s", STR_ARG(reason), words.n ? ": " : "",
                              STR_ARG(words), STR_ARG(words_stamp(a, boot_us))));
}

static struct device_word word_of(const Eve__Info__ZInfoDevice *m)
{
    unsigned state = (unsigned) m->state;
    struct device_word w = {.state = (uint8_t) (state > UINT8_MAX ? 0 : state)};
    for (size_t i = 0; i < MIN(m->n_maintenance_mode_reasons, (size_t) 64); i++) {
        unsigned reason = (unsigned) m->maintenance_mode_reasons[i];
        if (reason > 0 && reason < 16)
            w.reasons |= (uint16_t) (1u << reason);
    }
    /* Devices before the states say it by the flag alone. */
    if (m->maintenance_mode)
        w.state = EVE__INFO__ZDEVICE_STATE__ZDEVICE_STATE_MAINTENANCE_MODE;
    return w;
}

struct device_word derive_device(struct derivation *d, const Eve__Info__ZInfoDevice *m)
{
    struct str version = m->n_swlist ? words_name(d->arena, m->swlist[0]->shortversion) : STR_NONE;
    set_addresses(d, m);
    set_capacity(d, m);
    set_node_info(d, m, version);
    note_boot(d, m);
    derive_base_os(d, m);
    derive_config_word(d, m);
    derive_ports(d, m);
    derive_health(d, m);
    return word_of(m);
}

void derive_app_counts(struct derivation *d, size_t n_running, size_t n_wanted)
{
    struct arena *a = d->arena;
    struct json *apps = json_ensure_object(a, d->status, STR("apps"));
    (void) json_set(a, apps, STR("running"), json_int((int64_t) n_running));
    (void) json_set(a, apps, STR("wanted"), json_int((int64_t) n_wanted));
    (void) json_set(a, apps, STR("summary"),
                    json_string(arena_printf(a, "%zu/%zu", n_running, n_wanted)));
}
