/* SPDX-License-Identifier: Apache-2.0 */
#include "device/config.h"

#include <errno.h>

#include "device/config_settle.h"
#include "json/json.h"

/* ---- polls --------------------------------------------------------------------------------- */

/* With the lock. The device has what we would send: it need not be kept any longer. */
static bool confirm(struct device *d)
{
    bool is_first = !d->is_config_confirmed;
    d->is_config_confirmed = d->is_config_given = true;
    if (d->config)
        bytes_unref(&TAKE(d->config)->bytes);
    return is_first;
}

/* With the lock. */
static bool give(struct device *d)
{
    bool is_first = !d->is_config_given;
    d->is_config_given = true;
    return is_first;
}

/* With the lock. */
static bool is_current(const struct device *d, struct str hash)
{
    return d->is_config_known && str_is(hash, d->config_hash);
}

static void tell(struct device_call *c, struct str hash, const struct config_mark *mark,
                 bool is_confirmed)
{
    reports_config_fetched(c->api->reports, c->device,
                           &(struct config_fetched){.hash = hash,
                                                    .version = mark->version,
                                                    .rendered_s = mark->rendered_s,
                                                    .is_confirmed = is_confirmed});
}

enum config_poll device_config_poll(struct device_call *c, struct str known_hash,
                                    struct device_config **ret_config)
{
    struct device *d = c->device;
    enum config_poll answer = CONFIG_TO_MAKE;
    bool is_first = false;
    struct config_mark mark;
    (void) pthread_mutex_lock(&d->lock);
    mark = d->config_mark;
    if (is_current(d, known_hash)) {
        answer = CONFIG_UNCHANGED;
        is_first = confirm(d);
    } else if (d->is_config_known && d->config) {
        answer = CONFIG_READY;
        *ret_config = d->config;
        (void) bytes_ref(&d->config->bytes);
    }
    (void) pthread_mutex_unlock(&d->lock);
    if (is_first)
        tell(c, known_hash, &mark, /* is_confirmed= */ true);
    return answer;
}

/* One that a change has made old meanwhile is told of, too: it is what the device has, and it comes
 * again only when its interval is over. */
static void note(struct device_call *c, const struct device_config *config, bool is_confirmed)
{
    struct device *d = c->device;
    bool is_first = true;
    (void) pthread_mutex_lock(&d->lock);
    if (is_current(d, config->hash))
        is_first = is_confirmed ? confirm(d) : give(d);
    (void) pthread_mutex_unlock(&d->lock);
    if (is_first)
        tell(c, config->hash, &config->mark, is_confirmed);
}

void device_config_given(struct device_call *c, const struct device_config *config)
{
    note(c, config, /* is_confirmed= */ false);
}

int device_config_check_token(struct device_call *c, struct str token)
{
    struct device *d = c->device;
    if (atomic_load(&d->attestation) != ATTESTATION_ENFORCE)
        return 0;
    (void) pthread_mutex_lock(&d->lock);
    bool is_good = d->integrity_token.n && str_eq(d->integrity_token, token);
    (void) pthread_mutex_unlock(&d->lock);
    if (is_good)
        return 0;
    (void) device_refuse(c, 403, "the device has not attested: its integrity token is %s",
                         token.n ? "not the one it was given" : "missing");
    return -EPERM;
}

/* ---- making one ----------------------------------------------------------------------------- */

/* Only of the generation it was made of; a change meanwhile makes it old at once. */
static void remember(const struct config_settling *s, struct device_config *config)
{
    struct device *d = s->device;
    (void) pthread_mutex_lock(&d->lock);
    if (d->config_generation == s->config_generation) {
        if (d->config)
            bytes_unref(&d->config->bytes);
        d->config = config;
        (void) bytes_ref(&config->bytes);
        memcpy(d->config_hash, s->hash.p, MIN(s->hash.n, sizeof(d->config_hash) - 1));
        d->config_mark = s->mark;
        d->is_config_known = true;
    }
    (void) pthread_mutex_unlock(&d->lock);
}

/* A device that asks with a hash we know nothing of has a configuration of the time that a restored
 * backup does not remember, or of another controller's. It would ignore one that is older: it is
 * given a new one. Only what was made before the server began can be, so one look is enough. */
