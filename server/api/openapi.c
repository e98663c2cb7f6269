/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi.h"

#include <stdlib.h>
#include <time.h>
#include <zlib.h>

#include "api/media.h"
#include "api/openapi_internal.h"
#include "api/request.h"
#include "base/alloc.h"

#define GZIP_LEVEL 4 /* the texts repeat themselves: more effort gains little */
#define GZIP_WINDOW (MAX_WBITS + 16)
#define CACHE_SECONDS (365 * 24 * 3600) /* of an answer at its hashed URL, which never changes */

#define V2_PROTOBUF "com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define V2_PROTOBUF_OLD "com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define V3_PROTOBUF "com.github.proto-openapi.spec.v3.v1.0+protobuf"
#define V3_PROTOBUF_OLD "com.github.proto-openapi.spec.v3@v1.0+protobuf"

enum form { FORM_JSON, FORM_PROTOBUF, FORM_COUNT };

/* One encoded document. */
struct encoded {
    struct slice gzip;
    size_t n_bytes; /* uncompressed */
    char etag[2 * 64 +
              3]; /* of the JSON form, with quotes: both forms share it, as kube-apiserver's do */
};

/* What a document is of. */
enum subject {
    SUBJECT_V2,
    SUBJECT_CORE,
    SUBJECT_GROUPS,
    SUBJECT_RELEASE,
    SUBJECT_GROUP,
    SUBJECT_GROUP_VERSION
};

struct slot {
    struct str path; /* below /openapi/v3/ */
    enum subject subject;
    const struct registry_group *group;
    const struct registry_version *version;
    _Atomic(struct encoded *) forms[FORM_COUNT];
};

struct openapi {
    atomic_uint refs;
    struct registry *registry;
    struct arena *arena;
    struct slot v2;
    struct slot *v3;
    size_t n_v3;
    _Atomic(struct encoded *) index; /* of /openapi/v3 */
};

/* ---- slots -------------------------------------------------------------------------------- */

static bool is_native_group(const struct registry_group *g)
{
    return g->n_versions && g->versions[0].n_kinds && g->versions[0].kinds[0]->is_native;
}

static void add_slot(struct openapi *o, struct str path, enum subject subject,
                     const struct registry_group *g, const struct registry_version *v)
{
    struct slot *s = &o->v3[o->n_v3++];
    s->path = path;
    s->subject = subject;
    s->group = g;
    s->version = v;
}

static void add_group_slots(struct openapi *o, const struct registry_group *g)
{
    struct str root = STR("api");
    if (g->name.n) {
        root = arena_printf(o->arena, "apis/%.*s", STR_ARG(g->name));
        if (is_native_group(g))
            add_slot(o, root, SUBJECT_GROUP, g, NULL);
    }
    for (size_t i = 0; i < g->n_versions; i++)
        add_slot(
            o, arena_printf(o->arena, "%.*s/%.*s", STR_ARG(root), STR_ARG(g->versions[i].version)),
            SUBJECT_GROUP_VERSION, g, &g->versions[i]);
}

struct openapi *openapi_new(struct registry *r)
{
    struct openapi *o = NEW(struct openapi);
    atomic_init(&o->refs, 1);
    o->registry = registry_ref(r);
    o->arena = arena_new();
    size_t n = 3;
    for (size_t i = 0; i < r->n_groups; i++)
        n += 1 + r->groups[i].n_versions;
    o->v3 = ARENA_ARRAY(o->arena, struct slot, n);
    o->v2.subject = SUBJECT_V2;
    add_slot(o, STR("api"), SUBJECT_CORE, NULL, NULL);
    add_slot(o, STR("apis"), SUBJECT_GROUPS, NULL, NULL);
    add_slot(o, STR("version"), SUBJECT_RELEASE, NULL, NULL);
    for (size_t i = 0; i < r->n_groups; i++)
        add_group_slots(o, &r->groups[i]);
    return o;
}

