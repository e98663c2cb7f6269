/* SPDX-License-Identifier: Apache-2.0 */
/* What an application is given of the device: volumes and adapters of its own. */
#include <errno.h>

#include "composer/composer_internal.h"

static const struct json *find_volume(const struct app *app, struct str name)
{
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("volumes")), item)
        if (str_eq(json_get_str(item, STR("name")), name))
            return item;
    return NULL;
}

/* A claim of its own is named as Kubernetes names those of pods. */
static struct str claim_of(struct composition *c, const struct app *app, const struct json *volume)
{
    const struct str name = json_str(json_at(volume, "persistentVolumeClaim", "claimName", NULL));
    if (name.n || !json_is(json_get(volume, STR("ephemeral")), JSON_OBJECT))
        return name;
    return arena_printf(c->arena, "%.*s-%.*s", STR_ARG(app->name),
                        STR_ARG(json_get_str(volume, STR("name"))));
}

/* A namesake of the claim that is made for it may hold somebody else's data. */
static bool is_own(struct composition *c, const struct app *app, struct str claim)
{
    const struct str uid = json_str(json_at(app->object, "metadata", "uid", NULL));
    const struct json *owners =
        json_at(set_find(&c->in->claims, claim), "metadata", "ownerReferences", NULL);
    JSON_FOR_EACH_ITEM (owners, owner)
        if (str_eq(json_get_str(owner, STR("name")), app->name) &&
            str_eq(json_get_str(owner, STR("uid")), uid))
            return true;
    return false;
}

static bool has_ref(const struct app *app, const char *uuid)
{
    for (size_t i = 0; i < app->message->n_volumereflist; i++)
        if (str_is(str_of(uuid), app->message->volumereflist[i]->uuid))
            return true;
    return false;
}

static void add_ref(struct composition *c, struct app *app, const Eve__Config__Volume *v,
                    struct str directory)
{
    Eve__Config__VolumeRef *m = MESSAGE_NEW(c->arena, eve__config__volume_ref);
    m->uuid = v->uuid;
    m->generationcount = v->generationcount;
    if (directory.n)
        m->mount_dir = arena_strz(c->arena, directory);
    REPEATED_ADD(c->arena, app->message->volumereflist, app->message->n_volumereflist, m);
}

static int attach(struct composition *c, struct app *app, const struct json *use,
                  const char *directory_key)
{
    const struct str name = json_get_str(use, STR("name"));
    const struct json *volume = find_volume(app, name);
    if (!volume) {
        problem_add(c, app->object, STR("spec.volumes"), "there is no volume '%.*s'",
                    STR_ARG(name));
        return -EINVAL;
    }
    const struct str claim = claim_of(c, app, volume);
    const Eve__Config__Volume *v = volume_of_claim(c, claim);
    if (v && json_get(volume, STR("ephemeral")) && !is_own(c, app, claim)) {
        problem_add(c, app->object, STR("spec.volumes"),
                    "volume '%.*s': PersistentVolumeClaim '%.*s' was not made for this Application",
                    STR_ARG(name), STR_ARG(claim));
        return -EINVAL;
    }
    if (!v) {
        problem_add(c, app->object, STR("spec.volumes"),
                    "volume '%.*s': PersistentVolumeClaim '%.*s' has no volume on the device yet",
                    STR_ARG(name), STR_ARG(claim));
        return -EINVAL;
    }
    if (has_ref(app, v->uuid)) {
        problem_add(c, app->object, STR("spec.volumes"), "volume '%.*s' is used twice",
                    STR_ARG(name));
        return -EINVAL;
    }
    add_ref(c, app, v, directory_key ? json_get_str(use, str_of(directory_key)) : STR_NONE);
    return 0;
}

int app_volumes(struct composition *c, struct app *app)
{
    const bool is_container = app->tree.message->iformat == EVE__CONFIG__FORMAT__CONTAINER;
    add_ref(c, app, app->boot, is_container ? STR("/") : STR_NONE);
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("containers")), container) {
        JSON_FOR_EACH_ITEM (json_get(container, STR("volumeMounts")), mount)
            if (attach(c, app, mount, "mountPath") < 0)
                return -EINVAL;
        JSON_FOR_EACH_ITEM (json_get(container, STR("volumeDevices")), device)
            if (attach(c, app, device, NULL) < 0)
                return -EINVAL;
    }
    return 0;
}

/* ---- adapters -------------------------------------------------------------------------------- */

/* Whether a port of the group is the device's own. */
static bool is_in_use(struct composition *c, struct str group)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_plan *p = &c->ports[i];
        if (str_eq(p->group, group) && (p->owner || p->is_default))
            return true;
    }
    return false;
}

static int lend(struct composition *c, struct app *app, struct str name)
{
    const struct str field = STR("spec.devicePassthrough");
    const struct port_plan *p = port_find_adapter(c, name);
    if (!p || p->group.n == 0) {
        problem_add(c, app->object, field, "the device reports no adapter '%.*s'%s", STR_ARG(name),
                    p ? " that can be given away" : "");
        return -EINVAL;
    }
    const struct str key = arena_printf(c->arena, "adapter %.*s", STR_ARG(p->group));
    const struct json *by = json_get(c->lent, key);
    if (is_in_use(c, p->group))
        problem_add(c, app->object, field, "adapter '%.*s' is a network port of the device",
                    STR_ARG(name));
    else if (by)
        problem_add(c, app->object, field, "adapter '%.*s' is with Application '%.*s'",
                    STR_ARG(name), STR_ARG(json_str(by)));
    else {
        if (json_get(&app->taken, key))
            return 0;
        Eve__Config__Adapter *m = MESSAGE_NEW(c->arena, eve__config__adapter);
        m->type = p->type;
        m->name = arena_strz(c->arena, p->group);
        REPEATED_ADD(c->arena, app->message->adapters, app->message->n_adapters, m);
        (void) json_set(c->arena, &app->taken, key, json_bool(true));
        return 0;
    }
    return -EINVAL;
}

int app_adapters(struct composition *c, struct app *app)
{
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("devicePassthrough")), name)
        if (lend(c, app, json_str(name)) < 0)
            return -EINVAL;
    return 0;
}
