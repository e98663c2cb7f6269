/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/lps.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "lps/endpoints.h"
#include "lps/places.h"
#include "lps/signal.h"
#include "node/link.h"
#include "report/report.h"
#include "zedagent/local.h"

/* A server's order is a few lines; what is larger is not read. */
#define MAX_REPLY_BYTES ((size_t) 256 * 1024)
/* Something that changes again and again is not told more often. */
#define MIN_INTERVAL_MS 1000
/* As EVE's tickers: 0.88 to 1.1 of the interval. */
#define SPREAD_PERCENT 11

struct task {
    struct lps *lps;
    struct uplink_call *call;
    int64_t due_ms, began_ms; /* due 0: not at all */
    size_t place;             /* that is asked now */
    bool is_throttled;        /* the server does not know the endpoint */
    bool is_failing;          /* and it was said */
    bool is_hurried;          /* while it was being asked */
    char *refusal;            /* of the last order, told with the next; NULL: it was taken */
};

struct lps {
    struct endpoint_sides sides;
    struct node *node;
    struct zedagent_listener listener;
    struct loop_timer *timer;
    struct task tasks[ENDPOINTS];
    /* While there is a server. */
    struct uplink *uplink;
    struct subscription *app_networks;
    struct arena *arena; /* of the places */
    struct places *places;
    struct signal_stream *signals;
    char *server; /* as it was looked for */
    bool is_stale;
};

static const struct endpoint *endpoint_of(const struct task *t)
{
    return &lps_endpoints[t - t->lps->tasks];
}

/* ---- when ----------------------------------------------------------------------------------- */

static int64_t now_ms(const struct lps *l)
{
    return loop_now_ms(l->node->loop);
}

static bool has_places(const struct lps *l)
{
    return l->places && l->places->n > 0;
}

static void set_timer(struct lps *l)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < ENDPOINTS; i++)
        if (l->tasks[i].due_ms && !l->tasks[i].call)
            due_ms = MIN(due_ms, l->tasks[i].due_ms);
    if (l->is_stale)
        due_ms = 0;
    if (due_ms == INT64_MAX)
        loop_timer_stop(l->timer);
    else
        loop_timer_start(l->timer, MAX(due_ms - now_ms(l), 0), 0);
}

/* What it is about has changed. One that the server does not know is left alone. */
static void hurry(struct lps *l, enum endpoint_id id)
{
    struct task *t = &l->tasks[id];
    if (!has_places(l) || t->is_throttled)
        return;
    t->is_hurried = t->call;
    t->due_ms = MIN(t->due_ms, MAX(t->began_ms + MIN_INTERVAL_MS, now_ms(l)));
    set_timer(l);
}

static void schedule(struct task *t)
{
    const struct endpoint *e = endpoint_of(t);
    const struct items *items = zedagent_items(t->lps->sides.zedagent);
    const int64_t interval_s = t->is_throttled ? e->throttled_s : items_int(items, e->interval);
    t->due_ms =
        now_ms(t->lps) + node_spread_ms(t->lps->node, interval_s * 1000 * 99 / 100, SPREAD_PERCENT);
    if (t->is_hurried) /* what was told, or answered, may be older */
        hurry(t->lps, (enum endpoint_id)(t - t->lps->tasks));
    set_timer(t->lps);
}

static void on_pending(void *arg, Eve__Profile__ConfigEndpoint e)
{
    static const enum endpoint_id ids[] = {
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_UNSPECIFIED] = ENDPOINTS,
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_LOCAL_PROFILE] = ENDPOINT_PROFILE,
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_RADIO] = ENDPOINT_RADIO,
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_APP_INFO] = ENDPOINT_APPS,
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_APP_BOOT_INFO] = ENDPOINT_BOOT,
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_DEV_INFO] = ENDPOINT_DEVICE,
        [EVE__PROFILE__CONFIG_ENDPOINT__CONFIG_ENDPOINT_NETWORK] = ENDPOINT_NETWORK,
    };
    if ((size_t) e < N_ELEMENTS(ids) && ids[e] != ENDPOINTS)
        hurry(arg, ids[e]);
}

/* ---- one request ---------------------------------------------------------------------------- */

static void ask(struct task *t);

/* Said once, until it works again. */
static void fail(struct task *t, const struct uplink_answer *answer, int error)
{
    if (!t->is_failing)
        log_warning("the local profile server is not understood, ignoring it",
                    LOG_TEXT("endpoint", endpoint_of(t)->path),
                    LOG_INT("http_status", answer->http_status), LOG_ERRNO(error),
                    LOG_STR("words", answer->words));
    t->is_failing = true;
}

