/* SPDX-License-Identifier: Apache-2.0 */
/* Restarts and purges of applications that were ordered nearby, as counters beside the
 * controller's, and whether they are done. What is kept is LocalCommands of pillar:
 *   AppCommands        the last command of each application
 *   AppCounters        how many of each kind it was given
 *   VolumeGenCounters  how often each volume was made anew */
#include <inttypes.h>

#include "base/log.h"
#include "base/map.h"
#include "protobuf/message.h"
#include "zedagent/gotype.h"
#include "zedagent/zedagent_internal.h"

#define KEPT STR("checkpoint/appCommands")
#define GIVEN STR("AppCommands")
#define COUNTERS STR("AppCounters")
#define GENERATIONS STR("VolumeGenCounters")

#define APP_RESTART EVE__PROFILE__APP_COMMAND__COMMAND__COMMAND_RESTART
#define APP_PURGE EVE__PROFILE__APP_COMMAND__COMMAND__COMMAND_PURGE

/* ---- what is kept --------------------------------------------------------------------------- */

/* NULL: nothing was ever ordered. */
const struct json *commands_read(const struct zedagent *z, struct arena *a)
{
    return z->local.commands.n ? json_parse_quick(a, z->local.commands) : NULL;
}

static struct json *begin(const struct zedagent *z, struct arena *a)
{
    const struct json *kept = commands_read(z, a);
    struct json *v = json_new(a, kept ? json_clone(a, kept) : json_object());
    (void) json_ensure_object(a, v, GIVEN);
    (void) json_ensure_object(a, v, COUNTERS);
    (void) json_ensure_object(a, v, GENERATIONS);
    return v;
}

static void keep(struct zedagent *z, struct arena *a, const struct json *v)
{
    const struct str text = json_text(a, v);
    const int r = node_file_write(z->node, NODE_PERSIST, KEPT, text);
    if (r < 0)
        log_error("local commands are not kept", LOG_STR("file", KEPT), LOG_ERRNO(r));
    (void) zedagent_keep(&z->local.commands, text);
}

/* ---- when they are done --------------------------------------------------------------------- */

static bool is_waiting(const struct json *commands)
{
    JSON_FOR_EACH_MEMBER (json_get(commands, GIVEN), m)
        if (!json_get_bool(&m->value, STR("Completed"), false))
            return true;
    return false;
}

static bool is_done(const struct json *command, const struct json *status)
{
    const bool is_purge = json_get_int(command, STR("Command"), 0) == APP_PURGE;
    const struct json *began =
        json_get(status, is_purge ? STR("PurgeStartedAt") : STR("RestartStartedAt"));
    return json_get_int(status, STR("PurgeInprogress"), 0) == 0 &&
           json_get_int(status, STR("RestartInprogress"), 0) == 0 &&
           node_json_time_us(began) >=
               node_json_time_us(json_get(command, STR("DeviceTimestamp"))) &&
           node_json_time_us(began) > 0;
}

static void on_app(void *arg, struct str key, const struct json *status)
{
    struct zedagent *z = arg;
    ARENA_AUTO a = arena_new();
    struct json *v = begin(z, a);
    struct json *command = json_get(json_get(v, GIVEN), key);
    if (!command || json_get_bool(command, STR("Completed"), false) || !is_done(command, status))
        return;
    (void) json_set(a, command, STR("Completed"), json_bool(true));
    (void) json_set(a, command, STR("LastCompletedTimestamp"),
                    json_int(json_get_int(command, STR("LocalServerTimestamp"), 0)));
    log_info("a local command is carried out", LOG_STR("application", key));
    keep(z, a, v);
    zedagent_emit(z, ZEDAGENT_FACTS);
    if (!is_waiting(v))
        subscription_free(TAKE(z->local.apps));
}

static void on_app_again(void *arg, struct str key, const struct json *value,
                         const struct json *old)
{
    (void) old;
    on_app(arg, key, value);
}

static void watch(struct zedagent *z)
{
    static const struct subscription_handlers h = {.on_create = on_app, .on_modify = on_app_again};
    const struct pubsub_name name = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")};
    if (z->local.apps)
        return;
    const int r = subscription_new(z->node->pubsub, &name, &h, z, &z->local.apps);
    if (r < 0)
        log_error("the end of a local command is not seen, ignoring", LOG_ERRNO(r));
}

uint64_t zedagent_app_command_done(const struct zedagent *z, struct str app)
{
    ARENA_AUTO a = arena_new();
    const struct json *command = json_get(json_get(commands_read(z, a), GIVEN), app);
    return (uint64_t) json_get_int(command, STR("LastCompletedTimestamp"), 0);
}

