/* SPDX-License-Identifier: Apache-2.0 */
/* Who the caller is, and whom it may know. */
#include <errno.h>

#include "msrv/msrv_internal.h"

struct addresses {
    struct str *items;
    size_t n;
};

/* The status that tells what was found. */
static int find_external(struct request *r, struct addresses *ret)
{
    const struct msrv_options *o = &r->msrv->options;
    if (!r->app)
        return 404;
    int e = o->world->external_ipv4
                ? o->world->external_ipv4(o->ctx, r->arena, r->app, &ret->items, &ret->n)
                : -ENOENT;
    if (e == -ENODEV)
        return 500;
    return e < 0 || ret->n == 0 ? 204 : 200;
}

static struct str join(struct arena *a, const struct addresses *list, struct str between)
{
    struct str *parts = ARENA_ARRAY(a, struct str, 2 * list->n + 1);
    for (size_t i = 0; i < list->n; i++) {
        parts[2 * i] = i ? between : STR("");
        parts[2 * i + 1] = list->items[i];
    }
    return arena_join(a, parts, 2 * list->n);
}

static void set(struct request *r, struct json *object, const char *key, struct str value)
{
    json_append_member(r->arena, object, str_of(key), json_string(value.p ? value : STR("")));
}

/* Members in the order in which Go writes a map. */
void network_answer(struct request *r)
{
    const struct msrv_options *o = &r->msrv->options;
    struct addresses external = {0};
    int status = find_external(r, &external);
    const struct json *node =
        o->world->document ? o->world->document(o->ctx, r->arena, MSRV_EDGE_NODE_INFO) : NULL;
    if (!node) {
        answer_error(r, 500, STR("cannot fetch edge node information"));
        return;
    }
    struct str uuid = r->app ? r->app->uuid : STR("");
    struct json *out = json_new(r->arena, json_object());
    set(r, out, "app-instance-uuid", uuid);
    set(r, out, "caller-ip", r->caller);
    set(r, out, "device-name", json_get_str(node, STR("DeviceName")));
    set(r, out, "device-uuid", json_get_str(node, STR("DeviceID")));
    set(r, out, "enterprise-id", json_get_str(node, STR("EnterpriseID")));
    set(r, out, "enterprise-name", json_get_str(node, STR("EnterpriseName")));
    set(r, out, "external-ipv4", join(r->arena, &external, STR(",")));
    set(r, out, "hostname", uuid);
    set(r, out, "project-name", json_get_str(node, STR("ProjectName")));
    set(r, out, "project-uuid", json_get_str(node, STR("ProjectID")));
    answer_json(r, status, out);
}

void external_ipv4_answer(struct request *r)
{
    struct addresses external = {0};
    int status = find_external(r, &external);
    if (status != 200) {
        r->answer.status = status;
        return;
    }
    answer_text(r, status, "text/plain; charset=utf-8",
                arena_printf(r->arena, "%.*s\n", STR_ARG(join(r->arena, &external, STR("\n")))));
}

void hostname_answer(struct request *r)
{
    if (!r->app) {
        r->answer.status = 204;
        return;
    }
    answer_text(r, 200, "text/plain", arena_printf(r->arena, "%.*s\n", STR_ARG(r->app->uuid)));
}

/* ---- discovery ------------------------------------------------------------------------------ */

static void add_neighbour(struct arena *a, struct json *out, const struct msrv_neighbour *n)
{
    struct json *list = json_get(out, n->app_uuid);
    if (!list)
        list = json_append_member(a, out, n->app_uuid, json_array());
    if (n->address.n == 0)
        return;
    struct json *item = json_push(a, list, json_object());
    json_append_member(a, item, STR("port"), json_string(n->port.p ? n->port : STR("")));
    json_append_member(a, item, STR("network-address"), json_string(n->address));
}

void discover_answer(struct request *r)
{
    const struct msrv_options *o = &r->msrv->options;
    if (!r->app) {
        r->answer.status = 204;
        return;
    }
    if (!r->app->can_discover) {
        answer_message(r, 403, STR("This app instance is not allowed to discover"));
        return;
    }
    struct msrv_neighbour *list = NULL;
    size_t n = 0;
    if (o->world->neighbours && o->world->neighbours(o->ctx, r->arena, &list, &n) < 0)
        n = 0;
    struct json *out = json_new(r->arena, json_object());
    for (size_t i = 0; i < n; i++)
        if (!str_eq(list[i].app_uuid, r->app->uuid))
            add_neighbour(r->arena, out, &list[i]);
    json_sort_members(out);
    answer_json(r, 200, out);
}
