/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/logfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define MAX_TIME_DIGITS 18 /* fits an int64 */

static const char *const directory_names[LOG_DIRECTORIES] = {
    [LOG_COLLECT] = "collect",      [LOG_DEV_UPLOAD] = "devUpload",
    [LOG_APP_UPLOAD] = "appUpload", [LOG_KEEP_SENT] = "keepSentQueue",
    [LOG_FAILED] = "failedUpload",
};

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

static bool take_prefix(struct str *s, struct str prefix)
{
    if (!str_starts_with(*s, prefix))
        return false;
    *s = str_from(*s, prefix.n);
    return true;
}

static int parse_time(struct str digits, struct logfile *ret)
{
    if (!is_digits(digits) || digits.n > MAX_TIME_DIGITS || str_to_i64(digits, &ret->time_ms) < 0 ||
        ret->time_ms <= 0)
        return -EINVAL;
    return 0;
}

/* Takes everything up to and with `.log` off the name. */
static int parse_owner(struct str *name, struct logfile *ret)
{
    *ret = (struct logfile){0};
    if (take_prefix(name, STR("dev.log")))
        return 0;
    if (!take_prefix(name, STR("app.")))
        return -EINVAL;
    ret->is_app = true;
    ret->is_skipped = take_prefix(name, STR("skipTx."));
    if (uuid_parse(str_sub(*name, 0, MIN(name->n, UUID_TEXT_BYTES - 1)), &ret->app) < 0 ||
        uuid_is_zero(&ret->app))
        return -EINVAL;
    *name = str_from(*name, UUID_TEXT_BYTES - 1);
    return take_prefix(name, STR(".log")) ? 0 : -EINVAL;
}

int logfile_parse(struct str name, struct logfile *ret)
{
    struct logfile f;
    if (!str_ends_with(name, STR(".gz")))
        return -EINVAL;
    struct str rest = str_sub(name, 0, name.n - 3);
    if (parse_owner(&rest, &f) < 0 || !take_prefix(&rest, STR(".")) || parse_time(rest, &f) < 0)
        return -EINVAL;
    *ret = f;
    return 0;
}

int logfile_parse_raw(struct str name, struct logfile *ret)
{
    struct logfile f;
    struct str rest = name;
    if (parse_owner(&rest, &f) < 0)
        return -EINVAL;
    if (!take_prefix(&rest, STR("."))) /* newlogd's: random digits behind */
        return is_digits(rest) ? (*ret = f, 0) : -EINVAL;
    if (!f.is_app && take_prefix(&rest, STR("upload")))
        return is_digits(rest) ? (*ret = f, 0) : -EINVAL;
    if (parse_time(rest, &f) < 0)
        return -EINVAL;
    *ret = f;
    return 0;
}

struct str logfile_raw_name(struct arena *a, const struct logfile *f)
{
    char app[UUID_TEXT_BYTES];
    if (!f->is_app)
        return arena_printf(a, "dev.log.%lld", (long long) f->time_ms);
    uuid_text(&f->app, app);
    return arena_printf(a, "app.%s%s.log.%lld", f->is_skipped ? "skipTx." : "", app,
                        (long long) f->time_ms);
}

struct str logfile_name(struct arena *a, const struct logfile *f)
{
    return arena_printf(a, "%.*s.gz", STR_ARG(logfile_raw_name(a, f)));
}

enum log_directory logfile_directory(const struct logfile *f)
{
    if (!f->is_app)
        return LOG_DEV_UPLOAD;
    return f->is_skipped ? LOG_KEEP_SENT : LOG_APP_UPLOAD;
}

/* ---- directories ---------------------------------------------------------------------------- */

const char *logfiles_path(struct arena *a, const char *root, enum log_directory d, struct str name)
{
    return arena_printf(a, "%s/%s%s%.*s", root, directory_names[d], name.n ? "/" : "",
                        STR_ARG(name))
        .p;
}

int logfiles_make(const char *root)
{
    ARENA_AUTO a = arena_new();
    if (mkdir(root, 0755) < 0 && errno != EEXIST)
        return -errno;
    for (int d = 0; d < LOG_DIRECTORIES; d++)
        if (mkdir(logfiles_path(a, root, (enum log_directory) d, STR_NONE), 0755) < 0 &&
            errno != EEXIST)
            return -errno;
    return 0;
}

