/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over ports and addresses, on a wire that answers as the test says. */
#include "test.h"

#include <errno.h>

#include "base/alloc.h"
#include "controllerconn/deferred.h"
#include "controllerconn/uplink.h"
#include "controllerconn/verify.h"
#include "loop/loop.h"

/* ---- a wire of the test -------------------------------------------------------------------- */

struct script_line {
    const char *source; /* of the exchange this answers; "*": any */
    int http;           /* 0: a fault */
    enum uplink_fault fault;
    const char *body, *location;
};

struct fake_wire {
    struct uplink_wire wire;
    struct loop *loop;
    struct clock_virtual *clock;
    const struct script_line *lines;
    size_t n_lines;
    int64_t takes_us;
    const char *script_answer;
    struct buf seen;    /* "source[>proxy] " */
    struct buf headers; /* of the last exchange */
    struct buf body, url;
    bool was_post;
    int64_t last_timeout_ms;
    bool is_mute; /* never answers */
    int64_t keepalive_s;
    int64_t streams_us; /* how long a stream lasts */
};

struct uplink_transfer {
    struct loop_deferred finish;
    struct fake_wire *wire;
    const struct script_line *line;
    void (*on_data)(void *arg, struct str piece);
    void (*on_done)(void *arg, const struct uplink_reply *r);
    void *arg;
};

/* Its body in two, and then none. */
static void stream(struct uplink_transfer *t)
{
    const struct str body = str_of(t->line->body);
    t->on_data(t->arg, STR(""));
    t->wire->clock->now_us += t->wire->streams_us;
    t->on_data(t->arg, str_sub(body, 0, body.n / 2));
    t->on_data(t->arg, str_from(body, body.n / 2));
    t->on_done(t->arg, &(struct uplink_reply){.http_status = 200});
    mem_free(t);
}

static void on_finish(struct loop_deferred *d)
{
    struct uplink_transfer *t = CONTAINER_OF(d, struct uplink_transfer, finish);
    t->wire->clock->now_us += t->wire->takes_us;
    if (t->on_data && t->line->http == 200) {
        stream(t);
        return;
    }
    const struct uplink_reply r = {.fault = t->line->http ? UPLINK_FAULT_NONE : t->line->fault,
                                   .error = STR("as told"),
                                   .http_status = t->line->http,
                                   .body = str_of(t->line->body ? t->line->body : ""),
                                   .location = str_of(t->line->location)};
    t->on_done(t->arg, &r);
    mem_free(t);
}

static struct uplink_transfer *fake_start(struct uplink_wire *wire, const struct uplink_exchange *x,
                                          void (*on_done)(void *arg, const struct uplink_reply *r),
                                          void *arg)
{
    struct fake_wire *w = CONTAINER_OF(wire, struct fake_wire, wire);
    struct uplink_transfer *t = NEW(struct uplink_transfer);
    *t = (struct uplink_transfer){
        .finish.fn = on_finish, .wire = w, .on_data = x->on_data, .on_done = on_done, .arg = arg};
    w->keepalive_s = x->keepalive_s;
    buf_append_str(&w->seen, x->source);
    if (x->proxy.n > 0)
        buf_printf(&w->seen, ">%.*s", STR_ARG(x->proxy));
    buf_append_char(&w->seen, ' ');
    buf_reset(&w->headers);
    for (size_t i = 0; i < x->n_headers; i++)
        buf_printf(&w->headers, "%.*s\n", STR_ARG(x->headers[i]));
    buf_reset(&w->body);
    buf_append_str(&w->body, x->body);
    buf_reset(&w->url);
    buf_append_str(&w->url, x->url);
    w->was_post = x->is_post;
    w->last_timeout_ms = x->timeout_ms;
    for (size_t i = 0; i < w->n_lines && !t->line; i++)
        if (str_is(x->source, w->lines[i].source) || strcmp(w->lines[i].source, "*") == 0) {
            t->line = &w->lines[i];
            if (w->lines[i].location)
                w->lines = &w->lines[i + 1], w->n_lines -= i + 1; /* a redirect answers once */
        }
    assert_non_null(t->line);
    if (!w->is_mute)
        loop_defer(w->loop, &t->finish);
    return t;
}

static void fake_cancel(struct uplink_transfer *t)
{
    loop_undefer(t->wire->loop, &t->finish);
    mem_free(t);
}

