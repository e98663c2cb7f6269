/* SPDX-License-Identifier: Apache-2.0 */
/* An uplink as a process of its own, for tests in network namespaces. Standard input has one JSON
 * object a line, each answered by one:
 *
 *     {"roots":"<PEM>","cert":"<PEM>","key":"<PEM>"}   who we are
 *     {"ports":{DeviceNetworkStatus}}
 *     {"timeouts":[send_ms, dial_ms]}
 *     {"send":{"url":"..","body":"..","port":"..","bails":true,"traces":true}}
 *     {"stream":{"url":"..","port":"..","source":"..","cancels_at":".."}}
 *                                     answered by its pieces, {"piece":".."}, and its end
 *     {"cancel":true}                 the stream
 *     {"wpad":"<port>"}
 *     {"metrics":true}
 *
 * It ends with standard input. */
#include <errno.h>

#include "controllerconn/uplink.h"
#include "controllerconn/wpad.h"
#include "eve/envelope.h"
#include "loop/loop.h"
#include "pki/chain.h"
#include "tool.h"
#include "json/json.h"

struct tool {
    struct loop *loop;
    struct uplink_wire *wire;
    struct uplink_metrics *metrics;
    struct uplink *uplink;
    struct uplink_ports *ports;
    struct uplink_trace *trace;
    struct uplink_call *stream;
    struct str cancels_at; /* a piece that begins so */
    struct arena *arena;
    struct pki_key *key;
    unsigned char cert_hash[ENVELOPE_HASH_BYTES];
};

static int wrap(void *arg, bool is_registration, struct str payload, struct buf *to)
{
    const struct tool *t = arg;
    if (is_registration || !t->key)
        return -EINVAL;
    ARENA_AUTO a = arena_new();
    struct envelope_signer signer = {.key = t->key};
    memcpy(signer.cert_hash, t->cert_hash, sizeof(t->cert_hash));
    const struct str sealed = envelope_seal(a, &signer, payload);
    buf_append_str(to, sealed);
    return sealed.p ? 0 : -EIO;
}

static void add_str(struct buf *b, const char *name, struct str s)
{
    buf_printf(b, ",\"%s\":", name);
    json_write_str(b, str_is_utf8(s) ? s : STR("(bytes)"));
}

static void on_answer(void *arg, const struct uplink_answer *a)
{
    struct tool *t = arg;
    BUF_AUTO line = {0};
    buf_printf(&line, "{\"error\":%d,\"http\":%d,\"last\":%d,\"n\":%zu", a->error, a->http_status,
               a->last_http_status, a->body.n);
    add_str(&line, "status", str_of(uplink_status_name(a->status)));
    add_str(&line, "port", a->port);
    add_str(&line, "body", a->body);
    add_str(&line, "type", a->content_type);
    add_str(&line, "words", a->words);
    if (t->trace) {
        buf_append_str(&line, STR(",\"trace\":"));
        uplink_trace_write(t->trace, &line);
        uplink_trace_free(TAKE(t->trace));
    }
    tool_say("%s}", line.p);
}

static void on_end(void *arg, const struct uplink_answer *a)
{
    ((struct tool *) arg)->stream = NULL;
    on_answer(arg, a);
}

static void on_piece(void *arg, struct str piece)
{
    struct tool *t = arg;
    BUF_AUTO line = {0};
    json_write_str(&line, piece);
    tool_say("{\"piece\":%s}", line.p);
    if (t->cancels_at.n > 0 && str_starts_with(piece, t->cancels_at))
        uplink_cancel(TAKE(t->stream));
}

static void on_script(void *arg, struct str pac, struct str url, struct str words)
{
    BUF_AUTO line = {0};
    (void) arg;
    buf_printf(&line, "{\"error\":%d", pac.p ? 0 : -ENOENT);
    add_str(&line, "pac", pac);
    add_str(&line, "url", url);
    add_str(&line, "words", words);
    tool_say("%s}", line.p);
}

