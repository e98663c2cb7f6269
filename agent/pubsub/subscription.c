/* SPDX-License-Identifier: Apache-2.0 */
/* What a subscription knows, and telling its owner. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "pubsub/files.h"
#include "pubsub/frame.h"
#include "pubsub/publication_internal.h"
#include "pubsub/subscription_internal.h"
#include "pubsub/value.h"

/* Runs for moments only; its socket is gone before anybody finds it. */
#define SHORT_LIVED_AGENT "zedclient"

/* ---- handlers that may free us -------------------------------------------------------------- */

static void release(struct subscription *s)
{
    struct map_entry at;
    for (size_t i = 0; map_next(&s->values, &i, &at);) {
        struct subscription_value *v = at.value;
        mem_free(v->key);
        mem_free(v->text);
        mem_free(v);
    }
    map_done(&s->values);
    pubsub_place_done(&s->place);
    mem_free(s);
}

void subscription_enter(struct subscription *s)
{
    s->n_entered++;
}

bool subscription_leave(struct subscription *s)
{
    s->n_entered--;
    if (!s->is_freed)
        return true;
    if (s->n_entered == 0)
        release(s);
    return false;
}

/* ---- values --------------------------------------------------------------------------------- */

static struct str text_of(const struct subscription_value *v)
{
    return str_range(v->text, v->n_text);
}

static bool has_room(const struct subscription *s, const struct subscription_value *old,
                     struct str key, size_t n_text)
{
    size_t n_bytes = s->n_bytes + n_text + (old ? 0 : key.n) - (old ? old->n_text : 0);
    return s->values.n_items + !old <= PUBSUB_MAX_KEYS && n_bytes <= PUBSUB_MAX_TOTAL_BYTES;
}

static struct subscription_value *add_key(struct subscription *s, struct str key)
{
    struct subscription_value *v = NEW(struct subscription_value);
    v->key = mem_dup(key.p, key.n);
    v->n_key = key.n;
    s->n_bytes += key.n;
    map_put(&s->values, str_range(v->key, v->n_key), v);
    return v;
}

/* Returns the old text (heap), NULL for a new key. */
static char *store(struct subscription *s, struct str key, struct buf *text, size_t *ret_n_old)
{
    struct subscription_value *v = map_get(&s->values, key);
    if (!v)
        v = add_key(s, key);
    char *old = v->text;
    *ret_n_old = v->n_text;
    s->n_bytes += text->n - v->n_text;
    v->n_text = text->n;
    v->text = buf_take(text);
    v->is_seen = true;
    return old;
}

static void tell_changed(struct subscription *s, struct arena *a, struct str key,
                         const struct json *value, struct str old)
{
    const struct subscription_handlers *h = &s->handlers;
    if (s->is_freed)
        return;
    if (!old.p) {
        if (h->on_create)
            h->on_create(s->arg, key, value);
    } else if (h->on_modify) {
        h->on_modify(s->arg, key, value, json_parse_quick(a, old));
    }
}

bool subscription_take_value(struct subscription *s, struct str key, struct str text)
{
    ARENA_AUTO a = arena_new();
    struct json *value = NULL;
    if (s->is_freed)
        return true;
    if (!pubsub_is_key(key, false) || pubsub_value_parse(a, text, s->place.large, &value) < 0) {
        s->n_refused++;
        return false;
    }
    BUF_AUTO normal = {0};
    pubsub_value_text(&normal, value);
    struct subscription_value *old = map_get(&s->values, key);
    if (old && str_eq(text_of(old), buf_str(&normal))) {
        old->is_seen = true;
        return true;
    }
    if (!has_room(s, old, key, normal.n)) {
        s->n_refused++;
        log_warning("ignoring a value: the subscription is full",
                    LOG_TEXT("topic", s->place.topic));
        return true;
    }
    size_t n_old = 0;
    char *old_text = store(s, key, &normal, &n_old);
    tell_changed(s, a, arena_str(a, key), value, str_range(old_text, n_old));
    mem_free(old_text);
    return true;
}

void subscription_take_delete(struct subscription *s, struct str key)
{
    struct subscription_value *v = s->is_freed ? NULL : map_remove(&s->values, key);
    if (!v)
        return;
    s->n_bytes -= v->n_key + v->n_text;
    if (s->handlers.on_delete) {
        ARENA_AUTO a = arena_new();
        s->handlers.on_delete(s->arg, str_range(v->key, v->n_key), json_parse_quick(a, text_of(v)));
    }
    mem_free(v->key);
    mem_free(v->text);
    mem_free(v);
}

void subscription_take_restarted(struct subscription *s, int64_t counter)
{
    if (s->is_freed || s->restarted == counter)
        return;
    s->restarted = counter;
    if (s->handlers.on_restarted)
        s->handlers.on_restarted(s->arg, counter);
}

void subscription_take_synchronized(struct subscription *s)
{
    if (s->is_freed || s->is_synchronized)
        return;
    s->is_synchronized = true;
    if (s->handlers.on_synchronized)
        s->handlers.on_synchronized(s->arg);
}