struct uplink_script {
    struct loop_deferred finish;
    struct fake_wire *wire;
    void (*on_answer)(void *arg, struct str answer);
    void *arg;
};

static void on_script(struct loop_deferred *d)
{
    struct uplink_script *s = CONTAINER_OF(d, struct uplink_script, finish);
    s->on_answer(s->arg, str_of(s->wire->script_answer));
    mem_free(s);
}

static struct uplink_script *fake_script(struct uplink_wire *wire, const struct uplink_port *port,
                                         struct str source, struct str url,
                                         void (*on_answer)(void *arg, struct str answer), void *arg)
{
    struct uplink_script *s = NEW(struct uplink_script);
    assert_true(port->pac.n > 0 && source.n > 0 && url.n > 0);
    s->wire = CONTAINER_OF(wire, struct fake_wire, wire);
    s->finish.fn = on_script;
    s->on_answer = on_answer;
    s->arg = arg;
    loop_defer(s->wire->loop, &s->finish);
    return s;
}

static void fake_cancel_script(struct uplink_script *s)
{
    loop_undefer(s->wire->loop, &s->finish);
    mem_free(s);
}

static const struct uplink_wire_ops fake_ops = {.start = fake_start,
                                                .cancel = fake_cancel,
                                                .ask_script = fake_script,
                                                .cancel_script = fake_cancel_script};

/* ---- the world ----------------------------------------------------------------------------- */

struct world {
    struct clock_virtual clock;
    struct loop *loop;
    struct fake_wire wire;
    struct uplink_metrics *metrics;
    struct uplink *uplink;
    struct uplink_answer answer;
    struct buf body, words, port, pieces;
    unsigned n_done;
};

static int wrap(void *arg, bool is_registration, struct str payload, struct buf *to)
{
    (void) arg;
    buf_printf(to, "%s(%.*s)", is_registration ? "onboarding" : "device", STR_ARG(payload));
    return str_is(payload, "unsignable") ? -EIO : 0;
}

static int open_envelope(void *arg, struct str body, struct buf *to, enum uplink_status *ret_status)
{
    (void) arg;
    if (!str_starts_with(body, STR("sealed:"))) {
        *ret_status = UPLINK_CERT_MISS;
        return -EKEYREJECTED;
    }
    buf_append_str(to, str_from(body, 7));
    return 0;
}

static const struct uplink_envelope envelope = {.wrap = wrap, .open = open_envelope};
static const struct str dns[] = {{"10.9.9.9", 8}};
static const struct str cheap[] = {{"169.254.0.1", 11}, {"10.0.0.1", 8}, {"10.0.0.2", 8}};
static const struct str dear[] = {{"10.1.0.1", 8}};
static const struct uplink_proxy a_proxy[] = {
    {.type = UPLINK_PROXY_HTTPS, .server = {"192.0.2.1", 9}, .port = 3128}};

/* Cheap eth0 with two addresses of use, dear wwan0 with one. */
static const struct uplink_port two_ports[] = {
    {.name = {"wwan0", 5},
     .is_management = true,
     .is_l3 = true,
     .cost = 10,
     .addresses = dear,
     .n_addresses = 1,
     .dns_servers = dns,
     .n_dns_servers = 1},
    {.name = {"eth0", 4},
     .is_management = true,
     .is_l3 = true,
     .addresses = cheap,
     .n_addresses = 3,
     .dns_servers = dns,
     .n_dns_servers = 1},
};

static void set_ports(struct world *w, const struct uplink_port *ports, size_t n)
{
    CLEANUP(uplink_ports_unrefp) struct uplink_ports *p = uplink_ports_new(1, ports, n);
    uplink_set_ports(w->uplink, p);
}

static void world_init(struct world *w, const struct script_line *lines, size_t n_lines)
{
    *w = (struct world){0};
    clock_virtual_init(&w->clock, 1000000);
    w->loop = loop_new();
    w->wire = (struct fake_wire){.wire.ops = &fake_ops,
                                 .loop = w->loop,
                                 .clock = &w->clock,
                                 .lines = lines,
                                 .n_lines = n_lines};
    w->metrics = uplink_metrics_new();
    w->uplink = uplink_new(&(struct uplink_options){.loop = w->loop,
                                                    .wire = &w->wire.wire,
                                                    .clock = &w->clock.clock,
                                                    .metrics = w->metrics,
                                                    .envelope = &envelope,
                                                    .server = STR("c.example\n"),
                                                    .serial = STR("s1"),
                                                    .soft_serial = STR("soft")});
    set_ports(w, two_ports, 2);
}

