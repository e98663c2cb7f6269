/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/verify.h"

#include <errno.h>

#include "base/alloc.h"
#include "controllerconn/uplink_internal.h"

struct uplink_verify {
    struct uplink *uplink;
    struct uplink_verify_options o;
    struct arena *arena;
    struct uplink_ports *ports;
    size_t order[UPLINK_MAX_PORTS], n_order, at;
    size_t n_good;        /* management ports that work, or look as if they did */
    size_t n_proved;      /* by traffic */
    unsigned proved_cost; /* the highest of those */
    bool has_management;
    struct uplink_call *call;
    struct loop_deferred next;
    struct uplink_verification v;
    void (*on_done)(void *arg, const struct uplink_verification *v);
    void *arg;
};

static void look_at_next(struct uplink_verify *v);

void uplink_verify_cancel(struct uplink_verify *v)
{
    if (!v)
        return;
    if (v->call)
        uplink_cancel(v->call);
    loop_undefer(v->uplink->o.loop, &v->next);
    uplink_ports_unref(v->ports);
    arena_free(v->arena);
    mem_free(v);
}

static const struct uplink_port *port_of(const struct uplink_verify *v)
{
    return &v->ports->items[v->order[v->at]];
}

static bool is_management(const struct uplink_verify *v)
{
    return uplink_port_is_management(v->ports, port_of(v));
}

static void record(struct uplink_verify *v, struct uplink_verified_port result)
{
    result.name = port_of(v)->name;
    result.words = arena_str(v->arena, result.words);
    v->v.ports[v->v.n_ports++] = result;
    v->at++;
}

/* What only looks bad: who needs no address, or no name, is well without. */
static bool is_excused(const struct uplink_verify *v, const struct uplink_answer *a)
{
    const struct uplink_port *port = port_of(v);
    if (a->is_no_address)
        return !port->is_l3 || (!is_management(v) && port->has_dhcp_none);
    return a->is_no_dns && !is_management(v);
}

static void note_temporary(struct uplink_verify *v, const struct uplink_answer *a)
{
    if (a->status == UPLINK_REFUSED || a->status == UPLINK_CERT_INVALID ||
        (a->last_http_status >= 500 && a->last_http_status <= 511))
        v->v.is_temporary = true;
    if (a->error < 0 && a->status != UPLINK_NONE)
        v->v.status = a->status;
}

static void on_answer(void *arg, const struct uplink_answer *a)
{
    struct uplink_verify *v = arg;
    const struct uplink_port *port = port_of(v);
    const bool is_good = a->error == 0 || is_excused(v, a);
    /* A port as cheap as the one that proved the way keeps what it last really did. */
    const bool is_recorded = !(is_good && a->is_dry_run && is_management(v)) || v->n_proved == 0 ||
                             port->cost > v->proved_cost;
    v->call = NULL;
    note_temporary(v, a);
    if (is_good && is_management(v))
        v->n_good++;
    if (is_good && !a->is_dry_run) {
        v->n_proved++;
        v->proved_cost = MAX(v->proved_cost, port->cost);
    }
    /* Of one without a DNS server that is worth a warning. */
    const bool has_words = !is_good || a->is_no_dns;
    record(v, (struct uplink_verified_port){
                  .is_recorded = is_recorded,
                  .is_good = is_good,
                  .is_dry_run = a->is_dry_run,
                  .is_not_ready = !is_good && (a->is_no_address || a->is_no_dns || a->is_no_name),
                  .words = has_words ? a->words : STR("")});
    look_at_next(v);
}

static void finish(struct uplink_verify *v)
{
    v->v.error = v->has_management ? 0 : -ENODEV;
    v->v.is_reachable = v->has_management && v->n_good >= v->o.n_required;
    v->on_done(v->arg, &v->v);
    uplink_verify_cancel(v);
}

static void look_at_next(struct uplink_verify *v)
{
    for (; v->at < v->n_order;) {
        const struct uplink_port *port = port_of(v);
        v->has_management = v->has_management || is_management(v);
        if (port->has_invalid_config) {
            v->at++; /* keeps the error of its configuration */
        } else if (port->blocked_reason.n > 0) {
            record(v, (struct uplink_verified_port){.is_recorded = true,
                                                    .words = port->blocked_reason});
        } else {
            const struct uplink_request r = {.url = v->o.url,
                                             .port = port->name,
                                             .accepts_4xx = v->o.accepts_4xx,
                                             .trace = v->o.trace,
                                             .is_dry_run = !is_management(v) ||
                                                           v->n_proved >= v->o.n_required};
            v->call = uplink_send(v->uplink, &r, on_answer, v);
            return;
        }
    }
    finish(v);
}

static void on_begin(struct loop_deferred *d)
{
    look_at_next(CONTAINER_OF(d, struct uplink_verify, next));
}

struct uplink_verify *uplink_verify_start(struct uplink *u, const struct uplink_verify_options *o,
                                          void (*on_done)(void *arg,
                                                          const struct uplink_verification *v),
                                          void *arg)
{
    struct uplink_verify *v = NEW(struct uplink_verify);
    v->uplink = u;
    v->arena = arena_new();
    v->o = *o;
    v->o.url = arena_str(v->arena, o->url);
    v->o.n_required = MAX(o->n_required, (size_t) 1);
    v->ports = uplink_ports_ref(u->ports);
    v->n_order = uplink_ports_order_all(v->ports, o->iteration, v->order);
    v->on_done = on_done;
    v->arg = arg;
    v->next.fn = on_begin;
    loop_defer(u->o.loop, &v->next);
    return v;
}
