/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/derive.h"

#include <arpa/inet.h>

#include "base/clock.h"
#include "protobuf/message.h"
#include "reports/words.h"

void derivation_init(struct derivation *d, struct arena *a, const struct json *object)
{
    const struct json *status = json_get(object, STR("status"));
    *d = (struct derivation){.arena = a, .object = object};
    d->status = json_new(a, json_is(status, JSON_OBJECT) ? json_clone(a, status) : json_object());
}

bool derivation_has_changed(const struct derivation *d)
{
    const struct json none = json_object();
    const struct json *old = json_get(d->object, STR("status"));
    return !json_equal(json_is(old, JSON_OBJECT) ? old : &none, d->status);
}

void derive_event(struct derivation *d, bool is_warning, const char *reason, struct str message)
{
    if (d->n_events < DERIVE_MAX_EVENTS)
        d->events[d->n_events++] = (struct derived_event){is_warning, reason, message, STR_NONE};
}

void derive_text(struct arena *a, struct json *object, const char *key, struct str text)
{
    if (text.n)
        (void) json_set(a, object, str_of(key), json_string(text));
    else
        (void) json_remove(object, str_of(key));
}

/* ---- conditions --------------------------------------------------------------------------- */

struct json *derive_find_condition(const struct json *status, const char *type)
{
    JSON_FOR_EACH_ITEM (json_get(status, STR("conditions")), c)
        if (str_is(json_get_str(c, STR("type")), type))
            return c;
    return NULL;
}

struct str derive_condition_text(const struct json *status, const char *type, const char *key)
{
    return json_get_str(derive_find_condition(status, type), str_of(key));
}

static struct json *conditions_of(struct derivation *d)
{
    struct json *list = json_get(d->status, STR("conditions"));
    return json_is(list, JSON_ARRAY)
               ? list
               : json_set(d->arena, d->status, STR("conditions"), json_array());
}

static bool is_same(const struct json *old, const struct condition *c)
{
    return str_is(json_get_str(old, STR("status")), c->status) &&
           str_eq(json_get_str(old, STR("reason")), c->reason) &&
           str_eq(json_get_str(old, STR("message")), c->message.p ? c->message : STR(""));
}

bool derive_condition(struct derivation *d, const struct condition *c)
{
    struct arena *a = d->arena;
    struct json *old = derive_find_condition(d->status, c->type);
    if (old && is_same(old, c))
        return false;
    bool is_same_status = old && str_is(json_get_str(old, STR("status")), c->status);
    struct str since = is_same_status ? json_get_str(old, STR("lastTransitionTime")) : STR_NONE;
    struct json fresh = json_object();
    (void) json_append_member(a, &fresh, STR("type"), json_string(str_of(c->type)));
    (void) json_append_member(a, &fresh, STR("status"), json_string(str_of(c->status)));
    (void) json_append_member(a, &fresh, STR("lastTransitionTime"),
                              json_string(since.n ? since : words_stamp(a, d->now_us)));
    const struct json *heartbeat = json_get(old, STR("lastHeartbeatTime"));
    if (heartbeat)
        (void) json_append_member(a, &fresh, STR("lastHeartbeatTime"), *heartbeat);
    const struct json *generation = json_at(d->object, "metadata", "generation", NULL);
    if (json_is(generation, JSON_INT))
        (void) json_append_member(a, &fresh, STR("observedGeneration"), *generation);
    (void) json_append_member(a, &fresh, STR("reason"), json_string(c->reason));
    (void) json_append_member(a, &fresh, STR("message"),
                              json_string(c->message.p ? c->message : STR("")));
    if (old)
        *old = fresh;
    else
        (void) json_push(a, conditions_of(d), fresh);
    return true;
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* Without "/24" behind it; STR_NONE: no address anybody could use. */
static struct str good_address(struct arena *a, const char *text)
{
    struct str s = pb_text(text);
    unsigned char raw[16];
    ptrdiff_t slash = str_find(s, '/');
    s = slash >= 0 ? str_sub(s, 0, (size_t) slash) : s;
    if (s.n >= INET6_ADDRSTRLEN)
        return STR_NONE;
    const char *z = arena_strz(a, s);
    if (inet_pton(AF_INET, z, raw) == 1)
        return raw[0] == 0 || raw[0] == 127 ? STR_NONE : str_of(z);
    if (inet_pton(AF_INET6, z, raw) != 1)
        return STR_NONE;
    bool is_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
    static const unsigned char zeros[15];
    return is_local || memcmp(raw, zeros, 15) == 0 ? STR_NONE : str_of(z);
}

static bool has_address(const struct json *list, struct str address)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_get_str(item, STR("address")), address))
            return true;
    return false;
}

void derive_addresses(struct arena *a, struct json *to, char *const *texts, size_t n)
{
    for (size_t i = 0; i < n && json_count(to) < DERIVE_MAX_ADDRESSES; i++) {
        struct str address = good_address(a, texts[i]);
        if (!address.n || has_address(to, address))
            continue;
        struct json item = json_object();
        (void) json_append_member(a, &item, STR("type"), json_string(STR("InternalIP")));
        (void) json_append_member(a, &item, STR("address"), json_string(address));
        (void) json_push(a, to, item);
    }
}
