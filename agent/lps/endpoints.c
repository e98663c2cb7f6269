/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/endpoints.h"

#include <errno.h>

#include "lps/messages.h"
#include "protobuf/message.h"
#include "report/report.h"
#include "zedagent/local.h"

#define HOUR_S 3600
#define RADIO_THROTTLED_S 300

/* ---- what is told --------------------------------------------------------------------------- */

static struct str make_radio(const struct endpoint_sides *s, struct world *w, struct str refusal)
{
    const Eve__Profile__RadioStatus *m = lps_radio_status(w, s->zedagent);
    (void) refusal;
    return m ? pb_pack(w->arena, &m->base) : STR_NONE;
}

static struct str make_apps(const struct endpoint_sides *s, struct world *w, struct str refusal)
{
    (void) refusal;
    return pb_pack(w->arena, &lps_app_info(w, s->zedagent)->base);
}

static struct str make_device(const struct endpoint_sides *s, struct world *w, struct str refusal)
{
    (void) refusal;
    return pb_pack(w->arena, &lps_device_info(w, s->zedagent)->base);
}

static struct str make_place(const struct endpoint_sides *s, struct world *w, struct str refusal)
{
    const Eve__Info__ZInfoLocation *m = lps_location(w);
    (void) s;
    (void) refusal;
    return m ? pb_pack(w->arena, &m->base) : STR_NONE;
}

static struct str make_network(const struct endpoint_sides *s, struct world *w, struct str refusal)
{
    const Eve__Profile__NetworkInfo *m = lps_network_info(w, s->zedagent, refusal);
    return m ? pb_pack(w->arena, &m->base) : STR_NONE;
}

static struct str make_boot(const struct endpoint_sides *s, struct world *w, struct str refusal)
{
    (void) refusal;
    return pb_pack(w->arena, &lps_boot_info(w, s->zedagent)->base);
}

/* ---- what is ordered ------------------------------------------------------------------------ */

static struct str take_profile(const struct endpoint_sides *s, struct arena *a, const void *order)
{
    const Eve__Profile__LocalProfile *p = order;
    (void) a;
    zedagent_take_profile(s->zedagent, pb_text(p->local_profile));
    return STR_NONE;
}

static struct str take_radio(const struct endpoint_sides *s, struct arena *a, const void *order)
{
    const Eve__Profile__RadioConfig *c = order;
    (void) a;
    zedagent_take_radio_silence(s->zedagent, c->radio_silence);
    return STR_NONE;
}

static struct str take_apps(const struct endpoint_sides *s, struct arena *a, const void *order)
{
    (void) a;
    zedagent_take_app_commands(s->zedagent, order);
    return STR_NONE;
}

static struct str take_device(const struct endpoint_sides *s, struct arena *a, const void *order)
{
    (void) a;
    zedagent_take_device_command(s->zedagent, order);
    return STR_NONE;
}

static struct str take_network(const struct endpoint_sides *s, struct arena *a, const void *order)
{
    struct report_view view;
    report_view_init(s->report, a, &view);
    return zedagent_take_network(s->zedagent, a, order,
                                 world_only(&view.world, REPORT_PORT_CONFIGS));
}

static void forget_network(const struct endpoint_sides *s)
{
    zedagent_forget_network(s->zedagent);
}

static struct str take_boot(const struct endpoint_sides *s, struct arena *a, const void *order)
{
    (void) a;
    zedagent_take_boot_orders(s->zedagent, order);
    return STR_NONE;
}

static void forget_boot(const struct endpoint_sides *s)
{
    const Eve__Profile__AppBootConfigList none = EVE__PROFILE__APP_BOOT_CONFIG_LIST__INIT;
    zedagent_take_boot_orders(s->zedagent, &none);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ORDER(type, name) &name##__descriptor, offsetof(type, server_token)

const struct endpoint lps_endpoints[ENDPOINTS] = {
    [ENDPOINT_PROFILE] = {"local_profile", "timer.lps.profile", HOUR_S, NULL,
                          ORDER(Eve__Profile__LocalProfile, eve__profile__local_profile),
                          take_profile, NULL},
    [ENDPOINT_RADIO] = {"radio", "timer.lps.radio", RADIO_THROTTLED_S, make_radio,
                        ORDER(Eve__Profile__RadioConfig, eve__profile__radio_config), take_radio,
                        NULL},
    [ENDPOINT_APPS] = {"appinfo", "timer.lps.appinfo", HOUR_S, make_apps,
                       ORDER(Eve__Profile__LocalAppCmdList, eve__profile__local_app_cmd_list),
                       take_apps, NULL},
    [ENDPOINT_DEVICE] = {"devinfo", "timer.lps.devinfo", HOUR_S, make_device,
                         ORDER(Eve__Profile__LocalDevCmd, eve__profile__local_dev_cmd), take_device,
                         NULL},
    [ENDPOINT_LOCATION] = {"location", "timer.location.app.interval", HOUR_S, make_place},
    [ENDPOINT_NETWORK] = {"network", "timer.lps.network", HOUR_S, make_network,
                          ORDER(Eve__Profile__LocalNetworkConfig,
                                eve__profile__local_network_config),
                          take_network, forget_network},
    [ENDPOINT_BOOT] = {"appbootinfo", "timer.lps.appbootinfo", HOUR_S, make_boot,
                       ORDER(Eve__Profile__AppBootConfigList, eve__profile__app_boot_config_list),
                       take_boot, forget_boot},
};

/* ---- an answer ------------------------------------------------------------------------------ */

/* Every order must carry the token that the controller named. */
static bool has_token(const struct endpoint *e, const struct endpoint_sides *s, const void *order)
{
    const char *token;
    memcpy(&token, (const char *) order + e->token_at, sizeof(token));
    return str_eq(pb_text(token), zedagent_local_server(s->zedagent).token);
}

static int take(const struct endpoint *e, const struct endpoint_sides *s, struct arena *a,
                const struct uplink_answer *answer, struct str *ret_refusal)
{
    if (!e->order)
        return 0;
    const void *order = uplink_type_is(answer->content_type, "application/x-proto-binary")
                            ? pb_unpack(a, e->order, answer->body)
                            : NULL;
    if (!order)
        return -EBADMSG;
    if (has_token(e, s, order)) {
        *ret_refusal = e->take(s, a, order);
        return 0;
    }
    /* Who orders nothing need not say who it is. */
    if (answer->body.n == 0)
        return 0;
    *ret_refusal = STR("invalid token submitted by LPS");
    return -EACCES;
}

int endpoint_answered(const struct endpoint *e, const struct endpoint_sides *s, struct arena *a,
                      const struct uplink_answer *answer, struct str *ret_refusal)
{
    *ret_refusal = STR_NONE;
    if (answer->error < 0 && answer->error != -EPROTO)
        return answer->error;
    switch (answer->http_status) {
    case 200:
    case 201:
        return take(e, s, a, answer, ret_refusal);
    case 204:
        return e->make ? 0 : -EPROTO; /* the one who only asks wants an answer */
    case 404:
        if (e->forget)
            e->forget(s);
        return -ENOENT;
    default:
        return -EPROTO;
    }
}
