/* SPDX-License-Identifier: Apache-2.0 */
/* ZedAgentStatus and what it is made of: device state, maintenance mode. */
#include "base/log.h"
#include "zedagent/gotype.h"
#include "zedagent/zedagent_internal.h"

enum { REASON_USER = 1, MAX_REASON = 31 };
enum { BOOT_REASON_REBOOT = 2, BOOT_REASON_POWEROFF = 14 };

static bool is_commanded(const struct zedagent *z, enum command_kind kind)
{
    return z->commands[kind].is_commanded;
}

static enum zedagent_device_state state_of(const struct zedagent *z)
{
    const struct neighbours *n = &z->neighbours;
    if (is_commanded(z, COMMAND_POWEROFF) || n->is_powering_off)
        return n->are_domains_halted ? ZEDAGENT_POWERING_OFF : ZEDAGENT_PREPARING_POWEROFF;
    if (is_commanded(z, COMMAND_REBOOT) || n->is_rebooting)
        return ZEDAGENT_REBOOTING;
    if (is_commanded(z, COMMAND_SHUTDOWN) || n->is_shutting_down)
        return n->are_domains_halted ? ZEDAGENT_PREPARED_POWEROFF : ZEDAGENT_PREPARING_POWEROFF;
    if (z->facts.is_maintenance)
        return ZEDAGENT_MAINTENANCE;
    if (n->is_testing_update)
        return ZEDAGENT_UPDATING;
    return z->facts.is_configured ? ZEDAGENT_ONLINE : ZEDAGENT_BOOTING;
}

static struct json *reasons_value(struct arena *a, unsigned reasons)
{
    struct json *list = NULL;
    for (unsigned i = 1; i <= MAX_REASON; i++) {
        if (!(reasons & 1u << i))
            continue;
        list = list ? list : json_new(a, json_array());
        json_push(a, list, json_int(i));
    }
    return list;
}

static struct json *silence_value(struct arena *a, const struct local_radio *r)
{
    struct gotype g = gotype_new(a);
    gotype_bool(&g, "Imposed", r->is_silent);
    gotype_bool(&g, "ChangeInProgress", r->is_changing);
    gotype_time(&g, "ChangeRequestedAt", r->requested_us);
    gotype_text(&g, "ConfigError", STR(""));
    return g.object;
}

static struct str requested_reason(const struct zedagent *z)
{
    if (is_commanded(z, COMMAND_POWEROFF))
        return STR("NORMAL: local profile server power off");
    if (!is_commanded(z, COMMAND_REBOOT))
        return STR("");
    return z->commands[COMMAND_REBOOT].is_local ? STR("NORMAL: local profile graceful reboot")
                                                : STR("NORMAL: controller reboot");
}

static struct json *status_value(struct arena *a, const struct zedagent *z)
{
    struct gotype g = gotype_new(a);
    const bool reboots = is_commanded(z, COMMAND_REBOOT);
    const bool powers_off = is_commanded(z, COMMAND_POWEROFF);
    gotype_text(&g, "Name", STR("zedagent"));
    gotype_int(&g, "ConfigGetStatus", z->facts.config_status);
    gotype_bool(&g, "RebootCmd", reboots);
    gotype_bool(&g, "ShutdownCmd", is_commanded(z, COMMAND_SHUTDOWN));
    gotype_bool(&g, "PoweroffCmd", powers_off);
    gotype_text(&g, "RequestedRebootReason", requested_reason(z));
    gotype_int(&g, "RequestedBootReason",
               powers_off ? BOOT_REASON_POWEROFF
               : reboots  ? BOOT_REASON_REBOOT
                          : 0);
    gotype_bool(&g, "MaintenanceMode", z->facts.is_maintenance);
    gotype_value(&g, "MaintenanceModeReasons", reasons_value(a, z->facts.maintenance_reasons));
    gotype_bool(&g, "EdgeNodeCertsRefused", z->are_certs_refused);
    gotype_int(&g, "ForceFallbackCounter", z->fallback_counter);
    gotype_text(&g, "CurrentProfile", z->facts.local_profile);
    gotype_value(&g, "RadioSilence", silence_value(a, &z->local.radio));
    gotype_int(&g, "DeviceState", z->facts.device_state);
    gotype_int(&g, "AttestState", z->attest_state);
    gotype_text(&g, "AttestError", z->attest_error);
    gotype_int(&g, "VaultStatus", 0);
    gotype_int(&g, "PCRStatus", 0);
    gotype_text(&g, "VaultErr", STR(""));
    gotype_bool(&g, "AirgapMode", items_tristate(z->items, "airgap.mode") == ITEMS_ENABLED);
    gotype_text(&g, "LOCUrl", z->loc_url);
    return g.object;
}

void status_update(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    unsigned char hash[SHA256_BYTES];
    struct json *value;
    z->facts.device_state = state_of(z);
    z->facts.local_profile = local_current_profile(z);
    z->facts.is_rebooting = is_commanded(z, COMMAND_REBOOT) || is_commanded(z, COMMAND_SHUTDOWN) ||
                            is_commanded(z, COMMAND_POWEROFF) || z->neighbours.is_rebooting ||
                            z->neighbours.is_shutting_down || z->neighbours.is_powering_off;
    value = status_value(a, z);
    json_write(&text, value);
    pki_sha256(buf_str(&text), hash);
    if (memcmp(hash, z->status_hash, sizeof(hash)) == 0)
        return;
    memcpy(z->status_hash, hash, sizeof(hash));
    const int r = publication_publish(z->topics.status, STR("zedagent"), value);
    if (r < 0)
        log_error("ZedAgentStatus is not published, ignoring", LOG_ERRNO(r));
    zedagent_emit(z, ZEDAGENT_FACTS);
}

/* An item that is set overrides what everybody else says. */
void status_merge_maintenance(struct zedagent *z)
{
    const bool before = z->facts.is_maintenance;
    const enum items_tristate item = items_tristate(z->items, "maintenance.mode");
    const bool is_user = item == ITEMS_ENABLED || (item == ITEMS_NONE && z->has_api_maintenance);
    const bool is_local = item == ITEMS_NONE && z->neighbours.is_maintenance;
    z->facts.is_maintenance = is_user || is_local;
    z->facts.maintenance_reasons = is_user    ? 1u << REASON_USER
                                   : is_local ? z->neighbours.maintenance_reasons
                                              : 0;
    if (before != z->facts.is_maintenance)
        log_info("maintenance mode", LOG_INT("is_on", z->facts.is_maintenance),
                 LOG_INT("reasons", z->facts.maintenance_reasons));
    status_update(z);
    /* What was passed over meanwhile is only in the whole configuration. */
    if (before && !z->facts.is_maintenance) {
        cycle_forget(z);
        cycle_hurry(z);
    }
}
