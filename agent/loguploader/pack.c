/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "eve/newlog.h"
#include "loguploader/gzip_part.h"
#include "json/json.h"

#define TEMPORARY "TempFile." /* as newlogd begins the names of its own */
#define DONE "done."

static void step(const struct pack *p)
{
    if (p->on_step)
        p->on_step(p->arg);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int write_file(const struct pack *p, const char *path, struct str bytes)
{
    step(p);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    /* In two pieces, so that a test stops between them. */
    int r = file_write_all(fd, str_sub(bytes, 0, bytes.n / 2));
    step(p);
    r = r < 0 ? r : file_write_all(fd, str_from(bytes, bytes.n / 2));
    if (r == 0 && p->syncs && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

static int move(const struct pack *p, const char *from, const char *to)
{
    step(p);
    return rename(from, to) < 0 ? -errno : 0;
}

static int sync_directory(const struct pack *p, enum log_directory d)
{
    return p->syncs ? logfiles_sync(p->root, d) : 0;
}

static int read_raw(const char *path, struct buf *to)
{
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const int r = fd < 0 ? -errno : file_read_regular(fd, PACK_MAX_RAW_BYTES, to);
    return r == -EINVAL ? -EFBIG : r; /* what is no file is not ours either */
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* What is being made of one raw file. */
struct job {
    const struct pack *p;
    struct arena *arena;
    struct logfile file;
    struct str raw_name;
    struct str label;
    struct gzip_part part;
    size_t n_parts;
    bool is_committed;
    struct pack_result *result;
};

static const char *part_path(struct job *j, size_t k)
{
    struct str name = arena_printf(j->arena, TEMPORARY "%.*s.%zu", STR_ARG(j->raw_name), k);
    return logfiles_path(j->arena, j->p->root, LOG_COLLECT, name);
}

static int finish_part(struct job *j)
{
    if (!j->part.is_open)
        return 0;
    int r = gzip_part_finish(&j->part);
    if (r == 0)
        r = write_file(j->p, part_path(j, j->n_parts), buf_str(&j->part.out));
    if (r == 0) {
        j->n_parts++;
        j->result->n_bytes += j->part.out.n;
        j->result->max_bytes = MAX(j->result->max_bytes, j->part.out.n);
    }
    gzip_part_done(&j->part);
    return r;
}

static int add_line(struct job *j, struct str line)
{
    int r = 0;
    if (j->part.is_open && !gzip_part_has_room(&j->part, line.n))
        r = finish_part(j);
    if (r == 0 && !j->part.is_open)
        r = gzip_part_begin(&j->part, j->file.is_app, j->label, j->p->created_s);
    if (r == 0)
        r = gzip_part_add(&j->part, line);
    if (r == 0)
        j->result->n_lines++;
    return r;
}

/* Whether it is a line of a log; a write cut short by death is none. */
static bool is_entry(struct job *j, struct str line)
{
    ARENA_AUTO a = arena_new();
    struct newlog_entry entry;
    struct json_parse_result parsed;
    struct str rest = line;
    if (json_parse(a, line, &parsed) < 0 || newlog_next(a, &rest, &entry) < 0)
        return false;
    j->result->last_msgid = MAX(j->result->last_msgid, entry.msgid);
    return true;
}

static int make_parts(struct job *j, struct str text, bool is_checked)
{
    int r = 0;
    for (ptrdiff_t end; r == 0 && (end = str_find(text, '\n')) >= 0;) {
        struct str line = str_sub(text, 0, (size_t) end + 1);
        text = str_from(text, line.n);
        if (is_checked && !is_entry(j, line))
            j->result->n_damaged += str_trim(line).n > 0;
        else
            r = add_line(j, line);
    }
    return r < 0 ? r : finish_part(j);
}

/* ---- from the commit on --------------------------------------------------------------------- */

static int place_part(const struct pack *p, const struct logfile *f, struct str temporary, size_t k)
{
    ARENA_AUTO a = arena_new();
    struct logfile part = *f;
    part.time_ms += (int64_t) k;
    return move(p, logfiles_path(a, p->root, LOG_COLLECT, temporary),
                logfiles_path(a, p->root, logfile_directory(&part), logfile_name(a, &part)));
}

static int remove_done(const struct pack *p, const struct logfile *f, struct str done)
{
    ARENA_AUTO a = arena_new();
    int r = sync_directory(p, logfile_directory(f));
    step(p);
    if (r == 0 && unlink(logfiles_path(a, p->root, LOG_COLLECT, done)) < 0)
        r = -errno;
    return r;
}

static int commit(struct job *j)
{
    const struct pack *p = j->p;
    struct str done = arena_printf(j->arena, DONE "%.*s", STR_ARG(j->raw_name));
    int r = sync_directory(p, LOG_COLLECT);
    if (r == 0 && p->on_commit)
        r = p->on_commit(p->arg, &j->file, j->result->last_msgid);
    if (r == 0)
        r = move(p, logfiles_path(j->arena, p->root, LOG_COLLECT, j->raw_name),
                 logfiles_path(j->arena, p->root, LOG_COLLECT, done));
    j->is_committed = r == 0;
    if (r == 0)
        r = sync_directory(p, LOG_COLLECT);
    for (size_t k = 0; r == 0 && k < j->n_parts; k++)
        r = place_part(p, &j->file,
                       arena_printf(j->arena, TEMPORARY "%.*s.%zu", STR_ARG(j->raw_name), k), k);
    return r < 0 ? r : remove_done(p, &j->file, done);
}

static int pack_text(struct job *j, struct str text, bool is_checked)
{
    ptrdiff_t end = str_find(text, '\n');
    j->label = end < 0 ? STR("") : str_sub(text, 0, (size_t) end);
    int r = make_parts(j, end < 0 ? STR("") : str_from(text, (size_t) end + 1), is_checked);
    if (r == 0 && j->n_parts == 0) {
        step(j->p);
        return unlink(logfiles_path(j->arena, j->p->root, LOG_COLLECT, j->raw_name)) < 0 ? -errno
                                                                                         : 0;
    }
    if (r == 0)
        r = commit(j);
    if (r == 0) {
        j->result->n_files += j->n_parts;
        j->result->last_ms = j->file.time_ms + (int64_t) j->n_parts - 1;
    }
    return r;
}

int pack_file(const struct pack *p, const struct logfile *f, bool is_checked,
              struct pack_result *ret)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct job j = {.p = p, .arena = a, .file = *f, .raw_name = logfile_raw_name(a, f)};
    struct pack_result result = *ret;
    j.result = &result;
    int r = read_raw(logfiles_path(a, p->root, LOG_COLLECT, j.raw_name), &text);
    if (r < 0)
        return r;
    r = pack_text(&j, buf_str(&text), is_checked);
    gzip_part_done(&j.part);
    /* The next attempt may make fewer: what it does not replace must not be there. */
    for (size_t k = 0; r < 0 && !j.is_committed && k <= j.n_parts; k++)
        (void) unlink(part_path(&j, k));
    if (r == 0)
        *ret = result;
    return r;
}

/* ---- after a crash -------------------------------------------------------------------------- */

struct names {
    struct str *items;
    size_t n;
};

static int list_names(struct arena *a, const char *root, struct names *ret)
{
    DIR *dir = opendir(logfiles_path(a, root, LOG_COLLECT, STR_NONE));
    struct dirent *e;
    *ret = (struct names){0};
    if (!dir)
        return -errno;
    while ((e = readdir(dir))) {
        ret->items = arena_grow(a, ret->items, ret->n, sizeof(*ret->items));
        ret->items[ret->n++] = arena_str(a, str_of(e->d_name));
    }
    (void) closedir(dir);
    return 0;
}

/* The number of a part of this raw file; -1: it is none. */
static int64_t part_number(struct str name, struct str raw_name)
{
    int64_t k;
    struct str rest = str_from(name, sizeof(TEMPORARY) - 1);
    if (!str_starts_with(rest, raw_name))
        return -1;
    rest = str_from(rest, raw_name.n);
    if (rest.n < 2 || rest.p[0] != '.' || str_to_i64(str_from(rest, 1), &k) < 0 || k < 0 ||
        k > (int64_t) PACK_MAX_RAW_BYTES)
        return -1;
    return k;
}

static int resume(const struct pack *p, const struct names *names, struct str done)
{
    struct str raw_name = str_from(done, sizeof(DONE) - 1);
    struct logfile f;
    if (logfile_parse_raw(raw_name, &f) < 0 || f.time_ms == 0)
        return 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < names->n; i++) {
        if (!str_starts_with(names->items[i], STR(TEMPORARY)))
            continue;
        int64_t k = part_number(names->items[i], raw_name);
        if (k >= 0)
            r = place_part(p, &f, names->items[i], (size_t) k);
    }
    return r < 0 ? r : remove_done(p, &f, done);
}

int pack_recover(const struct pack *p)
{
    ARENA_AUTO a = arena_new();
    struct names names;
    int r = list_names(a, p->root, &names);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        if (str_starts_with(names.items[i], STR(DONE)))
            r = resume(p, &names, names.items[i]);
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        if (!str_starts_with(names.items[i], STR(TEMPORARY)))
            continue;
        step(p);
        /* Those that were resumed are gone already. */
        (void) unlink(logfiles_path(a, p->root, LOG_COLLECT, names.items[i]));
    }
    return r;
}

static int by_time(const void *a, const void *b)
{
    const struct pack_raw *x = a, *y = b;
    if (x->file.time_ms != y->file.time_ms)
        return x->file.time_ms < y->file.time_ms ? -1 : 1;
    return str_cmp(x->name, y->name);
}

int pack_list(struct arena *a, const char *root, struct pack_raw **ret, size_t *ret_n)
{
    struct names names;
    struct pack_raw *raws = NULL;
    size_t n = 0;
    int r = list_names(a, root, &names);
    if (r < 0)
        return r;
    for (size_t i = 0; i < names.n; i++) {
        struct logfile f;
        if (logfile_parse_raw(names.items[i], &f) < 0)
            continue;
        raws = arena_grow(a, raws, n, sizeof(*raws));
        raws[n++] = (struct pack_raw){f, names.items[i]};
    }
    if (n > 1)
        qsort(raws, n, sizeof(*raws), by_time);
    *ret = raws;
    *ret_n = n;
    return 0;
}

int pack_adopt(const struct pack *p, struct pack_raw *raw, int64_t time_ms)
{
    ARENA_AUTO a = arena_new();
    struct logfile f = raw->file;
    f.time_ms = time_ms;
    int r = move(p, logfiles_path(a, p->root, LOG_COLLECT, raw->name),
                 logfiles_path(a, p->root, LOG_COLLECT, logfile_raw_name(a, &f)));
    if (r == 0)
        raw->file = f;
    return r;
}