void subscription_take_packet(struct subscription *s, struct str packet)
{
    ARENA_AUTO a = arena_new();
    struct pubsub_frame f;
    s->n_packets++;
    if (pubsub_frame_read(a, packet, &f) < 0 || f.word == PUBSUB_REQUEST) {
        s->n_refused++;
        log_debug("ignoring a packet", LOG_TEXT("topic", s->place.topic),
                  LOG_INT("bytes", (int64_t) packet.n));
        return;
    }
    if (!str_is(f.topic, s->place.topic))
        log_debug("packet of another topic", LOG_TEXT("topic", s->place.topic),
                  LOG_STR("other", f.topic));
    if (f.word == PUBSUB_UPDATE)
        (void) subscription_take_value(s, f.key, f.value);
    else if (f.word == PUBSUB_DELETE)
        subscription_take_delete(s, f.key);
    else if (f.word == PUBSUB_COMPLETE)
        subscription_take_synchronized(s);
    else if (f.word == PUBSUB_RESTARTED)
        subscription_take_restarted(s, f.counter);
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool on_loaded(void *arg, struct str key, struct str text)
{
    return subscription_take_value(arg, key, text);
}

static void connect_directly(struct subscription *s)
{
    struct publication *p = publication_find(s->pubsub, s->place.id);
    if (p && !s->peer)
        s->peer = peer_new_direct(p, s);
}

void subscriptions_connect(struct pubsub *ps, const char *id)
{
    LIST_FOR_EACH (&ps->subscriptions, item) {
        struct subscription *s = CONTAINER_OF(item, struct subscription, link);
        if (strcmp(s->place.id, id) == 0 && !s->start.is_queued)
            connect_directly(s);
    }
}

void subscriptions_reread(struct pubsub *ps, const char *id)
{
    LIST_FOR_EACH (&ps->subscriptions, item) {
        struct subscription *s = CONTAINER_OF(item, struct subscription, link);
        if (strcmp(s->place.id, id) == 0)
            loop_defer(ps->loop, &s->start);
    }
}

static void run_way(struct subscription *s)
{
    if (s->pubsub->is_private)
        connect_directly(s);
    else if (s->is_from_directory)
        subscription_read_directory(s);
    else
        subscription_connect(s);
}

static void on_start(struct loop_deferred *d)
{
    struct subscription *s = CONTAINER_OF(d, struct subscription, start);
    subscription_enter(s);
    if (s->place.is_persistent && !s->is_from_directory) {
        (void) pubsub_values_load(&s->place, &(struct pubsub_loader){on_loaded, s, false});
        subscription_take_restarted(s, pubsub_restarted_read(&s->place));
    }
    if (!s->is_freed)
        run_way(s);
    (void) subscription_leave(s);
}

static void on_timeout(void *arg)
{
    run_way(arg);
}

int subscription_new(struct pubsub *ps, const struct pubsub_name *name,
                     const struct subscription_handlers *handlers, void *arg,
                     struct subscription **ret)
{
    assert(handlers->on_create || !handlers->on_modify);
    struct pubsub_place place;
    int r = pubsub_place_init(&place, ps, name);
    if (r < 0)
        return r;
    struct subscription *s = NEW(struct subscription);
    s->pubsub = ps;
    s->place = place;
    s->handlers = *handlers;
    s->arg = arg;
    s->fd = -1;
    s->is_from_directory =
        !ps->is_private && (!place.directory || str_is(name->agent, SHORT_LIVED_AGENT));
    s->timer = loop_timer_new(ps->loop, on_timeout, s);
    if (s->is_from_directory)
        s->restarted_timer = loop_timer_new(ps->loop, subscription_on_restarted_timer, s);
    list_init(&s->link);
    if (ps->is_private)
        list_append(&ps->subscriptions, &s->link);
    s->start.fn = on_start;
    loop_defer(ps->loop, &s->start);
    *ret = s;
    return 0;
}

void subscription_disconnect(struct subscription *s)
{
    pubsub_socket_close(TAKE(s->watch), s->fd);
    s->fd = -1;
}

void subscription_free(struct subscription *s)
{
    if (!s || s->is_freed)
        return;
    s->is_freed = true;
    list_remove(&s->link);
    if (s->peer)
        peer_free(s->peer);
    subscription_disconnect(s);
    loop_undefer(s->pubsub->loop, &s->start);
    loop_timer_free(s->timer);
    loop_timer_free(s->restarted_timer);
    if (s->n_entered == 0)
        release(s);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct json *subscription_get(struct arena *a, const struct subscription *s, struct str key)
{
    const struct subscription_value *v = map_get(&s->values, key);
    return v ? json_parse_quick(a, text_of(v)) : NULL;
}

bool subscription_next(const struct subscription *s, size_t *position, struct str *ret_key,
                       struct str *ret_text)
{
    struct map_entry at;
    if (!map_next(&s->values, position, &at))
        return false;
    *ret_key = at.key;
    *ret_text = text_of(at.value);
    return true;
}

bool subscription_is_synchronized(const struct subscription *s)
{
    return s->is_synchronized;
}

int64_t subscription_restarted(const struct subscription *s)
{
    return s->restarted;
}

struct pubsub_count subscription_count(const struct subscription *s)
{
    return (struct pubsub_count){.n_keys = s->values.n_items,
                                 .n_bytes = s->n_bytes,
                                 .n_peers = s->peer || (s->watch && !s->is_from_directory),
                                 .n_packets = s->n_packets,
                                 .n_refused = s->n_refused};
}
