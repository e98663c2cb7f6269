/* SPDX-License-Identifier: Apache-2.0 */
/* Where configurations come from: the controller through zedagent, the console, files of the
 * installer. And what else other services say that concerns the network. */
#include <dirent.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "nim/nim_internal.h"

#define PRIORITY_OF_FILE_US ((int64_t) 315532800 * 1000000) /* 1980-01-01 */
#define DIRECTORY "DevicePortConfig"
#define MAX_FILES 32
#define NIL_UUID "00000000-0000-0000-0000-000000000000"

/* ---- configurations ------------------------------------------------------------------------ */

static struct dpc_defaults defaults_of(const struct nim *m, enum dpc_origin origin, struct str key)
{
    return (struct dpc_defaults){.key = key,
                                 .priority_us =
                                     origin == DPC_ORIGIN_OVERRIDE ? PRIORITY_OF_FILE_US : 0,
                                 .origin = origin,
                                 .submitted_us = m->node->clock->wall_us(m->node->clock)};
}

static void take(struct nim *m, enum dpc_origin origin, struct str key, const struct json *value)
{
    const struct dpc_defaults d = defaults_of(m, origin, key);
    struct dpc *dpc = NULL;
    const int r = dpc_read(value, &d, &dpc);
    if (r < 0)
        log_warning("a port configuration makes no sense, ignoring", LOG_STR("key", key),
                    LOG_ERRNO(r));
    else
        nim_put(m, dpc);
}

static void drop(struct nim *m, enum dpc_origin origin, struct str key, const struct json *last)
{
    const struct dpc_defaults d = defaults_of(m, origin, key);
    CLEANUP(dpc_freep) struct dpc *dpc = NULL;
    if (dpc_read(last, &d, &dpc) == 0)
        nim_remove(m, dpc);
}

static enum dpc_origin origin_of(const struct json *value)
{
    return str_is(json_get_str(value, STR("Key")), "bootstrap") ? DPC_ORIGIN_BOOTSTRAP
                                                                : DPC_ORIGIN_CONTROLLER;
}

/* No configuration to choose: it changes whichever is chosen. */
static bool is_overlay(struct str key, const struct json *value)
{
    const struct str own = json_get_str(value, STR("Key"));
    return str_is(own.n ? own : key, DPC_KEY_LPS);
}

static void take_overlay(struct nim *m, const struct json *value)
{
    const struct dpc_defaults d = defaults_of(m, DPC_ORIGIN_LPS, STR(DPC_KEY_LPS));
    struct dpc *dpc = NULL;
    const int r = dpc_read(value, &d, &dpc);
    if (r < 0)
        log_warning("what a local profile server wants of ports makes no sense, ignoring",
                    LOG_ERRNO(r));
    else
        nim_lay_over(m, dpc);
}

static void on_zedagent(void *arg, struct str key, const struct json *value)
{
    if (is_overlay(key, value))
        take_overlay(arg, value);
    else
        take(arg, origin_of(value), key, value);
}

static void on_zedagent_again(void *arg, struct str key, const struct json *value,
                              const struct json *old)
{
    (void) old;
    on_zedagent(arg, key, value);
}

static void on_zedagent_gone(void *arg, struct str key, const struct json *last)
{
    if (is_overlay(key, last))
        nim_lay_over(arg, NULL);
    else
        drop(arg, origin_of(last), key, last);
}

static void on_monitor(void *arg, struct str key, const struct json *value)
{
    (void) key;
    take(arg, DPC_ORIGIN_MANUAL, STR(DPC_KEY_MANUAL), value);
}

static void on_monitor_again(void *arg, struct str key, const struct json *value,
                             const struct json *old)
{
    (void) old;
    on_monitor(arg, key, value);
}

static void on_monitor_gone(void *arg, struct str key, const struct json *last)
{
    (void) key;
    drop(arg, DPC_ORIGIN_MANUAL, STR(DPC_KEY_MANUAL), last);
}

static void on_file(void *arg, struct str key, const struct json *value)
{
    take(arg, DPC_ORIGIN_OVERRIDE, key, value);
}

