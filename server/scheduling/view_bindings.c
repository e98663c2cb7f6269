/* SPDX-License-Identifier: Apache-2.0 */
/* What binds Applications to some Devices beside their selectors: the networks they are on, and the
 * volumes that hold what they claim. */
#include "base/alloc.h"
#include "scheduling/view_internal.h"

static void touch_all(struct tenant *t, const struct pointers *wishes)
{
    t->version++;
    for (uint32_t i = 0; i < wishes->n; i++)
        view_wish_touch(wishes->items[i]);
}

/* ---- networks -------------------------------------------------------------------------------- */

struct network *view_network_find(struct tenant *t, struct str name, bool is_made)
{
    struct network *n = map_get(&t->networks, name);
    if (n || !is_made)
        return n;
    n = NEW(struct network);
    n->name = view_text_keep(name);
    n->selection = STR("");
    (void) map_put(&t->networks, n->name, n);
    return n;
}

void view_network_free(struct tenant *t, struct network *n)
{
    (void) map_remove(&t->networks, n->name);
    view_text_drop(&n->name);
    view_text_drop(&n->selection);
    pointers_done(&n->wishes);
    mem_free(n);
}

void view_network_drop_if_unused(struct tenant *t, struct network *n)
{
    if (!n->exists && n->wishes.n == 0)
        view_network_free(t, n);
}

void view_network_on_event(struct tenant *t, const struct kube_event *e)
{
    struct arena *a = t->view->scratch;
    const bool exists = e->type != KUBE_DELETED;
    struct network *n = view_network_find(t, e->name, exists);
    if (!n)
        return;
    const struct str selection =
        exists ? demand_selection(a, json_get(kube_event_object(e, a), STR("spec"))) : STR("");
    if (n->exists == exists && str_eq(n->selection, selection))
        return;
    n->exists = exists;
    view_text_drop(&n->selection);
    n->selection = view_text_keep(selection);
    touch_all(t, &n->wishes);
    view_network_drop_if_unused(t, n);
}

/* ---- claims ---------------------------------------------------------------------------------- */

struct claim *view_claim_find(struct tenant *t, struct str name, bool is_made)
{
    struct claim *c = map_get(&t->claims, name);
    if (c || !is_made)
        return c;
    c = NEW(struct claim);
    c->name = view_text_keep(name);
    (void) map_put(&t->claims, c->name, c);
    return c;
}

void view_claim_drop_if_unused(struct tenant *t, struct claim *c)
{
    if (c->volumes.n || c->wishes.n)
        return;
    (void) map_remove(&t->claims, c->name);
    view_text_drop(&c->name);
    pointers_done(&c->volumes);
    pointers_done(&c->wishes);
    mem_free(c);
}

void view_claim_touch(struct tenant *t, const struct claim *c)
{
    touch_all(t, &c->wishes);
}

/* A volume on a device that is gone is gone with it. */
bool view_claim_allows(const struct claim *c, const struct device *d)
{
    bool is_somewhere = false;
    for (uint32_t i = 0; i < c->volumes.n; i++) {
        const struct volume *v = c->volumes.items[i];
        if (v->device == d)
            return true;
        is_somewhere |= v->device->exists;
    }
    return !is_somewhere;
}

/* ---- volumes --------------------------------------------------------------------------------- */

void view_volume_free(struct tenant *t, struct volume *v)
{
    struct claim *c = v->claim;
    (void) map_remove(&t->volumes, v->name);
    pointers_remove(&c->volumes, v);
    pointers_remove(&v->device->volumes, v);
    view_device_unref(v->device);
    view_text_drop(&v->name);
    mem_free(v);
    view_claim_touch(t, c);
    view_claim_drop_if_unused(t, c);
}

static void add_volume(struct tenant *t, struct str name, struct str claim, struct str device)
{
    struct volume *v = NEW(struct volume);
    v->name = view_text_keep(name);
    v->claim = view_claim_find(t, claim, /* is_made= */ true);
    v->device = view_device_find(t, device, /* is_made= */ true);
    pointers_add(&v->claim->volumes, v);
    pointers_add(&v->device->volumes, v);
    view_device_ref(v->device);
    (void) map_put(&t->volumes, v->name, v);
    view_claim_touch(t, v->claim);
}

void view_volume_on_event(struct tenant *t, const struct kube_event *e)
{
    const struct json *spec = e->type == KUBE_DELETED
                                  ? NULL
                                  : json_get(kube_event_object(e, t->view->scratch), STR("spec"));
    const struct str claim = json_get_str(spec, STR("claim")),
                     device = json_get_str(spec, STR("device"));
    struct volume *v = map_get(&t->volumes, e->name);
    if (v && str_eq(v->claim->name, claim) && str_eq(v->device->name, device))
        return;
    if (v)
        view_volume_free(t, v);
    if (claim.n && device.n)
        add_volume(t, e->name, claim, device);
}
