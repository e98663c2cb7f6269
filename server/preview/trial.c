/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/trial.h"

#include <errno.h>
#include <stdlib.h>

#include "api/auth/rbac.h"
#include "api/overlay.h"

#define LAST_APPLIED STR("kubectl.kubernetes.io/last-applied-configuration")
#define DEFAULT_MANAGER STR("kubectl")

struct candidate {
    const struct kind *kind;
    struct str namespace, name;
    struct json *given;
    bool is_removal;
    int rank;
};

/* ---- what is asked ------------------------------------------------------------------------- */

/* Who is referred to comes before who refers. Removals come last, users before the used. */
static int rank_of(const struct kind *kind, bool is_removal)
{
    static const char *const order[] = {
        "namespaces",  "configmaps",     "secrets", "storageclasses",         "networkconfigs",
        "images",      "devicenetworks", "devices", "persistentvolumeclaims", "volumes",
        "applications"};
    int rank = (int) N_ELEMENTS(order);
    for (size_t i = 0; i < N_ELEMENTS(order); i++)
        if (str_is(kind->plural, order[i]))
            rank = (int) i;
    return is_removal ? 100 - rank : rank;
}

static int check_read(const struct trial *t, const struct candidate *o, struct status *st)
{
    const struct user *user = &t->request->user;
    const struct access_question q = {.user = user,
                                      .verb = STR("get"),
                                      .is_resource = true,
                                      .group = o->kind->group,
                                      .resource = o->kind->plural,
                                      .subresource = STR(""),
                                      .namespace = o->namespace,
                                      .name = o->name,
                                      .path = STR("")};
    if (rbac_allows(api_rbac(t->api), &q, t->request->arena, NULL))
        return 0;
    return status_forbidden(st, o->kind, o->name,
                            "User %.*s cannot get it, so nothing is said of what it would change",
                            STR_ARG(status_quote(t->request->arena, user->name)));
}

static int identify(const struct trial *t, struct json *object, struct candidate *ret,
                    struct status *st)
{
    const struct str api_version = json_get_str(object, STR("apiVersion"));
    const struct str kind = json_get_str(object, STR("kind"));
    const struct json *meta = json_get(object, STR("metadata"));
    const struct json *when = json_get(meta, STR("deletionTimestamp"));
    *ret = (struct candidate){.kind = registry_find_kind(t->registry, api_version, kind),
                              .namespace = json_get_str(meta, STR("namespace")),
                              .name = json_get_str(meta, STR("name")),
                              .given = object,
                              .is_removal = t->is_removal || json_is(when, JSON_STRING)};
    if (!ret->kind || !kind_has_items(ret->kind))
        return status_bad_request(st, "no matches for kind \"%.*s\" in version \"%.*s\"",
                                  STR_ARG(kind), STR_ARG(api_version));
    if (!ret->name.n)
        return status_bad_request(st, "a %.*s without metadata.name", STR_ARG(kind));
    if (!ret->kind->is_namespaced)
        ret->namespace = STR("");
    else if (!ret->namespace.n)
        ret->namespace = t->namespace;
    ret->rank = rank_of(ret->kind, ret->is_removal);
    return check_read(t, ret, st);
}

static int by_rank(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->rank - y->rank;
}

/* ---- how it is applied --------------------------------------------------------------------- */

/* What the server alone says would only get in the way of who sends what he has read. */
static void clean(struct json *object)
{
    static const char *const own[] = {"managedFields",     "resourceVersion", "uid",
                                      "creationTimestamp", "generation",      "selfLink"};
    struct json *meta = json_get(object, STR("metadata"));
    for (size_t i = 0; i < N_ELEMENTS(own); i++)
        (void) json_remove(meta, str_of(own[i]));
    (void) json_remove(object, STR("status"));
}

/* What was applied the last time and is not now goes, as kubectl apply has it. */
static void add_removals(struct arena *a, struct json *patch, const struct json *last)
{
    JSON_FOR_EACH_MEMBER (last, m) {
        struct json *now = json_get(patch, json_str(&m->key));
        if (!now)
            (void) json_set(a, patch, json_str(&m->key), json_null());
        else if (now->type == JSON_OBJECT && m->value.type == JSON_OBJECT)
            add_removals(a, now, &m->value);
    }
}

/* It goes into a query as it is. */
static bool is_plain_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return true;
}

static struct kube_request request_of(const struct candidate *o, enum verb verb)
{
    return (struct kube_request){.verb = verb,
                                 .group = o->kind->group,
                                 .version = o->kind->version,
                                 .resource = o->kind->plural,
                                 .namespace = o->namespace,
                                 .name = o->name,
                                 .query = STR("dryRun=All")};
}

