/* SPDX-License-Identifier: Apache-2.0 */
#include "api/visit.h"

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

void door_done(struct door *door)
{
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
    struct arena *a = own ? own : http_arena(x);
    struct visit *v = ARENA_NEW(a, struct visit);
    v->door = door;
    v->exchange = x;
    v->own_arena = own;
    v->arena = a;
    v->began_us = clock->monotonic_us(clock);
    v->record.received_us = clock->wall_us(clock);
    choose_id(v, r);
    if (own)
        http_on_closed(x, on_peer_gone, v);
    return v;
}

void visit_free(struct visit *v)
{
    struct door *door = v->door;
    struct arena *own = v->own_arena;
    if (v->call.api)
        call_done(&v->call);
    give_arena_back(door, own);
}

void visit_begin_stream(struct visit *v)
{
    if (v->door->audit)
        audit_emit(v->door->audit, &v->record, AUDIT_RESPONSE_STARTED);
}

void visit_finish(struct visit *v, int code, size_t n_bytes)
{
    const struct clock *clock = api_clock(v->door->api);
    v->record.code = code;
    v->record.stage_us = clock->wall_us(clock);
    (void) n_bytes;
    if (v->door->audit)
        audit_emit(v->door->audit, &v->record, AUDIT_RESPONSE_COMPLETE);
    fairness_leave(v->door->fairness, &v->place);
}

void visit_refuse(struct visit *v, const struct status *st)
{
    visit_reply_status(v, st);
    visit_free(v);
}
