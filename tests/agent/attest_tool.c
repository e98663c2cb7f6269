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
#include <stdio.h>
#include <stdlib.h>

#include "attest/attest.h"
#include "base/base64.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "nodeagent/nodeagent.h"
#include "tool.h"
#include "tool_node.h"
#include "zedagent/zedagent.h"

struct tool {
    struct machine machine;
    struct tool_node own;
    struct zedagent *zedagent;
    struct nodeagent *nodeagent;
    struct node_keys *keys;
    struct attest *attest;
    struct publication *network, *apps;
};

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
    tool_say_event(how == MACHINE_REBOOT ? "restart" : "poweroff", "reason", reason);
    loop_stop(t->own.loop);
    return 0;
}

static const struct machine_functions functions = {
    .name = "tool", .identity = identity, .restart = restart};

/* ---- commands ------------------------------------------------------------------------------ */

static void say_bytes(struct arena *a, const char *event, const char *name, int r, struct str bytes)
{
    if (r < 0)
        tool_say_error(r);
    else
        tool_say_event(event, name, base64_encode(a, bytes, BASE64_STANDARD));
}

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
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
        tool_say_error(r);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int start_services(struct tool *t, const char *tcti)
{
    const struct pubsub_name network = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name apps = {.agent = STR("zedmanager"), .topic = STR("AppInstanceStatus")};
    int r = publication_new(t->own.node->pubsub, &network, &t->network);
    if (r == 0)
        r = publication_new(t->own.node->pubsub, &apps, &t->apps);
    if (r == 0)
        r = nodeagent_new(t->own.node, &t->nodeagent);
    if (r == 0)
        r = zedagent_new(t->own.node, &(struct zedagent_options){0}, &t->zedagent);
    if (r == 0)
        r = node_keys_new(t->own.node, &(struct node_keys_options){.tcti = tcti}, &t->keys);
    return r < 0 ? r
                 : attest_new(t->zedagent, t->own.node, &(struct attest_options){t->keys},
                              &t->attest);
}

static int start(struct tool *t, char **argv)
{
    int r = tool_node_start(&t->own, &t->machine, argv + 1);
    if (r < 0)
        return r;
    r = start_services(t, argv[5]);
    if (r < 0)
        tool_say_error(r);
    return r;
}

static void stop(struct tool *t)
{
    attest_free(t->attest);
    zedagent_free(t->zedagent);
    nodeagent_free(t->nodeagent);
    loop_settle(t->own.loop);
    node_keys_free(t->keys);
    publication_free(t->network);
    publication_free(t->apps);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void) fprintf(stderr, "usage: attest_tool CONFIG PERSIST RUN SPEED [TCTI]\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}};
    log_set_level(LOG_DEBUG);
    tool_node_init(&t.own, strtod(argv[4], NULL));
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, NULL, &t);
    const int r = start(&t, argv);
    if (r == 0)
        loop_run(t.own.loop);
    stop(&t);
    tool_lines_free(lines);
    tool_node_done(&t.own);
    return r < 0;
}