static bool has_unknown_config(struct device_call *c, const struct config_settling *s,
                               struct str known_hash)
{
    struct device *d = c->device;
    struct json *object = NULL;
    struct status st;
    status_init(&st, c->arena);
    (void) pthread_mutex_lock(&d->lock);
    const bool is_looked_at = d->is_hash_looked_at;
    d->is_hash_looked_at = true;
    (void) pthread_mutex_unlock(&d->lock);
    if (is_looked_at || !known_hash.n || str_eq(known_hash, s->hash) ||
        s->mark.rendered_s >= roster_started_us(c->api->roster) / 1000000)
        return false;
    const struct kube_request r = {.verb = VERB_GET,
                                   .group = STR("eve.lfedge.org"),
                                   .version = STR("v1beta1"),
                                   .resource = STR("devices"),
                                   .namespace = d->namespace,
                                   .name = d->name};
    return kube_request(c->api->client, c->arena, &r, &object, &st) == 0 &&
           !str_eq(json_str(json_at(object, "status", "config", "hash", NULL)), known_hash);
}

/* Who has no DeviceConfig yet gets one now. */
static int settle(struct device_call *c, struct config_settling *s)
{
    struct status st;
    int r = device_config_settle(s);
    if (r != -ENOENT || !c->api->ensure_config)
        return r;
    status_init(&st, c->arena);
    const int ensured =
        c->api->ensure_config(c->api->ensure_ctx, s->device->namespace, s->device->name, &st);
    /* It may be there although something about it could not be written. */
    r = device_config_settle(s);
    if (r == -ENOENT && ensured < 0)
        s->reason =
            arena_printf(c->arena, "cannot compose the configuration: %.*s", STR_ARG(st.message));
    return r;
}

static int seal(struct device_call *c, const struct config_settling *s, struct config_made *ret)
{
    Eve__Config__ConfigResponse response = EVE__CONFIG__CONFIG_RESPONSE__INIT;
    response.config = s->config;
    response.confighash = arena_strz(c->arena, s->hash);
    ret->config = s->bytes;
    ret->response = pb_pack(c->arena, &response.base);
    struct str envelope = envelope_seal(c->arena, &s->set->signer, ret->response);
    if (!envelope.p) {
        c->reason = STR("cannot sign the configuration: OpenSSL failed");
        return -EIO;
    }
    struct device_config *made = device_config_new(&s->mark, s->hash, envelope);
    remember(s, made);
    c->shared_body = (struct slice){made->envelope, &made->bytes};
    ret->sealed = made;
    return 0;
}

static int make_with(struct device_call *c, const struct controller_set *set, struct str known_hash,
                     struct config_made *ret)
{
    struct device *d = c->device;
    struct config_settling s = {
        .api = c->api, .arena = c->arena, .device = d, .set = set, .is_making = true};
    (void) pthread_mutex_lock(&d->lock);
    s.config_generation = d->config_generation;
    (void) pthread_mutex_unlock(&d->lock);
    int r = settle(c, &s);
    if (r == 0 && has_unknown_config(c, &s, known_hash)) {
        s.is_forced = true;
        r = device_config_settle(&s);
    }
    if (r < 0) {
        c->reason = s.reason;
        return r;
    }
    return seal(c, &s, ret);
}

int device_config_make(struct device_call *c, struct str known_hash, struct config_made *ret)
{
    struct controller_set *set = controller_certs_get(c->api->certs);
    int r = make_with(c, set, known_hash, ret);
    bytes_unref(&set->bytes);
    return r;
}

/* ---- POST config, GET config ---------------------------------------------------------------- */

static int answer_bare(struct device_call *c, struct str body)
{
    slice_unref(c->shared_body);
    c->shared_body = (struct slice){0};
    c->body = body;
    c->status = 200;
    return 0;
}

int device_config_answer(struct device_call *c)
{
    struct config_made made = {0};
    const Eve__Config__ConfigRequest *q =
        PB_UNPACK(c->arena, eve__config__config_request, c->payload);
    if (!q)
        return device_refuse(c, 422, "the body is no ConfigRequest");
    int r = device_config_make(c, pb_text(q->confighash), &made);
    if (r < 0)
        return device_refuse(c, 503, "%.*s", STR_ARG(c->reason));
    if (!(c->is_v1 && str_is(c->method, "GET")) &&
        str_eq(pb_text(q->confighash), made.sealed->hash)) {
        note(c, made.sealed, /* is_confirmed= */ true);
        (void) answer_bare(c, STR(""));
        c->status = 304;
        return 0;
    }
    device_config_given(c, made.sealed);
    if (c->is_v1)
        return answer_bare(c, str_is(c->method, "GET") ? made.config : made.response);
    c->status = 200;
    return 0;
}
