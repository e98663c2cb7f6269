/* SPDX-License-Identifier: Apache-2.0 */
/* Adam's directory: device/<uuid>/ and onboard/<name>/, a file for each part. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adam/store.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"

static const char *const part_files[ADAM_PARTS] = {
    [ADAM_CERT] = "device-certificate.pem",
    [ADAM_ONBOARD] = "onboard-certificate.pem",
    [ADAM_SERIAL] = "serial.txt",
    [ADAM_CONFIG] = "config.json",
    [ADAM_CERTS] = "certs.json",
    [ADAM_STORAGE_KEYS] = "storage-keys.json",
    [ADAM_OPTIONS] = "options.json",
};

struct directory {
    struct adam_store *store;
    size_t n_bytes;
    char *error;
};

/* ---- files ----------------------------------------------------------------------------------- */

static int read_all(int file, size_t size, struct arena *a, struct str *ret)
{
    char *p = arena_alloc(a, size + 1);
    size_t n = 0;
    while (n < size) {
        const ssize_t more = read(file, p + n, size - n);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (more == 0)
            break;
        n += (size_t) more;
    }
    *ret = str_range(p, n);
    return 0;
}

/* -ENOENT: there is no such file; others: it cannot be read. */
static int read_file(struct directory *d, const char *path, struct str *ret)
{
    struct stat st;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return -errno;
    int r = fstat(file, &st) < 0 ? -errno : 0;
    if (r == 0 && !S_ISREG(st.st_mode))
        r = -EINVAL;
    if (r == 0 && ((size_t) st.st_size > ADAM_STORE_MAX_VALUE_BYTES ||
                   d->n_bytes + (size_t) st.st_size > ADAM_STORE_MAX_BYTES))
        r = -EFBIG;
    if (r == 0)
        r = read_all(file, (size_t) st.st_size, d->store->arena, ret);
    (void) close(file);
    d->n_bytes += r == 0 ? ret->n : 0;
    return r;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The directories in a directory, by name. */
static int list(struct directory *d, const char *path, char ***ret_names, size_t *ret_n)
{
    struct arena *a = d->store->arena;
    char **names = NULL;
    size_t n = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return error_set(&d->error, -errno,
                         "cannot read %s: %s; is it the directory of Adam (--db-url)?", path,
                         log_errno_text(-errno));
    for (struct dirent *e; (e = readdir(dir)) && n < ADAM_STORE_MAX_ENTRIES;) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, 0) < 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        names = arena_grow(a, names, n, sizeof(*names));
        names[n++] = arena_strz(a, str_of(e->d_name));
    }
    (void) closedir(dir);
    if (n == ADAM_STORE_MAX_ENTRIES)
        return error_set(&d->error, -E2BIG, "%s has more than %zu entries", path,
                         ADAM_STORE_MAX_ENTRIES);
    if (n)
        qsort(names, n, sizeof(*names), compare_names);
    *ret_names = names;
    *ret_n = n;
    return 0;
}

/* ---- what is in it --------------------------------------------------------------------------- */

static void read_part(struct directory *d, struct adam_stored_device *device, enum adam_part part,
                      const char *directory)
{
    struct arena *a = d->store->arena;
    const char *path = arena_printf(a, "%s/%s", directory, part_files[part]).p;
    const int r = read_file(d, path, &device->parts[part]);
    if (r < 0 && r != -ENOENT)
        device->problem = arena_printf(a, "%s cannot be read: %s", path, log_errno_text(r));
}

static int read_devices(struct directory *d, const char *path)
{
    struct arena *a = d->store->arena;
    const char *top = arena_printf(a, "%s/device", path).p;
    char **names = NULL;
    size_t n = 0;
    const int r = list(d, top, &names, &n);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct adam_stored_device *device = adam_store_add_device(d->store, str_of(names[i]));
        device->where = arena_printf(a, "%s/%s", top, names[i]);
        for (int part = 0; part < ADAM_PARTS; part++)
            read_part(d, device, (enum adam_part) part, device->where.p);
    }
    return r;
}

static void read_onboard(struct directory *d, const char *directory)
{
    struct arena *a = d->store->arena;
    struct adam_stored_onboard *o = adam_store_add_onboard(d->store);
    o->where = str_of(directory);
    int r = read_file(d, arena_printf(a, "%s/cert.pem", directory).p, &o->cert);
    if (r < 0)
        o->problem = arena_printf(a, "cert.pem cannot be read: %s", log_errno_text(r));
    r = read_file(d, arena_printf(a, "%s/onboard-serials.txt", directory).p, &o->serials);
    if (r < 0 && r != -ENOENT)
        o->problem = arena_printf(a, "onboard-serials.txt cannot be read: %s", log_errno_text(r));
}

static int read_onboards(struct directory *d, const char *path)
{
    struct arena *a = d->store->arena;
    const char *top = arena_printf(a, "%s/onboard", path).p;
    char **names = NULL;
    size_t n = 0;
    const int r = list(d, top, &names, &n);
    for (size_t i = 0; r == 0 && i < n; i++)
        read_onboard(d, arena_printf(a, "%s/%s", top, names[i]).p);
    return r;
}

static int read_options(struct directory *d, const char *path)
{
    const char *file = arena_printf(d->store->arena, "%s/global-options.json", path).p;
    const int r = read_file(d, file, &d->store->global_options);
    return r < 0 && r != -ENOENT
               ? error_set(&d->error, r, "cannot read %s: %s", file, log_errno_text(r))
               : 0;
}

int adam_store_read_directory(struct arena *a, const char *path, struct adam_store *ret,
                              char **ret_error)
{
    struct directory d = {.store = ret};
    *ret = (struct adam_store){.arena = a};
    int r = read_devices(&d, path);
    if (r == 0)
        r = read_onboards(&d, path);
    if (r == 0)
        r = read_options(&d, path);
    if (r < 0)
        *ret_error = d.error;
    return r;
}
