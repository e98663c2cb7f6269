/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/parse.h"

#include "zedagent/parse_internal.h"

/* Fields of EdgeDevConfig by number. */
enum {
    ID = 1,
    APPS = 4,
    NETWORKS = 5,
    DATASTORES = 6,
    SYSTEM_ADAPTERS = 12,
    DEVICE_IO = 13,
    NETWORK_INSTANCES = 16,
    CIPHER_CONTEXTS = 19,
    CONTENT_INFO = 20,
    VOLUMES = 21,
    BASE_OS = 26,
    VLANS = 30,
    BONDS = 31,
    DISKS = 33,
    DEVICE_NAME = 35,
    PROJECT_NAME = 36,
    PROJECT_ID = 37,
    ENTERPRISE_NAME = 38,
    ENTERPRISE_ID = 39,
    PATCH_ENVELOPES = 42,
    CLUSTER = 43,
    PNACS = 50,
    SCEP_PROFILES = 51,
};

/* In the order of EVE's parser: what is referred to comes first. */
const struct section parse_sections[SECTIONS] = {
    [SECTION_CIPHER_CONTEXTS] = {.topic = "CipherContext",
                                 .parse = parse_cipher_contexts,
                                 .fields = {CIPHER_CONTEXTS}},
    [SECTION_DATASTORES] = {.topic = "DatastoreConfig",
                            .parse = parse_datastores,
                            .fields = {DATASTORES, CIPHER_CONTEXTS}},
    [SECTION_PHYSICAL_IO] = {.topic = "PhysicalIOAdapterList",
                             .parse = parse_physical_io,
                             .is_for_bootstrap = true,
                             .fields = {DEVICE_IO}},
    [SECTION_SCEP] = {.topic = "SCEPProfile",
                      .parse = parse_scep,
                      .is_for_bootstrap = true,
                      .fields = {SCEP_PROFILES, CIPHER_CONTEXTS}},
    [SECTION_NETWORKS] = {.topic = "NetworkXObjectConfig",
                          .parse = parse_networks,
                          .is_for_bootstrap = true,
                          .fields = {NETWORKS, CIPHER_CONTEXTS}},
    [SECTION_PORTS] = {.topic = "DevicePortConfig",
                       .parse = parse_ports,
                       .is_for_bootstrap = true,
                       .depends_on_source = true,
                       .fields = {SYSTEM_ADAPTERS, DEVICE_IO, NETWORKS, BONDS, VLANS, PNACS,
                                  SCEP_PROFILES, CIPHER_CONTEXTS}},
    [SECTION_BASE_OS] = {.topic = "BaseOsConfig", .parse = parse_base_os, .fields = {BASE_OS}},
    [SECTION_CLUSTER] = {.topic = "EdgeNodeClusterConfig",
                         .parse = parse_cluster,
                         .fields = {CLUSTER, CIPHER_CONTEXTS}},
    [SECTION_NETWORK_INSTANCES] = {.topic = "NetworkInstanceConfig",
                                   .parse = parse_network_instances,
                                   .fields = {NETWORK_INSTANCES}},
    [SECTION_CONTENT_TREES] = {.topic = "ContentTreeConfig",
                               .parse = parse_content_trees,
                               .signals_restarted = true,
                               .deletes_nothing_in_departure = true,
                               .fields = {CONTENT_INFO, ID}},
    [SECTION_VOLUMES] = {.topic = "VolumeConfig",
                         .parse = parse_volumes,
                         .signals_restarted = true,
                         .deletes_nothing_in_departure = true,
                         .fields = {VOLUMES, CONTENT_INFO, APPS, ID}},
    [SECTION_NODE_INFO] = {.topic = "EdgeNodeInfo",
                           .parse = parse_node_info,
                           .fields = {ID, DEVICE_NAME, PROJECT_NAME, PROJECT_ID, ENTERPRISE_NAME,
                                      ENTERPRISE_ID}},
    [SECTION_APPS] = {.topic = "AppInstanceConfig",
                      .parse = parse_apps,
                      .deletes_nothing_in_departure = true,
                      .fields = {APPS, NETWORK_INSTANCES, CIPHER_CONTEXTS, ID}},
    [SECTION_DISKS] = {.topic = "EdgeNodeDisks", .parse = parse_disks, .fields = {DISKS}},
    [SECTION_PATCH_ENVELOPES] = {.topic = "PatchEnvelopeInfoList",
                                 .parse = parse_patch_envelopes,
                                 .is_persistent = true,
                                 .fields = {PATCH_ENVELOPES, CIPHER_CONTEXTS}},
};

void parse_hash_message(const ProtobufCMessage *m, unsigned char ret[SHA256_BYTES])
{
    ARENA_AUTO a = arena_new();
    pki_sha256(m ? pb_pack(a, m) : STR(""), ret);
}