struct openapi *openapi_ref(struct openapi *o)
{
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

static void encoded_free(struct encoded *e)
{
    if (!e)
        return;
    slice_unref(e->gzip);
    mem_free(e);
}

static void slot_done(struct slot *s)
{
    for (int i = 0; i < FORM_COUNT; i++)
        encoded_free(atomic_load(&s->forms[i]));
}

void openapi_unref(struct openapi *o)
{
    if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
        return;
    slot_done(&o->v2);
    for (size_t i = 0; i < o->n_v3; i++)
        slot_done(&o->v3[i]);
    encoded_free(atomic_load(&o->index));
    arena_free(o->arena);
    registry_unref(o->registry);
    mem_free(o);
}

/* ---- encoding ----------------------------------------------------------------------------- */

static struct slice compress_text(struct str text)
{
    z_stream z = {0};
    BUF_AUTO out = {0};
    int r =
        deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
    if (r != Z_OK)
        abort(); /* zlib fails here only without memory */
    const size_t bound = deflateBound(&z, text.n);
    z.next_in = (unsigned char *) text.p;
    z.avail_in = (uInt) text.n;
    z.next_out = (unsigned char *) buf_reserve(&out, bound);
    z.avail_out = (uInt) bound;
    r = deflate(&z, Z_FINISH);
    const size_t n = bound - z.avail_out;
    (void) deflateEnd(&z);
    if (r != Z_STREAM_END)
        abort();
    return slice_copy(str_range(out.p, n));
}

static struct slice expand(const struct encoded *e)
{
    char *text = mem_alloc(e->n_bytes + 1);
    z_stream z = {.next_in = (unsigned char *) e->gzip.s.p,
                  .avail_in = (uInt) e->gzip.s.n,
                  .next_out = (unsigned char *) text,
                  .avail_out = (uInt) e->n_bytes};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK || inflate(&z, Z_FINISH) != Z_STREAM_END)
        abort(); /* our own bytes */
    (void) inflateEnd(&z);
    return slice_adopt(text, e->n_bytes);
}

/* etag: STR_NONE: of the text itself. */
static struct encoded *encoded_new(struct arena *a, struct str text, struct str etag)
{
    struct encoded *e = NEW(struct encoded);
    e->gzip = compress_text(text);
    e->n_bytes = text.n;
    if (!etag.n)
        etag = document_etag(a, text);
    memcpy(e->etag, etag.p, MIN(etag.n, sizeof(e->etag) - 1));
    return e;
}

/* The first to finish wins; the same document built twice is the same. */
static const struct encoded *publish(_Atomic(struct encoded *) *at, struct encoded *e)
{
    struct encoded *older = NULL;
    if (atomic_compare_exchange_strong(at, &older, e))
        return e;
    encoded_free(e);
    return older;
}

static struct json build_v2(struct openapi_builder *b)
{
    openapi_add_core_versions(b);
    openapi_add_groups(b);
    openapi_add_release(b);
    for (size_t g = 0; g < b->registry->n_groups; g++) {
        const struct registry_group *group = &b->registry->groups[g];
        if (group->name.n && is_native_group(group))
            openapi_add_group(b, group);
        for (size_t v = 0; v < group->n_versions; v++)
            openapi_add_group_version(b, group, &group->versions[v]);
    }
    return openapi_v2_finish(b);
}

static struct json build(struct openapi_builder *b, const struct slot *s)
{
    bool is_native = true;
    switch (s->subject) {
    case SUBJECT_V2:
        return build_v2(b);
    case SUBJECT_CORE:
        openapi_add_core_versions(b);
        break;
    case SUBJECT_GROUPS:
        openapi_add_groups(b);
        break;
    case SUBJECT_RELEASE:
        openapi_add_release(b);
        break;
    case SUBJECT_GROUP:
        openapi_add_group(b, s->group);
        break;
    case SUBJECT_GROUP_VERSION:
        b->group = s->group;
        b->group_version = s->version;
        is_native = is_native_group(s->group);
        openapi_add_group_version(b, s->group, s->version);
        break;
    }
    return openapi_v3_finish(b, is_native);
}

static const struct encoded *slot_encoded(struct openapi *o, struct slot *s, enum form form)
{
    const struct encoded *e = atomic_load(&s->forms[form]);
    if (e)
        return e;
    const struct str etag =
        form == FORM_JSON ? STR_NONE : str_of(slot_encoded(o, s, FORM_JSON)->etag);
    const enum openapi_version version = s->subject == SUBJECT_V2 ? OPENAPI_V2 : OPENAPI_V3;
    ARENA_AUTO a = arena_new();
    struct openapi_builder b;
    openapi_builder_init(&b, a, o->registry, version);
    const struct json document = build(&b, s);
    BUF_AUTO text = {0};
    if (form == FORM_JSON)
        json_write(&text, &document);
    else
        openapi_proto_write(&text, version, &document);
    openapi_builder_done(&b);
    return publish(&s->forms[form], encoded_new(a, buf_str(&text), etag));
}

/* ---- the index ---------------------------------------------------------------------------- */

static struct str without_quotes(const char *etag)
{
    const struct str s = str_of(etag);
    return str_sub(s, 1, s.n - 1);
}

static struct str slot_url(struct arena *a, const struct slot *s, const struct encoded *e)
{
    return arena_printf(a, "/openapi/v3/%.*s?hash=%.*s", STR_ARG(s->path),
                        STR_ARG(without_quotes(e->etag)));
}

