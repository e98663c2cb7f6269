/* SPDX-License-Identifier: Apache-2.0 */
/* The report of connectivity as a process of its own. What other services would say is published by
 * the tool.
 *
 *     diag_tool CONFIG PERSIST RUN [json] [forever] [pac] [dns] [ping] [output=FILE] [state=FILE]
 *               [rows=N] [columns=N]
 *
 * Standard input has one JSON object a line:
 *
 *     {"agent":"nim","topic":"DeviceNetworkStatus","key":"global","persistent":false,"value":{}}
 *     {"items":{"<name>":"<value>"}}
 *
 * It ends with the report, or with standard input when it reports for ever. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "diag/diag.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "tool.h"
#include "tool_node.h"

#define MAX_TOPICS 16

struct topic {
    char *agent, *name;
    struct publication *publication;
};

struct tool {
    struct machine machine;
    struct tool_node own;
    struct topic topics[MAX_TOPICS];
    size_t n_topics;
    struct diag *diag;
    struct diag_options options;
    int exit_code;
};

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("tool")};
    return 0;
}

static const struct machine_functions functions = {.name = "tool", .identity = identity};

/* ---- topics --------------------------------------------------------------------------------- */

static char *copy(struct str s)
{
    char *z = mem_zalloc(s.n + 1);
    if (s.n)
        memcpy(z, s.p, s.n);
    return z;
}

static int publication_of(struct tool *t, struct str agent, struct str topic, bool is_persistent,
                          struct publication **ret)
{
    for (size_t i = 0; i < t->n_topics; i++) {
        if (!str_is(agent, t->topics[i].agent) || !str_is(topic, t->topics[i].name))
            continue;
        *ret = t->topics[i].publication;
        return 0;
    }
    if (t->n_topics == MAX_TOPICS)
        return -ENOSPC;
    struct topic *one = &t->topics[t->n_topics];
    *one = (struct topic){copy(agent), copy(topic), NULL};
    const struct pubsub_name name = {
        .agent = str_of(one->agent), .topic = str_of(one->name), .is_persistent = is_persistent};
    int r = publication_new(t->own.node->pubsub, &name, &one->publication);
    t->n_topics++;
    *ret = one->publication;
    return r;
}

static int publish_items(struct tool *t, const struct json *values)
{
    struct publication *p = NULL;
    const int r = publication_of(t, STR("zedagent"), STR("ConfigItemValueMap"), true, &p);
    return r < 0 ? r : tool_publish_items(p, values);
}

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
    (void) a;
    const struct json *items = json_get(v, STR("items"));
    struct publication *p = NULL;
    int r = 0;
    if (items) {
        r = publish_items(t, items);
    } else {
        r = publication_of(t, json_get_str(v, STR("agent")), json_get_str(v, STR("topic")),
                           json_get_bool(v, STR("persistent"), false), &p);
        if (r == 0)
            r = publication_publish(p, json_get_str(v, STR("key")), json_get(v, STR("value")));
    }
    if (r < 0)
        (void) fprintf(stderr, "diag_tool: %s\n", log_errno_text(r));
}

static void on_end(void *arg)
{
    struct tool *t = arg;
    if (t->options.runs_forever)
        loop_stop(t->own.loop);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_done(void *arg, int exit_code)
{
    struct tool *t = arg;
    t->exit_code = exit_code;
    diag_free(TAKE(t->diag));
    loop_stop(t->own.loop);
}

static void read_words(struct tool *t, char **words)
{
    struct diag_options *o = &t->options;
    for (; *words; words++) {
        struct str word = str_of(*words);
        o->is_json |= str_is(word, "json");
        o->runs_forever |= str_is(word, "forever");
        o->prints_pac |= str_is(word, "pac");
        o->fails_dns |= str_is(word, "dns");
        o->fails_ping |= str_is(word, "ping");
        if (str_starts_with(word, STR("output=")))
            o->output = *words + 7;
        if (str_starts_with(word, STR("state=")))
            o->state_file = *words + 6;
        if (str_starts_with(word, STR("rows=")))
            o->rows = (unsigned) strtoul(*words + 5, NULL, 10);
        if (str_starts_with(word, STR("columns=")))
            o->columns = (unsigned) strtoul(*words + 8, NULL, 10);
    }
}

static int start(struct tool *t, char **argv)
{
    int r = tool_node_start(&t->own, &t->machine, argv + 1);
    if (r < 0)
        return r;
    /* Who is there from the start is found at once. */
    static const struct {
        struct str agent, topic;
        bool is_persistent;
    } topics[] = {{STR(""), STR("LedBlinkCounter"), false},
                  {STR("nim"), STR("DeviceNetworkStatus"), false},
                  {STR("nim"), STR("DevicePortConfigList"), true},
                  {STR("zedagent"), STR("ConfigItemValueMap"), true},
                  {STR("zedmanager"), STR("AppInstanceSummary"), false},
                  {STR("vaultmgr"), STR("VaultStatus"), false}};
    struct publication *p;
    for (size_t i = 0; r == 0 && i < N_ELEMENTS(topics); i++)
        r = publication_of(t, topics[i].agent, topics[i].topic, topics[i].is_persistent, &p);
    if (r == 0)
        r = diag_new(t->own.node, &t->options, &t->diag);
    if (r < 0)
        (void) fprintf(stderr, "%s\n", log_errno_text(r));
    return r;
}

static void end(struct tool *t)
{
    diag_free(t->diag);
    for (size_t i = 0; i < t->n_topics; i++) {
        publication_free(t->topics[i].publication);
        mem_free(t->topics[i].agent);
        mem_free(t->topics[i].name);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void) fprintf(stderr, "usage: diag_tool CONFIG PERSIST RUN [words]\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}, .exit_code = 3};
    t.options = (struct diag_options){.on_done = on_done, .arg = &t};
    read_words(&t, argv + 4);
    tool_node_init(&t.own, 1);
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, on_end, &t);
    if (start(&t, argv) == 0)
        loop_run(t.own.loop);
    end(&t);
    tool_lines_free(lines);
    tool_node_done(&t.own);
    return t.exit_code;
}
