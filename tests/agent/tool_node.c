/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_node.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"

void tool_node_init(struct tool_node *t, double speed)
{
    t->loop = loop_new();
    clock_scaled_init(&t->clock, &clock_system);
    clock_scaled_set_speed(&t->clock, speed);
    loop_set_speed(t->loop, speed);
    t->wire = uplink_wire_new(t->loop, &t->clock.clock);
    t->node = NULL;
}

int tool_node_start(struct tool_node *t, struct machine *m, char **directories)
{
    char *error = NULL;
    const struct node_options o = {.loop = t->loop,
                                   .clock = &t->clock.clock,
                                   .wire = t->wire,
                                   .machine = m,
                                   .directories = {directories[0], directories[1], directories[2]}};
    const int r = node_new(&o, &t->node, &error);
    if (r < 0)
        (void) fprintf(stderr, "%s\n", error ? error : log_errno_text(r));
    mem_free(error);
    return r;
}

void tool_node_done(struct tool_node *t)
{
    node_free(t->node);
    loop_settle(t->loop);
    uplink_wire_free(t->wire);
    loop_settle(t->loop);
    loop_free(t->loop);
}

int tool_publish_items(struct publication *p, const struct json *values)
{
    ARENA_AUTO a = arena_new();
    struct items *items = items_new();
    int r = 0;
    items_begin(items);
    JSON_FOR_EACH_MEMBER (values, m)
        if (r == 0)
            r = items_set(items, json_str(&m->key), json_str(&m->value));
    if (r == 0)
        r = publication_publish(p, STR("global"), items_write(a, items));
    items_free(items);
    return r;
}
