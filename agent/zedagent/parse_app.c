/* SPDX-License-Identifier: Apache-2.0 */
/* Application instances: AppInstanceConfig. */
#include "zedagent/parse_internal.h"

#include "base/uuid.h"

#include <stdlib.h>

#define FEW_RULES 20 /* never too large by themselves */
#define SECOND_NS 1000000000LL

enum { MODE_NOHYPER = 4 };
enum { SOURCE_CONTROLLER = 2 };

static const Eve__Config__UUIDandVersion *identity_of(const Eve__Config__AppInstanceConfig *app)
{
    static const Eve__Config__UUIDandVersion none = EVE__CONFIG__UUIDAND_VERSION__INIT;
    return app->uuidandversion ? app->uuidandversion : &none;
}

static const Eve__Config__VmConfig *resources_of(const Eve__Config__AppInstanceConfig *app)
{
    static const Eve__Config__VmConfig none = EVE__CONFIG__VM_CONFIG__INIT;
    return app->fixedresources ? app->fixedresources : &none;
}

static void add_error(struct arena *a, struct json **errors, struct str error)
{
    if (!*errors)
        *errors = json_new(a, json_array());
    json_push(a, *errors, gotype_string(a, error));
}

/* ---- the machine ------------------------------------------------------------------------------
 */

static struct json *resources_value(struct parse *p, const Eve__Config__VmConfig *v)
{
    struct gotype g = gotype_new(p->arena);
    gotype_text(&g, "Kernel", pb_text(v->kernel));
    gotype_text(&g, "Ramdisk", pb_text(v->ramdisk));
    gotype_int(&g, "Memory", v->memory);
    gotype_int(&g, "MaxMem", v->maxmem);
    gotype_int(&g, "VMMMaxMem", v->vmm_maxmem);
    gotype_int(&g, "VCpus", v->vcpus);
    gotype_int(&g, "MaxCpus", v->maxcpus);
    gotype_text(&g, "RootDev", pb_text(v->rootdev));
    gotype_text(&g, "ExtraArgs", STR(""));
    gotype_text(&g, "BootLoader", pb_text(v->bootloader));
    gotype_text(&g, "CPUs", STR(""));
    gotype_text(&g, "DeviceTree", STR(""));
    gotype_value(&g, "DtDev", NULL);
    gotype_value(&g, "IRQs", NULL);
    gotype_value(&g, "IOMem", NULL);
    gotype_int(&g, "VirtualizationMode", v->virtualizationmode);
    gotype_bool(&g, "EnableVnc", v->enable_vnc);
    gotype_bool(&g, "EnableVncShimVM", v->enable_vnc_shim_vm);
    gotype_int(&g, "VncDisplay", v->vncdisplay);
    gotype_text(&g, "VncPasswd", pb_text(v->vncpasswd));
    gotype_bool(&g, "CPUsPinned", v->pin_cpu);
    gotype_bool(&g, "EnforceNetworkInterfaceOrder", v->enforce_network_interface_order);
    gotype_bool(&g, "EnableOemWinLicenseKey", v->enable_oem_win_license_key);
    gotype_bool(&g, "DisableVirtualTPM", v->disable_vtpm);
    gotype_int(&g, "BootOrder", v->boot_order);
    return g.object;
}

static struct json *volume_refs(struct parse *p, const Eve__Config__AppInstanceConfig *app)
{
    struct json *list = json_new(p->arena, json_array());
    for (size_t i = 0; i < app->n_volumereflist; i++) {
        const Eve__Config__VolumeRef *r = app->volumereflist[i];
        struct gotype g = gotype_new(p->arena);
        gotype_uuid(&g, "VolumeID", pb_text(r->uuid));
        gotype_int(&g, "GenerationCounter", r->generationcount);
        gotype_int(&g, "LocalGenerationCounter", 0);
        gotype_uuid(&g, "AppUUID", pb_text(identity_of(app)->uuid));
        gotype_text(&g, "MountDir", pb_text(r->mount_dir));
        gotype_bool(&g, "VerifyOnly", true);
        json_push(p->arena, list, *g.object);
    }
    return list;
}

static struct json *counter_value(struct arena *a, const Eve__Config__InstanceOpsCmd *c)
{
    struct gotype g = gotype_new(a);
    gotype_int(&g, "Counter", c ? c->counter : 0);
    gotype_text(&g, "ApplyTime", c ? pb_text(c->opstime) : STR(""));
    return g.object;
}

