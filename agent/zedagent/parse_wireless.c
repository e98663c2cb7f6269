/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/parse_wireless.h"

#include "zedagent/parse_internal.h"

/* The words of the wwan service. */
static const char *const auth_protocols[] = {"", "pap", "chap", "pap-and-chap"};
static const char *const ip_types[] = {"", "ipv4", "ipv4v6", "ipv6"};
static const char *const technologies[] = {NULL, "gsm", "umts", "lte", "5gnr"};

static const char *word(const char *const *words, size_t n, int value)
{
    return value >= 0 && (size_t) value < n ? words[value] : NULL;
}
#define WORD(words, value) word((words), N_ELEMENTS(words), (int) (value))

static struct json *cellular_value(struct arena *a, struct json *points, bool is_probe_disabled,
                                   struct json *probe, bool tracks)
{
    struct gotype g = gotype_new(a), outer = gotype_new(a);
    gotype_bool(&outer, "Disable", is_probe_disabled);
    gotype_value(&outer, "UserDefinedProbe", probe);
    gotype_value(&g, "AccessPoints", points);
    gotype_value(&g, "Probe", outer.object);
    gotype_bool(&g, "LocationTracking", tracks);
    return g.object;
}

static struct json *wireless_value(struct arena *a, enum parse_wireless_type type,
                                   struct json *cellular, struct json *wifi)
{
    struct gotype g = gotype_new(a);
    gotype_int(&g, "WType", type);
    gotype_value(&g, "CellularV2",
                 cellular ? cellular : cellular_value(a, NULL, false, parse_no_probe(a), false));
    gotype_value(&g, "Wifi", wifi);
    gotype_value(&g, "Cellular", NULL);
    return g.object;
}

struct json *parse_wireless_of_type(struct arena *a, enum parse_wireless_type type)
{
    return wireless_value(a, type, NULL, NULL);
}

static struct str read_technologies(struct parse *p, const Eve__Config__CellularAccessPoint *c,
                                    struct json **ret)
{
    *ret = NULL;
    for (size_t i = 0; i < c->n_preferred_rats; i++) {
        const char *name = WORD(technologies, c->preferred_rats[i]);
        if (!name)
            return arena_printf(p->arena, "unrecognized RAT: %d", (int) c->preferred_rats[i]);
        *ret = *ret ? *ret : json_new(p->arena, json_array());
        json_push(p->arena, *ret, json_string(str_of(name)));
    }
    return STR_NONE;
}

static struct str access_point(struct parse *p, struct str key,
                               const Eve__Config__CellularAccessPoint *c, unsigned active_slot,
                               struct json **ret)
{
    struct gotype g = gotype_new(p->arena);
    struct json *rats;
    const char *auth = WORD(auth_protocols, c->auth_protocol);
    const char *attach_auth = WORD(auth_protocols, c->attach_auth_protocol);
    const char *ip = WORD(ip_types, c->ip_type), *attach_ip = WORD(ip_types, c->attach_ip_type);
    const struct str error = read_technologies(p, c, &rats);
    const bool has_secret = c->auth_protocol || c->attach_auth_protocol;
    if (error.n)
        return error;
    if (!auth || !attach_auth)
        return STR("unrecognized authentication protocol");
    if (!ip || !attach_ip)
        return STR("unrecognized IP type");
    gotype_int(&g, "SIMSlot", c->sim_slot & 0xFF);
    gotype_bool(&g, "Activated", active_slot == 0 || active_slot == c->sim_slot);
    gotype_text(&g, "APN", pb_text(c->apn));
    gotype_text(&g, "IPType", str_of(ip));
    gotype_text(&g, "AuthProtocol", str_of(auth));
    gotype_value(&g, "EncryptedCredentials",
                 has_secret ? parse_cipher_value(p, key, c->cipher_data)
                            : parse_cipher_value(p, STR(""), NULL));
    gotype_texts(&g, "PreferredPLMNs", c->preferred_plmns, c->n_preferred_plmns);
    gotype_value(&g, "PreferredRATs", rats);
    gotype_bool(&g, "ForbidRoaming", c->forbid_roaming);
    gotype_text(&g, "AttachAPN", pb_text(c->attach_apn));
    gotype_text(&g, "AttachIPType", str_of(attach_ip));
    gotype_text(&g, "AttachAuthProtocol", str_of(attach_auth));
    *ret = g.object;
    return STR_NONE;
}

static struct str read_access_points(struct parse *p, struct str key,
                                     const Eve__Config__CellularConfig *c, struct json *ret)
{
    Eve__Config__CellularAccessPoint legacy = EVE__CONFIG__CELLULAR_ACCESS_POINT__INIT;
    struct json *point;
    struct str error;
    for (size_t i = 0; i < c->n_access_points; i++) {
        error = access_point(p, key, c->access_points[i], c->activated_sim_slot, &point);
        if (error.n)
            return error;
        json_push(p->arena, ret, *point);
    }
    if (c->n_access_points || !pb_text(c->apn).n)
        return STR_NONE;
    legacy.apn = c->apn;
    error = access_point(p, key, &legacy, 0, &point);
    json_push(p->arena, ret, *point);
    return error;
}

