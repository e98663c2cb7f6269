/* SPDX-License-Identifier: Apache-2.0 */
#include "report/make.h"

#include <math.h>

#include "base/base64.h"

#define NIL_UUID "00000000-0000-0000-0000-000000000000"
#define MAX_ENTITIES 64

char *make_text(struct world *w, struct str s)
{
    return s.n ? arena_strz(w->arena, s) : (char *) (uintptr_t) protobuf_c_empty_string;
}

double make_double(const struct json *object, struct str name)
{
    const struct json *v = json_get(object, name);
    return json_is(v, JSON_INT) ? (double) v->i : json_is(v, JSON_DOUBLE) ? v->d : 0;
}

int64_t make_number(const struct json *object, struct str name)
{
    const struct json *v = json_get(object, name);
    if (json_is(v, JSON_INT))
        return v->i;
    if (!json_is(v, JSON_DOUBLE) || !isfinite(v->d))
        return 0;
    /* Go's uint64 beyond int64 comes as a double. */
    if (v->d >= 9223372036854775808.0)
        return v->d >= 18446744073709551616.0 ? -1 : (int64_t) (uint64_t) v->d;
    return v->d < -9223372036854775808.0 ? INT64_MIN : (int64_t) v->d;
}

Google__Protobuf__Timestamp *make_time(struct world *w, int64_t wall_us)
{
    return wall_us ? make_duration(w, wall_us) : NULL;
}

Google__Protobuf__Timestamp *make_duration(struct world *w, int64_t us)
{
    Google__Protobuf__Timestamp *t =
        MAKE(w, Google__Protobuf__Timestamp, google__protobuf__timestamp);
    t->seconds = us / 1000000;
    t->nanos = (int32_t) (us % 1000000) * 1000;
    if (t->nanos < 0) {
        t->seconds--;
        t->nanos += 1000000000;
    }
    return t;
}

struct str mac_text(struct arena *a, const unsigned char mac[6])
{
    return arena_printf(a, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                        mac[5]);
}

char *make_mac(struct world *w, const struct json *value)
{
    struct str text = json_str(value), bytes;
    if (str_find(text, ':') >= 0 ||
        base64_decode(w->arena, text, BASE64_STANDARD, &bytes, NULL) < 0 || bytes.n != 6)
        return make_text(w, text);
    return make_text(w, mac_text(w->arena, (const unsigned char *) bytes.p));
}

size_t make_texts(struct world *w, const struct json *list, const char *member, char ***ret)
{
    size_t n = 0;
    *ret = NULL;
    if (!json_count(list))
        return 0;
    *ret = ARENA_ARRAY(w->arena, char *, json_count(list));
    JSON_FOR_EACH_ITEM (list, item) {
        struct str text = member ? json_get_str(item, str_of(member)) : json_str(item);
        if (text.n)
            (*ret)[n++] = make_text(w, text);
    }
    return n;
}

Eve__Info__ZSwState make_state(int64_t sw_state)
{
    static const Eve__Info__ZSwState states[] = {
        EVE__INFO__ZSW_STATE__INITIAL,         EVE__INFO__ZSW_STATE__RESOLVING_TAG,
        EVE__INFO__ZSW_STATE__RESOLVED_TAG,    EVE__INFO__ZSW_STATE__DOWNLOAD_STARTED,
        EVE__INFO__ZSW_STATE__DOWNLOADED,      EVE__INFO__ZSW_STATE__VERIFYING,
        EVE__INFO__ZSW_STATE__VERIFIED,        EVE__INFO__ZSW_STATE__LOADING,
        EVE__INFO__ZSW_STATE__DELIVERED, /* LOADED */
        EVE__INFO__ZSW_STATE__CREATING_VOLUME, EVE__INFO__ZSW_STATE__CREATED_VOLUME,
        EVE__INFO__ZSW_STATE__INSTALLED,       EVE__INFO__ZSW_STATE__AWAITNETWORKINSTANCE,
        EVE__INFO__ZSW_STATE__START_DELAYED,   EVE__INFO__ZSW_STATE__BOOTING,
        EVE__INFO__ZSW_STATE__RUNNING,         EVE__INFO__ZSW_STATE__RUNNING, /* PAUSING */
        EVE__INFO__ZSW_STATE__INSTALLED,                                      /* PAUSED */
        EVE__INFO__ZSW_STATE__HALTING,         EVE__INFO__ZSW_STATE__HALTED,
        EVE__INFO__ZSW_STATE__HALTING, /* BROKEN */
        EVE__INFO__ZSW_STATE__RUNNING, /* UNKNOWN */
        EVE__INFO__ZSW_STATE__PENDING,         EVE__INFO__ZSW_STATE__SCHEDULING,
        EVE__INFO__ZSW_STATE__ERROR,  /* FAILED */
        EVE__INFO__ZSW_STATE__LOADED, /* REMOTELOADED */
    };
    /* They begin at 100, to be told from these. */
    const int64_t at = sw_state - 100;
    return at >= 0 && at < (int64_t) N_ELEMENTS(states) ? states[at]
                                                        : EVE__INFO__ZSW_STATE__INVALID;
}