void commands_load(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    if (node_file_read(z->node, NODE_PERSIST, KEPT, &text) < 0)
        return;
    const struct json *v = json_parse_quick(a, buf_str(&text));
    if (!json_is(v, JSON_OBJECT)) {
        log_warning("kept local commands are damaged, ignoring them", LOG_STR("file", KEPT));
        return;
    }
    (void) zedagent_keep(&z->local.commands, buf_str(&text));
    if (is_waiting(v))
        watch(z);
}

/* ---- what is published ---------------------------------------------------------------------- */

static int64_t generation_of(const struct json *commands, const struct json *names_it)
{
    return json_get_int(json_get(commands, GENERATIONS), json_get_str(names_it, STR("VolumeID")),
                        0);
}

/* As volumemgr knows it. */
static struct str volume_key(struct arena *a, const struct json *names_it)
{
    return arena_printf(a, "%.*s#%" PRId64, STR_ARG(json_get_str(names_it, STR("VolumeID"))),
                        json_get_int(names_it, STR("GenerationCounter"), 0) +
                            json_get_int(names_it, STR("LocalGenerationCounter"), 0));
}

void commands_amend_app(struct arena *a, const struct json *commands, struct json *app)
{
    const struct str id = json_get_str(json_get(app, STR("UUIDandVersion")), STR("UUID"));
    const struct json *counters = json_get(json_get(commands, COUNTERS), id);
    const struct json *restart = json_get(counters, STR("RestartCmd"));
    const struct json *purge = json_get(counters, STR("PurgeCmd"));
    if (restart)
        (void) json_set(a, app, STR("LocalRestartCmd"), *restart);
    if (purge)
        (void) json_set(a, app, STR("LocalPurgeCmd"), *purge);
    if (!json_count(json_get(commands, GENERATIONS)))
        return;
    JSON_FOR_EACH_ITEM (json_get(app, STR("VolumeRefConfigList")), ref)
        (void) json_set(a, ref, STR("LocalGenerationCounter"),
                        json_int(generation_of(commands, ref)));
}

struct json *commands_amend_volumes(struct arena *a, const struct json *commands, struct json *all)
{
    struct json *amended = json_new(a, json_object());
    if (!json_count(json_get(commands, GENERATIONS)))
        return all;
    JSON_FOR_EACH_MEMBER (all, m) {
        (void) json_set(a, &m->value, STR("LocalGenerationCounter"),
                        json_int(generation_of(commands, &m->value)));
        (void) json_append_member(a, amended, volume_key(a, &m->value), m->value);
    }
    return amended;
}

/* The volumes of the application as they are published, under their next generation. */
static void publish_volumes(struct zedagent *z, struct arena *a, const struct json *commands,
                            const struct json *app)
{
    struct publication *p = z->topics.sections[SECTION_VOLUMES];
    JSON_FOR_EACH_ITEM (json_get(app, STR("VolumeRefConfigList")), ref) {
        const struct str before = volume_key(a, ref);
        struct json *volume = publication_get(a, p, before);
        if (!volume || json_get_int(volume, STR("LocalGenerationCounter"), 0) ==
                           generation_of(commands, volume))
            continue;
        (void) json_set(a, volume, STR("LocalGenerationCounter"),
                        json_int(generation_of(commands, volume)));
        (void) publication_unpublish(p, before);
        (void) publication_publish(p, volume_key(a, volume), volume);
    }
}

static void publish(struct zedagent *z, struct arena *a, const struct json *commands, struct str id)
{
    struct publication *p = z->topics.sections[SECTION_APPS];
    struct json *app = publication_get(a, p, id);
    int r;
    if (!app)
        return;
    publish_volumes(z, a, commands, app);
    commands_amend_app(a, commands, app);
    r = publication_publish(p, id, app);
    if (r < 0)
        log_error("a local command is not passed on", LOG_STR("application", id), LOG_ERRNO(r));
}

/* ---- commands ------------------------------------------------------------------------------- */

static void count_up(struct zedagent *z, struct arena *a, struct json *counters, struct str name)
{
    const int64_t before = json_get_int(json_get(counters, name), STR("Counter"), 0);
    struct gotype g = gotype_new(a);
    gotype_int(&g, "Counter", before < UINT32_MAX ? before + 1 : 0);
    gotype_text(&g, "ApplyTime", gotype_time_text(a, z->node->clock->wall_us(z->node->clock)));
    (void) json_set(a, counters, name, *g.object);
}

/* The configuration of the application says which volumes it has. */
static void renew_volumes(struct zedagent *z, struct arena *a, struct json *v, struct str id)
{
    const struct json *app = publication_get(a, z->topics.sections[SECTION_APPS], id);
    struct json *generations = json_get(v, GENERATIONS);
    JSON_FOR_EACH_ITEM (json_get(app, STR("VolumeRefConfigList")), ref) {
        const struct str volume = json_get_str(ref, STR("VolumeID"));
        (void) json_set(a, generations, volume, json_int(json_get_int(generations, volume, 0) + 1));
    }
}