/* What older controllers send, marked so that newer ones do not. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static char *host_to_ping(const Eve__Config__CellularConnectivityProbe *c)
{
    return c->probe_address;
}
#pragma GCC diagnostic pop

/* An older controller names only the host to ping. */
static struct str read_probe(struct parse *p, const Eve__Config__CellularConnectivityProbe *c,
                             struct json **ret)
{
    Eve__Common__ProbeEndpoint endpoint = EVE__COMMON__PROBE_ENDPOINT__INIT;
    Eve__Common__ConnectivityProbe ping = EVE__COMMON__CONNECTIVITY_PROBE__INIT;
    const struct str error = parse_probe(p, c ? c->custom_probe : NULL, ret);
    if (error.n || !c || !pb_text(host_to_ping(c)).n || json_get_int(*ret, STR("Method"), 0) != 0)
        return error;
    endpoint.host = host_to_ping(c);
    ping.probe_method = EVE__COMMON__CONNECTIVITY_PROBE_METHOD__CONNECTIVITY_PROBE_METHOD_ICMP;
    ping.probe_endpoint = &endpoint;
    return parse_probe(p, &ping, ret);
}

static struct str read_cellular(struct parse *p, struct str key,
                                const Eve__Config__WirelessConfig *w, struct json **ret,
                                bool *ret_is_set)
{
    struct json *points = json_new(p->arena, json_array()), *probe;
    const Eve__Config__CellularConfig *c;
    struct str error;
    if (!w->n_cellularcfg)
        return STR("missing cellular config");
    if (w->n_cellularcfg > 1)
        return STR("unexpected multiple cellular configs");
    c = w->cellularcfg[0];
    error = read_access_points(p, key, c, points);
    if (error.n)
        return error;
    error = read_probe(p, c->probe, &probe);
    if (error.n)
        return error;
    *ret_is_set = points->n > 0;
    *ret =
        wireless_value(p->arena, PARSE_CELLULAR,
                       cellular_value(p->arena, points->n ? points : NULL,
                                      c->probe && c->probe->disable, probe, c->location_tracking),
                       NULL);
    return STR_NONE;
}

static struct str read_wifi(struct parse *p, struct str key, const Eve__Config__WirelessConfig *w,
                            struct json **ret, bool *ret_is_set)
{
    struct json *list = w->n_wificfg ? json_new(p->arena, json_array()) : NULL;
    for (size_t i = 0; i < w->n_wificfg; i++) {
        const Eve__Config__WifiConfig *c = w->wificfg[i];
        struct gotype g = gotype_new(p->arena);
        const struct str id =
            arena_printf(p->arena, "%.*s-%.*s", STR_ARG(key), STR_ARG(pb_text(c->wifissid)));
        if ((int) c->keyscheme < 0 || (int) c->keyscheme > EVE__COMMON__WI_FI_KEY_SCHEME__WPAEAP)
            return arena_printf(p->arena, "unrecognized WiFi key scheme: %d", (int) c->keyscheme);
        gotype_text(&g, "SSID", pb_text(c->wifissid));
        gotype_int(&g, "KeyScheme", c->keyscheme);
        gotype_text(&g, "Identity", pb_text(c->identity));
        gotype_text(&g, "Password", pb_text(c->password));
        gotype_int(&g, "Priority", c->priority);
        const struct str error = parse_cipher_block(p, &g, id, c->cipherdata);
        if (error.n)
            return error;
        json_push(p->arena, list, *g.object);
    }
    *ret_is_set = w->n_wificfg > 0;
    *ret = wireless_value(p->arena, PARSE_WIFI, NULL, list);
    return STR_NONE;
}

struct str parse_wireless(struct parse *p, struct str key, const Eve__Config__WirelessConfig *w,
                          struct json **ret, bool *ret_is_set)
{
    *ret = parse_wireless_of_type(p->arena, PARSE_WIRED);
    *ret_is_set = false;
    if (!w)
        return STR_NONE;
    switch (w->type) {
    case EVE__COMMON__WIRELESS_TYPE__TypeNOOP:
        return STR_NONE;
    case EVE__COMMON__WIRELESS_TYPE__Cellular:
        return read_cellular(p, key, w, ret, ret_is_set);
    case EVE__COMMON__WIRELESS_TYPE__WiFi:
        return read_wifi(p, key, w, ret, ret_is_set);
    default:
        return arena_printf(p->arena, "unsupported wireless type: %d", (int) w->type);
    }
}

/* ---- of a local profile server -----------------------------------------------------------------
 */

#define MAX_LOCAL_BYTES 1024 /* of each text */

static bool is_short(const char *text)
{
    return pb_text(text).n <= MAX_LOCAL_BYTES;
}

