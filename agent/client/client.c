/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client_internal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"

#define FIRST_DELAY_MS 1000
#define MAX_DELAY_MS 600000
#define CERTS_DELAY_MS 1000
/* After that a device that was onboarded before does without its controller. */
#define DISCONNECTED_MS 5000

#define GLOBAL STR("global")
#define UUID_FILE STR("status/uuid")
#define MODEL_FILE STR("status/hardwaremodel")
#define NO_MODEL STR("default")

struct client {
    struct node *node;
    struct client_options o;
    struct client_attempt attempt;
    struct node_watch watch;
    struct publication *status;
    struct loop_timer *ticker, *soon, *disconnected;
    int64_t delay_ms;
    unsigned n_ticks;
    bool is_late;  /* DISCONNECTED_MS have passed */
    bool is_again; /* the network changed during an attempt */
    bool is_over;
    struct uuid old_uuid;
    struct str old_model; /* heap */
};

/* ---- the end ------------------------------------------------------------------------------- */

static struct str model_of_machine(struct arena *a, struct node *n)
{
    struct machine_identity m = {0};
    if (n->machine->functions->identity(n->machine, a, &m) < 0)
        return NO_MODEL;
    if (m.manufacturer.n || m.product.n)
        return arena_printf(a, "%.*s.%.*s", STR_ARG(m.manufacturer), STR_ARG(m.product));
    return m.compatible.n ? m.compatible : NO_MODEL;
}

/* Only when it says something else: flash wears out. */
static void write_file(struct node *n, struct str name, struct str content)
{
    BUF_AUTO before = {0};
    if (node_file_read(n, NODE_PERSIST, name, &before) == 0 && str_eq(buf_str(&before), content))
        return;
    const int r = node_file_write(n, NODE_PERSIST, name, content);
    if (r < 0)
        log_error("cannot write", LOG_STR("file", name), LOG_ERRNO(r));
}

static void publish_status(struct client *c, struct str uuid, struct str model)
{
    ARENA_AUTO a = arena_new();
    struct json *v = json_new(a, json_object());
    json_append_member(a, v, STR("DeviceUUID"), json_string(uuid));
    json_append_member(a, v, STR("HardwareModel"), json_string(model));
    const int r = publication_publish(c->status, GLOBAL, v);
    if (r < 0)
        log_error("OnboardingStatus is not published", LOG_ERRNO(r));
}

static void keep_identity(struct client *c, const struct uuid *uuid, struct str model)
{
    ARENA_AUTO a = arena_new();
    struct node *n = c->node;
    char text[UUID_TEXT_BYTES];
    uuid_text(uuid, text);
    const struct str name = str_of(text);
    if (model.n == 0)
        model = c->old_model.n ? c->old_model : model_of_machine(a, n);
    const int r = n->machine->functions->set_hostname(n->machine, name);
    if (r < 0 && r != -EPERM)
        log_warning("the host name is not set, ignoring", LOG_ERRNO(r));
    write_file(n, UUID_FILE, arena_printf(a, "%s\n", text));
    write_file(n, MODEL_FILE, model);
    publish_status(c, name, model);
    log_info("onboarded", LOG_STR("uuid", name), LOG_STR("model", model));
}

/* The owner may free the client in it. */
static void finish(struct client *c, int exit_code)
{
    c->is_over = true;
    loop_timer_stop(c->ticker);
    loop_timer_stop(c->soon);
    loop_timer_stop(c->disconnected);
    node_unwatch(&c->watch);
    node_link_publish(c->attempt.link);
    c->o.on_done(c->o.arg, exit_code);
}

/* ---- attempts ------------------------------------------------------------------------------ */

static bool is_worth_trying(const struct node *n)
{
    return uplink_ports_have_address(n->ports) &&
           (n->network_state == NODE_NETWORK_SUCCESS ||
            n->network_state == NODE_NETWORK_FAIL_WITH_IP_AND_DNS ||
            n->network_state == NODE_NETWORK_REMOTE_WAIT);
}

static void try_now(struct client *c)
{
    if (c->attempt.step != CLIENT_IDLE)
        c->is_again = true;
    else if (is_worth_trying(c->node))
        client_attempt_start(&c->attempt);
}

static bool has_checkpoint(const struct node *n)
{
    BUF_AUTO ignored = {0};
    return node_file_read(n, NODE_PERSIST, STR("checkpoint/controllercerts"), &ignored) == 0 ||
           node_file_read(n, NODE_PERSIST, STR("checkpoint/controllercerts.bak"), &ignored) == 0;
}

/* True: the client is over, and perhaps gone. */
static bool start_disconnected(struct client *c)
{
    if (!c->is_late || !c->o.asks_uuid || c->node->network_state == NODE_NETWORK_SUCCESS ||
        uuid_is_zero(&c->old_uuid) || !has_checkpoint(c->node))
        return false;
    log_info("the controller is not reached, starting as who we were");
    keep_identity(c, &c->old_uuid, STR_NONE);
    finish(c, 0);
    return true;
}

