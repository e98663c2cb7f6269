/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "pki/file.h"
#include "pki/pki.h"
#include "runtime/content_internal.h"
#include "runtime/curl.h"
#include "runtime/diskfile.h"
#include "runtime/layer.h"
#include "runtime/tree.h"

#define MAX_INDEX_DEPTH 4 /* an index may name an index */

/* ---- files and digests --------------------------------------------------------------------- */

static void to_hex(struct str data, char out[IMAGE_HEX_BYTES + 1])
{
    unsigned char digest[SHA256_BYTES];
    pki_sha256(data, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* The file is ours alone, so it does not shrink under the mapping. */
int content_hash(const char *path, char out[IMAGE_HEX_BYTES + 1])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return -errno;
    int e = fstat(fd, &st) < 0 ? -errno : 0;
    void *p = NULL;
    if (!e && st.st_size > 0) {
        p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        e = p == MAP_FAILED ? -errno : 0;
    }
    (void) close(fd);
    if (e < 0)
        return e;
    to_hex(str_range(p ? p : "", (size_t) st.st_size), out);
    if (p)
        (void) munmap(p, (size_t) st.st_size);
    return 0;
}

static bool is_cancelled(const struct content_task *t)
{
    return t->is_cancelled && atomic_load(t->is_cancelled);
}

static int64_t max_bytes(const struct content_task *t)
{
    return t->asked->max_bytes ? t->asked->max_bytes : CONTENT_DEFAULT_BYTES;
}

int content_copy(const struct content_task *t, int from, const char *to, int64_t limit_bytes)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    char *bytes = mem_alloc(256 * 1024);
    int e = 0;
    for (int64_t total = 0; !e;) {
        ssize_t n = read(from, bytes, 256 * 1024);
        if (n <= 0) {
            e = n < 0 ? -errno : 0;
            break;
        }
        total += n;
        if (total > limit_bytes || is_cancelled(t))
            e = total > limit_bytes ? -EFBIG : -ECANCELED;
        else if (write(fd, bytes, (size_t) n) != n)
            e = -ENOSPC;
    }
    mem_free(bytes);
    (void) close(fd);
    return e;
}

/* ---- collecting the blobs of a manifest ---------------------------------------------------- */

static int read_document(struct work *w, struct content_source *s, struct str hex,
                         const struct json **ret, char **ret_error)
{
    BUF_AUTO text = {0};
    int e = s->manifest(s, hex, &text, ret_error);
    if (e < 0)
        return e;
    char have[IMAGE_HEX_BYTES + 1];
    to_hex(buf_str(&text), have);
    if (hex.p && !str_is(hex, have))
        return error_set(ret_error, -EBADMSG, "manifest sha256:%.*s: its content is sha256:%s",
                         STR_ARG(hex), have);
    w->is_expected |= str_is(w->task->asked->sha256, have);
    struct json_parse_result parsed;
    e = json_parse(w->arena, arena_str(w->arena, buf_str(&text)), &parsed);
    if (e < 0)
        return error_set(ret_error, -EBADMSG, "manifest: %.*s", STR_ARG(parsed.error));
    *ret = parsed.value;
    return 0;
}

/* From whatever was asked for down to the manifest for this machine. */
static int find_manifest(struct work *w, struct content_source *s, struct str hex,
                         struct image_manifest *ret, char **ret_error)
{
    for (int depth = 0; depth < MAX_INDEX_DEPTH; depth++) {
        const struct json *document = NULL;
        enum image_document kind;
        int e = read_document(w, s, hex, &document, ret_error);
        if (e < 0)
            return e;
        if (image_classify(document, &kind) < 0)
            return error_set(ret_error, -EBADMSG, "neither an image index nor a manifest");
        if (kind == IMAGE_IS_MANIFEST)
            return image_read_manifest(w->arena, document, ret, ret_error);
        struct image_blob next;
        e = image_choose(document, image_architecture(), &next);
        if (e < 0)
            return error_set(ret_error, e, "the image has no manifest for linux on %.*s",
                             STR_ARG(image_architecture()));
        hex = next.hex;
    }
    return error_set(ret_error, -ELOOP, "image indexes name each other too deeply");
}

static const char *blob_path(struct work *w, struct str hex)
{
    return arena_printf(w->arena, "%s/%.*s", w->path, STR_ARG(hex)).p;
}

