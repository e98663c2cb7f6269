/* SPDX-License-Identifier: Apache-2.0 */
/* NetworkConfig -> EVE's: addresses, proxies, wireless. */
#include <errno.h>

#include "base/base64.h"
#include "composer/composer_internal.h"
#include "composer/wifi_keys.h"
#include "pki/pki.h"

#define WIFI_KEY_HEX_BYTES (2 * WIFI_KEY_BYTES) /* of a key that is derived already */
#define WIFI_PASSPHRASE_MIN 8
#define WIFI_PASSPHRASE_MAX 63

/* The problem is the DeviceNetwork's, in the NetworkConfig that it names. */
#define NETWORK_PROBLEM(c, n, ...) \
    (problem_add((c), (n)->object, STR("spec.networkConfig"), __VA_ARGS__), -EINVAL)

/* ---- addresses ------------------------------------------------------------------------------- */

static int check_static(struct composition *c, struct net_plan *n, const struct json *spec)
{
    const struct str subnet = json_get_str(spec, STR("subnet"));
    const struct str gateway = json_get_str(spec, STR("gateway"));
    const ptrdiff_t slash = str_find(subnet, '/');
    struct subnet s;
    uint32_t address;
    bool is_v6 = false, is_gateway_v6 = false;
    if (slash < 0 || !address_is_valid(str_sub(subnet, 0, (size_t) slash), &is_v6) ||
        (!is_v6 && subnet_parse(subnet, &s, NULL) < 0))
        return NETWORK_PROBLEM(c, n, "spec.subnet: a static network needs address/length");
    if (!address_is_valid(gateway, &is_gateway_v6) || is_v6 != is_gateway_v6)
        return NETWORK_PROBLEM(c, n, "spec.gateway: a static network needs an address in %.*s",
                               STR_ARG(subnet));
    if (!is_v6 && (address_parse(gateway, &address) < 0 || !subnet_has(&s, address)))
        return NETWORK_PROBLEM(c, n, "spec.gateway: '%.*s' is not in %.*s", STR_ARG(gateway),
                               STR_ARG(subnet));
    JSON_FOR_EACH_ITEM (json_get(spec, STR("dns")), item) {
        bool is_dns_v6;
        if (!address_is_valid(json_str(item), &is_dns_v6) || is_dns_v6 != is_v6)
            return NETWORK_PROBLEM(c, n, "spec.dns: '%.*s' is no address of the subnet's kind",
                                   STR_ARG(json_str(item)));
    }
    if (is_v6)
        n->network->type = EVE__COMMON__NETWORK_TYPE__V6;
    n->network->ip->subnet = is_v6 ? arena_strz(c->arena, subnet) : subnet_text(c->arena, &s);
    return 0;
}

static void add_names(struct composition *c, Eve__Common__Ipspec *ip, const struct json *spec)
{
    struct arena *a = c->arena;
    if (json_get_str(spec, STR("gateway")).n)
        ip->gateway = arena_strz(a, json_get_str(spec, STR("gateway")));
    if (json_get_str(spec, STR("domain")).n)
        ip->domain = arena_strz(a, json_get_str(spec, STR("domain")));
    JSON_FOR_EACH_ITEM (json_get(spec, STR("dns")), item)
        if (json_str(item).n)
            REPEATED_ADD(a, ip->dns, ip->n_dns, arena_strz(a, json_str(item)));
    bool has_ntp = false;
    JSON_FOR_EACH_ITEM (json_get(spec, STR("ntp")), item) {
        if (json_str(item).n == 0)
            continue;
        if (has_ntp)
            REPEATED_ADD(a, ip->more_ntp, ip->n_more_ntp, arena_strz(a, json_str(item)));
        else
            ip->ntp = arena_strz(a, json_str(item));
        has_ntp = true;
    }
}

