/* SPDX-License-Identifier: Apache-2.0 */
/* Config items from the three levels of options, and commands that are counted. */
#include "composer/composer_internal.h"

static const struct json *object_of_level(struct composition *c, enum settings_level level)
{
    const struct json *const objects[SETTINGS_LEVELS] = {
        [SETTINGS_DEVICE] = c->in->device,
        [SETTINGS_NAMESPACE] = c->in->namespace_options,
        [SETTINGS_GLOBAL] = c->in->global_options,
    };
    return objects[level];
}

static void emit_item(struct composition *c, const struct settings_item *item)
{
    Eve__Config__ConfigItem *m = MESSAGE_NEW(c->arena, eve__config__config_item);
    m->key = arena_strz(c->arena, item->name);
    m->value = arena_strz(c->arena, item->value);
    struct part *p = part_add(c, SECTION_ITEMS, item->name, &m->base);
    const struct str field = item->from == SETTINGS_DEVICE
                                 ? STR("metadata.annotations[" SETTINGS_PREFIX SETTINGS_ITEM_PREFIX)
                                 : STR("data[" SETTINGS_ITEM_PREFIX);
    const struct str parts[] = {field, item->name, STR("]")};
    part_source(c, p, "", object_of_level(c, item->from),
                arena_join(c->arena, parts, N_ELEMENTS(parts)));
}

static Eve__Config__DeviceOpsCmd *command(struct composition *c, const char *annotation,
                                          const char *path, const char *field)
{
    Eve__Config__DeviceOpsCmd *m = MESSAGE_NEW(c->arena, eve__config__device_ops_cmd);
    m->counter = (uint32_t) counter_of_command(c, annotation);
    m->desiredstate = true;
    source_add(c, str_of(path), c->in->device, str_of(field));
    return m;
}

#define ANNOTATION(name) "metadata.annotations[" SETTINGS_PREFIX name "]"

void options_emit(struct composition *c)
{
    const struct settings_sources sources = {
        .annotations = c->annotations,
        .namespace = json_get(c->in->namespace_options, STR("data")),
        .global = json_get(c->in->global_options, STR("data")),
    };
    struct settings_item *items;
    const size_t n = settings_items(c->arena, &sources, &items);
    for (size_t i = 0; i < n; i++)
        emit_item(c, &items[i]);
    /* Long before it is needed, because a device only takes note of the first counter it sees; but
     * not in its first configuration, so that it forgets what another controller counted. */
    if (!c->in->report && !has_counted(c, SETTINGS_PREFIX "reboot"))
        return;
    c->config->reboot = command(c, SETTINGS_PREFIX "reboot", "reboot", ANNOTATION("reboot"));
    c->config->shutdown =
        command(c, SETTINGS_PREFIX "shutdown", "shutdown", ANNOTATION("shutdown"));
}