/* False: it is known already. */
static bool record(struct zedagent *z, struct arena *a, struct json *v, struct str id,
                   const Eve__Profile__AppCommand *c)
{
    const struct json *before = json_get(json_get(v, GIVEN), id);
    const int64_t done = json_get_int(before, STR("LastCompletedTimestamp"), 0);
    struct gotype g = gotype_new(a);
    if (before && json_get_int(before, STR("Command"), 0) == (int64_t) c->command &&
        json_get_int(before, STR("LocalServerTimestamp"), 0) == (int64_t) c->timestamp)
        return false;
    gotype_int(&g, "Command", c->command);
    gotype_int(&g, "LocalServerTimestamp", (int64_t) c->timestamp);
    gotype_time(&g, "DeviceTimestamp", z->node->clock->wall_us(z->node->clock));
    gotype_bool(&g, "Completed", false);
    gotype_int(&g, "LastCompletedTimestamp", done);
    (void) json_set(a, json_get(v, GIVEN), id, *g.object);
    struct json *counters = json_ensure_object(a, json_get(v, COUNTERS), id);
    if (c->command == APP_RESTART)
        count_up(z, a, counters, STR("RestartCmd"));
    else
        count_up(z, a, counters, STR("PurgeCmd"));
    return true;
}

static bool is_command(const Eve__Profile__AppCommand *c)
{
    /* JSON has no larger ones, and a timestamp that is kept wrongly is a command for ever. */
    return (c->command == APP_RESTART || c->command == APP_PURGE) && c->timestamp <= INT64_MAX;
}

/* Those that are new, of those that make sense: one for each application. */
static struct local_app *record_all(struct zedagent *z, struct arena *a, struct json *v,
                                    const Eve__Profile__LocalAppCmdList *list)
{
    CLEANUP(map_done) struct map seen = {0};
    struct local_app *apps = local_list_apps(z, a), *given = NULL;
    size_t n_ignored = 0;
    for (size_t i = 0; i < MIN(list->n_app_commands, (size_t) LOCAL_MAX_APPS); i++) {
        const Eve__Profile__AppCommand *c = list->app_commands[i];
        const struct local_app *app = local_find_app(apps, pb_text(c->id), pb_text(c->displayname));
        if (!app || !is_command(c) || map_get(&seen, app->id)) {
            n_ignored++;
            continue;
        }
        (void) map_put(&seen, app->id, list->app_commands[i]);
        if (!record(z, a, v, app->id, c))
            continue;
        if (c->command == APP_PURGE)
            renew_volumes(z, a, v, app->id);
        log_info("a local command", LOG_STR("application", app->id),
                 LOG_TEXT("command", c->command == APP_PURGE ? "purge" : "restart"));
        struct local_app *one = ARENA_NEW(a, struct local_app);
        *one = (struct local_app){.id = app->id, .next = given};
        given = one;
    }
    if (n_ignored)
        log_warning("local commands that make no sense, ignoring them",
                    LOG_INT("n", (int64_t) n_ignored));
    return given;
}

void zedagent_take_app_commands(struct zedagent *z, const Eve__Profile__LocalAppCmdList *list)
{
    ARENA_AUTO a = arena_new();
    if (!list->n_app_commands)
        return;
    struct json *v = begin(z, a);
    const struct local_app *given = record_all(z, a, v, list);
    if (!given)
        return;
    /* Before anybody acts on it: after a crash the counters stand where they were. */
    keep(z, a, v);
    watch(z);
    for (; given; given = given->next)
        publish(z, a, v, given->id);
}

/* ---- what is gone --------------------------------------------------------------------------- */

static bool drop_absent(struct json *object, const struct map *present)
{
    bool has_dropped = false;
    for (size_t i = json_count(object); i-- > 0;) {
        const struct str key = json_str(&object->members[i].key);
        if (!map_get(present, key))
            has_dropped |= json_remove(object, key);
    }
    return has_dropped;
}

static void fill(struct map *present, struct arena *a, const struct publication *p)
{
    size_t position = 0;
    struct str key, text;
    while (publication_next(p, &position, &key, &text)) {
        const ptrdiff_t sign = str_find(key, '#');
        (void) map_put(present, arena_str(a, sign < 0 ? key : str_sub(key, 0, (size_t) sign)), a);
    }
}

void local_prune(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(map_done) struct map apps = {0}, volumes = {0};
    struct json *v;
    if (!z->local.commands.n)
        return;
    v = begin(z, a);
    fill(&apps, a, z->topics.sections[SECTION_APPS]);
    fill(&volumes, a, z->topics.sections[SECTION_VOLUMES]);
    const bool is_other[] = {drop_absent(json_get(v, GIVEN), &apps),
                             drop_absent(json_get(v, COUNTERS), &apps),
                             drop_absent(json_get(v, GENERATIONS), &volumes)};
    if (is_other[0] || is_other[1] || is_other[2])
        keep(z, a, v);
}
