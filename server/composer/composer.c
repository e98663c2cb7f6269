/* SPDX-License-Identifier: Apache-2.0 */
#include "composer/composer.h"

#include "composer/composer_internal.h"

static void set_identity(struct composition *c)
{
    const struct str uuid = object_uuid(c->in->device);
    c->config->device_name = arena_strz(c->arena, c->device_name);
    source_add(c, STR("deviceName"), c->in->device, STR("metadata.name"));
    if (uuid.n == 0)
        return;
    c->config->id = MESSAGE_NEW(c->arena, eve__config__uuidand_version);
    c->config->id->uuid = arena_strz(c->arena, uuid);
    source_add(c, STR("id.uuid"), c->in->device, STR("status.uuid"));
}

void compose(struct arena *a, const struct compose_inputs *in, struct compose_result *ret)
{
    *ret = (struct compose_result){
        .config = MESSAGE_NEW(a, eve__config__edge_dev_config),
        .derived = json_new(a, json_object()),
    };
    struct composition c = {
        .arena = a,
        .in = in,
        .result = ret,
        .config = ret->config,
        .namespace = json_str(json_at(in->device, "metadata", "namespace", NULL)),
        .device_name = object_name(in->device),
        .annotations = json_at(in->device, "metadata", "annotations", NULL),
        .lent = json_new(a, json_object()),
    };
    set_identity(&c);
    options_emit(&c);
    ports_load(&c);
    networks_plan(&c);
    networks_emit(&c);
    base_os_emit(&c);
    volumes_emit(&c);
    applications_emit(&c);
    parts_finish(&c);
    derived_finish(&c);
}
