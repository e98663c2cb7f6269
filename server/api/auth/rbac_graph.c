/* SPDX-License-Identifier: Apache-2.0 */
/* Who is bound to which role: the objects of the store, linked. A change forgets what was compiled
 * for the subjects it reaches; they are compiled again when somebody asks. */
#include "api/auth/rbac_internal.h"
#include "base/alloc.h"

static void forget(struct rbac_subject *s)
{
    rbac_compiled_free(TAKE(s->compiled));
}

/* ---- roles --------------------------------------------------------------------------------- */

static char *key_of(struct str namespace, struct str name)
{
    struct buf b = {0};
    buf_printf(&b, "%.*s/%.*s", STR_ARG(namespace), STR_ARG(name));
    return buf_take(&b);
}

static struct rbac_role *ensure_role(struct rbac_graph *g, struct str namespace, struct str name)
{
    char *key = key_of(namespace, name);
    struct rbac_role *role = map_get(&g->roles, str_of(key));
    if (role) {
        mem_free(key);
        return role;
    }
    role = NEW(struct rbac_role);
    role->key = key;
    list_init(&role->bindings);
    (void) map_put(&g->roles, str_of(key), role);
    return role;
}

static void release_role(struct rbac_graph *g, struct rbac_role *role)
{
    if (role->arena || !list_is_empty(&role->bindings))
        return;
    (void) map_remove(&g->roles, str_of(role->key));
    mem_free(role->key);
    mem_free(role);
}

static void forget_bound(struct rbac_role *role)
{
    LIST_FOR_EACH (&role->bindings, item) {
        struct rbac_binding *b = CONTAINER_OF(item, struct rbac_binding, link);
        for (size_t i = 0; i < b->n_members; i++)
            forget(b->members[i].subject);
    }
}

void rbac_graph_put_role(struct rbac_graph *g, struct str namespace, struct str name,
                         const struct json *role)
{
    struct rbac_role *r = ensure_role(g, namespace, name);
    forget_bound(r);
    arena_free(TAKE(r->arena));
    r->rules = NULL;
    r->n_rules = 0;
    if (role) {
        r->arena = arena_new();
        r->n_rules = rbac_parse_rules(r->arena, json_get(role, STR("rules")), &r->rules);
    }
    release_role(g, r);
}

/* ---- subjects ------------------------------------------------------------------------------ */

static struct rbac_subject *ensure_subject(struct map *m, struct str name)
{
    struct rbac_subject *s = map_get(m, name);
    if (s)
        return s;
    s = NEW(struct rbac_subject);
    s->name = mem_dup(name.n ? name.p : "", MAX(name.n, (size_t) 1));
    s->map = m;
    list_init(&s->members);
    (void) map_put(m, str_range(s->name, name.n), s);
    s->n_name = name.n;
    return s;
}

static void release_subject(struct rbac_subject *s)
{
    forget(s);
    if (!list_is_empty(&s->members))
        return;
    (void) map_remove(s->map, str_range(s->name, s->n_name));
    mem_free(s->name);
    mem_free(s);
}

/* The subject that a member of a binding stands for; NULL: nobody. */
static struct rbac_subject *member_subject(struct rbac_graph *g, const struct rbac_binding *b,
                                           const struct rbac_member *m)
{
    if (str_is(m->kind, "User"))
        return ensure_subject(&g->users, m->name);
    if (str_is(m->kind, "Group"))
        return ensure_subject(&g->groups, m->name);
    struct str namespace = m->namespace.n ? m->namespace : b->namespace;
    if (!str_is(m->kind, "ServiceAccount") || !namespace.n)
        return NULL;
    ARENA_AUTO a = arena_new();
    return ensure_subject(&g->users, arena_printf(a, "system:serviceaccount:%.*s:%.*s",
                                                  STR_ARG(namespace), STR_ARG(m->name)));
}

/* ---- bindings ------------------------------------------------------------------------------ */

static void remove_binding(struct rbac_graph *g, struct rbac_binding *b)
{
    (void) map_remove(&g->bindings, b->key);
    for (size_t i = 0; i < b->n_members; i++) {
        list_remove(&b->members[i].link);
        release_subject(b->members[i].subject);
    }
    list_remove(&b->link);
    release_role(g, b->role);
    arena_free(b->arena);
}

static struct str copy_member(struct arena *a, const struct json *object, const char *key)
{
    return arena_str(a, json_get_str(object, str_of(key)));
}

static void add_members(struct rbac_graph *g, struct rbac_binding *b, const struct json *subjects)
{
    b->members = ARENA_ARRAY(b->arena, struct rbac_member, json_count(subjects) + 1);
    JSON_FOR_EACH_ITEM (subjects, subject) {
        struct rbac_member *m = &b->members[b->n_members];
        m->kind = copy_member(b->arena, subject, "kind");
        m->name = copy_member(b->arena, subject, "name");
        m->namespace = copy_member(b->arena, subject, "namespace");
        m->binding = b;
        m->subject = member_subject(g, b, m);
        if (!m->subject)
            continue;
        forget(m->subject);
        list_append(&m->subject->members, &m->link);
        b->n_members++;
    }
}

static struct str role_namespace(const struct rbac_binding *b)
{
    return str_is(b->role_kind, "Role") ? b->namespace : STR("");
}

static void add_binding(struct rbac_graph *g, struct str namespace, struct str name,
                        const struct json *binding)
{
    struct arena *a = arena_new();
    struct rbac_binding *b = ARENA_NEW(a, struct rbac_binding);
    const struct json *role = json_get(binding, STR("roleRef"));
    b->arena = a;
    b->key = arena_printf(a, "%.*s/%.*s", STR_ARG(namespace), STR_ARG(name));
    b->namespace = arena_str(a, namespace);
    b->name = arena_str(a, name);
    b->role_kind = copy_member(a, role, "kind");
    b->role_name = copy_member(a, role, "name");
    b->role = ensure_role(g, role_namespace(b), b->role_name);
    list_append(&b->role->bindings, &b->link);
    add_members(g, b, json_get(binding, STR("subjects")));
    (void) map_put(&g->bindings, b->key, b);
}

void rbac_graph_put_binding(struct rbac_graph *g, struct str namespace, struct str name,
                            const struct json *binding)
{
    char *key = key_of(namespace, name);
    struct rbac_binding *old = map_get(&g->bindings, str_of(key));
    mem_free(key);
    if (old)
        remove_binding(g, old);
    if (binding)
        add_binding(g, namespace, name, binding);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void free_subjects(struct map *m)
{
    size_t position = 0;
    struct map_entry e;
    while (map_next(m, &position, &e)) {
        struct rbac_subject *s = e.value;
        forget(s);
        mem_free(s->name);
        mem_free(s);
    }
    map_done(m);
}

void rbac_graph_done(struct rbac_graph *g)
{
    size_t position = 0;
    struct map_entry e;
    free_subjects(&g->users);
    free_subjects(&g->groups);
    while (map_next(&g->bindings, &position, &e))
        arena_free(((struct rbac_binding *) e.value)->arena);
    map_done(&g->bindings);
    position = 0;
    while (map_next(&g->roles, &position, &e)) {
        struct rbac_role *role = e.value;
        arena_free(role->arena);
        mem_free(role->key);
        mem_free(role);
    }
    map_done(&g->roles);
}
