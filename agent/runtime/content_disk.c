/* SPDX-License-Identifier: Apache-2.0 */
/* Images that lie on disk: a layout of the OCI, or an archive of Docker, plain or in a tar. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "runtime/content_internal.h"
#include "runtime/diskfile.h"
#include "runtime/layer.h"
#include "runtime/tree.h"

/* ---- an OCI layout ------------------------------------------------------------------------- */

struct layout {
    struct content_source source;
    struct work *work;
    int fd;
};

static int layout_manifest(struct content_source *s, struct str hex, struct buf *ret,
                           char **ret_error)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    const char *name =
        hex.p ? arena_printf(l->work->arena, "blobs/sha256/%.*s", STR_ARG(hex)).p : "index.json";
    int e = tree_read(l->fd, name, IMAGE_MAX_MANIFEST_BYTES, ret);
    return e < 0 ? error_set(ret_error, e, "%s: %s", name, log_errno_text(e)) : 0;
}

static int copy_from(struct work *w, int root_fd, const char *name, const char *to,
                     int64_t limit_bytes, char **ret_error)
{
    int fd = tree_open(root_fd, name, O_RDONLY | O_NONBLOCK);
    struct stat st;
    int e = fd < 0                     ? fd
            : fstat(fd, &st) < 0       ? -errno
            : !S_ISREG(st.st_mode)     ? -EINVAL
            : st.st_size > limit_bytes ? -EFBIG
                                       : content_copy(w->task, fd, to, limit_bytes);
    if (fd >= 0)
        (void) close(fd);
    return e < 0 ? error_set(ret_error, e, "%.200s: %s", name, log_errno_text(e)) : 0;
}

static int layout_blob(struct content_source *s, const struct image_blob *b, const char *to,
                       char **ret_error)
{
    struct layout *l = CONTAINER_OF(s, struct layout, source);
    const char *name = arena_printf(l->work->arena, "blobs/sha256/%.*s", STR_ARG(b->hex)).p;
    return copy_from(l->work, l->fd, name, to, b->size_bytes, ret_error);
}

/* ---- an archive of Docker ------------------------------------------------------------------- */

static int64_t bytes_left(const struct work *w)
{
    return w->task->asked->max_bytes ? w->task->asked->max_bytes : CONTENT_DEFAULT_BYTES;
}

/* Copies under the name of its digest, which is found only now. */
static int take_file(struct work *w, int root_fd, struct str name, struct image_blob *ret,
                     char **ret_error)
{
    const char *draft = arena_printf(w->arena, "%s/.blob", w->path).p;
    const char *from = arena_strz(w->arena, name);
    if (!name.n)
        return error_set(ret_error, -EBADMSG, "manifest.json: a file without name");
    int e = copy_from(w, root_fd, from, draft, bytes_left(w), ret_error);
    if (e < 0)
        return e;
    char hex[IMAGE_HEX_BYTES + 1];
    e = content_hash(draft, hex);
    ret->hex = arena_str(w->arena, str_of(hex));
    if (!e && rename(draft, arena_printf(w->arena, "%s/%s", w->path, hex).p) < 0)
        e = -errno;
    return e < 0 ? error_set(ret_error, e, "%s: %s", from, log_errno_text(e)) : 0;
}

static bool is_packed(int root_fd, const char *name)
{
    unsigned char magic[2] = {0};
    int fd = tree_open(root_fd, name, O_RDONLY | O_NONBLOCK);
    bool is = fd >= 0 && read(fd, magic, 2) == 2 &&
              ((magic[0] == 0x1f && magic[1] == 0x8b) || (magic[0] == 0x28 && magic[1] == 0xb5));
    if (fd >= 0)
        (void) close(fd);
    return is;
}

/* The archive names no digests but those of the unpacked layers, in the image's configuration. */
static int check_layers(struct work *w, int root_fd, const struct json *entry,
                        const struct image_manifest *m, char **ret_error)
{
    BUF_AUTO text = {0};
    const struct json *layers = json_get(entry, STR("Layers"));
    const char *name = arena_printf(w->arena, "%s/%.*s", w->path, STR_ARG(m->config.hex)).p;
    int e = tree_read(AT_FDCWD, name, IMAGE_MAX_CONFIG_BYTES, &text);
    const struct json *config = e < 0 ? NULL : json_parse_quick(w->arena, buf_str(&text));
    const struct json *ids = json_at(config, "rootfs", "diff_ids", NULL);
    if (json_count(ids) != m->n_layers)
        return error_set(ret_error, -EBADMSG, "the image config does not name %zu layers",
                         m->n_layers);
    for (size_t i = 0; i < m->n_layers; i++) {
        struct str hex;
        if (image_digest_hex(json_str(&ids->items[i]), &hex) < 0 ||
            (!str_eq(hex, m->layers[i].hex) &&
             !is_packed(root_fd, arena_strz(w->arena, json_str(&layers->items[i])))))
            return error_set(ret_error, -EBADMSG, "layer %zu is not what the image config names",
                             i);
    }
    return 0;
}

