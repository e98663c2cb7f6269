/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/tree.h"

#define READ_BYTES ((size_t) 64 * 1024)
#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

/* One entry of the tar, with its name taken apart. */
struct item {
    struct archive_entry *entry;
    struct buf directory; /* "usr/lib", or empty: the root */
    struct buf name;      /* "libc.so", or empty: the root itself */
};

static void item_done(struct item *i)
{
    buf_done(&i->directory);
    buf_done(&i->name);
}

/* ---- names --------------------------------------------------------------------------------- */

/* "./a//b/" gives "a" and "b". ".." is refused wherever it stands: no honest layer has it. */
static int split_path(const char *path, struct buf *directory, struct buf *name)
{
    struct str rest = str_of(path), part;
    buf_reset(directory);
    buf_reset(name);
    if (!path || rest.n > LAYER_MAX_PATH_BYTES)
        return path ? -EFBIG : -EBADMSG;
    int depth = 0;
    while (str_split(&rest, '/', &part)) {
        if (!part.n || str_is(part, "."))
            continue;
        if (str_is(part, ".."))
            return -EPERM;
        if (++depth > LAYER_MAX_DEPTH || part.n > 255)
            return -EFBIG;
        if (name->n) {
            if (directory->n)
                buf_append_char(directory, '/');
            buf_append_str(directory, buf_str(name));
            buf_reset(name);
        }
        buf_append_str(name, part);
    }
    buf_append_str(directory, STR(""));
    return 0;
}

/* The locale need not be UTF-8 for names to be. */
static const char *entry_path(struct archive_entry *e)
{
    const char *p = archive_entry_pathname(e);
    return p ? p : archive_entry_pathname_utf8(e);
}

static const char *entry_hardlink(struct archive_entry *e)
{
    const char *p = archive_entry_hardlink(e);
    return p ? p : archive_entry_hardlink_utf8(e);
}

static const char *entry_symlink(struct archive_entry *e)
{
    const char *p = archive_entry_symlink(e);
    return p ? p : archive_entry_symlink_utf8(e);
}

/* ---- directories --------------------------------------------------------------------------- */

static int make_missing(int root_fd, const char *directory)
{
    BUF_AUTO so_far = {0};
    struct str rest = str_of(directory), part;
    int at = tree_open(root_fd, ".", O_RDONLY | O_DIRECTORY);
    while (at >= 0 && str_split(&rest, '/', &part)) {
        if (so_far.n)
            buf_append_char(&so_far, '/');
        buf_append_str(&so_far, part);
        int next = tree_open(root_fd, so_far.p, O_RDONLY | O_DIRECTORY);
        if (next == -ENOENT) {
            BUF_AUTO name = {0};
            buf_append_str(&name, part);
            next = mkdirat(at, name.p, 0755) < 0
                       ? -errno
                       : tree_open(root_fd, so_far.p, O_RDONLY | O_DIRECTORY);
        }
        (void) close(at);
        at = next;
    }
    return at;
}

/* Links among the directories are followed as inside the container: images rely on it. */
static int open_directory(int root_fd, const char *directory, bool makes_it)
{
    int fd = tree_open(root_fd, *directory ? directory : ".", O_RDONLY | O_DIRECTORY);
    return fd == -ENOENT && makes_it ? make_missing(root_fd, directory) : fd;
}

/* ---- whiteouts ----------------------------------------------------------------------------- */

static int apply_whiteout(const struct layer_target *t, const struct item *i)
{
    struct str name = buf_str(&i->name);
    if (!str_starts_with(name, STR(WHITEOUT)))
        return 0;
    int fd = open_directory(t->root_fd, i->directory.p, /* makes_it= */ false);
    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
    const char *hidden = i->name.p + strlen(WHITEOUT);
    int e = 0;
    if (str_is(name, OPAQUE))
        e = tree_empty(fd);
    else if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        e = -EPERM;
    else
        e = tree_remove(fd, hidden);
    (void) close(fd);
    return e;
}

/* ---- making what an entry says ------------------------------------------------------------- */

