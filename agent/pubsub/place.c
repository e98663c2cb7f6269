/* SPDX-License-Identifier: Apache-2.0 */
/* The context, and where a publication's things are. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "pubsub/pubsub_internal.h"

struct pubsub *pubsub_new(const struct pubsub_options *o)
{
    assert(o->loop && o->clock && o->run_directory && o->persist_directory);
    struct pubsub *ps = NEW(struct pubsub);
    ps->loop = o->loop;
    ps->clock = o->clock;
    ps->run = mem_strdup(o->run_directory);
    ps->var_run = mem_strdup(o->var_run_directory ? o->var_run_directory : o->run_directory);
    ps->persist = mem_strdup(o->persist_directory);
    ps->retry_ms = o->retry_ms ? o->retry_ms : PUBSUB_RETRY_MS;
    ps->request_timeout_ms =
        o->request_timeout_ms ? o->request_timeout_ms : PUBSUB_REQUEST_TIMEOUT_MS;
    ps->syncs = !o->skips_sync;
    ps->is_private = o->is_private;
    list_init(&ps->publications);
    list_init(&ps->subscriptions);
    return ps;
}

void pubsub_free(struct pubsub *ps)
{
    if (!ps)
        return;
    assert(list_is_empty(&ps->publications) && list_is_empty(&ps->subscriptions));
    mem_free(ps->run);
    mem_free(ps->var_run);
    mem_free(ps->persist);
    mem_free(ps->packet);
    mem_free(ps);
}

/* One component of a path that is no way out of its directory, and one word of a message. */
static bool is_component(struct str s)
{
    if (s.n == 0 || s.n > PUBSUB_MAX_NAME_BYTES || str_is(s, ".") || str_is(s, ".."))
        return false;
    return str_find(s, '/') < 0 && str_find(s, '\0') < 0 && str_find(s, ' ') < 0;
}

/* A key with ".json" in it could not be told from its file's name. */
bool pubsub_is_key(struct str key, bool is_persistent)
{
    size_t max_bytes = is_persistent ? PUBSUB_MAX_PERSISTENT_KEY_BYTES : PUBSUB_MAX_KEY_BYTES;
    return key.n > 0 && key.n <= max_bytes && str_find(key, '/') < 0 && str_find(key, '\0') < 0 &&
           str_find_str(key, STR(".json")) < 0;
}

static char *join(const char *root, const struct pubsub_name *name, struct str last)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%.*s", root, STR_ARG(name->agent));
    if (name->scope.n)
        buf_printf(&path, "/%.*s", STR_ARG(name->scope));
    if (last.n)
        buf_printf(&path, "/%.*s", STR_ARG(last));
    return buf_take(&path);
}

static char *join_under(const char *root, const char *below, const struct pubsub_name *name)
{
    BUF_AUTO top = {0};
    buf_printf(&top, "%s/%s", root, below);
    return join(top.p, name, name->topic);
}

static void place_global(struct pubsub_place *place, const struct pubsub *ps,
                         const struct pubsub_name *name)
{
    struct pubsub_name global = *name;
    global.agent = STR("global");
    if (place->has_files)
        place->values = join(ps->run, &global, name->topic);
    place->large = join_under(ps->persist, "pubsub-large", &global);
}

int pubsub_place_init(struct pubsub_place *place, const struct pubsub *ps,
                      const struct pubsub_name *name)
{
    bool is_global = name->agent.n == 0;
    if ((!is_global && !is_component(name->agent)) || !is_component(name->topic) ||
        (name->scope.n && !is_component(name->scope)) || (is_global && name->is_persistent))
        return -EINVAL;
    *place = (struct pubsub_place){.is_persistent = name->is_persistent,
                                   .has_files = name->is_persistent || !ps->is_private,
                                   .syncs = name->is_persistent && ps->syncs};
    struct buf id = {0};
    buf_printf(&id, "%.*s/%.*s/%.*s", STR_ARG(name->agent), STR_ARG(name->scope),
               STR_ARG(name->topic));
    place->id = buf_take(&id);
    place->topic = str_dup(name->topic);
    if (is_global) {
        place_global(place, ps, name);
        return 0;
    }
    place->large = join_under(ps->persist, "pubsub-large", name);
    if (!place->has_files)
        return 0;
    place->values = name->is_persistent ? join_under(ps->persist, "status", name)
                                        : join(ps->var_run, name, name->topic);
    place->directory = join(ps->var_run, name, STR_NONE);
    struct buf socket = {0};
    buf_printf(&socket, "%s.sock", place->topic);
    place->socket = buf_take(&socket);
    return 0;
}

void pubsub_place_done(struct pubsub_place *place)
{
    mem_free(place->topic);
    mem_free(place->id);
    mem_free(place->values);
    mem_free(place->large);
    mem_free(place->directory);
    mem_free(place->socket);
    *place = (struct pubsub_place){0};
}
