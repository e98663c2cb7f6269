/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/effects.h"

#include <stdlib.h>

#include "preview/place.h"

static void add(struct arena *a, struct effects *e, enum effect_kind kind, struct str name)
{
    e->items = arena_grow(a, e->items, e->n, sizeof(*e->items));
    e->items[e->n++] = (struct effect){kind, name};
}

/* The item of a list in a configuration; NULL: it has none of that place. */
static const struct json *find_item(struct arena *a, const struct schema *schema,
                                    const struct json *config, struct str list, struct str place)
{
    const struct schema *s = schema_member(schema, list);
    const struct json *value = json_get(config, list);
    const struct str *keys = place_items(a, s, value);
    const ptrdiff_t at = keys ? place_find(keys, value->n, str_from(place, list.n)) : -1;
    return at < 0 ? NULL : &value->items[at];
}

/* Absent is zero, as everywhere in protobuf. Some numbers stand in strings. */
static bool has_same_count(const struct json *old, const struct json *new, const char *command)
{
    const struct json zero = json_int(0);
    const struct json *was = json_at(old, command, "counter", NULL);
    const struct json *is = json_at(new, command, "counter", NULL);
    return json_equal(was ? was : &zero, is ? is : &zero);
}

static void find_application(struct arena *a, struct effects *e, const struct json *old,
                             const struct json *new)
{
    const struct str name = json_get_str(new ? new : old, STR("displayname"));
    const bool was_active = json_get_bool(old, STR("activate"), false);
    const bool is_active = json_get_bool(new, STR("activate"), false);
    if (!new)
        add(a, e, EFFECT_APPLICATION_GOES, name);
    else if (!old)
        add(a, e, EFFECT_APPLICATION_COMES, name);
    else if (!has_same_count(old, new, "purge"))
        add(a, e, EFFECT_PURGE, name);
    else if (was_active != is_active)
        add(a, e, is_active ? EFFECT_APPLICATION_STARTS : EFFECT_APPLICATION_STOPS, name);
    else if (!has_same_count(old, new, "restart"))
        add(a, e, EFFECT_RESTART, name);
}

/* A device makes a volume of another generation anew, and empty. */
static void find_volume(struct arena *a, struct effects *e, const struct json *old,
                        const struct json *new)
{
    const struct str name = json_get_str(new ? new : old, STR("displayName"));
    const struct json *was = json_get(old, STR("generationCount"));
    const struct json *is = json_get(new, STR("generationCount"));
    if (!new)
        add(a, e, EFFECT_VOLUME_GOES, name);
    else if (old && (was ? !is || !json_equal(was, is) : is != NULL))
        add(a, e, EFFECT_VOLUME_ANEW, name);
}

/* The first counter that a device sees is only taken note of. */
static void find_commands(struct arena *a, struct effects *e, const struct json *old,
                          const struct json *new)
{
    const struct str was = json_str(json_at(old, "baseos", "baseOsVersion", NULL));
    const struct str is = json_str(json_at(new, "baseos", "baseOsVersion", NULL));
    if (json_get(old, STR("reboot")) && !has_same_count(old, new, "reboot"))
        add(a, e, EFFECT_REBOOT, STR_NONE);
    if (json_get(old, STR("shutdown")) && !has_same_count(old, new, "shutdown"))
        add(a, e, EFFECT_SHUTDOWN, STR_NONE);
    if (is.n && !str_eq(was, is))
        add(a, e, EFFECT_UPDATE, is);
}

/* The volume that an application boots has its name; it goes and comes with it. */
static bool is_told(const struct effects *e, const struct effect *volume)
{
    for (size_t i = 0; i < e->n; i++) {
        const enum effect_kind kind = e->items[i].kind;
        if ((kind == EFFECT_PURGE || kind == EFFECT_APPLICATION_GOES) &&
            str_eq(e->items[i].name, volume->name))
            return true;
    }
    return false;
}

static void drop_told(struct effects *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        const struct effect one = e->items[i];
        const bool is_volume = one.kind == EFFECT_VOLUME_GOES || one.kind == EFFECT_VOLUME_ANEW;
        if (!is_volume || !is_told(e, &one))
            e->items[n++] = one;
    }
    e->n = n;
}

static int by_kind(const void *a, const void *b)
{
    const struct effect *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return str_cmp(x->name, y->name);
}

struct effects effects_find(struct arena *a, const struct schema *schema, const struct json *old,
                            const struct json *new, const struct difference *d)
{
    struct effects e = {0};
    struct str last = STR("");
    if (d->n)
        find_commands(a, &e, old, new);
    /* Changes of one item follow each other. */
    for (size_t i = 0; i < d->n; i++) {
        const struct str place = place_first(d->items[i].place);
        const bool is_application = str_starts_with(place, STR("apps["));
        const struct str list = is_application ? STR("apps") : STR("volumes");
        if (str_eq(place, last) || !(is_application || str_starts_with(place, STR("volumes["))))
            continue;
        last = place;
        (is_application ? find_application : find_volume)(
            a, &e, find_item(a, schema, old, list, place), find_item(a, schema, new, list, place));
    }
    if (e.n)
        qsort(e.items, e.n, sizeof(*e.items), by_kind);
    drop_told(&e);
    return e;
}

size_t effects_count(const struct effects *e, enum effect_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        n += e->items[i].kind == kind;
    return n;
}

struct str effect_text(struct arena *a, const struct effect *e)
{
    static const struct {
        struct str before, after; /* the name */
    } texts[] = {
#define TEXT(before, after) {{before, sizeof(before) - 1}, {after, sizeof(after) - 1}}
        [EFFECT_REBOOT] = TEXT("the device reboots", ""),
        [EFFECT_UPDATE] = TEXT("EVE is updated to ", ": the device reboots"),
        [EFFECT_SHUTDOWN] = TEXT("the device stops its applications", ""),
        [EFFECT_PURGE] = TEXT("application ", " is purged: its boot volume is made anew"),
        [EFFECT_RESTART] = TEXT("application ", " restarts"),
        [EFFECT_VOLUME_GOES] = TEXT("volume ", " is removed with what it holds"),
        [EFFECT_VOLUME_ANEW] = TEXT("volume ", " is made anew: what it holds is lost"),
        [EFFECT_APPLICATION_GOES] = TEXT("application ", " is removed"),
        [EFFECT_APPLICATION_COMES] = TEXT("application ", " is new"),
        [EFFECT_APPLICATION_STOPS] = TEXT("application ", " stops"),
        [EFFECT_APPLICATION_STARTS] = TEXT("application ", " starts"),
#undef TEXT
    };
    const struct str parts[] = {texts[e->kind].before, e->name, texts[e->kind].after};
    return arena_join(a, parts, N_ELEMENTS(parts));
}
