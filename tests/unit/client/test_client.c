/* SPDX-License-Identifier: Apache-2.0 */
/* Onboarding on a wire that answers as the test says. */
#include "client/client.h"

#include <errno.h>

#include "base/alloc.h"
#include "device.h"
#include "eve/register.pb-c.h"
#include "eve/uuid.pb-c.h"
#include "protobuf/message.h"
#include "test.h"

#define MINE "01020304-0506-4708-890a-0b0c0d0e0f10"
#define PROTO "application/x-proto-binary"
#define SPEED 1000 /* a second is a millisecond */

/* ---- the wire ------------------------------------------------------------------------------ */

struct reply {
    int http; /* 0: nobody answers */
    const char *type;
    struct str body;
};

enum step { CERTS, REGISTER, UUID, STEPS };
static const char *const step_names[] = {"certs", "register", "uuid"};

struct world {
    struct uplink_wire wire;
    struct device device;
    struct client *client;
    struct publication *network;
    struct reply replies[STEPS];
    struct buf seen; /* the steps, in order: "certs register uuid " */
    struct buf body; /* of the last registration */
    size_t n_steps;
    int exit_code; /* -1: not done */
};

struct uplink_transfer {
    struct loop_deferred finish;
    struct world *world;
    const struct reply *reply;
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

static void on_finish(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, finish);
    const struct uplink_reply r = {.fault =
                                       t->reply->http ? UPLINK_FAULT_NONE : UPLINK_FAULT_REFUSED,
                                   .error = STR("refused"),
                                   .http_status = t->reply->http,
                                   .body = t->reply->body.p ? t->reply->body : STR(""),
                                   .content_type = str_of(t->reply->type ? t->reply->type : "")};
    t->on_done(t->arg, &r);
    mem_free(t);
}

static enum step step_of(struct str url)
{
    for (size_t i = 0; i < STEPS; i++)
        if (str_ends_with(url, str_of(step_names[i])))
            return (enum step) i;
    fail_msg("%.*s", STR_ARG(url));
    return STEPS;
}

static struct uplink_transfer *start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                     void (*on_done)(void *arg, const struct uplink_reply *r),
                                     void *arg)
{
    struct world *w = CONTAINER_OF(wire, struct world, wire);
    const enum step step = step_of(x->url);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    *t = (struct uplink_transfer){.finish.fn = on_finish,
                                  .world = w,
                                  .reply = &w->replies[step],
                                  .on_done = on_done,
                                  .arg = arg};
    assert_int_equal(x->is_post, step != CERTS);
    buf_printf(&w->seen, "%s ", step_names[step]);
    w->n_steps++;
    if (step == REGISTER) {
        buf_reset(&w->body);
        buf_append_str(&w->body, x->body);
    }
    loop_defer(w->device.loop, &t->finish);
    return t;
}

static void cancel(struct uplink_transfer *t)
{
    loop_undefer(t->world->device.loop, &t->finish);
    mem_free(t);
}

static const struct uplink_wire_ops ops = {.start = start, .cancel = cancel};

/* ---- the world ----------------------------------------------------------------------------- */

static void on_done(void *arg, int exit_code)
{
    struct world *w = arg;
    assert_int_equal(w->exit_code, -1);
    w->exit_code = exit_code;
    client_free(TAKE(w->client));
}

static struct str uuid_answer(struct world *w, const char *uuid, const char *maker,
                              const char *product)
{
    Eve__Uuid__UuidResponse m = EVE__UUID__UUID_RESPONSE__INIT;
    m.uuid = arena_strz(w->device.arena, str_of(uuid));
    m.manufacturer = arena_strz(w->device.arena, str_of(maker));
    m.product_name = arena_strz(w->device.arena, str_of(product));
    return device_seal(&w->device, &w->device.signing, pb_pack(w->device.arena, &m.base));
}

