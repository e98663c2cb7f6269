/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/references.h"

#include <errno.h>
#include <pthread.h>

#include "api/hooks.h"
#include "base/alloc.h"
#include "base/map.h"

/* Something that is referred to, whether it exists or not. */
struct reference_target {
    struct list edges;  /* of users */
    struct list claims; /* of users under way */
    size_t n_removals;  /* under way */
    size_t n_key;
    char key[];
};

struct edge {
    struct list link; /* of the target */
    struct reference_target *target;
    const struct user_node *user;
    struct edge *next; /* of the user */
};

struct user_node {
    struct edge *edges;
    bool is_deleting;
    size_t n_key;
    char key[];
};

/* A kind whose objects refer to others. */
struct source {
    char *collection;
    const struct kind_hooks *hooks;
    bool has_generation;
};

struct references {
    struct store_follower follower; /* first: on_events finds us by it */
    struct store *store;
    struct map sources;    /* collection -> struct source; never changes */
    struct arena *scratch; /* of the writer's thread */
    pthread_mutex_t lock;
    struct map targets; /* key -> struct reference_target */
    struct map users;   /* key -> struct user_node */
};

/* ---- under the lock ------------------------------------------------------------------------ */

static struct reference_target *target_of(struct references *r, struct str key)
{
    struct reference_target *t = map_get(&r->targets, key);
    if (t)
        return t;
    t = mem_zalloc(sizeof(*t) + key.n);
    list_init(&t->edges);
    list_init(&t->claims);
    t->n_key = key.n;
    memcpy(t->key, key.p, key.n);
    (void) map_put(&r->targets, str_range(t->key, t->n_key), t);
    return t;
}

/* Unless somebody still needs it. */
static void target_drop(struct references *r, struct reference_target *t)
{
    if (!list_is_empty(&t->edges) || !list_is_empty(&t->claims) || t->n_removals)
        return;
    (void) map_remove(&r->targets, str_range(t->key, t->n_key));
    mem_free(t);
}

static void drop_edges(struct references *r, struct user_node *u)
{
    for (struct edge *e = TAKE(u->edges), *next = NULL; e; e = next) {
        next = e->next;
        list_remove(&e->link);
        target_drop(r, e->target);
        mem_free(e);
    }
}

static void forget_user(struct references *r, struct str key)
{
    struct user_node *u = map_remove(&r->users, key);
    if (!u)
        return;
    drop_edges(r, u);
    mem_free(u);
}

static void add_edge(struct references *r, struct user_node *u, struct str key)
{
    struct reference_target *t = target_of(r, key);
    /* Nobody else has added any meanwhile: its second reference follows upon its first. */
    if (!list_is_empty(&t->edges) && CONTAINER_OF(t->edges.previous, struct edge, link)->user == u)
        return;
    struct edge *e = NEW(struct edge);
    *e = (struct edge){.target = t, .user = u, .next = u->edges};
    list_append(&t->edges, &e->link);
    u->edges = e;
}

static struct str users_of(struct arena *a, const struct reference *reference, struct str namespace)
{
    struct reference of_namespace = *reference;
    of_namespace.namespace = namespace;
    return reference_key(a, &of_namespace);
}

static void put_user(struct references *r, struct arena *a, struct str key, struct str namespace,
                     const struct reference_list *list, bool is_deleting)
{
    struct user_node *u = mem_zalloc(sizeof(*u) + key.n);
    u->is_deleting = is_deleting;
    u->n_key = key.n;
    memcpy(u->key, key.p, key.n);
    for (size_t i = 0; i < list->n; i++) {
        const struct reference *reference = &list->items[i];
        add_edge(r, u, reference_key(a, reference));
        if (reference->flags & REFERENCE_INHERITS)
            add_edge(r, u, users_of(a, reference, namespace));
    }
    forget_user(r, key);
    (void) map_put(&r->users, str_range(u->key, u->n_key), u);
}

/* ---- following the store ------------------------------------------------------------------- */

