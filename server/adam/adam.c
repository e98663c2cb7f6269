/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>

#include "adam/adam_internal.h"
#include "base/alloc.h"
#include "base/buf.h"

#define PREFIX "/admin"

/* ---- who answers what ------------------------------------------------------------------------ */

/* Segments behind /admin/; `*` is anything but nothing. The first of a device's paths is its uuid.
 */
static const struct route {
    enum http_method method;
    const char *path;
    adam_handler *handler;
} routes[] = {
    {HTTP_GET, "onboard", adam_onboard_list},
    {HTTP_GET, "onboard/*", adam_onboard_get},
    {HTTP_POST, "onboard", adam_onboard_add},
    {HTTP_DELETE, "onboard", adam_onboard_clear},
    {HTTP_DELETE, "onboard/*", adam_onboard_remove},
    {HTTP_GET, "device", adam_device_list},
    {HTTP_GET, "device/*", adam_device_get},
    {HTTP_POST, "device", adam_device_add},
    {HTTP_DELETE, "device", adam_device_clear},
    {HTTP_DELETE, "device/*", adam_device_remove},
    {HTTP_GET, "device/*/config", adam_config_get},
    {HTTP_PUT, "device/*/config", adam_config_set},
    {HTTP_GET, "device/*/logs", adam_records_logs},
    {HTTP_GET, "device/*/info", adam_records_info},
    {HTTP_GET, "device/*/metrics", adam_records_metrics},
    {HTTP_GET, "device/*/requests", adam_records_requests},
    {HTTP_GET, "device/*/flowlogs", adam_records_flowlogs},
    {HTTP_GET, "device/*/app/*/logs", adam_records_app_logs},
    {HTTP_GET, "device/*/certs", adam_device_certs},
    {HTTP_GET, "device/*/options", adam_options_get},
    {HTTP_PUT, "device/*/options", adam_options_set},
    {HTTP_GET, "options", adam_global_options_get},
    {HTTP_PUT, "options", adam_global_options_set},
};

static bool match(struct str path, const char *pattern, struct str arguments[ADAM_MAX_ARGUMENTS])
{
    struct str wanted = str_of(pattern), have, want;
    size_t n = 0;
    if (str_ends_with(path, STR("/")))
        return false;
    while (str_split(&wanted, '/', &want)) {
        if (!str_split(&path, '/', &have) || !have.n)
            return false;
        if (str_is(want, "*"))
            arguments[n++] = have;
        else if (!str_eq(want, have))
            return false;
    }
    return path.n == 0;
}

static bool is_of_device(const struct route *r)
{
    return str_starts_with(str_of(r->path), STR("device/*"));
}

/* ---- answers --------------------------------------------------------------------------------- */

int adam_answer(struct adam_call *c, int code, struct str content_type, struct str body)
{
    *c->answer = (struct annex_answer){.code = code, .content_type = content_type, .body = body};
    return 0;
}

int adam_done(struct adam_call *c, int code)
{
    return adam_answer(c, code, ADAM_TEXT, STR(""));
}

int adam_refuse(struct adam_call *c, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const struct str text = arena_vprintf(c->arena, format, args);
    va_end(args);
    return adam_answer(c, code, ADAM_TEXT, arena_printf(c->arena, "%.*s\n", STR_ARG(text)));
}

int adam_refuse_status(struct adam_call *c, const struct status *st)
{
    return adam_refuse(c, st->code >= 400 ? st->code : 500, "%.*s", STR_ARG(st->message));
}

struct str adam_media_type(struct str content_type)
{
    struct str rest = content_type, type = STR("");
    return str_split(&rest, ';', &type) ? str_trim(type) : STR("");
}

bool adam_wants_binary(struct str accept)
{
    struct str rest = accept, part = STR("");
    bool is_binary = false;
    while (str_split(&rest, ',', &part)) {
        const struct str type = adam_media_type(part);
        if (str_eq_nocase(type, ADAM_JSON) || str_is(type, "*/*") || str_is(type, "application/*"))
            return false;
        is_binary |= str_eq_nocase(type, ADAM_BINARY);
    }
    return is_binary;
}

