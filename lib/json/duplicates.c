/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/map.h"
#include "json/json_internal.h"

/* Rendered paths in all. Without it a long path repeated often would cost their product. */
#define MAX_PATH_BYTES ((size_t) 1024 * 1024)

void json_keys_done(struct json_keys *keys)
{
    mem_free(keys->slots);
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t *slot_of(const struct json_keys *keys, struct str key)
{
    size_t mask = keys->n_slots - 1;
    size_t slot = map_hash(key) & mask;
    for (; keys->slots[slot]; slot = (slot + 1) & mask) {
        if (str_eq(json_str(&keys->object->members[keys->slots[slot] - 1].key), key))
            break;
    }
    return &keys->slots[slot];
}

static void rehash(struct json_keys *keys)
{
    mem_free(keys->slots);
    keys->n_slots = MAX(4 * (size_t) JSON_SMALL_OBJECT, keys->n_slots * 4);
    keys->slots = mem_zalloc(keys->n_slots * sizeof(*keys->slots));
    for (uint32_t i = 0; i < keys->object->n; i++)
        *slot_of(keys, json_str(&keys->object->members[i].key)) = i + 1;
}

struct json_member *json_keys_find(struct json_keys *keys, struct str key)
{
    const struct json *object = keys->object;
    if (object->n < JSON_SMALL_OBJECT) {
        struct json *value = json_get(object, key);
        return value ? CONTAINER_OF(value, struct json_member, value) : NULL;
    }
    if (2 * (size_t) object->n >= keys->n_slots)
        rehash(keys);
    uint32_t *slot = slot_of(keys, key);
    if (*slot)
        return &object->members[*slot - 1];
    *slot = object->n + 1;
    return NULL;
}

void json_duplicates_add(struct arena *a, struct json_duplicates *list,
                         const struct field_path *path, struct str yaml_message)
{
    if (list->n >= JSON_MAX_DUPLICATES || list->n_path_bytes > MAX_PATH_BYTES)
        return;
    struct str text = field_path_text(a, path);
    list->n_path_bytes += text.n;
    for (const struct json_duplicate *d = list->first; d; d = d->next) {
        if (str_eq(d->path, text) && str_eq(d->yaml_message, yaml_message))
            return;
    }
    struct json_duplicate *d = ARENA_NEW(a, struct json_duplicate);
    d->path = text;
    d->yaml_message = yaml_message;
    *(list->first ? list->end : &list->first) = d;
    list->end = &d->next;
    list->n++;
}
