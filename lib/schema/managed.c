/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/managed.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/managed_internal.h"

#define TIME_BYTES 20 /* 2026-01-02T03:04:05Z */
#define FEW_ENTRIES 16

/* ---- reading ------------------------------------------------------------------------------ */

static const struct json no_fields = {.type = JSON_OBJECT};

/* An absent member is "", one of another type is an error, as in a typed decoder. */
static int read_str(const struct json *entry, const char *name, struct str *ret)
{
    const struct json *v = json_get(entry, str_of(name));
    if (v && v->type != JSON_STRING && v->type != JSON_NULL)
        return -EINVAL;
    *ret = json_is(v, JSON_STRING) ? json_str(v) : STR("");
    return 0;
}

static bool is_time(struct str s)
{
    static const char shape[] = "0000-00-00T00:00:00Z";
    if (s.n != TIME_BYTES)
        return false;
    for (size_t i = 0; i < TIME_BYTES; i++) {
        bool is_digit = s.p[i] >= '0' && s.p[i] <= '9';
        if (shape[i] == '0' ? !is_digit : s.p[i] != shape[i])
            return false;
    }
    return true;
}

static int read_entry(const struct json *value, struct managed_entry *ret)
{
    struct str operation, type;
    if (!json_is(value, JSON_OBJECT) || read_str(value, "manager", &ret->manager) < 0 ||
        read_str(value, "operation", &operation) < 0 || read_str(value, "fieldsType", &type) < 0 ||
        read_str(value, "apiVersion", &ret->api_version) < 0 ||
        read_str(value, "time", &ret->time) < 0 ||
        read_str(value, "subresource", &ret->subresource) < 0)
        return -EINVAL;
    ret->is_apply = str_is(operation, "Apply");
    if ((!ret->is_apply && !str_is(operation, "Update")) || ret->api_version.n == 0 ||
        !str_is(type, "FieldsV1"))
        return -EINVAL;
    if (ret->time.n && !is_time(ret->time))
        return -EINVAL;
    if (!ret->time.n)
        ret->time = STR_NONE;
    ret->stored = value;
    ret->fields = json_get(value, STR("fieldsV1"));
    if (!ret->fields || ret->fields->type == JSON_NULL)
        ret->fields = &no_fields;
    return 0;
}

static struct str identity(struct arena *a, const struct managed_entry *e)
{
    return arena_printf(a, "%d%c%.*s%c%.*s%c%.*s", e->is_apply, 0, STR_ARG(e->manager), 0,
                        STR_ARG(e->subresource), 0,
                        STR_ARG(e->is_apply ? STR("") : e->api_version));
}

/* Of two entries for one manager the last counts. */
static void drop_repeated(struct managed_list *list)
{
    if (list->n < 2)
        return;
    CLEANUP(map_done) struct map last = {0};
    for (size_t i = 0; i < list->n; i++)
        (void) map_put(&last, identity(list->arena, &list->entries[i]), &list->entries[i]);
    if (last.n_items == list->n)
        return;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (map_get(&last, identity(list->arena, &list->entries[i])) == &list->entries[i])
            list->entries[n++] = list->entries[i];
    }
    list->n = n;
}

int managed_read(struct arena *a, const struct json *managed, bool is_canonical,
                 struct managed_list *ret)
{
    struct managed_list list = {.arena = a};
    if (!is_canonical && json_count(managed) > MANAGED_MAX_SENT)
        return -EINVAL;
    JSON_FOR_EACH_ITEM (managed, value) {
        struct managed_entry entry = {0};
        int r = read_entry(value, &entry);
        if (r == 0 && !is_canonical) {
            struct fieldset *set = NULL;
            r = fieldset_from_json(a, entry.fields, &set);
            managed_set_fields(&entry, set);
        }
        if (r < 0)
            return r;
        managed_add(&list, entry);
    }
    if (!is_canonical)
        drop_repeated(&list);
    *ret = list;
    return 0;
}

/* ---- entries ------------------------------------------------------------------------------ */

