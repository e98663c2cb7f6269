/* SPDX-License-Identifier: Apache-2.0 */
/* A node with zedagent as a process of its own, and what nim and nodeagent would say published by
 * the tool.
 *
 *     zedagent_tool CONFIG PERSIST RUN SPEED
 *
 * Time runs so many times faster. Standard input has one JSON object a line:
 *
 *     {"network":{DeviceNetworkStatus}}
 *     {"nodeagent":{NodeAgentStatus}}
 *     {"items":true}      the items of the configuration, with their errors
 *     {"facts":true}
 *     {"hurry":true}
 *
 * Events are lines of standard output: {"event":"items","list":[{"name","value","error"}]},
 * {"event":"facts",..}, {"event":"epoch"}, {"event":"forbidden"}, {"event":"certs"},
 * {"event":"error","words":".."}. It ends with standard input. */
#include <stdio.h>
#include <stdlib.h>

#include "loop/loop.h"
#include "machine/machine.h"
#include "tool.h"
#include "tool_node.h"
#include "zedagent/zedagent.h"

struct tool {
    struct machine machine;
    struct tool_node own;
    struct zedagent *zedagent;
    struct zedagent_listener listener;
    struct publication *network, *nodeagent;
};

static void say(struct arena *a, const char *event, const char *name, struct json value)
{
    struct json line = json_object();
    json_append_member(a, &line, STR("event"), json_string(str_of(event)));
    if (name)
        json_append_member(a, &line, str_of(name), value);
    tool_say("%s", json_text(a, &line).p);
}

/* ---- the machine --------------------------------------------------------------------------- */

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("tool"), .product = STR("One")};
    return 0;
}

static int set_hostname(struct machine *m, struct str name)
{
    (void) m;
    (void) name;
    return 0;
}

static const struct machine_functions functions = {
    .name = "tool", .identity = identity, .set_hostname = set_hostname};

/* ---- what is said -------------------------------------------------------------------------- */

static void on_event(struct zedagent_listener *l, enum zedagent_event e)
{
    static const char *const names[] = {[ZEDAGENT_EPOCH] = "epoch",
                                        [ZEDAGENT_FORBIDDEN] = "forbidden",
                                        [ZEDAGENT_NEEDS_CERTS] = "certs"};
    ARENA_AUTO a = arena_new();
    (void) l;
    if ((size_t) e < N_ELEMENTS(names) && names[e])
        say(a, names[e], NULL, json_null());
}

static void say_items(struct tool *t, struct arena *a)
{
    struct items_status *statuses;
    const size_t n = items_statuses(a, zedagent_items(t->zedagent), &statuses);
    struct json list = json_array();
    for (size_t i = 0; i < n; i++) {
        struct json item = json_object();
        json_append_member(a, &item, STR("name"), json_string(statuses[i].name));
        json_append_member(a, &item, STR("value"), json_string(statuses[i].value));
        json_append_member(a, &item, STR("error"),
                           statuses[i].error.n ? json_string(statuses[i].error) : json_null());
        json_push(a, &list, item);
    }
    say(a, "items", "list", list);
}

static void say_facts(struct tool *t, struct arena *a)
{
    const struct zedagent_facts *f = zedagent_facts(t->zedagent);
    struct json o = json_object();
    json_append_member(a, &o, STR("status"), json_int(f->config_status));
    json_append_member(a, &o, STR("reboot"), json_int(f->reboot_counter));
    json_append_member(a, &o, STR("shutdown"), json_int(f->shutdown_counter));
    json_append_member(a, &o, STR("maintenance"), json_bool(f->is_maintenance));
    json_append_member(a, &o, STR("configured"), json_bool(f->is_configured));
    say(a, "facts", "facts", o);
}

/* ---- commands ------------------------------------------------------------------------------ */

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
    const struct json *network = json_get(v, STR("network"));
    const struct json *nodeagent = json_get(v, STR("nodeagent"));
    int r = 0;
    if (network)
        r = publication_publish(t->network, STR("global"), network);
    else if (nodeagent)
        r = publication_publish(t->nodeagent, STR("nodeagent"), nodeagent);
    else if (json_get(v, STR("items")))
        say_items(t, a);
    else if (json_get(v, STR("facts")))
        say_facts(t, a);
    else
        zedagent_hurry(t->zedagent);
    if (r < 0)
        tool_say_error(r);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int start_services(struct tool *t)
{
    const struct pubsub_name network = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name nodeagent = {.agent = STR("nodeagent"),
                                          .topic = STR("NodeAgentStatus")};
    int r = publication_new(t->own.node->pubsub, &network, &t->network);
    if (r == 0)
        r = publication_new(t->own.node->pubsub, &nodeagent, &t->nodeagent);
    if (r == 0)
        r = zedagent_new(t->own.node, &(struct zedagent_options){0}, &t->zedagent);
    if (r < 0)
        return r;
    t->listener.on_event = on_event;
    zedagent_listen(t->zedagent, &t->listener);
    return 0;
}

static int start(struct tool *t, char **argv)
{
    int r = tool_node_start(&t->own, &t->machine, argv + 1);
    if (r < 0)
        return r;
    r = start_services(t);
    if (r < 0)
        tool_say_error(r);
    return r;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void) fprintf(stderr, "usage: zedagent_tool CONFIG PERSIST RUN SPEED\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}};
    tool_node_init(&t.own, strtod(argv[4], NULL));
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, NULL, &t);
    const int r = start(&t, argv);
    if (r == 0)
        loop_run(t.own.loop);
    zedagent_free(t.zedagent);
    publication_free(t.network);
    publication_free(t.nodeagent);
    tool_lines_free(lines);
    tool_node_done(&t.own);
    return r < 0;
}
