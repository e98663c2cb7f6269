/* SPDX-License-Identifier: Apache-2.0 */
/* The application's custom blobs: which there are, and their bytes. */
#include "msrv/msrv_internal.h"

static size_t find_blobs(struct request *r, struct msrv_blob **ret)
{
    const struct msrv_options *o = &r->msrv->options;
    size_t n = 0;
    if (!o->world->blobs || o->world->blobs(o->ctx, r->arena, r->app, ret, &n) < 0)
        return 0;
    return n;
}

static struct json describe(struct arena *a, const struct msrv_blob *b)
{
    struct json out = json_object();
    struct str url =
        arena_printf(a, "http://" MSRV_ADDRESS "/eve/app-custom-blobs/%.*s", STR_ARG(b->name));
    json_append_member(a, &out, STR("CustomMeta"),
                       json_string(b->custom_meta.p ? b->custom_meta : STR("")));
    json_append_member(a, &out, STR("DownloadURL"), json_string(url));
    return out;
}

void app_info_answer(struct request *r)
{
    if (!r->app) {
        answer_text(r, 200, "application/json", STR("not found"));
        return;
    }
    struct msrv_blob *blobs = NULL;
    size_t n = find_blobs(r, &blobs);
    struct json list = n ? json_array() : json_null();
    for (size_t i = 0; i < n; i++)
        json_push(r->arena, &list, describe(r->arena, &blobs[i]));
    struct json *out = json_new(r->arena, json_object());
    json_append_member(r->arena, out, STR("AppBlobs"), list);
    answer_json(r, 200, out);
}

static void answer_absent(struct request *r)
{
    answer_error(r, 404, r->message->target);
}

void app_blob_find(struct request *r)
{
    if (!r->app) {
        answer_text(r, 200, "text/plain; charset=utf-8", STR("not found"));
        return;
    }
    struct str name = route_unescape(r->arena, r->rest);
    struct msrv_blob *blobs = NULL;
    size_t n = name.n ? find_blobs(r, &blobs) : 0;
    for (size_t i = 0; i < n && !r->found; i++)
        if (str_eq(blobs[i].name, name) && blobs[i].path)
            r->found = arena_strz(r->arena, str_of(blobs[i].path));
    if (!r->found)
        answer_absent(r);
}

void app_blob_answer(struct request *r)
{
    if (!content_answer(r, r->found))
        answer_absent(r);
}