const struct fieldset *managed_set(struct managed_list *list, struct managed_entry *entry)
{
    if (entry->set)
        return entry->set;
    if (fieldset_from_json(list->arena, entry->fields, &entry->set) < 0)
        entry->set = fieldset_new(list->arena);
    struct fieldset *set = entry->set;
    if (list->reconciles)
        set = fieldset_reconcile(list->arena, set, list->schema);
    if (set != entry->set)
        managed_set_fields(entry, set);
    return set;
}

void managed_set_fields(struct managed_entry *entry, struct fieldset *set)
{
    entry->set = set;
    entry->fields = NULL;
    entry->stored = NULL;
}

void managed_set_time(struct managed_entry *entry, struct str time)
{
    entry->time = time;
    entry->stored = NULL;
}

static bool is_same(const struct managed_entry *a, const struct managed_entry *b)
{
    return a->is_apply == b->is_apply && str_eq(a->manager, b->manager) &&
           str_eq(a->subresource, b->subresource) &&
           (a->is_apply || str_eq(a->api_version, b->api_version));
}

struct managed_entry *managed_find(struct managed_list *list, const struct managed_entry *who)
{
    for (size_t i = 0; i < list->n; i++) {
        if (is_same(&list->entries[i], who))
            return &list->entries[i];
    }
    return NULL;
}

struct managed_entry *managed_add(struct managed_list *list, struct managed_entry entry)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : FEW_ENTRIES;
        list->entries = arena_realloc(list->arena, list->entries, list->capacity * sizeof(entry),
                                      capacity * sizeof(entry));
        list->capacity = capacity;
    }
    list->entries[list->n] = entry;
    return &list->entries[list->n++];
}

void managed_remove(struct managed_list *list, struct managed_entry *entry)
{
    size_t at = (size_t) (entry - list->entries);
    memmove(entry, entry + 1, (list->n - at - 1) * sizeof(*entry));
    list->n--;
}

/* {"manager":"x","operation":"Apply","apiVersion":..., "subresource":...}: of two equal managers
 * the operation decides, and so on. */
int managed_compare_identity(const struct managed_entry *a, const struct managed_entry *b)
{
    int order = str_cmp(a->manager, b->manager);
    if (order == 0)
        order = (int) b->is_apply - (int) a->is_apply;
    if (order == 0 && !a->is_apply)
        order = str_cmp(a->api_version, b->api_version);
    return order ? order : str_cmp(a->subresource, b->subresource);
}

/* ---- writing ------------------------------------------------------------------------------ */

static int compare_stored(const void *a, const void *b)
{
    const struct managed_entry *x = a, *y = b;
    if (x->is_apply != y->is_apply)
        return x->is_apply ? -1 : 1;
    int order = str_cmp(x->time, y->time); /* RFC 3339 in UTC sorts as text; none is the oldest */
    if (order == 0)
        order = str_cmp(x->manager, y->manager);
    if (order == 0)
        order = str_cmp(x->api_version, y->api_version);
    return order ? order : str_cmp(x->subresource, y->subresource);
}

static struct json write_entry(struct arena *a, const struct managed_entry *e)
{
    if (e->stored)
        return *e->stored;
    struct json out = json_object();
    out.members = arena_alloc(a, 7 * sizeof(*out.members));
    struct json fields = e->fields ? *e->fields : fieldset_to_json(a, e->set);
    if (e->manager.n)
        out.members[out.n++] =
            (struct json_member){json_string(STR("manager")), json_string(e->manager)};
    out.members[out.n++] = (struct json_member){
        json_string(STR("operation")), json_string(e->is_apply ? STR("Apply") : STR("Update"))};
    out.members[out.n++] =
        (struct json_member){json_string(STR("apiVersion")), json_string(e->api_version)};
    if (e->time.n)
        out.members[out.n++] = (struct json_member){json_string(STR("time")), json_string(e->time)};
    out.members[out.n++] =
        (struct json_member){json_string(STR("fieldsType")), json_string(STR("FieldsV1"))};
    out.members[out.n++] = (struct json_member){json_string(STR("fieldsV1")), fields};
    if (e->subresource.n)
        out.members[out.n++] =
            (struct json_member){json_string(STR("subresource")), json_string(e->subresource)};
    return out;
}

