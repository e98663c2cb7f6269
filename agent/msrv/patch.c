/* SPDX-License-Identifier: Apache-2.0 */
/* Patch envelopes: what there is for the application, and its files. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "msrv/msrv_internal.h"

struct envelopes {
    struct msrv_envelope *items;
    size_t n;
};

/* What patch_find() leaves: an envelope, and one of its files or all. */
struct found {
    const struct msrv_envelope *envelope;
    const struct msrv_patch_file *file;
};

/* False: it is answered. */
static bool find_envelopes(struct request *r, struct envelopes *ret)
{
    const struct msrv_options *o = &r->msrv->options;
    if (!r->app) {
        r->answer.status = 204;
        return false;
    }
    if (!o->world->envelopes ||
        o->world->envelopes(o->ctx, r->arena, r->app, &ret->items, &ret->n) < 0 || ret->n == 0) {
        answer_message(r, 404,
                       arena_printf(r->arena, "No envelopes for %.*s", STR_ARG(r->app->uuid)));
        return false;
    }
    return true;
}

static void count(struct request *r, const struct msrv_envelope *e, enum msrv_patch_use use)
{
    const struct msrv_options *o = &r->msrv->options;
    if (o->world->count_patch)
        o->world->count_patch(o->ctx, r->app, e, use);
}

/* ---- description ---------------------------------------------------------------------------- */

static void set(struct arena *a, struct json *object, const char *key, struct str value)
{
    json_append_member(a, object, str_of(key), json_string(value.p ? value : STR("")));
}

static struct json describe_volume(struct arena *a, const struct msrv_patch_file *f)
{
    struct json out = json_object();
    set(a, &out, "fileName", f->name);
    set(a, &out, "imageName", f->image_name);
    set(a, &out, "fileMetaData", f->metadata);
    set(a, &out, "artifactMetaData", f->artifact_metadata);
    json_append_member(a, &out, STR("encArtifactMeta"), json_object());
    set(a, &out, "imageId", f->image_id);
    return out;
}

static struct json describe_binary(struct arena *a, const struct msrv_envelope *e,
                                   const struct msrv_patch_file *f)
{
    struct json out = json_object();
    set(a, &out, "fileName", f->name);
    set(a, &out, "fileSha", f->sha);
    set(a, &out, "fileMetaData", f->metadata);
    set(a, &out, "artifactMetaData", f->artifact_metadata);
    json_append_member(a, &out, STR("encArtifactMeta"), json_object());
    set(a, &out, "url",
        arena_printf(a, "http://" MSRV_ADDRESS "/eve/v1/patch/download/%.*s/%.*s", STR_ARG(e->id),
                     STR_ARG(f->name)));
    json_append_member(a, &out, STR("size"), json_int(f->size));
    return out;
}

static struct json describe(struct arena *a, const struct msrv_envelope *e)
{
    struct json out = json_object(), binaries = json_array(), volumes = json_array();
    for (size_t i = 0; i < e->n_files; i++) {
        const struct msrv_patch_file *f = &e->files[i];
        if (f->kind == MSRV_PATCH_VOLUME)
            json_push(a, &volumes, describe_volume(a, f));
        else
            json_push(a, &binaries, describe_binary(a, e, f));
    }
    set(a, &out, "PatchID", e->id);
    set(a, &out, "Version", e->version);
    json_append_member(a, &out, STR("BinaryBlobs"), binaries.n ? binaries : json_null());
    json_append_member(a, &out, STR("VolumeRefs"), volumes.n ? volumes : json_null());
    return out;
}

void patch_description_answer(struct request *r)
{
    struct envelopes all = {0};
    if (!find_envelopes(r, &all))
        return;
    struct json *out = json_new(r->arena, json_array());
    for (size_t i = 0; i < all.n; i++) {
        count(r, &all.items[i], MSRV_PATCH_DESCRIBED);
        json_push(r->arena, out, describe(r->arena, &all.items[i]));
    }
    answer_json(r, 200, out);
}

/* ---- download: which ------------------------------------------------------------------------ */

static const struct msrv_envelope *find_envelope(const struct envelopes *all, struct str id)
{
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->items[i].id, id))
            return &all->items[i];
    return NULL;
}

static const struct msrv_patch_file *find_file(const struct msrv_envelope *e, struct str name)
{
    for (size_t i = 0; i < e->n_files; i++)
        if (e->files[i].kind != MSRV_PATCH_VOLUME && str_eq(e->files[i].name, name))
            return &e->files[i];
    return NULL;
}

static void find_in(struct request *r, const struct envelopes *all, struct str id, struct str name)
{
    struct found *found = ARENA_NEW(r->arena, struct found);
    found->envelope = find_envelope(all, id);
    if (!found->envelope) {
        if (name.p)
            answer_message(r, 404, STR("patch is not found"));
        else
            answer_error(r, 401, STR("Unauthorized"));
        return;
    }
    found->file = name.p ? find_file(found->envelope, name) : NULL;
    if (name.p && !found->file) {
        answer_message(r, 404, STR("file is not found"));
        return;
    }
    r->found = found;
}