static void world_done(struct world *w)
{
    uplink_free(w->uplink);
    uplink_metrics_free(w->metrics);
    loop_settle(w->loop);
    loop_free(w->loop);
    buf_done(&w->wire.seen);
    buf_done(&w->wire.headers);
    buf_done(&w->wire.body);
    buf_done(&w->wire.url);
    buf_done(&w->body);
    buf_done(&w->words);
    buf_done(&w->port);
    buf_done(&w->pieces);
}

static void on_answer(void *arg, const struct uplink_answer *a)
{
    struct world *w = arg;
    w->answer = *a;
    buf_reset(&w->body);
    buf_append_str(&w->body, a->body);
    buf_reset(&w->words);
    buf_append_str(&w->words, a->words);
    buf_reset(&w->port);
    buf_append_str(&w->port, a->port);
    w->n_done++;
}

static void send_request(struct world *w, const struct uplink_request *r)
{
    const unsigned before = w->n_done;
    buf_reset(&w->wire.seen);
    (void) uplink_send(w->uplink, r, on_answer, w);
    assert_int_equal(w->n_done, before); /* never inside */
    loop_settle(w->loop);
    assert_int_equal(w->n_done, before + 1);
}

static const struct uplink_request config = {
    .url = {"https://c.example/api/v2/edgedevice/id/x/config", 47}, .body = {"hash", 4}};

#define WORLD(w, ...) \
    const struct script_line lines[] = {__VA_ARGS__}; \
    struct world w; \
    world_init(&w, lines, N_ELEMENTS(lines))

/* ---- tests --------------------------------------------------------------------------------- */

TEST(the_cheap_port_delivers_and_is_counted)
{
    WORLD(w, {"*", 200, .body = "reply"});
    send_request(&w, &config);
    assert_int_equal(w.answer.error, 0);
    assert_str(buf_str(&w.wire.seen), "10.0.0.1 ");
    assert_str(buf_str(&w.wire.body), "device(hash)");
    assert_str(buf_str(&w.body), "reply");
    assert_str(buf_str(&w.port), "eth0");
    const struct uplink_interface_counters *c = uplink_metrics_get(w.metrics, STR("eth0"));
    assert_int_equal(c->successes, 1);
    assert_int_equal(c->urls[0].sent_bytes, 12);
    assert_int_equal(c->urls[0].received_bytes, 5);
    assert_null(uplink_metrics_get(w.metrics, STR("wwan0")));
    world_done(&w);
}

TEST(every_address_is_tried_before_the_dear_port)
{
    WORLD(w, {"10.0.0.1", 0, UPLINK_FAULT_TIMEOUT}, {"10.0.0.2", 0, UPLINK_FAULT_REFUSED},
          {"10.1.0.1", 304});
    send_request(&w, &config);
    assert_int_equal(w.answer.error, 0);
    assert_int_equal(w.answer.status, UPLINK_NONE); /* what eth0 left is reset */
    assert_str(buf_str(&w.wire.seen), "10.0.0.1 10.0.0.2 10.1.0.1 ");
    assert_str(
        buf_str(&w.words),
        "send via eth0 with src IP 10.0.0.1: as told; send via eth0 with src IP 10.0.0.2: as told");
    assert_int_equal(uplink_metrics_get(w.metrics, STR("eth0"))->failures, 1);
    assert_int_equal(uplink_metrics_get(w.metrics, STR("eth0"))->urls[0].tried_messages, 1);
    assert_int_equal(uplink_metrics_get(w.metrics, STR("wwan0"))->successes, 1);
    world_done(&w);
}

