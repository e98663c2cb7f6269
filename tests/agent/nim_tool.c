/* SPDX-License-Identifier: Apache-2.0 */
/* nim on this machine as a process of its own, with a service beside it that polls the controller,
 * and what zedagent would say published by the tool.
 *
 *     nim_tool CONFIG PERSIST RUN [machine] [changes]
 *
 * machine: the machine's ports are a configuration at once; changes: ports are set up. Standard
 * input has one JSON object a line, each answered by one:
 *
 *     {"poll":true}                         POST config over the ports nim has published
 *     {"dpc":{DevicePortConfig}}            of the controller; {"undpc":true} withdraws it
 *     {"agent":{ZedAgentStatus}}
 *     {"items":{"timer.port.testinterval":2}}
 *     {"order":true}                        which ports the next poll would try
 *     {"metrics":true}                      of the polls
 *
 * It ends with standard input. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "nim/nim.h"
#include "node/link.h"

#define READ_BYTES ((size_t) 64 * 1024)

struct tool {
    struct loop *loop;
    struct loop_fd *input;
    struct buf pending;
    struct machine *machine;
    struct node *node;
    struct nim *nim;
    struct node_link *link;
    struct publication *dpc, *agent, *items;
};

static void say_result(int r)
{
    (void) printf("{\"error\":%d}\n", r);
    (void) fflush(stdout);
}

static void on_answer(void *arg, const struct uplink_answer *a)
{
    BUF_AUTO line = {0};
    (void) arg;
    buf_printf(&line, "{\"error\":%d,\"http\":%d,\"port\":", a->error, a->http_status);
    json_write_str(&line, a->port.p ? a->port : STR(""));
    buf_append_str(&line, STR(",\"words\":"));
    json_write_str(&line, a->words.p ? a->words : STR(""));
    (void) printf("%s}\n", line.p);
    (void) fflush(stdout);
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
    struct json *map = items_write(a, t->node->items);
    struct json *settings = json_ensure_object(a, map, STR("GlobalSettings"));
    JSON_FOR_EACH_MEMBER (values, m) {
        struct json *item = json_ensure_object(a, settings, json_str(&m->key));
        const bool is_tristate = str_is(json_str(&m->key), "network.fallback.any.eth");
        json_set(a, item, STR("Key"), m->key);
        json_set(a, item, STR("ItemType"), json_int(is_tristate ? 4 : 1));
        json_set(a, item, is_tristate ? STR("TriStateValue") : STR("IntValue"), m->value);
    }
    return publication_publish(t->items, STR("global"), map);
}

static void say_metrics(const struct tool *t)
{
    BUF_AUTO line = {0};
    uplink_metrics_write(t->link->metrics, &line);
    (void) printf("%s\n", line.p);
    (void) fflush(stdout);
}

static void say_order(const struct tool *t)
{
    BUF_AUTO line = {0};
    size_t order[UPLINK_MAX_PORTS];
    const struct uplink_ports *ports = t->node->ports;
    const size_t n = ports ? uplink_ports_order(ports, 0, order) : 0;
    for (size_t i = 0; i < n; i++) {
        buf_append_char(&line, i ? ',' : '[');
        json_write_str(&line, ports->items[order[i]].name);
    }
    (void) printf("%s]\n", n ? line.p : "[");
    (void) fflush(stdout);
}

static void run_command(struct tool *t, const struct json *v)
{
    const struct json *dpc = json_get(v, STR("dpc")), *items = json_get(v, STR("items"));
    const struct json *agent = json_get(v, STR("agent"));
    if (json_get(v, STR("poll")))
        poll_controller(t);
    else if (json_get(v, STR("metrics")))
        say_metrics(t);
    else if (json_get(v, STR("order")))
        say_order(t);
    else if (dpc)
        say_result(publication_publish(t->dpc, STR("zedagent"), dpc));
    else if (json_get(v, STR("undpc")))
        say_result(publication_unpublish(t->dpc, STR("zedagent")));
    else if (agent)
        say_result(publication_publish(t->agent, STR("zedagent"), agent));
    else if (items)
        say_result(set_items(t, items));
    else
        say_result(-EINVAL);
}

static void on_input(void *arg, unsigned ready)
{
    struct tool *t = arg;
    (void) ready;
    const ssize_t n = read(STDIN_FILENO, buf_reserve(&t->pending, READ_BYTES), READ_BYTES);
    if (n <= 0) {
        loop_stop(t->loop);
        return;
    }
    t->pending.n += (size_t) n;
    ptrdiff_t end;
    while ((end = str_find(buf_str(&t->pending), '\n')) >= 0) {
        ARENA_AUTO a = arena_new();
        run_command(t, json_parse_quick(a, str_sub(buf_str(&t->pending), 0, (size_t) end)));
        buf_consume(&t->pending, (size_t) end + 1);
    }
}

static int publish(struct tool *t)
{
    static const struct str topics[] = {
        {"DevicePortConfig", 16}, {"ZedAgentStatus", 14}, {"ConfigItemValueMap", 18}};
    struct publication **const to[] = {&t->dpc, &t->agent, &t->items};
    int r = 0;
    for (size_t i = 0; r == 0 && i < N_ELEMENTS(topics); i++) {
        const struct pubsub_name name = {.agent = STR("zedagent"), .topic = topics[i]};
        r = publication_new(t->node->pubsub, &name, to[i]);
    }
    return r;
}

static int start(struct tool *t, struct uplink_wire *wire, char **argv)
{
    char *error = NULL;
    struct nim_options nim = {0};
    struct machine_linux_options machine = {.loop = t->loop, .clock = &clock_system, .root = ""};
    for (char **p = argv + 4; *p; p++) {
        nim.starts_with_machine = nim.starts_with_machine || strcmp(*p, "machine") == 0;
        machine.changes_network = machine.changes_network || strcmp(*p, "changes") == 0;
    }
    int r = machine_linux_new(&machine, &t->machine);
    if (r < 0)
        return r;
    const struct node_options o = {.loop = t->loop,
                                   .clock = &clock_system,
                                   .wire = wire,
                                   .machine = t->machine,
                                   .directories = {argv[1], argv[2], argv[3]}};
    r = node_new(&o, &t->node, &error);
    if (r < 0) {
        (void) fprintf(stderr, "%s\n", error);
        mem_free(error);
        return r;
    }
    const struct node_link_options link = {.agent = STR("tool")};
    r = publish(t);
    if (r == 0)
        r = node_link_new(t->node, &link, &t->link);
    return r < 0 ? r : nim_new(t->node, &nim, &t->nim);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void) fprintf(stderr, "usage: nim_tool CONFIG PERSIST RUN [machine] [changes]\n");
        return 2;
    }
    struct tool t = {.loop = loop_new()};
    struct uplink_wire *wire = uplink_wire_new(t.loop, &clock_system);
    t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    const int r = start(&t, wire, argv);
    if (r == 0)
        loop_run(t.loop);
    nim_free(t.nim);
    node_link_free(t.link);
    publication_free(t.dpc);
    publication_free(t.agent);
    publication_free(t.items);
    node_free(t.node);
    if (t.machine)
        machine_free(t.machine);
    loop_fd_free(t.input, NULL, NULL);
    loop_settle(t.loop);
    uplink_wire_free(wire);
    loop_settle(t.loop);
    loop_free(t.loop);
    buf_done(&t.pending);
    return r < 0 ? 1 : 0;
}
