/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/random.h"

#define TREE_MAX_DEPTH \
    2048 /* directories are opened one inside the other when they are removed \
          */

int tree_open(int root_fd, const char *path, int flags)
{
    if (root_fd == AT_FDCWD) {
        int plain = open(path, flags | O_CLOEXEC);
        return plain < 0 ? -errno : plain;
    }
    struct open_how how = {
        .flags = (uint64_t) (flags | O_CLOEXEC),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int) fd;
}

int tree_read(int root_fd, const char *path, size_t max_bytes, struct buf *ret)
{
    /* A fifo in its place must not make us wait. */
    FD_AUTO fd = tree_open(root_fd, path, O_RDONLY | O_NONBLOCK);
    return fd < 0 ? fd : file_read_regular(fd, max_bytes, ret);
}

/* ---- removing ------------------------------------------------------------------------------ */

static int remove_at(int parent_fd, const char *name, int depth);

static int empty_at(int fd, int depth)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        int e = -errno;
        (void) close(fd);
        return e;
    }
    int e = 0;
    const struct dirent *entry;
    while (!e && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            e = remove_at(dirfd(d), entry->d_name, depth + 1);
    (void) closedir(d);
    return e;
}

static int remove_at(int parent_fd, const char *name, int depth)
{
    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth > TREE_MAX_DEPTH)
        return -ELOOP;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fchmodat(parent_fd, name, 0700, 0) == 0)
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void) fchmod(fd, 0700);
    int e = empty_at(fd, depth);
    if (e < 0)
        return e;
    return unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int tree_remove(int parent_fd, const char *name)
{
    return remove_at(parent_fd, name, 0);
}

int tree_empty(int directory_fd)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : empty_at(fd, 0);
}

/* ---- making -------------------------------------------------------------------------------- */

int tree_make(const char *path)
{
    BUF_AUTO so_far = {0};
    struct str rest = str_of(path), part;
    if (rest.n && rest.p[0] == '/')
        buf_append_char(&so_far, '/');
    while (str_split(&rest, '/', &part)) {
        if (!part.n)
            continue;
        buf_append_str(&so_far, part);
        if (mkdir(so_far.p, 0700) < 0 && errno != EEXIST)
            return -errno;
        buf_append_char(&so_far, '/');
    }
    return 0;
}

static char *join(const char *parent, const char *prefix, const char *name)
{
    struct buf b = {0};
    buf_printf(&b, "%s/%s%s", parent, prefix, name);
    return buf_take(&b);
}

/* Not a valid id, as those do not begin with a dot. */
static char *temporary_path(const char *parent, const char *prefix)
{
    char word[13];
    random_name(word, sizeof(word) - 1);
    return join(parent, prefix, word);
}

int tree_draft_begin(struct tree_draft *d, const char *parent, const char *name)
{
    *d = (struct tree_draft){0};
    char *path = temporary_path(parent, ".new-");
    if (mkdir(path, 0700) < 0) {
        int e = -errno;
        mem_free(path);
        return e;
    }
    *d = (struct tree_draft){mem_strdup(parent), mem_strdup(name), path};
    return 0;
}

static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* All of the file system: a sync of each of ten thousand files would take minutes. */
    int e = syncfs(fd) < 0 ? -errno : 0;
    (void) close(fd);
    return e;
}

int tree_draft_commit(struct tree_draft *d)
{
    int e = sync_directory(d->path);
    if (e < 0)
        return e;
    char *final = join(d->parent, "", d->name);
    if (renameat2(AT_FDCWD, d->path, AT_FDCWD, final, RENAME_NOREPLACE) < 0)
        e = -errno;
    mem_free(final);
    if (e < 0)
        return e;
    mem_free(TAKE(d->path));
    return sync_directory(d->parent);
}

void tree_draft_done(struct tree_draft *d)
{
    if (d->path)
        (void) tree_remove(AT_FDCWD, d->path);
    mem_free(d->path);
    mem_free(d->parent);
    mem_free(d->name);
    *d = (struct tree_draft){0};
}

int tree_discard(const char *parent, const char *name)
{
    char *from = join(parent, "", name);
    char *to = temporary_path(parent, ".old-");
    int e = rename(from, to) < 0 ? -errno : tree_remove(AT_FDCWD, to);
    mem_free(from);
    mem_free(to);
    return e == -ENOENT ? 0 : e;
}

void tree_sweep(const char *parent)
{
    DIR *d = opendir(parent);
    if (!d)
        return;
    const struct dirent *entry;
    while ((entry = readdir(d)))
        if (strncmp(entry->d_name, ".new-", 5) == 0 || strncmp(entry->d_name, ".old-", 5) == 0)
            (void) tree_remove(dirfd(d), entry->d_name);
    (void) closedir(d);
}