static int make_ip(struct composition *c, struct net_plan *n, const struct json *spec)
{
    const struct str how = json_get_str(spec, STR("ip"));
    Eve__Common__Ipspec *ip = n->network->ip = MESSAGE_NEW(c->arena, eve__common__ipspec);
    add_names(c, ip, spec);
    n->network->type = EVE__COMMON__NETWORK_TYPE__V4;
    if (str_is(how, "static")) {
        ip->dhcp = EVE__COMMON__DHCPTYPE__Static;
        return check_static(c, n, spec);
    }
    if (str_is(how, "none")) {
        ip->dhcp = EVE__COMMON__DHCPTYPE__DHCPNone;
        n->network->type = EVE__COMMON__NETWORK_TYPE__NETWORKTYPENOOP;
        return n->is_management
                   ? NETWORK_PROBLEM(c, n, "spec.ip: a network for management needs addresses")
                   : 0;
    }
    ip->dhcp = EVE__COMMON__DHCPTYPE__Client;
    return 0;
}

/* ---- proxies --------------------------------------------------------------------------------- */

static const struct {
    const char *scheme;
    Eve__Common__ProxyProto proto;
    uint32_t port;
} proxy_schemes[] = {
    {"http", EVE__COMMON__PROXY_PROTO__PROXY_HTTP, 3128},
    {"https", EVE__COMMON__PROXY_PROTO__PROXY_HTTPS, 3128},
    {"socks", EVE__COMMON__PROXY_PROTO__PROXY_SOCKS, 1080},
    {"socks5", EVE__COMMON__PROXY_PROTO__PROXY_SOCKS, 1080},
    {"ftp", EVE__COMMON__PROXY_PROTO__PROXY_FTP, 3128},
};

/* scheme://host[:port][/] */
static Eve__Common__ProxyServer *parse_proxy(struct arena *a, struct str url)
{
    const ptrdiff_t colon = str_find_str(url, STR("://"));
    if (colon < 0)
        return NULL;
    struct str host = str_from(url, (size_t) colon + 3);
    const ptrdiff_t slash = str_find(host, '/');
    host = slash < 0 ? host : str_sub(host, 0, (size_t) slash);
    for (size_t i = 0; i < N_ELEMENTS(proxy_schemes); i++) {
        if (!str_is(str_sub(url, 0, (size_t) colon), proxy_schemes[i].scheme))
            continue;
        int64_t port = proxy_schemes[i].port;
        const ptrdiff_t at = str_find_last(host, ':');
        if (at >= 0 && str_find_last(host, ']') < at) {
            if (str_to_i64(str_from(host, (size_t) at + 1), &port) < 0)
                return NULL;
            host = str_sub(host, 0, (size_t) at);
        }
        if (host.n == 0 || port < 1 || port > 65535)
            return NULL;
        Eve__Common__ProxyServer *m = MESSAGE_NEW(a, eve__common__proxy_server);
        m->proto = proxy_schemes[i].proto;
        m->server = arena_strz(a, host);
        m->port = (uint32_t) port;
        return m;
    }
    return NULL;
}

static void add_exceptions(struct arena *a, Eve__Common__ProxyConfig *m, const struct json *list)
{
    struct str all = STR("");
    JSON_FOR_EACH_ITEM (list, item) {
        const struct str parts[] = {all, all.n ? STR(",") : STR(""), json_str(item)};
        all = arena_join(a, parts, N_ELEMENTS(parts));
    }
    if (all.n)
        m->exceptions = arena_strz(a, all);
}

static bool is_url(struct str s)
{
    return (str_starts_with(s, STR("http://")) || str_starts_with(s, STR("https://"))) &&
           str_find(s, '\n') < 0;
}

/* A proxy auto-configuration is its text, which goes as base64, or where it is. */
static void add_pac(struct arena *a, Eve__Common__ProxyConfig *m, struct str pac)
{
    if (pac.n == 0)
        return;
    if (is_url(pac)) {
        m->networkproxyenable = true;
        m->networkproxyurl = arena_strz(a, pac);
    } else {
        m->pacfile = arena_strz(a, base64_encode(a, pac, BASE64_STANDARD));
    }
}

