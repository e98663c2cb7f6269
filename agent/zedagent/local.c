/* SPDX-License-Identifier: Apache-2.0 */
/* The profile in force, silence of radios, commands to the device; where all of it is kept. */
#include "zedagent/local.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "protobuf/message.h"
#include "zedagent/zedagent_internal.h"

#define PROFILE_FILE STR("checkpoint/lastlocalprofile")
#define RADIO_FILE STR("checkpoint/lastradioconfig")
#define TIMESTAMP_FILE STR("status/lastdevcmdtimestamp")
#define MAX_TIMESTAMP_DIGITS 20

static void keep_file(struct zedagent *z, struct str file, struct str content)
{
    const int r = node_file_write(z->node, NODE_PERSIST, file, content);
    if (r < 0)
        log_error("what was ordered locally is not kept", LOG_STR("file", file), LOG_ERRNO(r));
}

/* ---- the profile ---------------------------------------------------------------------------- */

struct str local_current_profile(const struct zedagent *z)
{
    return z->local.profile.n ? z->local.profile : z->local.global_profile;
}

static void load_profile(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO bytes = {0};
    const Eve__Profile__LocalProfile *p;
    if (node_file_read(z->node, NODE_PERSIST, PROFILE_FILE, &bytes) < 0)
        return;
    p = PB_UNPACK(a, eve__profile__local_profile, buf_str(&bytes));
    if (p && pb_text(p->local_profile).n <= LOCAL_MAX_PROFILE_BYTES)
        (void) zedagent_keep(&z->local.profile, pb_text(p->local_profile));
}

void zedagent_take_profile(struct zedagent *z, struct str profile)
{
    ARENA_AUTO a = arena_new();
    Eve__Profile__LocalProfile p = EVE__PROFILE__LOCAL_PROFILE__INIT;
    if (profile.n > LOCAL_MAX_PROFILE_BYTES) {
        log_warning("a local profile's name is too long, ignoring it",
                    LOG_INT("bytes", (int64_t) profile.n));
        return;
    }
    if (str_eq(profile, z->local.profile))
        return;
    log_info("local profile", LOG_STR("name", profile));
    p.local_profile = arena_strz(a, profile);
    p.server_token = arena_strz(a, z->local.token);
    keep_file(z, PROFILE_FILE, pb_pack(a, &p.base));
    (void) zedagent_keep(&z->local.profile, profile);
    status_update(z);
}

/* ---- radios --------------------------------------------------------------------------------- */

static void on_network(void *arg, struct str key, const struct json *value)
{
    struct zedagent *z = arg;
    struct local_radio *radio = &z->local.radio;
    const struct json *silence = json_get(value, STR("RadioSilence"));
    (void) key;
    if (json_get_bool(silence, STR("ChangeInProgress"), false) ||
        node_json_time_us(json_get(silence, STR("ChangeRequestedAt"))) != radio->requested_us)
        return;
    radio->is_changing = false;
    subscription_free(TAKE(z->local.network));
    status_update(z);
}

static void on_network_again(void *arg, struct str key, const struct json *value,
                             const struct json *old)
{
    (void) old;
    on_network(arg, key, value);
}

/* Until nim says that it is as it was asked. */
static void watch_radio(struct zedagent *z)
{
    static const struct subscription_handlers h = {.on_create = on_network,
                                                   .on_modify = on_network_again};
    const struct pubsub_name name = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    z->local.radio.is_changing = true;
    z->local.radio.requested_us = z->node->clock->wall_us(z->node->clock);
    if (z->local.network)
        return;
    const int r = subscription_new(z->node->pubsub, &name, &h, z, &z->local.network);
    if (r < 0)
        log_error("the state of radios is not seen, ignoring", LOG_ERRNO(r));
}

static void load_radio(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO bytes = {0};
    const Eve__Profile__RadioConfig *c;
    if (node_file_read(z->node, NODE_PERSIST, RADIO_FILE, &bytes) < 0)
        return;
    c = PB_UNPACK(a, eve__profile__radio_config, buf_str(&bytes));
    if (!c || !c->radio_silence)
        return;
    z->local.radio.is_silent = true;
    watch_radio(z);
}

