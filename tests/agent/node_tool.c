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
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "client/client.h"
#include "loop/loop.h"
#include "machine/machine.h"

#define READ_BYTES ((size_t) 64 * 1024)

struct tool {
    struct machine machine;
    struct loop *loop;
    struct loop_fd *input;
    struct buf pending;
    struct node *node;
    struct client *client;
    struct publication *network;
    struct str serial;
    int exit_code;
};

static void say(const char *event, const char *name, struct str text)
{
    BUF_AUTO line = {0};
    buf_printf(&line, "{\"event\":\"%s\",\"%s\":", event, name);
    json_write_str(&line, text);
    (void) printf("%s}\n", line.p);
    (void) fflush(stdout);
}

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
    say("hostname", "name", name);
    return 0;
}

static const struct machine_functions functions = {
    .name = "tool", .identity = identity, .set_hostname = set_hostname};

/* ---- commands ------------------------------------------------------------------------------ */

static void run_command(struct tool *t, const struct json *v)
{
    const struct json *network = json_get(v, STR("network"));
    const int r = network ? publication_publish(t->network, STR("global"), network) : -EINVAL;
    if (r < 0)
        say("error", "words", str_of(log_errno_text(r)));
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

/* ---- life ---------------------------------------------------------------------------------- */

static void on_done(void *arg, int exit_code)
{
    struct tool *t = arg;
    client_free(TAKE(t->client));
    t->exit_code = exit_code;
    (void) printf("{\"event\":\"done\",\"code\":%d}\n", exit_code);
    loop_stop(t->loop);
}

static int start(struct tool *t, struct uplink_wire *wire, char **argv)
{
    char *error = NULL;
    const struct node_options o = {.loop = t->loop,
                                   .clock = &clock_system,
                                   .wire = wire,
                                   .machine = &t->machine,
                                   .directories = {argv[1], argv[2], argv[3]}};
    int r = node_new(&o, &t->node, &error);
    if (r < 0) {
        say("error", "words", str_of(error));
        mem_free(error);
        return r;
    }
    struct client_options client = {.on_done = on_done, .arg = t};
    for (char **p = argv + 5; *p; p++) {
        const struct str word = str_of(*p);
        client.registers = client.registers || str_is(word, "register");
        client.asks_uuid = client.asks_uuid || str_is(word, "uuid");
        if (str_starts_with(word, STR("max=")))
            client.max_attempts = (unsigned) strtoul(*p + 4, NULL, 10);
    }
    const struct pubsub_name name = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    r = publication_new(t->node->pubsub, &name, &t->network);
    return r < 0 ? r : client_new(t->node, &client, &t->client);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void) fprintf(stderr, "usage: node_tool CONFIG PERSIST RUN SERIAL [register] [uuid]\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}, .serial = str_of(argv[4]), .exit_code = 3};
    t.loop = loop_new();
    struct uplink_wire *wire = uplink_wire_new(t.loop, &clock_system);
    t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    if (start(&t, wire, argv) == 0)
        loop_run(t.loop);
    client_free(t.client);
    publication_free(t.network);
    node_free(t.node);
    loop_fd_free(t.input, NULL, NULL);
    loop_settle(t.loop);
    uplink_wire_free(wire);
    loop_settle(t.loop);
    loop_free(t.loop);
    buf_done(&t.pending);
    return t.exit_code;
}
