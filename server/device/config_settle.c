/* SPDX-License-Identifier: Apache-2.0 */
#include "device/config_settle.h"

#include <errno.h>

#include "base/base64.h"
#include "controllers/conditions.h"
#include "device/config_seal.h"
#include "device/config_sound.h"
#include "protobuf/protojson.h"
#include "settings/settings.h"
#include "json/json.h"

#define MAX_ATTEMPTS 8 /* of those who write a DeviceConfig's status there are few */

static int fail(struct config_settling *s, int r, const char *what, struct str why)
{
    s->reason = arena_printf(s->arena, "%s: %.*s", what, STR_ARG(why));
    return r;
}

static int ask(struct config_settling *s, enum verb verb, const struct json *body,
               struct json **ret, struct status *st)
{
    const struct kube_request r = {.verb = verb,
                                   .group = STR("eve.lfedge.org"),
                                   .version = STR("v1beta1"),
                                   .resource = STR("deviceconfigs"),
                                   .namespace = s->device->namespace,
                                   .name = s->device->name,
                                   .subresource = body ? STR("status") : STR_NONE,
                                   .body = body};
    status_init(st, s->arena);
    return kube_request(s->api->client, s->arena, &r, ret, st);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Nobody composes it: what its writer says of version and time goes to the device as it is. */
static bool is_whole(const struct json *object)
{
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    return str_is(json_get_str(annotations, STR(SETTINGS_COMPOSED)), "false");
}

static int read_config(struct config_settling *s, const struct json *object)
{
    struct str error = STR_NONE;
    size_t n_ignored = 0;
    const struct json *config = json_at(object, "spec", "config", NULL);
    if (!config)
        return fail(s, -ENOENT, "nothing to tell", STR("the DeviceConfig is empty"));
    s->config = (void *) protojson_read(s->arena, &eve__config__edge_dev_config__descriptor, config,
                                        PROTOJSON_IGNORE_UNKNOWN, &n_ignored, &error);
    if (!s->config)
        return fail(s, -EBADMSG, "the DeviceConfig cannot be read", error);
    config_make_sound(s->config);
    return config_reseal(s, s->config);
}

static void set_time(struct config_settling *s, bool is_whole)
{
    if (is_whole && s->config->config_timestamp)
        return;
    Google__Protobuf__Timestamp *t = ARENA_NEW(s->arena, Google__Protobuf__Timestamp);
    google__protobuf__timestamp__init(t);
    t->seconds = s->mark.rendered_s;
    s->config->config_timestamp = t;
}

/* What is ours to say, whatever the DeviceConfig does. */
static void complete(struct config_settling *s, bool is_whole)
{
    Eve__Config__EdgeDevConfig *config = s->config;
    if (!config->id) {
        config->id = ARENA_NEW(s->arena, Eve__Config__UUIDandVersion);
        eve__config__uuidand_version__init(config->id);
    }
    config->id->uuid = s->device->uuid_text;
    if (!is_whole || !pb_text(config->id->version).n)
        config->id->version =
            arena_strz(s->arena, arena_printf(s->arena, "%lld", (long long) s->mark.version));
    if (!pb_text(config->device_name).n)
        config->device_name = arena_strz(s->arena, s->device->name);
    config->controllercert_confighash = arena_strz(s->arena, s->set->config_hash);
    set_time(s, is_whole);
}

static void pack(struct config_settling *s)
{
    unsigned char digest[SHA256_BYTES];
    s->bytes = pb_pack(s->arena, &s->config->message);
    pki_sha256(s->bytes, digest);
    s->hash = base64_encode(s->arena, str_range((const char *) digest, sizeof(digest)), BASE64_URL);
}

/* ---- version and time ------------------------------------------------------------------------ */

/* Whether the status is that of the present generation, and nothing newer was given to the device
 * before: of a DeviceConfig that was deleted and made again, perhaps. */
static bool is_settled(const struct config_settling *s, const struct json *object,
                       const struct config_mark *is, const struct config_mark *floor)
{
    const struct json *status = json_get(object, STR("status"));
    return !s->is_forced && is->version > 0 && is->rendered_s > 0 &&
           json_get_int(status, STR("observedGeneration"), 0) == is->generation &&
           is->version >= floor->version && is->rendered_s >= floor->rendered_s;
}

/* A device ignores what is older than what it has, also when it was its writer that said the time:
 * whatever follows is not older. */
static int64_t time_of(const struct config_settling *s, bool is_whole)
{
    const Google__Protobuf__Timestamp *own = is_whole ? s->config->config_timestamp : NULL;
    const struct clock *clock = s->api->clock;
    return MAX(clock->wall_us(clock) / 1000000, own ? own->seconds : 0);
}

/* True: it is as it was. */
static bool decide(struct config_settling *s, const struct json *object)
{
    const struct config_mark is = roster_config_mark(object);
    struct config_mark floor;
    (void) pthread_mutex_lock(&s->device->lock);
    floor = (struct config_mark){.version = s->device->floor_version,
                                 .rendered_s = s->device->floor_rendered_s};
    (void) pthread_mutex_unlock(&s->device->lock);
    s->mark = is;
    if (is_settled(s, object, &is, &floor))
        return true;
    const int64_t now_s = time_of(s, is_whole(object));
    s->mark.version = MAX(is.version, floor.version) + 1;
    s->mark.rendered_s = MAX(now_s, MAX(is.rendered_s, floor.rendered_s));
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void set_text(struct config_settling *s, struct json *status, const char *key,
                     struct str text)
{
    (void) json_set(s->arena, status, str_of(key), json_string(text));
}

static void fill_status(struct config_settling *s, struct json *object)
{
    struct arena *a = s->arena;
    char rendered[CLOCK_SECONDS_BYTES];
    struct json *status = json_ensure_object(a, object, STR("status"));
    const struct str version = arena_printf(a, "%lld", (long long) s->mark.version);
    clock_format_seconds(s->mark.rendered_s * 1000000, rendered);
    set_text(s, status, "version", version);
    set_text(s, status, "hash", s->hash);
    set_text(s, status, "renderedAt", arena_str(a, str_of(rendered)));
    (void) json_set(a, status, STR("observedGeneration"), json_int(s->mark.generation));
    const struct condition waiting = {
        "Delivered", "False", STR("Waiting"),
        arena_printf(a, "version %.*s waits for the device to fetch it", STR_ARG(version))};
    (void) conditions_set(a, conditions_of(a, object), &waiting,
                          s->api->clock->wall_us(s->api->clock));
}

/* Before the event of what is written can come. */
static void expect(const struct config_settling *s)
{
    struct device *d = s->device;
    (void) pthread_mutex_lock(&d->lock);
    if (s->is_making && d->config_generation == s->config_generation)
        d->config_mark = s->mark;
    (void) pthread_mutex_unlock(&d->lock);
}

static int write_status(struct config_settling *s, struct json *object)
{
    struct status st;
    fill_status(s, object);
    int r = ask(s, VERB_UPDATE, object, NULL, &st);
    if (r < 0 && r != -ESTALE && r != -ENOENT)
        return fail(s, r, "cannot write the version of the DeviceConfig", st.message);
    return r;
}

/* What the device is told, and whether the status says so already. */
static int make(struct config_settling *s, const struct json *object, bool *ret_is_same)
{
    const int r = read_config(s, object);
    if (r < 0)
        return r;
    const bool is_same = decide(s, object);
    complete(s, is_whole(object));
    pack(s);
    *ret_is_same = is_same && str_eq(json_str(json_at(object, "status", "hash", NULL)), s->hash);
    return 0;
}

int device_config_fill(struct config_settling *s, struct json *object)
{
    bool is_same = false;
    const int r = make(s, object, &is_same);
    if (r == 0 && !is_same)
        fill_status(s, object);
    return r;
}

bool device_config_is_settled(const struct json *object)
{
    const struct json *status = json_get(object, STR("status"));
    return json_get_str(status, STR("hash")).n &&
           json_get_int(status, STR("observedGeneration"), 0) ==
               json_get_int(json_get(object, STR("metadata")), STR("generation"), 1);
}

/* For people: the device keeps what it has, and only another spec helps. */
static void tell_problem(struct config_settling *s, struct json *object)
{
    struct status st;
    const struct condition c = {"Delivered", "False", STR("Undeliverable"), s->reason};
    if (conditions_set(s->arena, conditions_of(s->arena, object), &c,
                       s->api->clock->wall_us(s->api->clock)))
        (void) ask(s, VERB_UPDATE, object, NULL, &st);
}

static int settle_once(struct config_settling *s)
{
    struct json *object = NULL;
    struct status st;
    bool is_same = false;
    int r = ask(s, VERB_GET, NULL, &object, &st);
    if (r < 0)
        return fail(s, r, "cannot read the DeviceConfig", st.message);
    if (s->trusts_status && device_config_is_settled(object))
        return 0;
    r = make(s, object, &is_same);
    if (r == -EBADMSG)
        tell_problem(s, object);
    if (r < 0)
        return r;
    expect(s);
    r = is_same ? 0 : write_status(s, object);
    if (r == 0)
        device_raise_floor(s->device, s->mark.version, s->mark.rendered_s);
    return r;
}

int device_config_settle(struct config_settling *s)
{
    int r = -ESTALE;
    for (int i = 0; i < MAX_ATTEMPTS && r == -ESTALE; i++)
        r = settle_once(s);
    if (r == -ESTALE)
        s->reason = STR("the DeviceConfig changes all the time");
    return r;
}
