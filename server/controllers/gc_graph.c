/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/gc_graph.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "controllers/objects.h"

struct node {
    struct str uid;                         /* owned */
    struct str collection, namespace, name; /* one block, owned; absent until it was seen */
    enum gc_presence presence;              /* GC_COLLECTING is a flag of its own */
    bool is_seen;                           /* by an event: those keep it current from then on */
    bool is_deleting, is_collecting, is_orphaning;
    struct edge *owners;
    size_t n_owners;
    struct list dependents; /* of struct edge */
    uint64_t walk;          /* the last that came by */
};

struct edge {
    struct list link; /* in the owner's dependents */
    struct node *owner, *dependent;
    bool blocks;
};

struct gc_graph {
    pthread_mutex_t lock;
    struct map nodes; /* uid -> struct node */
    uint64_t walk;
    void (*wake)(void *ctx, struct str uid);
    void *ctx;
};

/* ---- nodes -------------------------------------------------------------------------------- */

static void lock(struct gc_graph *g)
{
    (void) pthread_mutex_lock(&g->lock);
}

static void unlock(struct gc_graph *g)
{
    (void) pthread_mutex_unlock(&g->lock);
}

static struct node *node_ensure(struct gc_graph *g, struct str uid)
{
    struct node *n = map_get(&g->nodes, uid);
    if (n)
        return n;
    n = NEW(struct node);
    n->uid = str_range(mem_dup(uid.p, uid.n), uid.n);
    list_init(&n->dependents);
    (void) map_put(&g->nodes, n->uid, n);
    return n;
}

static void node_free(struct node *n)
{
    mem_free((char *) n->uid.p);
    mem_free((char *) n->collection.p);
    mem_free(n->owners);
    mem_free(n);
}

/* Forgets a node nobody has a reason to know. */
static void node_release(struct gc_graph *g, struct node *n)
{
    bool is_waiting = n->presence != GC_GONE && (n->is_collecting || n->is_orphaning);
    if (n->n_owners || is_waiting || !list_is_empty(&n->dependents))
        return;
    (void) map_remove(&g->nodes, n->uid);
    node_free(n);
}

static void node_place(struct node *n, struct str collection, struct str namespace, struct str name)
{
    if (n->collection.p)
        return;
    char *p = mem_alloc(collection.n + namespace.n + name.n + 1);
    n->collection = str_range(p, collection.n);
    n->namespace = str_range(p + collection.n, namespace.n);
    n->name = str_range(p + collection.n + namespace.n, name.n);
    memcpy(p, collection.p, collection.n);
    if (namespace.n)
        memcpy(p + collection.n, namespace.p, namespace.n);
    memcpy(p + collection.n + namespace.n, name.p, name.n);
}

/* ---- edges -------------------------------------------------------------------------------- */

/* An owner that waits for its dependents may have lost the last. */
static void drop_owners(struct gc_graph *g, struct node *n)
{
    struct edge *owners = TAKE(n->owners);
    size_t n_owners = n->n_owners;
    n->n_owners = 0;
    for (size_t i = 0; i < n_owners; i++) {
        struct node *owner = owners[i].owner;
        list_remove(&owners[i].link);
        if (owner->is_collecting)
            g->wake(g->ctx, owner->uid);
        if (owner != n)
            node_release(g, owner);
    }
    mem_free(owners);
}

static struct str reference_uid(const struct json *reference)
{
    struct str uid = json_get_str(reference, STR("uid"));
    return uid.p ? uid : STR("");
}

static bool has_same_owners(const struct node *n, const struct json *references)
{
    if (json_count(references) != n->n_owners)
        return false;
    for (size_t i = 0; i < n->n_owners; i++) {
        const struct json *r = &references->items[i];
        if (!str_eq(reference_uid(r), n->owners[i].owner->uid) ||
            json_get_bool(r, STR("blockOwnerDeletion"), false) != n->owners[i].blocks)
            return false;
    }
    return true;
}

