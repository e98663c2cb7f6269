/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/drive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

static int put_file(struct archive *to, const char *name, struct str content)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0444);
    archive_entry_set_size(e, (int64_t) content.n);
    int r = archive_write_header(to, e);
    if (r == ARCHIVE_OK && content.n &&
        archive_write_data(to, content.p, content.n) != (ssize_t) content.n)
        r = ARCHIVE_FATAL;
    archive_entry_free(e);
    return r;
}

int drive_write(const char *path, struct str user_data, struct str meta_data, char **ret_error)
{
    (void) unlink(path);
    FD_AUTO fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(ret_error, -errno, "%s: %s", path, log_errno_text(-errno));
    struct archive *a = archive_write_new();
    int r = archive_write_set_format_iso9660(a);
    if (r == ARCHIVE_OK)
        r = archive_write_set_format_option(a, "iso9660", "volume-id", "cidata");
    if (r == ARCHIVE_OK)
        r = archive_write_open_fd(a, fd);
    if (r == ARCHIVE_OK)
        r = put_file(a, "user-data", user_data);
    if (r == ARCHIVE_OK)
        r = put_file(a, "meta-data", meta_data);
    if (r == ARCHIVE_OK)
        r = archive_write_close(a);
    const char *why = archive_error_string(a);
    int e = r == ARCHIVE_OK
                ? 0
                : error_set(ret_error, -EIO, "drive for cloud-init: %s", why ? why : "not written");
    (void) archive_write_free(a);
    return e;
}
