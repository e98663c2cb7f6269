/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "schema/managed_internal.h"

static const struct json *managed_of(const struct json *object)
{
    return json_at(object, "metadata", "managedFields", NULL);
}

/* ---- which entries to begin with ----------------------------------------------------------- */

/* [] or [{}]: the client wants them forgotten. */
static bool is_reset(const struct json *sent)
{
    if (!json_is(sent, JSON_ARRAY))
        return false;
    return sent->n == 0 ||
           (sent->n == 1 && json_is(&sent->items[0], JSON_OBJECT) && sent->items[0].n == 0);
}

struct base {
    struct managed_list list;
    bool is_live; /* as the old object has them */
};

static void choose_base(struct arena *a, const struct json *live, const struct json *sent,
                        const struct managed_options *options, struct base *ret)
{
    *ret = (struct base){.list.arena = a};
    bool is_subresource = options->subresource.n > 0;
    if (!is_subresource && is_reset(sent))
        return;
    if (!is_subresource && json_count(sent) && !json_equal(sent, live) &&
        managed_read(a, sent, /* is_canonical= */ false, &ret->list) == 0)
        return;
    ret->is_live = managed_read(a, live, /* is_canonical= */ true, &ret->list) == 0;
}

/* ---- the cap ------------------------------------------------------------------------------ */

static int compare_age(const void *a, const void *b)
{
    const struct managed_entry *const *x = a, *const *y = b;
    int order = str_cmp((*x)->time, (*y)->time);
    return order ? order : managed_compare_identity(*x, *y);
}

static struct managed_entry bucket_of(const struct managed_entry *e)
{
    return (struct managed_entry){
        .manager = STR("ancient-changes"), .api_version = e->api_version, .subresource = STR("")};
}

/* The entry that the older ones of this version are joined into: the bucket, or the oldest, which
 * becomes it. */
static struct managed_entry *bucket_for(struct managed_list *list, struct managed_entry **by_age,
                                        size_t n)
{
    const struct managed_entry *e = by_age[n];
    struct managed_entry bucket = bucket_of(e), *found = managed_find(list, &bucket);
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(by_age[i]->api_version, e->api_version))
            continue;
        if (found && found != e)
            return found;
        by_age[i]->manager = bucket.manager;
        by_age[i]->subresource = bucket.subresource;
        return by_age[i];
    }
    return NULL;
}

static void join(struct managed_list *list, struct managed_entry *into, struct managed_entry *from)
{
    managed_set_fields(
        into, fieldset_union(list->arena, managed_set(list, into), managed_set(list, from)));
    managed_set_time(into, from->time);
    managed_set_fields(from, fieldset_new(list->arena));
}

/* The oldest are joined, each version into one, until few enough are left. */
static void cap_updaters(struct managed_list *list)
{
    static const struct fieldset_difference nothing = {0};
    struct managed_entry **by_age = ARENA_ARRAY(list->arena, struct managed_entry *, list->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (!list->entries[i].is_apply)
            by_age[n++] = &list->entries[i];
    }
    if (n <= MANAGED_MAX_UPDATERS)
        return;
    qsort(by_age, n, sizeof(*by_age), compare_age);
    for (size_t i = 1, n_left = n; i < n && n_left > MANAGED_MAX_UPDATERS; i++) {
        struct managed_entry *into = bucket_for(list, by_age, i);
        if (!into)
            continue;
        join(list, into, by_age[i]);
        n_left--;
    }
    managed_release(list, &nothing, /* skip= */ NULL);
}

/* ---- update ------------------------------------------------------------------------------- */

void managed_update(struct arena *a, const struct json *old, struct json *new_object,
                    const struct managed_options *options)
{
    const struct json *live = managed_of(old);
    struct base base;
    choose_base(a, live, managed_of(new_object), options, &base);
    base.list.schema = options->schema;
    base.list.reconciles = true;
    /* Nobody begins to track an object that was not tracked; apply does. */
    if (old && base.list.n == 0) {
        managed_store(a, new_object, json_array());
        return;
    }
    struct fieldset_difference d = managed_compare(a, options, old, new_object);
    if (base.is_live && fieldset_is_empty(d.changed) && fieldset_is_empty(d.removed)) {
        managed_store(a, new_object, live ? *live : json_array());
        return;
    }
    const struct managed_entry by = {
        .manager = options->manager.n ? options->manager : STR("unknown"),
        .api_version = options->api_version,
        .subresource = options->subresource.p ? options->subresource : STR(""),
    };
    managed_take_over(&base.list, &d, &by, options->time);
    cap_updaters(&base.list);
    managed_store(a, new_object, managed_write(&base.list));
}

/* ---- times -------------------------------------------------------------------------------- */

static bool is_same_but(const struct json *a, const struct json *b, const char *const *except)
{
    size_t n_a = json_count(a), n_b = json_count(b);
    for (const char *const *name = except; *name; name++) {
        n_a -= json_get(a, str_of(*name)) != NULL;
        n_b -= json_get(b, str_of(*name)) != NULL;
    }
    if (n_a != n_b)
        return false;
    JSON_FOR_EACH_MEMBER (a, m) {
        bool is_excepted = false;
        for (const char *const *name = except; *name; name++)
            is_excepted |= str_is(json_str(&m->key), *name);
        if (!is_excepted && !json_equal(&m->value, json_get(b, json_str(&m->key))))
            return false;
    }
    return true;
}

static bool is_same_but_times(const struct json *a, const struct json *b)
{
    static const char *const except[] = {"time", NULL};
    if (json_count(a) != json_count(b))
        return false;
    for (size_t i = 0; i < json_count(a); i++) {
        const struct json *x = &a->items[i], *y = NULL;
        for (size_t k = 0; k < json_count(b) && !y; k++) {
            const struct json *candidate = &b->items[(i + k) % b->n];
            y = is_same_but(x, candidate, except) ? candidate : NULL;
        }
        if (!y)
            return false;
    }
    return true;
}

void managed_keep_times(struct arena *a, const struct json *old, struct json *new_object)
{
    static const char *const in_object[] = {"metadata", NULL};
    static const char *const in_metadata[] = {"managedFields", "resourceVersion", NULL};
    const struct json *live = managed_of(old), *managed = managed_of(new_object);
    if (!json_is(live, JSON_ARRAY) || !json_is(managed, JSON_ARRAY) ||
        live->items == managed->items)
        return;
    if (is_same_but_times(managed, live) && is_same_but(old, new_object, in_object) &&
        is_same_but(json_get(old, STR("metadata")), json_get(new_object, STR("metadata")),
                    in_metadata))
        managed_store(a, new_object, *live);
}
