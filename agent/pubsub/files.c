/* SPDX-License-Identifier: Apache-2.0 */
#include "pubsub/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/random.h"
#include "pubsub/pubsub_internal.h"

#define TEMPORARY_PREFIX "tmp"
#define RANDOM_CHARACTERS 10
#define MAX_FILE_NAME_BYTES 256 /* with its NUL */
#define MAX_RESTARTED_BYTES 32
#define MAX_NAME_ATTEMPTS 8

/* ---- directories ---------------------------------------------------------------------------- */

int pubsub_directory_make(const char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT)
        return -errno;
    ptrdiff_t end = str_find_last(str_of(path), '/');
    if (end <= 0)
        return -ENOENT;
    char *parent = mem_strdup(path);
    parent[end] = '\0';
    int r = pubsub_directory_make(parent);
    mem_free(parent);
    if (r < 0)
        return r;
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_or_make(const char *path)
{
    int fd = open_directory(path);
    if (fd != -ENOENT)
        return fd;
    int r = pubsub_directory_make(path);
    return r < 0 ? r : open_directory(path);
}

/* ---- one file ------------------------------------------------------------------------------- */

static int read_at(int directory, const char *name, size_t max_bytes, struct buf *ret_content)
{
    /* Not to wait for a writer should the name be that of a pipe. */
    FD_AUTO fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : file_read_regular(fd, max_bytes - 1, ret_content);
}

int pubsub_file_read(const char *path, size_t max_bytes, struct buf *ret_content)
{
    return read_at(AT_FDCWD, path, max_bytes, ret_content);
}

