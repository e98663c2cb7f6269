/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "pubsub/files.h"
#include "pubsub/frame.h"
#include "pubsub/publication_internal.h"
#include "pubsub/subscription_internal.h"

#define ACCEPT_MAX_PER_TURN 16
/* Until we try again when there are no descriptors left. */
#define ACCEPT_RETRY_MS 1000

static struct str key_of(const struct entry *e)
{
    return str_range(e->key, e->n_key);
}

static size_t bytes_of(const struct entry *e)
{
    return e->n_key + e->n_text;
}

/* ---- the list of changes -------------------------------------------------------------------- */

static void touch(struct publication *p, struct entry *e)
{
    list_remove(&e->position.link);
    list_append(&p->order, &e->position.link);
    e->position.sequence = ++p->sequence;
    loop_defer(p->pubsub->loop, &p->flush);
}

bool publication_needs_deleted(const struct publication *p, const struct entry *e)
{
    LIST_FOR_EACH (&p->peers, item) {
        const struct peer *peer = CONTAINER_OF(item, struct peer, link);
        uint64_t at = peer->position.sequence;
        if (at >= e->birth && at < e->position.sequence)
            return true;
    }
    return false;
}

void publication_entry_free(struct publication *p, struct entry *e)
{
    (void) map_remove(&p->entries, key_of(e));
    p->n_bytes -= bytes_of(e);
    p->n_deleted -= !e->text;
    list_remove(&e->position.link);
    mem_free(e->key);
    mem_free(e->text);
    mem_free(e);
}

void publication_reap(struct publication *p)
{
    LIST_FOR_EACH (&p->order, item) {
        if (p->n_deleted == 0)
            return;
        struct position *at = CONTAINER_OF(item, struct position, link);
        struct entry *e = CONTAINER_OF(at, struct entry, position);
        if (!at->is_peer && !e->text && !publication_needs_deleted(p, e))
            publication_entry_free(p, e);
    }
}

static struct entry *find(const struct publication *p, struct str key)
{
    struct entry *e = map_get(&p->entries, key);
    return e && e->text ? e : NULL;
}

static struct entry *entry_new(struct publication *p, struct str key)
{
    struct entry *e = NEW(struct entry);
    e->key = mem_dup(key.p, key.n);
    e->n_key = key.n;
    list_init(&e->position.link);
    e->birth = p->sequence + 1;
    map_put(&p->entries, key_of(e), e);
    p->n_bytes += key.n;
    p->n_deleted++;
    return e;
}

static void set_text(struct publication *p, struct str key, struct buf *text)
{
    struct entry *e = map_get(&p->entries, key);
    if (!e)
        e = entry_new(p, key);
    p->n_deleted -= !e->text;
    p->n_bytes += text->n - e->n_text;
    mem_free(e->text);
    e->n_text = text->n;
    e->text = buf_take(text);
    touch(p, e);
}

/* ---- publishing ----------------------------------------------------------------------------- */

/* Whether a packet can hold it, and files its large fields. */
static int check_size(const struct publication *p, struct str key, const struct json *value)
{
    BUF_AUTO wire = {0};
    struct pubsub_large measured = {.directory = p->place.large, .is_measured_only = true};
    int r = pubsub_value_to_wire(&wire, value, &measured);
    if (r < 0)
        return r;
    size_t n = pubsub_frame_update_bytes(strlen(p->place.topic), key.n, wire.n);
    return n < PUBSUB_MAX_PACKET_BYTES ? 0 : -EMSGSIZE;
}

static int check_room(const struct publication *p, const struct entry *old, struct str key,
                      struct str text)
{
    if (text.n >= PUBSUB_MAX_VALUE_BYTES)
        return -EFBIG;
    size_t n_keys = p->entries.n_items + !old;
    size_t n_bytes = p->n_bytes + text.n + (old ? 0 : key.n) - (old ? old->n_text : 0);
    return n_keys > PUBSUB_MAX_KEYS || n_bytes > PUBSUB_MAX_TOTAL_BYTES ? -ENOSPC : 0;
}

static bool is_unchanged(const struct entry *old, struct str text, const struct json *value)
{
    if (!old)
        return false;
    if (str_eq(str_range(old->text, old->n_text), text))
        return true;
    ARENA_AUTO a = arena_new();
    return json_equal(json_parse_quick(a, str_range(old->text, old->n_text)), value);
}