static struct str manager_of(const struct trial *t)
{
    const struct str asked = request_parameter(&t->request->query, "fieldManager");
    return asked.n ? asked : DEFAULT_MANAGER;
}

static int request(const struct trial *t, const struct overlay *overlay,
                   const struct kube_request *r, struct json **ret, struct status *st)
{
    const struct kube_trial trial = {
        .user = &t->request->user, .manager = manager_of(t), .overlay = overlay};
    return kube_try(t->api, t->request->arena, &trial, r, ret, st);
}

static int read_current(const struct trial *t, const struct candidate *o, struct json **ret,
                        struct status *st)
{
    struct kube_request r = request_of(o, VERB_GET);
    struct status absent;
    status_init(&absent, t->request->arena);
    r.query = STR_NONE;
    const int error = kube_request(t->client, t->request->arena, &r, ret, &absent);
    if (error < 0 && error != -ENOENT)
        *st = absent;
    return error;
}

/* What kubectl applied to it the last time; NULL: nothing, or not from its side. */
static struct json *last_applied(struct arena *a, const struct json *current)
{
    const struct json *annotations = json_at(current, "metadata", "annotations", NULL);
    const struct str text = json_get_str(annotations, LAST_APPLIED);
    return text.n ? json_parse_quick(a, text) : NULL;
}

/* Who applied before tells how it goes on: an object of client-side apply is patched as kubectl
 * apply does it, all others by server-side apply. */
static int apply(const struct trial *t, const struct candidate *o, const struct overlay *overlay,
                 struct json **ret, struct status *st)
{
    struct arena *a = t->request->arena;
    struct json *current = NULL;
    struct kube_request r = request_of(o, VERB_PATCH);
    const int error = read_current(t, o, &current, st);
    if (error < 0 && error != -ENOENT)
        return error;
    struct json *last = last_applied(a, current);
    clean(o->given);
    r.body = o->given;
    if (last) {
        clean(last);
        add_removals(a, o->given, last);
        r.content_type = STR("application/merge-patch+json");
    } else {
        r.content_type = STR("application/apply-patch+yaml");
        r.query =
            arena_printf(a, "dryRun=All&force=true&fieldManager=%.*s", STR_ARG(manager_of(t)));
    }
    return request(t, overlay, &r, ret, st);
}

static int try_one(const struct trial *t, const struct candidate *o, const struct overlay *overlay,
                   struct json **ret, struct status *st)
{
    const struct kube_request r = request_of(o, VERB_DELETE);
    if (!o->is_removal)
        return apply(t, o, overlay, ret, st);
    *ret = NULL;
    return request(t, overlay, &r, NULL, st);
}

/* ---- all of them --------------------------------------------------------------------------- */

static int gather(const struct trial *t, const struct manifest *m, struct candidate *candidates,
                  struct status *st)
{
    for (size_t i = 0; i < m->n; i++) {
        const int r = identify(t, m->objects[i], &candidates[i], st);
        if (r < 0)
            return r;
        for (size_t j = 0; j < i; j++)
            if (candidates[j].kind == candidates[i].kind &&
                str_eq(candidates[j].namespace, candidates[i].namespace) &&
                str_eq(candidates[j].name, candidates[i].name))
                return status_bad_request(st, "%.*s %.*s is there twice",
                                          STR_ARG(candidates[i].kind->kind),
                                          STR_ARG(candidates[i].name));
    }
    qsort(candidates, m->n, sizeof(*candidates), by_rank);
    return 0;
}

int trial_run(const struct trial *t, const struct manifest *m, struct fleet_change **ret_changes,
              struct status *st)
{
    struct arena *a = t->request->arena;
    struct candidate *candidates = ARENA_ARRAY(a, struct candidate, m->n);
    struct fleet_change *changes = ARENA_ARRAY(a, struct fleet_change, m->n);
    struct overlay_item *items = ARENA_ARRAY(a, struct overlay_item, m->n);
    if (!is_plain_name(request_parameter(&t->request->query, "fieldManager")))
        return status_bad_request(st, "fieldManager: letters, digits, '-', '_' and '.' alone");
    int r = gather(t, m, candidates, st);
    for (size_t i = 0; i < m->n && r == 0; i++) {
        const struct candidate *o = &candidates[i];
        const struct overlay overlay = {items, i};
        struct json *object = NULL;
        r = try_one(t, o, &overlay, &object, st);
        changes[i] = (struct fleet_change){o->kind->collection, o->namespace, o->name, object};
        items[i].key = arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(o->kind->collection),
                                    STR_ARG(o->namespace), STR_ARG(o->name));
        items[i].object = object;
    }
    *ret_changes = changes;
    return r;
}
