/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"

/* Writers often touch several files, or one twice. */
#define RELOAD_REST_MS 200
#define RELOAD_EVENTS \
    (IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF)

struct watched {
    char *path;
    struct stat last; /* zero: it was not there */
};

struct reload {
    struct loop *loop;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    struct watched files[RELOAD_MAX_FILES];
    size_t n_files;
    void (*on_change)(void *arg);
    void *arg;
};

static struct stat look(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        memset(&st, 0, sizeof(st));
    return st;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that is gone is about to be replaced; what was read from it stays in force. */
static void on_rest(void *arg)
{
    struct reload *r = arg;
    bool has_changed = false;
    for (size_t i = 0; i < r->n_files; i++) {
        struct stat now = look(r->files[i].path);
        if (now.st_ino == 0 || is_same(&now, &r->files[i].last))
            continue;
        r->files[i].last = now;
        has_changed = true;
        log_info("a file has changed", LOG_TEXT("path", r->files[i].path));
    }
    if (has_changed)
        r->on_change(r->arg);
}

static void on_events(void *arg, unsigned ready)
{
    struct reload *r = arg;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    (void) ready;
    while (read(r->fd, events, sizeof(events)) > 0)
        ; /* which one it was does not matter: all are looked at */
    loop_timer_start(r->timer, RELOAD_REST_MS, 0);
}

/* The directory is watched, not the file: a rename puts another one in its place. */
static void add_file(struct reload *r, const char *path)
{
    BUF_AUTO directory = {0};
    ptrdiff_t slash = str_find_last(str_of(path), '/');
    if (slash > 0)
        buf_append(&directory, path, (size_t) slash);
    else
        buf_append_str(&directory, slash == 0 ? STR("/") : STR("."));
    buf_append_char(&directory, '\0');
    if (inotify_add_watch(r->fd, directory.p, RELOAD_EVENTS) < 0)
        log_warning("changes of this file will not be noticed; send SIGHUP", LOG_TEXT("path", path),
                    LOG_TEXT("error", strerror(errno)));
    r->files[r->n_files++] =
        (struct watched){.path = mem_dup(path, strlen(path) + 1), .last = look(path)};
}

struct reload *reload_new(struct loop *l, const char *const *paths, size_t n_paths,
                          void (*on_change)(void *arg), void *arg)
{
    struct reload *r = NEW(struct reload);
    *r = (struct reload){.loop = l, .on_change = on_change, .arg = arg};
    r->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (r->fd < 0) {
        log_warning("changes of files will not be noticed; send SIGHUP",
                    LOG_TEXT("error", strerror(errno)));
        mem_free(r);
        return NULL;
    }
    for (size_t i = 0; i < n_paths && r->n_files < RELOAD_MAX_FILES; i++)
        if (paths[i] && paths[i][0])
            add_file(r, paths[i]);
    r->timer = loop_timer_new(l, on_rest, r);
    r->watch = loop_fd_new(l, r->fd, on_events, r);
    if (r->watch)
        loop_fd_watch(r->watch, LOOP_READABLE);
    return r;
}

static void on_watch_closed(void *arg)
{
    struct reload *r = arg;
    (void) close(r->fd);
    for (size_t i = 0; i < r->n_files; i++)
        mem_free(r->files[i].path);
    mem_free(r);
}

void reload_free(struct reload *r)
{
    if (!r)
        return;
    loop_timer_free(r->timer);
    if (r->watch)
        loop_fd_free(r->watch, on_watch_closed, r);
    else
        on_watch_closed(r);
}
