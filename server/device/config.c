/* SPDX-License-Identifier: Apache-2.0 */
#include "device/config.h"

#include <errno.h>

#include "base/base64.h"
#include "device/config_seal.h"
#include "eve/config.pb-c.h"
#include "protobuf/protojson.h"
#include "json/json.h"

/* ---- polls --------------------------------------------------------------------------------- */

/* The device has what we would send: it need not be kept any longer. */
static bool confirm(struct device *d)
{
    bool is_first = !d->is_config_confirmed;
    d->is_config_confirmed = true;
    if (d->config)
        bytes_unref(&TAKE(d->config)->bytes);
    return is_first;
}

enum config_poll device_config_poll(struct device_call *c, struct str known_hash,
                                    struct device_config **ret_config)
{
    struct device *d = c->device;
    enum config_poll answer = CONFIG_TO_MAKE;
    bool is_first = false;
    (void) pthread_mutex_lock(&d->lock);
    if (d->is_config_known && str_is(known_hash, d->config_hash)) {
        answer = CONFIG_UNCHANGED;
        is_first = confirm(d);
    } else if (d->is_config_known && d->config) {
        answer = CONFIG_READY;
        *ret_config = d->config;
        (void) bytes_ref(&d->config->bytes);
    }
    (void) pthread_mutex_unlock(&d->lock);
    if (is_first)
        reports_config_fetched(c->api->reports, d, known_hash);
    return answer;
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

static int fail(struct device_call *c, int r, const char *what, struct str why)
{
    c->reason = arena_printf(c->arena, "%s: %.*s", what, STR_ARG(why));
    return r;
}

/* The DeviceConfig's own, or that of a device that has none. */
static int read_config(struct device_call *c, Eve__Config__EdgeDevConfig **ret)
{
    const struct device *d = c->device;
    struct json *object = NULL;
    struct status st;
    struct str error = STR_NONE;
    size_t n_ignored = 0;
    status_init(&st, c->arena);
    int r = kube_request(c->api->client, c->arena,
                         &(struct kube_request){.verb = VERB_GET,
                                                .group = STR("eve.lfedge.org"),
                                                .version = STR("v1beta1"),
                                                .resource = STR("deviceconfigs"),
                                                .namespace = d->namespace,
                                                .name = d->name},
                         &object, &st);
    if (r < 0 && r != -ENOENT)
        return fail(c, r, "cannot read the DeviceConfig", st.message);
    const struct json *config = json_at(object, "spec", "config", NULL);
    if (r == -ENOENT || !config) {
        *ret = device_config_default(c->arena, d);
        return 0;
    }
    *ret = (void *) protojson_read(c->arena, &eve__config__edge_dev_config__descriptor, config,
                                   PROTOJSON_IGNORE_UNKNOWN, &n_ignored, &error);
    return *ret ? 0 : fail(c, -EBADMSG, "the DeviceConfig cannot be read", error);
}

/* What is ours to say, whatever the DeviceConfig does. */
static void complete(struct device_call *c, Eve__Config__EdgeDevConfig *config,
                     const struct controller_set *set)
{
    if (!config->id) {
        config->id = ARENA_NEW(c->arena, Eve__Config__UUIDandVersion);
        eve__config__uuidand_version__init(config->id);
    }
    config->id->uuid = c->device->uuid_text;
    if (!pb_text(config->id->version).n)
        config->id->version = (char *) "1";
    if (!pb_text(config->device_name).n)
        config->device_name = arena_strz(c->arena, c->device->name);
    config->controllercert_confighash = arena_strz(c->arena, set->config_hash);
}

static struct str hash_of(struct arena *a, struct str bytes)
{
    unsigned char digest[SHA256_BYTES];
    pki_sha256(bytes, digest);
    return base64_encode(a, str_range((const char *) digest, sizeof(digest)), BASE64_URL);
}

/* Only of the generation it was made of; a change meanwhile makes it old at once. */
static void remember(struct device *d, unsigned generation, struct str hash,
                     struct device_config *config)
{
    (void) pthread_mutex_lock(&d->lock);
    if (d->config_generation == generation) {
        if (d->config)
            bytes_unref(&d->config->bytes);
        d->config = config;
        (void) bytes_ref(&config->bytes);
        memcpy(d->config_hash, hash.p, MIN(hash.n, sizeof(d->config_hash) - 1));
        d->is_config_known = true;
    }
    (void) pthread_mutex_unlock(&d->lock);
}

static int make_with(struct device_call *c, const struct controller_set *set,
                     struct config_made *ret)
{
    struct device *d = c->device;
    Eve__Config__EdgeDevConfig *config = NULL;
    (void) pthread_mutex_lock(&d->lock);
    unsigned generation = d->config_generation;
    (void) pthread_mutex_unlock(&d->lock);
    int r = read_config(c, &config);
    if (r == 0)
        r = config_reseal(c, config, set);
    if (r < 0)
        return r;
    complete(c, config, set);
    ret->config = pb_pack(c->arena, &config->message);
    ret->hash = hash_of(c->arena, ret->config);
    Eve__Config__ConfigResponse response = EVE__CONFIG__CONFIG_RESPONSE__INIT;
    response.config = config;
    response.confighash = arena_strz(c->arena, ret->hash);
    ret->response = pb_pack(c->arena, &response.base);
    struct str envelope = envelope_seal(c->arena, &set->signer, ret->response);
    if (!envelope.p)
        return fail(c, -EIO, "cannot sign the configuration", STR("OpenSSL failed"));
    struct device_config *made = device_config_new(envelope);
    remember(d, generation, ret->hash, made);
    c->shared_body = (struct slice){made->envelope, &made->bytes};
    return 0;
}

int device_config_make(struct device_call *c, struct config_made *ret)
{
    struct controller_set *set = controller_certs_get(c->api->certs);
    int r = make_with(c, set, ret);
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
    int r = device_config_make(c, &made);
    if (r < 0)
        return device_refuse(c, 503, "%.*s", STR_ARG(c->reason));
    if (c->is_v1 && str_is(c->method, "GET"))
        return answer_bare(c, made.config);
    if (str_eq(pb_text(q->confighash), made.hash)) {
        struct device_config *unused = NULL;
        if (device_config_poll(c, made.hash, &unused) == CONFIG_READY)
            bytes_unref(&unused->bytes);
        (void) answer_bare(c, STR(""));
        c->status = 304;
        return 0;
    }
    if (c->is_v1)
        return answer_bare(c, made.response);
    c->status = 200;
    return 0;
}
