/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/log_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"

#define TIME_BYTES 23 /* 2006-01-02T15-04-05.000 */
/* Under load space is asked for in such pieces: a third of what a write costs is finding it. */
#define RESERVE_BYTES ((int64_t) 8 * 1024 * 1024)
#define LOAD_BYTES ((int64_t) 64 * 1024) /* in one write */

struct log_file {
    struct log_file_options options; /* path is owned */
    int fd;
    bool is_regular; /* pipes and devices are neither rotated nor looked after */
    int64_t size_bytes;
    int64_t reserved_bytes; /* up to here the file has its space; 0: none was asked for */
    dev_t device;
    ino_t inode;
    bool is_inside_line; /* the last write ended in one */
    int64_t rotated_ms;  /* the time in the last backup's name: none gets it twice */
};

static bool is_stdout(const struct log_file *f)
{
    return f->fd == STDOUT_FILENO;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* A path as directory, name without and extension with the dot. */
struct name_parts {
    struct str directory, stem, extension;
};

static struct name_parts split_path(struct str path)
{
    ptrdiff_t slash = str_find_last(path, '/');
    struct str name = str_from(path, (size_t) (slash + 1));
    ptrdiff_t dot = str_find_last(name, '.');
    return (struct name_parts){
        .directory = slash < 0    ? STR(".")
                     : slash == 0 ? STR("/")
                                  : str_sub(path, 0, (size_t) slash),
        .stem = dot > 0 ? str_sub(name, 0, (size_t) dot) : name,
        .extension = dot > 0 ? str_from(name, (size_t) dot) : STR(""),
    };
}

static struct str backup_path(struct arena *a, struct str path, int64_t ms)
{
    struct name_parts p = split_path(path);
    char time[CLOCK_MICROS_BYTES];
    clock_format_micros(ms * 1000, time);
    time[13] = time[16] = '-';
    return arena_printf(a, "%.*s/%.*s-%.*s%.*s", STR_ARG(p.directory), STR_ARG(p.stem), TIME_BYTES,
                        time, STR_ARG(p.extension));
}

/* Whether the name is one of ours, and the time in it. */
static bool parse_backup(const struct name_parts *p, struct str name, int64_t *ret_ms)
{
    char time[TIME_BYTES + 1];
    int64_t us = 0;
    if (name.n != p->stem.n + 1 + TIME_BYTES + p->extension.n || !str_starts_with(name, p->stem) ||
        name.p[p->stem.n] != '-' || !str_ends_with(name, p->extension))
        return false;
    memcpy(time, name.p + p->stem.n + 1, TIME_BYTES);
    if (time[13] != '-' || time[16] != '-')
        return false;
    time[13] = time[16] = ':';
    time[TIME_BYTES] = 'Z';
    if (clock_parse(str_range(time, sizeof(time)), &us) < 0)
        return false;
    *ret_ms = us / 1000;
    return true;
}

/* ---- old ones ------------------------------------------------------------------------------- */

struct backup {
    int64_t ms;
    const char *path;
};

static int newest_first(const void *a, const void *b)
{
    int64_t left = ((const struct backup *) a)->ms, right = ((const struct backup *) b)->ms;
    return (left < right) - (left > right);
}

static size_t list_backups(struct arena *a, struct str path, struct backup **ret)
{
    struct name_parts p = split_path(path);
    struct backup *list = NULL;
    size_t n = 0;
    DIR *d = opendir(arena_strz(a, p.directory));
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        struct backup found = {0};
        if (!parse_backup(&p, str_of(e->d_name), &found.ms))
            continue;
        found.path = arena_printf(a, "%.*s/%s", STR_ARG(p.directory), e->d_name).p;
        list = arena_grow(a, list, n, sizeof(*list));
        list[n++] = found;
    }
    if (d)
        (void) closedir(d);
    if (n)
        qsort(list, n, sizeof(*list), newest_first);
    *ret = list;
    return n;
}

