/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: accepts their names, establishes them, has them served, and when one is deleted removes its objects
 * before letting it go. */
#include "controllers/crd.h"

#include <errno.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/log.h"

#define CRD_GROUP STR("apiextensions.k8s.io")
#define CRD_PLURAL STR("customresourcedefinitions")
#define CRD_COLLECTION "customresourcedefinitions.apiextensions.k8s.io"
#define CLEANUP_FINALIZER "customresourcecleanup.apiextensions.k8s.io"
#define CLEANUP_AGAIN_MS 200

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    return q;
}

/* A name that became free may be what another one of the group is waiting for. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    if (!str_is(e->collection, CRD_COLLECTION))
        return;
    controller_enqueue(q, e->name, 0);
    if (e->type == KUBE_DELETED)
        controller_enqueue(q, STR("*"), 0);
}

static struct kube_request crd_request(enum verb verb, struct str name)
{
    return (struct kube_request){
        .verb = verb, .group = CRD_GROUP, .version = STR("v1"), .resource = CRD_PLURAL, .name = name};
}

static int list_crds(const struct controller_context *ctx, struct arena *a, struct json **ret_list)
{
    struct status st;
    status_init(&st, a);
    struct kube_request r = crd_request(VERB_LIST, STR_NONE);
    return kube_request(ctx->client, a, &r, ret_list, &st);
}

/* ---- names -------------------------------------------------------------------------------- */

struct taken {
    struct arena *arena;
    const struct json *list;
    struct str group, self;
};

static bool names_use(const struct json *names, const char *field, struct str name)
{
    bool is_resource = !str_is(str_of(field), "kind");
    if (!is_resource)
        return str_eq(json_get_str(names, STR("kind")), name) || str_eq(json_get_str(names, STR("listKind")), name);
    if (str_eq(json_get_str(names, STR("plural")), name) || str_eq(json_get_str(names, STR("singular")), name))
        return true;
    JSON_FOR_EACH_ITEM(json_get(names, STR("shortNames")), s) {
        if (str_eq(json_str(s), name))
            return true;
    }
    return false;
}

static bool is_taken(const struct taken *t, const char *field, struct str name)
{
    JSON_FOR_EACH_ITEM(json_get(t->list, STR("items")), crd) {
        if (str_eq(json_str(json_at(crd, "metadata", "name", NULL)), t->self) ||
            !str_eq(json_str(json_at(crd, "spec", "group", NULL)), t->group))
            continue;
        if (name.n && names_use(json_at(crd, "status", "acceptedNames", NULL), field, name))
            return true;
    }
    return false;
}

struct verdict {
    struct json accepted;
    struct str reason, message; /* of the last conflict; empty: none */
};

static void judge(const struct taken *t, struct verdict *v, const struct json *names, const char *key,
                  const char *field, const char *reason)
{
    struct str name = json_get_str(names, str_of(key));
    if (!name.n)
        return;
    if (is_taken(t, field, name)) {
        v->reason = str_of(reason);
        v->message = arena_printf(t->arena, "\"%.*s\" is already in use", STR_ARG(name));
        return;
    }
    (void) json_set(t->arena, &v->accepted, str_of(key), json_string(name));
}

static void judge_short_names(const struct taken *t, struct verdict *v, const struct json *names)
{
    const struct json *wanted = json_get(names, STR("shortNames"));
    bool all_free = true;
    JSON_FOR_EACH_ITEM(wanted, s) {
        if (is_taken(t, "plural", json_str(s))) {
            v->reason = STR("ShortNamesConflict");
            v->message = arena_printf(t->arena, "\"%.*s\" is already in use", STR_ARG(json_str(s)));
            all_free = false;
        }
    }
    if (json_count(wanted) && all_free)
        (void) json_set(t->arena, &v->accepted, STR("shortNames"), *wanted);
}

