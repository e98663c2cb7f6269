/* SPDX-License-Identifier: Apache-2.0 */
/* What the services have published, gathered for a reader. docs/AGENT.md describes the JSON. */
#include "base/base64.h"
#include "diag/diag_internal.h"

static const struct {
    enum node_led led;
    const char *words;
} leds[] = {
    {NODE_LED_WAITING_FOR_ADDRESS, "Waiting for DHCP IP address(es)"},
    {NODE_LED_CONNECTING, "Trying to connect to EV Controller"},
    {NODE_LED_CONNECTED, "Connected to EV Controller but not onboarded"},
    {NODE_LED_ONBOARDED, "Connected to EV Controller and onboarded"},
    {NODE_LED_RADIO_SILENCE, "Radio silence is imposed"},
    {NODE_LED_ONBOARDING_FAILURE, "Onboarding failure or conflict"},
    {NODE_LED_NO_TLS, "Response without TLS - ignored"},
    {NODE_LED_NO_OCSP, "Response without OSCP or bad OSCP - ignored"},
    {NODE_LED_BAD_CONTROLLER_CERT, "Failed to fetch or verify EV Controller certificate"},
    {NODE_LED_BAD_ENVELOPE, "Response has invalid controller certificate/signature"},
    {NODE_LED_BAD_BOOTSTRAP, "Failed to validate bootstrap config"},
    {NODE_LED_ONBOARDING_CONFLICT, "Onboarding conflict"},
    {NODE_LED_NOT_FOUND, "The EV Controller does not know the device"},
};

static const char *const states[] = {
    "NONE",     "FAIL",      "FAIL_WITH_IPANDDNS", "SUCCESS",    "IPDNS_WAIT",
    "PCI_WAIT", "INTF_WAIT", "REMOTE_WAIT",        "ASYNC_WAIT", "WWAN_WAIT",
};

static struct json *global(struct arena *a, struct diag *d, enum diag_topic topic)
{
    return subscription_get(a, d->topics[topic], STR("global"));
}

static void set_text(struct arena *a, struct json *o, const char *key, struct str value)
{
    (void) json_append_member(a, o, str_of(key), json_string(value.p ? value : STR("")));
}

static void set_int(struct arena *a, struct json *o, const char *key, int64_t value)
{
    (void) json_append_member(a, o, str_of(key), json_int(value));
}

/* A copy that is there only when it says something. */
static void set_some(struct arena *a, struct json *o, const char *key, const struct json *value)
{
    if (json_count(value) || json_str(value).n)
        (void) json_append_member(a, o, str_of(key), *value);
}

/* ---- the device ----------------------------------------------------------------------------- */

static bool has_address(const struct uplink_ports *ports)
{
    for (size_t i = 0; ports && i < ports->n_items; i++)
        if (uplink_port_has_address(&ports->items[i]))
            return true;
    return false;
}

static enum node_led derived_led(struct arena *a, struct diag *d, const struct json *network)
{
    const struct json *led = subscription_get(a, d->topics[DIAG_LED], STR("ledconfig"));
    int64_t counter = json_get_int(led, STR("BlinkCounter"), NODE_LED_CONNECTING);
    if (json_get_bool(json_get(network, STR("RadioSilence")), STR("Imposed"), false))
        return NODE_LED_RADIO_SILENCE;
    if (!has_address(d->node->ports))
        return NODE_LED_WAITING_FOR_ADDRESS;
    return (enum node_led) MAX(counter, NODE_LED_CONNECTING);
}

static struct json summary(struct arena *a, enum node_led led)
{
    struct json o = json_object();
    const char *words = "Unknown";
    for (size_t i = 0; i < N_ELEMENTS(leds); i++)
        if (leds[i].led == led)
            words = leds[i].words;
    bool is_warning = led == NODE_LED_CONNECTED || led == NODE_LED_RADIO_SILENCE;
    set_text(a, &o, "level",
             led == NODE_LED_ONBOARDED ? STR("info")
             : is_warning              ? STR("warning")
                                       : STR("error"));
    set_int(a, &o, "led", led);
    set_text(a, &o, "words", str_of(words));
    return o;
}

