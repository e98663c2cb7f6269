/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the objects that come in: names, UUIDs, amounts, data. */
#include <errno.h>
#include <stdlib.h>

#include "api/quantity.h"
#include "base/base64.h"
#include "base/uuid.h"
#include "composer/composer_internal.h"
#include "pki/pki.h"

struct str object_name(const struct json *object)
{
    return json_str(json_at(object, "metadata", "name", NULL));
}

struct str object_annotation(const struct json *object, const char *name)
{
    return json_get_str(json_at(object, "metadata", "annotations", NULL), str_of(name));
}

struct str object_uuid(const struct json *object)
{
    const struct str text = json_str(json_at(object, "status", "uuid", NULL));
    struct uuid u;
    return uuid_parse(text, &u) == 0 && !uuid_is_zero(&u) ? text : STR_NONE;
}

const struct json *set_find(const struct compose_set *set, struct str name)
{
    for (size_t i = 0; i < set->n; i++)
        if (name.n && str_eq(object_name(set->items[i]), name))
            return set->items[i];
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct json *const *x = a, *const *y = b;
    return str_cmp(object_name(*x), object_name(*y));
}

const struct json **set_sorted(struct arena *a, const struct compose_set *set)
{
    const struct json **sorted = ARENA_ARRAY(a, const struct json *, set->n + 1);
    for (size_t i = 0; i < set->n; i++)
        sorted[i] = set->items[i];
    qsort(sorted, set->n, sizeof(*sorted), by_name);
    return sorted;
}

const struct json **set_by_age(struct composition *c, const struct compose_set *set,
                               const char *group)
{
    const struct json **sorted = set_sorted(c->arena, set);
    const struct json **aged = ARENA_ARRAY(c->arena, const struct json *, set->n + 1);
    size_t n = 0;
    for (int is_new = 0; is_new < 2; is_new++)
        for (size_t i = 0; i < set->n; i++)
            if (was_there(c, group, object_uuid(sorted[i])) != is_new)
                aged[n++] = sorted[i];
    return aged;
}

bool object_data(struct arena *a, const struct json *object, struct str key, struct str *ret)
{
    const struct json *plain = json_get(json_get(object, STR("stringData")), key);
    const struct json *data = json_get(json_get(object, STR("data")), key);
    const bool is_secret = str_is(json_get_str(object, STR("kind")), "Secret");
    if (json_is(plain, JSON_STRING) || (!is_secret && json_is(data, JSON_STRING))) {
        *ret = json_str(plain ? plain : data);
        return true;
    }
    return json_is(data, JSON_STRING) &&
           base64_decode(a, json_str(data), BASE64_STANDARD, ret, NULL) == 0;
}

int object_amount(const struct json *value, int64_t unit, int64_t *ret)
{
    struct quantity q;
    struct str error;
    *ret = 0;
    if (!value || json_is(value, JSON_NULL))
        return 0;
    if (json_is(value, JSON_INT)) {
        q = quantity_from_int(value->i);
    } else if (quantity_parse(json_str(value), &q, &error) < 0) {
        return -EINVAL;
    }
    const struct quantity most = quantity_from_int(INT64_MAX / 2);
    if (quantity_sign(&q) < 0 || quantity_compare(&q, &most) > 0)
        return -EINVAL;
    quantity_round_whole(&q);
    __int128 whole = q.mantissa;
    for (int scale = q.scale; scale > 0; scale--)
        whole *= 10;
    for (int scale = q.scale; scale < 0; scale++)
        whole /= 10;
    *ret = (int64_t) ((whole + unit - 1) / unit);
    return 0;
}

struct str uuid_of_names(struct arena *a, struct str scope, struct str name)
{
    const struct str parts[] = {scope, STR("/"), name};
    unsigned char hash[SHA256_BYTES];
    struct uuid u;
    char text[UUID_TEXT_BYTES];
    pki_sha256(arena_join(a, parts, N_ELEMENTS(parts)), hash);
    memcpy(u.bytes, hash, sizeof(u.bytes));
    u.bytes[6] = (unsigned char) ((u.bytes[6] & 0x0f) | 0x80); /* version 8: ours */
    u.bytes[8] = (unsigned char) ((u.bytes[8] & 0x3f) | 0x80);
    uuid_text(&u, text);
    return arena_str(a, str_of(text));
}
