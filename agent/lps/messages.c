/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/messages.h"

#include "report/info.h"
#include "report/metrics.h"
#include "zedagent/local.h"

enum { WIRELESS_CELLULAR = 1 };

Eve__Profile__LocalAppInfoList *lps_app_info(struct world *w, const struct zedagent *z)
{
    Eve__Profile__LocalAppInfoList *list =
        MAKE(w, Eve__Profile__LocalAppInfoList, eve__profile__local_app_info_list);
    JSON_FOR_EACH_MEMBER (world_topic(w, REPORT_APP), m) {
        Eve__Profile__LocalAppInfo *app =
            MAKE(w, Eve__Profile__LocalAppInfo, eve__profile__local_app_info);
        if (list->n_apps_info == LPS_MAX_APPS)
            break;
        app->id = make_text(w, json_str(&m->key));
        app->version = TEXT(w, json_get(&m->value, STR("UUIDandVersion")), "Version");
        app->name = TEXT(w, &m->value, "DisplayName");
        app->err = make_error(w, &m->value);
        app->state = make_state((int64_t) NUMBER(&m->value, "State"));
        app->last_cmd_timestamp = zedagent_app_command_done(z, json_str(&m->key));
        PUSH(w, list, apps_info, app);
    }
    return list;
}

Eve__Profile__LocalDevInfo *lps_device_info(struct world *w, const struct zedagent *z)
{
    const struct zedagent_facts *f = &w->ground->facts;
    const struct machine_identity *id = world_identity(w);
    Eve__Profile__LocalDevInfo *d =
        MAKE(w, Eve__Profile__LocalDevInfo, eve__profile__local_dev_info);
    d->device_uuid = make_text(w, w->ground->device);
    d->state = (Eve__Info__ZDeviceState) f->device_state;
    for (unsigned i = 1; i < 32; i++)
        if (f->maintenance_reasons & 1u << i)
            PUSH(w, d, maintenance_mode_reasons, (Eve__Info__MaintenanceModeReason) i);
    d->boot_time = make_time(w, id->booted_wall_us);
    d->last_boot_reason =
        (Eve__Info__BootReason) NUMBER(world_only(w, REPORT_NODEAGENT), "BootReason");
    d->last_cmd_timestamp = zedagent_device_command_done(z);
    return d;
}

Eve__Profile__AppBootInfoList *lps_boot_info(struct world *w, const struct zedagent *z)
{
    Eve__Profile__AppBootInfoList *list =
        MAKE(w, Eve__Profile__AppBootInfoList, eve__profile__app_boot_info_list);
    size_t position = 0;
    struct str key, text;
    while (publication_next(zedagent_app_configs(z), &position, &key, &text) &&
           list->n_apps_boot_info < LPS_MAX_APPS) {
        const struct json *app = json_parse_quick(w->arena, text);
        Eve__Profile__AppBootInfo *b =
            MAKE(w, Eve__Profile__AppBootInfo, eve__profile__app_boot_info);
        b->id = make_text(w, key);
        b->displayname = TEXT(w, app, "DisplayName");
        b->boot_order =
            (Eve__Common__BootOrder) NUMBER(json_get(app, STR("FixedResources")), "BootOrder");
        b->source = (Eve__Profile__BootOrderSource) NUMBER(app, "BootOrderSource");
        PUSH(w, list, apps_boot_info, b);
    }
    return list;
}

/* ---- radios --------------------------------------------------------------------------------- */

static Eve__Profile__CellularStatus *make_modem(struct world *w, const struct json *port)
{
    const struct json *cellular = json_at(port, "WirelessStatus", "Cellular", NULL);
    Eve__Profile__CellularStatus *c =
        MAKE(w, Eve__Profile__CellularStatus, eve__profile__cellular_status);
    c->logicallabel = TEXT(w, port, "Logicallabel");
    c->module = info_cellular_module(w, cellular);
    JSON_FOR_EACH_ITEM (json_get(cellular, STR("SimCards")), card)
        PUSH(w, c, sim_cards, info_sim_card(w, card, c->module->name));
    JSON_FOR_EACH_ITEM (json_get(cellular, STR("VisibleProviders")), provider)
        PUSH(w, c, providers, info_provider(w, provider));
    c->config_error = TEXT(w, cellular, "ConfigError");
    c->probe_error = TEXT(w, cellular, "ProbeError");
    return c;
}

/* Whatever was asked of it: a modem that says so, or a radio with a link. */
static bool transmits(const struct json *port)
{
    const struct json *wireless = json_get(port, STR("WirelessStatus"));
    const struct str mode =
        json_get_str(json_at(wireless, "Cellular", "Module", NULL), STR("OpMode"));
    if (json_get_int(wireless, STR("WType"), 0) == 0)
        return false;
    if (mode.n)
        return str_is(mode, "online") || str_is(mode, "connected");
    return json_get_bool(port, STR("Up"), false);
}

static void add_ports(struct world *w, Eve__Profile__RadioStatus *s, const struct json *ports)
{
    JSON_FOR_EACH_ITEM (ports, port) {
        const struct json *wireless = json_get(port, STR("WirelessStatus"));
        if (NUMBER(wireless, "WType") == WIRELESS_CELLULAR && s->n_cellular_status < LPS_MAX_PORTS)
            PUSH(w, s, cellular_status, make_modem(w, port));
        if (!s->radio_silence || !transmits(port))
            continue;
        s->radio_silence = false;
        s->config_error =
            make_text(w, arena_printf(w->arena, "the radio of port %.*s is not silent",
                                      STR_ARG(json_get_str(port, STR("Logicallabel")))));
    }
}

Eve__Profile__RadioStatus *lps_radio_status(struct world *w, const struct zedagent *z)
{
    const struct local_radio asked = zedagent_radio(z);
    const struct json *network = world_only(w, REPORT_NETWORK);
    const struct json *silence = json_get(network, STR("RadioSilence"));
    Eve__Profile__RadioStatus *s;
    Eve__Metrics__DeviceMetric *metrics =
        MAKE(w, Eve__Metrics__DeviceMetric, eve__metrics__device_metric);
    if (json_get_bool(silence, STR("ChangeInProgress"), false) ||
        (asked.requested_us &&
         node_json_time_us(json_get(silence, STR("ChangeRequestedAt"))) != asked.requested_us))
        return NULL;
    s = MAKE(w, Eve__Profile__RadioStatus, eve__profile__radio_status);
    s->radio_silence = json_get_bool(silence, STR("Imposed"), false);
    s->config_error = TEXT(w, silence, "ConfigError");
    add_ports(w, s, json_get(network, STR("Ports")));
    metrics_cellular(w, metrics);
    s->cellular_metrics = metrics->cellular;
    s->n_cellular_metrics = metrics->n_cellular;
    return s;
}

Eve__Info__ZInfoLocation *lps_location(struct world *w)
{
    const struct json *all = world_topic(w, REPORT_WWAN_LOCATION);
    const struct info_subject subject = {
        .kind = KIND_LOCATION, .key = json_count(all) ? json_str(&all->members[0].key) : STR("")};
    Eve__Info__ZInfoMsg *message = json_count(all) ? info_make(w, &subject) : NULL;
    return message && message->info_content_case == EVE__INFO__ZINFO_MSG__INFO_CONTENT_LOCINFO
               ? message->locinfo
               : NULL;
}
