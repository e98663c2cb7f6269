/* SPDX-License-Identifier: Apache-2.0 */
/* A device of zedagent, attest and nodeagent in a process of its own, and what nim and whoever has
 * the applications would say published by the tool.
 *
 *     attest_tool CONFIG PERSIST RUN SPEED [TCTI]
 *
 * Time runs so many times faster. Standard input has one JSON object a line:
 *
 *     {"network":{DeviceNetworkStatus}}
 *     {"app":{AppInstanceStatus}}
 *     {"open":{CipherBlockStatus}}
 *     {"sign":"words"}
 *     {"tpm":true}
 *
 * Events are lines of standard output: {"event":"opened","plain":"base64"},
 * {"event":"signed","envelope":"base64"}, {"event":"tpm","name":"base64"},
 * {"event":"restart","reason":".."}, {"event":"error","words":".."}. It ends with standard input,
 * or when the machine restarts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "attest/attest.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "nodeagent/nodeagent.h"
#include "zedagent/zedagent.h"

#define READ_BYTES ((size_t) 64 * 1024)

struct tool {
    struct machine machine;
    struct loop *loop;
    struct clock_scaled clock;
    struct loop_fd *input;
    struct buf pending;
    struct node *node;
    struct zedagent *zedagent;
    struct nodeagent *nodeagent;
    struct node_keys *keys;
    struct attest *attest;
    struct publication *network, *apps;
};

static void say(const char *event, const char *name, struct str text)
{
    BUF_AUTO line = {0};
    buf_printf(&line, "{\"event\":\"%s\",\"%s\":", event, name);
    json_write_str(&line, text);
    (void) printf("%s}\n", line.p);
    (void) fflush(stdout);
}

static void say_error(int r)
{
    say("error", "words", str_of(log_errno_text(r)));
}

/* ---- the machine --------------------------------------------------------------------------- */

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("tool"),
                                     .manufacturer = STR("Tool"),
                                     .product = STR("One"),
                                     .eve_version = STR("13.4.0-kvm-amd64"),
                                     .bios_vendor = STR("Maker"),
                                     .bios_version = STR("1.0")};
    return 0;
}

static int restart(struct machine *m, enum machine_restart how, struct str reason)
{
    struct tool *t = CONTAINER_OF(m, struct tool, machine);
    say(how == MACHINE_REBOOT ? "restart" : "poweroff", "reason", reason);
    loop_stop(t->loop);
    return 0;
}

static const struct machine_functions functions = {
    .name = "tool", .identity = identity, .restart = restart};

/* ---- commands ------------------------------------------------------------------------------ */

static void say_bytes(struct arena *a, const char *event, const char *name, int r, struct str bytes)
{
    if (r < 0)
        say_error(r);
    else
        say(event, name, base64_encode(a, bytes, BASE64_STANDARD));
}

static void run_command(struct tool *t, struct arena *a, const struct json *v)
{
    const struct json *network = json_get(v, STR("network")), *app = json_get(v, STR("app"));
    const struct json *block = json_get(v, STR("open"));
    const struct str words = json_get_str(v, STR("sign"));
    struct msrv_tpm_keys keys = {0};
    struct str out = STR("");
    int r = 0;
    if (network)
        r = publication_publish(t->network, STR("global"), network);
    else if (app)
        r = publication_publish(t->apps, STR("app"), app);
    else if (block)
        say_bytes(a, "opened", "plain", node_keys_open(t->keys, a, block, &out), out);
    else if (words.p)
        say_bytes(a, "signed", "envelope", node_keys_world.sign(t->keys, a, words, &out), out);
    else
        say_bytes(a, "tpm", "name", node_keys_world.tpm_keys(t->keys, a, &keys), keys.aik_name);
    if (r < 0)
        say_error(r);
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
        run_command(t, a, json_parse_quick(a, str_sub(buf_str(&t->pending), 0, (size_t) end)));
        buf_consume(&t->pending, (size_t) end + 1);
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

static int start_services(struct tool *t, const char *tcti)
{
    const struct pubsub_name network = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name apps = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")};
    int r = publication_new(t->node->pubsub, &network, &t->network);
    if (r == 0)
        r = publication_new(t->node->pubsub, &apps, &t->apps);
    if (r == 0)
        r = nodeagent_new(t->node, &t->nodeagent);
    if (r == 0)
        r = zedagent_new(t->node, &(struct zedagent_options){0}, &t->zedagent);
    if (r == 0)
        r = node_keys_new(t->node, &(struct node_keys_options){.tcti = tcti}, &t->keys);
    return r < 0 ? r
                 : attest_new(t->zedagent, t->node, &(struct attest_options){t->keys}, &t->attest);
}

static int start(struct tool *t, struct uplink_wire *wire, char **argv)
{
    char *error = NULL;
    const struct node_options o = {.loop = t->loop,
                                   .clock = &t->clock.clock,
                                   .wire = wire,
                                   .machine = &t->machine,
                                   .directories = {argv[1], argv[2], argv[3]}};
    int r = node_new(&o, &t->node, &error);
    if (r < 0) {
        say("error", "words", str_of(error));
        mem_free(error);
        return r;
    }
    r = start_services(t, argv[5]);
    if (r < 0)
        say_error(r);
    return r;
}

static void stop(struct tool *t)
{
    attest_free(t->attest);
    zedagent_free(t->zedagent);
    nodeagent_free(t->nodeagent);
    loop_settle(t->loop);
    node_keys_free(t->keys);
    publication_free(t->network);
    publication_free(t->apps);
    node_free(t->node);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void) fprintf(stderr, "usage: attest_tool CONFIG PERSIST RUN SPEED [TCTI]\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}};
    const double speed = strtod(argv[4], NULL);
    log_set_level(LOG_DEBUG);
    t.loop = loop_new();
    clock_scaled_init(&t.clock, &clock_system);
    clock_scaled_set_speed(&t.clock, speed);
    loop_set_speed(t.loop, speed);
    struct uplink_wire *wire = uplink_wire_new(t.loop, &t.clock.clock);
    t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    const int r = start(&t, wire, argv);
    if (r == 0)
        loop_run(t.loop);
    stop(&t);
    loop_fd_free(t.input, NULL, NULL);
    loop_settle(t.loop);
    uplink_wire_free(wire);
    loop_settle(t.loop);
    loop_free(t.loop);
    buf_done(&t.pending);
    return r < 0;
}
