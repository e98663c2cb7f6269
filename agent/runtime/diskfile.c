/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/diskfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "pki/file.h"
#include "runtime/child.h"
#include "runtime/diskimage.h"
#include "runtime/landlock.h"

#define CONTENT_DISK "disk"
/* What a hostile image may cost qemu-img to look at. */
#define INFO_MS 30000
#define INFO_BYTES ((int64_t) 1 << 30)
#define CONVERT_MS ((int64_t) 3600 * 1000)
#define CONVERT_BYTES ((int64_t) 2 << 30)
#define MAX_COMPLAINT_BYTES 512
/* Tables of a qcow2 beside its data. */
#define OVERHEAD_BYTES ((int64_t) 64 << 20)

/* ---- content -------------------------------------------------------------------------------- */

static ssize_t read_at(int fd, char *to, size_t n, int64_t at)
{
    size_t have = 0;
    while (have < n) {
        ssize_t r = pread(fd, to + have, n - have, (off_t) (at + (int64_t) have));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : (ssize_t) have;
        have += (size_t) r;
    }
    return (ssize_t) have;
}

static int check_file(struct arena *a, const char *path, enum runtime_format f, char **ret_error)
{
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(ret_error, -errno, "disk image: %s", log_errno_text(-errno));
    char *head = arena_alloc(a, DISKIMAGE_HEAD_BYTES), *tail = arena_alloc(a, DISKIMAGE_TAIL_BYTES);
    int64_t tail_at = MAX((int64_t) st.st_size - (int64_t) DISKIMAGE_TAIL_BYTES, 0);
    ssize_t n_head = read_at(fd, head, DISKIMAGE_HEAD_BYTES, 0);
    ssize_t n_tail = read_at(fd, tail, DISKIMAGE_TAIL_BYTES, tail_at);
    if (n_head < 0 || n_tail < 0)
        return error_set(ret_error, -EIO, "disk image: it cannot be read");
    return diskimage_check(f, str_range(head, (size_t) n_head), str_range(tail, (size_t) n_tail),
                           ret_error);
}

static int keep(struct work *w, const char *path, char **ret_error)
{
    enum runtime_format f = w->task->asked->format;
    struct json o = json_object();
    int e = check_file(w->arena, path, f, ret_error);
    if (e < 0)
        return e;
    w->task->on_state(w->task->arg, RUNTIME_LOADING, 100);
    (void) json_set(w->arena, &o, STR("disk"), json_string(str_of(diskimage_name(f))));
    if (rename(path, arena_printf(w->arena, "%s/" CONTENT_DISK, w->path).p) < 0)
        e = -errno;
    if (!e)
        e = pki_file_write(arena_printf(w->arena, "%s/" CONTENT_MANIFEST, w->path).p,
                           json_text(w->arena, &o), 0600);
    return e < 0 ? error_set(ret_error, e, "content: %s", log_errno_text(e)) : 0;
}

int diskfile_take(struct work *w, const char *path, char **ret_error)
{
    struct str wanted = w->task->asked->sha256;
    char hex[IMAGE_HEX_BYTES + 1];
    w->task->on_state(w->task->arg, RUNTIME_VERIFYING, 100);
    int e = wanted.n ? content_hash(path, hex) : 0;
    if (e < 0)
        return error_set(ret_error, e, "disk image: %s", log_errno_text(e));
    if (wanted.n && !str_is(wanted, hex))
        return error_set(ret_error, -EBADMSG, "its content is sha256:%s, not sha256:%.*s", hex,
                         STR_ARG(wanted));
    return keep(w, path, ret_error);
}

int diskfile_copy(struct work *w, const char *path, char **ret_error)
{
    const char *copy = arena_printf(w->arena, "%s/download", w->path).p;
    int64_t max_bytes =
        w->task->asked->max_bytes ? w->task->asked->max_bytes : CONTENT_DEFAULT_BYTES;
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(ret_error, -errno, "%s: %s", path, log_errno_text(-errno));
    if (!S_ISREG(st.st_mode))
        return error_set(ret_error, -EINVAL, "%s: no disk image", path);
    int e = content_copy(w->task, fd, copy, max_bytes);
    return e < 0 ? error_set(ret_error, e, "%s: %s", path, log_errno_text(e))
                 : diskfile_take(w, copy, ret_error);
}

