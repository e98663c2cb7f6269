/* SPDX-License-Identifier: Apache-2.0 */
/* Applications -> app instances. One that lacks anything is left out, whole: nothing of it is put
 * into the configuration before all of it is there. */
#include <errno.h>
#include <stdlib.h>

#include "base/uuid.h"
#include "composer/composer_internal.h"
#include "pki/pki.h"

#define APPS "apps"
#define VNC "vnc"
#define VNC_DISPLAYS 1000u /* 1 to so many: TCP ports from 5901 on */
#define MEMORY_DEFAULT_KB (512 * 1024)
#define KIBIBYTE 1024
/* What a device can hold of an application apart from its user data. */
#define APP_MAX_BYTES ((size_t) 60 * 1024)

static const struct json *container(const struct app *app)
{
    const struct json *all = json_get(app->spec, STR("containers"));
    return json_count(all) && json_is(all, JSON_ARRAY) ? &all->items[0] : NULL;
}

/* ---- resources ------------------------------------------------------------------------------- */

/* The sum over containers of what each is limited to, else requests, each rounded up. */
static int sum_of(const struct app *app, const char *resource, int64_t unit, int64_t *ret)
{
    *ret = 0;
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("containers")), item) {
        const struct json *resources = json_get(item, STR("resources"));
        const struct json *limit = json_at(resources, "limits", resource, NULL);
        int64_t amount;
        if (object_amount(limit ? limit : json_at(resources, "requests", resource, NULL), unit,
                          &amount) < 0 ||
            __builtin_add_overflow(*ret, amount, ret))
            return -EINVAL;
    }
    return 0;
}

static bool is_kept_by_other(struct composition *c, const struct app *app, int64_t display)
{
    JSON_FOR_EACH_MEMBER (json_get(c->in->previous, STR(VNC)), m)
        if (json_is(&m->value, JSON_INT) && m->value.i == display &&
            !str_eq(json_str(&m->key), app->uuid))
            return true;
    return false;
}

/* Displays are the applications' own, so that the order in which they came says nothing. */
static uint32_t choose_display(struct composition *c, const struct app *app)
{
    unsigned char hash[SHA256_BYTES];
    int64_t display = kept_int(c, VNC, app->uuid, 0);
    pki_sha256(app->uuid, hash);
    if (display < 1 || display > VNC_DISPLAYS)
        display = 1 + ((uint32_t) hash[0] << 8 | hash[1]) % VNC_DISPLAYS;
    for (uint32_t i = 0; i < VNC_DISPLAYS; i++) {
        const struct str key = arena_printf(c->arena, "display %lld", (long long) display);
        if (!json_get(c->lent, key) && !is_kept_by_other(c, app, display)) {
            (void) json_set(c->arena, c->lent, key, json_string(app->name));
            break;
        }
        display = 1 + display % VNC_DISPLAYS;
    }
    keep(c, VNC, app->uuid, json_int(display));
    return (uint32_t) display;
}

static int set_resources(struct composition *c, struct app *app)
{
    Eve__Config__VmConfig *m = app->message->fixedresources =
        MESSAGE_NEW(c->arena, eve__config__vm_config);
    int64_t memory, cpus;
    if (sum_of(app, "memory", KIBIBYTE, &memory) < 0 || sum_of(app, "cpu", 1, &cpus) < 0 ||
        memory > UINT32_MAX || cpus > UINT32_MAX) {
        problem_add(c, app->object, STR("spec.containers"),
                    "resources: what is asked for is no amount or too much");
        return -EINVAL;
    }
    m->memory = m->maxmem = memory ? (uint32_t) memory : MEMORY_DEFAULT_KB;
    m->vcpus = m->maxcpus = cpus ? (uint32_t) cpus : 1;
    m->virtualizationmode = EVE__CONFIG__VM_MODE__HVM;
    m->enable_vnc = json_get_bool(app->spec, STR("vnc"), false);
    if (m->enable_vnc)
        m->vncdisplay = choose_display(c, app);
    return 0;
}

/* ---- the image ------------------------------------------------------------------------------- */

