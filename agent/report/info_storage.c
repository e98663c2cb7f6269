/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes, content trees, blobs. */
#include "report/info.h"

static Eve__Info__UsageInfo *make_usage(struct world *w, const struct json *status)
{
    Eve__Info__UsageInfo *u = MAKE(w, Eve__Info__UsageInfo, eve__info__usage_info);
    u->createtime = TIME(w, status, "CreateTime");
    u->refcount = (uint32_t) NUMBER(status, "RefCount");
    u->lastrefcountchangetime = TIME(w, status, "LastRefCountChangeTime");
    return u;
}

static Eve__Info__ContentResources *make_resources(struct world *w, uint64_t size_bytes)
{
    Eve__Info__ContentResources *r =
        MAKE(w, Eve__Info__ContentResources, eve__info__content_resources);
    r->cursizebytes = size_bytes;
    return r;
}

/* What the disk says, or else what was asked for. */
static Eve__Info__VolumeResources *make_volume_resources(struct world *w, const struct json *status)
{
    const struct str location = json_get_str(status, STR("FileLocation"));
    const struct json *metric =
        location.n ? world_value(w, REPORT_APP_DISK_METRIC, make_path_key(w, location)) : NULL;
    const uint64_t wanted = NUMBER(status, "MaxVolSize");
    if (!metric && !wanted)
        return NULL;
    Eve__Info__VolumeResources *r =
        MAKE(w, Eve__Info__VolumeResources, eve__info__volume_resources);
    r->maxsizebytes = metric ? NUMBER(metric, "ProvisionedBytes") : wanted;
    r->cursizebytes = metric ? NUMBER(metric, "UsedBytes") : NUMBER(status, "CurrentSize");
    return r;
}

Eve__Info__ZInfoVolume *info_volume(struct world *w, const struct json *status, bool is_gone)
{
    Eve__Info__ZInfoVolume *v = MAKE(w, Eve__Info__ZInfoVolume, eve__info__zinfo_volume);
    v->uuid = TEXT(w, status, "VolumeID");
    if (is_gone)
        return v;
    v->displayname = TEXT(w, status, "DisplayName");
    v->state = make_state((int64_t) NUMBER(status, "State"));
    v->volumeerr = make_error(w, status);
    v->resources = make_volume_resources(w, status);
    v->usage = make_usage(w, status);
    v->progresspercentage = (uint32_t) NUMBER(status, "Progress");
    v->generation_count = make_number(status, STR("GenerationCounter"));
    return v;
}

Eve__Info__ZInfoContentTree *info_content(struct world *w, const struct json *status, bool is_gone)
{
    Eve__Info__ZInfoContentTree *c =
        MAKE(w, Eve__Info__ZInfoContentTree, eve__info__zinfo_content_tree);
    c->uuid = TEXT(w, status, "ContentID");
    if (is_gone)
        return c;
    c->displayname = TEXT(w, status, "DisplayName");
    c->state = make_state((int64_t) NUMBER(status, "State"));
    c->err = make_error(w, status);
    c->resources = make_resources(w, NUMBER(status, "TotalSize"));
    /* Content has no references of its own. */
    c->usage = make_usage(w, status);
    c->usage->refcount = 1;
    c->usage->lastrefcountchangetime = c->usage->createtime;
    c->sha256 = TEXT(w, status, "ContentSha256");
    c->progresspercentage = (uint32_t) NUMBER(status, "Progress");
    c->generation_count = make_number(status, STR("GenerationCounter"));
    c->n_componentshalist =
        make_texts(w, json_get(status, STR("Blobs")), NULL, &c->componentshalist);
    return c;
}

static uint32_t blob_progress(const struct json *status)
{
    const uint64_t total = NUMBER(status, "TotalSize"), now = NUMBER(status, "CurrentSize");
    if (NUMBER(status, "Progress"))
        return (uint32_t) MIN(NUMBER(status, "Progress"), 100);
    return total ? (uint32_t) (MIN(now, total) * 100 / total) : 0;
}

/* One for each message, as EVE sends them. */
Eve__Info__ZInfoBlobList *info_blob(struct world *w, const struct json *status, bool is_gone)
{
    Eve__Info__ZInfoBlobList *list = MAKE(w, Eve__Info__ZInfoBlobList, eve__info__zinfo_blob_list);
    Eve__Info__ZInfoBlob *b = MAKE(w, Eve__Info__ZInfoBlob, eve__info__zinfo_blob);
    PUSH(w, list, blob, b);
    b->sha256 = TEXT(w, status, "Sha256");
    if (is_gone)
        return list;
    b->state = make_state((int64_t) NUMBER(status, "State"));
    b->progresspercentage = blob_progress(status);
    b->usage = make_usage(w, status);
    b->resources = make_resources(w, NUMBER(status, "Size"));
    b->err = make_error(w, status);
    return list;
}