static void add_entities(struct world *w, Eve__Info__ErrorInfo *e, const struct json *list)
{
    JSON_FOR_EACH_ITEM (list, item) {
        if (e->n_entities == MAX_ENTITIES)
            return;
        Eve__Info__DeviceEntity *entity =
            MAKE(w, Eve__Info__DeviceEntity, eve__info__device_entity);
        entity->entity = (Eve__Info__Entity) NUMBER(item, "EntityType");
        entity->entity_id = TEXT(w, item, "EntityID");
        PUSH(w, e, entities, entity);
    }
}

Eve__Info__ErrorInfo *make_error(struct world *w, const struct json *object)
{
    const int64_t at_us = node_json_time_us(json_get(object, STR("ErrorTime")));
    if (!at_us)
        return NULL;
    Eve__Info__ErrorInfo *e = MAKE(w, Eve__Info__ErrorInfo, eve__info__error_info);
    e->description = TEXT(w, object, "Error");
    e->timestamp = make_time(w, at_us);
    e->severity = (Eve__Info__Severity) json_get_int(object, STR("ErrorSeverity"),
                                                     EVE__INFO__SEVERITY__SEVERITY_ERROR);
    e->retry_condition = TEXT(w, object, "ErrorRetryCondition");
    add_entities(w, e, json_get(object, STR("ErrorEntities")));
    return e;
}

Eve__Info__ErrorInfo *make_test_results(struct world *w, const struct json *object)
{
    const int64_t failed_us = node_json_time_us(json_get(object, STR("LastFailed")));
    const int64_t succeeded_us = node_json_time_us(json_get(object, STR("LastSucceeded")));
    Eve__Info__ErrorInfo *e = MAKE(w, Eve__Info__ErrorInfo, eve__info__error_info);
    if (failed_us > succeeded_us) {
        e->description = TEXT(w, object, "LastError");
        e->severity = EVE__INFO__SEVERITY__SEVERITY_ERROR;
    }
    e->timestamp = make_time(w, MAX(failed_us, succeeded_us));
    return e;
}

Eve__Info__ErrorInfo *make_error_text(struct world *w, struct str text)
{
    if (!text.n)
        return NULL;
    Eve__Info__ErrorInfo *e = MAKE(w, Eve__Info__ErrorInfo, eve__info__error_info);
    e->description = make_text(w, text);
    e->severity = EVE__INFO__SEVERITY__SEVERITY_ERROR;
    return e;
}

struct str make_path_key(struct world *w, struct str path)
{
    path = str_from(path, str_starts_with(path, STR("/")));
    char *key = arena_strz(w->arena, path);
    for (size_t i = 0; i < path.n; i++)
        if (key[i] == '/')
            key[i] = '-';
    return str_range(key, path.n);
}

uint64_t make_mebibytes(uint64_t bytes)
{
    return (bytes + (1 << 19)) >> 20;
}

bool make_is_nil_uuid(struct str text)
{
    return !text.n || str_is(text, NIL_UUID);
}
