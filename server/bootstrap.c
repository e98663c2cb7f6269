/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/auth/rbac.h"
#include "api/registry.h"
#include "base/alloc.h"
#include "base/log.h"
#include "kinds/kinds.h"
#include "settings/settings.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define AUTOUPDATE STR("rbac.authorization.kubernetes.io/autoupdate")
/* So many writes share the flushes of a start on an empty store. */
#define N_WORKERS 32
#define MAX_OBJECTS 512
#define MAX_ATTEMPTS 5

/* ---- what there is to do ------------------------------------------------------------------- */

struct task {
    struct str group, resource;
    struct json *object; /* as it should be */
};

struct tasks {
    struct kube_client *client;
    struct task list[MAX_OBJECTS];
    size_t n;
    atomic_size_t next;
    /* The first failure. */
    pthread_mutex_t lock;
    int error;
    char *message;
};

static void add_task(struct tasks *t, struct str group, struct str resource, struct json *object)
{
    if (t->n < MAX_OBJECTS)
        t->list[t->n++] = (struct task){group, resource, object};
}

static struct str meta_text(const struct json *object, const char *key)
{
    return json_get_str(json_get(object, STR("metadata")), str_of(key));
}

static void fail(struct tasks *t, const struct task *task, int error, const struct status *st)
{
    struct buf b = {0};
    buf_printf(&b, "cannot make %.*s %.*s: %.*s", STR_ARG(task->resource),
               STR_ARG(meta_text(task->object, "name")), STR_ARG(st->message));
    (void) pthread_mutex_lock(&t->lock);
    if (t->error == 0) {
        t->error = error;
        t->message = buf_take(&b);
    }
    (void) pthread_mutex_unlock(&t->lock);
    buf_done(&b);
}

/* ---- giving back --------------------------------------------------------------------------- */

struct cover {
    const struct rbac_rule *rules;
    size_t n_rules;
};

static bool is_covered(void *ctx, const struct rbac_right *right)
{
    const struct cover *c = ctx;
    return rbac_rules_cover(c->rules, c->n_rules, right);
}

/* Rules of which some right is missing are added as they are. */
static bool restore_rules(struct arena *a, struct json *existing, const struct json *wanted)
{
    const struct json *wanted_rules = json_get(wanted, STR("rules"));
    struct cover cover = {0};
    const struct rbac_rule *rules = NULL;
    bool has_changed = false;
    if (!json_is(json_get(existing, STR("rules")), JSON_ARRAY))
        (void) json_set(a, existing, STR("rules"), json_array());
    struct json *list = json_get(existing, STR("rules"));
    cover.n_rules = rbac_parse_rules(a, list, &cover.rules);
    size_t n = rbac_parse_rules(a, wanted_rules, &rules);
    for (size_t i = 0; i < n; i++)
        if (!rbac_each_right(&rules[i], is_covered, &cover)) {
            (void) json_push(a, list, wanted_rules->items[i]);
            has_changed = true;
        }
    return has_changed;
}

/* Items of the list that no existing one equals. */
static bool restore_items(struct arena *a, struct json *existing, const struct json *wanted,
                          struct str key)
{
    bool has_changed = false;
    if (!json_count(json_get(wanted, key)))
        return false;
    if (!json_is(json_get(existing, key), JSON_ARRAY))
        (void) json_set(a, existing, key, json_array());
    struct json *list = json_get(existing, key);
    JSON_FOR_EACH_ITEM (json_get(wanted, key), item) {
        bool is_there = false;
        JSON_FOR_EACH_ITEM (list, have)
            is_there |= json_equal(have, item);
        if (is_there)
            continue;
        (void) json_push(a, list, *item);
        has_changed = true;
    }
    return has_changed;
}

static bool restore_selectors(struct arena *a, struct json *existing, const struct json *wanted)
{
    const struct json *aggregation = json_get(wanted, STR("aggregationRule"));
    if (!aggregation)
        return false;
    return restore_items(a, json_ensure_object(a, existing, STR("aggregationRule")), aggregation,
                         STR("clusterRoleSelectors"));
}