TEST(an_http_error_goes_on_to_the_next_port_but_not_the_next_address)
{
    static const struct {
        int code;
        bool bails;
        const char *seen;
        int error, http, last;
        enum uplink_status status;
    } cases[] = {
        {500, false, "10.0.0.1 10.1.0.1 ", -EHOSTUNREACH, 0, 500, UPLINK_NONE},
        {503, false, "10.0.0.1 10.1.0.1 ", -EHOSTUNREACH, 0, 503, UPLINK_UPGRADE},
        {404, false, "10.0.0.1 10.1.0.1 ", -EHOSTUNREACH, 0, 404, UPLINK_NOT_FOUND},
        {404, true, "10.0.0.1 ", -EPROTO, 404, 404, UPLINK_NOT_FOUND},
        {500, true, "10.0.0.1 ", -EPROTO, 500, 500, UPLINK_NONE},
        {403, false, "10.0.0.1 ", -EPROTO, 403, 403, UPLINK_FORBIDDEN},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        WORLD(w, {"*", cases[i].code});
        struct uplink_request r = config;
        r.bails_on_http_error = cases[i].bails;
        send_request(&w, &r);
        assert_str(buf_str(&w.wire.seen), cases[i].seen);
        assert_int_equal(w.answer.error, cases[i].error);
        assert_int_equal(w.answer.http_status, cases[i].http);
        assert_int_equal(w.answer.last_http_status, cases[i].last);
        assert_int_equal(w.answer.status, cases[i].status);
        assert_int_equal(uplink_metrics_get(w.metrics, STR("eth0"))->successes,
                         1); /* it answered */
        world_done(&w);
    }
}

TEST(nobody_answers)
{
    WORLD(w, {"10.1.0.1", 0, UPLINK_FAULT_TIMEOUT}, {"*", 0, UPLINK_FAULT_REFUSED});
    send_request(&w, &config);
    assert_int_equal(w.answer.error, -EHOSTUNREACH);
    assert_int_equal(w.answer.status, UPLINK_REFUSED); /* the last that says anything wins */
    assert_int_equal(w.answer.last_http_status, 0);
    world_done(&w);
}

TEST(ports_that_cannot_send_are_told_without_sending)
{
    WORLD(w, {"*", 200});
    struct uplink_port p[2] = {two_ports[0], two_ports[1]};
    p[1].n_addresses = 1;   /* link-local only */
    p[0].n_dns_servers = 0; /* and a name to look up */
    set_ports(&w, p, 2);
    send_request(&w, &config);
    assert_int_equal(w.answer.error, -EHOSTUNREACH);
    assert_str(buf_str(&w.wire.seen), "");
    assert_str(buf_str(&w.words), "send via eth0: no IP address; send via wwan0: no DNS server");
    assert_int_equal(uplink_metrics_get(w.metrics, STR("eth0"))->failures, 1);
    assert_int_equal(uplink_metrics_get(w.metrics, STR("wwan0"))->failures, 1);
    /* A proxy with an address needs no DNS. */
    p[0].proxies = a_proxy;
    p[0].n_proxies = 1;
    set_ports(&w, p, 2);
    send_request(&w, &config);
    assert_int_equal(w.answer.error, 0);
    assert_str(buf_str(&w.wire.seen), "10.1.0.1>http://192.0.2.1:3128 ");
    set_ports(&w, NULL, 0);
    send_request(&w, &config);
    assert_int_equal(w.answer.error, -ENODEV);
    assert_str(buf_str(&w.words), "No management interfaces");
    world_done(&w);
}

TEST(a_dry_run_sends_and_counts_nothing)
{
    WORLD(w, {"*", 200});
    struct uplink_request r = config;
    r.is_dry_run = true;
    r.port = STR("wwan0");
    send_request(&w, &r);
    assert_int_equal(w.answer.error, 0);
    assert_true(w.answer.is_dry_run);
    assert_str(buf_str(&w.wire.seen), "");
    assert_null(uplink_metrics_get(w.metrics, STR("wwan0")));
    r.port = STR("nosuch");
    send_request(&w, &r);
    assert_int_equal(w.answer.error, -ENOENT);
    world_done(&w);
}

TEST(scripts_decide_the_proxy_and_their_failure_means_none)
{
    WORLD(w, {"*", 200});
    struct uplink_port p = two_ports[0];
    p.pac = STR("eA==");
    p.proxies = a_proxy; /* the script goes first */
    p.n_proxies = 1;
    set_ports(&w, &p, 1);
    w.wire.script_answer = "PROXY p.example:8080; DIRECT";
    send_request(&w, &config);
    assert_str(buf_str(&w.wire.seen), "10.1.0.1>http://p.example:8080 ");
    w.wire.script_answer = NULL;
    send_request(&w, &config);
    assert_str(buf_str(&w.wire.seen), "10.1.0.1 ");
    struct uplink_request r = config;
    r.forbids_proxy = true;
    w.wire.script_answer = "PROXY p.example:8080";
    send_request(&w, &r);
    assert_str(buf_str(&w.wire.seen), "10.1.0.1 ");
    world_done(&w);
}