static void on_file_again(void *arg, struct str key, const struct json *value,
                          const struct json *old)
{
    (void) old;
    on_file(arg, key, value);
}

static void on_file_gone(void *arg, struct str key, const struct json *last)
{
    drop(arg, DPC_ORIGIN_OVERRIDE, key, last);
}

/* ---- the installer's files ----------------------------------------------------------------- */

/* A simulated device has no global topic outside of memory, so it reads them itself. */
static void take_file(struct nim *m, struct arena *a, struct str name)
{
    BUF_AUTO text = {0};
    const struct str path = arena_printf(a, DIRECTORY "/%.*s", STR_ARG(name));
    int r = node_file_read(m->node, NODE_CONFIG, path, &text);
    if (r == 0 && !m->node->is_simulated)
        r = node_file_write(m->node, NODE_RUN,
                            arena_printf(a, "global/" DIRECTORY "/%.*s", STR_ARG(name)),
                            buf_str(&text));
    if (r < 0) {
        log_warning("a port configuration of the installer is not read, ignoring",
                    LOG_STR("file", name), LOG_ERRNO(r));
        return;
    }
    if (m->node->is_simulated)
        on_file(m, str_sub(name, 0, name.n - 5), json_parse_quick(a, buf_str(&text)));
}

static bool has_file(const struct node *n, enum node_directory d, struct str name)
{
    BUF_AUTO content = {0};
    return node_file_read(n, d, name, &content) == 0;
}

/* What an earlier life has copied, where the run directory outlives it. */
static void drop_file(struct nim *m, struct arena *a, struct str name)
{
    (void) node_file_remove(m->node, NODE_RUN,
                            arena_printf(a, "global/" DIRECTORY "/%.*s", STR_ARG(name)));
}

/* They serve until a controller has been heard. */
static void take_files(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    const bool is_over = has_file(m->node, NODE_PERSIST, STR("checkpoint/lastconfig")) ||
                         has_file(m->node, NODE_CONFIG, STR("bootstrap-config.pb"));
    DIR *d = opendir(node_path(a, m->node, NODE_CONFIG, STR(DIRECTORY)));
    if (!d)
        return;
    const struct dirent *e;
    for (size_t n = 0; n < MAX_FILES && (e = readdir(d));) {
        const struct str name = str_of(e->d_name);
        if (name.n <= 5 || name.p[0] == '.' || !str_ends_with(name, STR(".json")))
            continue;
        if (is_over)
            drop_file(m, a, name);
        else
            take_file(m, a, arena_str(a, name));
        n++;
    }
    (void) closedir(d);
}

/* ---- what else concerns us ----------------------------------------------------------------- */

static void on_other(void *arg, struct str key, const struct json *value)
{
    struct nim *m = arg;
    ARENA_AUTO a = arena_new();
    (void) key;
    (void) value;
    const bool was_silent = m->verifier.is_silent;
    m->verifier.is_silent = json_get_bool(nim_radio_silence(m, a), STR("Imposed"), false);
    if (was_silent && !m->verifier.is_silent)
        verifier_restart(&m->verifier);
    /* It may be what a test waits for: a modem, an adapter that was given back. */
    verifier_hurry(&m->verifier);
    m->needs_status = true;
    nim_act(m);
}

static void on_other_again(void *arg, struct str key, const struct json *value,
                           const struct json *old)
{
    (void) old;
    on_other(arg, key, value);
}

/* Most of ZedAgentStatus is none of our business, and it changes often. */
static void on_agent_again(void *arg, struct str key, const struct json *value,
                           const struct json *old)
{
    const struct json *now = json_get(value, STR("RadioSilence"));
    const struct json *before = json_get(old, STR("RadioSilence"));
    if ((now || before) && !(now && before && json_equal(now, before)))
        on_other(arg, key, value);
}

static struct json *value_of(const struct nim *m, struct arena *a, enum nim_topic t, struct str key)
{
    return m->topics[t] ? subscription_get(a, m->topics[t], key) : NULL;
}

struct json *nim_radio_silence(const struct nim *m, struct arena *a)
{
    return json_get(value_of(m, a, NIM_AGENT_STATUS, STR("zedagent")), STR("RadioSilence"));
}

