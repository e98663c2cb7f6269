/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t) 16 * 1024)

void file_close(const int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
}

int file_write_all(int fd, struct str bytes)
{
    while (bytes.n) {
        const ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes = str_from(bytes, (size_t) n);
    }
    return 0;
}

static int read_until(int fd, size_t limit, struct buf *to)
{
    for (;;) {
        /* One byte past the limit tells too large from just full. */
        const size_t room = MIN(READ_BYTES, limit + 1 - to->n);
        const ssize_t n = read(fd, buf_reserve(to, room), room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        to->n += (size_t) n;
        if (to->n > limit)
            return -EFBIG;
    }
}

int file_read_all(int fd, size_t max_bytes, struct buf *to)
{
    const size_t begin = to->n;
    const int r = read_until(fd, begin + max_bytes, to);
    if (r < 0)
        to->n = begin;
    to->p[to->n] = '\0';
    return r;
}

int file_read_regular(int fd, size_t max_bytes, struct buf *to)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? file_read_all(fd, max_bytes, to) : -EINVAL;
}

int file_read(const char *path, size_t max_bytes, struct buf *to)
{
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : file_read_all(fd, max_bytes, to);
}