TEST(headers_tell_who_we_are_only_until_we_have_a_uuid)
{
    WORLD(w, {"*", 200});
    send_request(&w, &config);
    const struct str h = buf_str(&w.wire.headers);
    assert_true(str_find_str(h, STR("X-Serial-Number: s1\nX-Soft-Serial: soft\n")) > 0);
    assert_true(str_find_str(h, STR("Content-Type: application/x-proto-binary\n")) > 0);
    assert_true(str_starts_with(h, STR("X-Request-Id: ")));
    struct uuid device = {{1}};
    uplink_set_device(w.uplink, &device);
    struct uplink_request ping = {.url = STR("https://c.example/api/v2/edgedevice/ping")};
    send_request(&w, &ping);
    assert_false(w.wire.was_post);
    assert_true(str_find_str(buf_str(&w.wire.headers), STR("X-Serial")) < 0);
    assert_true(str_find_str(buf_str(&w.wire.headers), STR("Content-Type")) < 0);
    const struct str own[] = {STR("Upgrade: websocket")};
    ping.headers = own;
    ping.n_headers = 1;
    send_request(&w, &ping);
    assert_str(buf_str(&w.wire.headers), "Upgrade: websocket\n");
    world_done(&w);
}

TEST(only_posts_of_the_api_are_wrapped)
{
    static const struct {
        const char *url, *body, *sent;
        bool is_local;
    } cases[] = {
        {"c/api/v2/edgedevice/register", "x", "onboarding(x)", false},
        {"c/api/v2/edgedevice/uuid", "", "device()", false},
        {"c/api/v2/edgedevice/certs", NULL, "", false},
        {"c/api/v1/other", "x", "x", false},
        {"c/api/v2/edgedevice/info", "x", "x", true},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        WORLD(w, {"*", 200});
        send_request(&w, &(struct uplink_request){.url = str_of(cases[i].url),
                                                  .body = str_of(cases[i].body),
                                                  .is_local = cases[i].is_local});
        assert_str(buf_str(&w.wire.body), cases[i].sent);
        assert_int_equal(w.wire.was_post, cases[i].body != NULL);
        world_done(&w);
    }
    WORLD(w, {"*", 200});
    struct uplink_request r = config;
    r.body = STR("unsignable");
    send_request(&w, &r);
    assert_int_equal(w.answer.error, -EIO);
    assert_str(buf_str(&w.wire.seen), "");
    world_done(&w);
}

TEST(envelopes_of_answers_are_opened_or_counted)
{
    static const struct {
        int code;
        const char *reply, *body;
        int error;
        enum uplink_status status;
    } cases[] = {{200, "sealed:yes", "yes", 0, UPLINK_NONE},
                 {200, "forged", "", -EKEYREJECTED, UPLINK_CERT_MISS},
                 {304, "", "", 0, UPLINK_NONE}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        WORLD(w, {"*", cases[i].code, .body = cases[i].reply});
        struct uplink_request r = config;
        r.opens_reply = true;
        send_request(&w, &r);
        assert_int_equal(w.answer.error, cases[i].error);
        assert_int_equal(w.answer.status, cases[i].status);
        assert_str(buf_str(&w.body), cases[i].body);
        const struct uplink_interface_counters *c = uplink_metrics_get(w.metrics, STR(""));
        assert_int_equal(c ? c->auth_failures : 0, cases[i].error ? 1 : 0);
        world_done(&w);
    }
}

TEST(redirects_are_followed_and_change_the_method_as_their_code_says)
{
    static const struct {
        int code;
        bool is_post;
    } cases[] = {{301, false}, {302, false}, {303, false}, {307, true}, {308, true}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        WORLD(w, {"*", cases[i].code, .location = "https://other.example/x"}, {"*", 200});
        send_request(&w, &config);
        assert_int_equal(w.answer.error, 0);
        assert_str(buf_str(&w.wire.url), "https://other.example/x");
        assert_int_equal(w.wire.was_post, cases[i].is_post);
        assert_str(buf_str(&w.wire.body), cases[i].is_post ? "device(hash)" : "");
        world_done(&w);
    }
    struct script_line loop[UPLINK_MAX_REDIRECTS + 2];
    for (size_t i = 0; i < N_ELEMENTS(loop); i++)
        loop[i] = (struct script_line){"*", 302, .location = "https://c.example/again"};
    struct world w;
    world_init(&w, loop, N_ELEMENTS(loop));
    struct uplink_request r = config;
    r.port = STR("wwan0");
    send_request(&w, &r);
    assert_int_equal(w.answer.error, -EHOSTUNREACH);
    assert_int_equal(w.answer.last_http_status, 302);
    world_done(&w);
}