/* ---- the device of a path -------------------------------------------------------------------- */

static int refuse_unknown(struct adam_call *c)
{
    return c->request->method == HTTP_PUT
               ? adam_refuse(c, 404, "device not found %.*s", STR_ARG(c->arguments[0]))
               : adam_refuse(c, 404, "Not Found");
}

/* The roster knows the name, the store whether it is still so. 1: found; 0: answered. */
static int find_device(struct adam_call *c)
{
    struct status st;
    struct uuid uuid;
    const struct adam *adam = c->adam;
    const struct adam_place place = adam_place_of(c, &st);
    if (uuid_parse(c->arguments[0], &uuid) < 0)
        return adam_refuse(c, 400, "bad UUID: %.*s", STR_ARG(c->arguments[0]));
    c->device = roster_by_uuid(adam->options.roster, &uuid);
    if (!c->device || !str_eq(c->device->namespace, adam->namespace))
        return refuse_unknown(c);
    const int r = adam_get(&place, STR("devices"), c->device->name, &c->object);
    if (r == -ENOENT)
        return refuse_unknown(c);
    if (r < 0)
        return adam_refuse_status(c, &st);
    const struct str is = json_str(json_at(c->object, "status", "uuid", NULL));
    return str_is(is, c->device->uuid_text) ? 1 : refuse_unknown(c);
}

/* ---- the annex ------------------------------------------------------------------------------- */

static bool is_ours(struct str path)
{
    return str_starts_with(path, STR(PREFIX)) &&
           (path.n == sizeof(PREFIX) - 1 || path.p[sizeof(PREFIX) - 1] == '/');
}

static int claim(void *ctx, struct arena *a, struct str path, enum http_method method,
                 struct request_path *resource, enum verb *verb, struct status *st)
{
    (void) ctx, (void) a, (void) method, (void) resource, (void) verb, (void) st;
    return is_ours(path) ? 0 : -ENOENT;
}

static bool is_loopback(struct str source)
{
    BUF_AUTO text = {0};
    struct in_addr v4;
    struct in6_addr v6;
    buf_append_str(&text, source);
    if (inet_pton(AF_INET, text.n ? text.p : "", &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, text.n ? text.p : "", &v6) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) ||
           (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

static bool is_open(void *ctx, struct str path, struct str source)
{
    const struct adam *adam = ctx;
    return adam->options.is_open_on_loopback && is_ours(path) && is_loopback(source);
}

static int run(struct adam_call *c, const struct route *r)
{
    if (is_of_device(r) && find_device(c) == 0)
        return 0;
    return r->handler(c);
}

static int answer(void *ctx, const struct annex_request *q, struct annex_answer *ret,
                  struct status *st)
{
    struct adam_call c = {.adam = ctx, .arena = q->arena, .request = q, .answer = ret};
    const struct str path = str_from(q->path, sizeof(PREFIX));
    bool has_path = false;
    (void) st; /* Adam's tools are told in plain text */
    for (size_t i = 0; i < N_ELEMENTS(routes); i++) {
        if (!match(path, routes[i].path, c.arguments))
            continue;
        has_path = true;
        if (routes[i].method != q->method)
            continue;
        const int r = run(&c, &routes[i]);
        device_unref(c.device);
        return r;
    }
    return has_path ? adam_done(&c, 405) : adam_refuse(&c, 404, "Not Found");
}

struct adam *adam_new(const struct adam_options *o)
{
    struct adam *a = NEW(struct adam);
    const struct str namespace = str_of(o->namespace);
    a->options = *o;
    a->namespace = str_range(mem_dup(namespace.p, namespace.n), namespace.n);
    a->options.namespace = NULL;
    return a;
}

void adam_free(struct adam *a)
{
    if (!a)
        return;
    mem_free((char *) (uintptr_t) a->namespace.p);
    mem_free(a);
}

struct annex adam_annex(struct adam *a)
{
    return (struct annex){.ctx = a, .claim = claim, .is_open = is_open, .answer = answer};
}
