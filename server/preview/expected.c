/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/expected.h"

#include "base/random.h"
#include "base/uuid.h"

struct expecting {
    struct arena *arena;
    struct str device;
    struct compose_inputs *in;
    const struct json *application;
};

static void set_text(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_append_member(a, object, str_of(key), json_string(value));
}

static struct json *new_object(const struct expecting *e, struct str api_version, const char *kind,
                               struct str name)
{
    struct arena *a = e->arena;
    struct json *object = json_new(a, json_object());
    struct json meta = json_object();
    set_text(a, &meta, "name", name);
    set_text(a, &meta, "namespace",
             json_str(json_at(e->application, "metadata", "namespace", NULL)));
    set_text(a, object, "apiVersion", api_version);
    set_text(a, object, "kind", str_of(kind));
    (void) json_append_member(a, object, STR("metadata"), meta);
    return object;
}

static void add(struct arena *a, struct compose_set *set, const struct json *object)
{
    const struct json **items = ARENA_ARRAY(a, const struct json *, set->n + 1);
    for (size_t i = 0; i < set->n; i++)
        items[i] = set->items[i];
    items[set->n] = object;
    *set = (struct compose_set){items, set->n + 1};
}

static bool has_claim(const struct compose_inputs *in, struct str claim)
{
    for (size_t i = 0; i < in->claims.n; i++)
        if (str_eq(json_str(json_at(in->claims.items[i], "metadata", "name", NULL)), claim))
            return true;
    return false;
}

static bool has_volume(const struct compose_inputs *in, struct str claim)
{
    for (size_t i = 0; i < in->volumes.n; i++)
        if (str_eq(json_str(json_at(in->volumes.items[i], "spec", "claim", NULL)), claim))
            return true;
    return false;
}

static void set_owner(const struct expecting *e, struct json *claim)
{
    struct arena *a = e->arena;
    const struct json *meta = json_get(e->application, STR("metadata"));
    struct json owner = json_object(), owners = json_array();
    set_text(a, &owner, "kind", STR("Application"));
    set_text(a, &owner, "name", json_get_str(meta, STR("name")));
    set_text(a, &owner, "uid", json_get_str(meta, STR("uid")));
    (void) json_push(a, &owners, owner);
    (void) json_append_member(a, json_get(claim, STR("metadata")), STR("ownerReferences"), owners);
}

/* A claim of its own is named as Kubernetes names those of pods. */
static struct str add_own_claim(const struct expecting *e, const struct json *volume)
{
    const struct json *spec = json_at(volume, "ephemeral", "volumeClaimTemplate", "spec", NULL);
    if (!spec)
        return STR("");
    const struct str name = arena_printf(
        e->arena, "%.*s-%.*s", STR_ARG(json_str(json_at(e->application, "metadata", "name", NULL))),
        STR_ARG(json_get_str(volume, STR("name"))));
    if (!has_claim(e->in, name)) {
        struct json *claim = new_object(e, STR("v1"), "PersistentVolumeClaim", name);
        set_owner(e, claim);
        (void) json_append_member(e->arena, claim, STR("spec"), *spec);
        add(e->arena, &e->in->claims, claim);
    }
    return name;
}

static void add_volume(const struct expecting *e, struct str claim)
{
    struct arena *a = e->arena;
    struct json spec = json_object(), status = json_object();
    char uuid[UUID_TEXT_BYTES];
    if (!claim.n || has_volume(e->in, claim))
        return;
    struct json *volume = new_object(e, STR("eve.lfedge.org/v1beta1"), "Volume", claim);
    random_uuid(uuid);
    set_text(a, &spec, "claim", claim);
    set_text(a, &spec, "device", e->device);
    set_text(a, &status, "uuid", arena_str(a, str_of(uuid)));
    (void) json_append_member(a, volume, STR("spec"), spec);
    (void) json_append_member(a, volume, STR("status"), status);
    add(a, &e->in->volumes, volume);
}

static bool is_changed(const struct fleet_change *changes, size_t n, const struct json *object)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].object == object)
            return true;
    return false;
}

void expected_add(struct arena *a, struct str device, const struct fleet_change *changes, size_t n,
                  struct compose_inputs *in)
{
    for (size_t i = 0; i < in->applications.n; i++) {
        const struct expecting e = {a, device, in, in->applications.items[i]};
        if (!is_changed(changes, n, e.application))
            continue;
        JSON_FOR_EACH_ITEM (json_at(e.application, "spec", "volumes", NULL), volume) {
            const struct str claim =
                json_str(json_at(volume, "persistentVolumeClaim", "claimName", NULL));
            add_volume(&e, claim.n ? claim : add_own_claim(&e, volume));
        }
    }
}
