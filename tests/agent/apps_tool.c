/* SPDX-License-Identifier: Apache-2.0 */
/* Applications as a process of their own: the process runtime, networks of Linux, a collector; what
 * the other services would publish comes from the test.
 *
 *     apps_tool ROOT PREFIX CGROUP
 *
 * ROOT has config, persist and run. Standard input has one JSON object a line:
 *
 *     {"agent":"zedagent","topic":"AppInstanceConfig","key":"..","value":{..} or null}
 *     {"rotate":true}    what was collected becomes files
 *
 * Standard output tells {"topic":"..","key":"..","value":{..} or null} as it changes, first
 * {"event":"ready"}. It ends with standard input. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/apps.h"
#include "attest/attest.h"
#include "base/alloc.h"
#include "base/log.h"
#include "loguploader/collector.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "runtime/process.h"

#define READ_BYTES ((size_t) 64 * 1024)
#define MAX_TOPICS 32

static const struct pubsub_name told[] = {
    {.agent = {"zedmanager", 10}, .topic = {"AppInstanceStatus", 17}},
    {.agent = {"zedrouter", 9}, .topic = {"NetworkInstanceStatus", 21}},
    {.agent = {"zedrouter", 9}, .topic = {"AppNetworkStatus", 16}},
    {.agent = {"volumemgr", 9}, .topic = {"VolumeStatus", 12}},
    {.agent = {"volumemgr", 9}, .topic = {"ContentTreeStatus", 17}},
    {.agent = {"volumemgr", 9}, .topic = {"AppDiskMetric", 13}},
    {.agent = {"volumemgr", 9}, .topic = {"BlobStatus", 10}},
    {.agent = {"domainmgr", 9}, .topic = {"AssignableAdapters", 18}},
    {.agent = {"domainmgr", 9}, .topic = {"DomainMetric", 12}},
    {.agent = {"zedrouter", 9}, .topic = {"NetworkMetrics", 14}},
};

struct listener {
    struct str topic;
    struct subscription *subscription;
};

struct tool {
    struct arena *arena;
    struct loop *loop;
    struct loop_fd *input;
    struct buf pending;
    struct machine *machine;
    struct node *node;
    struct node_keys *keys;
    struct collector *collector;
    struct apps_network *network;
    struct apps *apps;
    const char *root, *cgroup;
    struct listener listeners[N_ELEMENTS(told)];
    struct {
        struct str id; /* agent/topic */
        struct publication *publication;
    } topics[MAX_TOPICS];
    size_t n_topics;
};

/* ---- what happens -------------------------------------------------------------------------- */

static void tell(void *arg, struct str key, const struct json *value)
{
    const struct listener *l = arg;
    BUF_AUTO line = {0};
    buf_append_str(&line, STR("{\"topic\":"));
    json_write_str(&line, l->topic);
    buf_append_str(&line, STR(",\"key\":"));
    json_write_str(&line, key);
    buf_append_str(&line, STR(",\"value\":"));
    if (value)
        json_write(&line, value);
    else
        buf_append_str(&line, STR("null"));
    (void) printf("%s}\n", line.p);
    (void) fflush(stdout);
}

static void tell_again(void *arg, struct str key, const struct json *value, const struct json *old)
{
    (void) old;
    tell(arg, key, value);
}

static void tell_end(void *arg, struct str key, const struct json *last)
{
    (void) last;
    tell(arg, key, NULL);
}

/* ---- what is asked for --------------------------------------------------------------------- */

static struct publication *topic(struct tool *t, struct str agent, struct str name)
{
    struct str id = arena_printf(t->arena, "%.*s/%.*s", STR_ARG(agent), STR_ARG(name));
    struct pubsub_name n = {
        .agent = agent, .topic = name, .is_persistent = str_is(agent, "tpmmgr")};
    for (size_t i = 0; i < t->n_topics; i++)
        if (str_eq(t->topics[i].id, id))
            return t->topics[i].publication;
    struct publication *p = NULL;
    int r = t->n_topics < MAX_TOPICS ? publication_new(t->node->pubsub, &n, &p) : -1;
    if (r < 0) {
        log_error("cannot publish", LOG_STR("topic", id), LOG_ERRNO(r));
        _exit(1);
    }
    t->topics[t->n_topics].id = id;
    t->topics[t->n_topics++].publication = p;
    return p;
}

static void obey(struct tool *t, struct str line)
{
    ARENA_AUTO a = arena_new();
    const struct json *o = json_parse_quick(a, line);
    const struct json *value = json_get(o, STR("value"));
    struct str key = json_get_str(o, STR("key"));
    if (json_get_bool(o, STR("rotate"), false)) {
        collector_rotate(t->collector);
        return;
    }
    struct publication *p = topic(t, json_get_str(o, STR("agent")), json_get_str(o, STR("topic")));
    int r = json_is(value, JSON_OBJECT) ? publication_publish(p, key, value)
                                        : publication_unpublish(p, key);
    if (r < 0)
        log_error("not published", LOG_STR("key", key), LOG_ERRNO(r));
}

