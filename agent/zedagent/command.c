/* SPDX-License-Identifier: Apache-2.0 */
/* Reboot and shutdown: each counter is acted on once, also across restarts. What was acted on is on
 * disk before anything happens. */
#include "base/log.h"
#include "zedagent/zedagent_internal.h"

static const struct {
    const char *name;
    struct str file;
} kinds[COMMANDS] = {
    [COMMAND_REBOOT] = {"reboot", {"status/rebootConfig", sizeof("status/rebootConfig") - 1}},
    [COMMAND_SHUTDOWN] = {"shutdown",
                          {"status/shutdownConfig", sizeof("status/shutdownConfig") - 1}},
    [COMMAND_POWEROFF] = {"poweroff", {0}},
};

/* False: none, or nonsense. */
static bool read_counter(struct zedagent *z, enum command_kind kind, uint32_t *ret)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    const struct json *v, *counter;
    if (node_file_read(z->node, NODE_PERSIST, kinds[kind].file, &text) < 0)
        return false;
    v = json_parse_quick(a, buf_str(&text));
    counter = json_get(v, STR("Counter"));
    if (!json_is(counter, JSON_INT) || counter->i < 0 || counter->i > UINT32_MAX)
        return false;
    *ret = (uint32_t) counter->i;
    return true;
}

static void write_counter(struct zedagent *z, enum command_kind kind,
                          const Eve__Config__DeviceOpsCmd *c)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    json_append_member(a, &v, STR("Counter"), json_int(c->counter));
    json_append_member(a, &v, STR("DesiredState"), json_bool(c->desiredstate));
    json_append_member(a, &v, STR("OpsTime"),
                       json_string(str_is_utf8(str_of(c->opstime)) ? str_of(c->opstime) : STR("")));
    const int r = node_file_write(z->node, NODE_PERSIST, kinds[kind].file, json_text(a, &v));
    if (r < 0)
        log_error("a command's counter is not kept", LOG_STR("file", kinds[kind].file),
                  LOG_ERRNO(r));
}

static uint32_t *counter_of(struct zedagent *z, enum command_kind kind)
{
    return kind == COMMAND_REBOOT ? &z->facts.reboot_counter : &z->facts.shutdown_counter;
}

void command_load(struct zedagent *z)
{
    for (int kind = 0; kind < COMMAND_POWEROFF; kind++)
        (void) read_counter(z, (enum command_kind) kind, counter_of(z, (enum command_kind) kind));
}

static void act(struct zedagent *z, enum command_kind kind)
{
    z->commands[kind].is_commanded = true;
    z->commands[kind].is_deferred = false;
    log_info("the device is commanded to go down", LOG_TEXT("operation", kinds[kind].name),
             LOG_INT("is_local", z->commands[kind].is_local));
    topics_stop_apps(z);
    status_update(z);
}

static bool is_under_way(const struct zedagent *z, enum command_kind kind)
{
    const struct neighbours *n = &z->neighbours;
    const bool is_done[COMMANDS] = {[COMMAND_REBOOT] = n->is_rebooting,
                                    [COMMAND_SHUTDOWN] = n->is_shutting_down,
                                    [COMMAND_POWEROFF] = n->is_powering_off};
    return z->commands[kind].is_commanded || is_done[kind];
}

bool command_take(struct zedagent *z, enum command_kind kind, const Eve__Config__DeviceOpsCmd *c)
{
    struct command *command = &z->commands[kind];
    unsigned char hash[SHA256_BYTES];
    uint32_t before;
    if (!c) {
        (void) node_file_remove(z->node, NODE_PERSIST, kinds[kind].file);
        command->has_hash = false;
        return false;
    }
    parse_hash_message(&c->base, hash);
    if (command->has_hash && memcmp(command->hash, hash, sizeof(hash)) == 0)
        return command->is_acted_on;
    memcpy(command->hash, hash, sizeof(hash));
    command->has_hash = true;
    command->is_acted_on = false;
    const bool is_first = !read_counter(z, kind, &before);
    if (!is_first && before == c->counter)
        return false;
    write_counter(z, kind, c);
    if (is_first) {
        /* The first configuration of a new device only says where its counter stands. */
        *counter_of(z, kind) = c->counter;
        return false;
    }
    if (is_under_way(z, kind))
        return false;
    if (z->neighbours.is_testing_update) {
        command->is_deferred = true;
        return false;
    }
    command->is_acted_on = true;
    command->is_local = false;
    act(z, kind);
    return true;
}

bool command_can_obey(struct zedagent *z, enum command_kind kind)
{
    if (z->neighbours.is_testing_update) {
        z->commands[kind].is_deferred = true;
        z->commands[kind].is_local = true;
        return false;
    }
    return !is_under_way(z, kind);
}

void command_obey(struct zedagent *z, enum command_kind kind)
{
    z->commands[kind].is_local = true;
    act(z, kind);
}

void command_run_deferred(struct zedagent *z)
{
    for (int kind = 0; kind < COMMANDS; kind++)
        if (z->commands[kind].is_deferred && !is_under_way(z, (enum command_kind) kind)) {
            z->commands[kind].is_acted_on = true;
            act(z, (enum command_kind) kind);
        }
}
