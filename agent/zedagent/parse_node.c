/* SPDX-License-Identifier: Apache-2.0 */
/* Who the device is and which cluster it belongs to: EdgeNodeInfo, EdgeNodeClusterConfig. */
#include "zedagent/parse_internal.h"

struct json *parse_node_info(struct parse *p)
{
    const Eve__Config__EdgeDevConfig *c = p->config;
    struct json *all = json_new(p->arena, json_object());
    struct gotype g = gotype_new(p->arena);
    gotype_text(&g, "DeviceName", pb_text(c->device_name));
    gotype_uuid(&g, "DeviceID", c->id ? pb_text(c->id->uuid) : STR(""));
    gotype_text(&g, "ProjectName", pb_text(c->project_name));
    gotype_uuid(&g, "ProjectID", pb_text(c->project_id));
    gotype_text(&g, "EnterpriseName", pb_text(c->enterprise_name));
    gotype_text(&g, "EnterpriseID", pb_text(c->enterprise_id));
    json_append_member(p->arena, all, STR("global"), *g.object);
    return all;
}

static bool has_native_orchestration(const Eve__Config__EdgeNodeCluster *c)
{
    return c->cluster_type == EVE__CONFIG__CLUSTER_TYPE__CLUSTER_TYPE_K3S_BASE ||
           (c->cluster_type == EVE__CONFIG__CLUSTER_TYPE__CLUSTER_TYPE_REPLICATED_STORAGE &&
            c->enable_native_k8s_orchestration);
}

/* The first range of each interface. */
static struct json *balanced_interfaces(struct parse *p, const Eve__Config__EdgeNodeCluster *c)
{
    struct json *list = NULL;
    const Eve__Config__LoadBalancerService *s = c->load_balancer_service;
    if (!s || !has_native_orchestration(c))
        return NULL;
    for (size_t i = 0; i < s->n_interfaces; i++) {
        const Eve__Config__LoadBalancerInterface *face = s->interfaces[i];
        struct gotype g = gotype_new(p->arena);
        if (!pb_text(face->interface_name).n || !face->n_address_cidrs ||
            !subnet_parse(str_of(face->address_cidrs[0]), NULL, NULL))
            continue;
        gotype_text(&g, "Interface", pb_text(face->interface_name));
        gotype_text(&g, "IPPrefix", str_of(face->address_cidrs[0]));
        list = list ? list : json_new(p->arena, json_array());
        json_push(p->arena, list, *g.object);
    }
    return list;
}

/* A list that holds something else than UUIDs is not to be trusted. */
static struct json *master_nodes(struct parse *p, const Eve__Config__EdgeNodeCluster *c)
{
    struct json *list = NULL;
    for (size_t i = 0; i < c->n_master_node_uuids; i++) {
        const struct json id = gotype_uuid_value(p->arena, str_of(c->master_node_uuids[i]));
        if (!c->master_node_uuids[i][0])
            continue;
        if (str_eq(json_str(&id), PARSE_NIL_UUID))
            return NULL;
        list = list ? list : json_new(p->arena, json_array());
        json_push(p->arena, list, id);
    }
    return list;
}

static struct json *identity_value(struct parse *p, struct str id)
{
    struct gotype g = gotype_new(p->arena);
    gotype_uuid(&g, "UUID", id);
    gotype_text(&g, "Version", STR(""));
    return g.object;
}

static bool is_uuid(struct parse *p, struct str id)
{
    const struct json canonical = gotype_uuid_value(p->arena, id);
    return !str_eq(json_str(&canonical), PARSE_NIL_UUID) || str_eq(id, PARSE_NIL_UUID);
}

/* NULL: something in it makes no sense. */
static struct json *cluster_value(struct parse *p, const Eve__Config__EdgeNodeCluster *c)
{
    struct gotype g = gotype_new(p->arena), token = gotype_new(p->arena);
    struct address own, server;
    struct subnet prefix;
    const struct str tie_breaker = pb_text(c->tie_breaker_node_id);
    if (!subnet_parse(pb_text(c->cluster_ip_prefix), &own, &prefix) ||
        !address_parse(pb_text(c->join_server_ip), &server) ||
        !is_uuid(p, pb_text(c->cluster_id)) || (tie_breaker.n && !is_uuid(p, tie_breaker)) ||
        parse_cipher_block(p, &token, STR("global"), c->encrypted_cluster_token).n)
        return NULL;
    prefix.base = own;
    gotype_bool(&g, "Initialized", true);
    gotype_bool(&g, "Valid", true);
    gotype_text(&g, "ClusterName", pb_text(c->cluster_name));
    gotype_value(&g, "ClusterID", identity_value(p, pb_text(c->cluster_id)));
    gotype_text(&g, "ClusterInterface", pb_text(c->cluster_interface));
    gotype_subnet(&g, "ClusterIPPrefix", &prefix);
    gotype_bool(&g, "IsWorkerNode", c->is_worker_node);
    gotype_address(&g, "JoinServerIP", &server);
    gotype_bool(&g, "BootstrapNode", address_cmp(&own, &server) == 0);
    gotype_value(&g, "CipherToken", token.object);
    gotype_value(&g, "CipherGzipRegistrationManifestYaml", token.object);
    gotype_int(&g, "ClusterType", c->cluster_type);
    gotype_value(&g, "TieBreakerNodeID", identity_value(p, tie_breaker));
    gotype_bool(&g, "EnableNativeK8SOrchestration", c->enable_native_k8s_orchestration);
    gotype_value(&g, "LBInterfaces", balanced_interfaces(p, c));
    gotype_value(&g, "MasterNodeIDs", master_nodes(p, c));
    return g.object;
}

struct json *parse_cluster(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    struct json *value = p->config->cluster ? cluster_value(p, p->config->cluster) : NULL;
    struct gotype none = gotype_new(p->arena);
    gotype_bool(&none, "Initialized", true);
    gotype_bool(&none, "Valid", false);
    json_append_member(p->arena, all, STR("global"), value ? *value : *none.object);
    return all;
}