static void on_input(void *arg, unsigned ready)
{
    struct tool *t = arg;
    (void) ready;
    ssize_t n = read(STDIN_FILENO, buf_reserve(&t->pending, READ_BYTES), READ_BYTES);
    if (n <= 0) {
        loop_stop(t->loop);
        return;
    }
    t->pending.n += (size_t) n;
    ptrdiff_t at;
    while ((at = str_find(buf_str(&t->pending), '\n')) >= 0) {
        obey(t, str_sub(buf_str(&t->pending), 0, (size_t) at));
        buf_consume(&t->pending, (size_t) at + 1);
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

static const char *path(struct tool *t, const char *below)
{
    return arena_printf(t->arena, "%s/%s", t->root, below).p;
}

static int make_runtime(void *arg, const struct runtime_events *events, struct runtime **ret)
{
    struct tool *t = arg;
    struct runtime_process_options o = {
        .loop = t->loop,
        .clock = &clock_system,
        .persist_directory = path(t, "persist/runtime"),
        .run_directory = path(t, "run/runtime"),
        .cgroup_parent = t->cgroup,
    };
    return runtime_process_new(&o, events, ret);
}

static int open_node(struct tool *t, char **ret_error)
{
    struct machine_linux_options m = {.loop = t->loop, .clock = &clock_system, .root = ""};
    int r = machine_linux_new(&m, &t->machine);
    struct node_options o = {
        .loop = t->loop,
        .clock = &clock_system,
        .machine = t->machine,
        .directories = {path(t, "config"), path(t, "persist"), path(t, "run")},
    };
    return r < 0 ? r : node_new(&o, &t->node, ret_error);
}

/* The others are there before us, or it would take a while until they are found. */
static void open_topics(struct tool *t)
{
    static const char *const names[][2] = {
        {"zedagent", "AppInstanceConfig"},     {"zedagent", "VolumeConfig"},
        {"zedagent", "ContentTreeConfig"},     {"zedagent", "DatastoreConfig"},
        {"zedagent", "NetworkInstanceConfig"}, {"zedagent", "ZedAgentStatus"},
        {"zedagent", "EdgeNodeInfo"},          {"zedagent", "ControllerCert"},
        {"zedagent", "ConfigItemValueMap"},    {"tpmmgr", "EdgeNodeCert"},
        {"nim", "DeviceNetworkStatus"},        {"zedagent", "PhysicalIOAdapterList"},
    };
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        (void) topic(t, str_of(names[i][0]), str_of(names[i][1]));
}

static int open_apps(struct tool *t, const char *prefix)
{
    static const struct subscription_handlers handlers = {
        .on_create = tell, .on_modify = tell_again, .on_delete = tell_end};
    struct apps_network_options of_network = {.node = t->node, .prefix = prefix};
    int r = node_keys_new(t->node, &(struct node_keys_options){0}, &t->keys);
    if (r >= 0)
        r = collector_new(t->node, &(struct collector_options){0}, &t->collector);
    if (r >= 0)
        r = apps_network_linux_new(&of_network, &t->network);
    struct apps_options o = {
        .make_runtime = make_runtime,
        .make_arg = t,
        .network = t->network,
        .keys = t->keys,
        .collector = t->collector,
    };
    if (r >= 0)
        r = apps_new(t->node, &o, &t->apps);
    for (size_t i = 0; r >= 0 && i < N_ELEMENTS(told); i++) {
        t->listeners[i].topic = told[i].topic;
        r = subscription_new(t->node->pubsub, &told[i], &handlers, &t->listeners[i],
                             &t->listeners[i].subscription);
    }
    return r;
}

static void close_all(struct tool *t)
{
    for (size_t i = 0; i < N_ELEMENTS(told); i++)
        subscription_free(t->listeners[i].subscription);
    for (size_t i = 0; i < t->n_topics; i++)
        publication_free(t->topics[i].publication);
    apps_free(t->apps);
    apps_network_free(t->network);
    collector_free(t->collector);
    loop_settle(t->loop);
    node_keys_free(t->keys);
    node_free(t->node);
    loop_settle(t->loop);
    machine_free(t->machine);
    loop_fd_free(t->input, NULL, NULL);
    loop_settle(t->loop);
    loop_free(t->loop);
    buf_done(&t->pending);
    arena_free(t->arena);
}

int main(int argc, char **argv)
{
    struct tool t = {.arena = arena_new(), .loop = loop_new()};
    char *error = NULL;
    if (argc != 4)
        return 2;
    (void) signal(SIGPIPE, SIG_IGN);
    t.root = argv[1];
    t.cgroup = argv[3];
    int r = open_node(&t, &error);
    if (r >= 0)
        open_topics(&t);
    if (r >= 0)
        r = open_apps(&t, argv[2]);
    if (r < 0) {
        (void) fprintf(stderr, "apps_tool: %s\n", error ? error : log_errno_text(r));
        return 1;
    }
    t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    (void) printf("{\"event\":\"ready\"}\n");
    (void) fflush(stdout);
    loop_run(t.loop);
    close_all(&t);
    return 0;
}