static int make_proxies(struct composition *c, struct net_plan *n, const struct json *spec)
{
    struct arena *a = c->arena;
    Eve__Common__ProxyConfig *m = MESSAGE_NEW(a, eve__common__proxy_config);
    JSON_FOR_EACH_ITEM (json_get(spec, STR("proxies")), item) {
        Eve__Common__ProxyServer *server = parse_proxy(a, json_str(item));
        if (!server)
            return NETWORK_PROBLEM(c, n, "spec.proxies: '%.*s' is no URL of a proxy",
                                   STR_ARG(json_str(item)));
        REPEATED_ADD(a, m->proxies, m->n_proxies, server);
    }
    add_exceptions(a, m, json_get(spec, STR("proxyExceptions")));
    add_pac(a, m, json_get_str(spec, STR("pac")));
    JSON_FOR_EACH_ITEM (json_get(spec, STR("proxyCertificates")), item) {
        struct pki_cert *cert = NULL;
        const char *reason;
        if (pki_cert_decode(json_str(item), &cert, &reason) < 0)
            return NETWORK_PROBLEM(c, n, "spec.proxyCertificates: %s", reason);
        const struct str pem = pki_cert_pem(a, cert);
        pki_cert_free(cert);
        REPEATED_ADD(a, m->proxycertpem, m->n_proxycertpem, pb_data(pem));
    }
    if (pb_pack(a, &m->base).n)
        n->network->entproxy = m;
    return 0;
}

/* ---- wireless -------------------------------------------------------------------------------- */

static bool is_hex_key(struct str s)
{
    if (s.n != WIFI_KEY_HEX_BYTES)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!char_is_in(s.p[i], "0123456789abcdefABCDEF"))
            return false;
    return true;
}

/* A device takes the key of WPA-PSK only as wpa_passphrase derives it. */
static char *wifi_key(struct arena *a, struct str ssid, struct str password)
{
    unsigned char key[WIFI_KEY_BYTES];
    if (is_hex_key(password))
        return arena_strz(a, password);
    if (password.n < WIFI_PASSPHRASE_MIN || password.n > WIFI_PASSPHRASE_MAX)
        return NULL;
    if (wifi_keys_derive(password, ssid, key) < 0)
        return NULL;
    return arena_strz(a, pki_hex(a, key, sizeof(key)));
}

static int seal_network(struct composition *c, struct net_plan *n,
                        const Eve__Common__EncryptionBlock *block, const struct json *secret)
{
    struct str why;
    n->secret = secret;
    if (cipher_part(c, "network", object_uuid(n->network_config), block, &n->sealed, &why) < 0)
        return NETWORK_PROBLEM(c, n, "its credentials: %.*s", STR_ARG(why));
    return 0;
}

static int make_wifi(struct composition *c, struct net_plan *n, const struct json *spec)
{
    struct arena *a = c->arena;
    const struct str ssid = json_get_str(spec, STR("ssid"));
    const bool is_eap = str_is(json_get_str(spec, STR("scheme")), "wpa-eap");
    Eve__Config__WifiConfig *m = MESSAGE_NEW(a, eve__config__wifi_config);
    struct credentials credentials;
    struct str why;
    if (ssid.n == 0)
        return NETWORK_PROBLEM(c, n, "spec.wifi.ssid: it needs one");
    m->wifissid = arena_strz(a, ssid);
    m->keyscheme =
        is_eap ? EVE__COMMON__WI_FI_KEY_SCHEME__WPAEAP : EVE__COMMON__WI_FI_KEY_SCHEME__WPAPSK;
    if (credentials_find(c, json_get_str(spec, STR("credentialsSecret")), &credentials, &why) < 0)
        return NETWORK_PROBLEM(c, n, "spec.wifi.credentialsSecret: %.*s", STR_ARG(why));
    Eve__Common__EncryptionBlock *block = MESSAGE_NEW(a, eve__common__encryption_block);
    char *password = !credentials.password ? NULL
                     : is_eap              ? credentials.password
                                           : wifi_key(a, ssid, str_of(credentials.password));
    if (!password)
        return NETWORK_PROBLEM(c, n,
                               "spec.wifi.credentialsSecret: the password of Secret '%.*s' is "
                               "missing, or not 8 to 63 characters or 64 hex digits",
                               STR_ARG(object_name(credentials.secret)));
    block->wifipassword = password;
    if (credentials.username)
        block->wifiusername = credentials.username;
    if (seal_network(c, n, block, credentials.secret) < 0)
        return -EINVAL;
    m->cipherdata = (Eve__Common__CipherBlock *) (uintptr_t) n->sealed.block;
    Eve__Config__WirelessConfig *w = n->network->wireless =
        MESSAGE_NEW(a, eve__config__wireless_config);
    w->type = EVE__COMMON__WIRELESS_TYPE__WiFi;
    REPEATED_ADD(a, w->wificfg, w->n_wificfg, m);
    return 0;
}

