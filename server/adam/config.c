/* SPDX-License-Identifier: Apache-2.0 */
/* /admin/device/{uuid}/config: the configuration as it is stored, in JSON or in bytes. */
#include <errno.h>

#include "adam/adam_internal.h"
#include "protobuf/protojson.h"

static void ensure_id(struct arena *a, Eve__Config__EdgeDevConfig *config)
{
    if (config->id)
        return;
    config->id = ARENA_NEW(a, Eve__Config__UUIDandVersion);
    eve__config__uuidand_version__init(config->id);
}

/* Of a device that has none it is composed first. */
static int read_config(struct adam_call *c, Eve__Config__EdgeDevConfig **ret, struct status *st)
{
    const struct adam_options *o = &c->adam->options;
    const struct adam_place place = adam_place_of(c, st);
    int r = adam_get_config(&place, c->object, ret);
    if (r == -ENOENT && o->ensure_config) {
        (void) o->ensure_config(o->ensure_ctx, c->device->namespace, c->device->name, st);
        r = adam_get_config(&place, c->object, ret);
    }
    if (r == -ENOENT)
        (void) status_fail(st, 503, "ServiceUnavailable", "the configuration is not composed yet");
    if (r < 0)
        return r;
    ensure_id(c->arena, *ret);
    (*ret)->id->uuid = c->device->uuid_text;
    if (!pb_text((*ret)->id->version).n)
        (*ret)->id->version = (char *) "1";
    return 0;
}

int adam_config_get(struct adam_call *c)
{
    static const struct protojson_options keep = {.keep_unknown = true};
    struct status st;
    Eve__Config__EdgeDevConfig *config = NULL;
    status_init(&st, c->arena);
    if (read_config(c, &config, &st) < 0)
        return adam_refuse_status(c, &st);
    if (adam_wants_binary(c->request->accept))
        return adam_answer(c, 200, ADAM_BINARY, pb_pack(c->arena, &config->message));
    return adam_answer(c, 200, ADAM_JSON,
                       json_text(c->arena, protojson_value(c->arena, &config->message, &keep)));
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Who gives a version keeps it; otherwise it is one more than it was. 1: done; 0: answered. */
static int complete(struct adam_call *c, Eve__Config__EdgeDevConfig *config,
                    const Eve__Config__EdgeDevConfig *old)
{
    const struct str was = pb_text(old->id->version);
    int64_t version = 0;
    struct uuid uuid;
    ensure_id(c->arena, config);
    const struct str given = pb_text(config->id->uuid);
    if (given.n && (uuid_parse(given, &uuid) < 0 || !uuid_eq(&uuid, &c->device->uuid)))
        return adam_refuse(c, 400, "mismatched UUID, setting %.*s for device %s", STR_ARG(given),
                           c->device->uuid_text);
    config->id->uuid = c->device->uuid_text;
    if (pb_text(config->id->version).n)
        return 1;
    if (str_to_i64(was, &version) < 0 || version == INT64_MAX)
        return adam_refuse(c, 400, "cannot automatically bump version %.*s: it is no number",
                           STR_ARG(was));
    config->id->version =
        arena_strz(c->arena, arena_printf(c->arena, "%lld", (long long) version + 1));
    return 1;
}

/* The device's next poll finds it, before its event comes. */
static void tell_roster(struct adam_call *c, const struct json *written)
{
    const struct kube_event e = {.type = KUBE_MODIFIED,
                                 .collection = STR("deviceconfigs.eve.lfedge.org"),
                                 .namespace = c->device->namespace,
                                 .name = c->device->name,
                                 .text = json_text(c->arena, written)};
    roster_on_event(c->adam->options.roster, &e);
}

int adam_config_set(struct adam_call *c)
{
    struct status st;
    struct str error = STR_NONE;
    struct json *written = NULL;
    Eve__Config__EdgeDevConfig *old = NULL;
    const struct adam_place place = adam_place_of(c, &st);
    const bool is_binary = str_eq_nocase(adam_media_type(c->request->content_type), ADAM_BINARY);
    Eve__Config__EdgeDevConfig *config =
        adam_read_config(c->arena, c->request->body, is_binary, &error);
    if (!config)
        return adam_refuse(c, 400, "failed to read the configuration: %.*s", STR_ARG(error));
    status_init(&st, c->arena);
    if (read_config(c, &old, &st) < 0)
        return adam_refuse_status(c, &st);
    if (complete(c, config, old) == 0)
        return 0;
    if (adam_put_config(&place, c->object, config, &written) < 0)
        return adam_refuse_status(c, &st);
    tell_roster(c, written);
    return adam_done(c, 200);
}