/* Appends random characters to the prefix in name until no such file exists. */
static int create_at(int directory, struct buf *name)
{
    size_t n_prefix = name->n;
    for (int i = 0; i < MAX_NAME_ATTEMPTS; i++) {
        char random[RANDOM_CHARACTERS + 1];
        random_name(random, RANDOM_CHARACTERS);
        name->n = n_prefix;
        buf_append(name, random, RANDOM_CHARACTERS);
        int fd = openat(directory, name->p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

int pubsub_file_create(const char *directory, struct buf *name, struct str content)
{
    FD_AUTO at = open_or_make(directory);
    if (at < 0)
        return at;
    FD_AUTO fd = create_at(at, name);
    int r = fd < 0 ? fd : file_write_all(fd, content);
    if (fd >= 0 && r < 0)
        (void) unlinkat(at, name->p, 0);
    return r;
}

/* ---- whole or not at all -------------------------------------------------------------------- */

/* The name keeps its file at every moment; only where there are no links it has none for one, and
 * the loader then finds the backup. */
static int keep_backup(int at, const char *name, const char *backup)
{
    (void) unlinkat(at, backup, 0);
    if (linkat(at, name, at, backup, 0) == 0 || errno == ENOENT)
        return 0;
    return renameat(at, name, at, backup) < 0 && errno != ENOENT ? -errno : 0;
}

struct replacement {
    int at;
    const char *name;
    const char *backup; /* NULL: none */
    bool syncs;
};

static int replace_file(const struct replacement *to, struct str content)
{
    BUF_AUTO temporary = {0};
    buf_append_str(&temporary, STR(TEMPORARY_PREFIX));
    FD_AUTO fd = create_at(to->at, &temporary);
    if (fd < 0)
        return fd;
    int r = file_write_all(fd, content);
    if (r == 0 && to->syncs && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && to->backup)
        r = keep_backup(to->at, to->name, to->backup);
    if (r == 0 && renameat(to->at, temporary.p, to->at, to->name) < 0)
        r = -errno;
    if (r < 0) {
        (void) unlinkat(to->at, temporary.p, 0);
        return r;
    }
    return to->syncs && fsync(to->at) < 0 ? -errno : 0;
}

/* ---- values --------------------------------------------------------------------------------- */

struct names {
    char file[MAX_FILE_NAME_BYTES];
    char backup[MAX_FILE_NAME_BYTES];
};

/* Keys were checked, so that their names fit. */
static void make_names(struct names *n, struct str key)
{
    (void) snprintf(n->file, sizeof(n->file), "%.*s.json", STR_ARG(key));
    (void) snprintf(n->backup, sizeof(n->backup), "%.*s.json.bak", STR_ARG(key));
}

struct str pubsub_value_key(struct str file_name)
{
    ptrdiff_t end = str_find_str(file_name, STR(".json"));
    if (end <= 0 || !str_ends_with(file_name, STR(".json")))
        return STR_NONE;
    struct str key = str_sub(file_name, 0, (size_t) end);
    return key.n + STR(".json").n == file_name.n ? key : STR_NONE;
}

int pubsub_values_make(const struct pubsub_place *place)
{
    return place->has_files ? pubsub_directory_make(place->values) : 0;
}

int pubsub_value_write(const struct pubsub_place *place, struct str key, struct str text)
{
    if (!place->has_files)
        return 0;
    FD_AUTO at = open_or_make(place->values);
    if (at < 0)
        return at;
    struct names n;
    make_names(&n, key);
    return replace_file(&(struct replacement){.at = at,
                                              .name = n.file,
                                              .backup = place->is_persistent ? n.backup : NULL,
                                              .syncs = place->syncs},
                        text);
}

int pubsub_value_remove(const struct pubsub_place *place, struct str key)
{
    if (!place->has_files)
        return 0;
    FD_AUTO at = open_directory(place->values);
    if (at < 0)
        return at == -ENOENT ? 0 : at;
    struct names n;
    make_names(&n, key);
    /* The backup first: alone it would bring the value back. */
    if (place->is_persistent && unlinkat(at, n.backup, 0) < 0 && errno != ENOENT)
        return -errno;
    if (unlinkat(at, n.file, 0) < 0 && errno != ENOENT)
        return -errno;
    return place->syncs && fsync(at) < 0 ? -errno : 0;
}

int pubsub_value_read(const struct pubsub_place *place, struct str key, struct buf *ret_text)
{
    FD_AUTO at = open_directory(place->values);
    if (at < 0)
        return at;
    struct names n;
    make_names(&n, key);
    return read_at(at, n.file, PUBSUB_MAX_VALUE_BYTES, ret_text);
}

/* ---- loading -------------------------------------------------------------------------------- */

static bool load_file(const struct pubsub_loader *l, int at, const char *name, struct str key,
                      struct buf *ret_text)
{
    int r = read_at(at, name, PUBSUB_MAX_VALUE_BYTES, ret_text);
    return r == 0 && ret_text->n && l->on_value(l->arg, key, buf_str(ret_text));
}

static void load_backup(const struct pubsub_place *place, const struct pubsub_loader *l, int at,
                        struct str key)
{
    struct names n;
    make_names(&n, key);
    BUF_AUTO text = {0};
    if (!load_file(l, at, n.backup, key, &text) || !l->is_owner)
        return;
    /* Failure costs nothing: the backup is still there for the next start. */
    (void) replace_file(
        &(struct replacement){.at = at, .name = n.file, .backup = NULL, .syncs = place->syncs},
        buf_str(&text));
}

static bool is_left_over(struct str name)
{
    return str_starts_with(name, STR(TEMPORARY_PREFIX)) && str_find(name, '.') < 0;
}

static void load_name(const struct pubsub_place *place, const struct pubsub_loader *l, int at,
                      const char *name)
{
    struct str file = str_of(name);
    bool is_backup = place->is_persistent && str_ends_with(file, STR(".json.bak"));
    struct str key = pubsub_value_key(is_backup ? str_sub(file, 0, file.n - STR(".bak").n) : file);
    if (key.n == 0) {
        if (l->is_owner && is_left_over(file))
            (void) unlinkat(at, name, 0);
        return;
    }
    if (!pubsub_is_key(key, place->is_persistent))
        return;
    if (is_backup) {
        struct names n;
        make_names(&n, key);
        if (faccessat(at, n.file, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            load_backup(place, l, at, key);
        return;
    }
    BUF_AUTO text = {0};
    if (!load_file(l, at, name, key, &text) && place->is_persistent)
        load_backup(place, l, at, key);
}

int pubsub_values_load(const struct pubsub_place *place, const struct pubsub_loader *loader)
{
    if (!place->has_files)
        return 0;
    int fd = open_directory(place->values);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    DIR *d = fdopendir(fd);
    if (!d) {
        int r = -errno;
        (void) close(fd);
        return r;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        load_name(place, loader, fd, e->d_name);
    (void) closedir(d);
    return 0;
}

/* ---- the restart counter -------------------------------------------------------------------- */

int pubsub_restarted_write(const struct pubsub_place *place, int64_t counter)
{
    if (!place->has_files)
        return 0;
    FD_AUTO at = open_or_make(place->values);
    if (at < 0)
        return at;
    if (counter == 0) {
        if (unlinkat(at, "restarted", 0) < 0 && errno != ENOENT)
            return -errno;
        return place->syncs && fsync(at) < 0 ? -errno : 0;
    }
    BUF_AUTO text = {0};
    buf_printf(&text, "%" PRId64, counter);
    return replace_file(&(struct replacement){.at = at, .name = "restarted", .syncs = place->syncs},
                        buf_str(&text));
}

int64_t pubsub_restarted_read(const struct pubsub_place *place)
{
    FD_AUTO at = place->has_files ? open_directory(place->values) : -ENOENT;
    if (at < 0)
        return 0;
    BUF_AUTO text = {0};
    int r = read_at(at, "restarted", MAX_RESTARTED_BYTES, &text);
    if (r == -ENOENT)
        return 0;
    int64_t counter = 0;
    if (r < 0 || str_to_i64(str_trim(buf_str(&text)), &counter) < 0 || counter < 0)
        return 1;
    return counter;
}