/* By its role or its media type, as edge-containers writes them, or because there is no other. */
static const struct image_blob *find_disk(const struct image_manifest *m)
{
    for (size_t i = 0; i < m->n_layers; i++)
        if (str_is(m->layers[i].role, "disk-root"))
            return &m->layers[i];
    for (size_t i = 0; i < m->n_layers; i++)
        if (str_starts_with(m->layers[i].media_type, STR("application/vnd.lfedge.disk.layer.")))
            return &m->layers[i];
    return m->n_layers == 1 ? &m->layers[0] : NULL;
}

int diskfile_choose(struct work *w, const struct image_manifest *m, char **ret_error)
{
    const struct image_blob *disk = find_disk(m);
    if (!disk)
        return error_set(ret_error, -EINVAL,
                         "the artifact has %zu layers and none is its root disk", m->n_layers);
    const char *path = arena_printf(w->arena, "%s/%.*s", w->path, STR_ARG(disk->hex)).p;
    int e = keep(w, path, ret_error);
    /* The rest is of no use to a disk. */
    if (!str_eq(m->config.hex, disk->hex))
        (void) unlink(arena_printf(w->arena, "%s/%.*s", w->path, STR_ARG(m->config.hex)).p);
    for (size_t i = 0; i < m->n_layers; i++)
        (void) unlink(arena_printf(w->arena, "%s/%.*s", w->path, STR_ARG(m->layers[i].hex)).p);
    return e;
}

/* ---- qemu-img ------------------------------------------------------------------------------- */

struct task {
    const struct content_volume *volume;
    struct arena *arena;
    int files_fd; /* what qemu-img may open; 0: the kernel cannot keep it to that */
};

struct limits {
    int64_t timeout_ms, memory_bytes, file_bytes;
};

/* The system's files, the image and the copy: an image that deceives qemu-img gains no others. */
static int make_filter(const struct task *t, const char *from, const char *to)
{
    const struct landlock_rule rules[] = {
        {"/usr", LANDLOCK_READ},
        {"/lib", LANDLOCK_READ},
        {"/lib64", LANDLOCK_READ},
        {"/etc/ld.so.cache", LANDLOCK_READ},
        {"/proc", LANDLOCK_READ},
        {"/dev/null", LANDLOCK_READ_WRITE},
        {"/dev/urandom", LANDLOCK_READ},
        {child_program(t->arena, t->volume->qemu_img), LANDLOCK_READ},
        {from, LANDLOCK_READ},
        {to, LANDLOCK_READ_WRITE},
    };
    return landlock_make(rules, N_ELEMENTS(rules));
}

static int run(struct task *t, const char *const *argv, const struct limits *l, struct buf *output,
               char **ret_error)
{
    char complaint[MAX_COMPLAINT_BYTES] = "";
    FD_AUTO complaints = memfd_create("complaints", MFD_CLOEXEC);
    const struct child c = {
        .argv = argv,
        .input = STR(""),
        .out_fd = -1,
        .err_fd = complaints,
        .max_file_bytes = l->file_bytes,
        .max_memory_bytes = l->memory_bytes,
        .timeout_ms = l->timeout_ms,
        .files_fd = t->files_fd,
        .is_cancelled = t->volume->is_cancelled,
    };
    int code = child_run(&c, output);
    if (code == 0)
        return 0;
    if (code < 0)
        return error_set(ret_error, code, "qemu-img: %s",
                         code == -ENOENT ? "not found; install the package qemu-utils"
                                         : log_errno_text(code));
    if (complaints >= 0 && read_at(complaints, complaint, sizeof(complaint) - 1, 0) < 0)
        complaint[0] = 0;
    struct str rest = str_of(complaint), line = STR("");
    (void) str_split(&rest, '\n', &line);
    return error_set(ret_error, -EIO, "qemu-img %s: %.*s (%d)", argv[1], STR_ARG(line), code);
}

/* A second opinion, by those who will open it: the size, and that nothing else is named. */
static int look(struct task *t, const char *path, const char *driver, int64_t *ret_bytes,
                char **ret_error)
{
    BUF_AUTO text = {0};
    const char *const argv[] = {t->volume->qemu_img, "info", "-f", driver,
                                "--output=json",     path,   NULL};
    int e = run(t, argv, &(struct limits){INFO_MS, INFO_BYTES, 0}, &text, ret_error);
    if (e < 0)
        return e;
    const struct json *info = json_parse_quick(t->arena, arena_str(t->arena, buf_str(&text)));
    int64_t size = json_get_int(info, STR("virtual-size"), -1);
    bool names = json_get(info, STR("backing-filename")) ||
                 json_get(info, STR("full-backing-filename")) ||
                 json_at(info, "format-specific", "data", "data-file", NULL);
    if (names)
        return error_set(ret_error, -EPERM, "disk image: it names files of this device");
    if (size <= 0 || size > DISKIMAGE_MAX_VIRTUAL_BYTES)
        return error_set(ret_error, -EINVAL, "disk image: a disk of %" PRId64 " bytes", size);
    *ret_bytes = size;
    return 0;
}

