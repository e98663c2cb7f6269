/* SPDX-License-Identifier: Apache-2.0 */
/* Content trees: where they come from, and how far they are (volumemgr's ContentTreeStatus). */
#include <errno.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "eve/common.pb-c.h"

static const char *const format_names[FORMATS] = {
    "unknown", "RAW", "QCOW", "QCOW2", "VHD", "VMDK", "OVA", "VHDX", "CONTAINER", "ISO", "PVC"};

struct content *content_find(const struct apps *a, struct str id)
{
    LIST_FOR_EACH (&a->contents, item) {
        struct content *c = CONTAINER_OF(item, struct content, link);
        if (str_is(id, c->id))
            return c;
    }
    return NULL;
}

static struct content *content_new(struct apps *a, struct str id)
{
    struct content *c = NEW(struct content);
    c->id = str_dup(id);
    list_append(&a->contents, &c->link);
    return c;
}

void content_free(struct content *c)
{
    list_remove(&c->link);
    trouble_done(&c->trouble);
    mem_free(c->id);
    mem_free(c->sha);
    mem_free(c);
}

static uint64_t hash_config(const struct json *config)
{
    uint64_t h = apps_hash(APPS_HASH, json_get_str(config, STR("RelativeURL")));
    h = apps_hash(h, json_get_str(config, STR("ContentSha256")));
    return apps_hash_int(h, (uint64_t) json_get_int(config, STR("Format"), 0));
}

/* ---- its blob ------------------------------------------------------------------------------ */

/* Several contents may hang on one. */
static int64_t count_blob(const struct apps *a, const struct content *c)
{
    int64_t n = 0;
    LIST_FOR_EACH (&a->contents, item) {
        const struct content *other = CONTAINER_OF(item, struct content, link);
        n += other->sha && strcmp(other->sha, c->sha) == 0;
    }
    return n;
}

static void forget_blob(struct apps *a, struct content *c)
{
    if (c->sha && count_blob(a, c) == 1)
        topics_unpublish(a, OUT_BLOB, str_of(c->sha));
    /* Those that share it tell that they are fewer. */
    LIST_FOR_EACH (&a->contents, item) {
        struct content *other = CONTAINER_OF(item, struct content, link);
        if (other == c || !c->sha || !other->sha || strcmp(other->sha, c->sha) != 0)
            continue;
        other->published = 0;
        apps_reconcile_soon(a);
    }
    mem_free(c->sha);
    c->sha = NULL;
}

static void set_blob(struct apps *a, struct content *c, struct str sha)
{
    if (c->sha && str_is(sha, c->sha))
        return;
    forget_blob(a, c);
    c->sha = sha.n ? str_dup(sha) : NULL;
}

bool content_has_blob(const struct apps *a, struct str sha)
{
    LIST_FOR_EACH (&a->contents, item) {
        const struct content *c = CONTAINER_OF(item, struct content, link);
        if (c->sha && str_is(sha, c->sha))
            return true;
    }
    return false;
}

/* What everything else of the content hangs on: the others are the runtime's own affair. */
static void publish_blob(struct apps *a, const struct content *c, const struct json *config)
{
    ARENA_AUTO arena = arena_new_with(1024);
    const bool is_there = c->state == RUNTIME_DELIVERED;
    const int64_t size = json_get_int(config, STR("MaxDownloadSize"), 0);
    struct json o = json_object();
    put_copy(arena, &o, config, "DatastoreIDList");
    put_copy(arena, &o, config, "RelativeURL");
    put_str(arena, &o, "Sha256", str_of(c->sha));
    put_int(arena, &o, "Size", size);
    put_int(arena, &o, "State", c->state ? sw_state_of(c->state) : SW_INITIAL);
    put_int(arena, &o, "TotalSize", size);
    put_int(arena, &o, "CurrentSize", is_there ? size : size / 100 * c->percent);
    put_int(arena, &o, "Progress", is_there ? 100 : c->percent);
    put_int(arena, &o, "RefCount", count_blob(a, c));
    put_time(arena, &o, "CreateTime", c->created_us);
    put_time(arena, &o, "LastRefCountChangeTime", c->created_us);
    put_bool(arena, &o, "HasDownloaderRef", !is_there);
    put_bool(arena, &o, "HasVerifierRef", is_there);
    put_trouble(arena, &o, &c->trouble, "types.DownloaderStatus");
    topics_publish(a, OUT_BLOB, str_of(c->sha), &o);
}

