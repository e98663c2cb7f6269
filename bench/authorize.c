/* SPDX-License-Identifier: Apache-2.0 */
/* What one decision about a right costs: a user with 500 bindings of their own and 5 groups, on a
 * server with 2,000 bindings in 100 namespaces; half of the questions are refused. The peer is the
 * plain way, a walk over the bindings that match each rule of each role. Prints one line of JSON.
 *
 *     authorize [rounds] */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "api/auth/rbac.h"
#include "api/codec.h"
#include "base/alloc.h"

#define N_NAMESPACES 100
#define N_USER_BINDINGS 500
#define N_OTHER_BINDINGS 1500
#define N_ROLES 50
#define N_GROUPS 5

static void die(const char *what)
{
    fprintf(stderr, "authorize: %s\n", what);
    exit(1);
}

/* Of this thread: what others do on the machine is not measured. */
static double now_ns(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* ---- the world ----------------------------------------------------------------------------- */

/* Writes are submitted together and awaited once: a thousand flushes are not what is measured. */
struct pending {
    struct store_write write;
};

static void on_done(struct store_write *w)
{
    if (w->result < 0)
        die("a write failed");
    object_unref(w->committed);
    mem_free(CONTAINER_OF(w, struct pending, write));
}

static void put(struct arena *a, struct store *s, const char *plural, struct str namespace,
                struct str name, struct str rest)
{
    struct object_head head = {0};
    struct str where =
        namespace.n ? arena_printf(a, "\"namespace\":\"%.*s\",", STR_ARG(namespace)) : STR("");
    struct str text = arena_printf(
        a,
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"X\",\"metadata\":{\"name\":"
        "\"%.*s\",%.*s\"uid\":\"u\",\"resourceVersion\":\"\"},%.*s}",
        STR_ARG(name), STR_ARG(where), STR_ARG(rest));
    if (codec_parse_head(text, &head) < 0)
        die("a text is none of ours");
    struct pending *p = NEW(struct pending);
    p->write = (struct store_write){.condition = STORE_CREATE,
                                    .key = arena_printf(a, "%s.rbac.authorization.k8s.io/%.*s/%.*s",
                                                        plural, STR_ARG(namespace), STR_ARG(name)),
                                    .object = object_new(text, &head),
                                    .on_done = on_done};
    store_submit(s, &p->write);
}

static struct str role_rules(struct arena *a, int i)
{
    return arena_printf(
        a,
        "\"rules\":[{\"apiGroups\":[\"group%d\"],\"resources\":[\"things%d\",\"things%d/status\"],"
        "\"verbs\":[\"get\",\"list\",\"watch\",\"update\"]},{\"apiGroups\":[\"\"],\"resources\":["
        "\"configmaps\"],\"resourceNames\":[\"settings%d\"],\"verbs\":[\"get\"]}]",
        i % 10, i, i, i);
}

static void put_binding(struct arena *a, struct store *s, int i, struct str kind, struct str who)
{
    put(a, s, "rolebindings", arena_printf(a, "ns%d", i % N_NAMESPACES), arena_printf(a, "b%d", i),
        arena_printf(a,
                     "\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"role%d\"},\"subjects\":[{"
                     "\"kind\":\"%.*s\",\"name\":\"%.*s\"}]",
                     i % N_ROLES, STR_ARG(kind), STR_ARG(who)));
}

static void fill(struct arena *a, struct store *s)
{
    for (int i = 0; i < N_ROLES; i++)
        put(a, s, "clusterroles", STR(""), arena_printf(a, "role%d", i), role_rules(a, i));
    for (int i = 0; i < N_USER_BINDINGS; i++)
        put_binding(a, s, i, STR("User"), STR("jane"));
    for (int i = 0; i < N_OTHER_BINDINGS; i++)
        put_binding(a, s, N_USER_BINDINGS + i, i % 5 ? STR("User") : STR("Group"),
                    i % 5 ? arena_printf(a, "user%d", i)
                          : arena_printf(a, "team%d", i / 5 % N_GROUPS));
    store_settle(s);
}

/* ---- the peer ------------------------------------------------------------------------------ */

struct plain_binding {
    struct str namespace, kind, name;
    const struct rbac_rule *rules;
    size_t n_rules;
};

struct plain {
    struct plain_binding *bindings;
    size_t n;
};

static struct plain read_plain(struct arena *a, struct store *s)
{
    struct store_page page = {0};
    struct store_range range = {.collection = STR("rolebindings.rbac.authorization.k8s.io")};
    if (store_list(s, &range, &page) < 0)
        die("cannot list");
    struct plain p = {ARENA_ARRAY(a, struct plain_binding, page.n), page.n};
    for (size_t i = 0; i < page.n; i++) {
        const struct json *o = json_parse_quick(a, object_text(page.objects[i]));
        const struct json *subject = &json_get(o, STR("subjects"))->items[0];
        struct str key =
            arena_printf(a, "clusterroles.rbac.authorization.k8s.io//%.*s",
                         STR_ARG(json_get_str(json_get(o, STR("roleRef")), STR("name"))));
        struct object *role = store_get(s, key);
        if (!role)
            die("a role is missing");
        struct plain_binding *b = &p.bindings[i];
        b->namespace = json_get_str(json_get(o, STR("metadata")), STR("namespace"));
        b->kind = json_get_str(subject, STR("kind"));
        b->name = json_get_str(subject, STR("name"));
        b->n_rules = rbac_parse_rules(
            a, json_get(json_parse_quick(a, object_text(role)), STR("rules")), &b->rules);
        object_unref(role);
    }
    store_page_done(&page);
    return p;
}

static bool applies(const struct plain_binding *b, const struct access_question *q)
{
    if (!str_eq(b->namespace, q->namespace))
        return false;
    return str_is(b->kind, "User") ? str_eq(b->name, q->user->name)
                                   : user_has_group(q->user, b->name);
}

static bool has(const struct rbac_texts *t, struct str s)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->items[i], s) || str_is(t->items[i], "*"))
            return true;
    return false;
}

