/* SPDX-License-Identifier: Apache-2.0 */
/* NetworkConfigs: what a device would refuse is refused here. */
#include "pki/pki.h"
#include "resources/addresses.h"
#include "resources/checks.h"
#include "resources/eve_references.h"
#include "resources/identity.h"
#include "resources/resources.h"

/* ---- addresses ----------------------------------------------------------------------------- */

static void check_static(struct causes *causes, const struct field_path *at,
                         const struct json *spec)
{
    static const char *const needed[] = {"subnet", "gateway"};
    if (!str_is(json_get_str(spec, STR("ip")), "static"))
        return;
    for (size_t i = 0; i < N_ELEMENTS(needed); i++)
        if (!json_get_str(spec, str_of(needed[i])).n)
            causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, str_of(needed[i])), NULL,
                       "static addresses need it");
}

/* All addresses of a NetworkConfig are of one version; *version 0: not known yet. */
static void check_version(struct causes *causes, const struct field_path *at,
                          const struct json *value, const struct ip_address *address, int *version)
{
    if (*version && *version != address->version)
        causes_add(causes, CAUSE_INVALID, at, value, "must be an IPv%d address, as the others are",
                   *version);
    *version = address->version;
}

static void check_gateway(struct causes *causes, const struct field_path *at,
                          const struct json *value, const struct ip_network *subnet, int *version)
{
    struct ip_address address;
    if (!json_str(value).n)
        return;
    if (!ip_address_parse(json_str(value), &address))
        causes_add(causes, CAUSE_INVALID, at, value, "must be a valid IP address, (e.g. 10.9.8.7)");
    else if (subnet && !ip_network_has(subnet, &address))
        causes_add(causes, CAUSE_INVALID, at, value, "must be in the subnet");
    else
        check_version(causes, at, value, &address, version);
}

static void check_name_servers(struct causes *causes, const struct field_path *at,
                               const struct json *list, int *version)
{
    struct ip_address address;
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        if (!ip_address_parse(json_str(item), &address))
            causes_add(causes, CAUSE_INVALID, &here, item,
                       "must be a valid IP address, (e.g. 10.9.8.7)");
        else
            check_version(causes, &here, item, &address, version);
    }
}

static void check_addresses(struct causes *causes, const struct field_path *at,
                            const struct json *spec)
{
    const struct json *text = json_get(spec, STR("subnet"));
    struct ip_network subnet;
    int version = 0;
    const bool has_subnet = ip_network_parse(json_str(text), &subnet);
    if (json_str(text).n && !has_subnet)
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("subnet")), text,
                   "must be a valid CIDR block, (e.g. 10.9.8.0/24)");
    if (has_subnet)
        version = subnet.address.version;
    check_gateway(causes, &FIELD_NAME(at, STR("gateway")), json_get(spec, STR("gateway")),
                  has_subnet ? &subnet : NULL, &version);
    check_name_servers(causes, &FIELD_NAME(at, STR("dns")), json_get(spec, STR("dns")), &version);
}

/* ---- names and URLs ------------------------------------------------------------------------ */

static void check_time_servers(struct causes *causes, const struct field_path *at,
                               const struct json *list)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        if (!host_is_valid(causes->arena, json_str(item)))
            causes_add(causes, CAUSE_INVALID, &here, item, "must be an IP address or a DNS name");
    }
}

static void check_proxies(struct causes *causes, const struct field_path *at,
                          const struct json *list)
{
    static const char *const schemes[] = {"http", "https", "ftp", "socks"};
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        struct url_parts url = {.port = 0};
        bool is_known = false;
        const bool is_url = url_split(json_str(item), &url) &&
                            host_is_valid(causes->arena, url.host) &&
                            (!url.rest.n || str_is(url.rest, "/"));
        for (size_t s = 0; s < N_ELEMENTS(schemes); s++)
            is_known |= str_is(url.scheme, schemes[s]);
        if (!is_url || !is_known)
            causes_add(causes, CAUSE_INVALID, &here, item,
                       "must be the URL of a proxy: http, https, ftp or socks, a host and perhaps "
                       "a port, (e.g. https://10.9.8.7:8888)");
    }
}

static void check_certificates(struct causes *causes, const struct field_path *at,
                               const struct json *list)
{
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        const struct field_path here = FIELD_INDEX(at, i++);
        CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
        const char *reason = "";
        if (pki_cert_decode(json_str(item), &cert, &reason) < 0)
            causes_add(causes, CAUSE_INVALID, &here, item, "must be a certificate: %s", reason);
    }
}

static void check_wireless(struct causes *causes, const struct field_path *at,
                           const struct json *spec)
{
    const struct json *wifi = json_get(spec, STR("wifi")),
                      *cellular = json_get(spec, STR("cellular"));
    const struct field_path at_wifi = FIELD_NAME(at, STR("wifi"));
    if (json_is(wifi, JSON_OBJECT) && json_is(cellular, JSON_OBJECT))
        causes_add(causes, CAUSE_FORBIDDEN, &FIELD_NAME(at, STR("cellular")), NULL,
                   "may not be specified together with wifi: a port is one or the other");
    if (str_is(json_get_str(wifi, STR("scheme")), "wpa-eap") &&
        !json_get_str(wifi, STR("credentialsSecret")).n)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(&at_wifi, STR("credentialsSecret")), NULL,
                   "wpa-eap needs a user and a password");
}

/* ---- the kind ------------------------------------------------------------------------------ */

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct json *spec = json_get(object, STR("spec"));
    const struct json *domain = json_get(spec, STR("domain"));
    if (h->subresource.n)
        return;
    check_static(causes, &at, spec);
    check_addresses(causes, &at, spec);
    check_time_servers(causes, &FIELD_NAME(&at, STR("ntp")), json_get(spec, STR("ntp")));
    check_proxies(causes, &FIELD_NAME(&at, STR("proxies")), json_get(spec, STR("proxies")));
    check_certificates(causes, &FIELD_NAME(&at, STR("proxyCertificates")),
                       json_get(spec, STR("proxyCertificates")));
    if (json_str(domain).n && !host_is_valid(causes->arena, json_str(domain)))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("domain")), domain,
                   "must be a DNS name");
    check_wireless(causes, &at, spec);
}

static void refer(struct reference_list *l, const struct json *object)
{
    static const char *const wireless[] = {"wifi", "cellular"};
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    for (size_t i = 0; i < N_ELEMENTS(wireless); i++) {
        const struct field_path at = FIELD_NAME(&spec, str_of(wireless[i]));
        const struct json *part = json_at(object, "spec", wireless[i], NULL);
        eve_refer_credentials(l, &FIELD_NAME(&at, STR("credentialsSecret")),
                              eve_namespace_of(object),
                              json_get_str(part, STR("credentialsSecret")), /* flags= */ 0);
    }
}

const struct kind_hooks networkconfig_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("networkconfigs"),
    .prepare = identity_prepare,
    .validate = validate,
    .validate_update = identity_check,
    .refer = refer,
    .has_users = true,
};
