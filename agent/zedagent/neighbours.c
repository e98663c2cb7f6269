/* SPDX-License-Identifier: Apache-2.0 */
/* What other services say that decides what is done with a configuration. */
#include "protobuf/message.h"
#include "zedagent/zedagent_internal.h"

static unsigned read_reasons(const struct json *list)
{
    unsigned reasons = 0;
    JSON_FOR_EACH_ITEM (list, item)
        if (json_is(item, JSON_INT) && item->i > 0 && item->i < 32)
            reasons |= 1u << item->i;
    return reasons;
}

static void on_nodeagent(void *arg, struct str key, const struct json *v)
{
    struct zedagent *z = arg;
    struct neighbours *n = &z->neighbours;
    (void) key;
    const bool was_testing = n->is_testing_update;
    const bool was_going = n->is_rebooting || n->is_shutting_down || n->is_powering_off;
    n->has_nodeagent = true;
    n->boot_reason = (int) json_get_int(v, STR("BootReason"), 0);
    n->is_testing_update = json_get_bool(v, STR("UpdateInprogress"), false);
    n->is_rebooting = json_get_bool(v, STR("DeviceReboot"), false);
    n->is_shutting_down = json_get_bool(v, STR("DeviceShutdown"), false);
    n->is_powering_off = json_get_bool(v, STR("DevicePoweroff"), false);
    n->are_domains_halted = json_get_bool(v, STR("AllDomainsHalted"), false);
    n->is_maintenance = json_get_bool(v, STR("LocalMaintenanceMode"), false);
    n->maintenance_reasons = read_reasons(json_get(v, STR("LocalMaintenanceModeReasons")));
    if (!was_going && (n->is_rebooting || n->is_shutting_down || n->is_powering_off))
        topics_stop_apps(z);
    if (was_testing && !n->is_testing_update)
        command_run_deferred(z);
    status_merge_maintenance(z);
}

static void on_nodeagent_again(void *arg, struct str key, const struct json *v,
                               const struct json *old)
{
    (void) old;
    on_nodeagent(arg, key, v);
}

/* An update that failed lets what waited for it go on. */
static void on_image(void *arg, struct str key, const struct json *v)
{
    struct zedagent *z = arg;
    (void) key;
    if (json_get_str(v, STR("Error")).n)
        cycle_forget(z);
}

static void on_image_again(void *arg, struct str key, const struct json *v, const struct json *old)
{
    if (!str_eq(json_get_str(v, STR("Error")), json_get_str(old, STR("Error"))))
        on_image(arg, key, v);
}

static int subscribe(struct zedagent *z, const char *agent, const char *topic,
                     const struct subscription_handlers *h, struct subscription **ret)
{
    const struct pubsub_name name = {.agent = str_of(agent), .topic = str_of(topic)};
    return subscription_new(z->node->pubsub, &name, h, z, ret);
}

int neighbours_open(struct zedagent *z)
{
    static const struct subscription_handlers nodeagent = {.on_create = on_nodeagent,
                                                           .on_modify = on_nodeagent_again};
    static const struct subscription_handlers images = {.on_create = on_image,
                                                        .on_modify = on_image_again};
    static const struct subscription_handlers none = {0};
    struct neighbours *n = &z->neighbours;
    int r = subscribe(z, "nodeagent", "NodeAgentStatus", &nodeagent, &n->nodeagent);
    if (r == 0)
        r = subscribe(z, "baseosmgr", "ZbootStatus", &none, &n->partitions);
    if (r == 0)
        r = subscribe(z, "baseosmgr", "BaseOsStatus", &images, &n->images);
    return r;
}

void neighbours_close(struct zedagent *z)
{
    subscription_free(z->neighbours.nodeagent);
    subscription_free(z->neighbours.partitions);
    subscription_free(z->neighbours.images);
}

/* Where nobody manages partitions, nothing can be updated. */
static struct str running_version(struct arena *a, const struct zedagent *z)
{
    size_t position = 0;
    struct str key, text;
    while (subscription_next(z->neighbours.partitions, &position, &key, &text)) {
        const struct json *v = json_parse_quick(a, text);
        if (json_get_bool(v, STR("CurrentPartition"), false))
            return json_get_str(v, STR("ShortVersion"));
    }
    return STR_NONE;
}

bool neighbours_is_updating(const struct zedagent *z, const Eve__Config__EdgeDevConfig *config)
{
    ARENA_AUTO a = arena_new();
    const Eve__Config__BaseOS *b = config->baseos;
    const struct str running = running_version(a, z);
    const struct json *image;
    if (!b || !b->activate || !running.n || str_eq(running, pb_text(b->base_os_version)))
        return false;
    image = subscription_get(a, z->neighbours.images, pb_text(b->content_tree_uuid));
    return !json_get_str(image, STR("Error")).n;
}
