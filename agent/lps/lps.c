/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/lps.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "lps/messages.h"
#include "lps/places.h"
#include "lps/signal.h"
#include "node/link.h"
#include "protobuf/message.h"
#include "report/report.h"
#include "zedagent/local.h"

/* A server's order is a few lines; what is larger is not read. */
#define MAX_REPLY_BYTES ((size_t) 256 * 1024)
#define HOUR_S 3600
#define RADIO_THROTTLED_S 300
/* Something that changes again and again is not told more often. */
#define MIN_INTERVAL_MS 1000
/* As EVE's tickers: 0.88 to 1.1 of the interval. */
#define SPREAD_PERCENT 11

enum endpoint_id {
    ENDPOINT_PROFILE,
    ENDPOINT_RADIO,
    ENDPOINT_APPS,
    ENDPOINT_DEVICE,
    ENDPOINT_LOCATION,
    ENDPOINT_NETWORK,
    ENDPOINT_BOOT,
    ENDPOINTS,
};

struct task {
    struct lps *lps;
    struct uplink_call *call;
    int64_t due_ms, began_ms; /* due 0: not at all */
    size_t place;             /* that is asked now */
    bool is_throttled;        /* the server does not know the endpoint */
    bool is_failing;          /* and it was said */
    bool is_hurried;          /* while it was being asked */
};

struct lps {
    struct zedagent *zedagent;
    struct node *node;
    struct report *report;
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
    char *network_error; /* of the ports it ordered last; NULL: none */
};

/* ---- what is told, and what comes back ------------------------------------------------------ */

static struct str make_radio(struct lps *l, struct world *w)
{
    const Eve__Profile__RadioStatus *s = lps_radio_status(w, l->zedagent);
    return s ? pb_pack(w->arena, &s->base) : STR_NONE;
}

static struct str make_apps(struct lps *l, struct world *w)
{
    return pb_pack(w->arena, &lps_app_info(w, l->zedagent)->base);
}

static struct str make_device(struct lps *l, struct world *w)
{
    return pb_pack(w->arena, &lps_device_info(w, l->zedagent)->base);
}

static struct str make_place(struct lps *l, struct world *w)
{
    const Eve__Info__ZInfoLocation *i = lps_location(w);
    (void) l;
    return i ? pb_pack(w->arena, &i->base) : STR_NONE;
}

static struct str make_network(struct lps *l, struct world *w)
{
    const struct str error = str_of(l->network_error ? l->network_error : "");
    const Eve__Profile__NetworkInfo *i = lps_network_info(w, l->zedagent, error);
    return i ? pb_pack(w->arena, &i->base) : STR_NONE;
}

static struct str make_boot(struct lps *l, struct world *w)
{
    return pb_pack(w->arena, &lps_boot_info(w, l->zedagent)->base);
}

static void take_profile(struct lps *l, const void *order)
{
    const Eve__Profile__LocalProfile *p = order;
    zedagent_take_profile(l->zedagent, pb_text(p->local_profile));
}

static void take_radio(struct lps *l, const void *order)
{
    const Eve__Profile__RadioConfig *c = order;
    zedagent_take_radio_silence(l->zedagent, c->radio_silence);
}

static void take_apps(struct lps *l, const void *order)
{
    zedagent_take_app_commands(l->zedagent, order);
}

static void take_device(struct lps *l, const void *order)
{
    zedagent_take_device_command(l->zedagent, order);
}

static void set_network_error(struct lps *l, struct str words)
{
    mem_free(l->network_error);
    l->network_error = words.n ? str_dup(words) : NULL;
}

static void take_network(struct lps *l, const void *order)
{
    ARENA_AUTO a = arena_new();
    struct report_view view;
    report_view_init(l->report, a, &view);
    const struct json *configs = world_only(&view.world, REPORT_PORT_CONFIGS);
    const struct str error = zedagent_take_network(l->zedagent, a, order, configs);
    /* Said once, however often it is ordered. */
    if (error.n && !(l->network_error && str_is(error, l->network_error)))
        log_warning("ports are not configured by the local profile server",
                    LOG_STR("error", error));
    set_network_error(l, error);
}

static void take_boot(struct lps *l, const void *order)
{
    zedagent_take_boot_orders(l->zedagent, order);
}

static void forget_boot(struct lps *l)
{
    const Eve__Profile__AppBootConfigList none = EVE__PROFILE__APP_BOOT_CONFIG_LIST__INIT;
    zedagent_take_boot_orders(l->zedagent, &none);
}

static void forget_network(struct lps *l)
{
    zedagent_forget_network(l->zedagent);
    set_network_error(l, STR_NONE);
}

/* An order: a message and where in it the token is. */
#define ORDER(type, name) &name##__descriptor, offsetof(type, server_token)

