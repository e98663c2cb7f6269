/* SPDX-License-Identifier: Apache-2.0 */
/* What every request passes before it is handled: what does it ask, who is it, whom do they
 * impersonate, is there room, may they. */
#include <errno.h>

#include "api/auth/access.h"
#include "api/visit.h"
#include "base/alloc.h"

/* Refusals held back at once; beyond it they go out without delay. */
#define DOOR_MAX_HELD 1024

/* ---- what is asked ------------------------------------------------------------------------ */

/* False: no verb of the API, though *ret is what rights are asked for. */
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
        *ret = VERB_COUNT;
        return false;
    }
}

static int understand(struct visit *v, struct status *st)
{
    const struct http_request *r = http_request(v->exchange);
    if (request_decode_path(v->arena, r->path, &v->path) < 0)
        return status_bad_request(st, "the path has a malformed percent escape");
    v->method = r->method_text;
    if (v->own_arena) {
        v->method = arena_str(v->arena, v->method);
        v->path = arena_str(v->arena, v->path);
    }
    v->in.query = request_parse_query(v->arena, r->query);
    request_parse_path(v->path, &v->in.path);
    v->has_verb = verb_of(r, &v->in.path, &v->in.query, &v->in.verb);
    return annex_claim(v, st);
}

static void fill_record(struct visit *v)
{
    struct audit_record *a = &v->record;
    const struct http_request *r = http_request(v->exchange);
    const struct request_path *p = &v->in.path;
    a->uri =
        r->query.n ? arena_join(v->arena, (struct str[]){r->path, STR("?"), r->query}, 3) : r->path;
    a->source_ip = r->peer->address;
    a->user_agent = http_request_header(r, STR("user-agent"));
    a->is_resource = p->is_resource;
    a->verb =
        p->is_resource && v->has_verb ? verb_name(v->in.verb) : access_path_verb(r->method_text);
    a->user = v->real.name.n ? &v->real : NULL;
    a->impersonated = v->is_impersonating ? &v->in.user : NULL;
    a->group = p->group;
    a->version = p->version;
    a->resource = p->resource;
    a->subresource = p->subresource;
    a->namespace = p->namespace;
    a->name = p->name;
    if (v->own_arena) {
        struct str *const strings[] = {
            &a->uri,     &a->source_ip, &a->user_agent,  &a->verb,      &a->group,
            &a->version, &a->resource,  &a->subresource, &a->namespace, &a->name};
        for (size_t i = 0; i < N_ELEMENTS(strings); i++)
            *strings[i] = arena_str(v->arena, *strings[i]);
    }
    audit_begin(v->door->audit, a);
    if (a->level >= AUDIT_REQUEST)
        a->request_body = v->own_arena ? arena_str(v->arena, r->body) : r->body;
    audit_emit(v->door->audit, a, AUDIT_REQUEST_RECEIVED);
}

static void enter(struct visit *v);

/* ---- logins ------------------------------------------------------------------------------- */

/* A refusal held back, or a login that another server decides: heap, because the peer may go. */
struct login {
    struct door *door;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    struct arena *arena;
    struct str token;
    int result; /* of who was asked */
    struct token_identity identity;
    struct loop_timer *timer;
};

static void on_login_peer_gone(void *arg)
{
    struct login *l = arg;
    l->exchange = NULL;
}

static struct login *login_new(struct door *door, struct http_exchange *x,
                               void (*on_peer_gone)(void *arg))
{
    struct login *l = NEW(struct login);
    l->door = door;
    l->exchange = x;
    l->arena = arena_new();
    http_on_closed(x, on_peer_gone, l);
    return l;
}

static struct http_exchange *login_leave(struct login *l)
{
    struct http_exchange *x = TAKE(l->exchange);
    if (x)
        http_on_closed(x, NULL, NULL);
    return x;
}

static void login_free(struct login *l)
{
    (void) login_leave(l);
    loop_timer_free(l->timer);
    arena_free(l->arena);
    mem_free(l);
}

static void refuse_login(struct door *door, struct http_exchange *x)
{
    struct visit *v = visit_new(door, x);
    struct status st;
    status_init(&st, v->arena);
    (void) understand(v, &st); /* for the record; that it is nobody's matters more */
    if (door->audit)
        fill_record(v);
    status_init(&st, v->arena);
    (void) status_unauthorized(&st);
    visit_refuse(v, &st);
}

static void on_held_long_enough(void *arg)
{
    struct login *l = arg;
    struct door *door = l->door;
    struct http_exchange *x = login_leave(l);
    login_free(l);
    door->n_held--;
    if (x)
        refuse_login(door, x);
}