static struct json configs(struct arena *a, const struct json *list, const struct json *network)
{
    struct json o = json_object();
    size_t state = (size_t) json_get_int(network, STR("State"), 0);
    struct json others = json_array();
    set_text(a, &o, "state", str_of(state < N_ELEMENTS(states) ? states[state] : "UNKNOWN"));
    (void) json_append_member(a, &o, STR("testing"),
                              json_bool(json_get_bool(network, STR("Testing"), false)));
    set_text(a, &o, "key", json_get_str(network, STR("DPCKey")));
    set_int(a, &o, "current", json_get_int(list, STR("CurrentIndex"), -1));
    JSON_FOR_EACH_ITEM (json_get(list, STR("PortConfigList")), config) {
        struct json one = json_object();
        set_text(a, &one, "key", json_get_str(config, STR("Key")));
        set_text(a, &one, "lastError", json_get_str(config, STR("LastError")));
        (void) json_push(a, &others, one);
    }
    (void) json_append_member(a, &o, STR("list"), others);
    return o;
}

static struct json vaults(struct arena *a, struct diag *d)
{
    static const char *const words[] = {"unknown", "disabled", "enabled", "error"};
    struct json list = json_array();
    size_t position = 0;
    struct str key, text;
    while (subscription_next(d->topics[DIAG_VAULTS], &position, &key, &text)) {
        const struct json *v = json_parse_quick(a, text);
        size_t status = (size_t) json_get_int(v, STR("Status"), 0);
        struct json o = json_object();
        set_text(a, &o, "name", json_get_str(v, STR("Name")));
        set_text(a, &o, "status", str_of(status < N_ELEMENTS(words) ? words[status] : "unknown"));
        set_text(a, &o, "error", json_get_str(v, STR("Error")));
        (void) json_push(a, &list, o);
    }
    return list;
}

static struct json apps(struct arena *a, struct diag *d)
{
    const struct json *totals = global(a, d, DIAG_SUMMARY);
    struct json o = json_object(), list = json_array();
    size_t position = 0;
    struct str key, text;
    set_int(a, &o, "starting", json_get_int(totals, STR("TotalStarting"), 0));
    set_int(a, &o, "running", json_get_int(totals, STR("TotalRunning"), 0));
    set_int(a, &o, "stopping", json_get_int(totals, STR("TotalStopping"), 0));
    set_int(a, &o, "error", json_get_int(totals, STR("TotalError"), 0));
    while (subscription_next(d->topics[DIAG_APPS], &position, &key, &text)) {
        const struct json *v = json_parse_quick(a, text);
        struct json one = json_object();
        set_text(a, &one, "uuid", json_get_str(json_get(v, STR("UUIDandVersion")), STR("UUID")));
        set_text(a, &one, "name", json_get_str(v, STR("DisplayName")));
        set_int(a, &one, "state", json_get_int(v, STR("State"), 0));
        set_text(a, &one, "error", json_get_str(v, STR("Error")));
        (void) json_push(a, &list, one);
    }
    (void) json_append_member(a, &o, STR("list"), list);
    return o;
}

static struct json downloads(struct arena *a, struct diag *d)
{
    struct json list = json_array();
    size_t position = 0;
    struct str key, text;
    while (subscription_next(d->topics[DIAG_DOWNLOADS], &position, &key, &text)) {
        const struct json *v = json_parse_quick(a, text);
        struct json o = json_object();
        set_text(a, &o, "name", json_get_str(v, STR("Name")));
        set_int(a, &o, "percent", json_get_int(v, STR("Progress"), 0));
        set_text(a, &o, "error", json_get_str(v, STR("Error")));
        (void) json_push(a, &list, o);
    }
    return list;
}

/* ---- ports ---------------------------------------------------------------------------------- */

static struct json addresses(struct arena *a, const struct json *port)
{
    struct json list = json_array();
    JSON_FOR_EACH_ITEM (json_get(port, STR("AddrInfoList")), info) {
        struct str address = json_get_str(info, STR("Addr"));
        if (address.n && !uplink_address_is_link_local(address))
            (void) json_push(a, &list, json_string(address));
    }
    return list;
}

