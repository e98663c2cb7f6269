/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/sending.h"

#include "attest/messages.h"
#include "base/alloc.h"
#include "base/log.h"
#include "controllerconn/deferred.h"
#include "loop/loop.h"
#include "node/link.h"
#include "zedagent/zedagent.h"

#define RETRY_MS 10000
#define RETRY_SPREAD 20
#define MAX_WAITING 1

struct sending {
    struct zedagent *zedagent;
    struct node *node;
    struct subscription *certs;
    struct uplink_deferred *queue;
    struct node_watch watch;
    struct loop_deferred soon;
    struct loop_timer *timer;
    bool is_taken; /* what is published, by the controller */
    bool is_told;  /* of being refused */
};

static struct str message_key(struct arena *a, const struct sending *s)
{
    char uuid[UUID_TEXT_BYTES];
    uuid_text(&s->node->device, uuid);
    return arena_printf(a, "attest:%s", uuid);
}

/* All that are published. -ENOENT: none. */
static int make_request(struct sending *s, struct arena *a, struct str *ret)
{
    const struct json *certs[ATTEST_MAX_CERTS];
    struct str key, text;
    size_t n = 0;
    for (size_t at = 0; n < N_ELEMENTS(certs) && subscription_next(s->certs, &at, &key, &text);)
        certs[n++] = json_parse_quick(a, text);
    return attest_certs_request(a, certs, n, ret);
}

static void send(struct sending *s)
{
    ARENA_AUTO a = arena_new();
    struct str body;
    if (uuid_is_zero(&s->node->device) || !s->node->ports || make_request(s, a, &body) < 0)
        return;
    const struct uplink_deferred_message m = {
        .key = message_key(a, s),
        .url = node_link_url(a, zedagent_link(s->zedagent), STR("attest")),
        .body = body,
        .bails_on_http_error = true,
        .is_discarded = true,
    };
    loop_timer_stop(s->timer);
    const int r = uplink_deferred_set(s->queue, &m);
    if (r < 0)
        log_warning("the device's certificates cannot be sent", LOG_ERRNO(r));
}

static void on_timer(void *arg)
{
    send(arg);
}

static void on_soon(struct loop_deferred *d)
{
    send(CONTAINER_OF(d, struct sending, soon));
}

void sending_again(struct sending *s)
{
    s->is_taken = false;
    loop_defer(s->node->loop, &s->soon);
}

/* ---- what becomes of them ------------------------------------------------------------------- */

static void tell(struct sending *s, bool are_refused)
{
    if (s->is_told == are_refused)
        return;
    s->is_told = are_refused;
    zedagent_set_certs_refused(s->zedagent, are_refused);
}

/* A controller that gives us a configuration and does not take them means it. */
static void on_status(void *arg, const struct uplink_deferred_message *m, enum uplink_status status)
{
    (void) m;
    struct sending *s = arg;
    if (status == UPLINK_DEBUG)
        return;
    s->is_taken = status == UPLINK_NONE;
    if (s->is_taken) {
        tell(s, false);
        return;
    }
    log_debug("the device's certificates were not taken",
              LOG_TEXT("status", uplink_status_name(status)));
    if (zedagent_facts(s->zedagent)->config_status == ZEDAGENT_CONFIG_SUCCESS)
        tell(s, true);
    loop_timer_start(s->timer, node_spread_ms(s->node, RETRY_MS, RETRY_SPREAD), 0);
}

/* ---- what is sent --------------------------------------------------------------------------- */

static void on_cert(void *arg, struct str key, const struct json *value)
{
    (void) key, (void) value;
    sending_again(arg);
}

static void on_cert_again(void *arg, struct str key, const struct json *value,
                          const struct json *old)
{
    (void) old;
    on_cert(arg, key, value);
}

/* The device is somebody else, or the way there is another: then without waiting. */
static void on_change(struct node_watch *w, unsigned changes)
{
    struct sending *s = CONTAINER_OF(w, struct sending, watch);
    if (changes & NODE_ONBOARDED || (changes & NODE_NETWORK && !s->is_taken))
        sending_again(s);
}

int sending_new(struct zedagent *z, struct node *n, struct sending **ret)
{
    static const struct subscription_handlers handlers = {.on_create = on_cert,
                                                          .on_modify = on_cert_again};
    const struct pubsub_name certs = {
        .agent = STR("tpmmgr"), .topic = STR("EdgeNodeCert"), .is_persistent = true};
    struct sending *s = NEW(struct sending);
    s->zedagent = z;
    s->node = n;
    s->soon.fn = on_soon;
    s->watch.on_change = on_change;
    s->timer = loop_timer_new(n->loop, on_timer, s);
    s->queue =
        uplink_deferred_new(&(struct uplink_deferred_options){.clock = n->clock,
                                                              .loop = n->loop,
                                                              .uplink = zedagent_link(z)->uplink,
                                                              .on_status = on_status,
                                                              .arg = s,
                                                              .max_entries = MAX_WAITING});
    const int r = subscription_new(n->pubsub, &certs, &handlers, s, &s->certs);
    if (r < 0) {
        sending_free(s);
        return r;
    }
    node_watch(n, &s->watch);
    *ret = s;
    return 0;
}

void sending_free(struct sending *s)
{
    if (!s)
        return;
    node_unwatch(&s->watch);
    loop_undefer(s->node->loop, &s->soon);
    loop_timer_free(s->timer);
    uplink_deferred_free(s->queue);
    subscription_free(s->certs);
    mem_free(s);
}