static void world_init(struct world *w)
{
    struct device *d = &w->device;
    *w = (struct world){.wire = {&ops}, .exit_code = -1};
    device_init(d);
    struct authority onboarding = authority_new("onboarding", /* is_ca= */ false, NULL);
    device_write(d, "config/onboard.cert.pem", pki_cert_pem(d->arena, onboarding.cert));
    device_write(d, "config/onboard.key.pem", pki_key_pem(d->arena, onboarding.key));
    authority_done(&onboarding);
    d->wire = &w->wire;
    loop_set_speed(d->loop, SPEED);
    w->replies[CERTS] =
        (struct reply){200, PROTO, device_seal(d, &d->signing, device_good_certs(d))};
    w->replies[REGISTER] = (struct reply){201, PROTO, STR("")};
    w->replies[UUID] = (struct reply){200, PROTO, uuid_answer(w, MINE, "", "")};
}

static void world_begin(struct world *w, const struct client_options *o)
{
    struct client_options options = *o;
    const struct pubsub_name name = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    options.on_done = on_done;
    options.arg = w;
    w->exit_code = -1;
    buf_reset(&w->seen);
    w->n_steps = 0;
    device_start(&w->device, /* is_simulated= */ true);
    assert_int_equal(publication_new(w->device.node->pubsub, &name, &w->network), 0);
    assert_int_equal(client_new(w->device.node, &options, &w->client), 0);
}

static void world_network(struct world *w, int state, const char *address)
{
    struct arena *a = w->device.arena;
    const struct str text = arena_printf(
        a,
        "{\"State\":%d,\"Version\":1,\"CurrentIndex\":%zu,\"Ports\":[{\"IfName\":\"eth0\","
        "\"IsMgmt\":true,\"IsL3Port\":true,\"DNSServers\":[\"10.0.0.1\"],"
        "\"AddrInfoList\":[{\"Addr\":\"%s\"}]}]}",
        state, w->n_steps, address);
    assert_int_equal(publication_publish(w->network, STR("global"), json_parse_quick(a, text)), 0);
}

static void world_end(struct world *w)
{
    client_free(TAKE(w->client));
    publication_free(TAKE(w->network));
    device_stop(&w->device);
}

static void world_done(struct world *w)
{
    world_end(w);
    buf_done(&w->seen);
    buf_done(&w->body);
    device_done(&w->device);
}

static bool is_done(void *arg)
{
    return ((struct world *) arg)->exit_code >= 0;
}

static bool has_sent(void *arg)
{
    return ((struct world *) arg)->n_steps > 0;
}

static const struct client_options both = {.registers = true, .asks_uuid = true};

/* ---- answers ------------------------------------------------------------------------------- */

TEST(three_steps_and_it_is_onboarded)
{
    CLEANUP(world_done) struct world w;
    world_init(&w);
    w.replies[UUID].body = uuid_answer(&w, MINE, "Maker", "Product");
    world_begin(&w, &both);
    world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
    device_run_until(&w.device, is_done, &w);
    assert_int_equal(w.exit_code, 0);
    assert_str(buf_str(&w.seen), "certs register uuid ");
    assert_str(device_read(&w.device, "persist/status/uuid"), MINE "\n");
    assert_str(device_read(&w.device, "persist/status/hardwaremodel"), "Maker.Product");
    assert_int_equal(node_led(w.device.node), NODE_LED_CONNECTED);
    device_run_turns(&w.device, 3);
    assert_str(w.device.node->hardware_model, "Maker.Product");
    /* The old model stays when the controller says none. */
    world_end(&w);
    w.replies[UUID].body = uuid_answer(&w, MINE, "Maker", "");
    world_begin(&w, &both);
    world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
    device_run_until(&w.device, is_done, &w);
    assert_str(device_read(&w.device, "persist/status/hardwaremodel"), "Maker.Product");
}

TEST(the_steps_are_those_asked_for)
{
    static const struct {
        struct client_options o;
        const char *seen;
    } cases[] = {
        {{.asks_uuid = true}, "certs uuid "},
        {{.registers = true}, "certs register "},
        {{0}, "certs "},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w);
        world_begin(&w, &cases[i].o);
        world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
        device_run_until(&w.device, is_done, &w);
        assert_int_equal(w.exit_code, 0);
        assert_str(buf_str(&w.seen), cases[i].seen);
    }
}

