/* SPDX-License-Identifier: Apache-2.0 */
#include "workload_scene.h"

#include <errno.h>
#include <stdlib.h>

#include "controllers/conditions.h"
#include "controllers/gc.h"
#include "controllers/objects.h"
#include "controllers/protection.h"
#include "workloads/workloads.h"

#define READY_AFTER_MS 2000
#define DEVICES 7

/* ---- devices ------------------------------------------------------------------------------- */

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    if (str_is(e->collection, APPS) && e->type != KUBE_DELETED)
        controller_enqueue(q, e->name, 0);
}

static struct str image_of(const struct json *app)
{
    const struct json *containers = json_at(app, "spec", "containers", NULL);
    return json_count(containers) ? json_get_str(&containers->items[0], STR("image")) : STR_NONE;
}

static int place(const struct controller_context *ctx, struct arena *a,
                 const struct object_place *at, struct json *app)
{
    const struct str pin = json_str(json_at(app, "spec", "nodeSelector", "name", NULL));
    unsigned sum = 0;
    for (size_t i = 0; i < at->name.n; i++)
        sum = sum * 31 + (unsigned char) at->name.p[i];
    struct json *status = json_ensure_object(a, app, STR("status"));
    (void) json_set(a, status, STR("device"),
                    json_string(pin.n ? pin : arena_printf(a, "d%u", sum % DEVICES)));
    return objects_update(ctx, a, at, "status", app, NULL);
}

static bool is_in_touch(const struct controller_context *ctx, struct arena *a,
                        const struct registry *kinds, struct str name)
{
    const struct object_place at = {
        registry_find(kinds, STR("eve.lfedge.org"), STR("v1beta1"), STR("devices")), STR("n"),
        name};
    struct json *device = NULL;
    if (objects_get(ctx, a, &at, &device) < 0)
        return true;
    return conditions_is_true(conditions_of(a, device), "Ready");
}

/* The second time an Application is looked at, a while later, it is ready. */
static int64_t report(void *state, const struct controller_context *ctx, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    const struct object_place at = {
        registry_find(kinds, STR("eve.lfedge.org"), STR("v1beta1"), STR("applications")), STR("n"),
        key};
    struct json *app = NULL;
    int64_t created_us = 0;
    const int64_t now_us = ctx->clock->wall_us(ctx->clock);
    (void) state;
    int r = objects_get(ctx, a, &at, &app);
    if (r < 0 || object_is_deleting(app))
        return r == -ENOENT || r == 0 ? 0 : r;
    const struct str device = json_str(json_at(app, "status", "device", NULL));
    if (!device.n)
        return place(ctx, a, &at, app);
    struct json *conditions = conditions_of(a, app);
    if (conditions_is_true(conditions, "Ready") || str_is(image_of(app), "bad") ||
        !is_in_touch(ctx, a, kinds, device))
        return 0;
    (void) clock_parse(object_meta_text(app, "creationTimestamp"), &created_us);
    if (now_us - created_us < READY_AFTER_MS * 1000)
        return READY_AFTER_MS - (now_us - created_us) / 1000;
    const struct condition ready = {"Ready", "True", STR("Running"), STR("")};
    (void) conditions_set(a, conditions, &ready, now_us);
    r = objects_update(ctx, a, &at, "status", app, NULL);
    return r == -ENOENT ? 0 : r;
}

static const struct controller devices_controller = {
    .name = "devices", .on_event = on_event, .reconcile = report};

static const struct controller *const table[] = {&gc_controller, &protection_controller,
                                                 &workloads_controller, &devices_controller, NULL};

/* ---- life ---------------------------------------------------------------------------------- */

static void on_write(void *ctx)
{
    struct scene *s = ctx;
    if (s->check && s->is_watching)
        s->check(s);
}

void scene_init(struct scene *s, uint64_t seed)
{
    *s = (struct scene){.arena = arena_new()};
    world_init(&s->w, seed, table);
    s->w.api.on_write = on_write;
    s->w.api.on_write_ctx = s;
}

void scene_done(struct scene *s)
{
    world_done(&s->w);
    arena_free(s->arena);
}

static void must(int result)
{
    if (result < 0)
        abort();
}

static const char *kind_text(struct scene *s, const char *plural)
{
    return arena_printf(s->arena, VERSION "%s", plural).p;
}

void scene_device(struct scene *s, const char *name, const char *labels)
{
    const struct str text =
        arena_printf(s->arena, "{'metadata':{'name':'%s','labels':%s},'spec':{}}", name, labels);
    must(world_create(&s->w, VERSION "devices", "n", text.p));
    scene_touch(s, name, true);
}