TEST(all_attempts_share_one_budget)
{
    WORLD(w, {"*", 0, UPLINK_FAULT_TIMEOUT});
    uplink_set_timeouts(w.uplink, 15000, 5000);
    w.wire.takes_us = 15000000;
    send_request(&w, &config);
    assert_str(buf_str(&w.wire.seen), "10.0.0.1 10.0.0.2 10.1.0.1 ");
    assert_int_equal(w.wire.last_timeout_ms, 15000);
    struct uplink_request r = config;
    r.budget_ms = 20000;
    send_request(&w, &r);
    assert_str(buf_str(&w.wire.seen), "10.0.0.1 10.0.0.2 ");
    assert_int_equal(w.wire.last_timeout_ms, 5000); /* what was left of it */
    assert_int_equal(w.answer.error, -EHOSTUNREACH);
    world_done(&w);
}

static void on_piece(void *arg, struct str piece)
{
    buf_append_str(&((struct world *) arg)->pieces, piece);
}

TEST(a_stream_is_handed_on_and_counted_when_it_is_over)
{
    WORLD(w, {"10.0.0.1", 0, UPLINK_FAULT_REFUSED}, {"*", 200, .body = "one\ntwo\n"});
    const struct uplink_request r = {
        .url = STR("http://10.5.5.5/signal"), .on_data = on_piece, .keepalive_s = 60};
    w.wire.takes_us = 20000;
    w.wire.streams_us = 3600 * (int64_t) 1000000;
    send_request(&w, &r);
    assert_int_equal(w.answer.error, 0);
    assert_int_equal(w.answer.http_status, 200);
    assert_int_equal(w.body.n, 0);
    assert_str(buf_str(&w.pieces), "one\ntwo\n");
    assert_int_equal(w.wire.keepalive_s, 60);
    const struct uplink_url_counters *c = &uplink_metrics_get(w.metrics, STR("eth0"))->urls[0];
    assert_int_equal(c->received_bytes, 8);
    assert_int_equal(c->received_messages, 1);
    assert_int_equal(c->time_spent_ms, 20); /* until it was open */
    world_done(&w);
}

TEST(load_is_spread_over_ports_of_one_cost)
{
    WORLD(w, {"*", 200});
    struct uplink_port p[2] = {two_ports[0], two_ports[1]};
    p[0].cost = 0;
    set_ports(&w, p, 2);
    for (int i = 0; i < 10; i++)
        send_request(&w, &config);
    assert_int_equal(uplink_metrics_get(w.metrics, STR("eth0"))->successes, 5);
    assert_int_equal(uplink_metrics_get(w.metrics, STR("wwan0"))->successes, 5);
    world_done(&w);
}

TEST(calls_end_without_a_word_when_cancelled_or_freed)
{
    WORLD(w, {"*", 200});
    w.wire.is_mute = true;
    struct uplink_call *c = uplink_send(w.uplink, &config, on_answer, &w);
    loop_settle(w.loop);
    uplink_cancel(c);
    uplink_cancel(uplink_send(w.uplink, &config, on_answer, &w));
    (void) uplink_send(w.uplink, &config, on_answer, &w);
    loop_settle(w.loop);
    world_done(&w);
    assert_int_equal(w.n_done, 0);
}

static void on_answer_free(void *arg, const struct uplink_answer *a)
{
    struct world *w = arg;
    uplink_free(TAKE(w->uplink));
    assert_str(a->body, "reply"); /* what was told is still there */
    w->n_done++;
}

TEST(an_uplink_may_be_freed_by_who_is_told)
{
    WORLD(w, {"*", 200, .body = "reply"});
    (void) uplink_send(w.uplink, &config, on_answer_free, &w);
    (void) uplink_send(w.uplink, &config, on_answer_free, &w);
    loop_settle(w.loop);
    assert_int_equal(w.n_done, 1);
    world_done(&w);
}

