/* SPDX-License-Identifier: Apache-2.0 */
#include "api/visit.h"

#include "api/access_log.h"
#include "base/alloc.h"
#include "base/random.h"

/* What the write of a usual object takes. */
#define WRITE_ARENA_BYTES ((size_t) 32 * 1024)

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

/* Not in the exchange's memory: that goes with the answer, the visit a little later. */
static struct visit *take_visit(struct door *door)
{
    if (!door->n_spare_visits)
        return NEW(struct visit);
    struct visit *v = door->spare_visits[--door->n_spare_visits];
    *v = (struct visit){0};
    return v;
}

static void unref(struct visit *v)
{
    struct door *door = v->door;
    if (--v->refs)
        return;
    if (door->n_spare_visits == DOOR_SPARE_VISITS)
        mem_free(v);
    else
        door->spare_visits[door->n_spare_visits++] = v;
}

void door_done(struct door *door)
{
    while (door->n_spare_visits)
        mem_free(door->spare_visits[--door->n_spare_visits]);
    while (door->n_spare_arenas)
        arena_free(door->spare_arenas[--door->n_spare_arenas]);
}

static void on_peer_gone(void *arg)
{
    struct visit *v = arg;
    v->exchange = NULL;
}

/* The client's own Audit-ID, or a new one. */
static void choose_id(struct visit *v, const struct http_request *r)
{
    struct str given = http_request_header(r, STR("audit-id"));
    bool is_uuid = given.n == UUID_TEXT_BYTES - 1;
    for (size_t i = 0; i < given.n && is_uuid; i++)
        is_uuid = given.p[i] == '-' || str_find(STR("0123456789abcdefABCDEF"), given.p[i]) >= 0;
    if (is_uuid)
        memcpy(v->record.id, given.p, given.n);
    else
        random_uuid(v->record.id);
}

/* A read is over before its exchange can be; a write may be on its way to the disk when its peer
 * goes. */
struct visit *visit_new(struct door *door, struct http_exchange *x)
{
    const struct http_request *r = http_request(x);
    const struct clock *clock = api_clock(door->api);
    bool is_read = r->method == HTTP_GET || r->method == HTTP_HEAD;
    struct arena *own = is_read ? NULL : take_arena(door);
    struct visit *v = take_visit(door);
    v->door = door;
    v->refs = 1;
    v->exchange = x;
    v->own_arena = own;
    v->arena = own ? own : http_arena(x);
    v->began_us = clock->monotonic_us(clock);
    v->record.received_us = clock->wall_us(clock);
    choose_id(v, r);
    if (own)
        http_on_closed(x, on_peer_gone, v);
    return v;
}

void visit_outlive(struct visit *v)
{
    if (v->own_arena)
        return;
    v->arena = v->own_arena = take_arena(v->door);
    v->real = user_copy(v->arena, &v->real);
    http_on_closed(v->exchange, on_peer_gone, v);
}

void visit_free(struct visit *v)
{
    if (v->call.api)
        call_done(&v->call);
    give_arena_back(v->door, v->own_arena);
    unref(v);
}

/* ---- on the record ------------------------------------------------------------------------ */

/* What the figures tell requests apart by. One that was turned away has no call: its kind is looked
 * up, so that it is counted as what it wanted. */
static void measure(struct visit *v, struct registry *registry)
{
    const struct request_path *p = &v->in.path;
    const struct call *c = &v->call;
    v->measure = (struct request_measure){
        .registry = registry,
        .kind = c->registry ? c->kind : NULL,
        .subresource = c->registry ? c->subresource : NULL,
        .is_resource = p->is_resource,
        .has_verb = p->is_resource && v->has_verb,
        .verb = v->in.verb,
        .is_apply = v->in.verb == VERB_PATCH &&
                    str_starts_with(v->in.content_type, STR("application/apply-patch")),
        .is_dry_run = c->is_dry_run,
        .has_namespace = p->namespace.n > 0,
        .has_name = p->name.n > 0,
        .method = v->method,
        .path = v->path,
    };
    if (!v->measure.kind && p->is_resource)
        v->measure.kind = registry_find(registry, p->group, p->version, p->resource);
    if (v->measure.kind && !v->measure.subresource && p->subresource.n)
        (void) kind_has_subresource(v->measure.kind, p->subresource, &v->measure.subresource);
}

static void count(struct visit *v, int code, size_t n_bytes, int64_t duration_us)
{
    CLEANUP(registry_unrefp) struct registry *own = NULL;
    bool is_stream = v->measure.is_long_running;
    if (!is_stream) {
        own = v->call.registry ? NULL : api_registry(v->door->api);
        measure(v, own ? own : v->call.registry);
    } else {
        request_meter_long_running(v->door->meter, &v->measure, -1);
    }
    v->measure.code = code;
    v->measure.duration_us = duration_us;
    v->measure.response_bytes = n_bytes;
    v->measure.is_shed = code == 429;
    request_meter_count(v->door->meter, &v->measure);
}

void visit_begin_stream(struct visit *v)
{
    const struct clock *clock = api_clock(v->door->api);
    measure(v, v->call.registry);
    v->refs++;
    v->measure.is_long_running = true;
    v->record.code = 200;
    v->record.stage_us = v->record.received_us + clock->monotonic_us(clock) - v->began_us;
    request_meter_long_running(v->door->meter, &v->measure, 1);
    if (v->door->audit)
        audit_emit(v->door->audit, &v->record, AUDIT_RESPONSE_STARTED);
}

static void log_access(const struct visit *v, int code, size_t n_bytes, int64_t duration_us)
{
    const struct http_request *r = v->exchange ? http_request(v->exchange) : NULL;
    access_log_request(&(struct access_entry){
        .method = v->method,
        .path = v->path,
        .code = code,
        .duration_us = duration_us,
        .response_bytes = n_bytes,
        .user = v->in.user.name,
        .user_agent = r ? http_request_header(r, STR("user-agent")) : v->in.user_agent,
        .address = r ? r->peer->address : STR(""),
        .audit_id = str_of(v->record.id),
        .is_long_running = v->measure.is_long_running});
}

void visit_finish(struct visit *v, int code, size_t n_bytes)
{
    const struct clock *clock = api_clock(v->door->api);
    int64_t duration_us = clock->monotonic_us(clock) - v->began_us;
    v->record.code = code;
    v->record.stage_us = v->record.received_us + duration_us;
    if (v->door->audit)
        audit_emit(v->door->audit, &v->record, AUDIT_RESPONSE_COMPLETE);
    count(v, code, n_bytes, duration_us);
    if (access_log_wants(duration_us, v->measure.is_long_running))
        log_access(v, code, n_bytes, duration_us);
    fairness_leave(v->door->fairness, &v->place);
}

void visit_end_stream(struct visit *v)
{
    visit_finish(v, 200, 0);
    unref(v);
}

void visit_refuse(struct visit *v, const struct status *st)
{
    visit_reply_status(v, st);
    visit_free(v);
}
