/* SPDX-License-Identifier: Apache-2.0 */
/* From an HTTP exchange to a device's call and back: which endpoint, is there room, who signed. */
#include <errno.h>
#include <stdarg.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/figures.h"
#include "device/intake.h"
#include "device/server.h"
#include "device/visit.h"

#define PROTO_BINARY STR("application/x-proto-binary")
#define VISIT_ARENA_BYTES ((size_t) 16 * 1024)

/* ---- life ---------------------------------------------------------------------------------- */

static struct device_visit *visit_new(struct device_door *door, struct http_exchange *x)
{
    struct device_visit *v = door->spare;
    if (v) {
        door->spare = v->next_spare;
        door->n_spare--;
        *v = (struct device_visit){0};
    } else {
        v = NEW(struct device_visit);
    }
    const struct clock *clock = door->api->clock;
    v->door = door;
    v->exchange = x;
    v->began_us = clock->monotonic_us(clock);
    v->call.api = door->api;
    v->call.arena = http_arena(x);
    return v;
}

static void visit_free(struct device_visit *v)
{
    struct device_door *door = v->door;
    if (v->is_counted)
        device_server_leave(door->server);
    device_unref(v->call.device);
    pki_cert_free(v->call.certificate);
    arena_free(v->own_arena);
    if (door->n_spare == DEVICE_SPARE_VISITS) {
        mem_free(v);
        return;
    }
    v->next_spare = door->spare;
    door->spare = v;
    door->n_spare++;
}

void device_door_done(struct device_door *door)
{
    while (door->spare) {
        struct device_visit *v = door->spare;
        door->spare = v->next_spare;
        mem_free(v);
    }
}

static void on_peer_gone(void *arg)
{
    struct device_visit *v = arg;
    v->exchange = NULL;
}

void device_visit_keep(struct device_visit *v)
{
    struct device_call *c = &v->call;
    if (v->own_arena)
        return;
    v->own_arena = c->arena = arena_new_with(VISIT_ARENA_BYTES);
    struct str *const strings[] = {&c->payload,
                                   &c->envelope.payload,
                                   &c->envelope.signature,
                                   &c->envelope.sender_hash,
                                   &c->envelope.sender_cert,
                                   &c->source,
                                   &c->request_id,
                                   &c->method,
                                   &c->path};
    bool is_whole = c->payload.p == c->envelope.payload.p;
    for (size_t i = is_whole ? 1 : 0; i < N_ELEMENTS(strings); i++)
        *strings[i] = arena_str(c->arena, *strings[i]);
    if (is_whole)
        c->payload = c->envelope.payload;
    http_on_closed(v->exchange, on_peer_gone, v);
}

/* ---- answers ------------------------------------------------------------------------------- */

int device_refuse(struct device_call *c, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c->reason = arena_vprintf(c->arena, format, args);
    va_end(args);
    slice_unref(c->shared_body);
    c->shared_body = (struct slice){0};
    c->status = status;
    c->content_type = STR("text/plain; charset=utf-8");
    c->body = arena_printf(c->arena, "%.*s\n", STR_ARG(c->reason));
    return 0;
}

int device_answer(struct device_call *c, int status, const ProtobufCMessage *m)
{
    struct str message = pb_pack(c->arena, m);
    c->status = status;
    c->body = message;
    if (c->is_v1)
        return 0;
    struct controller_set *set = controller_certs_get(c->api->certs);
    c->body = envelope_seal(c->arena, &set->signer, message);
    bytes_unref(&set->bytes);
    return c->body.p ? 0 : device_refuse(c, 503, "the answer cannot be signed");
}