TEST(an_answer_that_is_not_accepted_shows_in_the_led)
{
    static const struct {
        enum step step;
        struct reply reply; /* a body that is absent: the good one */
        bool is_done;
        enum node_led led;
    } cases[] = {
        {CERTS, {0}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {404, PROTO}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {200, NULL}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {200, "text/html"}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {204, PROTO}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {304, PROTO}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {200, PROTO, {"\xff", 1}}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {200, PROTO, {"", 0}}, false, NODE_LED_BAD_CONTROLLER_CERT},
        {CERTS, {200, "application/json"}, true, NODE_LED_CONNECTED},
        {CERTS, {200, "Text/Plain; charset=utf-8"}, true, NODE_LED_CONNECTED},
        /* What a registration is told only shows while nobody knows the device. */
        {REGISTER, {200, PROTO}, true, NODE_LED_CONNECTED},
        {REGISTER, {409, PROTO}, true, NODE_LED_CONNECTED},
        {REGISTER, {0}, true, NODE_LED_CONNECTED},
        {UUID, {201, PROTO}, true, NODE_LED_CONNECTED},
        {UUID, {204, PROTO}, false, (enum node_led) 0},
        {UUID, {401, PROTO}, false, (enum node_led) 0},
        {UUID, {200, NULL}, false, (enum node_led) 0},
        {UUID, {200, PROTO, {"", 0}}, false, NODE_LED_BAD_ENVELOPE},
        {UUID, {200, PROTO, {"\x0a\x00", 2}}, false, NODE_LED_BAD_ENVELOPE},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w);
        struct reply *r = &w.replies[cases[i].step];
        const struct str good = r->body;
        *r = cases[i].reply;
        if (!r->body.p)
            r->body = good;
        world_begin(&w, &both);
        loop_set_speed(w.device.loop, 1); /* no second attempt */
        world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
        device_run_until(&w.device, has_sent, &w);
        device_run_turns(&w.device, 20);
        if ((w.exit_code == 0) != cases[i].is_done || node_led(w.device.node) != cases[i].led)
            fail_msg("case %zu: %d, LED %d", i, w.exit_code, node_led(w.device.node));
        if (!cases[i].is_done)
            assert_null(device_read(&w.device, "persist/status/uuid").p);
    }
}

TEST(a_refused_registration_shows_in_the_led_while_nobody_knows_us)
{
    static const struct {
        int http;
        enum node_led led;
    } cases[] = {
        {400, NODE_LED_ONBOARDING_FAILURE},  {500, NODE_LED_ONBOARDING_FAILURE},
        {504, NODE_LED_ONBOARDING_FAILURE},  {403, NODE_LED_NOT_FOUND},
        {409, NODE_LED_ONBOARDING_CONFLICT}, {304, NODE_LED_ONBOARDING_CONFLICT},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w);
        w.replies[REGISTER].http = cases[i].http;
        w.replies[UUID].http = 401;
        world_begin(&w, &both);
        world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
        device_run_until(&w.device, has_sent, &w);
        device_run_turns(&w.device, 20);
        assert_int_equal(w.exit_code, -1);
        assert_int_equal(node_led(w.device.node), cases[i].led);
    }
}

TEST(a_registration_carries_the_certificate_and_the_serial_numbers)
{
    CLEANUP(world_done) struct world w;
    world_init(&w);
    device_write(&w.device, "config/soft_serial", STR("soft-9\n"));
    world_begin(&w, &both);
    world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
    device_run_until(&w.device, is_done, &w);
    assert_true(str_find_str(buf_str(&w.body), STR("serial-1")) > 0);
    assert_true(str_find_str(buf_str(&w.body), STR("soft-9")) > 0);
}

/* ---- when ---------------------------------------------------------------------------------- */

