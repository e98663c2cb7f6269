/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "scheduling/view_internal.h"
#include "settings/settings.h"

#define KIBIBYTE_MILLI (1024 * 1000)

/* ---- records --------------------------------------------------------------------------------- */

struct device *view_device_find(struct tenant *t, struct str name, bool is_made)
{
    struct device *d = map_get(&t->devices, name);
    if (d || !is_made)
        return d;
    d = NEW(struct device);
    d->name = view_text_keep(name);
    d->tenant = t;
    d->memory_kib = d->cpu_milli = UNKNOWN_AMOUNT;
    list_init(&d->applications);
    list_init(&d->touched);
    (void) map_put(&t->devices, d->name, d);
    return d;
}

static void leave_groups(struct device *d)
{
    while (d->groups.n) {
        struct group *g = d->groups.items[d->groups.n - 1];
        pointers_remove(&d->groups, g);
        pointers_remove(&g->devices, d);
        view_group_drop_if_unused(d->tenant, g);
    }
}

void view_device_free(struct device *d)
{
    leave_groups(d);
    list_remove(&d->touched);
    (void) map_remove(&d->tenant->devices, d->name);
    view_text_drop(&d->name);
    pointers_done(&d->volumes);
    mem_free(d->labels);
    mem_free(d);
}

static void drop_if_unused(struct device *d)
{
    if (!d->exists && d->n_refs == 0)
        view_device_free(d);
}

void view_device_ref(struct device *d)
{
    d->n_refs++;
}

void view_device_unref(struct device *d)
{
    d->n_refs--;
    drop_if_unused(d);
}

void view_device_touch(struct device *d)
{
    d->tenant->version++;
    if (!d->exists || d->is_touched || !d->tenant->n_waiting)
        return;
    d->is_touched = true;
    list_append(&d->tenant->touched, &d->touched);
    view_tenant_wake(d->tenant, STR(""), /* delay_ms= */ 0);
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* A copy in one block. */
static struct json *keep_labels(const struct json *labels)
{
    size_t n_bytes = 0;
    const size_t n = json_is(labels, JSON_OBJECT) ? labels->n : 0;
    if (n == 0)
        return NULL;
    JSON_FOR_EACH_MEMBER (labels, m)
        n_bytes += json_str(&m->key).n + json_str(&m->value).n;
    struct json *kept =
        mem_alloc(sizeof(struct json) + n * sizeof(struct json_member) + MAX(n_bytes, (size_t) 1));
    struct json_member *to = (struct json_member *) (kept + 1);
    char *bytes = (char *) (to + n);
    *kept = (struct json){.type = JSON_OBJECT, .n = (uint32_t) n, .members = to};
    JSON_FOR_EACH_MEMBER (labels, m) {
        const struct str parts[] = {json_str(&m->key), json_str(&m->value)};
        struct json *values[] = {&to->key, &to->value};
        for (size_t i = 0; i < N_ELEMENTS(parts); i++) {
            if (parts[i].n)
                memcpy(bytes, parts[i].p, parts[i].n);
            *values[i] = json_string(str_range(bytes, parts[i].n));
            bytes += parts[i].n;
        }
        to++;
    }
    return kept;
}

static void join_group(struct device *d, struct str label, struct str value)
{
    struct group *g = view_group_find(d->tenant, label, value, /* is_made= */ true);
    pointers_add(&g->devices, d);
    pointers_add(&d->groups, g);
}

/* `name` is its name, whatever a label of that key says. */
static void join_groups(struct device *d)
{
    join_group(d, STR("name"), d->name);
    JSON_FOR_EACH_MEMBER (d->labels, m)
        if (!str_is(json_str(&m->key), "name"))
            join_group(d, json_str(&m->key), json_str(&m->value));
}

static bool set_labels(struct device *d, const struct json *labels)
{
    const bool is_same = json_count(labels) == json_count(d->labels) &&
                         (json_count(labels) == 0 || json_equal(labels, d->labels));
    if (is_same && d->groups.n)
        return false;
    leave_groups(d);
    mem_free(d->labels);
    d->labels = keep_labels(labels);
    join_groups(d);
    return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int64_t amount_of(const struct json *device, const char *resource, int64_t unit_milli)
{
    int64_t amount;
    return demand_amount(json_at(device, "status", "allocatable", resource, NULL), unit_milli,
                         DEMAND_DOWN, &amount) < 0
               ? UNKNOWN_AMOUNT
               : amount;
}

static bool set_amounts(struct device *d, const struct json *object)
{
    const int64_t memory_kib = amount_of(object, "memory", KIBIBYTE_MILLI),
                  cpu_milli = amount_of(object, "cpu", 1);
    const bool is_same = d->memory_kib == memory_kib && d->cpu_milli == cpu_milli;
    d->memory_kib = memory_kib;
    d->cpu_milli = cpu_milli;
    return !is_same;
}

static bool set_standing(struct device *d, const struct json *object, bool is_leaving)
{
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    const bool is_active = !str_is(json_get_str(annotations, STR(SETTINGS_ACTIVATE)), "false");
    const bool is_same = d->exists && d->is_active == is_active && d->is_leaving == is_leaving;
    if (!d->exists)
        pointers_add(&d->tenant->present, d);
    d->exists = true;
    d->is_active = is_active;
    d->is_leaving = is_leaving;
    return !is_same;
}

static void wake_applications(struct device *d)
{
    LIST_FOR_EACH (&d->applications, link)
        view_application_wake(CONTAINER_OF(link, struct application, on_device),
                              /* delay_ms= */ 0);
}

/* There is one less to be counted for them. */
static void touch_waiting(struct device *d)
{
    for (uint32_t g = 0; g < d->groups.n; g++) {
        const struct pointers *waiting = &((struct group *) d->groups.items[g])->waiting;
        for (uint32_t i = 0; i < waiting->n; i++)
            view_wish_touch_waiting(waiting->items[i]);
    }
    LIST_FOR_EACH (&d->tenant->anywhere, link)
        view_wish_touch_waiting(CONTAINER_OF(link, struct wish, anywhere));
}

static void on_end(struct tenant *t, struct str name)
{
    struct device *d = view_device_find(t, name, /* is_made= */ false);
    if (!d || !d->exists)
        return;
    d->exists = false;
    pointers_remove(&t->present, d);
    t->version++;
    touch_waiting(d);
    leave_groups(d);
    mem_free(d->labels);
    d->labels = NULL;
    d->memory_kib = d->cpu_milli = UNKNOWN_AMOUNT;
    list_remove(&d->touched);
    d->is_touched = false;
    wake_applications(d);
    /* What was pinned to it is so no more. */
    for (uint32_t i = 0; i < d->volumes.n; i++)
        view_claim_touch(t, ((struct volume *) d->volumes.items[i])->claim);
    drop_if_unused(d);
}

void view_device_on_event(struct tenant *t, const struct kube_event *e)
{
    if (e->type == KUBE_DELETED) {
        on_end(t, e->name);
        return;
    }
    const struct json *object = kube_event_object(e, t->view->scratch);
    struct device *d = view_device_find(t, e->name, /* is_made= */ true);
    const bool is_moved = set_labels(d, json_at(object, "metadata", "labels", NULL)),
               is_other = set_standing(d, object, e->is_deleting),
               is_larger = set_amounts(d, object);
    if (is_moved)
        wake_applications(d);
    if (is_moved || is_other || is_larger)
        view_device_touch(d);
}
