/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth/rbac.h"

#include <stdlib.h>

#include "api/auth/rbac_internal.h"
#include "base/alloc.h"

/* Groups of one user that count; certificates and tokens have far fewer. */
#define USER_MAX_SUBJECTS 1025
/* Resource and subresource of usual length are put together without the heap. */
#define RESOURCE_ROOM 256

struct rbac {
    struct store *store;
    struct store_follower follower;
    /* Decisions read. What changes the graph or compiles a subject writes. */
    pthread_rwlock_t lock;
    struct rbac_graph graph;
    struct rbac_verbs verbs;
};

/* ---- following the store ------------------------------------------------------------------- */

static const struct {
    struct str collection;
    void (*put)(struct rbac_graph *g, struct str namespace, struct str name,
                const struct json *object);
} collections[] = {
    {STR("clusterroles.rbac.authorization.k8s.io"), rbac_graph_put_role},
    {STR("roles.rbac.authorization.k8s.io"), rbac_graph_put_role},
    {STR("clusterrolebindings.rbac.authorization.k8s.io"), rbac_graph_put_binding},
    {STR("rolebindings.rbac.authorization.k8s.io"), rbac_graph_put_binding},
};

static void put(struct rbac *r, size_t collection, const struct object *o, bool is_gone)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = is_gone ? NULL : json_parse_quick(a, object_text(o));
    collections[collection].put(&r->graph, object_span(o, o->head.namespace),
                                object_span(o, o->head.name), object);
}

/* N_ELEMENTS(collections): none of ours. */
static size_t collection_of(const struct store_event *e)
{
    size_t i = 0;
    while (i < N_ELEMENTS(collections) && !str_eq(e->collection, collections[i].collection))
        i++;
    return i;
}

/* On the writer's thread, before the writes are answered. */
static void on_events(struct store_follower *f, struct store_event *const *events, size_t n,
                      int64_t revision)
{
    struct rbac *r = CONTAINER_OF(f, struct rbac, follower);
    (void) revision;
    for (size_t i = 0; i < n; i++) {
        size_t collection = collection_of(events[i]);
        if (collection == N_ELEMENTS(collections))
            continue;
        (void) pthread_rwlock_wrlock(&r->lock);
        put(r, collection, events[i]->object, events[i]->type == STORE_DELETED);
        (void) pthread_rwlock_unlock(&r->lock);
    }
}

/* What happens while this reads waits in on_events() and is then put again, in order. */
static void read_all(struct rbac *r)
{
    (void) pthread_rwlock_wrlock(&r->lock);
    for (size_t i = 0; i < N_ELEMENTS(collections); i++) {
        CLEANUP(store_page_done) struct store_page page = {0};
        struct store_range range = {.collection = collections[i].collection};
        if (store_list(r->store, &range, &page) < 0)
            abort(); /* the newest state can always be read */
        for (size_t k = 0; k < page.n; k++)
            put(r, i, page.objects[k], /* is_gone= */ false);
    }
    (void) pthread_rwlock_unlock(&r->lock);
}

/* Decisions never stop on a busy server: a writer that waited for a gap would wait for ever. */
static void init_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    (void) pthread_rwlockattr_init(&attributes);
    (void) pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    (void) pthread_rwlock_init(lock, &attributes);
    (void) pthread_rwlockattr_destroy(&attributes);
}

struct rbac *rbac_new(struct store *s)
{
    struct rbac *r = NEW(struct rbac);
    int64_t revision = 0;
    r->store = s;
    init_lock(&r->lock);
    rbac_verbs_init(&r->verbs);
    r->follower.on_events = on_events;
    store_follow(s, &r->follower, &revision);
    read_all(r);
    return r;
}

void rbac_free(struct rbac *r)
{
    if (!r)
        return;
    store_unfollow(r->store, &r->follower);
    rbac_graph_done(&r->graph);
    rbac_verbs_done(&r->verbs);
    (void) pthread_rwlock_destroy(&r->lock);
    mem_free(r);
}

/* ---- whose rules --------------------------------------------------------------------------- */

struct subjects {
    struct rbac_subject *list[USER_MAX_SUBJECTS];
    size_t n;
};

/* Those of the user that any binding names. */
static void find_subjects(struct rbac *r, const struct user *u, struct subjects *ret)
{
    ret->n = 0;
    struct rbac_subject *s = map_get(&r->graph.users, u->name);
    if (s)
        ret->list[ret->n++] = s;
    for (size_t i = 0; i < u->n_groups && ret->n < USER_MAX_SUBJECTS; i++) {
        s = map_get(&r->graph.groups, u->groups[i]);
        if (s)
            ret->list[ret->n++] = s;
    }
}