void parse_hash(const struct section *s, const Eve__Config__EdgeDevConfig *config,
                unsigned char ret[SHA256_BYTES])
{
    Eve__Config__EdgeDevConfig part = EVE__CONFIG__EDGE_DEV_CONFIG__INIT;
    for (size_t i = 0; i < SECTION_MAX_FIELDS && s->fields[i]; i++)
        pb_share_field(&part.message, &config->message, s->fields[i]);
    parse_hash_message(&part.message, ret);
}

int64_t parse_timestamp_us(const Eve__Config__EdgeDevConfig *config)
{
    /* 0001-01-01 to 9999-12-31, as protobuf has it. */
    const int64_t first_s = -62135596800, last_s = 253402300799;
    const Google__Protobuf__Timestamp *t = config->config_timestamp;
    if (!t || t->seconds < first_s || t->seconds > last_s || t->nanos < 0 || t->nanos > 999999999)
        return 0;
    return t->seconds * 1000000 + t->nanos / 1000;
}

bool parse_is_network_io(int type)
{
    switch (type) {
    case EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth:
    case EVE__COMMON__PHY_IO_TYPE__PhyIoNetWLAN:
    case EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN:
    case EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthPF:
    case EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthVF:
        return true;
    default:
        return false;
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) (c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool parse_mac(struct str text, unsigned char ret[6])
{
    if (text.n != 17 || (text.p[2] != ':' && text.p[2] != '-'))
        return false;
    for (size_t i = 0; i < 6; i++) {
        const int high = hex_digit(text.p[3 * i]), low = hex_digit(text.p[3 * i + 1]);
        if (high < 0 || low < 0 || (i < 5 && text.p[3 * i + 2] != text.p[2]))
            return false;
        ret[i] = (unsigned char) (high << 4 | low);
    }
    return true;
}

struct json *parse_bytes_list(struct arena *a, const ProtobufCBinaryData *items, size_t n)
{
    struct json *list = n ? json_new(a, json_array()) : NULL;
    for (size_t i = 0; i < n; i++)
        json_push(a, list, gotype_bytes_value(a, pb_bytes(items[i])));
    return list;
}

struct json *parse_host_names(struct parse *p, Eve__Common__ZnetStaticDNSEntry *const *entries,
                              size_t n, struct str *ret_bad)
{
    struct json *list = json_new(p->arena, json_array());
    for (size_t i = 0; i < n; i++) {
        struct gotype g = gotype_new(p->arena);
        struct json ips = json_array();
        for (size_t k = 0; k < entries[i]->n_address; k++) {
            struct address address;
            if (address_parse(str_of(entries[i]->address[k]), &address))
                json_push(p->arena, &ips, json_string(address_text(p->arena, &address)));
            else if (ret_bad && !ret_bad->p)
                *ret_bad = str_of(entries[i]->address[k]);
        }
        gotype_text(&g, "HostName", pb_text(entries[i]->hostname));
        gotype_value(&g, "IPs", &ips);
        json_push(p->arena, list, *g.object);
    }
    return list;
}

static struct json *probe_value(struct arena *a, int method, struct str host, unsigned port)
{
    struct gotype g = gotype_new(a);
    gotype_int(&g, "Method", method);
    gotype_text(&g, "ProbeHost", host);
    gotype_int(&g, "ProbePort", port);
    return g.object;
}

struct json *parse_no_probe(struct arena *a)
{
    return probe_value(a, 0, STR(""), 0);
}

struct str parse_probe(struct parse *p, const Eve__Common__ConnectivityProbe *probe,
                       struct json **ret)
{
    const Eve__Common__ProbeEndpoint *e = probe ? probe->probe_endpoint : NULL;
    const struct str host = e ? pb_text(e->host) : STR("");
    *ret = parse_no_probe(p->arena);
    if (!probe)
        return STR_NONE;
    switch (probe->probe_method) {
    case EVE__COMMON__CONNECTIVITY_PROBE_METHOD__CONNECTIVITY_PROBE_METHOD_UNSPECIFIED:
        return STR_NONE;
    case EVE__COMMON__CONNECTIVITY_PROBE_METHOD__CONNECTIVITY_PROBE_METHOD_ICMP:
        *ret = probe_value(p->arena, probe->probe_method, host, 0);
        return STR_NONE;
    case EVE__COMMON__CONNECTIVITY_PROBE_METHOD__CONNECTIVITY_PROBE_METHOD_TCP:
        if (!host.n)
            return STR("missing probe endpoint host");
        if (!e->port || e->port > 65535)
            return arena_printf(p->arena, "invalid probe endpoint port: %u", e->port);
        *ret = probe_value(p->arena, probe->probe_method, host, e->port);
        return STR_NONE;
    default:
        return arena_printf(p->arena, "unrecognized connectivity probe method: %d",
                            (int) probe->probe_method);
    }
}
