/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the controller for the configuration, again and again, and what becomes of each answer. */
#include <errno.h>

#include "base/log.h"
#include "client/client.h"
#include "node/netdump.h"
#include "protobuf/message.h"
#include "zedagent/zedagent_internal.h"

#define TOKEN STR("eve.integrity_token")
#define TRACES "zedagent-config" /* archived */
/* Between two attempts to learn the UUID anew. */
#define CLIENT_INTERVAL_MS (600 * 1000)
#define CLIENT_ATTEMPTS 5
/* How long nodeagent may take to say why the device started, before a saved configuration is read.
 */
#define BOOT_REASON_PATIENCE_MS 2000
/* How long nim may take to say anything at all, before we go on without. */
#define NETWORK_PATIENCE_MS (60 * 1000)

static int64_t now_ms(const struct zedagent *z)
{
    return loop_now_ms(z->node->loop);
}

/* ---- the UUID, when the controller does not know ours ------------------------------------------
 */

static void on_client_done(void *arg, int exit_code)
{
    struct zedagent *z = arg;
    client_free(TAKE(z->cycle.client));
    if (exit_code != 0)
        log_warning("the device's UUID was not confirmed", LOG_INT("code", exit_code));
}

static void run_client(struct zedagent *z)
{
    const struct client_options o = {
        .asks_uuid = true, .max_attempts = CLIENT_ATTEMPTS, .on_done = on_client_done, .arg = z};
    struct cycle *c = &z->cycle;
    if (c->client || now_ms(z) - c->client_ms < CLIENT_INTERVAL_MS)
        return;
    c->client_ms = now_ms(z);
    const int r = client_new(z->node, &o, &c->client);
    if (r < 0)
        log_warning("cannot ask for the device's UUID", LOG_ERRNO(r));
}

/* ---- outcomes ---------------------------------------------------------------------------------
 */

static void set_working(struct zedagent *z, enum zedagent_config_status status)
{
    z->cycle.is_working = true;
    z->facts.config_status = status;
    node_set_led(z->node, NODE_LED_ONBOARDED);
}

static void lower_led(struct zedagent *z, enum node_led to)
{
    if (node_led(z->node) == NODE_LED_ONBOARDED)
        node_set_led(z->node, to);
}

static void on_unchanged(struct zedagent *z)
{
    set_working(z, ZEDAGENT_CONFIG_SUCCESS);
    checkpoint_prove(z);
    zedagent_emit(z, ZEDAGENT_CONFIGURED);
}

/* Nobody answered in this life: what is kept must do. False: it is too early to say which. */
static bool read_saved(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    struct cycle *c = &z->cycle;
    const Eve__Config__EdgeDevConfig *config;
    if (z->facts.is_configured || c->has_read_saved)
        return true;
    if (!z->neighbours.has_nodeagent && now_ms(z) - c->started_ms < BOOT_REASON_PATIENCE_MS)
        return false;
    c->has_read_saved = true;
    config = checkpoint_read(z, a);
    if (!config)
        return true;
    log_info("the controller is not reached, using the saved configuration");
    (void) apply_config(z, config, PARSE_SAVED);
    z->facts.is_configured = true;
    z->facts.config_status = ZEDAGENT_CONFIG_READ_SAVED;
    zedagent_emit(z, ZEDAGENT_CONFIGURED);
    return true;
}

static void fail(struct zedagent *z, bool is_temporary)
{
    z->cycle.is_working = false;
    z->facts.config_status = is_temporary && z->neighbours.is_testing_update
                                 ? ZEDAGENT_CONFIG_TEMPORARY_FAIL
                                 : ZEDAGENT_CONFIG_FAIL;
}

static void fetch_certs(struct zedagent *z)
{
    certs_hurry(z);
    zedagent_emit(z, ZEDAGENT_NEEDS_CERTS);
}

static void on_refused(struct zedagent *z, const struct uplink_answer *answer)
{
    if (answer->status == UPLINK_CERT_INVALID)
        fetch_certs(z);
    switch (answer->status) {
    case UPLINK_CERT_INVALID:
    case UPLINK_UPGRADE:
    case UPLINK_REFUSED:
    case UPLINK_NOT_FOUND:
        lower_led(z, NODE_LED_CONNECTED);
        fail(z, /* is_temporary= */ true);
        if (answer->status == UPLINK_NOT_FOUND)
            run_client(z);
        return;
    case UPLINK_FORBIDDEN:
        fail(z, /* is_temporary= */ true);
        zedagent_emit(z, ZEDAGENT_FORBIDDEN);
        return;
    default:
        lower_led(z, NODE_LED_CONNECTING);
        fail(z, /* is_temporary= */ false);
    }
}

/* ---- a configuration --------------------------------------------------------------------------
 */

static bool is_ours(const struct zedagent *z, const Eve__Config__EdgeDevConfig *config)
{
    struct uuid device;
    return config->id && uuid_parse(pb_text(config->id->uuid), &device) == 0 &&
           uuid_eq(&device, &z->node->device);
}

static bool has_hash(const struct cycle *c, struct str hash)
{
    return hash.n && str_is(hash, c->hash);
}

