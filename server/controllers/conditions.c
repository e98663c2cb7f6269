/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/conditions.h"

struct json *conditions_of(struct arena *a, struct json *object)
{
    struct json *status = json_ensure_object(a, object, STR("status"));
    struct json *conditions = json_get(status, STR("conditions"));
    return json_is(conditions, JSON_ARRAY) ? conditions
                                           : json_set(a, status, STR("conditions"), json_array());
}

struct json *conditions_find(struct json *conditions, const char *type)
{
    JSON_FOR_EACH_ITEM (conditions, condition)
        if (str_is(json_get_str(condition, STR("type")), type))
            return condition;
    return NULL;
}

bool conditions_is_true(struct json *conditions, const char *type)
{
    return str_is(json_get_str(conditions_find(conditions, type), STR("status")), "True");
}

bool conditions_set(struct arena *a, struct json *conditions, const struct condition *c,
                    int64_t now_us)
{
    struct json *old = conditions_find(conditions, c->type);
    bool same_status = old && str_is(json_get_str(old, STR("status")), c->status);
    if (same_status && str_eq(json_get_str(old, STR("reason")), c->reason) &&
        str_eq(json_get_str(old, STR("message")), c->message) &&
        (!c->generation || json_get_int(old, STR("observedGeneration"), 0) == c->generation))
        return false;
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(now_us, now);
    struct str since =
        same_status ? json_get_str(old, STR("lastTransitionTime")) : arena_str(a, str_of(now));
    struct json fresh = json_object();
    (void) json_append_member(a, &fresh, STR("type"), json_string(str_of(c->type)));
    (void) json_append_member(a, &fresh, STR("status"), json_string(str_of(c->status)));
    (void) json_append_member(a, &fresh, STR("lastTransitionTime"), json_string(since));
    (void) json_append_member(a, &fresh, STR("reason"), json_string(c->reason));
    (void) json_append_member(a, &fresh, STR("message"), json_string(c->message));
    if (c->generation)
        (void) json_append_member(a, &fresh, STR("observedGeneration"), json_int(c->generation));
    if (old)
        *old = fresh;
    else
        (void) json_push(a, conditions, fresh);
    return true;
}
