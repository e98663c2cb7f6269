/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door.h"

#include <errno.h>

#include "api/auth/access.h"
#include "api/call.h"
#include "api/release.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/random.h"
#include "http/gzip.h"

/* As kube-apiserver: smaller answers are not worth it. */
#define GZIP_MIN_BYTES ((size_t) 128 * 1024)
#define MAX_HEADERS 64
/* What the write of a usual object takes. */
#define WRITE_ARENA_BYTES ((size_t) 32 * 1024)

/* ---- headers ------------------------------------------------------------------------------ */

struct answer_headers {
    struct http_header list[MAX_HEADERS];
    size_t n;
};

static void add_header(struct answer_headers *h, const char *name, struct str value)
{
    if (value.n && h->n < MAX_HEADERS)
        h->list[h->n++] = (struct http_header){str_of(name), value};
}

static void add_common(struct answer_headers *h, struct arena *a, struct str content_type,
                       struct str cache_control)
{
    char id[UUID_TEXT_BYTES];
    random_uuid(id);
    h->list[h->n++] =
        (struct http_header){STR("Audit-Id"), arena_str(a, str_of(id)), .is_unique = true};
    add_header(h, "Cache-Control", cache_control.n ? cache_control : STR("no-cache, private"));
    add_header(h, "Content-Type", content_type);
}

/* RFC 7234 5.5: a warning's text is a quoted string. */
static struct str warning_value(struct arena *a, struct str text)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("299 - \""));
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_append_char(&b, '\\');
        if ((unsigned char) text.p[i] >= 0x20)
            buf_append_char(&b, text.p[i]);
    }
    buf_append_char(&b, '"');
    return arena_str(a, buf_str(&b));
}

static void reply_text(struct http_exchange *x, int status, struct answer_headers *h,
                       struct buf *body)
{
    size_t n = body->n;
    struct slice s = slice_adopt(buf_take(body), n);
    http_reply(x, status, h->list, h->n, &s, 1);
}

static void reply_status(struct http_exchange *x, const struct status *st)
{
    struct answer_headers h = {.n = 0};
    struct buf b = {0};
    add_common(&h, http_arena(x), STR("application/json"), STR_NONE);
    if (st->retry_after_s)
        add_header(&h, "Retry-After", arena_printf(http_arena(x), "%d", st->retry_after_s));
    if (st->code == 403)
        add_header(&h, "X-Content-Type-Options", STR("nosniff"));
    status_write(&b, st);
    reply_text(x, st->code, &h, &b);
}

static void reply_not_found_text(struct http_exchange *x)
{
    struct answer_headers h = {.n = 0};
    struct slice s = slice_static(STR("404 page not found\n"));
    add_common(&h, http_arena(x), STR("text/plain; charset=utf-8"), STR_NONE);
    add_header(&h, "X-Content-Type-Options", STR("nosniff"));
    http_reply(x, 404, h.list, h.n, &s, 1);
}

void door_on_refused(void *door, struct http_exchange *x, int status, struct str reason)
{
    (void) door;
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{400, "BadRequest"},
                   {408, "Timeout"},
                   {413, "RequestEntityTooLarge"},
                   {414, "RequestURITooLong"},
                   {431, "RequestHeaderFieldsTooLarge"}};
    struct status st;
    status_init(&st, http_arena(x));
    const char *word = "BadRequest";
    for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
        if (reasons[i].status == status)
            word = reasons[i].reason;
    if (status == 413)
        (void) status_fail(&st, status, word, "Request entity too large: limit is %zu",
                           http_default_limits.body_bytes);
    else
        (void) status_fail(&st, status, word, "%.*s", STR_ARG(reason));
    reply_status(x, &st);
}

/* ---- calls -------------------------------------------------------------------------------- */

struct door_call {
    struct call call;
    struct door *door;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    struct arena *own_arena; /* of a write, which may outlive its exchange; NULL: the exchange's */
};

