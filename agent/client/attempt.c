/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "client/client_internal.h"
#include "eve/envelope.h"
#include "eve/register.pb-c.h"
#include "eve/uuid.pb-c.h"
#include "protobuf/message.h"

static void over(struct client_attempt *t, enum client_result result)
{
    t->step = CLIENT_IDLE;
    t->on_over(t->arg, result);
}

static const char *name_of(enum client_step step)
{
    static const char *const names[] = {"", "certs", "register", "uuid"};
    return names[step];
}

static void complain(const struct client_attempt *t, const struct uplink_answer *a,
                     const char *reason)
{
    log_warning("onboarding failed, trying again later", LOG_TEXT("step", name_of(t->step)),
                LOG_STR("server", t->node->server), LOG_TEXT("reason", reason),
                LOG_INT("http", a->last_http_status),
                LOG_TEXT("status", uplink_status_name(a->status)), LOG_STR("words", a->words));
}

/* ---- what is accepted ----------------------------------------------------------------------- */

/* Why it is not accepted, or NULL. 204 and 304 are delivered, but say nothing here. */
static const char *judge(const struct uplink_answer *a)
{
    if (a->error < 0)
        return a->last_http_status ? "the controller refused" : "nobody answered";
    if (a->http_status != 200 && a->http_status != 201)
        return "a code without an answer";
    if (!uplink_type_is_message(a->content_type))
        return "its content type is absent or another";
    return NULL;
}

static void send_step(struct client_attempt *t, enum client_step step,
                      const struct uplink_request *request,
                      void (*on_done)(void *arg, const struct uplink_answer *a))
{
    ARENA_AUTO a = arena_new();
    struct uplink_request r = *request;
    r.url = uplink_url(t->link->uplink, a, /* with_device= */ false, str_of(name_of(step)));
    t->step = step;
    (void) uplink_send(t->link->uplink, &r, on_done, t);
}

/* ---- uuid ---------------------------------------------------------------------------------- */

static int take_uuid(struct client_attempt *t, struct str body)
{
    ARENA_AUTO a = arena_new();
    const Eve__Uuid__UuidResponse *m = PB_UNPACK(a, eve__uuid__uuid_response, body);
    struct uuid uuid;
    if (!m || uuid_parse(pb_text(m->uuid), &uuid) < 0 || uuid_is_zero(&uuid))
        return -EBADMSG;
    const struct str maker = pb_text(m->manufacturer), product = pb_text(m->product_name);
    t->uuid = uuid;
    mem_free((char *) t->model.p);
    t->model = STR_NONE;
    if (maker.n && product.n) {
        BUF_AUTO model = {0};
        buf_printf(&model, "%.*s.%.*s", STR_ARG(maker), STR_ARG(product));
        const size_t n = model.n;
        t->model = str_range(buf_take(&model), n);
    }
    return 0;
}

static void on_uuid(void *arg, const struct uplink_answer *a)
{
    struct client_attempt *t = arg;
    if (a->error == -EKEYREJECTED) {
        node_set_led(t->node, NODE_LED_BAD_ENVELOPE);
        complain(t, a, "the answer is not believed");
        const bool is_missing = a->status == UPLINK_CERT_MISS;
        t->has_certs = t->has_certs && !is_missing;
        over(t, is_missing ? CLIENT_NEEDS_CERTS : CLIENT_FAILED);
        return;
    }
    const char *reason = judge(a);
    if (!reason && take_uuid(t, a->body) < 0)
        reason = "the answer holds no UUID";
    if (reason)
        complain(t, a, reason);
    over(t, reason ? CLIENT_FAILED : CLIENT_DONE);
}

static void ask_uuid(struct client_attempt *t)
{
    /* The request is a message without fields. */
    send_step(t, CLIENT_UUID, &(struct uplink_request){.body = STR(""), .opens_reply = true},
              on_uuid);
}

/* ---- register ------------------------------------------------------------------------------ */

static void show_refusal(struct node *n, int code)
{
    switch (code) {
    case 400:
    case 500:
    case 504:
        node_set_led(n, NODE_LED_ONBOARDING_FAILURE);
        break;
    case 403:
        node_set_led(n, NODE_LED_NOT_FOUND);
        break;
    case 304:
    case 409:
        node_set_led(n, NODE_LED_ONBOARDING_CONFLICT);
        break;
    default:
        break;
    }
}

/* Whatever came of it, the question who we are decides: one who is registered already may be
 * refused here. */
static void on_registered(void *arg, const struct uplink_answer *a)
{
    struct client_attempt *t = arg;
    const char *reason = judge(a);
    if (reason) {
        show_refusal(t->node, a->last_http_status);
        complain(t, a, reason);
    }
    if (t->asks_uuid)
        ask_uuid(t);
    else
        over(t, reason ? CLIENT_FAILED : CLIENT_DONE);
}

static void send_registration(struct client_attempt *t)
{
    ARENA_AUTO a = arena_new();
    const struct node *n = t->node;
    Eve__Register__ZRegisterMsg m;
    eve__register__zregister_msg__init(&m);
    m.pemcert = pb_data(base64_encode(a, n->identity.cert_pem, BASE64_STANDARD));
    m.serial = arena_strz(a, n->serial);
    m.softserial = arena_strz(a, n->soft_serial);
    const struct uplink_request r = {.body = pb_pack(a, &m.base), .tls = n->onboarding.tls};
    send_step(t, CLIENT_REGISTER, &r, on_registered);
}

/* ---- certs --------------------------------------------------------------------------------- */

/* What carries the certificates is not verified: they speak for themselves. */
static const char *take_certs(struct client_attempt *t, struct str body)
{
    struct envelope e;
    const char *reason = NULL;
    if (envelope_parse(body, &e) < 0)
        return "the answer is no envelope";
    const int r = node_take_controller_certs(t->node, e.payload, /* needs_ecdh= */ true, &reason);
    return r < 0 ? reason : NULL;
}

static void go_on(struct client_attempt *t)
{
    if (t->registers && t->node->onboarding.tls)
        send_registration(t);
    else if (t->asks_uuid)
        ask_uuid(t);
    else
        over(t, CLIENT_DONE);
}

static void on_certs(void *arg, const struct uplink_answer *a)
{
    struct client_attempt *t = arg;
    const char *reason = judge(a);
    if (!reason)
        reason = take_certs(t, a->body);
    if (reason) {
        node_set_led(t->node, NODE_LED_BAD_CONTROLLER_CERT);
        complain(t, a, reason);
        over(t, CLIENT_FAILED);
        return;
    }
    t->has_certs = true;
    go_on(t);
}

void client_attempt_start(struct client_attempt *t)
{
    if (t->has_certs)
        go_on(t);
    else
        send_step(t, CLIENT_CERTS, &(struct uplink_request){0}, on_certs);
}