static struct str key_of(struct arena *a, struct str collection, const struct object *o)
{
    const struct str parts[] = {collection, STR("/"), object_span(o, o->head.namespace), STR("/"),
                                object_span(o, o->head.name)};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

static void learn(struct references *r, struct arena *a, const struct source *source,
                  const struct object *o)
{
    struct reference_list list = {.arena = a};
    const struct json *object = json_parse_quick(a, object_text(o));
    if (object)
        source->hooks->refer(&list, object);
    const struct str key = key_of(a, str_of(source->collection), o);
    (void) pthread_mutex_lock(&r->lock);
    if (list.n)
        put_user(r, a, key, object_span(o, o->head.namespace), &list, o->head.is_deleting);
    else
        forget_user(r, key);
    (void) pthread_mutex_unlock(&r->lock);
}

/* What stands in metadata between resourceVersion and managedFields: generation, deletionTimestamp
 * and annotations are in it. STR_NONE: cannot be told. */
static struct str meta_part(const struct object *o)
{
    const struct str rest = str_from(object_text(o), o->head.revision_at);
    const ptrdiff_t from = str_find(rest, '"'),
                    to = str_find_str(rest, STR(",\"managedFields\":["));
    return from < 0 || to < from ? STR_NONE : str_sub(rest, (size_t) from, (size_t) to);
}

/* A write to status, as most are, changes no reference and need not be parsed. */
static bool is_as_before(const struct source *source, const struct store_event *e)
{
    if (!source->has_generation || !e->previous)
        return false;
    const struct str was = meta_part(e->previous), is = meta_part(e->object);
    return was.p && is.p && str_eq(was, is);
}

static void on_event(struct references *r, const struct source *source, const struct store_event *e)
{
    if (e->type != STORE_DELETED && is_as_before(source, e))
        return;
    arena_reset(r->scratch);
    if (e->type != STORE_DELETED) {
        learn(r, r->scratch, source, e->object);
        return;
    }
    (void) pthread_mutex_lock(&r->lock);
    forget_user(r, key_of(r->scratch, e->collection, e->object));
    (void) pthread_mutex_unlock(&r->lock);
}

static void on_events(struct store_follower *f, struct store_event *const *events, size_t n_events,
                      int64_t revision)
{
    (void) revision;
    struct references *r = CONTAINER_OF(f, struct references, follower);
    for (size_t i = 0; i < n_events; i++) {
        const struct source *source = map_get(&r->sources, events[i]->collection);
        if (source)
            on_event(r, source, events[i]);
    }
}

static void load(struct references *r, const struct source *source)
{
    CLEANUP(store_page_done) struct store_page page = {0};
    const struct store_range all = {.collection = str_of(source->collection)};
    if (store_list(r->store, &all, &page) < 0)
        return; /* only a past revision cannot be listed */
    for (size_t i = 0; i < page.n; i++) {
        ARENA_AUTO a = arena_new();
        learn(r, a, source, page.objects[i]);
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

static void add_source(struct references *r, const struct kind *kind)
{
    struct buf collection = {0};
    struct source *source = NEW(struct source);
    buf_append_str(&collection, kind->collection);
    *source = (struct source){buf_take(&collection), kind->hooks, kind->has_generation};
    (void) map_put(&r->sources, str_of(source->collection), source);
}

struct references *references_new(struct store *s, const struct registry *kinds)
{
    struct references *r = NEW(struct references);
    int64_t revision = 0;
    struct map_entry e;
    r->store = s;
    r->scratch = arena_new();
    (void) pthread_mutex_init(&r->lock, NULL);
    for (size_t at = 0; map_next(&kinds->collections, &at, &e);) {
        const struct kind *kind = e.value;
        if (kind->hooks && kind->hooks->refer)
            add_source(r, kind);
    }
    for (size_t at = 0; map_next(&r->sources, &at, &e);)
        load(r, e.value);
    r->follower.on_events = on_events;
    store_follow(s, &r->follower, &revision);
    return r;
}

void references_free(struct references *r)
{
    if (!r)
        return;
    struct map_entry e;
    store_unfollow(r->store, &r->follower);
    for (size_t at = 0; map_next(&r->users, &at, &e);) {
        drop_edges(r, e.value);
        mem_free(e.value);
    }
    for (size_t at = 0; map_next(&r->sources, &at, &e);) {
        mem_free(((struct source *) e.value)->collection);
        mem_free(e.value);
    }
    map_done(&r->users);
    map_done(&r->sources);
    map_done(&r->targets);
    arena_free(r->scratch);
    (void) pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

/* ---- questions ----------------------------------------------------------------------------- */

static size_t users_locked(struct references *r, struct arena *a, struct str key, size_t max,
                           struct str **ret_keys)
{
    const struct reference_target *t = map_get(&r->targets, key);
    size_t n = 0;
    *ret_keys = NULL;
    for (struct list *at = t ? t->edges.next : NULL; t && at != &t->edges && n < max;
         at = at->next) {
        const struct user_node *u = CONTAINER_OF(at, struct edge, link)->user;
        if (u->is_deleting)
            continue;
        *ret_keys = arena_grow(a, *ret_keys, n, sizeof(**ret_keys));
        (*ret_keys)[n++] = arena_str(a, str_range(u->key, u->n_key));
    }
    return n;
}

size_t references_users(struct references *r, struct arena *a, struct str key, size_t max,
                        struct str **ret_keys)
{
    (void) pthread_mutex_lock(&r->lock);
    const size_t n = users_locked(r, a, key, max, ret_keys);
    (void) pthread_mutex_unlock(&r->lock);
    return n;
}

static struct str part_of(struct str *key)
{
    struct str part = STR("");
    (void) str_split(key, '/', &part);
    return part;
}

/* Those who use it because an object that they use needs it in their namespace. */
static bool is_used_by_way(struct references *r, struct arena *a, struct str key,
                           struct reference_use *ret_use)
{
    struct str rest = key, *ways = NULL, *users = NULL;
    const struct str collection = part_of(&rest), namespace = part_of(&rest);
    const struct reference of_users = {.collection = collection, .name = rest};
    if (!namespace.n)
        return false;
    const size_t n = users_locked(r, a, reference_key(a, &of_users), SIZE_MAX, &ways);
    for (size_t i = 0; i < n; i++) {
        struct str way = ways[i];
        struct reference reference = {.collection = part_of(&way)};
        (void) part_of(&way);
        reference.name = way;
        if (users_locked(r, a, users_of(a, &reference, namespace), 1, &users)) {
            *ret_use = (struct reference_use){.user = users[0], .by = ways[i]};
            return true;
        }
    }
    return false;
}

static bool is_used(struct references *r, struct arena *a, const struct reference_claim *c,
                    struct reference_use *ret_use)
{
    struct str *users = NULL;
    const struct reference_target *t = map_get(&r->targets, c->key);
    if (t && !list_is_empty(&t->claims)) {
        const struct reference_claim *other =
            CONTAINER_OF(t->claims.next, struct reference_claim, link);
        *ret_use = (struct reference_use){.user = arena_str(a, other->user), .is_pending = true};
        return true;
    }
    if (users_locked(r, a, c->key, 1, &users)) {
        *ret_use = (struct reference_use){.user = users[0]};
        return true;
    }
    return is_used_by_way(r, a, c->key, ret_use);
}

/* ---- claims -------------------------------------------------------------------------------- */

int references_claim_use(struct references *r, struct reference_claim *c)
{
    (void) pthread_mutex_lock(&r->lock);
    const struct reference_target *known = map_get(&r->targets, c->key);
    const bool is_busy = known && known->n_removals;
    if (!is_busy && !c->is_question) {
        c->target = target_of(r, c->key);
        list_append(&c->target->claims, &c->link);
    }
    (void) pthread_mutex_unlock(&r->lock);
    return is_busy ? -EBUSY : 0;
}

int references_claim_removal(struct references *r, struct arena *a, struct reference_claim *c,
                             struct reference_use *ret_use)
{
    (void) pthread_mutex_lock(&r->lock);
    const bool is_busy = is_used(r, a, c, ret_use);
    c->is_removal = true;
    if (!is_busy && !c->is_question) {
        c->target = target_of(r, c->key);
        c->target->n_removals++;
    }
    (void) pthread_mutex_unlock(&r->lock);
    return is_busy ? -EBUSY : 0;
}

void references_release(struct references *r, struct reference_claim *c)
{
    struct reference_target *t = TAKE(c->target);
    if (!t)
        return;
    (void) pthread_mutex_lock(&r->lock);
    if (c->is_removal)
        t->n_removals--;
    else
        list_remove(&c->link);
    target_drop(r, t);
    (void) pthread_mutex_unlock(&r->lock);
}
