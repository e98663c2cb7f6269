/* SPDX-License-Identifier: Apache-2.0 */
/* What was carried out of a configuration, and must be known when the agent comes back: a counter
 * that has changed since is a command that is still to be obeyed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/log.h"

/* Numbers of JSON are signed. */
static struct json json_hash(uint64_t h)
{
    return json_int((int64_t) (h & INT64_MAX));
}

static struct str app_file(struct arena *arena, const struct application *p)
{
    return arena_printf(arena, "apps/%s.json", p->id);
}

static struct str content_file(struct arena *arena, struct str id)
{
    return arena_printf(arena, "apps/content-%.*s", STR_ARG(id));
}

static void load_addresses(struct application *p, const struct json *list)
{
    size_t i = 0;
    JSON_FOR_EACH_ITEM (list, item) {
        struct str network = json_get_str(item, STR("network"));
        if (i < p->n_adapters && !p->adapters[i].fixed && str_is(network, p->adapters[i].network))
            p->adapters[i].address = (uint32_t) json_get_int(item, STR("address"), 0);
        i++;
    }
}

void record_load(struct application *p)
{
    BUF_AUTO text = {0};
    ARENA_AUTO arena = arena_new();
    if (node_file_read(p->apps->node, NODE_PERSIST, app_file(arena, p), &text) < 0)
        return;
    const struct json *o = json_parse_quick(arena, buf_str(&text));
    if (!json_is(o, JSON_OBJECT))
        return;
    p->has_record = true;
    p->was_started = json_get_bool(o, STR("started"), false);
    p->done_restart = (uint32_t) json_get_int(o, STR("restart"), 0);
    p->done_purge = (uint32_t) json_get_int(o, STR("purge"), 0);
    p->started_volumes = (uint64_t) json_get_int(o, STR("volumes"), 0);
    p->started_resources = (uint64_t) json_get_int(o, STR("resources"), 0);
    p->number = (int) json_get_int(o, STR("number"), 0);
    mem_free(p->taken_version);
    p->taken_version = mem_strdup(arena_strz(arena, json_get_str(o, STR("version"))));
    load_addresses(p, json_get(o, STR("addresses")));
}

void record_save(struct application *p)
{
    ARENA_AUTO arena = arena_new();
    struct json o = json_object(), addresses = json_array();
    for (size_t i = 0; i < p->n_adapters; i++) {
        struct json one = json_object();
        put_str(arena, &one, "network", str_of(p->adapters[i].network));
        put_int(arena, &one, "address", p->adapters[i].address);
        (void) json_push(arena, &addresses, one);
    }
    put_bool(arena, &o, "started", p->was_started);
    put_int(arena, &o, "restart", p->done_restart);
    put_int(arena, &o, "purge", p->done_purge);
    put(arena, &o, "volumes", json_hash(p->started_volumes));
    put(arena, &o, "resources", json_hash(p->started_resources));
    put_int(arena, &o, "number", p->number);
    put_str(arena, &o, "version", str_of(p->taken_version));
    put(arena, &o, "addresses", addresses);
    int r = node_file_write(p->apps->node, NODE_PERSIST, app_file(arena, p), json_text(arena, &o));
    if (r < 0)
        log_error("cannot keep what was done for an application", LOG_TEXT("app", p->id),
                  LOG_ERRNO(r));
    p->has_record = true;
}

void record_remove(const struct application *p)
{
    ARENA_AUTO arena = arena_new_with(128);
    (void) node_file_remove(p->apps->node, NODE_PERSIST, app_file(arena, p));
}

uint64_t record_load_content(const struct apps *a, struct str id)
{
    BUF_AUTO text = {0};
    ARENA_AUTO arena = arena_new_with(128);
    if (node_file_read(a->node, NODE_PERSIST, content_file(arena, id), &text) < 0)
        return 0;
    return strtoull(text.p, NULL, 16);
}

void record_save_content(const struct apps *a, struct str id, uint64_t hash)
{
    ARENA_AUTO arena = arena_new_with(128);
    struct str name = content_file(arena, id);
    int r = hash ? node_file_write(a->node, NODE_PERSIST, name,
                                   arena_printf(arena, "%" PRIx64 "\n", hash))
                 : node_file_remove(a->node, NODE_PERSIST, name);
    if (r < 0)
        log_error("cannot keep what was fetched", LOG_STR("content", id), LOG_ERRNO(r));
}