static struct json *snapshot_value(struct parse *p, const Eve__Config__SnapshotConfig *s)
{
    struct gotype g = gotype_new(p->arena);
    struct json *list = s ? json_new(p->arena, json_array()) : NULL;
    for (size_t i = 0; s && i < s->n_snapshots; i++) {
        struct gotype one = gotype_new(p->arena);
        gotype_text(&one, "SnapshotID", pb_text(s->snapshots[i]->id));
        gotype_int(&one, "SnapshotType", s->snapshots[i]->type);
        json_push(p->arena, list, *one.object);
    }
    gotype_text(&g, "ActiveSnapshot", s ? pb_text(s->active_snapshot) : STR(""));
    gotype_int(&g, "MaxSnapshots", s ? s->max_snapshots : 0);
    gotype_value(&g, "RollbackCmd", counter_value(p->arena, s ? s->rollback_cmd : NULL));
    gotype_value(&g, "Snapshots", list);
    return g.object;
}

/* ---- what it is attached to -------------------------------------------------------------------
 */

static struct json *rule_value(struct arena *a, const Eve__Config__ACE *c)
{
    struct gotype g = gotype_new(a);
    struct json matches = json_array(), actions = json_array();
    for (size_t i = 0; i < c->n_matches; i++) {
        struct gotype m = gotype_new(a);
        gotype_text(&m, "Type", pb_text(c->matches[i]->type));
        gotype_text(&m, "Value", pb_text(c->matches[i]->value));
        json_push(a, &matches, *m.object);
    }
    for (size_t i = 0; i < c->n_actions; i++) {
        const Eve__Config__ACEAction *action = c->actions[i];
        struct gotype o = gotype_new(a);
        gotype_bool(&o, "Drop", action->drop);
        gotype_bool(&o, "Limit", action->limit);
        gotype_int(&o, "LimitRate", action->limitrate);
        gotype_text(&o, "LimitUnit", pb_text(action->limitunit));
        gotype_int(&o, "LimitBurst", action->limitburst);
        gotype_bool(&o, "PortMap", action->portmap);
        gotype_int(&o, "TargetPort", action->appport);
        json_push(a, &actions, *o.object);
    }
    gotype_value(&g, "Matches", &matches);
    gotype_value(&g, "Actions", &actions);
    gotype_text(&g, "Name", pb_text(c->name));
    gotype_int(&g, "RuleID", c->id);
    gotype_int(&g, "Dir", c->dir);
    return g.object;
}

/* Of one interface, while they are put in order. */
struct adapter {
    struct str name, network, error;
    struct address address;
    unsigned char mac[6];
    bool has_mac, has_rules;
    uint32_t order, index;
    size_t position;
    const Eve__Config__NetworkAdapter *config;
};

static struct str find_error(struct parse *p, const Eve__Config__AppInstanceConfig *app,
                             const struct map *instances, struct adapter *d)
{
    const Eve__Config__NetworkAdapter *c = d->config;
    const struct str mac = pb_text(c->macaddress), addr = pb_text(c->addr);
    const struct str id = pb_text(c->networkid);
    const struct str who =
        arena_printf(p->arena, "App %.*s-%.*s", STR_ARG(pb_text(app->displayname)),
                     STR_ARG(pb_text(identity_of(app)->uuid)));
    struct uuid u;
    if (!map_get(instances, id))
        return arena_printf(p->arena, "%.*s: Can't find %.*s in network instances.\n", STR_ARG(who),
                            STR_ARG(id));
    if (uuid_parse(id, &u) < 0)
        return arena_printf(p->arena, "%.*s: Malformed Network UUID %.*s\n", STR_ARG(who),
                            STR_ARG(id));
    d->network = id;
    d->has_mac = mac.n && parse_mac(mac, d->mac);
    if (mac.n && !d->has_mac)
        return arena_printf(p->arena, "%.*s: bad MAC:%.*s\n", STR_ARG(who), STR_ARG(mac));
    if (addr.n && !address_parse(addr, &d->address))
        return arena_printf(p->arena, "%.*s: bad AppIPAddr:%.*s\n", STR_ARG(who), STR_ARG(addr));
    if (d->address.n == 16)
        return arena_printf(p->arena, "Static IPv6 addressing (%.*s) not yet supported.\n",
                            STR_ARG(addr));
    d->has_rules = true;
    return STR_NONE;
}