static void set_refusal(struct task *t, struct str words)
{
    mem_free(t->refusal);
    t->refusal = words.n ? str_dup(words) : NULL;
}

/* Said once, however often it is ordered. */
static void complain(const struct task *t, struct str refusal)
{
    if (refusal.n && !(t->refusal && str_is(refusal, t->refusal)))
        log_warning("an order of the local profile server is refused",
                    LOG_TEXT("endpoint", endpoint_of(t)->path), LOG_STR("reason", refusal));
}

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct task *t = arg;
    struct lps *l = t->lps;
    ARENA_AUTO a = arena_new();
    struct str refusal;
    t->call = NULL;
    const int r = endpoint_answered(endpoint_of(t), &l->sides, a, answer, &refusal);
    t->is_throttled = r == -ENOENT;
    if (r == 0)
        complain(t, refusal);
    if (r == 0 || r == -ENOENT || refusal.n)
        set_refusal(t, refusal);
    if (r == 0)
        t->is_failing = false;
    else if (r != -ENOENT) {
        fail(t, answer, r);
        t->place++;
        if (l->places && t->place < l->places->n) {
            ask(t);
            return;
        }
    }
    schedule(t);
}

static int64_t send_timeout_ms(const struct lps *l)
{
    const int64_t ms = items_int(l->node->items, "timer.send.timeout") * 1000;
    return ms ? ms : UPLINK_SEND_TIMEOUT_MS;
}

static void ask(struct task *t)
{
    ARENA_AUTO a = arena_new();
    struct lps *l = t->lps;
    const struct endpoint *e = endpoint_of(t);
    const struct place *p = &l->places->items[t->place];
    struct report_view view;
    report_view_init(l->sides.report, a, &view);
    const struct str refusal = str_of(t->refusal ? t->refusal : "");
    const struct str body = e->make ? e->make(&l->sides, &view.world, refusal) : STR_NONE;
    if (e->make && !body.p) {
        schedule(t);
        return;
    }
    const struct uplink_request r = {
        .url = arena_printf(a, "%.*s/api/v1/%s", STR_ARG(p->url), e->path),
        .body = body,
        .port = p->bridge,
        .source = p->source,
        .is_local = true,
        .content_type = STR("application/x-proto-binary"),
        .max_reply_bytes = MAX_REPLY_BYTES,
        .budget_ms = send_timeout_ms(l)};
    t->call = uplink_send(l->uplink, &r, on_answer, t);
}

/* ---- where ---------------------------------------------------------------------------------- */

static struct json *values_of(struct arena *a, const struct subscription *s,
                              const struct publication *p)
{
    struct json *all = json_new(a, json_object());
    size_t position = 0;
    struct str key, text;
    while (s ? subscription_next(s, &position, &key, &text)
             : publication_next(p, &position, &key, &text)) {
        const struct json *v = json_parse_quick(a, text);
        if (v)
            (void) json_append_member(a, all, arena_str(a, key), *v);
    }
    return all;
}

/* Each bridge is a port of its own. */
static void set_ports(struct lps *l)
{
    ARENA_AUTO a = arena_new();
    struct uplink_port *ports = ARENA_ARRAY(a, struct uplink_port, PLACES_MAX);
    for (size_t i = 0; i < l->places->n; i++)
        ports[i] = (struct uplink_port){.name = l->places->items[i].bridge,
                                        .is_management = true,
                                        .is_l3 = true,
                                        .addresses = &l->places->items[i].source,
                                        .n_addresses = 1};
    struct uplink_ports *all = uplink_ports_new(1, ports, l->places->n);
    uplink_set_ports(l->uplink, all);
    uplink_ports_unref(all);
}

static void follow_signals(struct lps *l)
{
    l->signals = signal_stream_new(&(struct signal_options){.loop = l->node->loop,
                                                            .clock = l->node->clock,
                                                            .uplink = l->uplink,
                                                            .places = l->places,
                                                            .open_timeout_ms = send_timeout_ms(l),
                                                            .on_pending = on_pending,
                                                            .arg = l});
}

static void stop_calls(struct lps *l)
{
    signal_stream_free(TAKE(l->signals));
    for (size_t i = 0; i < ENDPOINTS; i++) {
        if (l->tasks[i].call)
            uplink_cancel(TAKE(l->tasks[i].call));
        mem_free(l->tasks[i].refusal);
        l->tasks[i] = (struct task){.lps = l};
    }
}

static bool is_same(const struct places *x, const struct places *y)
{
    if (!x || x->n != y->n)
        return false;
    for (size_t i = 0; i < x->n; i++)
        if (!str_eq(x->items[i].url, y->items[i].url) ||
            !str_eq(x->items[i].bridge, y->items[i].bridge) ||
            !str_eq(x->items[i].source, y->items[i].source))
            return false;
    return true;
}