static void keep_hash(struct cycle *c, struct str hash)
{
    c->hash[0] = 0;
    if (hash.n >= sizeof(c->hash))
        return;
    memcpy(c->hash, hash.p, hash.n);
    c->hash[hash.n] = 0;
}

/* False: it is not in force, being of another device or older than what is. */
static bool take(struct zedagent *z, const Eve__Config__ConfigResponse *response,
                 struct str envelope, enum parse_source source)
{
    const struct str hash = pb_text(response->confighash);
    enum apply_result result;
    if (!is_ours(z, response->config)) {
        log_warning("a configuration of another device, ignoring it");
        fail(z, /* is_temporary= */ false);
        run_client(z);
        return false;
    }
    if (has_hash(&z->cycle, hash) && source == PARSE_LOC) {
        on_unchanged(z);
        return true;
    }
    if (has_hash(&z->cycle, hash)) {
        /* A controller should have answered 304; EVE does not count this as a success. */
        fail(z, /* is_temporary= */ false);
        z->cycle.is_working = true;
        checkpoint_prove(z);
        zedagent_emit(z, ZEDAGENT_CONFIGURED);
        return true;
    }
    char before[sizeof(z->cycle.hash)];
    memcpy(before, z->cycle.hash, sizeof(before));
    keep_hash(&z->cycle, hash);
    result = apply_config(z, response->config, source);
    /* What a console hands on must not pass for what is in force when it comes again. */
    if (result == APPLY_OBSOLETE && source == PARSE_LOC)
        memcpy(z->cycle.hash, before, sizeof(before));
    if (result != APPLY_OBSOLETE)
        checkpoint_save(z, envelope);
    else
        log_warning("a configuration older than the one in force, ignoring it");
    z->facts.is_configured = true;
    set_working(z, ZEDAGENT_CONFIG_SUCCESS);
    zedagent_emit(z, ZEDAGENT_CONFIGURED);
    return result != APPLY_OBSOLETE;
}

static void on_received(struct zedagent *z, const struct uplink_answer *answer)
{
    ARENA_AUTO a = arena_new();
    enum uplink_status status = UPLINK_NONE;
    const Eve__Config__ConfigResponse *response;
    int error;
    if (!uplink_type_is_message(answer->content_type)) {
        node_set_led(z->node, NODE_LED_CONNECTED);
        fail(z, /* is_temporary= */ false);
        return;
    }
    response = checkpoint_open(z, a, answer->body, &error, &status);
    if (response) {
        (void) take(z, response, answer->body, PARSE_CONTROLLER);
        return;
    }
    log_warning("the controller's configuration is not believed",
                LOG_TEXT("status", uplink_status_name(status)), LOG_ERRNO(error));
    uplink_metrics_auth_failure(z->link->metrics);
    node_set_led(z->node, NODE_LED_BAD_ENVELOPE);
    fail(z, /* is_temporary= */ false);
    if (status == UPLINK_CERT_MISS || status == UPLINK_CERT_INVALID ||
        !node_has_controller_certs(z->node))
        fetch_certs(z);
}

/* ---- the cycle --------------------------------------------------------------------------------
 */

static void schedule(struct zedagent *z, bool is_early)
{
    struct cycle *c = &z->cycle;
    int64_t after_ms = node_jitter_ms(z->node, c->interval_s) - (now_ms(z) - c->began_ms);
    if (is_early)
        after_ms = MIN(after_ms, BOOT_REASON_PATIENCE_MS);
    if (c->is_hurried)
        after_ms = 0;
    c->is_hurried = false;
    loop_timer_start(c->timer, MAX(after_ms, 0), 0);
}

/* ---- the local operator console ---------------------------------------------------------------
 */

/* Nobody has signed these: who can hand on the newest configuration is believed. */
static void obey(struct zedagent *z, const Eve__Config__CompoundEdgeDevConfig *c)
{
    if (c->radio_config)
        zedagent_take_radio_silence(z, c->radio_config->radio_silence);
    if (c->app_cmd_list)
        zedagent_take_app_commands(z, c->app_cmd_list);
    if (c->dev_cmd)
        zedagent_take_device_command(z, c->dev_cmd);
    z->local.compound_timestamp = c->timestamp;
}

/* What the controller has signed, handed on by somebody near. */
static void take_compound(struct zedagent *z, struct arena *a, struct str body)
{
    const Eve__Config__CompoundEdgeDevConfig *c =
        PB_UNPACK(a, eve__config__compound_edge_dev_config, body);
    const Eve__Config__ConfigResponse *response = NULL;
    enum uplink_status status = UPLINK_NONE;
    struct str envelope = STR_NONE;
    int error = -EBADMSG;
    if (c && !c->protected_config)
        return;
    if (c) {
        envelope = pb_pack(a, &c->protected_config->base);
        response = checkpoint_open(z, a, envelope, &error, &status);
    }
    if (response && is_ours(z, response->config)) {
        if (take(z, response, envelope, PARSE_LOC))
            obey(z, c);
        return;
    }
    log_warning("the operator console's configuration is not believed",
                LOG_TEXT("status", uplink_status_name(status)), LOG_ERRNO(error));
    if (status == UPLINK_CERT_MISS)
        fetch_certs(z);
}