struct json managed_write(struct managed_list *list)
{
    if (list->n > 1)
        qsort(list->entries, list->n, sizeof(*list->entries), compare_stored);
    struct json out = json_array();
    out.items = arena_alloc(list->arena, (list->n + 1) * sizeof(*out.items));
    for (size_t i = 0; i < list->n; i++)
        out.items[out.n++] = write_entry(list->arena, &list->entries[i]);
    return out;
}

void managed_store(struct arena *a, struct json *object, struct json managed)
{
    struct json *metadata = json_get(object, STR("metadata"));
    if (json_count(&managed) == 0 && !json_get(metadata, STR("managedFields")))
        return;
    json_unshare(a, object, 1);
    metadata = json_ensure_object(a, object, STR("metadata"));
    json_unshare(a, metadata, 1);
    if (json_count(&managed) == 0)
        (void) json_remove(metadata, STR("managedFields"));
    else
        (void) json_set(a, metadata, STR("managedFields"), managed);
}

/* ---- what is never owned ------------------------------------------------------------------- */

#define OWNED_BY_NONE(name) \
    { \
        .element = {"f:" name, sizeof("f:" name) - 1}, .is_member = true \
    }

/* Sorted, as all sets are. */
static struct fieldset_node metadata_nodes[] = {
    OWNED_BY_NONE("clusterName"),
    OWNED_BY_NONE("creationTimestamp"),
    OWNED_BY_NONE("generation"),
    OWNED_BY_NONE("managedFields"),
    OWNED_BY_NONE("name"),
    OWNED_BY_NONE("namespace"),
    OWNED_BY_NONE("resourceVersion"),
    OWNED_BY_NONE("selfLink"),
    OWNED_BY_NONE("uid"),
};
static struct fieldset metadata_set = {.nodes = metadata_nodes, .n = N_ELEMENTS(metadata_nodes)};
static struct fieldset_node root_nodes[] = {
    OWNED_BY_NONE("apiVersion"),
    OWNED_BY_NONE("kind"),
    {.element = {"f:metadata", sizeof("f:metadata") - 1}, .children = &metadata_set},
};
static const struct fieldset never_owned = {.nodes = root_nodes, .n = N_ELEMENTS(root_nodes)};
/* The usual reset: a kind that has a status subresource. */
static struct fieldset_node root_and_status_nodes[] = {
    OWNED_BY_NONE("apiVersion"),
    OWNED_BY_NONE("kind"),
    {.element = {"f:metadata", sizeof("f:metadata") - 1}, .children = &metadata_set},
    OWNED_BY_NONE("status"),
};
static const struct fieldset never_owned_nor_status = {.nodes = root_and_status_nodes,
                                                       .n = N_ELEMENTS(root_and_status_nodes)};

const struct fieldset *managed_ignored(struct arena *a, const struct managed_options *options)
{
    const char *const *reset = options->reset_fields;
    if (!reset || !reset[0])
        return &never_owned;
    if (str_is(str_of(reset[0]), "status") && !reset[1])
        return &never_owned_nor_status;
    struct fieldset *set = fieldset_copy(a, &never_owned);
    struct fieldset_node *metadata =
        (struct fieldset_node *) fieldset_find_field(set, STR("metadata"));
    metadata->children = fieldset_copy(a, &metadata_set);
    for (const char *const *path = reset; *path; path++)
        fieldset_add_path(a, set, str_of(*path));
    return set;
}

void managed_strip_metadata(struct fieldset *set)
{
    struct fieldset_node *node = (struct fieldset_node *) fieldset_find_field(set, STR("metadata"));
    if (!node)
        return;
    node->is_member = false;
    if (!node->children) {
        size_t at = (size_t) (node - set->nodes);
        memmove(node, node + 1, (set->n - at - 1) * sizeof(*node));
        set->n--;
    }
}

/* ---- objects as they are compared ----------------------------------------------------------- */

static struct json over_zero(struct arena *a, const struct json *object, const struct json *zero)
{
    struct json out = *object;
    bool is_shared = true;
    JSON_FOR_EACH_MEMBER (zero, m) {
        const struct json *has = json_get(&out, json_str(&m->key));
        if (has && !(json_is(has, JSON_OBJECT) && json_count(&m->value)))
            continue;
        if (is_shared)
            json_unshare(a, &out, 1);
        is_shared = false;
        struct json value = has ? over_zero(a, has, &m->value) : m->value;
        (void) json_set(a, &out, json_str(&m->key), value);
    }
    return out;
}