TEST(nothing_is_sent_before_the_network_is_worth_it)
{
    static const struct {
        int state;
        const char *address;
        bool is_tried;
    } cases[] = {
        {NODE_NETWORK_SUCCESS, "10.0.0.2", true},
        {NODE_NETWORK_FAIL_WITH_IP_AND_DNS, "10.0.0.2", true},
        {NODE_NETWORK_REMOTE_WAIT, "10.0.0.2", true},
        {NODE_NETWORK_FAIL, "10.0.0.2", false},
        {NODE_NETWORK_IPDNS_WAIT, "10.0.0.2", false},
        {NODE_NETWORK_SUCCESS, "169.254.1.2", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w);
        world_begin(&w, &both);
        world_network(&w, cases[i].state, cases[i].address);
        device_run_turns(&w.device, 30);
        assert_int_equal(w.n_steps > 0, cases[i].is_tried);
    }
}

TEST(attempts_grow_rarer_and_end_where_they_are_told_to)
{
    CLEANUP(world_done) struct world w;
    const struct client_options o = {.asks_uuid = true, .max_attempts = 5};
    world_init(&w);
    w.replies[UUID].http = 401;
    world_begin(&w, &o);
    loop_set_speed(w.device.loop, SPEED);
    world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
    device_run_until(&w.device, is_done, &w);
    assert_int_equal(w.exit_code, 1);
    /* One for the network, five by the clock, of which one may come while the first is under way;
     * the certificates were good the first time. */
    assert_true(str_starts_with(buf_str(&w.seen), STR("certs uuid uuid uuid uuid uuid ")));
    assert_in_range(w.n_steps, 6, 7);
}

TEST(certificates_are_fetched_again_when_the_controller_signs_with_others)
{
    CLEANUP(world_done) struct world w;
    world_init(&w);
    struct authority next = authority_new("next", /* is_ca= */ false, &w.device.between);
    Eve__Uuid__UuidResponse m = EVE__UUID__UUID_RESPONSE__INIT;
    m.uuid = arena_strz(w.device.arena, STR(MINE));
    w.replies[UUID].body = device_seal(&w.device, &next, pb_pack(w.device.arena, &m.base));
    authority_done(&next);
    const struct client_options o = {.asks_uuid = true};
    world_begin(&w, &o);
    world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
    device_run_until(&w.device, has_sent, &w);
    w.n_steps = 0;
    device_run_turns(&w.device, 10);
    assert_true(str_starts_with(buf_str(&w.seen), STR("certs uuid certs uuid ")));
    w.replies[UUID].body = uuid_answer(&w, MINE, "", "");
    device_run_until(&w.device, is_done, &w);
    assert_int_equal(w.exit_code, 0);
}

TEST(one_who_was_onboarded_starts_without_the_controller)
{
    CLEANUP(world_done) struct world w;
    world_init(&w);
    world_begin(&w, &both);
    world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
    device_run_until(&w.device, is_done, &w);
    world_end(&w);

    /* Nobody says anything about the network; then: nobody answers; then: no certificates. */
    world_begin(&w, &both);
    device_run_until(&w.device, is_done, &w);
    assert_int_equal(w.exit_code, 0);
    assert_int_equal(w.n_steps, 0);
    assert_str(device_read(&w.device, "persist/status/uuid"), MINE "\n");
    world_end(&w);

    w.replies[CERTS].http = 0;
    world_begin(&w, &both);
    loop_set_speed(w.device.loop, 1);
    world_network(&w, NODE_NETWORK_REMOTE_WAIT, "10.0.0.2");
    device_run_until(&w.device, has_sent, &w);
    loop_set_speed(w.device.loop, SPEED);
    device_run_until(&w.device, is_done, &w);
    assert_int_equal(w.exit_code, 0);
    world_end(&w);

    world_begin(&w, &(struct client_options){.asks_uuid = true, .max_attempts = 4});
    (void) node_file_remove(w.device.node, NODE_PERSIST, STR("checkpoint/controllercerts"));
    device_run_until(&w.device, is_done, &w);
    assert_int_equal(w.exit_code, 1);
}

TEST(a_client_may_go_at_any_time)
{
    for (int turns = 0; turns < 8; turns++) {
        CLEANUP(world_done) struct world w;
        world_init(&w);
        world_begin(&w, &both);
        world_network(&w, NODE_NETWORK_SUCCESS, "10.0.0.2");
        if (turns)
            device_run_turns(&w.device, turns);
    }
}
