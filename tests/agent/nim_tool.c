/* SPDX-License-Identifier: Apache-2.0 */
/* nim on this machine as a process of its own, with a service beside it that polls the controller,
 * and what zedagent would say published by the tool.
 *
 *     nim_tool CONFIG PERSIST RUN [machine] [changes] [geo=URL]
 *
 * machine: the machine's ports are a configuration at once; changes: ports are set up; geo: who is
 * asked where addresses are, otherwise nobody. Standard input has one JSON object a line, each
 * answered by one:
 *
 *     {"poll":true}                         POST config over the ports nim has published
 *     {"dpc":{DevicePortConfig}}            of the controller; {"undpc":true} withdraws it
 *     {"lps":{DevicePortConfig}}            of a local profile server; {"unlps":true}
 *     {"agent":{ZedAgentStatus}}
 *     {"items":{"timer.port.testinterval":2}}
 *     {"order":true}                        which ports the next poll would try
 *     {"metrics":true}                      of the polls
 *
 * It ends with standard input. */
#include <errno.h>
#include <stdio.h>

#include "loop/loop.h"
#include "machine/machine.h"
#include "nim/nim.h"
#include "node/link.h"
#include "tool.h"
#include "tool_node.h"

struct tool {
    struct tool_node own;
    struct machine *machine;
    struct nim *nim;
    struct node_link *link;
    struct publication *dpc, *agent, *items;
};

static void on_answer(void *arg, const struct uplink_answer *a)
{
    BUF_AUTO line = {0};
    (void) arg;
    buf_printf(&line, "{\"error\":%d,\"http\":%d,\"port\":", a->error, a->http_status);
    json_write_str(&line, a->port.p ? a->port : STR(""));
    buf_append_str(&line, STR(",\"words\":"));
    json_write_str(&line, a->words.p ? a->words : STR(""));
    tool_say("%s}", line.p);
}

static void poll_controller(struct tool *t)
{
    ARENA_AUTO a = arena_new();
    const struct uplink_request r = {.url = node_link_url(a, t->link, STR("config")),
                                     .body = STR("")};
    (void) uplink_send(t->link->uplink, &r, on_answer, t);
}

static int set_items(struct tool *t, const struct json *values)
{
    ARENA_AUTO a = arena_new();
    struct json *map = items_write(a, t->own.node->items);
    struct json *settings = json_ensure_object(a, map, STR("GlobalSettings"));
    JSON_FOR_EACH_MEMBER (values, m) {
        struct json *item = json_ensure_object(a, settings, json_str(&m->key));
        const bool is_tristate = str_is(json_str(&m->key), "network.fallback.any.eth");
        const bool is_bool = json_is(&m->value, JSON_BOOL);
        json_set(a, item, STR("Key"), m->key);
        json_set(a, item, STR("ItemType"), json_int(is_tristate ? 4 : is_bool ? 2 : 1));
        json_set(a, item,
                 is_tristate ? STR("TriStateValue")
                 : is_bool   ? STR("BoolValue")
                             : STR("IntValue"),
                 m->value);
    }
    return publication_publish(t->items, STR("global"), map);
}

static void say_metrics(const struct tool *t)
{
    BUF_AUTO line = {0};
    uplink_metrics_write(t->link->metrics, &line);
    tool_say("%s", line.p);
}

static void say_order(const struct tool *t)
{
    BUF_AUTO line = {0};
    size_t order[UPLINK_MAX_PORTS];
    const struct uplink_ports *ports = t->own.node->ports;
    const size_t n = ports ? uplink_ports_order(ports, 0, order) : 0;
    for (size_t i = 0; i < n; i++) {
        buf_append_char(&line, i ? ',' : '[');
        json_write_str(&line, ports->items[order[i]].name);
    }
    tool_say("%s]", n ? line.p : "[");
}

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
    (void) a;
    const struct json *dpc = json_get(v, STR("dpc")), *items = json_get(v, STR("items"));
    const struct json *agent = json_get(v, STR("agent")), *lps = json_get(v, STR("lps"));
    if (json_get(v, STR("poll")))
        poll_controller(t);
    else if (json_get(v, STR("metrics")))
        say_metrics(t);
    else if (json_get(v, STR("order")))
        say_order(t);
    else if (dpc)
        tool_say_result(publication_publish(t->dpc, STR("zedagent"), dpc));
    else if (json_get(v, STR("undpc")))
        tool_say_result(publication_unpublish(t->dpc, STR("zedagent")));
    else if (lps)
        tool_say_result(publication_publish(t->dpc, STR("lps"), lps));
    else if (json_get(v, STR("unlps")))
        tool_say_result(publication_unpublish(t->dpc, STR("lps")));
    else if (agent)
        tool_say_result(publication_publish(t->agent, STR("zedagent"), agent));
    else if (items)
        tool_say_result(set_items(t, items));
    else
        tool_say_result(-EINVAL);
}

static int publish(struct tool *t)
{
    static const struct str topics[] = {
        {"DevicePortConfig", 16}, {"ZedAgentStatus", 14}, {"ConfigItemValueMap", 18}};
    struct publication **const to[] = {&t->dpc, &t->agent, &t->items};
    int r = 0;
    for (size_t i = 0; r == 0 && i < N_ELEMENTS(topics); i++) {
        const struct pubsub_name name = {.agent = STR("zedagent"), .topic = topics[i]};
        r = publication_new(t->own.node->pubsub, &name, to[i]);
    }
    return r;
}

static int start(struct tool *t, char **argv)
{
    struct nim_options nim = {.geo_url = ""};
    struct machine_linux_options machine = {
        .loop = t->own.loop, .clock = &t->own.clock.clock, .root = ""};
    for (char **p = argv + 4; *p; p++) {
        nim.starts_with_machine = nim.starts_with_machine || strcmp(*p, "machine") == 0;
        if (strncmp(*p, "geo=", 4) == 0)
            nim.geo_url = *p + 4;
        machine.changes_network = machine.changes_network || strcmp(*p, "changes") == 0;
    }
    int r = machine_linux_new(&machine, &t->machine);
    if (r == 0)
        r = tool_node_start(&t->own, t->machine, argv + 1);
    if (r < 0)
        return r;
    const struct node_link_options link = {.agent = STR("tool")};
    r = publish(t);
    if (r == 0)
        r = node_link_new(t->own.node, &link, &t->link);
    return r < 0 ? r : nim_new(t->own.node, &nim, &t->nim);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void) fprintf(stderr,
                       "usage: nim_tool CONFIG PERSIST RUN [machine] [changes] [geo=URL]\n");
        return 2;
    }
    struct tool t = {0};
    tool_node_init(&t.own, 1);
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, NULL, &t);
    const int r = start(&t, argv);
    if (r == 0)
        loop_run(t.own.loop);
    nim_free(t.nim);
    node_link_free(t.link);
    publication_free(t.dpc);
    publication_free(t.agent);
    publication_free(t.items);
    tool_lines_free(lines);
    node_free(TAKE(t.own.node));
    machine_free(t.machine);
    tool_node_done(&t.own);
    return r < 0 ? 1 : 0;
}
