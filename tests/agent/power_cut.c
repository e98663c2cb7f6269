/* SPDX-License-Identifier: Apache-2.0 */
/* A power cut at a chosen place: with POWER_CUT=<n> in the environment the process kills itself
 * instead of the n-th change of a file, and of a write only the first half is done. A program that
 * links this names the functions to the linker with --wrap (power_cut_args). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
int __real_rename(const char *from, const char *to);
int __real_renameat(int from_at, const char *from, int to_at, const char *to);
int __real_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __real_unlink(const char *path);
int __real_unlinkat(int at, const char *path, int flags);
int __real_fsync(int fd);
ssize_t __real_write(int fd, const void *p, size_t n);

int __wrap_rename(const char *from, const char *to);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int at, const char *path, int flags);
int __wrap_fsync(int fd);
ssize_t __wrap_write(int fd, const void *p, size_t n);
/* clang-format on */

/* Whether it is now. */
static int is_due(void)
{
    static long left = -1;
    if (left < 0) {
        const char *text = getenv("POWER_CUT");
        left = text ? strtol(text, NULL, 10) : 0;
    }
    return left > 0 && --left == 0;
}

static void cut(void)
{
    (void) raise(SIGKILL);
}

int __wrap_rename(const char *from, const char *to)
{
    if (is_due())
        cut();
    return __real_rename(from, to);
}

int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
    if (is_due())
        cut();
    return __real_renameat(from_at, from, to_at, to);
}

int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    if (is_due())
        cut();
    return __real_linkat(from_at, from, to_at, to, flags);
}

int __wrap_unlink(const char *path)
{
    if (is_due())
        cut();
    return __real_unlink(path);
}

int __wrap_unlinkat(int at, const char *path, int flags)
{
    if (is_due())
        cut();
    return __real_unlinkat(at, path, flags);
}

int __wrap_fsync(int fd)
{
    if (is_due())
        cut();
    return __real_fsync(fd);
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    struct stat st;
    if (fd > STDERR_FILENO && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_due()) {
        (void) __real_write(fd, p, n / 2);
        cut();
    }
    return __real_write(fd, p, n);
}