static int fetch_blob(struct work *w, struct content_source *s, const struct image_blob *b,
                      char **ret_error)
{
    const char *path = blob_path(w, b->hex);
    if (access(path, F_OK) == 0) /* a layer may stand in a manifest twice */
        return 0;
    if (is_cancelled(w->task))
        return error_set(ret_error, -ECANCELED, "cancelled");
    return s->blob(s, b, path, ret_error);
}

static int verify_blob(struct work *w, const struct image_blob *b, char **ret_error)
{
    char have[IMAGE_HEX_BYTES + 1];
    struct stat st;
    const char *path = blob_path(w, b->hex);
    int e = stat(path, &st) < 0 ? -errno : content_hash(path, have);
    if (e < 0)
        return error_set(ret_error, e, "blob sha256:%.*s: %s", STR_ARG(b->hex), log_errno_text(e));
    if (!str_is(b->hex, have) || st.st_size != b->size_bytes)
        return error_set(ret_error, -EBADMSG,
                         "blob sha256:%.*s: its content is sha256:%s, %lld bytes", STR_ARG(b->hex),
                         have, (long long) st.st_size);
    return 0;
}

static int check_sizes(struct work *w, const struct image_manifest *m, char **ret_error)
{
    int64_t left = max_bytes(w->task);
    if (m->config.size_bytes > (int64_t) IMAGE_MAX_CONFIG_BYTES)
        return error_set(ret_error, -EFBIG, "image config: larger than %zu bytes",
                         IMAGE_MAX_CONFIG_BYTES);
    left -= m->config.size_bytes;
    for (size_t i = 0; i < m->n_layers && left >= 0; i++)
        left = m->layers[i].size_bytes > left ? -1 : left - m->layers[i].size_bytes;
    return left >= 0 ? 0
                     : error_set(ret_error, -EFBIG, "the image is larger than %lld bytes",
                                 (long long) max_bytes(w->task));
}

static int fetch_blobs(struct work *w, struct content_source *s, const struct image_manifest *m,
                       char **ret_error)
{
    int64_t total = m->config.size_bytes + 1, done = 0;
    for (size_t i = 0; i < m->n_layers; i++)
        total += m->layers[i].size_bytes;
    int e = fetch_blob(w, s, &m->config, ret_error);
    for (size_t i = 0; i < m->n_layers && !e; i++) {
        e = fetch_blob(w, s, &m->layers[i], ret_error);
        done += m->layers[i].size_bytes;
        if (!e)
            w->task->on_state(w->task->arg, RUNTIME_DOWNLOAD_STARTED, (int) (done * 100 / total));
    }
    return e;
}

static int verify_blobs(struct work *w, const struct image_manifest *m, char **ret_error)
{
    int e = verify_blob(w, &m->config, ret_error);
    for (size_t i = 0; i < m->n_layers && !e; i++)
        e = verify_blob(w, &m->layers[i], ret_error);
    if (!e && w->task->asked->sha256.n && !w->is_expected)
        e = error_set(ret_error, -EBADMSG, "its content is not sha256:%.*s",
                      STR_ARG(w->task->asked->sha256));
    return e;
}

int content_collect(struct work *w, struct content_source *s, struct str hex, char **ret_error)
{
    const struct content_task *t = w->task;
    struct image_manifest m;
    int e = find_manifest(w, s, hex, &m, ret_error);
    if (!e)
        e = check_sizes(w, &m, ret_error);
    if (e < 0)
        return e;
    t->on_state(t->arg, RUNTIME_DOWNLOAD_STARTED, 0);
    e = fetch_blobs(w, s, &m, ret_error);
    if (e < 0)
        return e;
    t->on_state(t->arg, RUNTIME_VERIFYING, 100);
    e = verify_blobs(w, &m, ret_error);
    if (e < 0)
        return e;
    if (t->asked->format != RUNTIME_OCI)
        return diskfile_choose(w, &m, ret_error);
    t->on_state(t->arg, RUNTIME_LOADING, 100);
    return content_write_manifest(w, &m, ret_error);
}

int content_write_manifest(struct work *w, const struct image_manifest *m, char **ret_error)
{
    struct json o = json_object(), layers = json_array();
    for (size_t i = 0; i < m->n_layers; i++)
        (void) json_push(w->arena, &layers, json_string(m->layers[i].hex));
    (void) json_set(w->arena, &o, STR("config"), json_string(m->config.hex));
    (void) json_set(w->arena, &o, STR("layers"), layers);
    int e = pki_file_write(arena_printf(w->arena, "%s/" CONTENT_MANIFEST, w->path).p,
                           json_text(w->arena, &o), 0600);
    return e < 0 ? error_set(ret_error, e, "content: %s", log_errno_text(e)) : 0;
}