static bool plain_allows(const struct plain *p, const struct access_question *q)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plain_binding *b = &p->bindings[i];
        for (size_t k = 0; applies(b, q) && k < b->n_rules; k++) {
            const struct rbac_rule *r = &b->rules[k];
            if (has(&r->verbs, q->verb) && has(&r->groups, q->group) &&
                has(&r->resources, q->resource) && (!r->names.n || has(&r->names, q->name)))
                return true;
        }
    }
    return false;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Some granted, some not, all over the namespaces. */
static struct access_question question(struct arena *a, const struct user *u, int i)
{
    int binding = i * 7 % N_USER_BINDINGS, role = binding % N_ROLES;
    return (struct access_question){
        .user = u,
        .verb = i % 2 ? STR("get") : STR("delete"),
        .is_resource = true,
        .group = arena_printf(a, "group%d", role % 10),
        .resource = arena_printf(a, "things%d", role),
        .subresource = STR(""),
        .namespace = arena_printf(a, "ns%d", binding % N_NAMESPACES),
        .name = STR("one"),
    };
}

#define N_QUESTIONS 512

static double measure(struct rbac *r, const struct plain *p, const struct access_question *q,
                      int n_rounds, size_t *ret_allowed)
{
    size_t n_allowed = 0;
    double start = now_ns();
    for (int k = 0; k < n_rounds; k++)
        for (size_t i = 0; i < N_QUESTIONS; i++)
            n_allowed += p ? plain_allows(p, &q[i]) : rbac_allows(r, &q[i], NULL, NULL);
    *ret_allowed = n_allowed / (size_t) n_rounds;
    return (now_ns() - start) / n_rounds / N_QUESTIONS;
}

static void run(struct arena *a, struct store *s, int n_rounds)
{
    static const struct str groups[N_GROUPS + 1] = {STR("team0"), STR("team1"),
                                                    STR("team2"), STR("team3"),
                                                    STR("team4"), STR("system:authenticated")};
    struct user jane = {.name = STR("jane"), .groups = groups, .n_groups = N_GROUPS + 1};
    struct access_question q[N_QUESTIONS];
    for (int i = 0; i < N_QUESTIONS; i++)
        q[i] = question(a, &jane, i);
    fill(a, s);
    struct rbac *r = rbac_new(s);
    struct plain plain = read_plain(a, s);
    size_t n_allowed = 0, n_plain = 0;
    (void) measure(r, NULL, q, 1, &n_allowed);
    double ours = measure(r, NULL, q, n_rounds, &n_allowed);
    double theirs = measure(r, &plain, q, MAX(n_rounds / 50, 1), &n_plain);
    if (n_allowed != n_plain || n_allowed == 0 || n_allowed == N_QUESTIONS)
        die("the two do not agree");
    printf("{\"bench\":\"authorize\",\"bindings\":%d,\"groups\":%d,\"ns_per_decision\":%.0f,"
           "\"walk_ns_per_decision\":%.0f,\"ratio\":%.1f}\n",
           N_USER_BINDINGS, N_GROUPS, ours, theirs, theirs / ours);
    rbac_free(r);
}

int main(int argc, char **argv)
{
    int64_t n_rounds = 2000;
    if (argc > 1 && (str_to_i64(str_of(argv[1]), &n_rounds) < 0 || n_rounds < 1))
        die("usage: authorize [rounds]");
    char directory[] = "/tmp/seth-authorize-XXXXXX", *error = NULL;
    struct store *s = NULL;
    ARENA_AUTO a = arena_new();
    if (!mkdtemp(directory))
        die("cannot make a directory");
    struct store_options options = {.path = arena_printf(a, "%s/objects.db", directory).p,
                                    .parse_head = codec_parse_stored,
                                    .clock = &clock_system};
    if (store_open(&options, &s, &error) < 0)
        die(error);
    run(a, s, (int) MIN(n_rounds, INT64_C(1000000)));
    store_close(s);
    DIR *d = opendir(directory);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        (void) unlinkat(dirfd(d), e->d_name, 0);
    (void) closedir(d);
    (void) rmdir(directory);
    return 0;
}
