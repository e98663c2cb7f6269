/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/overrides.h"

#include "fleet/composing.h"
#include "schema/fieldset.h"

#define CONFIG_PATH STR(".spec.config")

/* ---- whose is what --------------------------------------------------------------------------- */

/* Entries of the object itself: those of the status are other controllers'. */
static bool is_of_object(const struct json *entry)
{
    return json_get_str(entry, STR("subresource")).n == 0;
}

static bool is_composer(const struct json *entry)
{
    return str_is(json_get_str(entry, STR("manager")), COMPOSER_MANAGER);
}

bool overrides_are_possible(const struct json *device_config)
{
    const struct json *entries = json_at(device_config, "metadata", "managedFields", NULL);
    JSON_FOR_EACH_ITEM (entries, entry) {
        const struct json *fields = json_get(entry, STR("fieldsV1"));
        if (is_of_object(entry) && !is_composer(entry) && json_get(fields, STR("f:spec")))
            return true;
    }
    return false;
}

struct listing {
    struct arena *arena;
    struct str manager;
    struct override *first, **last;
    size_t n;
};

static void list_field(void *ctx, struct str path)
{
    struct listing *l = ctx;
    if (!str_starts_with(path, CONFIG_PATH) || l->n == OVERRIDES_MAX)
        return;
    path = str_from(path, CONFIG_PATH.n);
    if (str_starts_with(path, STR(".")))
        path = str_from(path, 1);
    if (!path.n)
        return;
    struct override *o = ARENA_NEW(l->arena, struct override);
    *o = (struct override){arena_str(l->arena, path), l->manager, NULL};
    *l->last = o;
    l->last = &o->next;
    l->n++;
}

static struct fieldset *fields_of(struct arena *a, const struct json *entry)
{
    struct fieldset *set = NULL;
    const struct json *fields = json_get(entry, STR("fieldsV1"));
    return fields && fieldset_from_json(a, fields, &set) == 0 ? set : fieldset_new(a);
}

static struct fieldset *composers_fields(struct arena *a, const struct json *entries)
{
    struct fieldset *ours = fieldset_new(a);
    JSON_FOR_EACH_ITEM (entries, entry) {
        if (is_of_object(entry) && is_composer(entry))
            ours = fieldset_union(a, ours, fields_of(a, entry));
    }
    return ours;
}

struct override *overrides_of(struct arena *a, const struct json *device_config)
{
    const struct json *entries = json_at(device_config, "metadata", "managedFields", NULL);
    struct listing l = {.arena = a};
    l.last = &l.first;
    const struct fieldset *ours = composers_fields(a, entries);
    JSON_FOR_EACH_ITEM (entries, entry) {
        if (!is_of_object(entry) || is_composer(entry))
            continue;
        l.manager = json_get_str(entry, STR("manager"));
        fieldset_for_each_leaf(a, fieldset_difference(a, fields_of(a, entry), ours), list_field,
                               &l);
    }
    return l.first;
}

/* ---- yielding -------------------------------------------------------------------------------- */

/* Up to the next '.', '[' or the end. */
static struct str take_name(struct str *path)
{
    size_t n = 0;
    while (n < path->n && path->p[n] != '.' && path->p[n] != '[')
        n++;
    const struct str name = str_sub(*path, 0, n);
    *path = str_from(*path, n);
    return name;
}

/* The end of [...], quoted text inside jumped over; 0: there is none. */
static size_t bracket_end(struct str path)
{
    bool is_quoted = false;
    for (size_t i = 1; i < path.n; i++) {
        if (path.p[i] == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && path.p[i] == '\\')
            i++;
        else if (!is_quoted && path.p[i] == ']')
            return i;
    }
    return 0;
}

/* `name="x"` of what stands in brackets; the next follows behind a comma. */
static bool take_pair(struct str *keys, struct str *ret_name, struct str *ret_value)
{
    const ptrdiff_t equals = str_find(*keys, '=');
    if (equals < 0)
        return false;
    *ret_name = str_sub(*keys, 0, (size_t) equals);
    *keys = str_from(*keys, (size_t) equals + 1);
    size_t n = 0;
    bool is_quoted = false;
    for (; n < keys->n && (is_quoted || keys->p[n] != ','); n++) {
        if (is_quoted && keys->p[n] == '\\')
            n++;
        else if (keys->p[n] == '"')
            is_quoted = !is_quoted;
    }
    n = MIN(n, keys->n);
    *ret_value = str_sub(*keys, 0, n);
    *keys = str_from(*keys, MIN(n + 1, keys->n));
    return true;
}

static bool has_keys(struct arena *a, const struct json *item, struct str keys)
{
    struct str name, value;
    size_t n = 0;
    for (; keys.n && take_pair(&keys, &name, &value); n++) {
        const struct json *member = name.n ? json_get(item, name) : item;
        if (!member || !str_eq(json_text(a, member), value))
            return false;
    }
    return n > 0;
}

static ptrdiff_t find_item(struct arena *a, const struct json *array, struct str keys)
{
    int64_t index = 0;
    if (!json_is(array, JSON_ARRAY))
        return -1;
    if (str_to_i64(keys, &index) == 0)
        return index >= 0 && (size_t) index < array->n ? (ptrdiff_t) index : -1;
    for (size_t i = 0; i < json_count(array); i++)
        if (has_keys(a, &array->items[i], keys))
            return (ptrdiff_t) i;
    return -1;
}

static bool yield_at(struct arena *a, struct json *v, struct str path)
{
    if (str_starts_with(path, STR("."))) {
        path = str_from(path, 1);
        const struct str name = take_name(&path);
        struct json *member = json_get(v, name);
        if (path.n)
            return member && yield_at(a, member, path);
        return member && json_remove(v, name);
    }
    const size_t end = str_starts_with(path, STR("[")) ? bracket_end(path) : 0;
    const ptrdiff_t at = end ? find_item(a, v, str_sub(path, 1, end)) : -1;
    if (at < 0)
        return false;
    path = str_from(path, end + 1);
    if (path.n)
        return yield_at(a, &v->items[at], path);
    json_remove_at(v, (size_t) at);
    return true;
}

bool overrides_yield(struct json *config, struct str path)
{
    ARENA_AUTO a = arena_new();
    return str_starts_with(path, CONFIG_PATH) && yield_at(a, config, str_from(path, CONFIG_PATH.n));
}

/* ---- remains --------------------------------------------------------------------------------- */

/* By what the items of a list are told apart on a device. */
static const struct {
    const char *list, *in, *identity;
} identities[] = {
    {"apps", "uuidandversion", "uuid"},
    {"networkInstances", "uuidandversion", "uuid"},
    {"networks", NULL, "id"},
    {"datastores", NULL, "id"},
    {"contentInfo", NULL, "uuid"},
    {"volumes", NULL, "uuid"},
    {"cipherContexts", NULL, "contextId"},
};

bool overrides_drop_remains(struct json *config)
{
    bool is_any = false;
    for (size_t i = 0; i < N_ELEMENTS(identities); i++) {
        struct json *list = json_get(config, str_of(identities[i].list));
        for (size_t at = json_count(list); at-- > 0;) {
            const struct json *item = &list->items[at];
            if (identities[i].in)
                item = json_get(item, str_of(identities[i].in));
            if (json_get_str(item, str_of(identities[i].identity)).n)
                continue;
            json_remove_at(list, at);
            is_any = true;
        }
    }
    return is_any;
}