static void compile(struct rbac *r, struct rbac_subject *s)
{
    s->compiled = rbac_compiled_new();
    LIST_FOR_EACH (&s->members, item) {
        const struct rbac_binding *b = CONTAINER_OF(item, struct rbac_member, link)->binding;
        for (size_t i = 0; i < b->role->n_rules; i++)
            rbac_compiled_add(s->compiled, &r->verbs, b->namespace, &b->role->rules[i]);
    }
}

static bool are_compiled(const struct subjects *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->list[i]->compiled)
            return false;
    return true;
}

/* Finds the user's subjects with everything compiled, the lock held for reading or, when something
 * had to be compiled, for writing. */
static void lock_subjects(struct rbac *r, const struct user *u, struct subjects *ret)
{
    (void) pthread_rwlock_rdlock(&r->lock);
    find_subjects(r, u, ret);
    if (are_compiled(ret))
        return;
    (void) pthread_rwlock_unlock(&r->lock);
    (void) pthread_rwlock_wrlock(&r->lock);
    find_subjects(r, u, ret);
    for (size_t i = 0; i < ret->n; i++)
        if (!ret->list[i]->compiled)
            compile(r, ret->list[i]);
}

/* ---- decisions ----------------------------------------------------------------------------- */

/* Who was granted what was asked, and where. */
struct grant {
    const struct rbac_subject *subject;
    struct str namespace;
};

static bool decide(const struct subjects *s, const struct rbac_probes *p, struct str namespace,
                   struct grant *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct rbac_table *t = rbac_compiled_cluster(s->list[i]->compiled);
        if (t && rbac_table_allows(t, p)) {
            *ret = (struct grant){s->list[i], STR("")};
            return true;
        }
    }
    uint64_t hash = namespace.n ? map_hash(namespace) : 0;
    for (size_t i = 0; i < s->n && namespace.n; i++) {
        const struct rbac_table *t = rbac_compiled_table(s->list[i]->compiled, namespace, hash);
        if (t && rbac_table_allows(t, p)) {
            *ret = (struct grant){s->list[i], namespace};
            return true;
        }
    }
    return false;
}

static bool role_matches(const struct rbac_role *role, const struct rbac_query *q)
{
    for (size_t i = 0; i < role->n_rules; i++)
        if (rbac_rule_matches(&role->rules[i], q))
            return true;
    return false;
}

static struct str describe(struct arena *a, const struct rbac_member *m)
{
    const struct rbac_binding *b = m->binding;
    struct str name = b->namespace.n
                          ? arena_printf(a, "%.*s/%.*s", STR_ARG(b->name), STR_ARG(b->namespace))
                          : b->name;
    struct str subject = m->name;
    if (str_is(m->kind, "ServiceAccount"))
        subject = arena_printf(a, "%.*s/%.*s", STR_ARG(m->name),
                               STR_ARG(m->namespace.n ? m->namespace : b->namespace));
    return arena_printf(a, "RBAC: allowed by %s %.*s of %.*s %.*s to %.*s %.*s",
                        b->namespace.n ? "RoleBinding" : "ClusterRoleBinding",
                        STR_ARG(status_quote(a, name)), STR_ARG(b->role_kind),
                        STR_ARG(status_quote(a, b->role_name)), STR_ARG(m->kind),
                        STR_ARG(status_quote(a, subject)));
}

/* The slow second pass: the first binding that grants it. */
static struct str explain(struct arena *a, const struct grant *g, const struct rbac_query *q)
{
    LIST_FOR_EACH (&g->subject->members, item) {
        const struct rbac_member *m = CONTAINER_OF(item, struct rbac_member, link);
        if (str_eq(m->binding->namespace, g->namespace) && role_matches(m->binding->role, q))
            return describe(a, m);
    }
    return STR("");
}

static bool ask(struct rbac *r, const struct user *u, struct str namespace,
                const struct rbac_query *q, struct arena *a, struct str *ret_reason)
{
    struct subjects subjects;
    struct rbac_probes probes;
    struct grant grant = {0};
    lock_subjects(r, u, &subjects);
    rbac_probes_init(&probes, &r->verbs, q);
    bool is_allowed = decide(&subjects, &probes, namespace, &grant);
    if (is_allowed && ret_reason)
        *ret_reason = explain(a, &grant, q);
    (void) pthread_rwlock_unlock(&r->lock);
    return is_allowed;
}