/* True when they are others than before. */
static bool set_owners(struct gc_graph *g, struct node *n, const struct json *references)
{
    if (has_same_owners(n, references))
        return false;
    size_t count = json_count(references);
    struct edge *owners = count ? mem_zalloc(count * sizeof(struct edge)) : NULL;
    for (size_t i = 0; i < count; i++) {
        const struct json *r = &references->items[i];
        owners[i] = (struct edge){.owner = node_ensure(g, reference_uid(r)),
                                  .dependent = n,
                                  .blocks = json_get_bool(r, STR("blockOwnerDeletion"), false)};
        list_append(&owners[i].owner->dependents, &owners[i].link);
    }
    drop_owners(g, n);
    n->owners = owners;
    n->n_owners = count;
    return true;
}

static void wake_dependents(struct gc_graph *g, struct node *n)
{
    LIST_FOR_EACH (&n->dependents, link)
        g->wake(g->ctx, CONTAINER_OF(link, struct edge, link)->dependent->uid);
}

/* ---- events ------------------------------------------------------------------------------- */

static void end(struct gc_graph *g, struct node *n)
{
    n->presence = GC_GONE;
    wake_dependents(g, n);
    drop_owners(g, n);
    node_release(g, n);
}

/* Some owner is not simply there: whatever happens to the dependent, it is worth another look. */
static bool has_doubtful_owner(const struct node *n)
{
    for (size_t i = 0; i < n->n_owners; i++)
        if (n->owners[i].owner->presence != GC_PRESENT || n->owners[i].owner->is_collecting)
            return true;
    return false;
}

static void wake_collecting_owners(struct gc_graph *g, const struct node *n)
{
    for (size_t i = 0; i < n->n_owners; i++)
        if (n->owners[i].owner->is_collecting)
            g->wake(g->ctx, n->owners[i].owner->uid);
}

static void update(struct gc_graph *g, const struct kube_event *e, const struct json *object)
{
    struct node *n = node_ensure(g, e->uid);
    bool was_seen = n->is_seen, was_deleting = n->is_deleting;
    bool is_deleting = e->is_deleting;
    if (n->presence == GC_GONE)
        return; /* news from before its end */
    node_place(n, e->collection, e->namespace, e->name);
    n->is_seen = true;
    n->presence = GC_PRESENT;
    n->is_deleting = is_deleting;
    n->is_collecting = is_deleting && object_has_finalizer(object, GC_FINALIZER_FOREGROUND);
    n->is_orphaning = is_deleting && object_has_finalizer(object, GC_FINALIZER_ORPHAN);
    bool has_changed = set_owners(g, n, object_meta_at(object, "ownerReferences"));
    has_changed |= !was_seen || was_deleting != is_deleting;
    if (has_changed)
        wake_collecting_owners(g, n);
    if ((n->n_owners && (has_changed || has_doubtful_owner(n))) || n->is_collecting ||
        n->is_orphaning)
        g->wake(g->ctx, n->uid);
    node_release(g, n);
}

void gc_graph_apply(struct gc_graph *g, const struct kube_event *e)
{
    ARENA_AUTO a = NULL;
    lock(g);
    struct node *n = map_get(&g->nodes, e->uid);
    if (e->type == KUBE_DELETED) {
        if (n)
            end(g, n);
    } else if (e->has_owners || e->is_deleting) {
        a = arena_new();
        update(g, e, kube_event_object(e, a));
    } else if (n) {
        update(g, e, NULL);
    }
    unlock(g);
}

/* ---- asking ------------------------------------------------------------------------------- */

static struct gc_object describe(struct arena *a, const struct node *n)
{
    return (struct gc_object){.uid = arena_str(a, n->uid),
                              .collection = arena_str(a, n->collection),
                              .namespace = arena_str(a, n->namespace),
                              .name = arena_str(a, n->name),
                              .is_deleting = n->is_deleting,
                              .is_collecting = n->is_collecting};
}

bool gc_graph_find(struct gc_graph *g, struct arena *a, struct str uid, struct gc_object *ret)
{
    lock(g);
    const struct node *n = map_get(&g->nodes, uid);
    bool is_there = n && n->is_seen && n->presence != GC_GONE;
    if (is_there)
        *ret = describe(a, n);
    unlock(g);
    return is_there;
}