static struct json blob_list(struct arena *arena, const struct content *c)
{
    struct json list = json_array();
    if (!c->sha)
        return json_null();
    (void) json_push(arena, &list, json_string(str_of(c->sha)));
    return list;
}

void content_configure(struct apps *a, struct str id, const struct json *config)
{
    struct content *c = content_find(a, id);
    if (!config) {
        if (c)
            c->is_configured = false;
        return;
    }
    if (!c)
        c = content_new(a, id);
    c->is_configured = true;
    set_blob(a, c, json_get_str(config, STR("ContentSha256")));
    c->format = (int) json_get_int(config, STR("Format"), 0);
    c->asked = hash_config(config);
    c->published = 0;
    if (!c->held)
        c->held = record_load_content(a, id);
    /* A new wish is tried at once, whatever has become of the one before. */
    if (c->asked != c->held)
        c->trouble.n_times = 0, c->trouble.retry_us = 0;
}

void content_changed(struct apps *a, const struct runtime_status *s)
{
    struct content *c = content_find(a, s->id);
    if (!c)
        c = content_new(a, s->id);
    c->state = s->state;
    c->percent = s->progress_percent;
    c->published = 0;
    bool is_wrong = s->error.p && s->state != RUNTIME_INVALID; /* not that its removal ended it */
    trouble_set(&c->trouble, a, is_wrong ? s->error : STR_NONE);
    if (is_wrong)
        trouble_retry(&c->trouble, a, items_int(a->node->items, "timer.download.retry"));
    if (s->state == RUNTIME_DELIVERED)
        c->created_us = apps_wall_us(a);
    if (s->state == RUNTIME_DELIVERED || s->state == RUNTIME_INVALID)
        c->trouble.n_times = 0, c->trouble.retry_us = 0;
}

/* ---- where it comes from ------------------------------------------------------------------- */

static struct str trim_slashes(struct str s)
{
    while (s.n && s.p[0] == '/')
        s = str_from(s, 1);
    while (s.n && s.p[s.n - 1] == '/')
        s = str_sub(s, 0, s.n - 1);
    return s;
}

static struct str append_path(struct arena *a, struct str base, struct str part)
{
    part = trim_slashes(part);
    return part.n ? arena_printf(a, "%.*s/%.*s", STR_ARG(base), STR_ARG(part)) : base;
}

/* The end of an address without the last slash; that of file:/// stays whole. */
static struct str trim_end(struct str s)
{
    while (s.n > 1 && s.p[s.n - 1] == '/' && s.p[s.n - 2] != '/')
        s = str_sub(s, 0, s.n - 1);
    return s;
}

static int make_url(struct arena *a, const struct json *store, const struct json *config,
                    struct runtime_content *ret, struct str *ret_error)
{
    struct str type = json_get_str(store, STR("DsType"));
    struct str base = trim_end(json_get_str(store, STR("Fqdn")));
    bool is_registry = str_is(type, "DsContainerRegistry");
    bool is_web = str_is(type, "DsHttp") || str_is(type, "DsHttps");
    bool is_file = str_starts_with(base, STR("file://"));
    if (!is_registry && !is_web && !is_file) {
        *ret_error = arena_printf(
            a, "datastore of type %.*s: only registries, http, https and files are supported here",
            STR_ARG(type));
        return -EOPNOTSUPP;
    }
    if (is_registry && !is_file) {
        ptrdiff_t at = str_find_str(base, STR("://"));
        struct str host = at < 0 ? base : str_from(base, (size_t) at + 3);
        base = arena_printf(a, "docker://%.*s", STR_ARG(host));
    } else if (is_web && !is_file && str_find_str(base, STR("://")) < 0) {
        base =
            arena_printf(a, "%s://%.*s", str_is(type, "DsHttp") ? "http" : "https", STR_ARG(base));
    }
    base = append_path(a, base, json_get_str(store, STR("Dpath")));
    ret->url = append_path(a, base, json_get_str(config, STR("RelativeURL")));
    return 0;
}