/* Where the controller does not say in which order interfaces come, the first rule's number does.
 */
static uint32_t order_of(const Eve__Config__VmConfig *v, const Eve__Config__NetworkAdapter *c)
{
    if (v->enforce_network_interface_order)
        return c->interface_order;
    for (size_t i = 0; i < c->n_acls; i++)
        if (c->acls[i]->id > 0)
            return (uint32_t) c->acls[i]->id;
    return 0;
}

static int compare_adapters(const void *a, const void *b)
{
    const struct adapter *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

static struct json *adapter_value(struct parse *p, const struct adapter *d)
{
    struct gotype g = gotype_new(p->arena);
    struct json rules = json_array();
    for (size_t i = 0; d->has_rules && i < d->config->n_acls; i++)
        json_push(p->arena, &rules, *rule_value(p->arena, d->config->acls[i]));
    gotype_text(&g, "Name", d->name);
    gotype_bytes(&g, "AppMacAddr",
                 d->has_mac ? str_range((const char *) d->mac, sizeof(d->mac)) : STR(""));
    gotype_address(&g, "AppIPAddr", &d->address);
    gotype_int(&g, "IntfOrder", d->order);
    gotype_text(&g, "Error", d->error);
    gotype_uuid(&g, "Network", d->network);
    gotype_value(&g, "ACLs", d->has_rules ? &rules : NULL);
    gotype_int(&g, "AccessVlanID", d->has_rules ? d->config->access_vlan_id : 0);
    gotype_int(&g, "IfIdx", d->index);
    gotype_bool(&g, "AllowToDiscover", d->has_rules && d->config->allow_to_discover);
    return g.object;
}

/* Interfaces on one network are numbered. */
static void number_adapters(struct arena *a, struct adapter *list, size_t n)
{
    CLEANUP(map_done) struct map next = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t *count = map_get(&next, list[i].network);
        if (!count) {
            count = ARENA_NEW(a, uint32_t);
            (void) map_put(&next, list[i].network, count);
        }
        list[i].index = (*count)++;
    }
}

static struct json *adapters_value(struct parse *p, const Eve__Config__AppInstanceConfig *app,
                                   const struct map *instances, struct json **errors)
{
    struct adapter *list = ARENA_ARRAY(p->arena, struct adapter, app->n_interfaces);
    struct json *values = NULL;
    size_t n = 0;
    for (size_t i = 0; i < app->n_interfaces; i++) {
        struct adapter *d = &list[n];
        const Eve__Config__NetworkInstanceConfig *instance;
        *d = (struct adapter){.config = app->interfaces[i], .position = i, .network = STR("")};
        instance = map_get(instances, pb_text(d->config->networkid));
        if (instance && instance->insttype == EVE__CONFIG__ZNETWORK_INST_TYPE__ZnetInstMesh)
            continue;
        d->name = pb_text(d->config->name);
        d->error = find_error(p, app, instances, d);
        d->order = d->has_rules ? order_of(resources_of(app), d->config) : 0;
        if (d->error.n)
            add_error(p->arena, errors, d->error);
        n++;
    }
    qsort(list, n, sizeof(*list), compare_adapters);
    number_adapters(p->arena, list, n);
    for (size_t i = 0; i < n; i++) {
        values = values ? values : json_new(p->arena, json_array());
        json_push(p->arena, values, *adapter_value(p, &list[i]));
    }
    return values;
}