static const struct endpoint {
    const char *path, *interval; /* a config item */
    int64_t throttled_s;
    struct str (*make)(struct lps *l, struct world *w); /* absent: not now; NULL: a GET */
    const ProtobufCMessageDescriptor *order;            /* NULL: nothing is ordered */
    size_t token_at;
    void (*take)(struct lps *l, const void *order);
    void (*forget)(struct lps *l); /* the server does not know the endpoint any more */
} endpoints[ENDPOINTS] = {
    [ENDPOINT_PROFILE] = {"local_profile", "timer.lps.profile", HOUR_S, NULL,
                          ORDER(Eve__Profile__LocalProfile, eve__profile__local_profile),
                          take_profile, NULL},
    [ENDPOINT_RADIO] = {"radio", "timer.lps.radio", RADIO_THROTTLED_S, make_radio,
                        ORDER(Eve__Profile__RadioConfig, eve__profile__radio_config), take_radio,
                        NULL},
    [ENDPOINT_APPS] = {"appinfo", "timer.lps.appinfo", HOUR_S, make_apps,
                       ORDER(Eve__Profile__LocalAppCmdList, eve__profile__local_app_cmd_list),
                       take_apps, NULL},
    [ENDPOINT_DEVICE] = {"devinfo", "timer.lps.devinfo", HOUR_S, make_device,
                         ORDER(Eve__Profile__LocalDevCmd, eve__profile__local_dev_cmd), take_device,
                         NULL},
    [ENDPOINT_LOCATION] = {"location", "timer.location.app.interval", HOUR_S, make_place},
    [ENDPOINT_NETWORK] = {"network", "timer.lps.network", HOUR_S, make_network,
                          ORDER(Eve__Profile__LocalNetworkConfig,
                                eve__profile__local_network_config),
                          take_network, forget_network},
    [ENDPOINT_BOOT] = {"appbootinfo", "timer.lps.appbootinfo", HOUR_S, make_boot,
                       ORDER(Eve__Profile__AppBootConfigList, eve__profile__app_boot_config_list),
                       take_boot, forget_boot},
};

static const struct endpoint *endpoint_of(const struct task *t)
{
    return &endpoints[t - t->lps->tasks];
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
    const struct items *items = zedagent_items(t->lps->zedagent);
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

static bool is_message(struct str content_type)
{
    const ptrdiff_t semicolon = str_find(content_type, ';');
    const struct str type =
        str_trim(semicolon < 0 ? content_type : str_sub(content_type, 0, (size_t) semicolon));
    return str_eq_nocase(type, STR("application/x-proto-binary"));
}

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

/* Every answer must carry the token that the controller named. */
static bool has_token(const struct lps *l, const struct endpoint *e, const void *order)
{
    const char *token;
    memcpy(&token, (const char *) order + e->token_at, sizeof(token));
    return str_eq(pb_text(token), zedagent_local_server(l->zedagent).token);
}

static int take_order(struct lps *l, const struct endpoint *e, const struct uplink_answer *answer)
{
    ARENA_AUTO a = arena_new();
    if (!e->order)
        return 0;
    if (!is_message(answer->content_type))
        return -EBADMSG;
    const void *order = pb_unpack(a, e->order, answer->body);
    if (!order)
        return -EBADMSG;
    /* Who orders nothing need not say who it is. */
    if (!has_token(l, e, order)) {
        if (answer->body.n && e->take == take_network)
            set_network_error(l, STR("invalid token submitted by LPS"));
        return answer->body.n ? -EACCES : 0;
    }
    e->take(l, order);
    return 0;
}

static int take(struct task *t, const struct uplink_answer *answer)
{
    const struct endpoint *e = endpoint_of(t);
    if (answer->error < 0 && answer->error != -EPROTO)
        return answer->error;
    switch (answer->http_status) {
    case 200:
    case 201:
        return take_order(t->lps, e, answer);
    case 204:
        if (e->take == take_network)
            set_network_error(t->lps, STR_NONE); /* it was told, and nothing came of it */
        return e->make ? 0 : -EPROTO;            /* the one who only asks wants an answer */
    case 404:
        if (e->forget)
            e->forget(t->lps);
        return -ENOENT;
    default:
        return -EPROTO;
    }
}

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct task *t = arg;
    struct lps *l = t->lps;
    t->call = NULL;
    const int r = take(t, answer);
    t->is_throttled = r == -ENOENT;
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
    report_view_init(l->report, a, &view);
    const struct str body = e->make ? e->make(l, &view.world) : STR_NONE;
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
    places_find(a, zedagent_local_server(l->zedagent).address,
                values_of(scratch, l->app_networks, NULL),
                values_of(scratch, NULL, zedagent_network_instances(l->zedagent)), found);
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
    set_network_error(l, STR_NONE);
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
    l->uplink = uplink_new(&(struct uplink_options){.loop = n->loop,
                                                    .wire = n->wire,
                                                    .clock = n->clock,
                                                    .metrics = zedagent_link(l->zedagent)->metrics,
                                                    .server = STR(""),
                                                    .user_agent = n->user_agent});
    l->is_stale = true;
    set_timer(l);
}

static void follow_config(struct lps *l)
{
    const struct str address = zedagent_local_server(l->zedagent).address;
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
    l->zedagent = z;
    l->node = n;
    l->report = r;
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