/* "<head>/<tail>" in room if it fits, else on the heap. */
static struct str join(char room[static RESOURCE_ROOM], struct str head, struct str tail,
                       char **ret_heap)
{
    size_t n = head.n + 1 + tail.n;
    char *p = n <= RESOURCE_ROOM ? room : mem_alloc(n);
    *ret_heap = p == room ? NULL : p;
    memcpy(p, head.p, head.n);
    p[head.n] = '/';
    memcpy(p + head.n + 1, tail.p, tail.n);
    return str_range(p, n);
}

static bool ask_subresource(struct rbac *r, const struct access_question *q,
                            struct rbac_query *query, struct arena *a, struct str *ret_reason)
{
    char room[2][RESOURCE_ROOM];
    char *heap[2];
    query->resource = join(room[0], q->resource, q->subresource, &heap[0]);
    query->any_resource = join(room[1], STR("*"), q->subresource, &heap[1]);
    bool is_allowed = ask(r, q->user, q->namespace, query, a, ret_reason);
    mem_free(heap[0]);
    mem_free(heap[1]);
    return is_allowed;
}

bool rbac_allows(struct rbac *r, const struct access_question *q, struct arena *a,
                 struct str *ret_reason)
{
    if (ret_reason)
        *ret_reason = STR("");
    if (user_has_group(q->user, STR(GROUP_MASTERS)))
        return true;
    struct rbac_query query = {
        .verb = q->verb,
        .is_url = !q->is_resource,
        .url = q->path,
        .group = q->group,
        .resource = q->resource,
        .has_name = true,
        .name = q->name,
    };
    if (q->is_resource && q->subresource.n)
        return ask_subresource(r, q, &query, a, ret_reason);
    return ask(r, q->user, q->is_resource ? q->namespace : STR(""), &query, a, ret_reason);
}

bool rbac_covers(struct rbac *r, const struct user *u, struct str namespace,
                 const struct rbac_right *right)
{
    char room[RESOURCE_ROOM], *heap = NULL;
    struct rbac_query q = rbac_right_query(right);
    struct str subresource = rbac_right_subresource(right);
    if (subresource.n)
        q.any_resource = join(room, STR("*"), subresource, &heap);
    bool covers = ask(r, u, namespace, &q, NULL, NULL);
    mem_free(heap);
    return covers;
}

/* ---- visiting ------------------------------------------------------------------------------ */

static int compare_bindings(const void *a, const void *b)
{
    return str_cmp((*(struct rbac_binding *const *) a)->key,
                   (*(struct rbac_binding *const *) b)->key);
}

/* The bindings that apply, by key, each once. */
static size_t find_bindings(struct arena *a, const struct subjects *s, struct str namespace,
                            struct rbac_binding ***ret)
{
    struct rbac_binding **list = NULL;
    size_t n = 0, n_unique = 0;
    for (size_t i = 0; i < s->n; i++)
        LIST_FOR_EACH (&s->list[i]->members, item) {
            struct rbac_binding *b = CONTAINER_OF(item, struct rbac_member, link)->binding;
            if (b->namespace.n && !str_eq(b->namespace, namespace))
                continue;
            list = arena_grow(a, list, n, sizeof(struct rbac_binding *));
            list[n++] = b;
        }
    if (n)
        qsort(list, n, sizeof(struct rbac_binding *), compare_bindings);
    for (size_t i = 0; i < n; i++)
        if (!n_unique || list[n_unique - 1] != list[i])
            list[n_unique++] = list[i];
    *ret = list;
    return n_unique;
}

void rbac_visit_rules(struct rbac *r, const struct user *u, struct str namespace,
                      void (*on_rule)(void *ctx, const struct rbac_rule *rule), void *ctx)
{
    ARENA_AUTO a = arena_new();
    struct subjects subjects;
    struct rbac_binding **bindings = NULL;
    (void) pthread_rwlock_rdlock(&r->lock);
    find_subjects(r, u, &subjects);
    size_t n = find_bindings(a, &subjects, namespace, &bindings);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < bindings[i]->role->n_rules; k++)
            on_rule(ctx, &bindings[i]->role->rules[k]);
    (void) pthread_rwlock_unlock(&r->lock);
}
