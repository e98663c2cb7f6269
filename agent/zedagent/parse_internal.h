/* SPDX-License-Identifier: Apache-2.0 */
/* What the sections share. */
#pragma once

#include "base/map.h"
#include "protobuf/message.h"
#include "zedagent/address.h"
#include "zedagent/gotype.h"
#include "zedagent/parse.h"

#define PARSE_NIL_UUID STR("00000000-0000-0000-0000-000000000000")
#define PARSE_MAX_VLAN 4094
#define PARSE_MIN_MTU 1280
#define PARSE_MAX_MTU 65535

struct json *parse_cipher_contexts(struct parse *p);
struct json *parse_datastores(struct parse *p);
struct json *parse_physical_io(struct parse *p);
struct json *parse_scep(struct parse *p);
struct json *parse_networks(struct parse *p);
struct json *parse_ports(struct parse *p);
struct json *parse_base_os(struct parse *p);
struct json *parse_cluster(struct parse *p);
struct json *parse_network_instances(struct parse *p);
struct json *parse_content_trees(struct parse *p);
struct json *parse_volumes(struct parse *p);
struct json *parse_node_info(struct parse *p);
struct json *parse_apps(struct parse *p);
struct json *parse_disks(struct parse *p);
struct json *parse_patch_envelopes(struct parse *p);

/* CipherBlockStatus, embedded: its members, with the context and the error of incomplete data.
 * NULL: none but the id. Returns the error, absent: none. */
struct str parse_cipher_block(struct parse *p, struct gotype *g, struct str id,
                              const Eve__Common__CipherBlock *block);
/* The same with an error of the owner, which goes before. */
void parse_cipher_block_with_error(struct parse *p, struct gotype *g, struct str id,
                                   const Eve__Common__CipherBlock *block, struct str error);
/* As a value of its own. */
struct json *parse_cipher_value(struct parse *p, struct str id,
                                const Eve__Common__CipherBlock *block);

/* ProxyConfig. */
struct json *parse_proxy(struct arena *a, const Eve__Common__ProxyConfig *c);
/* Adapters that carry a network. */
bool parse_is_network_io(int type);
/* MAC addresses as Go's net.ParseMAC takes them, of six bytes. */
bool parse_mac(struct str text, unsigned char ret[6]);
/* [base64]; NULL: none. */
struct json *parse_bytes_list(struct arena *a, const ProtobufCBinaryData *items, size_t n);
/* [{HostName, IPs}]; *ret_bad (may be NULL) is the first that is no address. */
struct json *parse_host_names(struct parse *p, Eve__Common__ZnetStaticDNSEntry *const *entries,
                              size_t n, struct str *ret_bad);
/* {Method, ProbeHost, ProbePort}; an error in words, absent: none. */
struct str parse_probe(struct parse *p, const Eve__Common__ConnectivityProbe *probe,
                       struct json **ret);
/* {Method, ProbeHost, ProbePort} of nothing. */
struct json *parse_no_probe(struct arena *a);

/* What a port takes from its network. */
struct parse_network {
    struct json *value; /* NetworkXObjectConfig */
    struct str error;
    struct subnet subnet;
    int dhcp, type;
    unsigned mtu;
    bool is_wireless; /* it says how */
};
struct parse_network parse_one_network(struct parse *p, const Eve__Config__NetworkConfig *n);