static struct arena *take_arena(struct door *door)
{
    return door->n_spare_arenas ? door->spare_arenas[--door->n_spare_arenas]
                                : arena_new_with(WRITE_ARENA_BYTES);
}

static void give_arena_back(struct door *door, struct arena *a)
{
    if (!a || door->n_spare_arenas == DOOR_SPARE_ARENAS) {
        arena_free(a);
        return;
    }
    arena_reset(a);
    door->spare_arenas[door->n_spare_arenas++] = a;
}

void door_done(struct door *door)
{
    while (door->n_spare_arenas)
        arena_free(door->spare_arenas[--door->n_spare_arenas]);
}

static void release(struct door_call *d)
{
    struct door *door = d->door;
    struct arena *own = d->own_arena;
    call_done(&d->call);
    give_arena_back(door, own);
}

static size_t body_bytes(const struct call_reply *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_slices; i++)
        n += r->body[i].s.n;
    return n;
}

/* Replaces the slices by one compressed when it pays and the client takes it. */
static bool compress(struct http_exchange *x, struct call_reply *r)
{
    struct str accepted = http_request_header(http_request(x), STR("accept-encoding"));
    struct slice packed = {0};
    if (!accepted.n || body_bytes(r) < GZIP_MIN_BYTES || !media_accepts_gzip(accepted) ||
        http_gzip(r->body, r->n_slices, &packed) < 0)
        return false;
    for (size_t i = 0; i < r->n_slices; i++)
        slice_unref(r->body[i]);
    r->body[0] = packed;
    r->n_slices = 1;
    return true;
}

/* Whoever takes nothing but protobuf can at least read that we do not write it. */
static bool is_refused_protobuf(const struct call *c)
{
    return c->status.code == 406 && c->registry && media_names_protobuf(c->in.accept);
}

static void write_failure(struct call *c, struct buf *b)
{
    BUF_AUTO text = {0};
    if (!is_refused_protobuf(c)) {
        status_write(b, &c->status);
        return;
    }
    status_write(&text, &c->status);
    protobuf_write_status(b, c->registry->protobuf, json_parse_quick(c->arena, buf_str(&text)));
}

static void answer(struct door_call *d)
{
    struct call *c = &d->call;
    struct http_exchange *x = d->exchange;
    struct answer_headers h = {.n = 0};
    struct str failure_type = is_refused_protobuf(c) ? STR("application/vnd.kubernetes.protobuf")
                                                     : STR("application/json");
    add_common(&h, c->arena, c->status.code ? failure_type : c->reply.content_type, STR_NONE);
    for (const struct call_warning *w = c->warnings; w; w = w->next)
        add_header(&h, "Warning", warning_value(c->arena, w->text));
    if (c->status.code) {
        struct buf b = {0};
        if (c->status.retry_after_s)
            add_header(&h, "Retry-After", arena_printf(c->arena, "%d", c->status.retry_after_s));
        write_failure(c, &b);
        reply_text(x, c->status.code, &h, &b);
    } else if (c->reply.watch) {
        watch_begin(d->door->hub, x, c->reply.watch, h.list, h.n);
    } else {
        if (compress(x, &c->reply)) {
            add_header(&h, "Content-Encoding", STR("gzip"));
            add_header(&h, "Vary", STR("Accept-Encoding"));
        }
        http_reply(x, c->reply.code, h.list, h.n, c->reply.body, c->reply.n_slices);
        c->reply.n_slices = 0; /* taken over */
    }
}

static void on_call_done(struct call *c)
{
    struct door_call *d = CONTAINER_OF(c, struct door_call, call);
    if (d->exchange) {
        http_on_closed(d->exchange, NULL, NULL);
        answer(d);
    }
    release(d);
}

static void on_resumed(void *arg)
{
    struct door_call *d = arg;
    if (d->exchange)
        call_continue(&d->call);
    else
        release(d);
}