static struct verdict accept_names(const struct taken *t, const struct json *names)
{
    struct verdict v = {.accepted = json_object()};
    judge(t, &v, names, "plural", "plural", "PluralConflict");
    judge(t, &v, names, "singular", "plural", "SingularConflict");
    judge_short_names(t, &v, names);
    judge(t, &v, names, "kind", "kind", "KindConflict");
    judge(t, &v, names, "listKind", "kind", "ListKindConflict");
    const struct json *categories = json_get(names, STR("categories"));
    if (json_count(categories) && !v.reason.n)
        (void) json_set(t->arena, &v.accepted, STR("categories"), *categories);
    if (!json_get(&v.accepted, STR("kind")))
        (void) json_set(t->arena, &v.accepted, STR("kind"), json_string(STR("")));
    return v;
}

/* ---- conditions --------------------------------------------------------------------------- */

static struct json *find_condition(struct json *conditions, const char *type)
{
    JSON_FOR_EACH_ITEM(conditions, condition) {
        if (str_is(json_get_str(condition, STR("type")), type))
            return condition;
    }
    return NULL;
}

struct condition {
    const char *type, *status;
    struct str reason, message;
};

/* Sets it; the transition time moves only when the status does. */
static void set_condition(struct arena *a, struct json *conditions, const struct condition *c, struct str now)
{
    struct json *at = find_condition(conditions, c->type);
    if (!at) {
        at = json_push(a, conditions, json_object());
        (void) json_set(a, at, STR("type"), json_string(str_of(c->type)));
    }
    if (!str_is(json_get_str(at, STR("status")), c->status))
        (void) json_set(a, at, STR("lastTransitionTime"), json_string(now));
    (void) json_set(a, at, STR("status"), json_string(str_of(c->status)));
    (void) json_set(a, at, STR("reason"), json_string(c->reason));
    (void) json_set(a, at, STR("message"), json_string(c->message));
}

static void write_status(struct arena *a, struct json *crd, const struct verdict *v, struct str now)
{
    struct json *status = json_ensure_object(a, crd, STR("status"));
    if (!json_is(json_get(status, STR("conditions")), JSON_ARRAY))
        (void) json_set(a, status, STR("conditions"), json_array());
    struct json *conditions = json_get(status, STR("conditions"));
    bool is_accepted = !v->reason.n;
    struct json *established = find_condition(conditions, "Established");
    bool was_established = established && str_is(json_get_str(established, STR("status")), "True");
    struct condition names = {"NamesAccepted", is_accepted ? "True" : "False",
                              is_accepted ? STR("NoConflicts") : v->reason,
                              is_accepted ? STR("no conflicts found") : v->message};
    set_condition(a, conditions, &names, now);
    /* Once served it stays served, whatever names it asks for later. */
    if (!was_established) {
        struct condition e = {"Established", is_accepted ? "True" : "False",
                              is_accepted ? STR("InitialNamesAccepted") : STR("NotAccepted"),
                              is_accepted ? STR("the initial names have been accepted")
                                          : STR("not all names are accepted")};
        set_condition(a, conditions, &e, now);
    }
    (void) json_set(a, status, STR("acceptedNames"), v->accepted);
}

/* ---- deletion ----------------------------------------------------------------------------- */

/* Deletes one object of the kind; being gone already is as good. */
static int delete_one(const struct controller_context *ctx, struct arena *a, struct kube_request r, const struct json *item)
{
    struct status st;
    status_init(&st, a);
    r.verb = VERB_DELETE;
    r.namespace = json_str(json_at(item, "metadata", "namespace", NULL));
    r.name = json_str(json_at(item, "metadata", "name", NULL));
    int code = kube_request(ctx->client, a, &r, NULL, &st);
    return code == -ENOENT ? 0 : code;
}