/* Certificates of its datastore, one after the other. */
static struct str read_certificates(struct arena *a, const struct json *store)
{
    struct str all = STR_NONE;
    JSON_FOR_EACH_ITEM (json_get(store, STR("DsCertPEM")), item) {
        struct str pem;
        if (base64_decode(a, json_str(item), BASE64_STANDARD, &pem, NULL) >= 0 && pem.n)
            all = arena_printf(a, "%.*s%.*s\n", STR_ARG(all), STR_ARG(pem));
    }
    return all;
}

static int read_credentials(struct arena *arena, const struct apps *a, const struct json *store,
                            struct runtime_content *ret, struct str *ret_error)
{
    struct str user = json_get_str(store, STR("ApiKey")),
               password = json_get_str(store, STR("Password"));
    Eve__Common__EncryptionBlock *block = NULL;
    int r = instance_open_secrets(arena, a, store, &block);
    if (r < 0) {
        *ret_error = STR("the credentials of its datastore cannot be decrypted");
        return r;
    }
    if (block) {
        user = str_of(block->dsapikey);
        password = str_of(block->dspassword);
    }
    if (user.n || password.n) {
        ret->user = user.p ? user : STR("");
        ret->password = password.p ? password : STR("");
    }
    return 0;
}

static int pick_format(struct arena *arena, const struct content *c, struct runtime_content *ret,
                       struct str *ret_error)
{
    static const struct {
        int format;
        enum runtime_format is;
    } known[] = {{FORMAT_CONTAINER, RUNTIME_OCI}, {FORMAT_QCOW2, RUNTIME_QCOW2},
                 {FORMAT_RAW, RUNTIME_RAW},       {FORMAT_VMDK, RUNTIME_VMDK},
                 {FORMAT_VHD, RUNTIME_VHD},       {FORMAT_VHDX, RUNTIME_VHDX},
                 {FORMAT_ISO, RUNTIME_ISO}};
    for (size_t i = 0; i < N_ELEMENTS(known); i++)
        if (known[i].format == c->format) {
            ret->format = known[i].is;
            return 0;
        }
    *ret_error =
        arena_printf(arena, "images of format %s are not supported here",
                     c->format > 0 && c->format < FORMATS ? format_names[c->format] : "unknown");
    return -EOPNOTSUPP;
}

/* -ENOENT: its datastore is not known (yet). */
static int build(struct arena *arena, const struct apps *a, const struct content *c,
                 struct runtime_content *ret, struct str *ret_error)
{
    const struct json *config = topics_get(arena, a, IN_CONTENT, str_of(c->id));
    const struct json *stores = json_get(config, STR("DatastoreIDList"));
    struct str store_id =
        json_count(stores) ? json_str(&stores->items[0]) : json_get_str(config, STR("DatastoreID"));
    const struct json *store = topics_get(arena, a, IN_DATASTORE, store_id);
    *ret = (struct runtime_content){.id = str_of(c->id)};
    if (!store)
        return -ENOENT;
    int r = pick_format(arena, c, ret, ret_error);
    if (r >= 0)
        r = make_url(arena, store, config, ret, ret_error);
    if (r >= 0)
        r = read_credentials(arena, a, store, ret, ret_error);
    if (r < 0)
        return r;
    struct str sha = json_get_str(config, STR("ContentSha256"));
    ret->sha256 = sha.n ? sha : STR_NONE;
    ret->max_bytes = json_get_int(config, STR("MaxDownloadSize"), 0);
    ret->ca_pem = read_certificates(arena, store);
    return 0;
}

/* ---- carrying it out ----------------------------------------------------------------------- */

static void fetch(struct apps *a, struct content *c)
{
    ARENA_AUTO arena = arena_new();
    struct runtime_content wish;
    struct str error = STR_NONE;
    int r = build(arena, a, c, &wish, &error);
    if (r == -ENOENT && !error.p)
        return; /* waits for its datastore without a word, as EVE does */
    if (r >= 0)
        r = runtime_prepare(a->runtime, &wish);
    if (r >= 0) {
        c->held = c->asked;
        record_save_content(a, str_of(c->id), c->held);
        return;
    }
    if (r == -EBUSY) /* being removed: its last event brings us back */
        return;
    if (r == -ESTALE) {
        (void) runtime_purge(a->runtime, RUNTIME_CONTENT, str_of(c->id));
        return;
    }
    trouble_set(&c->trouble, a,
                error.p ? error : arena_printf(arena, "content: %s", log_errno_text(r)));
    trouble_retry(&c->trouble, a, items_int(a->node->items, "timer.download.retry"));
    c->published = 0;
}