void zedagent_take_radio_silence(struct zedagent *z, bool is_silent)
{
    ARENA_AUTO a = arena_new();
    Eve__Profile__RadioConfig c = EVE__PROFILE__RADIO_CONFIG__INIT;
    if (z->local.radio.is_silent == is_silent)
        return;
    log_info("radio silence", LOG_INT("is_imposed", is_silent));
    c.radio_silence = is_silent;
    /* What is empty counts as absent. */
    if (is_silent)
        keep_file(z, RADIO_FILE, pb_pack(a, &c.base));
    else
        (void) node_file_remove(z->node, NODE_PERSIST, RADIO_FILE);
    z->local.radio.is_silent = is_silent;
    watch_radio(z);
    status_update(z);
}

struct local_radio zedagent_radio(const struct zedagent *z)
{
    return z->local.radio;
}

/* ---- commands to the device ----------------------------------------------------------------- */

static void load_timestamp(struct zedagent *z)
{
    BUF_AUTO text = {0};
    uint64_t value = 0;
    if (node_file_read(z->node, NODE_PERSIST, TIMESTAMP_FILE, &text) < 0 ||
        text.n > MAX_TIMESTAMP_DIGITS)
        return;
    for (size_t i = 0; i < text.n; i++) {
        const unsigned digit = (unsigned) (text.p[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return;
        value = value * 10 + digit;
    }
    z->local.device_timestamp = value;
}

static void keep_timestamp(struct zedagent *z, uint64_t timestamp)
{
    ARENA_AUTO a = arena_new();
    z->local.device_timestamp = timestamp;
    keep_file(z, TIMESTAMP_FILE, arena_printf(a, "%" PRIu64, timestamp));
}

static int open_collect_info(struct zedagent *z)
{
    const struct pubsub_name name = {.agent = STR("zedagent"), .topic = STR("CollectInfoCmd")};
    return z->topics.collect_info
               ? 0
               : publication_new(z->node->pubsub, &name, &z->topics.collect_info);
}

/* For EVE's own collector. One that was not taken up gives way to the next. */
static void collect_info(struct zedagent *z, uint64_t timestamp)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    int r = open_collect_info(z);
    if (r == 0) {
        json_append_member(
            a, &v, STR("Time"),
            *node_json_time(a, (int64_t) MIN(timestamp / 1000, (uint64_t) INT64_MAX / 1000)));
        (void) publication_unpublish(z->topics.collect_info, STR("command"));
        r = publication_publish(z->topics.collect_info, STR("command"), &v);
    }
    if (r < 0)
        log_error("the command to collect information is not published", LOG_ERRNO(r));
}

void zedagent_take_device_command(struct zedagent *z, const Eve__Profile__LocalDevCmd *command)
{
    static const enum command_kind kinds[] = {
        [EVE__PROFILE__LOCAL_DEV_CMD__COMMAND__COMMAND_SHUTDOWN] = COMMAND_SHUTDOWN,
        [EVE__PROFILE__LOCAL_DEV_CMD__COMMAND__COMMAND_SHUTDOWN_POWEROFF] = COMMAND_POWEROFF,
        [EVE__PROFILE__LOCAL_DEV_CMD__COMMAND__COMMAND_GRACEFUL_REBOOT] = COMMAND_REBOOT};
    const unsigned what = (unsigned) command->command;
    if (command->timestamp == z->local.device_timestamp)
        return;
    if (what == EVE__PROFILE__LOCAL_DEV_CMD__COMMAND__COMMAND_COLLECT_INFO) {
        keep_timestamp(z, command->timestamp);
        collect_info(z, command->timestamp);
        return;
    }
    if (what == EVE__PROFILE__LOCAL_DEV_CMD__COMMAND__COMMAND_UNSPECIFIED ||
        what >= N_ELEMENTS(kinds) || !command_can_obey(z, kinds[what]))
        return;
    /* First, so that it is not repeated after the restart. */
    keep_timestamp(z, command->timestamp);
    command_obey(z, kinds[what]);
}

uint64_t zedagent_device_command_done(const struct zedagent *z)
{
    return z->local.device_timestamp;
}

/* ---- the configuration ---------------------------------------------------------------------- */

struct local_server zedagent_local_server(const struct zedagent *z)
{
    return (struct local_server){.address = z->local.server, .token = z->local.token};
}

struct publication *zedagent_app_configs(const struct zedagent *z)
{
    return z->topics.sections[SECTION_APPS];
}

struct publication *zedagent_network_instances(const struct zedagent *z)
{
    return z->topics.sections[SECTION_NETWORK_INSTANCES];
}

void local_follow_config(struct zedagent *z, const Eve__Config__EdgeDevConfig *config)
{
    struct local *l = &z->local;
    const bool has_other_server =
        zedagent_keep(&l->server, str_trim(pb_text(config->local_profile_server)));
    const bool has_other_token = zedagent_keep(&l->token, pb_text(config->profile_server_token));
    (void) zedagent_keep(&l->global_profile, pb_text(config->global_profile));
    if (!l->server.n && l->profile.n) {
        (void) node_file_remove(z->node, NODE_PERSIST, PROFILE_FILE);
        (void) zedagent_keep(&l->profile, STR(""));
    }
    network_follow_config(z);
    /* Nobody is left who could end it. */
    if (!l->server.n && !z->loc_url.n)
        zedagent_take_radio_silence(z, false);
    /* Applications that are not of the profile must not start for a moment. */
    status_update(z);
    if (has_other_server || has_other_token)
        zedagent_emit(z, ZEDAGENT_LOCAL);
}

struct json *local_amend(struct zedagent *z, enum section_id id, struct arena *a, struct json *all)
{
    const struct json *commands =
        id == SECTION_APPS || id == SECTION_VOLUMES ? commands_read(z, a) : NULL;
    if (id == SECTION_VOLUMES)
        return commands_amend_volumes(a, commands, all);
    if (id != SECTION_APPS)
        return all;
    JSON_FOR_EACH_MEMBER (all, m) {
        commands_amend_app(a, commands, &m->value);
        boot_amend_app(z, a, &m->value);
    }
    return all;
}

/* ---- applications --------------------------------------------------------------------------- */

struct local_app *local_list_apps(const struct zedagent *z, struct arena *a)
{
    struct local_app *list = NULL;
    size_t position = 0;
    struct str key, text;
    while (publication_next(z->topics.sections[SECTION_APPS], &position, &key, &text)) {
        struct local_app *app = ARENA_NEW(a, struct local_app);
        const struct json *v = json_parse_quick(a, text);
        *app = (struct local_app){
            .id = arena_str(a, key), .name = json_get_str(v, STR("DisplayName")), .next = list};
        list = app;
    }
    return list;
}

const struct local_app *local_find_app(const struct local_app *list, struct str id, struct str name)
{
    struct uuid u;
    char canonical[UUID_TEXT_BYTES] = "";
    if (id.n && uuid_parse(id, &u) < 0)
        return NULL;
    if (id.n && !uuid_is_zero(&u))
        uuid_text(&u, canonical);
    if (!canonical[0] && !name.n)
        return NULL;
    for (; list; list = list->next)
        if ((!canonical[0] || str_is(list->id, canonical)) && (!name.n || str_eq(list->name, name)))
            return list;
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */

void local_load(struct zedagent *z)
{
    load_profile(z);
    load_radio(z);
    load_timestamp(z);
    commands_load(z);
    boot_load(z);
    network_load(z);
}

void local_done(struct zedagent *z)
{
    struct local *l = &z->local;
    const struct str *texts[] = {&l->server,   &l->token,       &l->global_profile, &l->profile,
                                 &l->commands, &l->boot_orders, &l->ports};
    for (size_t i = 0; i < N_ELEMENTS(texts); i++)
        mem_free((char *) texts[i]->p);
    subscription_free(l->apps);
    subscription_free(l->network);
}