int publication_publish(struct publication *p, struct str key, const struct json *value)
{
    if (!pubsub_is_key(key, p->place.is_persistent) || !json_is(value, JSON_OBJECT) ||
        !json_fits(value, SIZE_MAX))
        return -EINVAL;
    BUF_AUTO text = {0};
    json_write(&text, value);
    if (is_unchanged(find(p, key), buf_str(&text), value))
        return 0;
    int r = check_size(p, key, value);
    if (r == 0)
        r = check_room(p, map_get(&p->entries, key), key, buf_str(&text));
    if (r == 0)
        r = pubsub_value_write(&p->place, key, buf_str(&text));
    if (r == 0)
        set_text(p, key, &text);
    return r;
}

int publication_unpublish(struct publication *p, struct str key)
{
    struct entry *e = find(p, key);
    if (!e)
        return -ENOENT;
    int r = pubsub_value_remove(&p->place, key);
    if (r < 0)
        return r;
    p->n_bytes -= e->n_text;
    p->n_deleted++;
    e->n_text = 0;
    mem_free(TAKE(e->text));
    touch(p, e);
    if (!publication_needs_deleted(p, e))
        publication_entry_free(p, e);
    return 0;
}

static int set_restarted(struct publication *p, int64_t counter)
{
    int r = pubsub_restarted_write(&p->place, counter);
    if (r < 0)
        return r;
    p->restarted = counter;
    loop_defer(p->pubsub->loop, &p->flush);
    return 0;
}

int publication_signal_restarted(struct publication *p)
{
    return set_restarted(p, p->restarted == INT64_MAX ? 1 : p->restarted + 1);
}

int publication_clear_restarted(struct publication *p)
{
    return set_restarted(p, 0);
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Handlers of direct peers may free any of them, and the publication: the first goes to the end and
 * has its turn, as often as there were peers. */
static void on_flush(struct loop_deferred *d)
{
    struct publication *p = CONTAINER_OF(d, struct publication, flush);
    bool has_more = false;
    p->n_entered++;
    for (size_t i = p->n_peers; i > 0 && !list_is_empty(&p->peers); i--) {
        struct list *first = list_pop_first(&p->peers);
        list_append(&p->peers, first);
        has_more |= peer_flush(CONTAINER_OF(first, struct peer, link));
    }
    p->n_entered--;
    if (p->is_freed)
        mem_free(p);
    else if (has_more)
        loop_defer(p->pubsub->loop, &p->flush);
}

static void on_connection(void *arg, unsigned ready)
{
    (void) ready;
    struct publication *p = arg;
    for (int i = 0; i < ACCEPT_MAX_PER_TURN; i++) {
        int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && p->n_peers < PUBSUB_MAX_SUBSCRIBERS) {
            peer_new(p, fd);
            continue;
        }
        if (fd >= 0) {
            (void) close(fd);
            p->n_refused++;
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            loop_fd_watch(p->watch, 0);
            loop_timer_start(p->retry, ACCEPT_RETRY_MS, 0);
        }
        return;
    }
}

static void on_accept_again(void *arg)
{
    struct publication *p = arg;
    loop_fd_watch(p->watch, LOOP_READABLE);
}