/* In the clear: who is so near has no certificate of ours. */
static void write_credentials(struct arena *a, struct json *point, struct str name,
                              const Eve__Profile__CellularNetworkAuth *auth)
{
    struct gotype g = gotype_new(a);
    gotype_text(&g, "Username", auth ? pb_text(auth->username) : STR(""));
    gotype_text(&g, "Password", auth ? pb_text(auth->password) : STR(""));
    json_set(a, point, name, *g.object);
}

static struct str local_access_point(struct parse *p, const Eve__Profile__CellularConfig *c,
                                     struct json **ret)
{
    const Eve__Profile__CellularNetworkAuth *own = c->default_bearer_auth;
    const Eve__Profile__CellularNetworkAuth *attach = c->attach_bearer_auth;
    Eve__Config__CellularAccessPoint point = EVE__CONFIG__CELLULAR_ACCESS_POINT__INIT;
    if (!is_short(c->apn) || !is_short(c->attach_apn) ||
        (own && (!is_short(own->username) || !is_short(own->password))) ||
        (attach && (!is_short(attach->username) || !is_short(attach->password))))
        return STR("too long a text in the cellular configuration");
    point.sim_slot = c->activate_sim_slot;
    point.apn = c->apn;
    point.ip_type = c->ip_type;
    point.forbid_roaming = c->forbid_roaming;
    point.attach_apn = c->attach_apn;
    point.attach_ip_type = c->attach_ip_type;
    point.auth_protocol = own ? own->auth_protocol : 0;
    point.attach_auth_protocol = attach ? attach->auth_protocol : 0;
    const struct str error = access_point(p, STR(""), &point, 0, ret);
    if (error.n)
        return error;
    json_set(p->arena, *ret, STR("EncryptedCredentials"), *parse_cipher_value(p, STR(""), NULL));
    write_credentials(p->arena, *ret, STR("CleartextCredentials"), own);
    write_credentials(p->arena, *ret, STR("AttachCleartextCredentials"), attach);
    return STR_NONE;
}

static struct str local_cellular(struct parse *p, const Eve__Profile__CellularConfig *c,
                                 struct json **ret)
{
    struct json *point, *probe, *points = json_new(p->arena, json_array());
    const Eve__Common__ConnectivityProbe *custom = c->probe ? c->probe->custom_probe : NULL;
    if (custom && custom->probe_endpoint && !is_short(custom->probe_endpoint->host))
        return STR("too long a host to probe");
    struct str error = local_access_point(p, c, &point);
    if (!error.n)
        error = parse_probe(p, custom, &probe);
    if (error.n)
        return error;
    json_push(p->arena, points, *point);
    *ret = wireless_value(p->arena, PARSE_CELLULAR,
                          cellular_value(p->arena, points, c->probe && c->probe->disable, probe,
                                         c->location_tracking),
                          NULL);
    return STR_NONE;
}

static struct str local_wifi(struct parse *p, const Eve__Profile__WifiConfig *c, struct json **ret)
{
    Eve__Config__WifiConfig wifi = EVE__CONFIG__WIFI_CONFIG__INIT, *all[] = {&wifi};
    Eve__Config__WirelessConfig w = EVE__CONFIG__WIRELESS_CONFIG__INIT;
    bool is_set;
    if (!is_short(c->ssid) || !is_short(c->identity) || !is_short(c->password))
        return STR("too long a text in the WiFi configuration");
    wifi.wifissid = c->ssid;
    wifi.keyscheme = c->key_scheme;
    wifi.identity = c->identity;
    wifi.password = c->password;
    w.wificfg = all;
    w.n_wificfg = 1;
    return read_wifi(p, STR(""), &w, ret, &is_set);
}

struct str parse_local_wireless(struct parse *p, const Eve__Profile__NetworkPortConfig *c,
                                struct json **ret)
{
    *ret = NULL;
    switch ((int) c->wireless_device_type) {
    case EVE__PROFILE__WIRELESS_TYPE__WIRELESS_TYPE_UNSPECIFIED:
        return STR_NONE;
    case EVE__PROFILE__WIRELESS_TYPE__WIRELESS_TYPE_CELLULAR:
        if (c->wireless_config_case !=
            EVE__PROFILE__NETWORK_PORT_CONFIG__WIRELESS_CONFIG_CELLULAR_CONFIG)
            return STR("missing cellular configuration");
        return local_cellular(p, c->cellular_config, ret);
    case EVE__PROFILE__WIRELESS_TYPE__WIRELESS_TYPE_WIFI:
        if (c->wireless_config_case !=
            EVE__PROFILE__NETWORK_PORT_CONFIG__WIRELESS_CONFIG_WIFI_CONFIG)
            return STR("missing WiFi configuration");
        return local_wifi(p, c->wifi_config, ret);
    default:
        return arena_printf(p->arena, "unsupported wireless type: %d",
                            (int) c->wireless_device_type);
    }
}
