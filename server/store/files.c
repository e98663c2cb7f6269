/* SPDX-License-Identifier: Apache-2.0 */
/* What the store does with files other than through SQLite, and the words of its complaints. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "store/disk.h"

char *disk_sibling(const char *path, const char *suffix)
{
    struct buf b = {0};
    buf_printf(&b, "%s%s", path, suffix);
    return buf_take(&b);
}

/* "." for a bare name. */
static char *directory_of(const char *path)
{
    struct buf b = {0};
    ptrdiff_t slash = str_find_last(str_of(path), '/');
    if (slash > 0)
        buf_append(&b, path, (size_t) slash);
    else
        buf_append_str(&b, slash == 0 ? STR("/") : STR("."));
    return buf_take(&b);
}

char *disk_damage(const char *path, const char *format, ...)
{
    struct buf b = {0};
    va_list args;
    va_start(args, format);
    buf_printf(&b, "%s: ", path);
    buf_vprintf(&b, format, args);
    va_end(args);
    char *directory = directory_of(path);
    buf_printf(&b, "; restore it from a backup: seth restore <backup> --data-dir %s", directory);
    mem_free(directory);
    return buf_take(&b);
}

char *disk_complaint(const char *path, const char *doing, int negative_errno)
{
    struct buf b = {0};
    buf_printf(&b, "%s: %s: %s", path, doing, log_errno_text(negative_errno));
    return buf_take(&b);
}

static int sync_at(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 ? -errno : 0;
    (void) close(fd);
    return r;
}

int disk_sync_file(const char *path)
{
    return sync_at(path, O_RDWR);
}

int disk_sync_directory(const char *path)
{
    char *directory = directory_of(path);
    int r = sync_at(directory, O_RDONLY | O_DIRECTORY);
    mem_free(directory);
    return r;
}

static char *describe_holder(const char *path, int fd)
{
    char text[24] = {0};
    struct buf b = {0};
    buf_printf(&b, "%s: another process", path);
    if (pread(fd, text, sizeof(text) - 1, 0) > 0)
        buf_printf(&b, " (pid %.*s)", (int) strspn(text, "0123456789"), text);
    buf_append_str(&b, STR(" is using it; stop that one first"));
    return buf_take(&b);
}

/* The lock is a file of its own: SQLite's locks on the data must stay free for backups. The pid in
 * it is only for people. */
int disk_lock(const char *path, char **ret_error)
{
    char *lock_path = disk_sibling(path, ".lock");
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : 0;
    if (r < 0)
        *ret_error = disk_complaint(lock_path, "cannot open", r);
    mem_free(lock_path);
    if (r < 0)
        return r;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        r = errno == EWOULDBLOCK ? -EBUSY : -errno;
        *ret_error =
            r == -EBUSY ? describe_holder(path, fd) : disk_complaint(path, "cannot lock", r);
        (void) close(fd);
        return r;
    }
    char pid[24];
    int n = snprintf(pid, sizeof(pid), "%" PRIdMAX "\n", (intmax_t) getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t) n, 0) < 0)
        log_debug("the lock names no process", LOG_ERRNO(-errno));
    return fd;
}