/* Asks everything of a server that was found anew, whatever it did not know before. */
static void find(struct lps *l)
{
    struct arena *a = arena_new_with(1024);
    struct places *found = ARENA_NEW(a, struct places);
    l->is_stale = false;
    ARENA_AUTO scratch = arena_new();
    places_find(a, zedagent_local_server(l->sides.zedagent).address,
                values_of(scratch, l->app_networks, NULL),
                values_of(scratch, NULL, zedagent_network_instances(l->sides.zedagent)), found);
    if (is_same(l->places, found)) {
        arena_free(a);
        return;
    }
    stop_calls(l);
    arena_free(l->arena);
    l->arena = a;
    l->places = found;
    set_ports(l);
    if (!found->n)
        return;
    log_info("the local profile server is found", LOG_STR("at", found->items[0].url));
    for (size_t i = 0; i < ENDPOINTS; i++)
        l->tasks[i].due_ms = now_ms(l) + 1;
    follow_signals(l);
}

static void on_timer(void *arg)
{
    struct lps *l = arg;
    if (l->is_stale)
        find(l);
    for (size_t i = 0; has_places(l) && i < ENDPOINTS; i++) {
        struct task *t = &l->tasks[i];
        if (t->call || !t->due_ms || t->due_ms > now_ms(l))
            continue;
        t->began_ms = now_ms(l);
        t->is_hurried = false;
        t->place = 0;
        ask(t);
    }
    set_timer(l);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_app_network(void *arg, struct str key, const struct json *value)
{
    struct lps *l = arg;
    (void) key;
    (void) value;
    l->is_stale = true;
    set_timer(l);
}

static void on_app_network_again(void *arg, struct str key, const struct json *value,
                                 const struct json *old)
{
    (void) old;
    on_app_network(arg, key, value);
}

static void close_server(struct lps *l)
{
    stop_calls(l);
    loop_timer_stop(l->timer);
    subscription_free(TAKE(l->app_networks));
    uplink_free(TAKE(l->uplink));
    arena_free(TAKE(l->arena));
    mem_free(TAKE(l->server));
    l->places = NULL;
    l->is_stale = false;
}

static void open_server(struct lps *l, struct str address)
{
    static const struct subscription_handlers h = {.on_create = on_app_network,
                                                   .on_modify = on_app_network_again,
                                                   .on_delete = on_app_network};
    const struct pubsub_name name = {.agent = STR("zedrouter"), .topic = STR("AppNetworkStatus")};
    struct node *n = l->node;
    const int r = subscription_new(n->pubsub, &name, &h, l, &l->app_networks);
    if (r < 0) {
        log_error("the local profile server is not looked for", LOG_ERRNO(r));
        return;
    }
    l->server = str_dup(address);
    l->uplink =
        uplink_new(&(struct uplink_options){.loop = n->loop,
                                            .wire = n->wire,
                                            .clock = n->clock,
                                            .metrics = zedagent_link(l->sides.zedagent)->metrics,
                                            .server = STR(""),
                                            .user_agent = n->user_agent});
    l->is_stale = true;
    set_timer(l);
}

static void follow_config(struct lps *l)
{
    const struct str address = zedagent_local_server(l->sides.zedagent).address;
    if (l->server && str_is(address, l->server)) {
        l->is_stale = true; /* names of network instances may be others */
        set_timer(l);
        return;
    }
    close_server(l);
    if (address.n)
        open_server(l, address);
}

static void on_event(struct zedagent_listener *listener, enum zedagent_event e)
{
    struct lps *l = CONTAINER_OF(listener, struct lps, listener);
    if (e == ZEDAGENT_LOCAL || (e == ZEDAGENT_CONFIGURED && l->server))
        follow_config(l);
    if (e != ZEDAGENT_FACTS || !l->server)
        return;
    hurry(l, ENDPOINT_DEVICE);
    hurry(l, ENDPOINT_APPS);
    hurry(l, ENDPOINT_RADIO);
}

int lps_new(struct zedagent *z, struct node *n, struct report *r, struct lps **ret)
{
    struct lps *l = NEW(struct lps);
    l->sides = (struct endpoint_sides){z, r};
    l->node = n;
    l->timer = loop_timer_new(n->loop, on_timer, l);
    l->listener.on_event = on_event;
    stop_calls(l);
    zedagent_listen(z, &l->listener);
    follow_config(l);
    *ret = l;
    return 0;
}

void lps_free(struct lps *l)
{
    if (!l)
        return;
    zedagent_unlisten(&l->listener);
    close_server(l);
    loop_timer_free(l->timer);
    mem_free(l);
}