static void send(struct device_visit *v)
{
    struct device_call *c = &v->call;
    struct http_header headers[3] = {
        {STR("Content-Type"), c->content_type.p ? c->content_type : PROTO_BINARY}};
    size_t n = 1;
    if (c->retry_after_s)
        headers[n++] = (struct http_header){STR("Retry-After"),
                                            arena_printf(c->arena, "%d", c->retry_after_s)};
    struct slice body = c->shared_body;
    c->shared_body = (struct slice){0};
    if (!body.s.p && c->body.n)
        body = slice_copy(c->body);
    http_reply(TAKE(v->exchange), c->status, headers, n, &body, body.s.n ? 1 : 0);
    if (!body.s.n)
        slice_unref(body);
}

void device_visit_answer(struct device_visit *v)
{
    struct device_call *c = &v->call;
    const struct clock *clock = c->api->clock;
    figures_count(v->door->server, v->route.endpoint, c->status,
                  clock->monotonic_us(clock) - v->began_us);
    if (c->status >= 400)
        log_debug("refused a device", LOG_STR("path", c->path), LOG_INT("status", c->status),
                  LOG_STR("reason", c->reason), LOG_STR("address", c->source));
    if (c->device)
        intake_note_request(v);
    if (v->exchange)
        send(v);
    else
        slice_unref(c->shared_body);
    visit_free(v);
}

/* ---- workers ------------------------------------------------------------------------------- */

static void on_worker_done(void *arg)
{
    struct device_visit *v = arg;
    if (v->call.status)
        device_visit_answer(v);
    else
        v->route.endpoint->finish(v);
}

static void work(void *arg)
{
    struct device_visit *v = arg;
    int r = v->route.endpoint->run(&v->call);
    if (r < 0 || (!v->call.status && !v->route.endpoint->finish))
        (void) device_refuse(&v->call, 503, "the request could not be served");
    loop_post(v->door->loop, on_worker_done, v);
}

static void turn_away(struct device_visit *v, const char *why)
{
    enum device_class class = v->route.endpoint->class;
    figures_shed(v->door->server, class);
    (void) device_refuse(&v->call, 503, "%s", why);
    v->call.retry_after_s = pressure_retry_after_s(class);
    device_visit_answer(v);
}

void device_visit_run(struct device_visit *v)
{
    struct device_api *api = v->door->api;
    device_visit_keep(v);
    bool is_log = v->route.endpoint->class == DEVICE_LOGS;
    if (workers_run(is_log ? api->log_workers : api->workers, work, v) < 0)
        turn_away(v, "too many requests wait to be served");
}

/* ---- who signed ---------------------------------------------------------------------------- */

/* On v1 TLS has shown whose key it is. */
static int identify_v1(struct device_visit *v, struct str certificate)
{
    struct device_call *c = &v->call;
    unsigned char hash[SHA256_BYTES];
    if (!certificate.n)
        return device_refuse(c, 401, "the device API v1 wants a client certificate");
    if (v->route.endpoint->signer == SIGNED_BY_STRANGER) {
        if (pki_cert_parse(certificate, &c->certificate) < 0)
            return device_refuse(c, 401, "the client certificate cannot be read");
        return 0;
    }
    pki_sha256(certificate, hash);
    c->device = roster_by_certificate(c->api->roster, str_range((const char *) hash, sizeof(hash)));
    if (!c->device)
        return device_refuse(c, 401, "no device has this certificate");
    return 0;
}

static int identify_v2(struct device_visit *v, struct str body)
{
    struct device_call *c = &v->call;
    if (envelope_parse(body, &c->envelope) < 0)
        return device_refuse(c, 400, "the body is no AuthContainer");
    c->payload = c->envelope.payload;
    if (v->route.endpoint->signer == SIGNED_BY_STRANGER)
        return 0;
    if (envelope_check_form(&c->envelope) < 0)
        return device_refuse(c, 401, "the envelope has no signature, or no hash of a certificate");
    c->device = roster_by_certificate(c->api->roster, c->envelope.sender_hash);
    if (!c->device)
        return device_refuse(c, 401, "no device has this certificate");
    if (envelope_verify(&c->envelope, c->device->key) < 0) {
        device_unref(TAKE(c->device));
        return device_refuse(c, 401, "the signature is not the device's");
    }
    return 0;
}