static int start_listening(struct publication *p)
{
    p->fd = pubsub_socket_listen(&p->place);
    if (p->fd < 0)
        return p->fd;
    p->watch = loop_fd_new(p->pubsub->loop, p->fd, on_connection, p);
    if (!p->watch)
        return -ENOMEM;
    p->retry = loop_timer_new(p->pubsub->loop, on_accept_again, p);
    loop_fd_watch(p->watch, LOOP_READABLE);
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool on_loaded(void *arg, struct str key, struct str text)
{
    struct publication *p = arg;
    ARENA_AUTO a = arena_new();
    struct json *value = NULL;
    if (pubsub_value_parse(a, text, p->place.large, &value) < 0 || check_size(p, key, value) < 0 ||
        check_room(p, NULL, key, text) < 0) {
        p->n_refused++;
        log_warning("ignoring a published value that cannot be read",
                    LOG_TEXT("directory", p->place.values), LOG_STR("key", key));
        return false;
    }
    BUF_AUTO kept = {0};
    buf_append_str(&kept, text);
    /* A text whose large fields were elsewhere must hold them from now on. */
    if (str_find_str(text, STR("pubsub-file-")) >= 0) {
        buf_reset(&kept);
        json_write(&kept, value);
        (void) pubsub_value_write(&p->place, key, buf_str(&kept));
    }
    set_text(p, key, &kept);
    return true;
}

struct publication *publication_find(const struct pubsub *ps, const char *id)
{
    LIST_FOR_EACH (&ps->publications, item) {
        struct publication *p = CONTAINER_OF(item, struct publication, link);
        if (strcmp(p->place.id, id) == 0)
            return p;
    }
    return NULL;
}

static int enter_context(struct publication *p)
{
    if (publication_find(p->pubsub, p->place.id))
        return -EADDRINUSE;
    list_append(&p->pubsub->publications, &p->link);
    return 0;
}

static int load(struct publication *p)
{
    int r = pubsub_values_make(&p->place);
    if (r == 0)
        r = pubsub_values_load(&p->place, &(struct pubsub_loader){on_loaded, p, true});
    if (r < 0)
        return r;
    p->restarted = pubsub_restarted_read(&p->place);
    if (!p->pubsub->is_private)
        pubsub_large_sweep(p->place.large, p->pubsub->clock);
    return 0;
}

int publication_new(struct pubsub *ps, const struct pubsub_name *name, struct publication **ret)
{
    struct publication *p = NEW(struct publication);
    p->pubsub = ps;
    p->fd = -1;
    p->flush.fn = on_flush;
    list_init(&p->link);
    list_init(&p->order);
    list_init(&p->peers);
    int r = pubsub_place_init(&p->place, ps, name);
    if (r == 0 && ps->is_private)
        r = enter_context(p);
    else if (r == 0 && p->place.directory)
        r = start_listening(p);
    if (r == 0)
        r = load(p);
    if (r < 0) {
        publication_free(p);
        return r;
    }
    subscriptions_connect(ps, p->place.id);
    *ret = p;
    return 0;
}

void publication_free(struct publication *p)
{
    if (!p)
        return;
    list_remove(&p->link);
    LIST_FOR_EACH (&p->peers, item)
        peer_free(CONTAINER_OF(item, struct peer, link));
    LIST_FOR_EACH (&p->order, item)
        publication_entry_free(
            p, CONTAINER_OF(CONTAINER_OF(item, struct position, link), struct entry, position));
    loop_undefer(p->pubsub->loop, &p->flush);
    if (p->fd >= 0)
        pubsub_socket_remove(&p->place);
    pubsub_socket_close(p->watch, p->fd);
    if (p->pubsub->is_private && p->place.is_persistent)
        subscriptions_reread(p->pubsub, p->place.id);
    loop_timer_free(p->retry);
    pubsub_place_done(&p->place);
    map_done(&p->entries);
    p->is_freed = true;
    if (p->n_entered == 0)
        mem_free(p);
}

/* ---- reading -------------------------------------------------------------------------------- */

int64_t publication_restarted(const struct publication *p)
{
    return p->restarted;
}

struct json *publication_get(struct arena *a, const struct publication *p, struct str key)
{
    const struct entry *e = find(p, key);
    return e ? json_parse_quick(a, str_range(e->text, e->n_text)) : NULL;
}

bool publication_next(const struct publication *p, size_t *position, struct str *ret_key,
                      struct str *ret_text)
{
    struct map_entry at;
    while (map_next(&p->entries, position, &at)) {
        const struct entry *e = at.value;
        if (!e->text)
            continue;
        *ret_key = at.key;
        *ret_text = str_range(e->text, e->n_text);
        return true;
    }
    return false;
}

struct pubsub_count publication_count(const struct publication *p)
{
    struct pubsub_count c = {.n_keys = p->entries.n_items - p->n_deleted,
                             .n_deleted = p->n_deleted,
                             .n_bytes = p->n_bytes,
                             .n_peers = p->n_peers,
                             .n_packets = p->n_packets,
                             .n_refused = p->n_refused};
    LIST_FOR_EACH (&p->peers, item)
        c.n_pending += CONTAINER_OF(item, struct peer, link)->pending.n;
    return c;
}
