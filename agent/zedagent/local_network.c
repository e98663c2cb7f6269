/* SPDX-License-Identifier: Apache-2.0 */
/* How ports are to be configured, where that was ordered nearby: nim lays it over whatever the
 * controller says, as far as the controller lets it. */
#include "base/log.h"
#include "zedagent/parse_local.h"
#include "zedagent/zedagent_internal.h"

#define KEPT STR("checkpoint/localnetworkconfig")
#define KEY STR("lps")
/* Of the file alone: whose order it is. EVE, which keeps the same file, passes it over. */
#define SERVER STR("LocalServer")

static struct json *read_kept(const struct zedagent *z, struct arena *a)
{
    return z->local.ports.n ? json_parse_quick(a, arena_str(a, z->local.ports)) : NULL;
}

struct json *zedagent_local_network(const struct zedagent *z, struct arena *a)
{
    struct json *v = read_kept(z, a);
    if (v)
        (void) json_remove(v, SERVER);
    return v;
}

static int publish(struct zedagent *z, const struct json *value)
{
    return publication_publish(z->topics.sections[SECTION_PORTS], KEY, value);
}

/* Of no port, as EVE says it: its nim would not notice that the key is gone. */
static void publish_none(struct zedagent *z, struct arena *a)
{
    const Eve__Profile__LocalNetworkConfig none = EVE__PROFILE__LOCAL_NETWORK_CONFIG__INIT;
    struct json *value = NULL;
    (void) parse_local_network(a, &none, NULL, 0, &value);
    const int r = publish(z, value);
    if (r < 0)
        log_error("that ports are the controller's again is not published", LOG_ERRNO(r));
}

void zedagent_forget_network(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    if (!z->local.ports.n)
        return;
    log_info("ports are the controller's again");
    (void) node_file_remove(z->node, NODE_PERSIST, KEPT);
    (void) zedagent_keep(&z->local.ports, STR(""));
    publish_none(z, a);
}

void network_follow_config(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    if (!str_eq(json_get_str(read_kept(z, a), SERVER), z->local.server))
        zedagent_forget_network(z);
}

void network_load(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct json_parse_result parsed;
    if (node_file_read(z->node, NODE_PERSIST, KEPT, &text) < 0 ||
        json_parse(a, buf_str(&text), &parsed) < 0 ||
        !json_count(json_get(parsed.value, STR("Ports"))))
        return;
    (void) zedagent_keep(&z->local.ports, buf_str(&text));
    const int r = publish(z, zedagent_local_network(z, a));
    if (r < 0)
        log_error("ports that were configured locally are the controller's", LOG_ERRNO(r));
}

/* On disk first; what does not fit its topic is not kept either. */
static struct str put(struct zedagent *z, struct arena *a, const struct json *wanted)
{
    struct json kept = json_clone(a, wanted);
    const struct str before = z->local.ports;
    json_set(a, &kept, SERVER, json_string(z->local.server));
    const struct str text = json_text(a, &kept);
    int r = node_file_write(z->node, NODE_PERSIST, KEPT, text);
    if (r < 0)
        log_error("how ports are configured locally is not kept", LOG_ERRNO(r));
    r = publish(z, wanted);
    if (r < 0) {
        (void) (before.n ? node_file_write(z->node, NODE_PERSIST, KEPT, before)
                         : node_file_remove(z->node, NODE_PERSIST, KEPT));
        return STR("the network configuration is too large");
    }
    log_info("ports are configured by the local profile server",
             LOG_INT("ports", (int64_t) json_count(json_get(wanted, STR("Ports")))));
    (void) zedagent_keep(&z->local.ports, text);
    return STR_NONE;
}

static const struct json *ports_in_use(const struct json *configs)
{
    const struct json *list = json_get(configs, STR("PortConfigList"));
    const int64_t current = json_get_int(configs, STR("CurrentIndex"), -1);
    return current >= 0 && (size_t) current < json_count(list)
               ? json_get(&list->items[current], STR("Ports"))
               : NULL;
}

struct str zedagent_take_network(struct zedagent *z, struct arena *a,
                                 const Eve__Profile__LocalNetworkConfig *order,
                                 const struct json *configs)
{
    struct json *wanted;
    const int64_t now_us = z->node->clock->wall_us(z->node->clock);
    const struct str error = parse_local_network(a, order, ports_in_use(configs), now_us, &wanted);
    if (error.n)
        return error;
    if (order->n_ports == 0) {
        zedagent_forget_network(z);
        return STR_NONE;
    }
    /* Said again: it is as old as it was. */
    if (topics_is_same_ports(a, wanted, zedagent_local_network(z, a)))
        return STR_NONE;
    return put(z, a, wanted);
}