/* ---- the deferred queue over an uplink ----------------------------------------------------- */

struct told {
    unsigned n_delivered, n_failed;
};

static void on_status(void *arg, const struct uplink_deferred_message *m, enum uplink_status s)
{
    struct told *t = arg;
    assert_str(m->key, "device");
    t->n_delivered += s == UPLINK_NONE;
    t->n_failed += s == UPLINK_FAILED;
}

TEST(the_queue_sends_over_the_uplink_and_stops_with_it)
{
    WORLD(w, {"*", 0, UPLINK_FAULT_TIMEOUT});
    struct told told = {0};
    struct uplink_deferred *q =
        uplink_deferred_new(&(struct uplink_deferred_options){.clock = &w.clock.clock,
                                                              .loop = w.loop,
                                                              .uplink = w.uplink,
                                                              .on_status = on_status,
                                                              .arg = &told});
    const struct uplink_deferred_message m = {
        .key = STR("device"), .url = config.url, .body = STR("info")};
    assert_int_equal(uplink_deferred_set(q, &m), 0);
    loop_settle(w.loop);
    assert_int_equal(told.n_failed, 1);
    assert_str(buf_str(&w.wire.seen), "10.0.0.1 10.0.0.2 10.1.0.1 ");
    assert_int_equal(uplink_deferred_counts(q).entries, 1);

    const struct script_line good[] = {{"*", 201}};
    w.wire.lines = good;
    w.clock.now_us = uplink_deferred_due_us(q);
    uplink_deferred_wake(q);
    loop_settle(w.loop);
    assert_int_equal(told.n_delivered, 1);
    assert_str(buf_str(&w.wire.body), "device(info)");
    assert_int_equal(uplink_deferred_counts(q).entries, 0);

    w.wire.is_mute = true; /* one is under way when it ends */
    assert_int_equal(uplink_deferred_set(q, &m), 0);
    loop_settle(w.loop);
    uplink_deferred_free(q);
    world_done(&w);
}

#define N_UPLINKS 5000

/* Devices of one process share the wire, the loop and their trust, and keep their own counters. */
TEST(thousands_of_uplinks_share_a_wire)
{
    WORLD(w, {"*", 200});
    static struct uplink *uplinks[N_UPLINKS];
    static struct uplink_metrics *metrics[N_UPLINKS];
    CLEANUP(uplink_ports_unrefp) struct uplink_ports *ports = uplink_ports_new(1, two_ports, 2);
    for (size_t i = 0; i < N_UPLINKS; i++) {
        metrics[i] = uplink_metrics_new();
        uplinks[i] = uplink_new(&(struct uplink_options){.loop = w.loop,
                                                         .wire = &w.wire.wire,
                                                         .clock = &w.clock.clock,
                                                         .metrics = metrics[i],
                                                         .server = STR("c.example")});
        uplink_set_ports(uplinks[i], ports);
        (void) uplink_send(uplinks[i], &config, on_answer, &w);
    }
    loop_settle(w.loop);
    assert_int_equal(w.n_done, N_UPLINKS);
    for (size_t i = 0; i < N_UPLINKS; i++) {
        assert_int_equal(uplink_metrics_get(metrics[i], STR("eth0"))->successes, 1);
        uplink_free(uplinks[i]);
        uplink_metrics_free(metrics[i]);
    }
    world_done(&w);
}

/* ---- verification of all ports ------------------------------------------------------------- */

/* A letter for each port: G good, B bad, lower case when nothing was sent; - when not recorded, ?
 * when it may yet become ready. */
static void on_verified(void *arg, const struct uplink_verification *v)
{
    struct world *w = arg;
    buf_reset(&w->words);
    for (size_t i = 0; i < v->n_ports; i++) {
        const struct uplink_verified_port *p = &v->ports[i];
        const char letter = p->is_good ? 'G' : 'B';
        buf_printf(&w->words, "%.*s:%c%s%s ", STR_ARG(p->name),
                   p->is_dry_run ? letter | 0x20 : letter, p->is_recorded ? "" : "-",
                   p->is_not_ready ? "?" : "");
    }
    buf_printf(&w->words, "%s%s", v->is_reachable ? "reachable" : "not",
               v->is_temporary ? " temporarily" : "");
    w->answer.error = v->error;
    w->n_done++;
}

struct verify_case {
    const char *what;
    const char *flags; /* of eth0, eth1 (both free) and wwan0 (dear): see below */
    struct script_line line;
    uint64_t iteration;
    const char *result;
    int error;
};

