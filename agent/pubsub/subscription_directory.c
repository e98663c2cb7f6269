/* SPDX-License-Identifier: Apache-2.0 */
/* A subscription to files alone: for global topics, and for a publisher that does not stay. The
 * directory is the truth; inotify only says when to look. */
#include <errno.h>
#include <limits.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "pubsub/files.h"
#include "pubsub/subscription_internal.h"

/* Everything again after 3 to 10 minutes, in case an event was lost. */
#define REREAD_MIN_MS (3 * 60 * 1000)
#define REREAD_SPREAD_MS (7 * 60 * 1000)
/* `restarted` after 1 to 3 seconds, so that values which changed before it are read before it. */
#define RESTARTED_MIN_MS 1000
#define RESTARTED_SPREAD_MS 2000
#define MAX_EVENTS_BYTES 4096

static void read_restarted_later(struct subscription *s)
{
    int64_t after_ms = RESTARTED_MIN_MS + (int64_t) random_below(RESTARTED_SPREAD_MS);
    loop_timer_start(s->restarted_timer, after_ms, 0);
}

void subscription_on_restarted_timer(void *arg)
{
    struct subscription *s = arg;
    subscription_enter(s);
    subscription_take_restarted(s, pubsub_restarted_read(&s->place));
    (void) subscription_leave(s);
}

/* ---- everything ----------------------------------------------------------------------------- */

static bool on_found(void *arg, struct str key, struct str text)
{
    return subscription_take_value(arg, key, text);
}

static void forget_seen(struct subscription *s)
{
    struct map_entry at;
    for (size_t i = 0; map_next(&s->values, &i, &at);)
        ((struct subscription_value *) at.value)->is_seen = false;
}

/* A file that cannot be read just now is still there. */
static bool is_gone(const struct subscription *s, struct str key)
{
    BUF_AUTO text = {0};
    return pubsub_value_read(&s->place, key, &text) == -ENOENT;
}

/* Deleting changes the map, so the keys are collected first. */
static void delete_unseen(struct subscription *s)
{
    ARENA_AUTO a = arena_new();
    struct str *unseen = NULL;
    size_t n_unseen = 0;
    struct map_entry at;
    for (size_t i = 0; map_next(&s->values, &i, &at);) {
        if (((const struct subscription_value *) at.value)->is_seen)
            continue;
        unseen = arena_grow(a, unseen, n_unseen, sizeof(*unseen));
        unseen[n_unseen++] = arena_str(a, at.key);
    }
    for (size_t i = 0; i < n_unseen && !s->is_freed; i++) {
        if (is_gone(s, unseen[i]))
            subscription_take_delete(s, unseen[i]);
    }
}

static void read_everything(struct subscription *s)
{
    forget_seen(s);
    (void) pubsub_values_load(&s->place, &(struct pubsub_loader){on_found, s, false});
    if (!s->is_freed)
        delete_unseen(s);
    if (!s->is_freed)
        read_restarted_later(s);
    subscription_take_synchronized(s);
}

/* ---- events --------------------------------------------------------------------------------- */

static void take_name(struct subscription *s, struct str name)
{
    if (str_is(name, "restarted")) {
        read_restarted_later(s);
        return;
    }
    struct str key = pubsub_value_key(name);
    if (!pubsub_is_key(key, s->place.is_persistent))
        return;
    BUF_AUTO text = {0};
    int r = pubsub_value_read(&s->place, key, &text);
    if (r == 0 && text.n)
        (void) subscription_take_value(s, key, buf_str(&text));
    else if (r == -ENOENT)
        subscription_take_delete(s, key);
}

/* False: the directory is gone, or events were lost. */
static bool take_events(struct subscription *s, const char *p, size_t n)
{
    for (size_t i = 0; i + sizeof(struct inotify_event) <= n && !s->is_freed;) {
        struct inotify_event e;
        memcpy(&e, p + i, sizeof(e));
        if (e.mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF))
            return false;
        if (e.len)
            take_name(s, str_of(p + i + sizeof(e)));
        i += sizeof(e) + e.len;
    }
    return true;
}

static void on_events(void *arg, unsigned ready)
{
    (void) ready;
    struct subscription *s = arg;
    char events[MAX_EVENTS_BYTES];
    ssize_t n = read(s->fd, events, sizeof(events));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    subscription_enter(s);
    bool is_good = n > 0 && take_events(s, events, (size_t) n);
    if (!subscription_leave(s) || is_good)
        return;
    subscription_disconnect(s);
    loop_timer_start(s->timer, 0, 0);
}

static int watch_directory(struct subscription *s)
{
    s->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (s->fd < 0)
        return -errno;
    int r = inotify_add_watch(s->fd, s->place.values,
                              IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                  IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    if (r < 0)
        return -errno;
    s->watch = loop_fd_new(s->pubsub->loop, s->fd, on_events, s);
    if (!s->watch)
        return -ENOMEM;
    loop_fd_watch(s->watch, LOOP_READABLE);
    return 0;
}

void subscription_read_directory(struct subscription *s)
{
    int64_t again_ms = REREAD_MIN_MS + (int64_t) random_below(REREAD_SPREAD_MS);
    int r = s->watch ? 0 : watch_directory(s);
    if (r < 0) {
        /* Without inotify, of which a machine has only so many, looking often must do. */
        subscription_disconnect(s);
        again_ms = s->pubsub->retry_ms;
        log_debug("cannot watch a directory yet", LOG_TEXT("directory", s->place.values),
                  LOG_ERRNO(r));
    }
    loop_timer_start(s->timer, again_ms, 0);
    if (r == -ENOENT)
        return;
    subscription_enter(s);
    read_everything(s);
    (void) subscription_leave(s);
}