static bool is_used(const struct apps *a, const struct content *c)
{
    LIST_FOR_EACH (&a->volumes, item) {
        const struct volume *v = CONTAINER_OF(item, struct volume, link);
        if (v->content && strcmp(v->content, c->id) == 0)
            return true;
    }
    return false;
}

/* What the downloader would say, while there is something to download. */
static void publish_download(struct apps *a, struct content *c, const struct json *config)
{
    ARENA_AUTO arena = arena_new_with(1024);
    struct json o = json_object();
    if (c->state == RUNTIME_DELIVERED || c->state == RUNTIME_INVALID) {
        topics_unpublish(a, OUT_DOWNLOAD, str_of(c->id));
        return;
    }
    put_str(arena, &o, "ImageSha256", json_get_str(config, STR("ContentSha256")));
    put_copy(arena, &o, config, "DatastoreIDList");
    put_str(arena, &o, "Name", json_get_str(config, STR("RelativeURL")));
    put_int(arena, &o, "State", sw_state_of(c->state));
    put_int(arena, &o, "RefCount", 1);
    put_int(arena, &o, "Progress", c->percent);
    put_int(arena, &o, "TotalSize", json_get_int(config, STR("MaxDownloadSize"), 0));
    put_trouble(arena, &o, &c->trouble, NULL);
    topics_publish(a, OUT_DOWNLOAD, str_of(c->id), &o);
}

static void publish(struct apps *a, struct content *c)
{
    ARENA_AUTO arena = arena_new();
    const struct json *config = topics_get(arena, a, IN_CONTENT, str_of(c->id));
    static const char *const same[] = {"DatastoreIDList", "RelativeURL",       "Format",
                                       "ContentSha256",   "MaxDownloadSize",   "DisplayName",
                                       "CustomMeta",      "GenerationCounter", "IsLocal"};
    struct json o = json_object();
    put_str(arena, &o, "ContentID", str_of(c->id));
    for (size_t i = 0; i < N_ELEMENTS(same); i++)
        put_copy(arena, &o, config, same[i]);
    bool is_there = c->state == RUNTIME_DELIVERED;
    int64_t size = json_get_int(config, STR("MaxDownloadSize"), 0);
    put_bool(arena, &o, "AllDatastoresResolved", true);
    put_int(arena, &o, "State", c->state ? sw_state_of(c->state) : SW_INITIAL);
    put_int(arena, &o, "Progress", is_there ? 100 : c->percent);
    put_int(arena, &o, "TotalSize", size);
    put_int(arena, &o, "CurrentSize", is_there ? size : size / 100 * c->percent);
    put_time(arena, &o, "CreateTime", c->created_us);
    put(arena, &o, "Blobs", blob_list(arena, c));
    put_trouble(arena, &o, &c->trouble, "types.DownloaderStatus");
    topics_publish(a, OUT_CONTENT, str_of(c->id), &o);
    if (!a->node->is_simulated)
        publish_download(a, c, config);
    if (!a->node->is_simulated && c->sha)
        publish_blob(a, c, config);
    c->published = 1;
}

/* Gone from the configuration: its volumes first. */
static void forget(struct apps *a, struct content *c)
{
    if (c->state == RUNTIME_INVALID) {
        topics_unpublish(a, OUT_CONTENT, str_of(c->id));
        topics_unpublish(a, OUT_DOWNLOAD, str_of(c->id));
        forget_blob(a, c);
        record_save_content(a, str_of(c->id), 0);
        content_free(c);
        return;
    }
    if (!is_used(a, c))
        (void) runtime_purge(a->runtime, RUNTIME_CONTENT, str_of(c->id));
}

void content_reconcile(struct apps *a, struct content *c)
{
    if (!c->is_configured) {
        /* What was only found waits for the sweep: its configuration may come yet. */
        if (c->asked || a->is_swept)
            forget(a, c);
        return;
    }
    bool is_other = c->held && c->held != c->asked;
    if (c->state != RUNTIME_INVALID && is_other)
        (void) runtime_purge(a->runtime, RUNTIME_CONTENT, str_of(c->id));
    else if ((c->state == RUNTIME_INVALID || c->trouble.text) && trouble_is_due(&c->trouble, a))
        fetch(a, c);
    if (!c->published)
        publish(a, c);
}