/* m management, a not; 2 without L3; n without addresses; d without DNS; h DHCP none; x invalid;
 * b blocked. */
static const struct verify_case verify_cases[] = {
    {"the first that works proves it",
     "m m m",
     {"*", 200},
     0,
     "eth0:G eth1:g- wwan0:g reachable",
     0},
    {"the next in turn", "m m m", {"*", 200}, 1, "eth1:G eth0:g- wwan0:g reachable", 0},
    {"none works", "m m m", {"*", 0, UPLINK_FAULT_TIMEOUT}, 0, "eth0:B eth1:B wwan0:B not", 0},
    {"refused is for a time",
     "m m m",
     {"*", 0, UPLINK_FAULT_REFUSED},
     0,
     "eth0:B eth1:B wwan0:B not temporarily",
     0},
    {"so is 503", "m a a", {"*", 503}, 0, "eth0:B eth1:g wwan0:g not temporarily", 0},
    {"404 is not", "m a a", {"*", 404}, 0, "eth0:B eth1:g wwan0:g not", 0},
    {"no management at all", "a a a", {"*", 200}, 0, "eth0:g eth1:g wwan0:g not", -ENODEV},
    {"an application's port needs no address without DHCP, nor DNS",
     "m ahn ad",
     {"*", 200},
     0,
     "eth0:G eth1:g wwan0:g reachable",
     0},
    {"but with DHCP it does", "m an a", {"*", 200}, 0, "eth0:G eth1:b? wwan0:g reachable", 0},
    {"nor does one without L3", "m m2n a", {"*", 200}, 0, "eth0:G eth1:g wwan0:g reachable", 0},
    {"management needs both", "mn md m", {"*", 200}, 0, "eth0:B? eth1:B? wwan0:G reachable", 0},
    {"a modem that cannot", "mn mn mb", {"*", 200}, 0, "eth0:B? eth1:B? wwan0:B not", 0},
    {"names that nobody answers",
     "m m m",
     {"*", 0, UPLINK_FAULT_LOOKUP},
     0,
     "eth0:B? eth1:B? wwan0:B? not",
     0},
    {"a configuration that does not parse", "mx m m", {"*", 200}, 0, "eth1:G wwan0:g reachable", 0},
};

static struct uplink_port flagged_port(struct str name, unsigned cost, struct str flags)
{
    const bool has_address = str_find(flags, 'n') < 0, has_dns = str_find(flags, 'd') < 0;
    return (struct uplink_port){.name = name,
                                .cost = cost,
                                .is_management = str_find(flags, 'm') >= 0,
                                .is_l3 = str_find(flags, '2') < 0,
                                .has_dhcp_none = str_find(flags, 'h') >= 0,
                                .has_invalid_config = str_find(flags, 'x') >= 0,
                                .blocked_reason =
                                    str_find(flags, 'b') >= 0 ? STR("no signal") : STR_NONE,
                                .addresses = dear,
                                .n_addresses = has_address ? 1 : 0,
                                .dns_servers = dns,
                                .n_dns_servers = has_dns ? 1 : 0};
}

TEST(verification_looks_at_every_port_as_described)
{
    for (size_t i = 0; i < N_ELEMENTS(verify_cases); i++) {
        const struct verify_case *c = &verify_cases[i];
        struct world w;
        world_init(&w, &c->line, 1);
        struct str rest = str_of(c->flags), f[3];
        for (size_t k = 0; k < 3; k++)
            assert_true(str_split(&rest, ' ', &f[k]));
        const struct uplink_port ports[] = {flagged_port(STR("eth0"), 0, f[0]),
                                            flagged_port(STR("eth1"), 0, f[1]),
                                            flagged_port(STR("wwan0"), 9, f[2])};
        set_ports(&w, ports, 3);
        const struct uplink_verify_options o = {.url = STR("https://c.example/ping"),
                                                .iteration = c->iteration};
        (void) uplink_verify_start(w.uplink, &o, on_verified, &w);
        loop_settle(w.loop);
        if (w.n_done != 1 || w.answer.error != c->error || !str_is(buf_str(&w.words), c->result))
            fail_msg("%s: %d \"%.*s\"", c->what, w.answer.error, STR_ARG(buf_str(&w.words)));
        world_done(&w);
    }
}
