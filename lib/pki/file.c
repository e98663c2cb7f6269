/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "pki/openssl.h"

int pki_file_read(const char *path, struct buf *ret_content)
{
    return file_read(path, PKI_FILE_MAX_BYTES, ret_content);
}

/* Makes the rename itself durable. */
static int sync_directory_of(const char *path)
{
    char *copy = mem_strdup(path);
    FD_AUTO fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    mem_free(copy);
    return r;
}

/* Only root can, and only then does it matter. */
static int give_to_directory_owner(int fd, const char *path)
{
    struct stat directory;
    char *copy = mem_strdup(path);
    int r = stat(dirname(copy), &directory) < 0 ? -errno : 0;
    mem_free(copy);
    if (r == 0 && geteuid() == 0 && fchown(fd, directory.st_uid, directory.st_gid) < 0)
        r = -errno;
    return r;
}

int pki_file_write(const char *path, struct str content, unsigned mode)
{
    BUF_AUTO temporary = {0};
    buf_printf(&temporary, "%s.XXXXXX", path);
    /* Created 0600: a key is never readable by others, not even for a moment. */
    FD_AUTO fd = mkostemp(temporary.p, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = file_write_all(fd, content);
    if (r == 0 && (mode & PKI_FILE_FOR_DIRECTORY_OWNER))
        r = give_to_directory_owner(fd, path);
    /* A FAT file system, as on the media of devices, has no modes and says EPERM. */
    if (r == 0 && ((fchmod(fd, (mode_t) (mode & 07777)) < 0 && errno != EPERM) || fsync(fd) < 0 ||
                   rename(temporary.p, path) < 0))
        r = -errno;
    if (r < 0) {
        (void) unlink(temporary.p);
        return r;
    }
    return sync_directory_of(path);
}
