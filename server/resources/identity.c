/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/identity.h"

#include "api/object_meta.h"
#include "base/uuid.h"
#include "schema/causes.h"

/* ---- uuid ---------------------------------------------------------------------------------- */

static struct str new_uuid(struct hook_context *h)
{
    char text[UUID_TEXT_BYTES];
    random_uuid(text);
    return arena_str(h->arena, str_of(text));
}

static struct str uuid_of(const struct json *object)
{
    return json_str(json_at(object, "status", "uuid", NULL));
}

struct json *identity_own_status(struct hook_context *h, struct json *object, size_t n_more)
{
    struct json *status = json_ensure_object(h->arena, object, STR("status"));
    json_unshare(h->arena, status, n_more);
    return status;
}

void identity_prepare_as(struct hook_context *h, const struct json *old, struct json *object,
                         struct str uuid)
{
    const struct str kept = uuid_of(old);
    if (!old)
        (void) json_set(h->arena, object, STR("status"), json_object());
    /* Another one than the kept is refused later. */
    if (kept.n && json_at(object, "status", "uuid", NULL))
        return;
    if (kept.n || !uuid.n)
        uuid = kept.n ? kept : new_uuid(h);
    struct json *status = identity_own_status(h, object, /* n_more= */ 2);
    (void) json_set(h->arena, status, STR("uuid"), json_string(uuid));
}

void identity_prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    identity_prepare_as(h, old, object, STR_NONE);
}

void identity_check(struct hook_context *h, const struct json *old, const struct json *object,
                    struct causes *causes)
{
    (void) h;
    const struct field_path status = FIELD_NAME(NULL, STR("status"));
    const struct json *uuid = json_at(old, "status", "uuid", NULL);
    if (uuid)
        object_meta_check_immutable(causes, &FIELD_NAME(&status, STR("uuid")), uuid,
                                    json_at(object, "status", "uuid", NULL));
}

/* ---- Ready --------------------------------------------------------------------------------- */

static struct json unknown_ready(struct hook_context *h, struct str reason, struct str message)
{
    char now[CLOCK_SECONDS_BYTES];
    struct json condition = json_object();
    clock_format_seconds(h->now_us, now);
    const struct {
        const char *key;
        struct str value;
    } members[] = {
        {"type", STR("Ready")},
        {"status", STR("Unknown")},
        {"reason", reason},
        {"message", message},
        {"lastTransitionTime", arena_str(h->arena, str_of(now))},
    };
    for (size_t i = 0; i < N_ELEMENTS(members); i++)
        (void) json_append_member(h->arena, &condition, str_of(members[i].key),
                                  json_string(members[i].value));
    return condition;
}

void identity_begin_ready(struct hook_context *h, struct json *object, struct str reason,
                          struct str message)
{
    struct json *status = identity_own_status(h, object, /* n_more= */ 1);
    struct json conditions = json_array();
    (void) json_push(h->arena, &conditions, unknown_ready(h, reason, message));
    (void) json_set(h->arena, status, STR("conditions"), conditions);
}