/* Its timer would outlive the loop if the server ended now. */
static void on_held_peer_gone(void *arg)
{
    struct login *l = arg;
    l->exchange = NULL;
    l->door->n_held--;
    login_free(l);
}

/* Guessing is slow: each failure of an address holds its next answer back longer. */
static void hold_refusal(struct door *door, struct http_exchange *x)
{
    int64_t delay_ms = fairness_login_failed(door->fairness, http_request(x)->peer->address);
    api_metrics_login(door->metrics, LOGIN_FAILURE, STR_NONE);
    if (delay_ms == 0 || door->n_held == DOOR_MAX_HELD) {
        refuse_login(door, x);
        return;
    }
    struct login *l = login_new(door, x, on_held_peer_gone);
    door->n_held++;
    l->timer = loop_timer_new(door->loop, on_held_long_enough, l);
    loop_timer_start(l->timer, delay_ms, 0);
}

/* By what was answered, not by what is remembered of it: that may be gone already. */
static void on_login_asked(void *arg)
{
    struct login *l = arg;
    struct http_exchange *x = login_leave(l);
    if (x && l->result == 0) {
        struct visit *v = visit_new(l->door, x);
        v->real = user_copy(v->arena, &l->identity.user);
        enter(v);
    } else if (x) {
        hold_refusal(l->door, x);
    }
    login_free(l);
}

static void ask_issuer(void *arg)
{
    struct login *l = arg;
    l->result = authenticator_verify(api_authenticator(l->door->api), l->arena, l->token, NULL, 0,
                                     true, &l->identity);
    loop_post(l->door->loop, on_login_asked, l);
}

static bool begin_asking(struct door *door, struct http_exchange *x)
{
    struct login *l = login_new(door, x, on_login_peer_gone);
    l->token = arena_str(l->arena, access_bearer_token(http_request(x)));
    if (workers_run(door->workers, ask_issuer, l) == 0)
        return true;
    login_free(l);
    return false;
}

/* ---- may they, is there room -------------------------------------------------------------- */

/* Those who look whether the server lives must find out also when it is busy. */
static bool is_exempt(const struct visit *v)
{
    return !v->in.path.is_resource && health_has_path(v->path);
}

static enum fairness_class class_of(const struct visit *v)
{
    bool is_read = http_request(v->exchange)->method == HTTP_GET ||
                   http_request(v->exchange)->method == HTTP_HEAD;
    if (v->annex ? is_read && annex_wants_stream(v)
                 : v->in.path.is_resource && v->in.verb == VERB_WATCH)
        return FAIR_LONG_RUNNING;
    return is_read ? FAIR_READ : FAIR_WRITE;
}

static int authorize(struct visit *v, struct status *st)
{
    if (annex_is_open(v))
        return 0;
    struct rbac *rbac = api_rbac(v->door->api);
    struct str *reason = v->record.level > AUDIT_NONE ? &v->record.reason : NULL;
    int r = v->in.path.is_resource
                ? access_check_resource(rbac, &v->in, st, reason)
                : access_check_path(rbac, &v->in.user, http_request(v->exchange)->method_text,
                                    v->path, st, reason);
    v->record.decision = r < 0 ? STR("forbid") : STR("allow");
    return r;
}

static int admit(struct visit *v, struct status *st)
{
    struct door *door = v->door;
    int r = understand(v, st);
    if (r == 0)
        r = access_impersonate(api_rbac(door->api), http_request(v->exchange), &v->real,
                               &v->in.user, &v->is_impersonating, st);
    if (door->audit)
        fill_record(v);
    if (r == 0 && !is_exempt(v))
        r = fairness_enter(door->fairness, &v->in.user, class_of(v), &v->place, st);
    return r < 0 ? r : authorize(v, st);
}

/* Who asks is known: the rest of the way. */
static void enter(struct visit *v)
{
    struct status st;
    status_init(&st, v->arena);
    if (!str_is(v->real.name, USER_ANONYMOUS))
        http_trust_peer(v->exchange);
    api_metrics_login(v->door->metrics, LOGIN_SUCCESS, v->real.name);
    if (admit(v, &st) < 0)
        visit_refuse(v, &st);
    else
        visit_handle(v);
}

void door_on_request(void *ctx, struct http_exchange *x)
{
    struct door *door = ctx;
    struct visit *v = visit_new(door, x);
    struct status st;
    status_init(&st, v->arena);
    int r = access_authenticate(api_authenticator(door->api), http_request(x), &v->real, &st);
    if (r < 0) {
        visit_free(v);
        if (r != -EAGAIN || !begin_asking(door, x))
            hold_refusal(door, x);
        return;
    }
    enter(v);
}