static void on_over(void *arg, enum client_result result)
{
    struct client *c = arg;
    const bool is_again = c->is_again;
    c->is_again = false;
    if (c->is_over)
        return;
    if (result == CLIENT_DONE) {
        if (node_led(c->node) != NODE_LED_ONBOARDED)
            node_set_led(c->node, NODE_LED_CONNECTED);
        if (!uuid_is_zero(&c->attempt.uuid))
            keep_identity(c, &c->attempt.uuid, c->attempt.model);
        finish(c, 0);
        return;
    }
    if (start_disconnected(c))
        return;
    if (result == CLIENT_NEEDS_CERTS || is_again)
        loop_timer_start(c->soon, result == CLIENT_NEEDS_CERTS ? CERTS_DELAY_MS : 0, 0);
}

static void on_soon(void *arg)
{
    try_now(arg);
}

static void reread_server(struct client *c)
{
    ARENA_AUTO a = arena_new();
    const struct str before = arena_str(a, c->node->server);
    const int r = node_reread_server(c->node);
    if (r < 0)
        log_warning("the file server cannot be read, using what it said", LOG_ERRNO(r));
    if (str_eq(before, c->node->server))
        return;
    log_info("the controller moved", LOG_STR("server", c->node->server));
    c->attempt.has_certs = false;
    uplink_set_server(c->attempt.link->uplink, c->node->server);
}

static void on_tick(void *arg)
{
    struct client *c = arg;
    if (c->o.max_attempts && c->n_ticks >= c->o.max_attempts) {
        log_error("onboarding failed too often", LOG_INT("attempts", c->n_ticks));
        finish(c, 1);
        return;
    }
    c->n_ticks++;
    c->delay_ms = MIN(c->delay_ms * 2, MAX_DELAY_MS);
    loop_timer_start(c->ticker, c->delay_ms, 0);
    reread_server(c);
    try_now(c);
}

static void on_late(void *arg)
{
    struct client *c = arg;
    c->is_late = true;
    (void) start_disconnected(c);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct client *c = CONTAINER_OF(w, struct client, watch);
    if (changes & NODE_NETWORK)
        try_now(c);
}

/* ---- life ---------------------------------------------------------------------------------- */

static struct str keep(struct str s)
{
    return s.n ? str_range(mem_dup(s.p, s.n), s.n) : STR_NONE;
}

/* Who we were: what was published in an earlier life, else the file. */
static void recall(struct client *c)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO file = {0};
    const struct json *v = publication_get(a, c->status, GLOBAL);
    c->old_model = keep(json_get_str(v, STR("HardwareModel")));
    if (uuid_parse(json_get_str(v, STR("DeviceUUID")), &c->old_uuid) == 0)
        return;
    if (node_file_read(c->node, NODE_PERSIST, UUID_FILE, &file) == 0)
        (void) uuid_parse(str_trim(buf_str(&file)), &c->old_uuid);
}

static int start(struct client *c)
{
    struct node *n = c->node;
    const struct pubsub_name name = {
        .agent = STR("zedclient"), .topic = STR("OnboardingStatus"), .is_persistent = true};
    int r = publication_new(n->pubsub, &name, &c->status);
    if (r < 0)
        return r;
    const struct node_link_options link = {.agent = STR("zedclient"), .has_nil_device = true};
    r = node_link_new(n, &link, &c->attempt.link);
    if (r < 0)
        return r;
    recall(c);
    c->ticker = loop_timer_new(n->loop, on_tick, c);
    c->soon = loop_timer_new(n->loop, on_soon, c);
    c->disconnected = loop_timer_new(n->loop, on_late, c);
    loop_timer_start(c->ticker, c->delay_ms, 0);
    loop_timer_start(c->disconnected, DISCONNECTED_MS, 0);
    node_watch(n, &c->watch);
    return 0;
}

int client_new(struct node *n, const struct client_options *o, struct client **ret)
{
    struct client *c = NEW(struct client);
    c->node = n;
    c->o = *o;
    c->delay_ms = FIRST_DELAY_MS;
    c->watch.on_change = on_change;
    c->attempt = (struct client_attempt){.node = n,
                                         .registers = o->registers,
                                         .asks_uuid = o->asks_uuid,
                                         .on_over = on_over,
                                         .arg = c};
    const int r = start(c);
    if (r < 0)
        client_free(c);
    else
        *ret = c;
    return r;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    node_unwatch(&c->watch);
    node_link_free(c->attempt.link);
    publication_free(c->status);
    loop_timer_free(c->ticker);
    loop_timer_free(c->soon);
    loop_timer_free(c->disconnected);
    mem_free((char *) c->attempt.model.p);
    mem_free((char *) c->old_model.p);
    mem_free(c);
}
