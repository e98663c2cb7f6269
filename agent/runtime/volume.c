/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: the layers of a content one upon the other, a disk, or empty. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "pki/file.h"
#include "runtime/content_internal.h"
#include "runtime/diskfile.h"
#include "runtime/layer.h"
#include "runtime/tree.h"

static int unpack(const struct content_volume *v, const struct json *manifest, int root_fd,
                  char **ret_error)
{
    struct layer_target t = {
        .root_fd = root_fd,
        .keeps_owners = v->keeps_owners,
        .is_first = true,
        .bytes_left = LAYER_DEFAULT_BYTES,
        .entries_left = LAYER_MAX_ENTRIES,
        .is_cancelled = v->is_cancelled,
    };
    JSON_FOR_EACH_ITEM (json_get(manifest, STR("layers")), layer) {
        BUF_AUTO path = {0};
        buf_printf(&path, "%s/%.*s", v->content_path, STR_ARG(json_str(layer)));
        int e = layer_apply(&t, path.p, ret_error);
        if (e < 0)
            return e;
        t.is_first = false;
    }
    if (t.n_skipped)
        log_debug("device nodes of an image left out", LOG_TEXT("volume", v->id),
                  LOG_INT("count", t.n_skipped));
    return 0;
}

static int keep_config(const struct content_volume *v, const struct json *manifest,
                       struct tree_draft *draft, char **ret_error)
{
    BUF_AUTO text = {0};
    BUF_AUTO from = {0};
    BUF_AUTO to = {0};
    buf_printf(&from, "%s/%.*s", v->content_path, STR_ARG(json_get_str(manifest, STR("config"))));
    buf_printf(&to, "%s/" CONTENT_IMAGE, draft->path);
    int e = tree_read(AT_FDCWD, from.p, IMAGE_MAX_CONFIG_BYTES, &text);
    if (!e)
        e = pki_file_write(to.p, buf_str(&text), 0600);
    return e < 0 ? error_set(ret_error, e, "image config: %s", log_errno_text(e)) : 0;
}

static int fill(const struct content_volume *v, struct tree_draft *draft, int root_fd,
                char **ret_error)
{
    if (!v->content_path)
        return v->size_bytes ? diskfile_make_empty(draft->path, v->size_bytes, ret_error) : 0;
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    BUF_AUTO path = {0};
    buf_printf(&path, "%s/" CONTENT_MANIFEST, v->content_path);
    int e = tree_read(AT_FDCWD, path.p, IMAGE_MAX_MANIFEST_BYTES, &text);
    const struct json *manifest = e < 0 ? NULL : json_parse_quick(a, buf_str(&text));
    if (!manifest)
        return error_set(ret_error, -EBADMSG, "content: its manifest cannot be read");
    if (json_get(manifest, STR("disk")))
        return diskfile_make(v, manifest, draft->path, ret_error);
    e = unpack(v, manifest, root_fd, ret_error);
    return e < 0 ? e : keep_config(v, manifest, draft, ret_error);
}

int content_make_volume(const struct content_volume *v, char **ret_error)
{
    struct tree_draft draft;
    int e = tree_draft_begin(&draft, v->directory, v->id);
    if (e < 0)
        return error_set(ret_error, e, "%s: %s", v->directory, log_errno_text(e));
    BUF_AUTO root = {0};
    buf_printf(&root, "%s/" CONTENT_ROOT, draft.path);
    int fd = -1;
    /* The tree inside is for every user of the container; the directory above it for us alone. */
    if (mkdir(root.p, 0755) < 0 || (fd = open(root.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        e = error_set(ret_error, -errno, "volume: %s", log_errno_text(-errno));
    if (!e)
        e = fill(v, &draft, fd, ret_error);
    if (fd >= 0)
        (void) close(fd);
    if (!e) {
        (void) tree_discard(v->directory, v->id);
        e = tree_draft_commit(&draft);
        if (e < 0)
            (void) error_set(ret_error, e, "volume: %s", log_errno_text(e));
    }
    tree_draft_done(&draft);
    return e;
}