/* The rest is <patch> or <patch>/<file>. */
void patch_find(struct request *r)
{
    struct envelopes all = {0};
    ptrdiff_t slash = str_find(r->rest, '/');
    struct str id = slash < 0 ? r->rest : str_sub(r->rest, 0, (size_t) slash);
    struct str name = slash < 0 ? STR_NONE : str_from(r->rest, (size_t) slash + 1);
    if (id.n == 0 || (name.p && (name.n == 0 || str_find(name, '/') >= 0))) {
        answer_error(r, 404, STR("404 page not found"));
        return;
    }
    if (!find_envelopes(r, &all))
        return;
    id = route_unescape(r->arena, id);
    if (name.p)
        name = route_unescape(r->arena, name);
    if (!id.p || (slash >= 0 && !name.p)) {
        answer_message(r, 404, STR("patch is not found"));
        return;
    }
    find_in(r, &all, id, name);
}

/* ---- download: bytes ------------------------------------------------------------------------ */

static int decrypt(struct request *r, const struct msrv_patch_file *f, struct str *ret)
{
    const struct msrv_options *o = &r->msrv->options;
    return o->world->decrypt ? o->world->decrypt(o->ctx, r->arena, f, ret) : -EOPNOTSUPP;
}

static void answer_decrypted(struct request *r, const struct msrv_patch_file *f)
{
    struct str text = STR_NONE;
    if (decrypt(r, f, &text) < 0) {
        answer_message(r, 500, STR("failed to populate cipher blob"));
        return;
    }
    answer_text(r, 200, "text/plain", text);
    answer_header(r, STR("Content-Disposition"), STR("attachment; filename=\"data.txt\""));
}

/* A block device has no size of its own to go by, and more bytes than the file that is on it. */
static void answer_device(struct request *r, const struct msrv_patch_file *f)
{
    if (f->size <= 0) {
        answer_error(r, 500, STR("Internal Server Error"));
        return;
    }
    struct part *p = ARENA_NEW(r->arena, struct part);
    *p = (struct part){.path = f->path, .length = (uint64_t) f->size};
    r->answer.status = 200;
    answer_header(r, STR("Content-Type"), STR("application/octet-stream"));
    answer_parts(r, p, 1);
}

static void answer_file(struct request *r, const struct msrv_patch_file *f)
{
    struct stat st;
    if (f->kind == MSRV_PATCH_ENCRYPTED_INLINE)
        answer_decrypted(r, f);
    else if (!f->path || stat(f->path, &st) < 0 || access(f->path, R_OK) < 0)
        answer_error(r, 404, STR("Not Found"));
    else if (S_ISBLK(st.st_mode))
        answer_device(r, f);
    else if (!content_answer(r, f->path))
        answer_error(r, 404, STR("Not Found"));
}

static int make_entry(struct request *r, const struct msrv_patch_file *f, struct zip_entry *ret)
{
    struct stat st;
    *ret = (struct zip_entry){.name = f->name};
    if (f->kind == MSRV_PATCH_ENCRYPTED_INLINE) {
        int e = decrypt(r, f, &ret->bytes);
        ret->length = ret->bytes.n;
        return e;
    }
    if (!f->path || stat(f->path, &st) < 0 || access(f->path, R_OK) < 0)
        return -ENOENT;
    if (!S_ISREG(st.st_mode) && !(S_ISBLK(st.st_mode) && f->size > 0))
        return -EINVAL;
    ret->path = f->path;
    ret->length = S_ISREG(st.st_mode) ? (uint64_t) st.st_size : (uint64_t) f->size;
    return 0;
}

static void answer_archive(struct request *r, const struct msrv_envelope *e)
{
    struct zip_entry *entries = ARENA_ARRAY(r->arena, struct zip_entry, e->n_files + 1);
    size_t n = 0;
    int error = 0;
    for (size_t i = 0; i < e->n_files && error == 0; i++)
        if (e->files[i].kind != MSRV_PATCH_VOLUME)
            error = make_entry(r, &e->files[i], &entries[n++]);
    if (error == 0)
        error = zip_answer(r, entries, n);
    if (error < 0)
        answer_message(r, 500, STR("failed to archive binary blobs"));
}

void patch_answer(struct request *r)
{
    const struct found *found = r->found;
    if (found->file)
        answer_file(r, found->file);
    else
        answer_archive(r, found->envelope);
}

void patch_count(struct request *r)
{
    const struct found *found = r->found;
    if (r->answer.status == 200 || r->answer.status == 206)
        count(r, found->envelope, MSRV_PATCH_DOWNLOADED);
}