/* Labels and annotations that are not there; those with another value keep it. */
static bool restore_texts(struct arena *a, struct json *existing, const struct json *wanted,
                          const char *key)
{
    bool has_changed = false;
    struct json *meta = json_ensure_object(a, existing, STR("metadata"));
    JSON_FOR_EACH_MEMBER (json_at(wanted, "metadata", key, NULL), m) {
        struct json *texts = json_ensure_object(a, meta, str_of(key));
        if (json_get(texts, json_str(&m->key)))
            continue;
        (void) json_set(a, texts, json_str(&m->key), m->value);
        has_changed = true;
    }
    return has_changed;
}

/* True when something was missing. */
static bool restore(struct arena *a, struct json *existing, const struct json *wanted)
{
    bool has_changed = restore_texts(a, existing, wanted, "labels");
    has_changed |= restore_texts(a, existing, wanted, "annotations");
    has_changed |= restore_selectors(a, existing, wanted);
    has_changed |= restore_items(a, existing, wanted, STR("subjects"));
    if (json_get(wanted, STR("rules")))
        has_changed |= restore_rules(a, existing, wanted);
    return has_changed;
}

/* ---- one object ---------------------------------------------------------------------------- */

static int request(struct tasks *t, struct arena *a, const struct task *task, enum verb verb,
                   struct json **body, struct status *st)
{
    struct kube_request r = {
        .verb = verb,
        .group = task->group,
        .version = STR("v1"),
        .resource = task->resource,
        .namespace = meta_text(task->object, "namespace"),
        .name = verb == VERB_CREATE ? STR("") : meta_text(task->object, "name"),
        .body = verb == VERB_GET || verb == VERB_DELETE ? NULL : *body,
    };
    status_init(st, a);
    return kube_request(t->client, a, &r, verb == VERB_GET ? body : NULL, st);
}

/* A role cannot be exchanged in a binding: it is made again. */
static int replace(struct tasks *t, struct arena *a, const struct task *task, struct status *st)
{
    struct json *object = task->object;
    int r = request(t, a, task, VERB_DELETE, &object, st);
    return r < 0 && r != -ENOENT ? r : request(t, a, task, VERB_CREATE, &object, st);
}

static int reconcile_once(struct tasks *t, struct arena *a, const struct task *task,
                          struct status *st)
{
    struct json *existing = NULL, *object = task->object;
    int r = request(t, a, task, VERB_GET, &existing, st);
    if (r == -ENOENT)
        return request(t, a, task, VERB_CREATE, &object, st);
    /* Of all else it is enough that it exists. */
    if (r < 0 || !str_is(task->group, RBAC_GROUP))
        return r;
    if (str_is(json_get_str(json_at(existing, "metadata", "annotations", NULL), AUTOUPDATE),
               "false"))
        return 0;
    const struct json *role = json_get(object, STR("roleRef"));
    if (role && !json_equal(role, json_get(existing, STR("roleRef"))))
        return replace(t, a, task, st);
    return restore(a, existing, object) ? request(t, a, task, VERB_UPDATE, &existing, st) : 0;
}

static void reconcile(struct tasks *t, const struct task *task)
{
    ARENA_AUTO a = arena_new();
    struct status st;
    int r = -ESTALE;
    /* Nobody else writes yet; but what a disk or another start did in between is no reason to fail.
     */
    for (int i = 0; i < MAX_ATTEMPTS && (r == -ESTALE || r == -EEXIST); i++)
        r = reconcile_once(t, a, task, &st);
    if (r == -ENOSPC)
        log_warning("cannot restore an object of the start, going on without",
                    LOG_STR("resource", task->resource),
                    LOG_STR("name", meta_text(task->object, "name")), LOG_STR("error", st.message));
    else if (r < 0)
        fail(t, task, r, &st);
}

/* ---- all of them --------------------------------------------------------------------------- */

static void *work(void *tasks)
{
    struct tasks *t = tasks;
    for (size_t i = atomic_fetch_add(&t->next, 1); i < t->n; i = atomic_fetch_add(&t->next, 1))
        reconcile(t, &t->list[i]);
    return NULL;
}

/* The store commits together what arrives together, so requests that block go side by side. */
static int run(struct tasks *t, char **ret_error)
{
    pthread_t threads[N_WORKERS];
    size_t n_threads = 0;
    while (n_threads + 1 < MIN(t->n, (size_t) N_WORKERS) &&
           pthread_create(&threads[n_threads], NULL, work, t) == 0)
        n_threads++;
    (void) work(t);
    for (size_t i = 0; i < n_threads; i++)
        (void) pthread_join(threads[i], NULL);
    *ret_error = t->message;
    return t->error;
}