/* Whole and ours: it needs its content no more, and no later program has to guess what it is. */
static int convert(struct task *t, const char *from, const char *driver, const char *to,
                   char **ret_error)
{
    int64_t size = 0, wanted = t->volume->size_bytes;
    int e = look(t, from, driver, &size, ret_error);
    if (e < 0)
        return e;
    const struct limits l = {CONVERT_MS, CONVERT_BYTES, size + size / 64 + OVERHEAD_BYTES};
    const char *const copy[] = {t->volume->qemu_img, "convert", "-f", driver, "-O", "qcow2", "-o",
                                "compat=1.1",        from,      to,   NULL};
    e = run(t, copy, &l, NULL, ret_error);
    if (e < 0 || wanted <= size)
        return e;
    const char *const grow[] = {t->volume->qemu_img,
                                "resize",
                                "-q",
                                "-f",
                                "qcow2",
                                to,
                                arena_printf(t->arena, "%" PRId64, wanted / 512 * 512).p,
                                NULL};
    return run(t, grow, &(struct limits){CONVERT_MS, CONVERT_BYTES, 0}, NULL, ret_error);
}

/* ---- volumes -------------------------------------------------------------------------------- */

static int make_medium(const struct content_volume *v, const char *from, const char *to,
                       char **ret_error)
{
    if (link(from, to) == 0)
        return 0;
    const struct content_task t = {.is_cancelled = v->is_cancelled};
    FD_AUTO fd = open(from, O_RDONLY | O_CLOEXEC);
    int e = fd < 0 ? -errno : content_copy(&t, fd, to, INT64_MAX);
    return e < 0 ? error_set(ret_error, e, "volume: %s", log_errno_text(e)) : 0;
}

/* The copy is there before it is written: nothing but writing it is allowed. */
static int convert_confined(struct task *t, const char *from, const char *driver, const char *to,
                            char **ret_error)
{
    FD_AUTO fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FD_AUTO files = fd < 0 ? -errno : make_filter(t, from, to);
    if (files < 0 && files != -EOPNOTSUPP)
        return error_set(ret_error, files, "volume: %s", log_errno_text(files));
    t->files_fd = MAX(files, 0);
    return convert(t, from, driver, to, ret_error);
}

int diskfile_make(const struct content_volume *v, const struct json *manifest, const char *draft,
                  char **ret_error)
{
    static const enum runtime_format known[] = {RUNTIME_QCOW2, RUNTIME_RAW,  RUNTIME_VMDK,
                                                RUNTIME_VHD,   RUNTIME_VHDX, RUNTIME_ISO};
    ARENA_AUTO a = arena_new();
    struct task t = {.volume = v, .arena = a};
    struct str name = json_get_str(manifest, STR("disk"));
    const char *from = arena_printf(a, "%s/" CONTENT_DISK, v->content_path).p;
    for (size_t i = 0; i < N_ELEMENTS(known); i++) {
        if (!str_is(name, diskimage_name(known[i])))
            continue;
        if (known[i] == RUNTIME_ISO)
            return make_medium(v, from, arena_printf(a, "%s/" DISKFILE_ISO, draft).p, ret_error);
        /* Once more: what was fetched by an earlier agent was checked by its rules. */
        int e = check_file(a, from, known[i], ret_error);
        return e < 0 ? e
                     : convert_confined(&t, from, diskimage_driver(known[i]),
                                        arena_printf(a, "%s/" DISKFILE_QCOW2, draft).p, ret_error);
    }
    return error_set(ret_error, -EBADMSG, "content: a disk of format '%.*s'", STR_ARG(name));
}

int diskfile_make_empty(const char *draft, int64_t size_bytes, char **ret_error)
{
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/" DISKFILE_RAW, draft);
    FD_AUTO fd = open(path.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t) (size_bytes / 512 * 512)) < 0)
        return error_set(ret_error, -errno, "volume: %s", log_errno_text(-errno));
    return 0;
}
