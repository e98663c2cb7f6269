/* SPDX-License-Identifier: Apache-2.0 */
/* A node with a client as a process of its own, and what nim would say published by the tool.
 *
 *     node_tool CONFIG PERSIST RUN SERIAL [register] [uuid] [max=N]
 *
 * Standard input has one JSON object a line:
 *
 *     {"network":{DeviceNetworkStatus}}
 *
 * Events are lines of standard output: {"event":"hostname","name":".."}, {"event":"done","code":0},
 * {"event":"error","words":".."}. It ends with the client, or with standard input. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/client.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "tool.h"
#include "tool_node.h"

struct tool {
    struct machine machine;
    struct tool_node own;
    struct client *client;
    struct publication *network;
    struct str serial;
    int exit_code;
};

/* ---- the machine --------------------------------------------------------------------------- */

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) a;
    *ret = (struct machine_identity){.serial = CONTAINER_OF(m, struct tool, machine)->serial,
                                     .manufacturer = STR("Tool"),
                                     .product = STR("One")};
    return 0;
}

static int set_hostname(struct machine *m, struct str name)
{
    (void) m;
    tool_say_event("hostname", "name", name);
    return 0;
}

static const struct machine_functions functions = {
    .name = "tool", .identity = identity, .set_hostname = set_hostname};

/* ---- commands ------------------------------------------------------------------------------ */

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
    (void) a;
    const struct json *network = json_get(v, STR("network"));
    const int r = network ? publication_publish(t->network, STR("global"), network) : -EINVAL;
    if (r < 0)
        tool_say_error(r);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void on_done(void *arg, int exit_code)
{
    struct tool *t = arg;
    client_free(TAKE(t->client));
    t->exit_code = exit_code;
    tool_say("{\"event\":\"done\",\"code\":%d}", exit_code);
    loop_stop(t->own.loop);
}

static int start(struct tool *t, char **argv)
{
    int r = tool_node_start(&t->own, &t->machine, argv + 1);
    if (r < 0)
        return r;
    struct client_options client = {.on_done = on_done, .arg = t};
    for (char **p = argv + 5; *p; p++) {
        const struct str word = str_of(*p);
        client.registers = client.registers || str_is(word, "register");
        client.asks_uuid = client.asks_uuid || str_is(word, "uuid");
        if (str_starts_with(word, STR("max=")))
            client.max_attempts = (unsigned) strtoul(*p + 4, NULL, 10);
    }
    const struct pubsub_name name = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    r = publication_new(t->own.node->pubsub, &name, &t->network);
    return r < 0 ? r : client_new(t->own.node, &client, &t->client);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void) fprintf(stderr, "usage: node_tool CONFIG PERSIST RUN SERIAL [register] [uuid]\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}, .serial = str_of(argv[4]), .exit_code = 3};
    tool_node_init(&t.own, 1);
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, NULL, &t);
    if (start(&t, argv) == 0)
        loop_run(t.own.loop);
    client_free(t.client);
    publication_free(t.network);
    tool_lines_free(lines);
    tool_node_done(&t.own);
    return t.exit_code;
}
