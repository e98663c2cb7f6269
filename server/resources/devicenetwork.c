/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceNetworks: a network of applications on a port that a NetworkConfig describes. */
#include "api/object_meta.h"
#include "resources/addresses.h"
#include "resources/affinity.h"
#include "resources/eve_references.h"
#include "resources/identity.h"
#include "resources/resources.h"

/* The network, its broadcast, the device and one application. */
#define SUBNET_MAX_BITS_V4 30

static void check_subnet(struct causes *causes, const struct field_path *at,
                         const struct json *value, bool is_switch)
{
    struct ip_network n;
    if (!json_str(value).n)
        return;
    if (is_switch)
        causes_add(causes, CAUSE_FORBIDDEN, at, NULL,
                   "a switch has no addresses of its own: applications are on the network of the "
                   "port");
    else if (!ip_network_parse(json_str(value), &n))
        causes_add(causes, CAUSE_INVALID, at, value,
                   "must be a valid CIDR block, (e.g. 10.9.8.0/24)");
    else if (n.address.version != 4)
        causes_add(causes, CAUSE_INVALID, at, value, "must be an IPv4 network");
    else if (n.n_bits > SUBNET_MAX_BITS_V4)
        causes_add(causes, CAUSE_INVALID, at, value, "must have at least 4 addresses");
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("spec"));
    const struct json *spec = json_get(object, STR("spec"));
    if (h->subresource.n)
        return;
    check_subnet(causes, &FIELD_NAME(&at, STR("subnet")), json_get(spec, STR("subnet")),
                 str_is(json_get_str(spec, STR("type")), "switch"));
    affinity_check(causes, &at, spec);
}

/* A device refuses another type for a network that it has. */
static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    identity_check(h, old, object, causes);
    if (!h->subresource.n)
        object_meta_check_immutable(causes, &FIELD_NAME(&spec, STR("type")),
                                    json_at(old, "spec", "type", NULL),
                                    json_at(object, "spec", "type", NULL));
}

/* A device reaches its controller only from a port that has an address. */
static void check_config(struct reference_reader *reader, const struct reference *r,
                         const struct json *target, struct causes *causes)
{
    (void) reader;
    const struct json name = json_string(r->name);
    if (str_is(r->detail, "management") &&
        str_is(json_str(json_at(target, "spec", "ip", NULL)), "none"))
        causes_add_text(causes, CAUSE_INVALID, r->field, &name,
                        STR("this NetworkConfig has no addresses (ip: none), which needs "
                            "management: false here"));
}

static void refer(struct reference_list *l, const struct json *object)
{
    const struct field_path spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *fields = json_get(object, STR("spec"));
    const bool is_management = json_get_bool(fields, STR("management"), true);
    reference_add(l, &FIELD_NAME(&spec, STR("networkConfig")),
                  &(struct reference){.collection = COLLECTION_NETWORK_CONFIGS,
                                      .namespace = eve_namespace_of(object),
                                      .name = json_get_str(fields, STR("networkConfig")),
                                      .check = check_config,
                                      .detail = is_management ? STR("management") : STR("")});
}

const struct kind_hooks devicenetwork_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("devicenetworks"),
    .prepare = identity_prepare,
    .validate = validate,
    .validate_update = validate_update,
    .refer = refer,
    .has_users = true,
};