int logfiles_sync(const char *root, enum log_directory d)
{
    ARENA_AUTO a = arena_new();
    int fd = open(logfiles_path(a, root, d, STR_NONE), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 ? -errno : 0;
    (void) close(fd);
    return r;
}

static DIR *open_directory(const char *root, enum log_directory d)
{
    ARENA_AUTO a = arena_new();
    return opendir(logfiles_path(a, root, d, STR_NONE));
}

/* The next file whose name is one of ours. */
static const char *next_file(DIR *dir, struct logfile *ret)
{
    struct dirent *e;
    while ((e = readdir(dir)))
        if ((e->d_type == DT_REG || e->d_type == DT_UNKNOWN) &&
            logfile_parse(str_of(e->d_name), ret) == 0)
            return e->d_name;
    return NULL;
}

static bool is_for(enum log_directory d, const struct logfile *f)
{
    return f->is_app == (d == LOG_APP_UPLOAD) && !f->is_skipped;
}

int logfiles_find_oldest(struct arena *a, const char *root, enum log_directory d,
                         struct logfiles_oldest *ret)
{
    *ret = (struct logfiles_oldest){0};
    DIR *dir = open_directory(root, d);
    if (!dir)
        return errno == ENOENT ? 0 : -errno;
    struct logfile f;
    const char *name;
    char oldest[NAME_MAX + 1] = "";
    while ((name = next_file(dir, &f))) {
        if (!is_for(d, &f))
            continue;
        ret->n_files++;
        /* Of two of one moment always the same one first. */
        if (oldest[0] && (f.time_ms > ret->file.time_ms ||
                          (f.time_ms == ret->file.time_ms && strcmp(name, oldest) > 0)))
            continue;
        ret->file = f;
        memcpy(oldest, name, strlen(name) + 1);
    }
    (void) closedir(dir);
    if (oldest[0])
        ret->name = arena_str(a, str_of(oldest));
    return 0;
}

void logfiles_measure(const char *root, enum log_directory d, struct logfiles_usage *ret)
{
    DIR *dir = open_directory(root, d);
    struct logfile f;
    const char *name;
    struct stat st;
    while (dir && (name = next_file(dir, &f))) {
        if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        ret->n_bytes += (uint64_t) st.st_size;
        ret->n_files++;
        ret->oldest_ms = ret->oldest_ms ? MIN(ret->oldest_ms, f.time_ms) : f.time_ms;
        ret->newest_ms = MAX(ret->newest_ms, f.time_ms);
    }
    if (dir)
        (void) closedir(dir);
}

struct aged {
    int64_t time_ms;
    const char *name;
};

static int by_age(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

static struct aged *list_by_age(struct arena *a, DIR *dir, size_t *ret_n)
{
    struct aged *items = NULL;
    struct logfile f;
    const char *name;
    size_t n = 0;
    while ((name = next_file(dir, &f))) {
        items = arena_grow(a, items, n, sizeof(*items));
        items[n++] = (struct aged){f.time_ms, arena_strz(a, str_of(name))};
    }
    if (n > 1)
        qsort(items, n, sizeof(*items), by_age);
    *ret_n = n;
    return items;
}

struct logfiles_usage logfiles_remove_oldest(const char *root, enum log_directory d,
                                             uint64_t n_bytes, size_t n_files)
{
    struct logfiles_usage gone = {0};
    DIR *dir = open_directory(root, d);
    if (!dir)
        return gone;
    ARENA_AUTO a = arena_new();
    size_t n;
    struct aged *items = list_by_age(a, dir, &n);
    for (size_t i = 0; i < n && (gone.n_bytes < n_bytes || gone.n_files < n_files); i++) {
        struct stat st;
        if (fstatat(dirfd(dir), items[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            unlinkat(dirfd(dir), items[i].name, 0) < 0)
            continue;
        gone.n_bytes += (uint64_t) st.st_size;
        gone.n_files++;
        gone.oldest_ms = gone.oldest_ms ? gone.oldest_ms : items[i].time_ms;
        gone.newest_ms = items[i].time_ms;
    }
    (void) closedir(dir);
    return gone;
}

int logfiles_move(const char *root, enum log_directory from, enum log_directory to, struct str name,
                  bool syncs)
{
    ARENA_AUTO a = arena_new();
    if (rename(logfiles_path(a, root, from, name), logfiles_path(a, root, to, name)) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!syncs)
        return 0;
    int r = logfiles_sync(root, to);
    return r < 0 ? r : logfiles_sync(root, from);
}
