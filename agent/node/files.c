/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "node/node_internal.h"

#define FILE_MODE 0600
#define DIRECTORY_MODE 0755

const char *node_path(struct arena *a, const struct node *n, enum node_directory d, struct str name)
{
    return arena_printf(a, "%s/%.*s", n->internal->directories[d], STR_ARG(name)).p;
}

int node_make_directory(const char *path)
{
    if (mkdir(path, DIRECTORY_MODE) == 0 || errno == EEXIST)
        return 0;
    const ptrdiff_t end = str_find_last(str_of(path), '/');
    if (errno != ENOENT || end <= 0)
        return -errno;
    ARENA_AUTO a = arena_new();
    const int r = node_make_directory(arena_strz(a, str_range(path, (size_t) end)));
    if (r < 0)
        return r;
    return mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST ? -errno : 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

int node_file_read(const struct node *n, enum node_directory d, struct str name, struct buf *to)
{
    ARENA_AUTO a = arena_new();
    const size_t begin = to->n;
    /* Not to wait for a writer should the name be that of a pipe. */
    FD_AUTO fd = open(node_path(a, n, d, name), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int r = fd < 0 ? -errno : file_read_all(fd, NODE_MAX_FILE_BYTES, to);
    return r == 0 && to->n == begin ? -ENOENT : r;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Makes a change of the directory durable. */
static int sync_directory_of(struct arena *a, const char *path)
{
    FD_AUTO fd = open(dirname(arena_strz(a, str_of(path))), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int create(struct arena *a, const char *path, unsigned mode)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, mode);
    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    const int r = node_make_directory(dirname(arena_strz(a, str_of(path))));
    if (r < 0)
        return r;
    fd = open(path, flags, mode);
    return fd < 0 ? -errno : fd;
}

/* The temporary name is always the same: one writer has the file, and what a power cut has left of
 * it is overwritten the next time. */
int node_file_write_mode(struct node *n, enum node_directory d, struct str name, struct str content,
                         unsigned mode)
{
    ARENA_AUTO a = arena_new();
    const char *path = node_path(a, n, d, name);
    const char *temporary = arena_printf(a, "%s.tmp", path).p;
    FD_AUTO fd = create(a, temporary, mode);
    if (fd < 0)
        return fd;
    int r = file_write_all(fd, content);
    if (r == 0 && !n->is_simulated && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        (void) unlink(temporary);
        return r;
    }
    return n->is_simulated ? 0 : sync_directory_of(a, path);
}

int node_file_write(struct node *n, enum node_directory d, struct str name, struct str content)
{
    return node_file_write_mode(n, d, name, content, FILE_MODE);
}

int node_file_replace(struct node *n, enum node_directory d, struct str name, struct str content)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO before = {0};
    int r = node_file_read(n, d, name, &before);
    if (r == 0)
        r = node_file_write(n, d, arena_printf(a, "%.*s.bak", STR_ARG(name)), buf_str(&before));
    if (r < 0 && r != -ENOENT)
        return r;
    return node_file_write(n, d, name, content);
}

int node_file_remove(struct node *n, enum node_directory d, struct str name)
{
    ARENA_AUTO a = arena_new();
    const char *path = node_path(a, n, d, name);
    if (unlink(path) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
    return n->is_simulated ? 0 : sync_directory_of(a, path);
}