/* ---- the whole of it ----------------------------------------------------------------------- */

static int from_registry(struct work *w, char **ret_error)
{
    struct registry_reference reference;
    if (registry_parse(w->arena, w->task->asked->url, &reference) < 0)
        return error_set(ret_error, -EINVAL,
                         "'%.*s' is not docker://host/repository[:tag][@sha256:digest]",
                         STR_ARG(w->task->asked->url));
    const char *scratch = arena_printf(w->arena, "%s/" CONTENT_SCRATCH, w->path).p;
    if (mkdir(scratch, 0700) < 0)
        return error_set(ret_error, -errno, "content: %s", log_errno_text(-errno));
    if (!reference.hex.p)
        w->task->on_state(w->task->arg, RUNTIME_RESOLVING_TAG, 0);
    CLEANUP(registry_freep) struct registry *r = registry_new(w->task, &reference, scratch);
    return content_collect(w, registry_source(r), reference.hex, ret_error);
}

static bool is_web(struct str url)
{
    return str_starts_with(url, STR("http://")) || str_starts_with(url, STR("https://"));
}

/* The user names a scheme ("Bearer", "Basic"), the password is its token, as in EVE's datastores;
 * neither goes over plain HTTP. */
static struct str web_authorization(struct work *w)
{
    const struct runtime_content *c = w->task->asked;
    if (!c->user.n || !str_starts_with(c->url, STR("https://")))
        return STR_NONE;
    return arena_printf(w->arena, "%.*s %.*s", STR_ARG(c->user), STR_ARG(c->password));
}

/* A tar or a disk image that a web server has. */
static int from_web(struct work *w, char **ret_error)
{
    const struct content_task *t = w->task;
    const char *file = arena_printf(w->arena, "%s/download", w->path).p;
    const char *ca = arena_printf(w->arena, "%s/ca.pem", w->path).p;
    bool has_ca = t->asked->ca_pem.n && pki_file_write(ca, t->asked->ca_pem, 0600) >= 0;
    const struct curl_request q = {
        .curl = t->curl,
        .url = t->asked->url,
        .allows_http = true,
        .authorization = web_authorization(w),
        .to = file,
        .ca_path = has_ca ? ca : NULL,
        .max_bytes = max_bytes(t),
        .is_cancelled = t->is_cancelled,
    };
    t->on_state(t->arg, RUNTIME_DOWNLOAD_STARTED, 0);
    int e = curl_perform(&q, ret_error);
    if (e >= 0 && e != 200)
        e = error_set(ret_error, -ENOENT, "%.*s: status %d", STR_ARG(t->asked->url), e);
    if (e >= 0)
        e = t->asked->format == RUNTIME_OCI ? content_from_disk(w, file, ret_error)
                                            : diskfile_take(w, file, ret_error);
    (void) unlink(file);
    (void) unlink(ca);
    return e;
}

static int fetch_into(struct work *w, char **ret_error)
{
    struct str url = w->task->asked->url;
    if (str_starts_with(url, STR("docker://")))
        return from_registry(w, ret_error);
    if (is_web(url))
        return from_web(w, ret_error);
    if (str_starts_with(url, STR("file:///")))
        url = str_from(url, strlen("file://"));
    if (!url.n || url.p[0] != '/')
        return error_set(ret_error, -EINVAL, "'%.*s' is neither docker://, http:// nor file:///",
                         STR_ARG(url));
    w->task->on_state(w->task->arg, RUNTIME_DOWNLOAD_STARTED, 0);
    return content_from_disk(w, arena_strz(w->arena, url), ret_error);
}

int content_fetch(const struct content_task *t, char **ret_error)
{
    ARENA_AUTO arena = arena_new();
    struct tree_draft draft;
    const char *name = arena_strz(arena, t->asked->id);
    int e = tree_draft_begin(&draft, t->directory, name);
    if (e < 0)
        return error_set(ret_error, e, "%s: %s", t->directory, log_errno_text(e));
    struct work w = {.task = t, .arena = arena, .path = draft.path};
    e = fetch_into(&w, ret_error);
    if (!e) {
        (void) tree_remove(AT_FDCWD, arena_printf(arena, "%s/" CONTENT_SCRATCH, draft.path).p);
        /* What lay there under this name was not known to be whole, or it would have been used. */
        (void) tree_discard(t->directory, name);
        e = tree_draft_commit(&draft);
        if (e < 0)
            (void) error_set(ret_error, e, "content: %s", log_errno_text(e));
    }
    tree_draft_done(&draft);
    return e;
}
