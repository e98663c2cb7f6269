/* SPDX-License-Identifier: Apache-2.0 */
#include "rbac_world.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/codec.h"
#include "base/alloc.h"

static void must(bool is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "%s failed\n", what);
    abort();
}

void world_open(struct world *w)
{
    char *error = NULL;
    *w = (struct world){.directory = "/tmp/seth-rbac-XXXXXX", .arena = arena_new()};
    must(mkdtemp(w->directory) != NULL, "mkdtemp");
    struct str path = arena_printf(w->arena, "%s/objects.db", w->directory);
    struct store_options options = {
        .path = path.p, .parse_head = codec_parse_stored, .clock = &clock_system};
    must(store_open(&options, &w->store, &error) == 0, "store_open");
    w->rbac = rbac_new(w->store);
}

void world_close(struct world *w)
{
    rbac_free(w->rbac);
    store_close(w->store);
    DIR *d = opendir(w->directory);
    must(d != NULL, "opendir");
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        (void) unlinkat(dirfd(d), e->d_name, 0);
    (void) closedir(d);
    must(rmdir(w->directory) == 0, "rmdir");
    arena_free(w->arena);
}

void world_restart(struct world *w)
{
    rbac_free(w->rbac);
    w->rbac = rbac_new(w->store);
}

static struct world_object *find(struct world *w, const char *resource, const char *namespace,
                                 const char *name)
{
    for (size_t i = 0; i < w->n; i++) {
        struct world_object *o = &w->objects[i];
        if (str_is(o->resource, resource) && str_is(o->namespace, namespace) &&
            str_is(o->name, name))
            return o;
    }
    w->objects = arena_grow(w->arena, w->objects, w->n, sizeof(struct world_object));
    struct world_object *o = &w->objects[w->n++];
    *o = (struct world_object){.resource = arena_str(w->arena, str_of(resource)),
                               .namespace = arena_str(w->arena, str_of(namespace)),
                               .name = arena_str(w->arena, str_of(name))};
    return o;
}

static struct str text_of(struct world *w, const struct world_object *o, const char *rest)
{
    struct str namespace =
        o->namespace.n ? arena_printf(w->arena, "\"namespace\":\"%.*s\",", STR_ARG(o->namespace))
                       : STR("");
    struct str text = arena_printf(
        w->arena,
        "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"%.*s\",\"metadata\":{"
        "\"name\":\"%.*s\",%.*s\"uid\":\"u\",\"resourceVersion\":\"\"},%s}",
        STR_ARG(o->resource), STR_ARG(o->name), STR_ARG(namespace), rest);
    for (size_t i = text.n - strlen(rest) - 1; i < text.n; i++)
        if (text.p[i] == '\'')
            ((char *) text.p)[i] = '"';
    return text;
}

static void submit(struct world *w, struct world_object *o, struct object *stored, bool is_removal)
{
    struct str key = arena_printf(w->arena, "%.*s.rbac.authorization.k8s.io/%.*s/%.*s",
                                  STR_ARG(o->resource), STR_ARG(o->namespace), STR_ARG(o->name));
    struct store_write write = {.condition = is_removal  ? STORE_REMOVE
                                             : o->object ? STORE_REPLACE
                                                         : STORE_CREATE,
                                .key = key,
                                .expected_revision = o->revision,
                                .object = stored};
    must(store_write_sync(w->store, &write) == 0, "write");
    o->revision = write.revision;
    object_unref(write.committed);
}

void world_put(struct world *w, const char *resource, const char *namespace, const char *name,
               const char *text)
{
    struct world_object *o = find(w, resource, namespace, name);
    struct object_head head = {0};
    struct str whole = text_of(w, o, text);
    must(codec_parse_head(whole, &head) == 0, "head");
    submit(w, o, object_new(whole, &head), /* is_removal= */ false);
    o->object = json_parse_quick(w->arena, whole);
    must(o->object != NULL, "JSON");
}

bool world_remove(struct world *w, const char *resource, const char *namespace, const char *name)
{
    struct world_object *o = find(w, resource, namespace, name);
    struct object_head head = {0};
    if (!o->object)
        return false;
    struct str whole = text_of(w, o, "\"rules\":[]");
    must(codec_parse_head(whole, &head) == 0, "head");
    submit(w, o, object_new(whole, &head), /* is_removal= */ true);
    o->object = NULL;
    return true;
}