struct json *nim_modems(const struct nim *m, struct arena *a)
{
    return value_of(m, a, NIM_MODEMS, STR("global"));
}

struct str nim_loc_url(const struct nim *m, struct arena *a)
{
    if (items_tristate(m->node->items, "airgap.mode") != ITEMS_ENABLED)
        return STR_NONE;
    size_t at = 0;
    struct str key, text;
    while (m->topics[NIM_LOC] && subscription_next(m->topics[NIM_LOC], &at, &key, &text)) {
        const struct str url = json_get_str(json_parse_quick(a, text), STR("LocURL"));
        if (url.n > 0)
            return arena_str(a, url);
    }
    return STR_NONE;
}

struct nim_held nim_held(const struct nim *m, struct arena *a, const struct dpc *d)
{
    struct nim_held held = {0};
    const struct json *adapters = value_of(m, a, NIM_ADAPTERS, STR("global"));
    JSON_FOR_EACH_ITEM (json_get(adapters, STR("IoBundleList")), bundle) {
        const struct str name = json_get_str(bundle, STR("Ifname"));
        const struct str user = json_get_str(bundle, STR("UsedByUUID"));
        if (name.n == 0 || !json_get_bool(bundle, STR("IsPCIBack"), false) ||
            !dpc_find_port(d, name))
            continue;
        held.is_held = true;
        if (user.n > 0 && !str_is(user, NIL_UUID)) {
            held.is_assigned = true;
            held.words = arena_printf(a, "port %.*s in PCIBack is used by %.*s", STR_ARG(name),
                                      STR_ARG(user));
        }
    }
    return held;
}

/* ---- topics -------------------------------------------------------------------------------- */

static const struct {
    struct str agent, topic;
    bool is_persistent;
    struct subscription_handlers handlers;
} topics[NIM_TOPICS] = {
    [NIM_OF_ZEDAGENT] = {{"zedagent", 8},
                         {DIRECTORY, 16},
                         false,
                         {.on_create = on_zedagent,
                          .on_modify = on_zedagent_again,
                          .on_delete = on_zedagent_gone}},
    [NIM_OF_MONITOR] = {{"monitor", 7},
                        {DIRECTORY, 16},
                        true,
                        {.on_create = on_monitor,
                         .on_modify = on_monitor_again,
                         .on_delete = on_monitor_gone}},
    [NIM_OF_FILES] = {{"", 0},
                      {DIRECTORY, 16},
                      false,
                      {.on_create = on_file,
                       .on_modify = on_file_again,
                       .on_delete = on_file_gone}},
    [NIM_AGENT_STATUS] = {{"zedagent", 8},
                          {"ZedAgentStatus", 14},
                          false,
                          {.on_create = on_other, .on_modify = on_agent_again}},
    [NIM_LOC] = {{"zedagent", 8}, {"LOCConfig", 9}, false, {0}},
    [NIM_ADAPTERS] = {{"domainmgr", 9},
                      {"AssignableAdapters", 18},
                      false,
                      {.on_create = on_other, .on_modify = on_other_again}},
    [NIM_MODEMS] = {{"wwan", 4},
                    {"WwanStatus", 10},
                    false,
                    {.on_create = on_other, .on_modify = on_other_again}},
};

/* Nobody makes these for a simulated device. */
static bool is_for_real(enum nim_topic t)
{
    return t == NIM_OF_MONITOR || t == NIM_OF_FILES || t == NIM_ADAPTERS || t == NIM_MODEMS;
}

int nim_sources_new(struct nim *m)
{
    take_files(m);
    for (size_t i = 0; i < NIM_TOPICS; i++) {
        if (m->node->is_simulated && is_for_real((enum nim_topic) i))
            continue;
        const struct pubsub_name name = {.agent = topics[i].agent,
                                         .topic = topics[i].topic,
                                         .is_persistent = topics[i].is_persistent};
        const int r =
            subscription_new(m->node->pubsub, &name, &topics[i].handlers, m, &m->topics[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

void nim_sources_free(struct nim *m)
{
    for (size_t i = 0; i < NIM_TOPICS; i++)
        subscription_free(TAKE(m->topics[i]));
}