static struct json proxies(struct arena *a, struct diag *d, const struct json *port)
{
    struct json o = json_object(), list = json_array();
    JSON_FOR_EACH_ITEM (json_get(port, STR("Proxies")), proxy) {
        int64_t type = json_get_int(proxy, STR("type"), 0),
                number = json_get_int(proxy, STR("port"), 0);
        struct str server = json_get_str(proxy, STR("server"));
        struct json one = json_object();
        set_text(a, &one, "type",
                 type == UPLINK_PROXY_HTTP    ? STR("http")
                 : type == UPLINK_PROXY_HTTPS ? STR("https")
                                              : STR("other"));
        set_text(a, &one, "server",
                 number ? arena_printf(a, "%.*s:%lld", STR_ARG(server), (long long) number)
                        : server);
        (void) json_push(a, &list, one);
    }
    set_some(a, &o, "list", &list);
    set_some(a, &o, "exceptions", json_get(port, STR("Exceptions")));
    (void) json_append_member(a, &o, STR("discovers"),
                              json_bool(json_get_bool(port, STR("NetworkProxyEnable"), false)));
    set_some(a, &o, "url", json_get(port, STR("NetworkProxyURL")));
    set_some(a, &o, "wpadUrl", json_get(port, STR("WpadURL")));
    struct str pac = json_get_str(port, STR("Pacfile")), script;
    if (pac.n)
        set_int(a, &o, "pacBytes", (int64_t) pac.n);
    if (pac.n && d->options.prints_pac &&
        base64_decode(a, pac, BASE64_STANDARD, &script, NULL) == 0 && str_is_utf8(script))
        set_text(a, &o, "pac", script);
    set_int(a, &o, "certificates",
            (int64_t) json_count(json_get(port, STR("pubsub-large-ProxyCertPEM"))));
    return o;
}

static void set_wireless(struct arena *a, struct json *o, const struct json *port)
{
    const struct json *status = json_get(port, STR("WirelessStatus")),
                      *config = json_get(port, STR("WirelessCfg"));
    int64_t type = json_get_int(status, STR("WType"), json_get_int(config, STR("WType"), 0));
    if (type != 1 && type != 2)
        return;
    struct json w = json_object(), names = json_array();
    set_text(a, &w, "type", type == 1 ? STR("cellular") : STR("wifi"));
    JSON_FOR_EACH_ITEM (json_get(config, STR("Wifi")), wifi)
        (void) json_push(a, &names, json_string(json_get_str(wifi, STR("SSID"))));
    set_some(a, &w, "networks", &names);
    const struct json *cellular = json_get(status, STR("Cellular"));
    set_some(a, &w, "module", json_get(json_get(cellular, STR("Module")), STR("Name")));
    set_some(a, &w, "mode", json_get(json_get(cellular, STR("Module")), STR("OpMode")));
    set_some(a, &w, "configError", json_get(cellular, STR("ConfigError")));
    set_some(a, &w, "probeError", json_get(cellular, STR("ProbeError")));
    (void) json_append_member(a, o, STR("wireless"), w);
}

static void set_list(struct arena *a, struct json *o, const char *key, const struct json *list)
{
    (void) json_append_member(a, o, str_of(key), json_is(list, JSON_ARRAY) ? *list : json_array());
}

