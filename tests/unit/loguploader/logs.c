/* SPDX-License-Identifier: Apache-2.0 */
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void logs_init(struct logs *l)
{
    *l = (struct logs){.base = "/tmp/test-logs-XXXXXX", .arena = arena_new()};
    assert_non_null(mkdtemp(l->base));
    (void) snprintf(l->root, sizeof(l->root), "%s/newlog", l->base);
    assert_int_equal(logfiles_make(l->root), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void) st;
    (void) type;
    (void) at;
    return remove(path);
}

void logs_done(struct logs *l)
{
    (void) nftw(l->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_free(l->arena);
}

static int create(struct logs *l, enum log_directory d, const char *name)
{
    int fd =
        open(logfiles_path(l->arena, l->root, d, str_of(name)), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

void logs_put(struct logs *l, enum log_directory d, const char *name, struct str content)
{
    int fd = create(l, d, name);
    assert_int_equal(write(fd, content.p, content.n), content.n);
    (void) close(fd);
}

void logs_put_size(struct logs *l, enum log_directory d, const char *name, size_t n_bytes)
{
    int fd = create(l, d, name);
    assert_int_equal(ftruncate(fd, (off_t) n_bytes), 0);
    (void) close(fd);
}

bool logs_has(struct logs *l, enum log_directory d, const char *name)
{
    return access(logfiles_path(l->arena, l->root, d, str_of(name)), F_OK) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int list(struct logs *l, enum log_directory d, struct dirent ***ret)
{
    int n = scandir(logfiles_path(l->arena, l->root, d, STR_NONE), ret, is_visible, by_name);
    assert_true(n >= 0);
    return n;
}

struct str logs_names(struct logs *l, enum log_directory d)
{
    BUF_AUTO b = {0};
    struct dirent **names;
    int n = list(l, d, &names);
    for (int i = 0; i < n; i++) {
        buf_printf(&b, "%s ", names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return arena_str(l->arena, buf_str(&b));
}

struct str logs_read(struct logs *l, enum log_directory d, struct str name)
{
    FILE *f = fopen(logfiles_path(l->arena, l->root, d, name), "re");
    assert_non_null(f);
    BUF_AUTO b = {0};
    size_t n;
    do {
        n = fread(buf_reserve(&b, 65536), 1, 65536, f);
        b.n += n;
    } while (n > 0);
    (void) fclose(f);
    return arena_str(l->arena, buf_str(&b));
}

static void add_lines(struct logs *l, struct str gzip, struct logs_lines *to)
{
    BUF_AUTO text = {0};
    assert_int_equal(newlog_inflate(&text, gzip), 0);
    struct str rest = arena_str(l->arena, buf_str(&text));
    struct newlog_entry entry;
    int r;
    while ((r = newlog_next(l->arena, &rest, &entry)) != -ENOENT) {
        assert_int_equal(r, 0);
        to->items = arena_grow(l->arena, to->items, to->n, sizeof(*to->items));
        to->items[to->n++] = entry;
    }
}

void logs_collect(struct logs *l, enum log_directory d, bool is_taken, struct logs_lines *to)
{
    struct dirent **names;
    int n = list(l, d, &names);
    for (int i = 0; i < n; i++) {
        struct str name = str_of(names[i]->d_name);
        if (str_ends_with(name, STR(".gz"))) {
            add_lines(l, logs_read(l, d, name), to);
            if (is_taken)
                assert_int_equal(unlink(logfiles_path(l->arena, l->root, d, name)), 0);
        }
        free(names[i]);
    }
    free(names);
}

int logs_in_child(void (*fn)(void *arg), void *arg)
{
    (void) fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