static int make_cellular(struct composition *c, struct net_plan *n, const struct json *spec)
{
    struct arena *a = c->arena;
    const struct str secret = json_get_str(spec, STR("credentialsSecret"));
    Eve__Config__CellularAccessPoint *point = MESSAGE_NEW(a, eve__config__cellular_access_point);
    Eve__Config__CellularConfig *m = MESSAGE_NEW(a, eve__config__cellular_config);
    point->apn = arena_strz(a, json_get_str(spec, STR("apn")));
    if (secret.n) {
        struct credentials credentials;
        struct str why;
        if (credentials_find(c, secret, &credentials, &why) < 0)
            return NETWORK_PROBLEM(c, n, "spec.cellular.credentialsSecret: %.*s", STR_ARG(why));
        Eve__Common__EncryptionBlock *block = MESSAGE_NEW(a, eve__common__encryption_block);
        if (credentials.username)
            block->cellular_net_username = credentials.username;
        if (credentials.password)
            block->cellular_net_password = credentials.password;
        if (seal_network(c, n, block, credentials.secret) < 0)
            return -EINVAL;
        point->cipher_data = (Eve__Common__CipherBlock *) (uintptr_t) n->sealed.block;
        point->auth_protocol =
            EVE__COMMON__CELLULAR_AUTH_PROTOCOL__CELLULAR_AUTH_PROTOCOL_PAP_AND_CHAP;
    }
    REPEATED_ADD(a, m->access_points, m->n_access_points, point);
    Eve__Config__WirelessConfig *w = n->network->wireless =
        MESSAGE_NEW(a, eve__config__wireless_config);
    w->type = EVE__COMMON__WIRELESS_TYPE__Cellular;
    REPEATED_ADD(a, w->cellularcfg, w->n_cellularcfg, m);
    return 0;
}

int network_config_make(struct composition *c, struct net_plan *n)
{
    const struct json *spec = json_get(n->network_config, STR("spec"));
    const struct json *wifi = json_get(spec, STR("wifi"));
    const struct json *cellular = json_get(spec, STR("cellular"));
    const int64_t mtu = json_get_int(spec, STR("mtu"), 0);
    n->network = MESSAGE_NEW(c->arena, eve__config__network_config);
    n->network->id = arena_strz(c->arena, object_uuid(n->network_config));
    if (mtu && (mtu < 1280 || mtu > 65535))
        return NETWORK_PROBLEM(c, n, "spec.mtu: must be 1280 to 65535");
    n->network->mtu = (uint32_t) mtu;
    if (make_ip(c, n, spec) < 0 || make_proxies(c, n, spec) < 0)
        return -EINVAL;
    if (json_is(wifi, JSON_OBJECT))
        return make_wifi(c, n, wifi);
    return json_is(cellular, JSON_OBJECT) ? make_cellular(c, n, cellular) : 0;
}