/* ---- the slow evaluator -------------------------------------------------------------------- */

static bool contains(const struct json *array, struct str text)
{
    JSON_FOR_EACH_ITEM (array, item)
        if (str_eq(json_str(item), text))
            return true;
    return false;
}

static bool grants_resource(const struct json *rule, const struct access_question *q)
{
    ARENA_AUTO a = arena_new();
    const struct json *resources = json_get(rule, STR("resources"));
    const struct json *groups = json_get(rule, STR("apiGroups"));
    const struct json *names = json_get(rule, STR("resourceNames"));
    struct str whole = q->subresource.n ? arena_printf(a, "%.*s/%.*s", STR_ARG(q->resource),
                                                       STR_ARG(q->subresource))
                                        : q->resource;
    bool has_resource = contains(resources, STR("*")) || contains(resources, whole);
    if (q->subresource.n)
        has_resource |= contains(resources, arena_printf(a, "*/%.*s", STR_ARG(q->subresource)));
    return has_resource && (contains(groups, STR("*")) || contains(groups, q->group)) &&
           (json_count(names) == 0 || contains(names, q->name));
}

static bool grants_path(const struct json *rule, struct str path)
{
    JSON_FOR_EACH_ITEM (json_get(rule, STR("nonResourceURLs")), item) {
        struct str url = json_str(item);
        bool is_prefix = url.n && url.p[url.n - 1] == '*';
        if (str_eq(url, path))
            return true;
        while (url.n && url.p[url.n - 1] == '*')
            url.n--;
        if (is_prefix && path.n >= url.n && memcmp(path.p, url.p, url.n) == 0)
            return true;
    }
    return false;
}

static bool grants(const struct json *role, const struct access_question *q)
{
    JSON_FOR_EACH_ITEM (json_get(role, STR("rules")), rule) {
        const struct json *verbs = json_get(rule, STR("verbs"));
        if (!contains(verbs, STR("*")) && !contains(verbs, q->verb))
            continue;
        if (q->is_resource ? grants_resource(rule, q) : grants_path(rule, q->path))
            return true;
    }
    return false;
}

static bool is_subject(const struct json *subject, const struct world_object *binding,
                       const struct user *u)
{
    ARENA_AUTO a = arena_new();
    struct str kind = json_get_str(subject, STR("kind")), name = json_get_str(subject, STR("name"));
    struct str namespace = json_get_str(subject, STR("namespace"));
    if (str_is(kind, "User"))
        return str_eq(u->name, name);
    if (str_is(kind, "Group")) {
        for (size_t i = 0; i < u->n_groups; i++)
            if (str_eq(u->groups[i], name))
                return true;
        return false;
    }
    if (!namespace.n)
    namespace = binding->namespace;
    return namespace.n && str_eq(u->name, arena_printf(a, "system:serviceaccount:%.*s:%.*s",
                                                       STR_ARG(namespace), STR_ARG(name)));
}

static const struct json *role_of(const struct world *w, const struct world_object *binding)
{
    const struct json *ref = json_get(binding->object, STR("roleRef"));
    bool is_local = str_is(json_get_str(ref, STR("kind")), "Role");
    for (size_t i = 0; i < w->n; i++) {
        const struct world_object *o = &w->objects[i];
        if (str_is(o->resource, is_local ? "roles" : "clusterroles") &&
            str_eq(o->namespace, is_local ? binding->namespace : STR("")) &&
            str_eq(o->name, json_get_str(ref, STR("name"))))
            return o->object;
    }
    return NULL;
}

bool reference_allows(const struct world *w, const struct access_question *q)
{
    for (size_t i = 0; i < q->user->n_groups; i++)
        if (str_is(q->user->groups[i], "system:masters"))
            return true;
    for (size_t i = 0; i < w->n; i++) {
        const struct world_object *b = &w->objects[i];
        bool is_wide = str_is(b->resource, "clusterrolebindings");
        bool is_here = str_is(b->resource, "rolebindings") && q->is_resource && q->namespace.n &&
                       str_eq(b->namespace, q->namespace);
        if (!b->object || (!is_wide && !is_here))
            continue;
        JSON_FOR_EACH_ITEM (json_get(b->object, STR("subjects")), subject)
            if (is_subject(subject, b, q->user) && grants(role_of(w, b), q))
                return true;
    }
    return false;
}