static void prune(struct log_file *f)
{
    const struct log_file_options *o = &f->options;
    if (!f->is_regular || (!o->max_backups && !o->max_age_s))
        return;
    ARENA_AUTO a = arena_new();
    struct backup *list = NULL;
    const size_t n = list_backups(a, str_of(o->path), &list);
    const int64_t now_ms = o->clock->wall_us(o->clock) / 1000;
    for (size_t i = 0; i < n; i++) {
        bool is_surplus = o->max_backups && i >= (size_t) o->max_backups;
        bool is_old = o->max_age_s && list[i].ms < now_ms - o->max_age_s * 1000;
        if (is_surplus || is_old)
            (void) unlink(list[i].path);
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Before it is needed; whether there is any is seen when it is written to. */
static void reserve(struct log_file *f, int64_t n_more)
{
    if (!f->is_regular || n_more < LOAD_BYTES || f->size_bytes + n_more <= f->reserved_bytes)
        return;
    f->reserved_bytes = f->size_bytes + n_more + RESERVE_BYTES;
    (void) fallocate(f->fd, FALLOC_FL_KEEP_SIZE, f->size_bytes, f->reserved_bytes - f->size_bytes);
}

/* What was reserved and not used is given back. The size is what the file says: others may have
 * emptied it. */
static void close_fd(struct log_file *f)
{
    struct stat st;
    if (f->reserved_bytes && fstat(f->fd, &st) == 0 && ftruncate(f->fd, st.st_size) < 0)
        log_debug("the audit log keeps what was reserved for it", LOG_ERRNO(-errno));
    f->reserved_bytes = 0;
    if (f->fd >= 0 && !is_stdout(f))
        (void) close(f->fd);
}

/* Replaces the file that is open only when all went well. */
static int open_path(struct log_file *f)
{
    struct stat st;
    int fd = open(f->options.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0) {
        int r = -errno;
        (void) close(fd);
        return r;
    }
    close_fd(f);
    f->fd = fd;
    f->is_regular = S_ISREG(st.st_mode);
    f->size_bytes = st.st_size;
    f->device = st.st_dev;
    f->inode = st.st_ino;
    return 0;
}

int log_file_open(const struct log_file_options *o, struct log_file **ret_file)
{
    struct log_file *f = NEW(struct log_file);
    f->options = *o;
    f->options.path = mem_strdup(o->path);
    f->fd = -1;
    if (str_is(str_of(o->path), "-")) {
        f->fd = STDOUT_FILENO;
    } else {
        int r = open_path(f);
        if (r < 0) {
            log_file_close(f);
            return r;
        }
        prune(f);
    }
    *ret_file = f;
    return 0;
}

void log_file_close(struct log_file *f)
{
    if (!f)
        return;
    close_fd(f);
    mem_free((char *) f->options.path);
    mem_free(f);
}

int log_file_follow(struct log_file *f)
{
    struct stat st;
    if (!f->is_regular ||
        (stat(f->options.path, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode))
        return 0;
    return open_path(f);
}

/* ---- writing -------------------------------------------------------------------------------- */

static int rotate(struct log_file *f)
{
    ARENA_AUTO a = arena_new();
    int64_t ms = f->options.clock->wall_us(f->options.clock) / 1000;
    ms = MAX(ms, f->rotated_ms + 1);
    struct str to = backup_path(a, str_of(f->options.path), ms);
    while (access(to.p, F_OK) == 0)
        to = backup_path(a, str_of(f->options.path), ++ms);
    f->rotated_ms = ms;
    if (rename(f->options.path, to.p) < 0 && errno != ENOENT)
        return -errno;
    int r = open_path(f);
    if (r == 0)
        prune(f);
    return r;
}

static size_t first_line(struct str lines)
{
    ptrdiff_t end = str_find(lines, '\n');
    return end < 0 ? lines.n : (size_t) end + 1;
}

/* How much of it goes into this file: all, as many lines as it has room for, or 0: rotate first. A
 * line longer than any file gets one of its own. */
static size_t fitting(const struct log_file *f, struct str lines)
{
    const int64_t max = f->options.max_size_bytes;
    if (!f->is_regular || !max || f->size_bytes + (int64_t) lines.n <= max)
        return lines.n;
    if (f->is_inside_line)
        return first_line(lines);
    int64_t room = MAX(max - f->size_bytes, (int64_t) 0);
    ptrdiff_t end = str_find_last(str_sub(lines, 0, (size_t) room), '\n');
    if (end >= 0)
        return (size_t) end + 1;
    return f->size_bytes == 0 ? first_line(lines) : 0;
}

/* One write(2), rotating before it if need be. */
static int write_some(struct log_file *f, struct str lines, size_t *ret_n)
{
    size_t n = fitting(f, lines);
    if (!n) {
        *ret_n = 0;
        return rotate(f);
    }
    reserve(f, (int64_t) n);
    ssize_t written = write(f->fd, lines.p, n);
    if (written < 0)
        return errno == EINTR ? 0 : -errno;
    f->size_bytes += written;
    f->is_inside_line = written ? lines.p[written - 1] != '\n' : f->is_inside_line;
    *ret_n = (size_t) written;
    return 0;
}

/* Half a line is taken back, so that whatever comes next finds the file whole. */
static void take_back(struct log_file *f, struct str lines, size_t *taken)
{
    if (!f->is_inside_line)
        return;
    size_t n = (size_t) (str_find_last(str_sub(lines, 0, *taken), '\n') + 1);
    if (ftruncate(f->fd, f->size_bytes - (int64_t) (*taken - n)) < 0)
        return; /* a pipe: the rest of the line is to follow */
    f->size_bytes -= (int64_t) (*taken - n);
    f->is_inside_line = false;
    *taken = n;
}

int log_file_write(struct log_file *f, struct str lines, size_t *ret_taken)
{
    size_t taken = 0;
    int r = 0;
    while (r == 0 && taken < lines.n) {
        size_t n = 0;
        r = write_some(f, str_from(lines, taken), &n);
        taken += n;
    }
    if (r < 0)
        take_back(f, lines, &taken);
    *ret_taken = taken;
    return r;
}
