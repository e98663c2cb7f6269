/* SPDX-License-Identifier: Apache-2.0 */
/* A node with a collector and an uploader of logs as a process of its own. What other services
 * would say is published by the tool.
 *
 *     loguploader_tool CONFIG PERSIST RUN SPEED ROTATE_S
 *
 * Time runs SPEED times faster. Standard input has one JSON object a line, each answered by one:
 *
 *     {"network":{DeviceNetworkStatus}}
 *     {"items":{"<name>":"<value>"}}
 *     {"line":{"app":"<uuid>","name":"..","content":".."}}     {"error":0}: it is taken
 *     {"rotate":true}
 *     {"counts":true}
 *
 * It ends with standard input. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loguploader/collector.h"
#include "loguploader/loguploader.h"
#include "loop/loop.h"
#include "machine/machine.h"

#define READ_BYTES ((size_t) 64 * 1024)

struct tool {
    struct machine machine;
    struct clock_scaled clock;
    struct loop *loop;
    struct loop_fd *input;
    struct buf pending;
    struct node *node;
    struct publication *network, *items;
    struct collector *collector;
    struct loguploader *uploader;
};

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("tool"), .eve_version = STR("1.2.3")};
    return 0;
}

static const struct machine_functions functions = {.name = "tool", .identity = identity};

/* ---- commands ------------------------------------------------------------------------------- */

static int publish_items(struct tool *t, const struct json *values)
{
    ARENA_AUTO a = arena_new();
    struct items *items = items_new();
    int r = 0;
    items_begin(items);
    JSON_FOR_EACH_MEMBER (values, m)
        if (r == 0)
            r = items_set(items, json_str(&m->key), json_str(&m->value));
    if (r == 0)
        r = publication_publish(t->items, STR("global"), items_write(a, items));
    items_free(items);
    return r;
}

static int add_line(struct tool *t, const struct json *line)
{
    return collector_add(t->collector,
                         &(struct collector_line){.app = json_get_str(line, STR("app")),
                                                  .app_name = json_get_str(line, STR("name")),
                                                  .source = STR("tool"),
                                                  .severity = STR("info"),
                                                  .content = json_get_str(line, STR("content"))});
}

static int run_command(struct tool *t, const struct json *v)
{
    const struct json *network = json_get(v, STR("network")), *items = json_get(v, STR("items")),
                      *line = json_get(v, STR("line"));
    if (network)
        return publication_publish(t->network, STR("global"), network);
    if (items)
        return publish_items(t, items);
    if (line)
        return add_line(t, line);
    if (json_get(v, STR("rotate")))
        collector_rotate(t->collector);
    return 0;
}

static void answer(struct tool *t, const struct json *v)
{
    int r = run_command(t, v);
    const struct loguploader_counts n = loguploader_counts(t->uploader);
    if (json_get(v, STR("counts")))
        (void) printf("{\"sent\":%llu,\"bytes\":%llu,\"failures\":%llu,\"waiting\":%zu}\n",
                      (unsigned long long) n.files_sent, (unsigned long long) n.bytes_sent,
                      (unsigned long long) n.failures, n.files_waiting);
    else
        (void) printf("{\"error\":%d}\n", r);
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
        answer(t, json_parse_quick(a, str_sub(buf_str(&t->pending), 0, (size_t) end)));
        buf_consume(&t->pending, (size_t) end + 1);
    }
    (void) fflush(stdout);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int start_services(struct tool *t, int64_t rotate_s)
{
    const struct pubsub_name network = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name items = {
        .agent = STR("zedagent"), .topic = STR("ConfigItemValueMap"), .is_persistent = true};
    int r = publication_new(t->node->pubsub, &network, &t->network);
    if (r == 0)
        r = publication_new(t->node->pubsub, &items, &t->items);
    if (r == 0)
        r = collector_new(t->node, &(struct collector_options){.rotate_s = rotate_s},
                          &t->collector);
    return r < 0 ? r : loguploader_new(t->node, &t->uploader);
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
    if (r == 0)
        r = start_services(t, strtoll(argv[5], NULL, 10));
    if (r < 0)
        (void) fprintf(stderr, "%s\n", error ? error : log_errno_text(r));
    mem_free(error);
    return r;
}

static void end(struct tool *t)
{
    loguploader_free(t->uploader);
    collector_free(t->collector);
    publication_free(t->network);
    publication_free(t->items);
    node_free(t->node);
    loop_fd_free(t->input, NULL, NULL);
    loop_settle(t->loop);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        (void) fprintf(stderr, "usage: loguploader_tool CONFIG PERSIST RUN SPEED ROTATE_S\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}};
    t.loop = loop_new();
    clock_scaled_init(&t.clock, &clock_system);
    clock_scaled_set_speed(&t.clock, strtod(argv[4], NULL));
    loop_set_speed(t.loop, strtod(argv[4], NULL));
    struct uplink_wire *wire = uplink_wire_new(t.loop, &t.clock.clock);
    t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    int r = start(&t, wire, argv);
    if (r == 0)
        loop_run(t.loop);
    end(&t);
    uplink_wire_free(wire);
    loop_settle(t.loop);
    loop_free(t.loop);
    buf_done(&t.pending);
    return r < 0;
}
