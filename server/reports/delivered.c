/* SPDX-License-Identifier: Apache-2.0 */
/* What a device was given, as its DeviceConfig and its Applications show it. An Application is
 * delivered when its device has the configuration that has it as it is now: status.sources of the
 * DeviceConfig tells which generation of it that is. */
#include <errno.h>

#include "base/alloc.h"
#include "reports/reports_internal.h"

#define MAX_APPLICATIONS 10000 /* of one device */

struct checking {
    struct reports *reports;
    const struct catalog_view *device;
    struct arena *arena;
    struct json *config; /* NULL: there is none */
};

static struct place config_place(const struct checking *c)
{
    return (struct place){STR("eve.lfedge.org"), STR("v1beta1"), STR("deviceconfigs"),
                          c->device->namespace, c->device->name};
}

/* ---- the DeviceConfig ------------------------------------------------------------------------ */

static const struct report *newest_delivery(const struct target *t)
{
    const struct report *newest = NULL;
    LIST_FOR_EACH (&t->reports, link)
        if (CONTAINER_OF(link, struct report, link)->kind == REPORT_CONFIG)
            newest = CONTAINER_OF(link, struct report, link);
    return newest;
}

static int write_once(struct checking *c, const struct report *report)
{
    struct derivation d;
    const struct place p = config_place(c);
    const struct delivery v = {.hash = report->bytes,
                               .at_us = report->at_us,
                               .version = report->version,
                               .rendered_s = report->rendered_s,
                               .is_confirmed = report->is_good};
    int result = place_get(c->reports, c->arena, &p, &c->config);
    if (result < 0)
        return result;
    derivation_init(&d, c->arena, c->config);
    d.now_us = reports_wall_us(c->reports);
    derive_delivered(&d, &v);
    return derivation_has_changed(&d)
               ? place_put_status(c->reports, c->arena, &p, c->config, d.status)
               : 0;
}

static int write_config(struct checking *c, const struct report *report)
{
    int result = -ESTALE;
    for (int i = 0; i < REPORTS_MAX_CONFLICTS && result == -ESTALE; i++)
        result = write_once(c, report);
    return result == -ESTALE ? -EAGAIN : result == -ENOENT ? 0 : result;
}

/* ---- the Applications ------------------------------------------------------------------------ */

static bool has_application(const struct checking *c, const struct uuid *uuid)
{
    struct uuid there;
    JSON_FOR_EACH_ITEM (json_at(c->config, "spec", "config", "apps", NULL), app) {
        const struct json *id = json_at(app, "uuidandversion", "uuid", NULL);
        if (uuid_parse(json_str(id), &there) == 0 && uuid_eq(&there, uuid))
            return true;
    }
    return false;
}

static int64_t generation_of(const struct checking *c, const struct catalog_view *app)
{
    if (!has_application(c, &app->uuid))
        return 0;
    JSON_FOR_EACH_ITEM (json_at(c->config, "status", "sources", NULL), source)
        if (str_is(json_get_str(source, STR("kind")), "Application") &&
            str_eq(json_get_str(source, STR("name")), app->name))
            return json_get_int(source, STR("generation"), APP_GENERATION_ANY);
    return APP_GENERATION_ANY;
}

static void check_application(struct checking *c, const struct catalog_view *app, bool is_current)
{
    struct reports *r = c->reports;
    struct report *note = report_new(REPORT_DELIVERED, &c->device->uuid, STR(""));
    note->at_us = reports_wall_us(r);
    note->is_good = is_current;
    note->generation = is_current ? generation_of(c, app) : 0;
    target_push(r, target_get(r, CATALOG_APPLICATION, &app->uuid), note);
}

static void check_applications(struct checking *c, struct str given_hash)
{
    struct catalog_view *list = NULL;
    const struct place p = config_place(c);
    if (!c->config && place_get(c->reports, c->arena, &p, &c->config) < 0)
        return;
    const bool is_current =
        str_eq(json_str(json_at(c->config, "status", "hash", NULL)), given_hash);
    size_t n =
        catalog_applications(&c->reports->catalog, c->arena, c->device, MAX_APPLICATIONS, &list);
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_delivered && !list[i].is_deleting)
            check_application(c, &list[i], is_current);
}

int delivered_flush(struct reports *r, const struct target *t, const struct catalog_view *device,
                    struct str given_hash)
{
    ARENA_AUTO a = arena_new();
    struct checking c = {.reports = r, .device = device, .arena = a};
    const struct report *report = newest_delivery(t);
    int result = report ? write_config(&c, report) : 0;
    if (result == 0 && given_hash.n && device->n_undelivered)
        check_applications(&c, given_hash);
    return result;
}
