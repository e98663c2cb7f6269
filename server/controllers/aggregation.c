/* SPDX-License-Identifier: Apache-2.0 */
/* ClusterRoles with an aggregationRule have the rules of all the ClusterRoles it selects. */
#include "controllers/aggregation.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "controllers/objects.h"

#define RBAC_GROUP STR("rbac.authorization.k8s.io")
#define COLLECTION "clusterroles.rbac.authorization.k8s.io"
#define MANAGER_QUERY STR("fieldManager=clusterrole-aggregation-controller&force=true")

/* The roles that aggregate; every change of any role may concern them. */
struct aggregation {
    pthread_mutex_t lock;
    struct map names; /* name -> itself, heap */
};

/* ---- who aggregates ----------------------------------------------------------------------- */

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    struct aggregation *s = NEW(struct aggregation);
    (void) pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void stop(void *state)
{
    struct aggregation *s = state;
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&s->names, &position, &entry))
        mem_free(entry.value);
    map_done(&s->names);
    (void) pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static bool does_aggregate(const struct kube_event *e)
{
    if (e->type == KUBE_DELETED || str_find_str(e->text, STR("\"aggregationRule\"")) < 0)
        return false;
    ARENA_AUTO a = arena_new();
    return json_is(json_get(json_parse_quick(a, e->text), STR("aggregationRule")), JSON_OBJECT);
}

static void remember(struct aggregation *s, struct str name, bool does)
{
    if (!does) {
        mem_free(map_remove(&s->names, name));
    } else if (!map_get(&s->names, name)) {
        char *copy = mem_dup(name.p, name.n);
        (void) map_put(&s->names, str_range(copy, name.n), copy);
    }
}

/* Keys are names of roles that aggregate. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct aggregation *s = state;
    if (!str_is(e->collection, COLLECTION))
        return;
    (void) pthread_mutex_lock(&s->lock);
    remember(s, e->name, does_aggregate(e));
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&s->names, &position, &entry))
        controller_enqueue(q, entry.key, 0);
    (void) pthread_mutex_unlock(&s->lock);
}

/* ---- what is selected --------------------------------------------------------------------- */

static bool has_value(const struct json *values, struct str value)
{
    JSON_FOR_EACH_ITEM (values, item)
        if (str_eq(json_str(item), value))
            return true;
    return false;
}

static bool meets(const struct json *requirement, const struct json *labels)
{
    struct str operator= json_get_str(requirement, STR("operator"));
    struct str label = json_get_str(labels, json_get_str(requirement, STR("key")));
    const struct json *values = json_get(requirement, STR("values"));
    if (str_is(operator, "In"))
        return label.p && has_value(values, label);
    if (str_is(operator, "NotIn"))
        return !label.p || !has_value(values, label);
    return str_is(operator, "Exists") ? label.p != NULL
                                      : str_is(operator, "DoesNotExist") && !label.p;
}

static bool selects(const struct json *selector, const struct json *labels)
{
    JSON_FOR_EACH_MEMBER (json_get(selector, STR("matchLabels")), m)
        if (!str_eq(json_get_str(labels, json_str(&m->key)), json_str(&m->value)) ||
            !json_get(labels, json_str(&m->key)))
            return false;
    JSON_FOR_EACH_ITEM (json_get(selector, STR("matchExpressions")), requirement)
        if (!meets(requirement, labels))
            return false;
    return true;
}

static void add_rules(struct arena *a, struct json *rules, const struct json *role)
{
    JSON_FOR_EACH_ITEM (json_get(role, STR("rules")), rule) {
        bool is_known = false;
        JSON_FOR_EACH_ITEM (rules, known)
            is_known |= json_equal(known, rule);
        if (!is_known)
            (void) json_push(a, rules, *rule);
    }
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(object_meta_text(a, "name"), object_meta_text(b, "name"));
}

/* roles are sorted by name. */
static struct json union_of(struct arena *a, const struct json *role, const struct json *roles)
{
    struct json rules = json_array();
    struct str self = object_meta_text(role, "name");
    JSON_FOR_EACH_ITEM (json_at(role, "aggregationRule", "clusterRoleSelectors", NULL), selector)
        JSON_FOR_EACH_ITEM (roles, other)
            if (!str_eq(object_meta_text(other, "name"), self) &&
                selects(selector, object_meta_at(other, "labels")))
                add_rules(a, &rules, other);
    return rules;
}

/* ---- reconcile ---------------------------------------------------------------------------- */

/* To this role: an apply would otherwise make a new one when it has just been deleted. */
static int apply_rules(const struct controller_context *ctx, struct arena *a,
                       const struct json *role, struct json rules)
{
    struct str name = object_meta_text(role, "name");
    struct json body = json_object(), meta = json_object();
    (void) json_append_member(a, &body, STR("apiVersion"),
                              json_string(STR("rbac.authorization.k8s.io/v1")));
    (void) json_append_member(a, &body, STR("kind"), json_string(STR("ClusterRole")));
    (void) json_append_member(a, &meta, STR("name"), json_string(name));
    (void) json_append_member(a, &meta, STR("uid"), json_string(object_meta_text(role, "uid")));
    (void) json_append_member(a, &body, STR("metadata"), meta);
    (void) json_append_member(a, &body, STR("rules"), rules);
    struct kube_request r = {.verb = VERB_PATCH,
                             .group = RBAC_GROUP,
                             .version = STR("v1"),
                             .resource = STR("clusterroles"),
                             .name = name,
                             .query = MANAGER_QUERY,
                             .content_type = STR("application/apply-patch+yaml"),
                             .body = &body};
    struct status st;
    status_init(&st, a);
    int result = kube_request(ctx->client, a, &r, NULL, &st);
    return result == -ENOENT ? 0 : result;
}

static bool same_rules(const struct json *had, const struct json *rules)
{
    return json_count(had) == json_count(rules) && (!json_count(rules) || json_equal(had, rules));
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place at = {registry_find(kinds, RBAC_GROUP, STR("v1"), STR("clusterroles")),
                              STR_NONE, key};
    struct json *role = NULL, *roles = NULL;
    int r = objects_get(ctx, a, &at, &role);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (object_is_deleting(role) || !json_is(json_get(role, STR("aggregationRule")), JSON_OBJECT))
        return 0;
    struct object_place all = {at.kind, STR_NONE, STR_NONE};
    r = objects_list(ctx, a, &all, &roles);
    if (r < 0)
        return r;
    if (json_count(roles))
        qsort(roles->items, roles->n, sizeof(struct json), by_name);
    struct json rules = union_of(a, role, roles);
    return same_rules(json_get(role, STR("rules")), &rules) ? 0 : apply_rules(ctx, a, role, rules);
}

const struct controller aggregation_controller = {.name = "clusterrole-aggregation",
                                                  .start = start,
                                                  .on_event = on_event,
                                                  .reconcile = reconcile,
                                                  .stop = stop};