void scene_touch(struct scene *s, const char *name, bool is_in_touch_now)
{
    const struct str text =
        arena_printf(s->arena, "{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                     is_in_touch_now ? "True" : "Unknown");
    must(world_patch(&s->w, VERSION "devices", "n", name, text.p));
}

static struct str template_text(struct scene *s, const char *image)
{
    return arena_printf(s->arena,
                        "{'metadata':{'labels':{'app':'web'}},'spec':{'containers':[{'name':'c',"
                        "'image':'%s'}]}}",
                        image);
}

void scene_create(struct scene *s, const char *plural, const char *spec, const char *image)
{
    const struct str text = arena_printf(
        s->arena,
        "{'apiVersion':'" VERSION "','kind':'x','metadata':{'name':'web'},'spec':{%s%s'selector':{"
        "'matchLabels':{'app':'web'}},'template':%.*s}}",
        spec, *spec ? "," : "", STR_ARG(template_text(s, image)));
    must(world_create(&s->w, kind_text(s, plural), "n", text.p));
}

void scene_set_image(struct scene *s, const char *plural, const char *image)
{
    const struct str text =
        arena_printf(s->arena, "{'spec':{'template':%.*s}}", STR_ARG(template_text(s, image)));
    must(world_patch(&s->w, kind_text(s, plural), "n", "web", text.p));
}

void scene_patch(struct scene *s, const char *plural, const char *text)
{
    must(world_patch(&s->w, kind_text(s, plural), "n", "web", text));
}

void scene_crash_often(struct scene *s, int64_t ms)
{
    const int64_t end_us = s->w.clock.now_us + ms * 1000;
    while (s->w.clock.now_us < end_us) {
        s->w.api.n_writes_left = 1;
        world_pass(&s->w, 300);
        world_restart(&s->w);
    }
    s->w.api.n_writes_left = -1;
    world_restart(&s->w);
}

/* ---- looking ------------------------------------------------------------------------------- */

struct gathering {
    struct scene_app *apps;
    size_t n;
};

static struct scene_app app_of(const struct json *o)
{
    struct scene_app app = {
        .name = object_meta_text(o, "name"),
        .image = image_of(o),
        .device = json_str(json_at(o, "status", "device", NULL)),
        .revision = json_get_str(object_meta_at(o, "labels"), STR("eve.lfedge.org/revision")),
        .is_deleting = object_is_deleting(o),
        .object = o};
    JSON_FOR_EACH_ITEM (json_at(o, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), "Ready"))
            app.is_ready = str_is(json_get_str(c, STR("status")), "True");
    return app;
}

static void gather(void *ctx, struct str collection, const struct json *o)
{
    struct gathering *g = ctx;
    if (str_is(collection, APPS))
        g->apps[g->n++] = app_of(o);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct scene_app *) a)->name, ((const struct scene_app *) b)->name);
}

size_t scene_apps(struct scene *s, struct scene_app **ret)
{
    struct gathering g = {.apps = ARENA_ARRAY(s->arena, struct scene_app, s->w.api.n_objects + 1)};
    fake_each(&s->w.api, gather, &g);
    qsort(g.apps, g.n, sizeof(struct scene_app), by_name);
    *ret = g.apps;
    return g.n;
}

struct tally {
    const char *image;
    int64_t n_live, n_ready;
};

static void tally(void *ctx, struct str collection, const struct json *o)
{
    struct tally *t = ctx;
    if (!str_is(collection, APPS))
        return;
    const struct scene_app app = app_of(o);
    if (app.is_deleting || (t->image && !str_is(app.image, t->image)))
        return;
    t->n_live++;
    t->n_ready += app.is_ready;
}

int64_t scene_live(struct scene *s, const char *image)
{
    struct tally t = {.image = image};
    fake_each(&s->w.api, tally, &t);
    return t.n_live;
}

int64_t scene_ready(struct scene *s, const char *image)
{
    struct tally t = {.image = image};
    fake_each(&s->w.api, tally, &t);
    return t.n_ready;
}

static const char *collection_text(struct scene *s, const char *plural)
{
    return arena_printf(s->arena, "%s.eve.lfedge.org", plural).p;
}

int64_t scene_status(struct scene *s, const char *plural, const char *key)
{
    return json_get_int(world_at(&s->w, collection_text(s, plural), "n", "web", "status", NULL),
                        str_of(key), -1);
}

struct str scene_condition(struct scene *s, const char *plural, const char *type, const char *key)
{
    const struct json *conditions =
        world_at(&s->w, collection_text(s, plural), "n", "web", "status", "conditions", NULL);
    JSON_FOR_EACH_ITEM (conditions, c)
        if (str_is(json_get_str(c, STR("type")), type))
            return json_get_str(c, str_of(key));
    return STR_NONE;
}

size_t scene_revisions(struct scene *s)
{
    return fake_count(&s->w.api, "controllerrevisions.apps");
}