static int take_archive(struct work *w, int root_fd, const struct json *entry, char **ret_error)
{
    const struct json *layers = json_get(entry, STR("Layers"));
    struct image_manifest m = {.n_layers = json_count(layers)};
    if (m.n_layers > IMAGE_MAX_LAYERS)
        return error_set(ret_error, -EFBIG, "more than %d layers", IMAGE_MAX_LAYERS);
    m.layers = ARENA_ARRAY(w->arena, struct image_blob, m.n_layers + 1);
    int e = take_file(w, root_fd, json_get_str(entry, STR("Config")), &m.config, ret_error);
    for (size_t i = 0; i < m.n_layers && !e; i++)
        e = take_file(w, root_fd, json_str(&layers->items[i]), &m.layers[i], ret_error);
    if (e < 0)
        return e;
    w->task->on_state(w->task->arg, RUNTIME_VERIFYING, 100);
    w->is_expected |= str_eq(w->task->asked->sha256, m.config.hex);
    e = check_layers(w, root_fd, entry, &m, ret_error);
    if (!e && w->task->asked->sha256.n && !w->is_expected)
        e = error_set(ret_error, -EBADMSG, "its content is not sha256:%.*s",
                      STR_ARG(w->task->asked->sha256));
    if (e < 0)
        return e;
    w->task->on_state(w->task->arg, RUNTIME_LOADING, 100);
    return content_write_manifest(w, &m, ret_error);
}

static int from_archive(struct work *w, int root_fd, char **ret_error)
{
    BUF_AUTO text = {0};
    int e = tree_read(root_fd, "manifest.json", IMAGE_MAX_MANIFEST_BYTES, &text);
    if (e < 0)
        return error_set(ret_error, e, "neither index.json nor manifest.json: not an image");
    const struct json *list = json_parse_quick(w->arena, arena_str(w->arena, buf_str(&text)));
    if (json_count(list) != 1 || !json_is(list, JSON_ARRAY))
        return error_set(ret_error, -EBADMSG, "manifest.json does not name exactly one image");
    return take_archive(w, root_fd, list->items, ret_error);
}

/* ---- directories and tars ------------------------------------------------------------------ */

static int from_directory(struct work *w, int root_fd, char **ret_error)
{
    struct layout l = {{layout_manifest, layout_blob}, w, root_fd};
    int fd = tree_open(root_fd, "index.json", O_PATH);
    if (fd < 0)
        return from_archive(w, root_fd, ret_error);
    (void) close(fd);
    return content_collect(w, &l.source, STR_NONE, ret_error);
}

/* Only a copy of ours can be looked at twice, once for its digest. */
static int copy_and_hash(struct work *w, int from, const char *to, char **ret_error)
{
    char hex[IMAGE_HEX_BYTES + 1];
    int e = content_copy(w->task, from, to, bytes_left(w));
    if (!e)
        e = content_hash(to, hex);
    if (e < 0)
        return error_set(ret_error, e, "image: %s", log_errno_text(e));
    w->is_expected |= str_is(w->task->asked->sha256, hex);
    return 0;
}

static int unpack_tar(struct work *w, const char *path, const char *into, char **ret_error)
{
    int fd = mkdir(into, 0700) < 0 ? -1 : open(into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(ret_error, -EIO, "%s: cannot be made", into);
    struct layer_target t = {
        .root_fd = fd,
        .keeps_whiteouts = true,
        .bytes_left = bytes_left(w),
        .entries_left = LAYER_MAX_ENTRIES,
        .is_cancelled = w->task->is_cancelled,
    };
    int e = layer_apply(&t, path, ret_error);
    if (!e)
        e = from_directory(w, fd, ret_error);
    (void) close(fd);
    return e;
}

/* A tar is unpacked as it is, with the same care as a layer, and looked at as a directory. */
static int from_tar(struct work *w, int fd, const char *path, char **ret_error)
{
    const char *scratch = arena_printf(w->arena, "%s/" CONTENT_SCRATCH, w->path).p;
    const char *into = arena_printf(w->arena, "%s/tree", scratch).p;
    if (mkdir(scratch, 0700) < 0)
        return error_set(ret_error, -errno, "%s: %s", scratch, log_errno_text(-errno));
    if (w->task->asked->sha256.n) {
        path = arena_printf(w->arena, "%s/tar", scratch).p;
        int e = copy_and_hash(w, fd, path, ret_error);
        if (e < 0)
            return e;
    }
    return unpack_tar(w, path, into, ret_error);
}

int content_from_disk(struct work *w, const char *path, char **ret_error)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int e = -errno;
        if (fd >= 0)
            (void) close(fd);
        return error_set(ret_error, e, "%s: %s", path, log_errno_text(e));
    }
    bool is_disk = w->task->asked->format != RUNTIME_OCI;
    int e = S_ISDIR(st.st_mode)    ? from_directory(w, fd, ret_error)
            : !S_ISREG(st.st_mode) ? error_set(ret_error, -EINVAL, "%s: no image", path)
            : is_disk              ? diskfile_copy(w, path, ret_error)
                                   : from_tar(w, fd, path, ret_error);
    (void) close(fd);
    return e;
}