/* How many objects are left, after asking each to go; < 0 on failure. */
static int64_t delete_instances(const struct controller_context *ctx, struct arena *a, const struct json *crd)
{
    struct status st;
    status_init(&st, a);
    struct json *list = NULL;
    const struct json *versions = json_at(crd, "spec", "versions", NULL);
    struct kube_request r = {.verb = VERB_LIST,
                             .group = json_str(json_at(crd, "spec", "group", NULL)),
                             .resource = json_str(json_at(crd, "spec", "names", "plural", NULL))};
    JSON_FOR_EACH_ITEM(versions, version) {
        if (json_get_bool(version, STR("served"), false))
            r.version = json_get_str(version, STR("name"));
    }
    int code = kube_request(ctx->client, a, &r, &list, &st);
    if (code == -ENOENT)
        return 0; /* it was never served */
    if (code < 0)
        return code;
    JSON_FOR_EACH_ITEM(json_get(list, STR("items")), item) {
        code = delete_one(ctx, a, r, item);
        if (code < 0)
            return code;
    }
    code = kube_request(ctx->client, a, &r, &list, &st);
    return code < 0 ? code : (int64_t) json_count(json_get(list, STR("items")));
}

static int64_t finish_deletion(const struct controller_context *ctx, struct arena *a, struct json *crd)
{
    struct status st;
    status_init(&st, a);
    int64_t n_left = delete_instances(ctx, a, crd);
    if (n_left != 0)
        return n_left < 0 ? n_left : CLEANUP_AGAIN_MS;
    struct json *finalizers = json_at(crd, "metadata", "finalizers", NULL);
    for (size_t i = 0; i < json_count(finalizers);) {
        if (str_is(json_str(&finalizers->items[i]), CLEANUP_FINALIZER))
            json_remove_at(finalizers, i);
        else
            i++;
    }
    struct kube_request r = crd_request(VERB_UPDATE, json_str(json_at(crd, "metadata", "name", NULL)));
    r.body = crd;
    int code = kube_request(ctx->client, a, &r, NULL, &st);
    return code == -ENOENT ? 0 : code;
}

/* ---- reconcile ---------------------------------------------------------------------------- */

static int64_t wake_all(struct controller_queue *q, const struct controller_context *ctx)
{
    ARENA_AUTO a = arena_new();
    struct json *list = NULL;
    int code = list_crds(ctx, a, &list);
    if (code < 0)
        return code;
    JSON_FOR_EACH_ITEM(json_get(list, STR("items")), crd)
        controller_enqueue(q, json_str(json_at(crd, "metadata", "name", NULL)), 0);
    api_refresh_registry(ctx->api);
    return 0;
}

static int64_t establish(const struct controller_context *ctx, struct arena *a, struct json *crd)
{
    struct status st;
    status_init(&st, a);
    struct json *list = NULL;
    int code = list_crds(ctx, a, &list);
    if (code < 0)
        return code;
    struct str name = json_str(json_at(crd, "metadata", "name", NULL));
    struct taken t = {a, list, json_str(json_at(crd, "spec", "group", NULL)), name};
    struct verdict v = accept_names(&t, json_at(crd, "spec", "names", NULL));
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(ctx->clock->wall_us(ctx->clock), now);
    write_status(a, crd, &v, str_of(now));
    struct kube_request r = crd_request(VERB_UPDATE, name);
    r.subresource = STR("status");
    r.body = crd;
    code = kube_request(ctx->client, a, &r, NULL, &st);
    if (code < 0)
        return code == -ENOENT ? 0 : code;
    api_refresh_registry(ctx->api);
    return 0;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    if (str_is(key, "*"))
        return wake_all(state, ctx);
    ARENA_AUTO a = arena_new();
    struct status st;
    status_init(&st, a);
    struct json *crd = NULL;
    struct kube_request r = crd_request(VERB_GET, key);
    int code = kube_request(ctx->client, a, &r, &crd, &st);
    if (code < 0)
        return code == -ENOENT ? 0 : code;
    return json_at(crd, "metadata", "deletionTimestamp", NULL) ? finish_deletion(ctx, a, crd)
                                                               : establish(ctx, a, crd);
}

const struct controller crd_controller = {
    .name = "customresourcedefinitions", .start = start, .on_event = on_event, .reconcile = reconcile};
