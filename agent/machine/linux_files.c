/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of the kernel, read whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "machine/linux_internal.h"

static const char *path_of(struct machine_linux *m, struct arena *a, const char *format,
                           va_list args) PRINTF_LIKE(3, 0);

static const char *path_of(struct machine_linux *m, struct arena *a, const char *format,
                           va_list args)
{
    struct str below = arena_vprintf(a, format, args);
    return arena_printf(a, "%s%.*s", m->root, STR_ARG(below)).p;
}

static struct str read_whole(struct arena *a, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return STR_NONE;
    BUF_AUTO text = {0};
    ssize_t n;
    do {
        n = read(fd, buf_reserve(&text, 4096), 4096);
        if (n > 0)
            text.n += (size_t) n;
    } while ((n > 0 && text.n < LINUX_MAX_FILE_BYTES) || (n < 0 && errno == EINTR));
    (void) close(fd);
    return n < 0 ? STR_NONE : arena_str(a, str_trim(buf_str(&text)));
}

struct str linux_read(struct machine_linux *m, struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *path = path_of(m, a, format, args);
    va_end(args);
    return read_whole(a, path);
}

static uint64_t number_of(struct str text, int base)
{
    return text.n ? strtoull(text.p, NULL, base) : 0;
}

uint64_t linux_read_number(struct machine_linux *m, struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *path = path_of(m, a, format, args);
    va_end(args);
    struct str text = read_whole(a, path);
    return number_of(text, str_starts_with(text, STR("0x")) ? 16 : 10);
}

uint64_t linux_read_hex(struct machine_linux *m, struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *path = path_of(m, a, format, args);
    va_end(args);
    return number_of(read_whole(a, path), 16);
}

bool linux_exists(struct machine_linux *m, struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *path = path_of(m, a, format, args);
    va_end(args);
    return access(path, F_OK) == 0;
}

struct str linux_link(struct machine_linux *m, struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *path = path_of(m, a, format, args);
    va_end(args);
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target));
    return n <= 0 ? STR_NONE : arena_str(a, str_range(target, (size_t) n));
}

struct str linux_last_part(struct str path)
{
    return str_from(path, (size_t) (str_find_last(path, '/') + 1));
}

static int compare_names(const void *x, const void *y)
{
    return str_cmp(*(const struct str *) x, *(const struct str *) y);
}

size_t linux_list(struct machine_linux *m, struct arena *a, const char *path, struct str **ret)
{
    *ret = NULL;
    DIR *directory = opendir(arena_printf(a, "%s%s", m->root, path).p);
    if (!directory)
        return 0;
    size_t n = 0;
    const struct dirent *entry;
    while (n < LINUX_MAX_ENTRIES && (entry = readdir(directory)))
        if (entry->d_name[0] != '.') {
            *ret = arena_grow(a, *ret, n, sizeof(**ret));
            (*ret)[n++] = arena_str(a, str_of(entry->d_name));
        }
    (void) closedir(directory);
    if (n)
        qsort(*ret, n, sizeof(**ret), compare_names);
    return n;
}

struct str linux_field(struct str table, struct str key)
{
    struct str line;
    while (str_split(&table, '\n', &line)) {
        if (!str_starts_with(line, key))
            continue;
        struct str rest = str_trim(str_from(line, key.n));
        if (line.n > key.n && line.p[key.n] != ':' && line.p[key.n] != ' ' && line.p[key.n] != '\t')
            continue;
        return rest.n && rest.p[0] == ':' ? str_trim(str_from(rest, 1)) : rest;
    }
    return STR_NONE;
}