static struct str boot_uuid(struct composition *c, const struct app *app)
{
    return uuid_of_names(c->arena, STR("boot"), app->uuid);
}

static int set_boot(struct composition *c, struct app *app)
{
    const struct json *first = container(app);
    const struct str image = json_get_str(first, STR("image"));
    struct str why;
    int64_t size;
    if (tree_make(c, image, &app->tree, &why) < 0) {
        problem_add(c, app->object, STR("spec.containers[0].image"), "%.*s", STR_ARG(why));
        return -EINVAL;
    }
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("containers")), item)
        if (!str_eq(json_get_str(item, STR("image")), image)) {
            problem_add(c, app->object, STR("spec.containers"),
                        "a device runs one image for each application");
            return -EINVAL;
        }
    const bool is_container = app->tree.message->iformat == EVE__CONFIG__FORMAT__CONTAINER;
    if (sum_of(app, "storage", 1, &size) < 0) {
        problem_add(c, app->object, STR("spec.containers"), "resources: storage is no amount");
        return -EINVAL;
    }
    if (size == 0)
        size = (int64_t) app->tree.message->maxsizebytes;
    app->boot =
        volume_of_boot(c, boot_uuid(c, app), &app->tree, is_container ? 0 : size, app->name);
    return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Interfaces without their rules, which change without a restart. */
static struct str interfaces_content(struct arena *a, const Eve__Config__AppInstanceConfig *m)
{
    struct str all = STR("");
    for (size_t i = 0; i < m->n_interfaces; i++) {
        Eve__Config__NetworkAdapter bare = *m->interfaces[i];
        bare.n_acls = 0;
        const struct str parts[] = {all, pb_pack(a, &bare.base), STR("\n")};
        all = arena_join(a, parts, N_ELEMENTS(parts));
    }
    return all;
}

/* What a user wrote of the environment, but not what Secrets hold: those change without a word. */
static struct str environment_content(struct arena *a, const struct app *app)
{
    struct json all = json_array();
    const struct json *given[] = {json_get(app->spec, STR("userData")),
                                  json_get(app->spec, STR("userDataSecret"))};
    for (size_t i = 0; i < N_ELEMENTS(given); i++)
        (void) json_push(a, &all, given[i] ? *given[i] : json_null());
    JSON_FOR_EACH_ITEM (json_get(app->spec, STR("containers")), item)
        if (json_get(item, STR("env")))
            (void) json_push(a, &all, *json_get(item, STR("env")));
    return json_text(a, &all);
}

static struct str volumes_content(struct arena *a, const Eve__Config__AppInstanceConfig *m)
{
    Eve__Config__AppInstanceConfig bare;
    eve__config__app_instance_config__init(&bare);
    bare.n_volumereflist = m->n_volumereflist;
    bare.volumereflist = m->volumereflist;
    bare.n_adapters = m->n_adapters;
    bare.adapters = m->adapters;
    return pb_pack(a, &bare.base);
}

static Eve__Config__InstanceOpsCmd *counted(struct composition *c, const struct app *app,
                                            const char *name, struct str content)
{
    Eve__Config__InstanceOpsCmd *m = MESSAGE_NEW(c->arena, eve__config__instance_ops_cmd);
    m->counter = (uint32_t) counter_of_content(c, APPS, app->uuid, name, content, 0);
    return m;
}