static struct json port_report(struct arena *a, struct diag *d, const struct json *port)
{
    struct json o = json_object();
    struct str name = json_get_str(port, STR("IfName"));
    const struct uplink_port *known =
        d->node->ports ? uplink_ports_find(d->node->ports, name) : NULL;
    int64_t dhcp = json_get_int(port, STR("Dhcp"), 0);
    set_text(a, &o, "name", name);
    set_text(a, &o, "label", json_get_str(port, STR("Logicallabel")));
    (void) json_append_member(a, &o, STR("isManagement"),
                              json_bool(known && uplink_port_is_management(d->node->ports, known)));
    set_int(a, &o, "cost", json_get_int(port, STR("Cost"), 0));
    set_text(a, &o, "addressing",
             dhcp == 4   ? STR("dhcp")
             : dhcp == 1 ? STR("static")
                         : STR("none"));
    (void) json_append_member(a, &o, STR("addresses"), addresses(a, port));
    set_list(a, &o, "routers", json_get(port, STR("DefaultRouters")));
    set_list(a, &o, "dnsServers", json_get(port, STR("DNSServers")));
    set_list(a, &o, "ntpServers", json_get(port, STR("NtpServers")));
    set_text(a, &o, "domain", json_get_str(port, STR("DomainName")));
    (void) json_append_member(a, &o, STR("proxy"), proxies(a, d, port));
    set_wireless(a, &o, port);
    set_text(a, &o, "lastError", json_get_str(port, STR("LastError")));
    set_text(a, &o, "lastWarning", json_get_str(port, STR("LastWarning")));
    set_text(a, &o, "result", STR("skipped"));
    (void) json_append_member(a, &o, STR("checks"), json_array());
    return o;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void set_device(struct arena *a, struct diag *d, struct json *o)
{
    const struct node *n = d->node;
    const struct json *zedagent = subscription_get(a, d->topics[DIAG_ZEDAGENT], STR("zedagent"));
    char device[UUID_TEXT_BYTES] = "";
    if (!uuid_is_zero(&n->device))
        uuid_text(&n->device, device);
    set_text(a, o, "server", n->server);
    set_text(a, o, "device", arena_str(a, str_of(device)));
    set_text(a, o, "hardwareModel", n->hardware_model);
    set_text(a, o, "identity", n->identity.tls ? STR("device") : STR("onboarding"));
    set_int(a, o, "configStatus", json_get_int(zedagent, STR("ConfigGetStatus"), 0));
    (void) json_append_member(a, o, STR("maintenanceMode"),
                              json_bool(json_get_bool(zedagent, STR("MaintenanceMode"), false)));
    (void) json_append_member(a, o, STR("airgapMode"),
                              json_bool(json_get_bool(zedagent, STR("AirgapMode"), false)));
}

struct json *diag_report(struct arena *a, struct diag *d)
{
    struct json *o = json_new(a, json_object()), ports = json_array();
    const struct json *network = global(a, d, DIAG_NETWORK);
    (void) json_append_member(a, o, STR("time"),
                              *node_json_time(a, d->node->clock->wall_us(d->node->clock)));
    (void) json_append_member(a, o, STR("summary"), summary(a, derived_led(a, d, network)));
    set_device(a, d, o);
    (void) json_append_member(a, o, STR("portConfig"),
                              configs(a, global(a, d, DIAG_PORT_CONFIGS), network));
    (void) json_append_member(a, o, STR("vaults"), vaults(a, d));
    (void) json_append_member(a, o, STR("apps"), apps(a, d));
    (void) json_append_member(a, o, STR("downloads"), downloads(a, d));
    const struct json *drain = global(a, d, DIAG_DRAIN);
    set_int(a, o, "drainStatus", json_get_int(drain, STR("Status"), 0));
    JSON_FOR_EACH_ITEM (json_get(network, STR("Ports")), port)
        (void) json_push(a, &ports, port_report(a, d, port));
    (void) json_append_member(a, o, STR("ports"), ports);
    return o;
}

bool diag_report_conclude(struct arena *a, struct json *report)
{
    int64_t n_management = 0, n_passed = 0;
    JSON_FOR_EACH_ITEM (json_get(report, STR("ports")), port) {
        if (!json_get_bool(port, STR("isManagement"), false))
            continue;
        n_management++;
        n_passed += str_is(json_get_str(port, STR("result")), "pass");
    }
    set_int(a, report, "managementPorts", n_management);
    set_int(a, report, "passedPorts", n_passed);
    bool is_whole = n_management > 0 && n_passed == n_management;
    set_text(a, report, "result",
             is_whole       ? STR("pass")
             : n_passed > 0 ? STR("warning")
                            : STR("fail"));
    return n_passed > 0;
}