/* Who it is has been proved; may it be here. */
static int admit_device(struct device_visit *v)
{
    struct device_call *c = &v->call;
    struct device *d = c->device;
    const struct clock *clock = c->api->clock;
    if (atomic_load(&d->is_gone))
        return device_refuse(c, 401, "no device has this certificate");
    if (!atomic_load(&d->is_active))
        return device_refuse(c, 403, "the device is not active");
    if (v->route.has_uuid && !uuid_eq(&v->route.uuid, &d->uuid))
        return device_refuse(c, 403, "the path names another device");
    atomic_store_explicit(&d->last_seen_us, clock->wall_us(clock), memory_order_relaxed);
    if (!device_server_allows(v->door->server, d)) {
        figures_limited(v->door->server);
        c->retry_after_s = 1;
        return device_refuse(c, 429, "the device sends too many requests");
    }
    return 0;
}

static int identify(struct device_visit *v, const struct http_request *r)
{
    struct device_call *c = &v->call;
    if (v->route.endpoint->signer == SIGNED_BY_NOBODY)
        return 0;
    int done = c->is_v1 ? identify_v1(v, r->peer->certificate) : identify_v2(v, r->body);
    if (c->is_v1)
        c->payload = r->body;
    if (done == 0 && !c->status && c->device)
        done = admit_device(v);
    return done;
}

/* ---- requests ------------------------------------------------------------------------------ */

static bool is_admitted(struct device_visit *v)
{
    struct device_door *door = v->door;
    enum device_class class = v->route.endpoint->class;
    int64_t now_ms = v->began_us / 1000;
    int64_t behind_ms = now_ms - loop_now_ms(door->loop);
    if (!pressure_admits(&door->pressure, class, now_ms, MAX(behind_ms, (int64_t) 0)) ||
        !device_server_enter(door->server, class))
        return false;
    v->is_counted = true;
    return true;
}

static const char *route_problem(int status)
{
    return status == 405   ? "the method is not one of this endpoint"
           : status == 400 ? "the path has a malformed UUID"
                           : "there is no such endpoint";
}

void device_on_request(void *ctx, struct http_exchange *x)
{
    struct device_door *door = ctx;
    const struct http_request *r = http_request(x);
    struct device_visit *v = visit_new(door, x);
    struct device_call *c = &v->call;
    c->method = r->method_text;
    c->path = r->path;
    c->source = r->peer->address;
    c->request_id = http_request_header(r, STR("x-request-id"));
    int status = route_find(r->path, r->method, &v->route);
    c->endpoint = v->route.endpoint;
    c->is_v1 = v->route.is_v1;
    c->app = v->route.app;
    if (status) {
        (void) device_refuse(c, status, "%s", route_problem(status));
        device_visit_answer(v);
        return;
    }
    if (!atomic_load(&door->api->is_ready) && v->route.endpoint->signer != SIGNED_BY_NOBODY) {
        turn_away(v, "the controller is starting");
        return;
    }
    if (!is_admitted(v)) {
        turn_away(v, "the controller is busy");
        return;
    }
    (void) identify(v, r);
    if (c->status)
        device_visit_answer(v);
    else if (v->route.endpoint->begin)
        v->route.endpoint->begin(v);
    else
        device_visit_run(v);
}

/* ---- what is answered at once --------------------------------------------------------------- */

void device_visit_ping(struct device_visit *v)
{
    v->call.status = 200;
    device_visit_answer(v);
}

void device_visit_certs(struct device_visit *v)
{
    struct device_call *c = &v->call;
    struct controller_set *set = controller_certs_get(c->api->certs);
    c->status = 200;
    c->shared_body =
        (struct slice){c->is_v1 ? set->certs_message : set->certs_envelope, &set->bytes};
    device_visit_answer(v);
}