static void finish(struct zedagent *z, bool has_decided)
{
    status_update(z);
    schedule(z, /* is_early= */ !has_decided);
}

static void on_loc_answer(void *arg, const struct uplink_answer *answer)
{
    struct zedagent *z = arg;
    ARENA_AUTO a = arena_new();
    z->cycle.call = NULL;
    if (answer->error == 0 && answer->http_status == 304)
        on_unchanged(z);
    else if (answer->error == 0 && uplink_type_is_message(answer->content_type))
        take_compound(z, a, answer->body);
    finish(z, /* has_decided= */ true);
}

static void fill_request(struct zedagent *z, struct arena *a, Eve__Config__ConfigRequest *r)
{
    BUF_AUTO token = {0};
    eve__config__config_request__init(r);
    r->confighash = z->cycle.hash;
    if (node_file_read(z->node, NODE_RUN, TOKEN, &token) == 0)
        r->integrity_token = pb_data(arena_str(a, buf_str(&token)));
}

static void ask_loc(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    Eve__Config__CompoundEdgeDevConfigRequest compound =
        EVE__CONFIG__COMPOUND_EDGE_DEV_CONFIG_REQUEST__INIT;
    Eve__Config__ConfigRequest request;
    zedagent_emit(z, ZEDAGENT_ASKS_LOC);
    fill_request(z, a, &request);
    compound.cfg_req = &request;
    compound.last_cmd_timestamp = z->local.compound_timestamp;
    const struct uplink_request r = {.url =
                                         uplink_url_build(a, UPLINK_API_V2, z->loc_url,
                                                          &z->node->device, STR("compound-config")),
                                     .body = pb_pack(a, &compound.base)};
    z->cycle.call = uplink_send(z->link->uplink, &r, on_loc_answer, z);
}

/* ---- the cycle --------------------------------------------------------------------------------
 */

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct zedagent *z = arg;
    bool has_decided = true;
    z->cycle.call = NULL;
    node_trace_end(z->node, TAKE(z->cycle.trace), TRACES, "config", answer->error == 0);
    if (answer->error == 0 && answer->http_status == 304)
        on_unchanged(z);
    else if (answer->error == 0)
        on_received(z, answer);
    else
        on_refused(z, answer);
    if (!z->cycle.is_working)
        has_decided = read_saved(z);
    if (!z->cycle.is_working && z->loc_url.n && !z->o.must_not_fetch)
        ask_loc(z);
    else
        finish(z, has_decided);
}

static void on_tick(void *arg)
{
    struct zedagent *z = arg;
    ARENA_AUTO a = arena_new();
    struct cycle *c = &z->cycle;
    c->began_ms = now_ms(z);
    if (z->o.must_not_fetch) {
        const struct uplink_answer none = {.error = -EHOSTUNREACH, .status = UPLINK_FAILED};
        on_answer(z, &none);
        return;
    }
    Eve__Config__ConfigRequest request;
    fill_request(z, a, &request);
    c->trace = node_trace_begin(z->node, TRACES);
    const struct uplink_request r = {.url = node_link_url(a, z->link, STR("config")),
                                     .body = pb_pack(a, &request.base),
                                     .trace = c->trace};
    c->call = uplink_send(z->link->uplink, &r, on_answer, z);
}

void cycle_hurry(struct zedagent *z)
{
    struct cycle *c = &z->cycle;
    if (!c->is_started)
        return;
    if (c->call)
        c->is_hurried = true;
    else
        loop_timer_start(c->timer, 0, 0);
}

void cycle_forget(struct zedagent *z)
{
    z->cycle.hash[0] = 0;
}

void cycle_follow_items(struct zedagent *z)
{
    struct cycle *c = &z->cycle;
    const int64_t interval_s = items_int(z->items, "timer.config.interval");
    const bool is_shorter = interval_s < c->interval_s;
    c->interval_s = interval_s;
    if (is_shorter)
        cycle_hurry(z);
}

void cycle_start(struct zedagent *z)
{
    struct cycle *c = &z->cycle;
    if (c->is_started) {
        cycle_forget(z);
        cycle_hurry(z);
        return;
    }
    c->is_started = true;
    c->started_ms = now_ms(z);
    c->interval_s = items_int(z->items, "timer.config.interval");
    /* A controller that can be reached in a moment comes before what was saved. */
    const bool waits = !z->node->ports && !z->o.must_not_fetch;
    loop_timer_start(c->timer, waits ? NETWORK_PATIENCE_MS : 0, 0);
}

int cycle_open(struct zedagent *z)
{
    struct cycle *c = &z->cycle;
    c->timer = loop_timer_new(z->node->loop, on_tick, z);
    c->interval_s = items_int(z->items, "timer.config.interval");
    c->client_ms = now_ms(z);
    return 0;
}

void cycle_close(struct zedagent *z)
{
    struct cycle *c = &z->cycle;
    if (c->call)
        uplink_cancel(c->call);
    uplink_trace_free(c->trace);
    client_free(c->client);
    loop_timer_free(c->timer);
}