static void resume(struct call *c)
{
    struct door_call *d = CONTAINER_OF(c, struct door_call, call);
    loop_post(d->door->loop, on_resumed, d);
}

static void on_peer_gone(void *arg)
{
    struct door_call *d = arg;
    d->exchange = NULL;
}

/* A read is over before its exchange can be; a write may be on its way to the disk when its peer
 * goes. */
static bool is_write(enum verb v)
{
    return v != VERB_GET && v != VERB_LIST && v != VERB_WATCH;
}

static void run_call(struct door *door, struct http_exchange *x, const struct call_input *in)
{
    struct arena *own = is_write(in->verb) ? take_arena(door) : NULL;
    struct arena *a = own ? own : http_arena(x);
    struct door_call *d = ARENA_NEW(a, struct door_call);
    d->door = door;
    d->exchange = x;
    d->own_arena = own;
    d->call.api = door->api;
    d->call.arena = a;
    d->call.in = *in;
    d->call.on_done = on_call_done;
    d->call.resume = resume;
    if (own) {
        http_on_closed(x, on_peer_gone, d);
        call_input_copy(own, &d->call.in);
    }
    call_run(&d->call);
}

/* ---- routing ------------------------------------------------------------------------------ */

static bool verb_of(const struct http_request *r, const struct request_path *p,
                    const struct request_query *q, enum verb *ret)
{
    bool has_name = p->name.n > 0;
    bool watches = p->is_watch || (!has_name && request_flag(q, "watch"));
    switch (r->method) {
    case HTTP_GET:
        *ret = watches ? VERB_WATCH : has_name ? VERB_GET : VERB_LIST;
        return true;
    case HTTP_POST:
        *ret = VERB_CREATE;
        return !has_name || p->subresource.n;
    case HTTP_PUT:
        *ret = VERB_UPDATE;
        return has_name;
    case HTTP_PATCH:
        *ret = VERB_PATCH;
        return has_name;
    case HTTP_DELETE:
        *ret = has_name ? VERB_DELETE : VERB_DELETE_COLLECTION;
        return true;
    default:
        return false;
    }
}

static bool serves_native(const struct registry *r, struct str group, struct str version)
{
    const struct registry_group *g = registry_group(r, group);
    for (size_t i = 0; g && i < g->n_versions; i++)
        if (str_eq(g->versions[i].version, version))
            return g->versions[i].n_kinds && g->versions[i].kinds[0]->is_native;
    return false;
}

static void handle_resource(struct door *door, struct http_exchange *x, struct call_input *in)
{
    const struct http_request *r = http_request(x);
    struct status st;
    status_init(&st, http_arena(x));
    CLEANUP(registry_unrefp) struct registry *registry = api_registry(door->api);
    bool is_served =
        registry_find(registry, in->path.group, in->path.version, in->path.resource) != NULL;
    if (!is_served && in->path.group.n &&
        !serves_native(registry, in->path.group, in->path.version)) {
        reply_not_found_text(x);
        return;
    }
    if (!verb_of(r, &in->path, &in->query, &in->verb)) {
        if (is_served)
            (void) status_no_method(&st);
        else
            (void) status_no_resource(&st);
        reply_status(x, &st);
        return;
    }
    struct str reason = STR_NONE;
    if (access_check_resource(api_rbac(door->api), in, &st, &reason) < 0) {
        reply_status(x, &st);
        return;
    }
    in->accept = http_request_header(r, STR("accept"));
    in->content_type = http_request_header(r, STR("content-type"));
    in->user_agent = http_request_header(r, STR("user-agent"));
    in->body = r->body;
    run_call(door, x, in);
}