static const struct encoded *index_encoded(struct openapi *o)
{
    const struct encoded *e = atomic_load(&o->index);
    if (e)
        return e;
    ARENA_AUTO a = arena_new();
    struct json index = json_object(), paths = json_object();
    for (size_t i = 0; i < o->n_v3; i++) {
        struct json path = json_object();
        const struct str url = slot_url(a, &o->v3[i], slot_encoded(o, &o->v3[i], FORM_JSON));
        json_append_member(a, &path, STR("serverRelativeURL"), json_string(url));
        json_append_member(a, &paths, o->v3[i].path, path);
    }
    json_sort_members(&paths);
    json_append_member(a, &index, STR("paths"), paths);
    return publish(&o->index, encoded_new(a, json_text(a, &index), STR_NONE));
}

/* ---- answering ---------------------------------------------------------------------------- */

static void reply_encoded(struct arena *a, const struct document_request *q,
                          const struct encoded *e, struct document_reply *ret)
{
    ret->etag = arena_str(a, str_of(e->etag));
    if (document_is_unchanged(q, ret->etag)) {
        ret->status = 304;
        ret->content_type = STR_NONE;
        return;
    }
    ret->status = 200;
    ret->is_gzip = media_accepts_gzip(q->accept_encoding);
    ret->body = ret->is_gzip ? slice_ref(e->gzip) : expand(e);
}

/* False: nothing acceptable. */
static bool choose_form(struct arena *a, struct str accept, enum openapi_version version,
                        enum form *ret_form)
{
    const struct str application = STR("application");
    struct media_range *ranges;
    const size_t n = media_parse_accept(a, str_trim(accept).n ? accept : STR("*/*"), &ranges);
    for (size_t i = 0; i < n; i++) {
        if (media_range_matches(&ranges[i], application, STR("json"))) {
            *ret_form = FORM_JSON;
            return true;
        }
        if (media_range_matches(&ranges[i], application,
                                version == OPENAPI_V2 ? STR(V2_PROTOBUF) : STR(V3_PROTOBUF)) ||
            media_range_matches(&ranges[i], application,
                                version == OPENAPI_V2 ? STR(V2_PROTOBUF_OLD)
                                                      : STR(V3_PROTOBUF_OLD))) {
            *ret_form = FORM_PROTOBUF;
            return true;
        }
    }
    return false;
}

static struct str content_type(enum openapi_version version, enum form form)
{
    if (form == FORM_JSON)
        return STR("application/json");
    return version == OPENAPI_V2 ? STR("application/" V2_PROTOBUF)
                                 : STR("application/" V3_PROTOBUF);
}

static struct str http_date(struct arena *a, int64_t at_s)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t t = (time_t) at_s;
    struct tm tm;
    if (!gmtime_r(&t, &tm))
        return STR_NONE;
    return arena_printf(a, "%s, %02d %s %d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
                        months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* With the current hash in the URL the answer may be kept for ever; with another the client is sent
 * to the current one. */
static bool judge_hash(struct arena *a, const struct document_request *q, const struct slot *s,
                       const struct encoded *e, struct document_reply *ret)
{
    const struct request_query query = request_parse_query(a, q->query);
    const struct str hash = request_parameter(&query, "hash");
    if (!hash.n)
        return true;
    if (!str_eq(hash, without_quotes(e->etag))) {
        ret->status = 301;
        ret->etag = arena_str(a, str_of(e->etag));
        ret->location = slot_url(a, s, e);
        return false;
    }
    ret->cache_control = STR("public, immutable");
    ret->expires = http_date(a, q->now_s + CACHE_SECONDS);
    return true;
}

static void reply_slot(struct arena *a, struct openapi *o, struct slot *s,
                       const struct document_request *q, struct document_reply *ret)
{
    const enum openapi_version version = s->subject == SUBJECT_V2 ? OPENAPI_V2 : OPENAPI_V3;
    enum form form;
    if (!choose_form(a, q->accept, version, &form)) {
        ret->status = 406;
        return;
    }
    ret->vary_accept = true;
    ret->content_type = content_type(version, form);
    const struct encoded *e = slot_encoded(o, s, form);
    if (version == OPENAPI_V3 && !judge_hash(a, q, s, e, ret))
        return;
    reply_encoded(a, q, e, ret);
}

bool openapi_get(struct arena *a, struct openapi *o, const struct document_request *q,
                 struct document_reply *ret_reply)
{
    const struct str v3 = STR("/openapi/v3");
    struct document_reply reply = {.status = 404};
    if (str_is(q->path, "/openapi/v2")) {
        reply_slot(a, o, &o->v2, q, &reply);
    } else if (str_eq(q->path, v3)) {
        reply.content_type = STR("text/plain; charset=utf-8");
        reply_encoded(a, q, index_encoded(o), &reply);
    } else if (str_starts_with(q->path, STR("/openapi/v3/"))) {
        const struct str below = str_from(q->path, v3.n + 1);
        for (size_t i = 0; i < o->n_v3; i++)
            if (str_eq(o->v3[i].path, below))
                reply_slot(a, o, &o->v3[i], q, &reply);
    } else {
        return false;
    }
    *ret_reply = reply;
    return true;
}
