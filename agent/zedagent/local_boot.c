/* SPDX-License-Identifier: Apache-2.0 */
/* In which order applications look for what to boot from, where that was ordered nearby. */
#include "base/log.h"
#include "protobuf/message.h"
#include "zedagent/zedagent_internal.h"

#define KEPT STR("checkpoint/lastappbootconfig")

static const Eve__Profile__AppBootConfigList *read_orders(const struct zedagent *z, struct arena *a)
{
    return z->local.boot_orders.n
               ? PB_UNPACK(a, eve__profile__app_boot_config_list, z->local.boot_orders)
               : NULL;
}

void boot_load(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO bytes = {0};
    if (node_file_read(z->node, NODE_PERSIST, KEPT, &bytes) == 0 &&
        PB_UNPACK(a, eve__profile__app_boot_config_list, buf_str(&bytes)))
        (void) zedagent_keep(&z->local.boot_orders, buf_str(&bytes));
}

/* 0: none. */
static int order_of(const Eve__Profile__AppBootConfigList *list, struct str id)
{
    for (size_t i = 0; list && i < list->n_app_configs; i++)
        if (str_eq(pb_text(list->app_configs[i]->id), id))
            return (int) list->app_configs[i]->usb_boot;
    return 0;
}

static bool amend(struct arena *a, const Eve__Profile__AppBootConfigList *list, struct json *app)
{
    const struct str id = json_get_str(json_get(app, STR("UUIDandVersion")), STR("UUID"));
    struct json *resources = json_get(app, STR("FixedResources"));
    const int local = order_of(list, id);
    const int64_t remote = json_get_int(app, STR("ControllerBootOrder"), 0);
    const int source = local    ? EVE__PROFILE__BOOT_ORDER_SOURCE__BOOT_ORDER_SOURCE_LPS
                       : remote ? EVE__PROFILE__BOOT_ORDER_SOURCE__BOOT_ORDER_SOURCE_CONTROLLER
                                : EVE__PROFILE__BOOT_ORDER_SOURCE__BOOT_ORDER_SOURCE_UNSPECIFIED;
    const int64_t order = local ? local : remote;
    if (!resources || (json_get_int(resources, STR("BootOrder"), 0) == order &&
                       json_get_int(app, STR("BootOrderSource"), 0) == source))
        return false;
    (void) json_set(a, resources, STR("BootOrder"), json_int(order));
    (void) json_set(a, app, STR("BootOrderSource"), json_int(source));
    return true;
}

void boot_amend_app(const struct zedagent *z, struct arena *a, struct json *app)
{
    const Eve__Profile__AppBootConfigList *list = read_orders(z, a);
    if (list)
        (void) amend(a, list, app);
}

static void publish(struct zedagent *z, struct arena *a, const struct local_app *apps)
{
    struct publication *p = z->topics.sections[SECTION_APPS];
    const Eve__Profile__AppBootConfigList *list = read_orders(z, a);
    for (; apps; apps = apps->next) {
        struct json *app = publication_get(a, p, apps->id);
        if (app && amend(a, list, app))
            (void) publication_publish(p, apps->id, app);
    }
}

static bool is_order(Eve__Common__BootOrder o)
{
    return o == EVE__COMMON__BOOT_ORDER__BOOT_ORDER_USB ||
           o == EVE__COMMON__BOOT_ORDER__BOOT_ORDER_NOUSB;
}

/* By UUID alone, the first of each, without those that order nothing. */
static struct str settle(struct arena *a, const Eve__Profile__AppBootConfigList *list,
                         const struct local_app *apps)
{
    Eve__Profile__AppBootConfigList to = EVE__PROFILE__APP_BOOT_CONFIG_LIST__INIT;
    to.app_configs = ARENA_ARRAY(a, Eve__Profile__AppBootConfig *, LOCAL_MAX_APPS);
    for (size_t i = 0; i < list->n_app_configs && to.n_app_configs < LOCAL_MAX_APPS; i++) {
        const Eve__Profile__AppBootConfig *from = list->app_configs[i];
        const struct local_app *app =
            local_find_app(apps, pb_text(from->id), pb_text(from->displayname));
        if (!app || !is_order(from->usb_boot) || order_of(&to, app->id))
            continue;
        Eve__Profile__AppBootConfig *c = ARENA_NEW(a, Eve__Profile__AppBootConfig);
        eve__profile__app_boot_config__init(c);
        c->id = arena_strz(a, app->id);
        c->usb_boot = from->usb_boot;
        to.app_configs[to.n_app_configs++] = c;
    }
    return pb_pack(a, &to.base);
}

void zedagent_take_boot_orders(struct zedagent *z, const Eve__Profile__AppBootConfigList *list)
{
    ARENA_AUTO a = arena_new();
    const struct local_app *apps = local_list_apps(z, a);
    const struct str orders = settle(a, list, apps);
    if (str_eq(orders, z->local.boot_orders))
        return;
    const int r = orders.n ? node_file_write(z->node, NODE_PERSIST, KEPT, orders)
                           : node_file_remove(z->node, NODE_PERSIST, KEPT);
    if (r < 0)
        log_error("boot orders are not kept", LOG_STR("file", KEPT), LOG_ERRNO(r));
    (void) zedagent_keep(&z->local.boot_orders, orders);
    publish(z, a, apps);
}
