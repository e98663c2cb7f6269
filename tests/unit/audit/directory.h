/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of a test's own, and what is in it. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"

struct directory {
    char path[64];
};

static inline struct directory directory_make(void)
{
    struct directory d = {"/tmp/seth-audit-XXXXXX"};
    if (!mkdtemp(d.path))
        abort();
    return d;
}

/* Names in no order; returns how many there are. */
static inline size_t directory_list(const struct directory *d, struct arena *a, const char **names,
                                    size_t max)
{
    size_t n = 0;
    DIR *dir = opendir(d->path);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (e->d_name[0] != '.' && n < max)
            names[n++] = arena_strz(a, str_of(e->d_name));
    (void) closedir(dir);
    return n;
}

static inline char *directory_file(const struct directory *d, struct arena *a, const char *name)
{
    return arena_strz(a, arena_printf(a, "%s/%s", d->path, name));
}

static inline struct str directory_read(const struct directory *d, struct arena *a,
                                        const char *name)
{
    FILE *f = fopen(directory_file(d, a, name), "rb");
    BUF_AUTO b = {0};
    if (!f)
        return STR_NONE;
    for (int c = fgetc(f); c != EOF; c = fgetc(f))
        buf_append_char(&b, (char) c);
    (void) fclose(f);
    return arena_str(a, buf_str(&b));
}

static inline void directory_remove(struct directory *d)
{
    ARENA_AUTO a = arena_new();
    const char *names[64];
    size_t n = directory_list(d, a, names, N_ELEMENTS(names));
    for (size_t i = 0; i < n; i++)
        (void) unlink(directory_file(d, a, names[i]));
    (void) rmdir(d->path);
}