static int write_block(int fd, const char *p, size_t n, int64_t offset)
{
    while (n) {
        ssize_t written = pwrite(fd, p, n, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        p += written;
        n -= (size_t) written;
        offset += written;
    }
    return 0;
}

/* Sizes are those of the data as it comes, whatever the header promised. */
static int write_data(struct layer_target *t, struct archive *a, int fd)
{
    int64_t end = 0;
    for (;;) {
        const void *p;
        size_t n;
        la_int64_t offset;
        int r = archive_read_data_block(a, &p, &n, &offset);
        if (r == ARCHIVE_EOF)
            return 0;
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
            return -EBADMSG;
        if (offset < 0 || offset > LAYER_DEFAULT_BYTES * 1024)
            return -EFBIG;
        int64_t grown = offset + (int64_t) n - end;
        if (grown > t->bytes_left)
            return -EFBIG;
        if (t->is_cancelled && atomic_load(t->is_cancelled))
            return -ECANCELED;
        int e = write_block(fd, p, n, offset);
        if (e < 0)
            return e;
        if (grown > 0) {
            t->bytes_left -= grown;
            end += grown;
        }
    }
}

static int make_file(struct layer_target *t, struct archive *a, const struct item *i, int parent)
{
    /* The end of a sparse file is a hole that no block tells of. */
    int64_t size = archive_entry_size(i->entry);
    if (size > t->bytes_left)
        return -EFBIG;
    int fd = openat(parent, i->name.p, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int e = write_data(t, a, fd);
    struct stat st;
    if (!e && fstat(fd, &st) == 0 && st.st_size < size) {
        t->bytes_left -= size - st.st_size;
        e = ftruncate(fd, size) < 0 ? -errno : 0;
    }
    (void) close(fd);
    return e;
}

static int make_hardlink(struct layer_target *t, const struct item *i, int parent)
{
    BUF_AUTO directory = {0};
    BUF_AUTO name = {0};
    int e = split_path(entry_hardlink(i->entry), &directory, &name);
    if (e < 0 || !name.n)
        return e < 0 ? e : -EPERM;
    int fd = open_directory(t->root_fd, directory.p, /* makes_it= */ false);
    if (fd < 0)
        return fd == -ENOENT ? -EBADMSG : fd;
    e = linkat(fd, name.p, parent, i->name.p, 0) < 0 ? -errno : 0;
    (void) close(fd);
    return e == -ENOENT ? -EBADMSG : e;
}

static int make_symlink(const struct item *i, int parent)
{
    const char *target = entry_symlink(i->entry);
    if (!target || !*target || strlen(target) > LAYER_MAX_PATH_BYTES)
        return -EBADMSG;
    return symlinkat(target, parent, i->name.p) < 0 ? -errno : 0;
}

static int make_directory(const struct item *i, int parent)
{
    return mkdirat(parent, i->name.p, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Ownership first: it clears the bits that let a program change its user. */
static int set_attributes(const struct layer_target *t, const struct item *i, int parent,
                          const char *name)
{
    const int flags = AT_SYMLINK_NOFOLLOW;
    mode_t type = archive_entry_filetype(i->entry);
    if (t->keeps_owners && fchownat(parent, name, (uid_t) archive_entry_uid(i->entry),
                                    (gid_t) archive_entry_gid(i->entry), flags) < 0)
        return -errno;
    /* Links have no mode of their own, and what is no link is not followed. */
    if (type != AE_IFLNK && fchmodat(parent, name, archive_entry_perm(i->entry) & 07777, 0) < 0)
        return -errno;
    struct timespec times[2] = {{.tv_sec = archive_entry_mtime(i->entry)},
                                {.tv_sec = archive_entry_mtime(i->entry)}};
    if (type != AE_IFDIR && archive_entry_mtime_is_set(i->entry))
        (void) utimensat(parent, name, times, flags);
    return 0;
}

static bool is_directory_at(int parent, const char *name)
{
    struct stat st;
    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int make_item(struct layer_target *t, struct archive *a, const struct item *i, int parent)
{
    mode_t type = archive_entry_filetype(i->entry);
    bool is_link = entry_hardlink(i->entry) != NULL;
    if (!is_link && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK && type != AE_IFIFO) {
        t->n_skipped++;
        return 0;
    }
    /* What a lower layer has there goes, but a directory stays one. */
    if (is_link || type != AE_IFDIR || !is_directory_at(parent, i->name.p)) {
        int e = tree_remove(parent, i->name.p);
        if (e < 0)
            return e;
    }
    if (is_link)
        return make_hardlink(t, i, parent);
    int e = type == AE_IFREG                        ? make_file(t, a, i, parent)
            : type == AE_IFDIR                      ? make_directory(i, parent)
            : type == AE_IFLNK                      ? make_symlink(i, parent)
            : mkfifoat(parent, i->name.p, 0600) < 0 ? -errno
                                                    : 0;
    return e < 0 ? e : set_attributes(t, i, parent, i->name.p);
}

static int apply_entry(struct layer_target *t, struct archive *a, const struct item *i)
{
    if (!i->name.n) /* the root itself */
        return archive_entry_filetype(i->entry) == AE_IFDIR ? set_attributes(t, i, t->root_fd, ".")
                                                            : -EPERM;
    if (!t->keeps_whiteouts && str_starts_with(buf_str(&i->name), STR(WHITEOUT)))
        return 0;
    int parent = open_directory(t->root_fd, i->directory.p, /* makes_it= */ true);
    if (parent < 0)
        return parent;
    int e = make_item(t, a, i, parent);
    (void) close(parent);
    return e;
}

/* ---- the tar ------------------------------------------------------------------------------- */

enum pass { PASS_HIDE, PASS_MAKE };

static int explain(int e, const struct item *i, char **ret_error)
{
    const char *path = entry_path(i->entry);
    const char *why = e == -EPERM     ? "a name or link that leads outside"
                      : e == -EFBIG   ? "larger than the limits for an image"
                      : e == -EBADMSG ? "a broken archive"
                                      : log_errno_text(e);
    return error_set(ret_error, e, "layer: '%.200s': %s", path ? path : "?", why);
}

static int take_entry(struct layer_target *t, struct archive *a, struct item *i, enum pass pass)
{
    if (t->is_cancelled && atomic_load(t->is_cancelled))
        return -ECANCELED;
    if (pass == PASS_MAKE && t->entries_left-- <= 0)
        return -EFBIG;
    int e = split_path(entry_path(i->entry), &i->directory, &i->name);
    if (e < 0)
        return e;
    return pass == PASS_HIDE ? apply_whiteout(t, i) : apply_entry(t, a, i);
}

static int read_entries(struct layer_target *t, struct archive *a, enum pass pass, char **ret_error)
{
    CLEANUP(item_done) struct item i = {0};
    /* The pass that makes nothing has limits, too: it unpacks as much. */
    int64_t entries = t->entries_left, bytes = t->bytes_left;
    for (;;) {
        int r = archive_read_next_header(a, &i.entry);
        if (r == ARCHIVE_EOF)
            return 0;
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN) {
            const char *why = archive_error_string(a);
            return error_set(ret_error, -EBADMSG, "layer: %s", why ? why : "not a tar archive");
        }
        bytes -= MAX(archive_entry_size(i.entry), 0);
        int e = entries-- <= 0 || bytes < 0 ? -EFBIG : take_entry(t, a, &i, pass);
        if (e < 0)
            return explain(e, &i, ret_error);
    }
}

static int run_pass(struct layer_target *t, const char *tar_path, enum pass pass, char **ret_error)
{
    struct archive *a = archive_read_new();
    (void) archive_read_support_filter_gzip(a);
    (void) archive_read_support_filter_zstd(a);
    (void) archive_read_support_format_tar(a);
    (void) archive_read_support_format_empty(a);
    int e = 0;
    if (archive_read_open_filename(a, tar_path, READ_BYTES) != ARCHIVE_OK) {
        const char *why = archive_error_string(a);
        e = error_set(ret_error, -EBADMSG, "layer: %s", why ? why : "cannot be read");
    }
    if (!e)
        e = read_entries(t, a, pass, ret_error);
    (void) archive_read_free(a);
    return e;
}

/* Whiteouts hide what lower layers have, never what their own layer brings, wherever they stand in
 * it: so they have a pass of their own. */
int layer_apply(struct layer_target *t, const char *tar_path, char **ret_error)
{
    if (!t->is_first && !t->keeps_whiteouts) {
        int e = run_pass(t, tar_path, PASS_HIDE, ret_error);
        if (e < 0)
            return e;
    }
    return run_pass(t, tar_path, PASS_MAKE, ret_error);
}