static struct json compared(struct arena *a, const struct managed_options *options,
                            const struct json *object)
{
    struct json out = over_zero(a, object, options->zero);
    if (!options->only_status)
        return out;
    const struct json *status = json_get(&out, STR("status"));
    struct json only = json_object();
    if (status)
        (void) json_append_member(a, &only, STR("status"), *status);
    return only;
}

struct fieldset_difference managed_compare(struct arena *a, const struct managed_options *options,
                                           const struct json *old, const struct json *new_value)
{
    static const struct json nothing = {.type = JSON_OBJECT};
    const struct json before = compared(a, options, old ? old : &nothing);
    const struct json after = compared(a, options, new_value);
    struct fieldset_difference d =
        fieldset_compare(a, options->schema, &before, &after, managed_ignored(a, options));
    managed_strip_metadata(d.changed);
    return d;
}

/* ---- ownership ---------------------------------------------------------------------------- */

bool managed_may_own(const struct managed_entry *e, const struct fieldset *set)
{
    if (fieldset_is_empty(set))
        return false;
    return !e->fields || !fieldset_is_small(set) || fieldset_json_has_any(e->fields, set);
}

/* Few fields are taken out of stored ones, or added, without parsing these. False: not done that
 * way. */
static bool change_stored(struct managed_list *list, struct managed_entry *e,
                          const struct fieldset *set,
                          bool (*change)(struct arena *a, const struct fieldset *set,
                                         struct json *fields_v1))
{
    if (!e->fields || !fieldset_is_small(set) ||
        (list->reconciles && !fieldset_json_fits(e->fields, list->schema)))
        return false;
    struct json fields = *e->fields;
    if (change(list->arena, set, &fields)) {
        e->fields = json_new(list->arena, fields);
        e->stored = NULL;
        e->set = NULL;
    }
    return true;
}

void managed_release(struct managed_list *list, const struct fieldset_difference *difference,
                     const struct managed_entry *skip)
{
    const struct fieldset *lost[] = {difference->changed, difference->removed};
    for (size_t i = list->n; i-- > 0;) {
        struct managed_entry *e = &list->entries[i];
        for (size_t k = 0; k < N_ELEMENTS(lost) && e != skip; k++) {
            if (!managed_may_own(e, lost[k]) || change_stored(list, e, lost[k], fieldset_json_take))
                continue;
            const struct fieldset *set = managed_set(list, e);
            struct fieldset *rest = fieldset_difference(list->arena, set, lost[k]);
            if (!fieldset_equal(set, rest))
                managed_set_fields(e, rest);
        }
        if (e != skip && (e->set ? fieldset_is_empty(e->set) : json_count(e->fields) == 0))
            managed_remove(list, e);
    }
}

/* The usual update: a manager writes fields that it owns already. */
static bool owns_all(const struct managed_entry *e, const struct fieldset_difference *d)
{
    return e->fields && fieldset_is_small(d->changed) && fieldset_is_small(d->removed) &&
           fieldset_json_has_all(e->fields, d->changed) &&
           !fieldset_json_has_any(e->fields, d->removed);
}

void managed_take_over(struct managed_list *list, const struct fieldset_difference *difference,
                       const struct managed_entry *by, struct str time)
{
    struct managed_entry *own = managed_find(list, by);
    if (own && !fieldset_is_empty(difference->changed) && owns_all(own, difference)) {
        managed_release(list, difference, own);
        managed_set_time(managed_find(list, by), time);
        return;
    }
    managed_release(list, difference, NULL);
    if (fieldset_is_empty(difference->changed))
        return;
    own = managed_find(list, by);
    if (!own) {
        own = managed_add(list, *by);
        managed_set_fields(own, difference->changed);
    } else if (!change_stored(list, own, difference->changed, fieldset_json_add)) {
        managed_set_fields(
            own, fieldset_union(list->arena, managed_set(list, own), difference->changed));
    }
    managed_set_time(own, time);
}