static int make_namespaces(struct kube_client *client, struct arena *a, char **ret_error)
{
    static const struct str names[] = {STR("default"), STR("kube-system"), STR("kube-public"),
                                       STR("kube-node-lease"), STR(SETTINGS_GLOBAL_NAMESPACE)};
    struct tasks *t = ARENA_NEW(a, struct tasks);
    t->client = client;
    (void) pthread_mutex_init(&t->lock, NULL);
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        struct json *object = json_new(a, json_object());
        struct json *meta = json_ensure_object(a, object, STR("metadata"));
        (void) json_set(a, meta, STR("name"), json_string(names[i]));
        add_task(t, STR(""), STR("namespaces"), object);
    }
    return run(t, ret_error);
}

/* What all of these objects have in common and the files do not repeat. */
static void complete(struct arena *a, struct json *object, bool is_default)
{
    struct json *meta = json_ensure_object(a, object, STR("metadata"));
    (void) json_set(a, json_ensure_object(a, meta, STR("annotations")), AUTOUPDATE,
                    json_string(STR("true")));
    if (is_default)
        (void) json_set(a, json_ensure_object(a, meta, STR("labels")),
                        STR("kubernetes.io/bootstrapping"), json_string(STR("rbac-defaults")));
    struct json *role = json_get(object, STR("roleRef"));
    if (role)
        (void) json_set(a, role, STR("apiGroup"), json_string(STR(RBAC_GROUP)));
    JSON_FOR_EACH_ITEM (json_get(object, STR("subjects")), subject)
        if (!str_is(json_get_str(subject, STR("kind")), "ServiceAccount"))
            (void) json_set(a, subject, STR("apiGroup"), json_string(STR(RBAC_GROUP)));
}

static int make_files(struct kube_client *client, struct arena *a, char **ret_error)
{
    struct tasks *t = ARENA_NEW(a, struct tasks);
    t->client = client;
    (void) pthread_mutex_init(&t->lock, NULL);
    for (size_t i = 0; i < n_kinds_bootstrap; i++) {
        /* "bootstrap/<plural>.yaml": RBAC, StorageClasses, or our own roles. */
        struct str file = str_from(str_of(kinds_bootstrap[i].path), sizeof("bootstrap/") - 1);
        struct str resource = str_sub(file, 0, file.n - (sizeof(".yaml") - 1));
        bool is_eve = str_is(resource, "eve"), is_storage = str_is(resource, "storageclasses");
        JSON_FOR_EACH_ITEM (json_parse_quick(a, kinds_bootstrap[i].json), object) {
            if (!is_storage)
                complete(a, object, !is_eve);
            add_task(t, is_storage ? STR("storage.k8s.io") : STR(RBAC_GROUP),
                     is_eve ? STR("clusterroles") : resource, object);
        }
    }
    return run(t, ret_error);
}

/* What all devices go by, ready to be edited. While the namespace is being deleted there is none.
 */
static int make_options(struct kube_client *client, struct arena *a, char **ret_error)
{
    struct tasks *t = ARENA_NEW(a, struct tasks);
    t->client = client;
    (void) pthread_mutex_init(&t->lock, NULL);
    struct json *object = json_new(a, json_object());
    struct json *meta = json_ensure_object(a, object, STR("metadata"));
    (void) json_set(a, meta, STR("name"), json_string(STR(SETTINGS_GLOBAL_NAME)));
    (void) json_set(a, meta, STR("namespace"), json_string(STR(SETTINGS_GLOBAL_NAMESPACE)));
    add_task(t, STR(""), STR("configmaps"), object);
    const int r = run(t, ret_error);
    if (r != -EPERM && r != -ENOENT)
        return r;
    mem_free(TAKE(*ret_error));
    return 0;
}

int bootstrap_objects(struct kube_client *client, char **ret_error)
{
    ARENA_AUTO a = arena_new();
    int r = make_namespaces(client, a, ret_error);
    if (r == 0)
        r = make_options(client, a, ret_error);
    return r < 0 ? r : make_files(client, a, ret_error);
}
