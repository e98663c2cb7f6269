/* SPDX-License-Identifier: Apache-2.0 */
/* POST compound-config: the form in which a device asks a local operator console. The configuration
 * inside is signed as ever; the answer around it is not. */
#include "device/config.h"
#include "eve/auth.pb-c.h"

/* The device has it already: its hash alone says so. */
static struct str seal_unchanged(struct device_call *c, struct str hash)
{
    struct controller_set *set = controller_certs_get(c->api->certs);
    Eve__Config__ConfigResponse response = EVE__CONFIG__CONFIG_RESPONSE__INIT;
    response.confighash = arena_strz(c->arena, hash);
    const struct str sealed =
        envelope_seal(c->arena, &set->signer, pb_pack(c->arena, &response.base));
    bytes_unref(&set->bytes);
    return sealed;
}

/* The signed ConfigResponse; p NULL: it cannot be had, and c->reason says why. */
static struct str sealed_config(struct device_call *c, struct str known_hash)
{
    struct device_config *ready = NULL;
    struct config_made made = {0};
    switch (device_config_poll(c, known_hash, &ready)) {
    case CONFIG_UNCHANGED:
        return seal_unchanged(c, known_hash);
    case CONFIG_READY: {
        const struct str sealed = arena_str(c->arena, ready->envelope);
        device_config_given(c, ready);
        bytes_unref(&ready->bytes);
        return sealed;
    }
    case CONFIG_TO_MAKE:
        break;
    }
    if (device_config_make(c, known_hash, &made) < 0)
        return STR_NONE;
    const bool is_same = str_eq(known_hash, made.sealed->hash);
    if (!is_same)
        device_config_given(c, made.sealed);
    const struct str sealed =
        is_same ? seal_unchanged(c, known_hash) : arena_str(c->arena, made.sealed->envelope);
    slice_unref(c->shared_body);
    c->shared_body = (struct slice){0};
    return sealed;
}

int device_compound_config(struct device_call *c)
{
    const Eve__Config__CompoundEdgeDevConfigRequest *q =
        PB_UNPACK(c->arena, eve__config__compound_edge_dev_config_request, c->payload);
    if (!q)
        return device_refuse(c, 422, "the payload is no CompoundEdgeDevConfigRequest");
    const struct str token = q->cfg_req ? pb_bytes(q->cfg_req->integrity_token) : STR("");
    if (device_config_check_token(c, token) < 0)
        return 0;
    const struct str sealed =
        sealed_config(c, q->cfg_req ? pb_text(q->cfg_req->confighash) : STR(""));
    if (!sealed.p)
        return device_refuse(c, 503, "%.*s", STR_ARG(c->reason));
    Eve__Config__CompoundEdgeDevConfig answer = EVE__CONFIG__COMPOUND_EDGE_DEV_CONFIG__INIT;
    /* We have no commands: none is newer than the last the device knows. */
    answer.timestamp = q->last_cmd_timestamp;
    answer.protected_config = PB_UNPACK(c->arena, eve__auth__auth_container, sealed);
    c->status = 200;
    c->body = pb_pack(c->arena, &answer.base);
    return 0;
}
