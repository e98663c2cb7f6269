/* SPDX-License-Identifier: Apache-2.0 */
#include "device/route.h"

#include "device/config.h"
#include "device/intake.h"
#include "device/visit.h"

#define V1 (1u << 1)
#define V2 (1u << 2)
#define BOTH (V1 | V2)

static const struct endpoint endpoints[] = {
    {"ping", DEVICE_ESSENTIAL, SIGNED_BY_NOBODY, .takes_get = true, .versions = BOTH,
     .begin = device_visit_ping},
    {"certs", DEVICE_ESSENTIAL, SIGNED_BY_NOBODY, .takes_get = true, .takes_post = true,
     .versions = BOTH, .begin = device_visit_certs},
    {"register", DEVICE_ESSENTIAL, SIGNED_BY_STRANGER, .takes_post = true, .versions = BOTH,
     .run = device_register},
    {"uuid", DEVICE_ESSENTIAL, SIGNED_BY_DEVICE, .takes_post = true, .versions = BOTH,
     .run = device_uuid},
    {"config", DEVICE_ESSENTIAL, SIGNED_BY_DEVICE, .takes_get = true, .takes_post = true,
     .versions = BOTH, .begin = device_visit_config, .run = device_config_answer},
    {"attest", DEVICE_ESSENTIAL, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = BOTH, .run = device_attest},
    {"compound-config", DEVICE_ESSENTIAL, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = V2, .run = device_compound_config},
    {"proxy/scep", DEVICE_ESSENTIAL, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = V2, .run = device_scep},
    {"info", DEVICE_INFO, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = BOTH, .begin = device_visit_take_message, .run = device_check_message,
     .finish = device_visit_keep_message, .stream = TELEMETRY_INFO},
    {"hardwarehealth", DEVICE_INFO, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = V2, .begin = device_visit_take_message, .run = device_check_message,
     .finish = device_visit_keep_message, .stream = TELEMETRY_HARDWARE},
    {"metrics", DEVICE_METRICS, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = BOTH, .begin = device_visit_take_message, .run = device_check_message,
     .finish = device_visit_keep_message, .stream = TELEMETRY_METRICS},
    {"flowlog", DEVICE_LOGS, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = BOTH, .begin = device_visit_take_message, .run = device_check_message,
     .finish = device_visit_keep_message, .stream = TELEMETRY_FLOWLOG},
    {"logs", DEVICE_LOGS, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = BOTH, .begin = device_visit_take_message, .run = device_check_message,
     .finish = device_visit_keep_message, .stream = TELEMETRY_LOG},
    {"newlogs", DEVICE_LOGS, SIGNED_BY_DEVICE, .takes_post = true, .wants_uuid = true,
     .versions = BOTH, .run = device_check_gzip, .finish = device_visit_keep_gzip,
     .stream = TELEMETRY_LOG, .form = TELEMETRY_GZIP},
    {"logs", DEVICE_LOGS, SIGNED_BY_DEVICE, .takes_post = true, .is_of_app = true, .versions = BOTH,
     .begin = device_visit_take_message, .run = device_check_message,
     .finish = device_visit_keep_message, .stream = TELEMETRY_APP_LOG},
    {"newlogs", DEVICE_LOGS, SIGNED_BY_DEVICE, .takes_post = true, .is_of_app = true,
     .versions = BOTH, .run = device_check_gzip, .finish = device_visit_keep_gzip,
     .stream = TELEMETRY_APP_LOG, .form = TELEMETRY_GZIP},
};

size_t route_count(void)
{
    return N_ELEMENTS(endpoints);
}

const struct endpoint *route_endpoint(size_t i)
{
    return &endpoints[i];
}

/* Takes the word off the front of the rest. */
static bool eat(struct str *rest, struct str word)
{
    if (!str_starts_with(*rest, word))
        return false;
    *rest = str_from(*rest, word.n);
    return true;
}

static int eat_uuid(struct str *rest, struct uuid *ret)
{
    struct str word = STR_NONE;
    if (!str_split(rest, '/', &word) || uuid_parse(word, ret) < 0)
        return 400;
    return 0;
}

/* The specification prints edgeDevice here and there; devices write it in lower case. */
static bool eat_prefix(struct str *rest, bool *ret_is_v1)
{
    *ret_is_v1 = str_starts_with(*rest, STR("/api/v1/"));
    return (eat(rest, STR("/api/v2/")) || eat(rest, STR("/api/v1/"))) &&
           (eat(rest, STR("edgedevice/")) || eat(rest, STR("edgeDevice/")));
}

/* apps/instanceid/<app>/, apps/instances/id/<app>/ and what else the two spellings allow. */
static int eat_app(struct str *rest, struct uuid *ret, bool *ret_is_of_app)
{
    *ret_is_of_app = eat(rest, STR("apps/instanceid/")) || eat(rest, STR("apps/instances/"));
    if (!*ret_is_of_app)
        return 0;
    (void) eat(rest, STR("id/"));
    return eat_uuid(rest, ret);
}

int route_find(struct str path, enum http_method method, struct route *ret)
{
    struct str rest = path;
    bool is_of_app = false;
    int status = 0;
    *ret = (struct route){0};
    if (!eat_prefix(&rest, &ret->is_v1))
        return 404;
    ret->has_uuid = eat(&rest, STR("id/"));
    if (ret->has_uuid)
        status = eat_uuid(&rest, &ret->uuid);
    if (!status)
        status = eat_app(&rest, &ret->app, &is_of_app);
    if (status)
        return status;
    for (size_t i = 0; i < N_ELEMENTS(endpoints) && !ret->endpoint; i++) {
        const struct endpoint *e = &endpoints[i];
        if (str_is(rest, e->name) && e->is_of_app == is_of_app &&
            (e->versions & (ret->is_v1 ? V1 : V2)) &&
            (!e->wants_uuid || ret->has_uuid || ret->is_v1))
            ret->endpoint = e;
    }
    if (!ret->endpoint)
        return 404;
    bool takes = (method == HTTP_GET && ret->endpoint->takes_get) ||
                 (method == HTTP_POST && ret->endpoint->takes_post);
    /* A GET of v2 carries no signature: only what nobody signs can be asked for so. */
    if (method == HTTP_GET && !ret->is_v1 && ret->endpoint->signer != SIGNED_BY_NOBODY)
        takes = false;
    return takes ? 0 : 405;
}