static int set_identity(struct tool *t, const struct json *v)
{
    const struct str roots = json_get_str(v, STR("roots"));
    CLEANUP(uplink_trust_unrefp) struct uplink_trust *trust = NULL;
    CLEANUP(uplink_tls_unrefp) struct uplink_tls *tls = NULL;
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    size_t which = 0;
    int r =
        uplink_trust_new(&(struct uplink_trust_options){.pem = &roots, .n_pem = 1}, &trust, &which);
    if (r < 0)
        return r;
    const struct uplink_tls_options o = {.trust = trust,
                                         .cert_pem = json_get_str(v, STR("cert")),
                                         .key_pem = json_get_str(v, STR("key"))};
    r = uplink_tls_new(&o, &tls);
    if (r < 0)
        return r;
    uplink_set_tls(t->uplink, tls);
    pki_key_free(TAKE(t->key));
    if (o.cert_pem.n == 0)
        return 0;
    r = pki_cert_parse(o.cert_pem, &cert);
    if (r < 0)
        return r;
    pki_cert_fingerprint(cert, t->cert_hash);
    return pki_key_parse(o.key_pem, &t->key);
}

static int set_ports(struct tool *t, const struct json *v)
{
    struct uplink_ports *ports = NULL;
    const int r = uplink_ports_parse(v, &ports);
    if (r < 0)
        return r;
    uplink_set_ports(t->uplink, ports);
    uplink_ports_unref(t->ports);
    t->ports = ports;
    return 0;
}

static void send_request(struct tool *t, const struct json *v)
{
    if (json_get_bool(v, STR("traces"), false))
        t->trace = uplink_trace_new(&clock_system);
    const struct uplink_request r = {.url = json_get_str(v, STR("url")),
                                     .body = json_get_str(v, STR("body")),
                                     .port = json_get_str(v, STR("port")),
                                     .bails_on_http_error = json_get_bool(v, STR("bails"), false),
                                     .trace = t->trace};
    (void) uplink_send(t->uplink, &r, on_answer, t);
}

static void open_stream(struct tool *t, const struct json *v)
{
    const struct uplink_request r = {.url = json_get_str(v, STR("url")),
                                     .port = json_get_str(v, STR("port")),
                                     .source = json_get_str(v, STR("source")),
                                     .is_local = true,
                                     .on_data = on_piece,
                                     .keepalive_s = 60};
    t->cancels_at = arena_str(t->arena, json_get_str(v, STR("cancels_at")));
    t->stream = uplink_send(t->uplink, &r, on_end, t);
}

static void run_command(struct tool *t, const struct json *v)
{
    const struct json *ports = json_get(v, STR("ports")), *send = json_get(v, STR("send"));
    const struct json *timeouts = json_get(v, STR("timeouts")),
                      *stream = json_get(v, STR("stream"));
    const struct str wpad = json_get_str(v, STR("wpad"));
    if (send) {
        send_request(t, send);
    } else if (stream) {
        open_stream(t, stream);
    } else if (json_get(v, STR("cancel"))) {
        uplink_cancel(TAKE(t->stream));
        tool_say_result(0);
    } else if (ports) {
        tool_say_result(set_ports(t, ports));
    } else if (json_count(timeouts) == 2) {
        uplink_set_timeouts(t->uplink, timeouts->items[0].i, timeouts->items[1].i);
        tool_say_result(0);
    } else if (wpad.n > 0) {
        (void) uplink_wpad_start(t->uplink, uplink_ports_find(t->ports, wpad), on_script, t);
    } else if (json_get(v, STR("metrics"))) {
        BUF_AUTO line = {0};
        uplink_metrics_write(t->metrics, &line);
        tool_say("%s", line.p);
    } else {
        tool_say_result(set_identity(t, v));
    }
}

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    (void) a;
    if (v)
        run_command(arg, v);
    else
        tool_say_result(-EINVAL);
}

int main(void)
{
    struct tool t = {.loop = loop_new(), .metrics = uplink_metrics_new(), .arena = arena_new()};
    const struct uplink_envelope envelope = {.wrap = wrap, .arg = &t};
    t.wire = uplink_wire_new(t.loop, &clock_system);
    t.uplink = uplink_new(&(struct uplink_options){.loop = t.loop,
                                                   .wire = t.wire,
                                                   .clock = &clock_system,
                                                   .metrics = t.metrics,
                                                   .envelope = &envelope,
                                                   .serial = STR("serial-1")});
    struct tool_lines *lines = tool_read_lines(t.loop, on_line, NULL, &t);
    loop_run(t.loop);
    uplink_free(t.uplink);
    uplink_wire_free(t.wire);
    uplink_metrics_free(t.metrics);
    uplink_ports_unref(t.ports);
    uplink_trace_free(t.trace);
    pki_key_free(t.key);
    arena_free(t.arena);
    tool_lines_free(lines);
    loop_settle(t.loop);
    loop_free(t.loop);
    return 0;
}