size_t gc_graph_dependents(struct gc_graph *g, struct arena *a, struct str uid,
                           struct gc_object **ret)
{
    size_t n_objects = 0;
    lock(g);
    const struct node *n = map_get(&g->nodes, uid);
    if (n)
        LIST_FOR_EACH (&n->dependents, link)
            n_objects++;
    *ret = ARENA_ARRAY(a, struct gc_object, n_objects + 1);
    size_t i = 0;
    if (n) {
        LIST_FOR_EACH (&n->dependents, link) {
            const struct edge *e = CONTAINER_OF(link, struct edge, link);
            (*ret)[i] = describe(a, e->dependent);
            (*ret)[i++].blocks = e->blocks;
        }
    }
    unlock(g);
    return n_objects;
}

/* Nodes still to be looked at; each is pushed once per walk. */
struct walk {
    struct node **nodes;
    size_t n, capacity;
};

static void walk_push(struct gc_graph *g, struct walk *k, struct node *n)
{
    if (n->walk == g->walk || !n->is_collecting || n->presence == GC_GONE)
        return;
    n->walk = g->walk;
    if (k->n == k->capacity) {
        k->capacity = MAX(k->capacity * 2, (size_t) 16);
        k->nodes = mem_realloc_array(k->nodes, k->capacity, sizeof(struct node *));
    }
    k->nodes[k->n++] = n;
}

bool gc_graph_waits_for(struct gc_graph *g, struct str uid, struct str other)
{
    struct walk k = {0};
    bool does = false;
    lock(g);
    g->walk++;
    struct node *first = map_get(&g->nodes, uid);
    const struct node *sought = map_get(&g->nodes, other);
    if (first && sought)
        walk_push(g, &k, first);
    while (k.n && !does) {
        struct node *n = k.nodes[--k.n];
        LIST_FOR_EACH (&n->dependents, link) {
            const struct edge *e = CONTAINER_OF(link, struct edge, link);
            does |= e->blocks && e->dependent == sought;
            if (e->blocks)
                walk_push(g, &k, e->dependent);
        }
    }
    unlock(g);
    mem_free(k.nodes);
    return does;
}

static bool is_at(const struct node *n, const struct gc_object *o)
{
    return n->collection.p && str_eq(n->collection, o->collection) &&
           str_eq(n->namespace, o->namespace) && str_eq(n->name, o->name);
}

enum gc_presence gc_graph_presence(struct gc_graph *g, const struct gc_object *owner)
{
    enum gc_presence presence = GC_UNKNOWN;
    lock(g);
    const struct node *n = map_get(&g->nodes, owner->uid);
    if (n && (n->presence == GC_GONE || is_at(n, owner)))
        presence = n->presence == GC_PRESENT && n->is_collecting ? GC_COLLECTING : n->presence;
    unlock(g);
    return presence;
}

void gc_graph_saw(struct gc_graph *g, const struct gc_object *owner)
{
    lock(g);
    struct node *n = map_get(&g->nodes, owner->uid);
    /* Events may have told more by now. */
    if (n && !n->is_seen && n->presence == GC_UNKNOWN) {
        node_place(n, owner->collection, owner->namespace, owner->name);
        n->presence = GC_PRESENT;
        n->is_deleting = owner->is_deleting;
        n->is_collecting = owner->is_collecting;
    }
    unlock(g);
}

void gc_graph_gone(struct gc_graph *g, struct str uid)
{
    lock(g);
    struct node *n = map_get(&g->nodes, uid);
    if (n)
        end(g, n);
    unlock(g);
}

/* ---- life --------------------------------------------------------------------------------- */

struct gc_graph *gc_graph_new(void (*wake)(void *ctx, struct str uid), void *ctx)
{
    struct gc_graph *g = NEW(struct gc_graph);
    (void) pthread_mutex_init(&g->lock, NULL);
    g->wake = wake;
    g->ctx = ctx;
    return g;
}

void gc_graph_free(struct gc_graph *g)
{
    if (!g)
        return;
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&g->nodes, &position, &entry))
        node_free(entry.value);
    map_done(&g->nodes);
    (void) pthread_mutex_destroy(&g->lock);
    mem_free(g);
}