static void reply_document(struct http_exchange *x, struct document_reply *d)
{
    struct answer_headers h = {.n = 0};
    add_common(&h, http_arena(x), d->content_type, d->cache_control);
    add_header(&h, "ETag", d->etag);
    add_header(&h, "Expires", d->expires);
    add_header(&h, "Location", d->location);
    if (d->vary_accept)
        add_header(&h, "Vary", STR("Accept"));
    if (d->is_gzip)
        add_header(&h, "Content-Encoding", STR("gzip"));
    if (d->no_sniff)
        add_header(&h, "X-Content-Type-Options", STR("nosniff"));
    http_reply(x, d->status, h.list, h.n, &d->body, d->body.s.n ? 1 : 0);
}

/* The documents of the server, tried in turn. -ENOENT: the path is nobody's. */
static int find_document(struct door *door, struct http_exchange *x, struct str path,
                         struct document_reply *ret, struct status *st)
{
    const struct http_request *r = http_request(x);
    struct arena *a = http_arena(x);
    struct document_request q = {
        .method = r->method,
        .path = path,
        .query = r->query,
        .accept = http_request_header(r, STR("accept")),
        .accept_encoding = http_request_header(r, STR("accept-encoding")),
        .if_none_match = http_request_header(r, STR("if-none-match")),
        .now_s = api_clock(door->api)->wall_us(api_clock(door->api)) / 1000000,
    };
    if (health_get(a, door->health, &q, ret))
        return 0;
    if (str_is(path, "/version") || str_is(path, "/version/"))
        return release_get(&q, ret, st);
    CLEANUP(documents_unrefp) struct documents *d = api_server_documents(door->server);
    if (openapi_get(a, d->openapi, &q, ret))
        return 0;
    return discovery_get(a, d->discovery, &q, ret, st);
}

/* Below /api and the versions of native kinds a missing thing is a Status, elsewhere a missing
 * page. */
static bool is_below_native(struct door *door, struct str path)
{
    struct str rest = str_from(path, 6), group = STR_NONE, version = STR_NONE;
    if (str_starts_with(path, STR("/api/")))
        return true;
    if (!str_starts_with(path, STR("/apis/")) || !str_split(&rest, '/', &group) ||
        !str_split(&rest, '/', &version))
        return false;
    CLEANUP(registry_unrefp) struct registry *registry = api_registry(door->api);
    return serves_native(registry, group, version);
}

static void handle_path(struct door *door, struct http_exchange *x, struct call_input *in,
                        struct str path)
{
    struct status st;
    struct document_reply d = {0};
    status_init(&st, http_arena(x));
    struct str reason = STR_NONE;
    int r = access_check_path(api_rbac(door->api), &in->user, http_request(x)->method_text, path,
                              &st, &reason);
    if (r == 0)
        r = find_document(door, x, path, &d, &st);
    if (r == 0)
        reply_document(x, &d);
    else if (st.code)
        reply_status(x, &st);
    else if (is_below_native(door, path)) {
        (void) status_no_resource(&st);
        reply_status(x, &st);
    } else
        reply_not_found_text(x);
}

void door_on_request(void *ctx, struct http_exchange *x)
{
    struct door *door = ctx;
    const struct http_request *r = http_request(x);
    struct arena *a = http_arena(x);
    struct call_input in = {0};
    struct str path = STR_NONE;
    struct status st;
    status_init(&st, a);
    struct user real = {0};
    bool impersonates = false;
    if (access_authenticate(api_authenticator(door->api), r, false, &real, &st) < 0 ||
        access_impersonate(api_rbac(door->api), r, &real, &in.user, &impersonates, &st) < 0) {
        reply_status(x, &st);
        return;
    }
    if (request_decode_path(a, r->path, &path) < 0) {
        (void) status_bad_request(&st, "the path has a malformed percent escape");
        reply_status(x, &st);
        return;
    }
    in.query = request_parse_query(a, r->query);
    request_parse_path(path, &in.path);
    if (in.path.is_resource)
        handle_resource(door, x, &in);
    else
        handle_path(door, x, &in, path);
}
