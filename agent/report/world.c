/* SPDX-License-Identifier: Apache-2.0 */
#include "report/world.h"

const struct json *world_topic(struct world *w, enum report_topic topic)
{
    if (!w->is_loaded[topic]) {
        struct json *found = w->load(w->arg, w->arena, topic);
        w->topics[topic] = found ? found : json_new(w->arena, json_object());
        w->is_loaded[topic] = true;
    }
    return w->topics[topic];
}

const struct json *world_value(struct world *w, enum report_topic topic, struct str key)
{
    return json_get(world_topic(w, topic), key);
}

const struct json *world_only(struct world *w, enum report_topic topic)
{
    const struct json *all = world_topic(w, topic);
    const struct json *global = json_get(all, STR("global"));
    return global ? global : all->n ? &all->members[0].value : NULL;
}

const struct machine_identity *world_identity(struct world *w)
{
    if (!w->identity) {
        w->identity = ARENA_NEW(w->arena, struct machine_identity);
        struct machine *m = w->ground->machine;
        (void) m->functions->identity(m, w->arena, w->identity);
    }
    return w->identity;
}

const struct machine_load *world_load(struct world *w)
{
    if (!w->machine_load) {
        w->machine_load = ARENA_NEW(w->arena, struct machine_load);
        struct machine *m = w->ground->machine;
        (void) m->functions->load(m, w->arena, w->machine_load);
    }
    return w->machine_load;
}

const struct machine_interface *world_interfaces(struct world *w, size_t *ret_n)
{
    if (!w->has_interfaces) {
        struct machine *m = w->ground->machine;
        (void) m->functions->interfaces(m, w->arena, &w->interfaces, &w->n_interfaces);
        w->has_interfaces = true;
    }
    *ret_n = w->n_interfaces;
    return w->interfaces;
}

const struct machine_interface *world_interface(struct world *w, struct str name)
{
    size_t n;
    const struct machine_interface *list = world_interfaces(w, &n);
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].name, name))
            return &list[i];
    return NULL;
}

static const struct json *find(const struct json *list, struct str field, struct str value)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_get_str(item, field), value))
            return item;
    return NULL;
}

const struct json *world_port(struct world *w, struct str label)
{
    const struct json *status = world_only(w, REPORT_NETWORK);
    return find(json_get(status, STR("Ports")), STR("Logicallabel"), label);
}

const struct json *world_adapter(struct world *w, const char *field, struct str value)
{
    const struct json *all = world_only(w, REPORT_ADAPTERS);
    return value.n ? find(json_get(all, STR("IoBundleList")), str_of(field), value) : NULL;
}