static struct json *io_adapters(struct parse *p, const Eve__Config__AppInstanceConfig *app)
{
    struct json *list = NULL;
    for (size_t i = 0; i < app->n_adapters; i++) {
        const Eve__Config__Adapter *c = app->adapters[i];
        const bool is_vf = c->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthVF && c->eth_vf;
        struct gotype g = gotype_new(p->arena), vf = gotype_new(p->arena);
        unsigned char mac[6];
        if (is_vf && c->eth_vf->vlan_id > PARSE_MAX_VLAN)
            continue;
        gotype_int(&vf, "Index", 0);
        gotype_text(&vf, "PciLong", STR(""));
        gotype_text(&vf, "Mac",
                    is_vf && parse_mac(pb_text(c->eth_vf->mac), mac) ? pb_text(c->eth_vf->mac)
                                                                     : STR(""));
        gotype_int(&vf, "VlanID", is_vf ? c->eth_vf->vlan_id : 0);
        gotype_int(&g, "Type", c->type);
        gotype_text(&g, "Name", pb_text(c->name));
        gotype_value(&g, "EthVf", vf.object);
        gotype_int(&g, "IntfOrder",
                   parse_is_network_io(c->type) &&
                           resources_of(app)->enforce_network_interface_order
                       ? c->interface_order
                       : 0);
        list = list ? list : json_new(p->arena, json_array());
        json_push(p->arena, list, *g.object);
    }
    return list;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static void check_orders(struct parse *p, const struct json *list, bool is_direct,
                         struct map *orders, struct json **errors)
{
    JSON_FOR_EACH_ITEM (list, adapter) {
        const int64_t order = json_get_int(adapter, STR("IntfOrder"), 0);
        const struct str key = arena_printf(p->arena, "%lld", (long long) order);
        const struct json *other = map_get(orders, key);
        if (is_direct && !parse_is_network_io((int) json_get_int(adapter, STR("Type"), 0)))
            continue;
        if (other)
            add_error(p->arena, errors,
                      arena_printf(p->arena,
                                   "%s network adapter %.*s has the same interface order (%lld) "
                                   "configured as adapter %.*s",
                                   is_direct ? "directly attached" : "virtual",
                                   STR_ARG(json_get_str(adapter, STR("Name"))), (long long) order,
                                   STR_ARG(json_get_str(other, STR("Name")))));
        else
            (void) map_put(orders, key, adapter);
    }
}

static void check_app(struct parse *p, const Eve__Config__AppInstanceConfig *app,
                      const struct json *adapters, const struct json *ios, struct json **errors)
{
    const Eve__Config__VmConfig *v = resources_of(app);
    const struct str id = pb_text(identity_of(app)->uuid);
    CLEANUP(map_done) struct map orders = {0};
    if (app->service && (int) v->virtualizationmode != MODE_NOHYPER)
        add_error(p->arena, errors,
                  arena_printf(p->arena,
                               "service app instance %.*s must have NOHYPER VirtualizationMode",
                               STR_ARG(id)));
    if (!v->enable_vnc && v->enable_vnc_shim_vm)
        add_error(p->arena, errors,
                  arena_printf(p->arena,
                               "VNC shim VM enabled but VNC disabled for app instance %.*s",
                               STR_ARG(id)));
    if (!v->enforce_network_interface_order)
        return;
    check_orders(p, adapters, /* is_direct= */ false, &orders, errors);
    check_orders(p, ios, /* is_direct= */ true, &orders, errors);
}

static bool is_designated(const struct parse *p, const Eve__Config__AppInstanceConfig *app)
{
    const struct str node = pb_text(app->designated_node_id);
    return !node.n || (p->config->id && str_eq(node, pb_text(p->config->id->uuid)));
}

static void write_data(struct parse *p, struct gotype *g, const Eve__Config__AppInstanceConfig *app)
{
    const struct str user_data = pb_text(app->userdata);
    struct address stats;
    const bool has_stats = address_parse(pb_text(app->collectstatsipaddr), &stats);
    if (user_data.n)
        gotype_text(g, "pubsub-large-CloudInitUserData", user_data);
    else
        gotype_value(g, "pubsub-large-CloudInitUserData", NULL);
    gotype_bool(g, "RemoteConsole", app->remoteconsole);
    gotype_address(g, "CollectStatsIPAddr", has_stats ? &stats : NULL);
    (void) parse_cipher_block(p, g,
                              json_get_str(json_get(g->object, STR("UUIDandVersion")), STR("UUID")),
                              app->cipherdata);
    gotype_int(g, "MetaDataType", app->metadatatype);
    gotype_texts(g, "ProfileList", app->profile_list, app->n_profile_list);
    gotype_int(g, "Delay", (int64_t) app->start_delay_in_seconds * SECOND_NS);
    gotype_bool(g, "Service", app->service);
    gotype_int(g, "CloudInitVersion", app->cloud_init_version);
}

static struct json *app_value(struct parse *p, const Eve__Config__AppInstanceConfig *app,
                              const struct map *instances)
{
    struct gotype g = gotype_new(p->arena), id = gotype_new(p->arena);
    const Eve__Config__VmConfig *v = resources_of(app);
    struct json *errors = NULL;
    struct json *adapters = adapters_value(p, app, instances, &errors);
    struct json *ios = io_adapters(p, app);
    check_app(p, app, adapters, ios, &errors);
    gotype_uuid(&id, "UUID", pb_text(identity_of(app)->uuid));
    gotype_text(&id, "Version", pb_text(identity_of(app)->version));
    gotype_value(&g, "UUIDandVersion", id.object);
    gotype_text(&g, "DisplayName", pb_text(app->displayname));
    gotype_value(&g, "Errors", errors);
    gotype_value(&g, "FixedResources", resources_value(p, v));
    gotype_bool(&g, "DisableLogs", v->disablelogs);
    gotype_value(&g, "VolumeRefConfigList", volume_refs(p, app));
    gotype_bool(&g, "Activate", app->activate);
    gotype_value(&g, "AppNetAdapterList", adapters);
    gotype_value(&g, "IoAdapterList", ios);
    gotype_value(&g, "RestartCmd", counter_value(p->arena, app->restart));
    gotype_value(&g, "PurgeCmd", counter_value(p->arena, app->purge));
    gotype_value(&g, "LocalRestartCmd", counter_value(p->arena, NULL));
    gotype_value(&g, "LocalPurgeCmd", counter_value(p->arena, NULL));
    write_data(p, &g, app);
    gotype_value(&g, "Snapshot", snapshot_value(p, app->snapshot));
    gotype_bool(&g, "IsDesignatedNodeID", is_designated(p, app));
    gotype_int(&g, "AffinityType", app->affinity);
    gotype_int(&g, "DeploymentType", app->runtime_type);
    gotype_int(&g, "ControllerBootOrder", v->boot_order);
    gotype_int(&g, "BootOrderSource", v->boot_order ? SOURCE_CONTROLLER : 0);
    return g.object;
}

struct json *parse_apps(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    CLEANUP(map_done) struct map instances = {0};
    if (!p->config->id || !pb_text(p->config->id->uuid).n)
        return NULL;
    for (size_t i = 0; i < p->config->n_networkinstances; i++) {
        Eve__Config__NetworkInstanceConfig *c = p->config->networkinstances[i];
        if (c->uuidandversion)
            (void) map_put(&instances, pb_text(c->uuidandversion->uuid), c);
    }
    for (size_t i = 0; i < p->config->n_apps; i++) {
        struct json *value = app_value(p, p->config->apps[i], &instances);
        json_append_member(p->arena, all,
                           json_get_str(json_get(value, STR("UUIDandVersion")), STR("UUID")),
                           *value);
    }
    return all;
}

struct json *parse_shrink_app(struct arena *a, const struct json *app)
{
    struct json *copy = json_new(a, json_clone(a, app)), *errors;
    const size_t clear = json_get_str(copy, STR("pubsub-large-CloudInitUserData")).n;
    const size_t sealed = json_get_str(copy, STR("pubsub-large-CipherData")).n / 4 * 3;
    size_t n_rules = 0;
    struct str error;
    JSON_FOR_EACH_ITEM (json_get(copy, STR("AppNetAdapterList")), adapter) {
        n_rules += json_count(json_get(adapter, STR("ACLs")));
        (void) json_set(a, adapter, STR("ACLs"), json_null());
    }
    if (!clear && !sealed)
        error = arena_printf(a, "App instance has too many ACLs: %zu", n_rules);
    else if (n_rules < FEW_RULES)
        error = arena_printf(a, "App instance cloud-init user data too large: %zu + %zu bytes",
                             clear, sealed);
    else
        error = arena_printf(
            a, "App instance cloud-init user data %zu + %zu bytes plus %zu ACLs too large", clear,
            sealed, n_rules);
    errors = json_get(copy, STR("Errors"));
    if (!json_is(errors, JSON_ARRAY))
        errors = json_set(a, copy, STR("Errors"), json_array());
    json_push(a, errors, json_string(error));
    (void) json_set(a, copy, STR("pubsub-large-CloudInitUserData"), json_null());
    (void) json_set(a, copy, STR("pubsub-large-CipherData"), json_null());
    return copy;
}
