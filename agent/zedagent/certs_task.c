/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's certificates: fetched now and then, and when something is signed by one that we
 * do not know. */
#include <errno.h>

#include "base/log.h"
#include "eve/certs.pb-c.h"
#include "eve/envelope.h"
#include "pki/pki.h"
#include "protobuf/message.h"
#include "zedagent/gotype.h"
#include "zedagent/zedagent_internal.h"

#define RETRY_MS (120 * 1000)

static void schedule(struct zedagent *z, bool has_failed)
{
    struct certs_task *c = &z->certs;
    c->has_failed = has_failed;
    int64_t after_ms = has_failed ? RETRY_MS : node_jitter_ms(z->node, c->interval_s);
    if (c->is_again)
        after_ms = 0;
    c->is_again = false;
    loop_timer_start(c->timer, after_ms, 0);
}

void certs_publish(struct zedagent *z)
{
    ARENA_AUTO a = arena_new();
    struct publication *p = z->topics.controller_certs;
    size_t n, position = 0;
    const struct node_controller_cert *certs = node_controller_certs(z->node, &n);
    struct json all = json_object(), gone = json_array();
    struct str key, text;
    for (size_t i = 0; i < n; i++) {
        struct gotype g = gotype_new(a);
        gotype_int(&g, "HashAlgo", certs[i].hash_algo);
        gotype_int(&g, "Type", certs[i].type);
        gotype_bytes(&g, "Cert", certs[i].pem);
        gotype_bytes(&g, "CertHash", certs[i].hash);
        (void) json_set(a, &all,
                        pki_hex(a, (const unsigned char *) certs[i].hash.p, certs[i].hash.n),
                        *g.object);
    }
    while (publication_next(p, &position, &key, &text))
        if (!json_get(&all, key))
            json_push(a, &gone, json_string(arena_str(a, key)));
    JSON_FOR_EACH_ITEM (&gone, item)
        (void) publication_unpublish(p, json_str(item));
    JSON_FOR_EACH_MEMBER (&all, m)
        (void) publication_publish(p, json_str(&m->key), &m->value);
}

/* When the signing certificate begins; 0: there is none. */
static int64_t begin_of(struct str pem)
{
    struct pki_cert *cert;
    if (pki_cert_parse(pem, &cert) < 0)
        return 0;
    const int64_t begin = pki_cert_not_before(cert);
    pki_cert_free(cert);
    return begin;
}

/* Who hands them on must not lead us back to ones that were given up. */
static bool is_older(const struct zedagent *z, struct str message)
{
    enum { SIGNING = EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING };
    ARENA_AUTO a = arena_new();
    const Eve__Certs__ZControllerCert *set = PB_UNPACK(a, eve__certs__zcontroller_cert, message);
    size_t n;
    const struct node_controller_cert *known = node_controller_certs(z->node, &n);
    int64_t before = 0, now = 0;
    for (size_t i = 0; i < n; i++)
        if (known[i].type == SIGNING)
            before = begin_of(known[i].pem);
    for (size_t i = 0; set && i < set->n_certs; i++)
        if (set->certs[i]->type == (Eve__Certs__ZCertType) SIGNING)
            now = begin_of(pb_bytes(set->certs[i]->cert));
    return now < before;
}

/* False: not delivered, or not to be believed. */
static bool take(struct zedagent *z, const struct uplink_answer *answer, bool *ret_is_new)
{
    const char *reason = "it is no envelope";
    struct envelope e;
    size_t n;
    const struct node_controller_cert *before = node_controller_certs(z->node, &n);
    int r;
    if (answer->error < 0 || answer->http_status != 200)
        return false;
    /* The certificates vouch for themselves: their chain must lead to the root. */
    r = envelope_parse(answer->body, &e);
    if (r == 0 && z->certs.is_from_loc && is_older(z, e.payload)) {
        reason = "they are older than those we know";
        r = -EKEYREJECTED;
    }
    if (r == 0)
        r = node_take_controller_certs(z->node, e.payload, /* needs_ecdh= */ true, &reason);
    *ret_is_new = r == 0 && node_controller_certs(z->node, &n) != before;
    if (r == 0)
        return true;
    log_warning("the controller's certificates are refused", LOG_TEXT("reason", reason),
                LOG_ERRNO(r));
    node_set_led(z->node, NODE_LED_BAD_CONTROLLER_CERT);
    return false;
}

static void ask(struct zedagent *z, bool is_of_loc);

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct zedagent *z = arg;
    z->certs.call = NULL;
    bool is_new = false;
    const bool is_taken = take(z, answer, &is_new);
    if (answer->error < 0 && z->loc_url.n && !z->certs.is_from_loc) {
        ask(z, /* is_of_loc= */ true);
        return;
    }
    if (is_taken)
        certs_publish(z);
    /* What was not believed may be now; with the same ones as before it is not. */
    if (is_new && !z->cycle.is_working)
        cycle_hurry(z);
    schedule(z, /* has_failed= */ !is_taken);
}

/* Certificates are everybody's: the URL does not name the device. */
static void ask(struct zedagent *z, bool is_of_loc)
{
    ARENA_AUTO a = arena_new();
    const struct uplink_request r = {
        .url = is_of_loc ? uplink_url_build(a, UPLINK_API_V2, z->loc_url, NULL, STR("certs"))
                         : uplink_url(z->link->uplink, a, /* with_device= */ false, STR("certs"))};
    z->certs.is_from_loc = is_of_loc;
    z->certs.call = uplink_send(z->link->uplink, &r, on_answer, z);
}

static void on_tick(void *arg)
{
    struct zedagent *z = arg;
    if (!z->o.must_not_fetch)
        ask(z, /* is_of_loc= */ false);
}

void certs_hurry(struct zedagent *z)
{
    if (!z->cycle.is_started)
        return;
    if (z->certs.call)
        z->certs.is_again = true;
    else
        loop_timer_start(z->certs.timer, 0, 0);
}

void certs_follow_items(struct zedagent *z)
{
    const int64_t interval_s = items_int(z->items, "timer.cert.interval");
    if (interval_s == z->certs.interval_s)
        return;
    z->certs.interval_s = interval_s;
    if (z->cycle.is_started && !z->certs.call)
        schedule(z, /* has_failed= */ false);
}

void certs_start(struct zedagent *z)
{
    certs_publish(z);
    loop_timer_start(z->certs.timer, z->node->ports ? 0 : RETRY_MS, 0);
    z->certs.has_failed = !z->node->ports;
}

void certs_follow_network(struct zedagent *z)
{
    if (z->certs.has_failed)
        certs_hurry(z);
}

int certs_open(struct zedagent *z)
{
    z->certs.timer = loop_timer_new(z->node->loop, on_tick, z);
    z->certs.interval_s = items_int(z->items, "timer.cert.interval");
    return 0;
}

void certs_close(struct zedagent *z)
{
    if (z->certs.call)
        uplink_cancel(z->certs.call);
    loop_timer_free(z->certs.timer);
}