/* An edit has the effect that a user expects of it: memory restarts, volumes purge. */
static void set_counters(struct composition *c, struct app *app)
{
    struct arena *a = c->arena;
    Eve__Config__AppInstanceConfig *m = app->message;
    const struct str restart[] = {pb_pack(a, &m->fixedresources->base), STR("\n"),
                                  interfaces_content(a, m), environment_content(a, app)};
    m->restart = counted(c, app, "restart", arena_join(a, restart, N_ELEMENTS(restart)));
    m->purge = counted(c, app, "purge", volumes_content(a, m));
    m->cloud_init_version =
        (uint32_t) counter_of_content(c, APPS, app->uuid, "userData", app->user_data, 1);
    m->uuidandversion->version =
        arena_strz(a, arena_printf(a, "%lld",
                                   (long long) counter_of_content(c, APPS, app->uuid, "version",
                                                                  pb_pack(a, &m->base), 1)));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int check_size(struct composition *c, const struct app *app)
{
    Eve__Config__AppInstanceConfig bare = *app->message;
    bare.cipherdata = NULL;
    if (pb_pack(c->arena, &bare.base).n <= APP_MAX_BYTES)
        return 0;
    problem_add(c, app->object, STR("spec"), "it is too much for a device: at most %zu bytes",
                APP_MAX_BYTES);
    return -EINVAL;
}

static struct str uuid_key(struct composition *c, const struct app *app)
{
    return arena_printf(c->arena, "uuid %.*s", STR_ARG(app->uuid));
}

static int make(struct composition *c, struct app *app)
{
    Eve__Config__AppInstanceConfig *m = app->message =
        MESSAGE_NEW(c->arena, eve__config__app_instance_config);
    if (app->uuid.n == 0) {
        problem_add(c, app->object, STR("status.uuid"), "it has no UUID yet");
        return -EINVAL;
    }
    const struct json *twin = json_get(c->lent, uuid_key(c, app));
    if (twin) {
        problem_add(c, app->object, STR("status.uuid"), "it is that of Application '%.*s'",
                    STR_ARG(json_str(twin)));
        return -EINVAL;
    }
    m->uuidandversion = MESSAGE_NEW(c->arena, eve__config__uuidand_version);
    m->uuidandversion->uuid = arena_strz(c->arena, app->uuid);
    m->displayname = arena_strz(c->arena, app->name);
    m->activate = json_get_bool(app->spec, STR("activate"), true);
    if (set_boot(c, app) < 0 || app_volumes(c, app) < 0 || app_adapters(c, app) < 0 ||
        app_interfaces(c, app) < 0 || app_user_data(c, app) < 0 || set_resources(c, app) < 0 ||
        check_size(c, app) < 0)
        return -EINVAL;
    set_counters(c, app);
    return 0;
}

static void use(struct composition *c, const struct app *app)
{
    tree_use(c, &app->tree);
    cipher_use(c, &app->sealed);
    struct part *v = part_add(c, SECTION_VOLUMES, arena_str(c->arena, str_of(app->boot->uuid)),
                              &app->boot->base);
    part_source(c, v, "", app->object, STR("spec.containers[0].image"));
    struct part *p = part_add(c, SECTION_APPS, app->name, &app->message->base);
    part_source(c, p, "", app->object, STR("spec"));
    if (app->sealed.block)
        part_source(c, p, "cipherData", app->user_data_source, app->user_data_field);
    (void) json_set(c->arena, c->lent, uuid_key(c, app), json_string(app->name));
    JSON_FOR_EACH_MEMBER (&app->taken, m)
        (void) json_set(c->arena, c->lent, json_str(&m->key), json_string(app->name));
}

static void keep_all(struct composition *c, const struct app *app)
{
    if (app->uuid.n == 0)
        return;
    keep_previous(c, APPS, app->uuid);
    keep_previous(c, VNC, app->uuid);
    volume_keep_boot(c, boot_uuid(c, app));
}

static struct app app_of(const struct json *object)
{
    return (struct app){
        .object = object,
        .spec = json_get(object, STR("spec")),
        .name = object_name(object),
        .uuid = object_uuid(object),
        .taken = json_object(),
    };
}

void applications_emit(struct composition *c)
{
    const size_t n = c->in->applications.n;
    const struct json **sorted = set_by_age(c, &c->in->applications, APPS);
    size_t n_failed = 0;
    for (size_t i = 0; i < n; i++) {
        struct app app = app_of(sorted[i]);
        if (part_find(c, SECTION_APPS, app.name))
            continue;
        if (make(c, &app) == 0) {
            use(c, &app);
            continue;
        }
        keep_all(c, &app);
        sorted[n_failed++] = sorted[i];
    }
    for (size_t i = 0; i < n_failed; i++) {
        struct app app = app_of(sorted[i]);
        (void) app_retain(c, &app);
    }
}
