/* SPDX-License-Identifier: Apache-2.0 */
#include "api/discovery.h"

#include <errno.h>

#include "api/release.h"
#include "test.h"
#include "thing.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define NATIVE_VERBS \
    "[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]"
#define CUSTOM_VERBS \
    "[\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"create\",\"update\",\"watch\"]"

struct fixture {
    struct arena *a;
    struct registry *registry;
    struct discovery *discovery;
    struct status status;
    struct document_reply reply;
    struct json *body; /* of the last reply, when it is JSON */
};

static void fixture_init(struct fixture *f)
{
    static const struct str paths[] = {STR("/healthz"), STR("/version")};
    f->a = arena_new();
    f->registry = thing_registry();
    f->discovery = discovery_new(f->registry,
                                 &(struct discovery_options){.server_address = STR("10.0.0.5:6443"),
                                                             .paths = paths,
                                                             .n_paths = N_ELEMENTS(paths)});
    f->reply = (struct document_reply){0};
}

static void fixture_done(struct fixture *f)
{
    slice_unref(f->reply.body);
    discovery_unref(f->discovery);
    registry_unref(f->registry);
    arena_free(f->a);
}

static int ask(struct fixture *f, const struct document_request *q)
{
    slice_unref(f->reply.body);
    f->reply = (struct document_reply){0};
    status_init(&f->status, f->a);
    const int r = discovery_get(f->a, f->discovery, q, &f->reply, &f->status);
    f->body = r == 0 ? json_parse_quick(f->a, f->reply.body.s) : NULL;
    return r;
}

static int get(struct fixture *f, const char *path, const char *accept)
{
    return ask(f, &(struct document_request){
                      .method = HTTP_GET, .path = str_of(path), .accept = str_of(accept)});
}

/* The item of a list whose member `key` is `name`. */
static const struct json *find(const struct json *list, const char *key, const char *name)
{
    JSON_FOR_EACH_ITEM (list, item) {
        if (str_is(json_get_str(item, str_of(key)), name))
            return item;
    }
    return NULL;
}

static void assert_json(struct arena *a, const struct json *v, const char *expected)
{
    assert_non_null(v);
    assert_str(json_text(a, v), expected);
}

static struct json without(struct arena *a, const struct json *v, const char *key)
{
    struct json copy = json_clone(a, v);
    json_remove(&copy, str_of(key));
    return copy;
}

/* ---- plain -------------------------------------------------------------------------------- */

TEST(core_versions_and_trailing_slash)
{
    struct fixture f;
    fixture_init(&f);
    static const char *const paths[] = {"/api", "/api/"};
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        assert_int_equal(get(&f, paths[i], ""), 0);
        assert_int_equal(f.reply.status, 200);
        assert_str(f.reply.content_type, "application/json");
        assert_false(f.reply.cache_control.n);
        assert_json(f.a, f.body,
                    "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                    "\"serverAddressByClientCIDRs\":[{\"clientCIDR\":"
                    "\"0.0.0.0/0\",\"serverAddress\":\"10.0.0.5:6443\"}]}");
    }
    fixture_done(&f);
}

TEST(core_resources_are_shown_as_recorded)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/api/v1", ""), 0);
    assert_str(json_get_str(f.body, STR("kind")), "APIResourceList");
    assert_str(json_get_str(f.body, STR("groupVersion")), "v1");
    assert_null(json_get(f.body, STR("apiVersion")));
    const struct json *resources = json_get(f.body, STR("resources"));

    const struct json *configmaps = find(resources, "name", "configmaps");
    const struct str hash = json_get_str(configmaps, STR("storageVersionHash"));
    assert_int_equal(hash.n, 12);
    struct json shown = without(f.a, configmaps, "storageVersionHash");
    assert_json(f.a, &shown,
                "{\"name\":\"configmaps\",\"singularName\":\"configmap\",\"namespaced\":true,"
                "\"kind\":\"ConfigMap\","
                "\"verbs\":" NATIVE_VERBS ",\"shortNames\":[\"cm\"]}");
    assert_json(f.a, find(resources, "name", "namespaces/finalize"),
                "{\"name\":\"namespaces/"
                "finalize\",\"singularName\":\"\",\"namespaced\":false,\"kind\":\"Namespace\","
                "\"verbs\":[\"update\"]}");
    assert_json(f.a, find(resources, "name", "namespaces/status"),
                "{\"name\":\"namespaces/"
                "status\",\"singularName\":\"\",\"namespaced\":false,\"kind\":\"Namespace\","
                "\"verbs\":[\"get\",\"patch\",\"update\"]}");
    fixture_done(&f);
}

TEST(resources_stand_in_the_order_of_their_names)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/api/v1", ""), 0);
    struct str last = STR("");
    JSON_FOR_EACH_ITEM (json_get(f.body, STR("resources")), item) {
        const struct str name = json_get_str(item, STR("name"));
        assert_true(str_cmp(last, name) < 0);
        last = name;
    }
    fixture_done(&f);
}

TEST(custom_group_has_its_versions_by_rank)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/apis/example.org", ""), 0);
    assert_json(
        f.a, f.body,
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"example.org\",\"versions\":["
        "{\"groupVersion\":\"example.org/v1\",\"version\":\"v1\"},"
        "{\"groupVersion\":\"example.org/v2beta1\",\"version\":\"v2beta1\"},"
        "{\"groupVersion\":\"example.org/v1alpha1\",\"version\":\"v1alpha1\"}],"
        "\"preferredVersion\":{\"groupVersion\":\"example.org/v1\",\"version\":\"v1\"}}");
    assert_int_equal(get(&f, "/apis", ""), 0);
    assert_str(json_get_str(f.body, STR("kind")), "APIGroupList");
    const struct json *groups = json_get(f.body, STR("groups"));
    assert_non_null(find(groups, "name", "example.org"));
    assert_non_null(find(groups, "name", "coordination.k8s.io"));
    assert_null(find(groups, "name", ""));
    fixture_done(&f);
}

TEST(custom_resources_are_shown_as_recorded)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/apis/example.org/v1", ""), 0);
    assert_str(json_get_str(f.body, STR("apiVersion")), "v1");
    const struct json *resources = json_get(f.body, STR("resources"));
    assert_int_equal(resources->n, 3);
    struct json things = without(f.a, &resources->items[0], "storageVersionHash");
    assert_json(f.a, &things,
                "{\"name\":\"things\",\"singularName\":\"thing\",\"namespaced\":true,\"kind\":"
                "\"Thing\",\"verbs\":" CUSTOM_VERBS
                ",\"shortNames\":[\"tg\"],\"categories\":[\"all\",\"eve\"]}");
    assert_json(
        f.a, &resources->items[1],
        "{\"name\":\"things/status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Thing\","
        "\"verbs\":[\"get\",\"patch\",\"update\"]}");
    assert_json(f.a, &resources->items[2],
                "{\"name\":\"things/"
                "scale\",\"singularName\":\"\",\"namespaced\":true,\"group\":\"autoscaling\","
                "\"version\":\"v1\",\"kind\":\"Scale\",\"verbs\":[\"get\",\"patch\",\"update\"]}");

    /* Versions share what they store, so they share the hash. */
    const struct str hash = json_get_str(&resources->items[0], STR("storageVersionHash"));
    assert_int_equal(get(&f, "/apis/example.org/v2beta1", ""), 0);
    const struct json *other = json_get(f.body, STR("resources"));
    assert_int_equal(other->n, 1);
    assert_true(str_eq(json_get_str(&other->items[0], STR("storageVersionHash")), hash));
    fixture_done(&f);
}

/* ---- aggregated --------------------------------------------------------------------------- */

TEST(aggregated_group_is_shown_as_recorded)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/apis", AGGREGATED), 0);
    assert_str(f.reply.content_type, AGGREGATED);
    assert_str(f.reply.cache_control, "public");
    assert_true(f.reply.vary_accept);
    assert_str(json_get_str(f.body, STR("kind")), "APIGroupDiscoveryList");
    assert_str(json_get_str(f.body, STR("apiVersion")), "apidiscovery.k8s.io/v2");
    const struct json *items = json_get(f.body, STR("items"));
    const struct json *group = NULL;
    JSON_FOR_EACH_ITEM (items, item) {
        if (str_is(json_str(json_at(item, "metadata", "name", NULL)), "example.org"))
            group = item;
    }
    assert_json(
        f.a, &json_get(group, STR("versions"))->items[0],
        "{\"version\":\"v1\",\"resources\":[{\"resource\":\"things\",\"responseKind\":{\"group\":"
        "\"example.org\",\"version\":\"v1\",\"kind\":\"Thing\"},\"scope\":\"Namespaced\","
        "\"singularResource\":"
        "\"thing\",\"verbs\":" CUSTOM_VERBS
        ",\"shortNames\":[\"tg\"],\"categories\":[\"all\",\"eve\"],"
        "\"subresources\":[{\"subresource\":\"status\",\"responseKind\":{\"group\":\"example.org\","
        "\"version\":"
        "\"v1\",\"kind\":\"Thing\"},\"verbs\":[\"get\",\"patch\",\"update\"]},{\"subresource\":"
        "\"scale\","
        "\"responseKind\":{\"group\":\"autoscaling\",\"version\":\"v1\",\"kind\":\"Scale\"},"
        "\"verbs\":[\"get\","
        "\"patch\",\"update\"]}]}],\"freshness\":\"Current\"}");
    fixture_done(&f);
}

TEST(aggregated_core_group_leaves_implied_names_out)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/api", AGGREGATED ",application/json"), 0);
    const struct json *items = json_get(f.body, STR("items"));
    assert_int_equal(items->n, 1);
    assert_json(f.a, json_get(&items->items[0], STR("metadata")), "{}");
    const struct json *version = &json_get(&items->items[0], STR("versions"))->items[0];
    const struct json *configmaps =
        find(json_get(version, STR("resources")), "resource", "configmaps");
    assert_json(
        f.a, configmaps,
        "{\"resource\":\"configmaps\",\"responseKind\":{\"group\":\"\",\"version\":\"\",\"kind\":"
        "\"ConfigMap\"},\"scope\":\"Namespaced\",\"singularResource\":\"configmap\","
        "\"verbs\":" NATIVE_VERBS ",\"shortNames\":[\"cm\"]}");
    fixture_done(&f);
}

TEST(unchanged_aggregated_list_is_not_sent_again)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/apis", AGGREGATED), 0);
    const struct str etag = arena_str(f.a, f.reply.etag);
    assert_int_equal(etag.n, 2 * 64 + 2);
    struct document_request q = {
        .method = HTTP_GET, .path = STR("/apis"), .accept = STR(AGGREGATED), .if_none_match = etag};
    assert_int_equal(ask(&f, &q), 0);
    assert_int_equal(f.reply.status, 304);
    assert_int_equal(f.reply.body.s.n, 0);
    assert_true(str_eq(f.reply.etag, etag));
    q.if_none_match = STR("\"other\"");
    assert_int_equal(ask(&f, &q), 0);
    assert_int_equal(f.reply.status, 200);
    fixture_done(&f);
}

TEST(old_aggregated_form_falls_back_to_the_plain_one)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(
        get(&f, "/apis",
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/"
            "json"),
        0);
    assert_str(f.reply.content_type, "application/json");
    assert_str(json_get_str(f.body, STR("kind")), "APIGroupList");
    fixture_done(&f);
}

/* ---- the rest ----------------------------------------------------------------------------- */

TEST(unknown_paths_are_nobodys)
{
    static const char *const paths[] = {"/api/v2", "/apis/nope", "/apis/example.org/v9",
                                        "/api//",  "",           "/apis/example.org/v1/x"};
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        assert_int_equal(get(&f, paths[i], ""), -ENOENT);
        assert_int_equal(f.status.code, 0);
    }
    fixture_done(&f);
}

TEST(methods_are_judged_as_kube_apiserver_does)
{
    struct fixture f;
    fixture_init(&f);
    assert_true(ask(&f, &(struct document_request){.method = HTTP_PUT, .path = STR("/api")}) < 0);
    assert_int_equal(f.status.code, 405);
    assert_true(ask(&f, &(struct document_request){.method = HTTP_HEAD, .path = STR("/api/v1")}) <
                0);
    assert_int_equal(f.status.code, 405);
    assert_int_equal(
        ask(&f, &(struct document_request){.method = HTTP_DELETE, .path = STR("/apis")}), 0);
    assert_int_equal(ask(&f, &(struct document_request){.method = HTTP_OPTIONS,
                                                        .path = STR("/apis/example.org")}),
                     0);
    fixture_done(&f);
}

TEST(documents_come_as_yaml_too)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/apis/example.org", "application/yaml"), 0);
    assert_str(f.reply.content_type, "application/yaml");
    assert_str(f.reply.body.s,
               "apiVersion: v1\nkind: APIGroup\nname: example.org\npreferredVersion:\n"
               "  groupVersion: example.org/v1\n  version: v1\nversions:\n"
               "- groupVersion: example.org/v1\n  version: v1\n"
               "- groupVersion: example.org/v2beta1\n  version: v2beta1\n"
               "- groupVersion: example.org/v1alpha1\n  version: v1alpha1\n");
    assert_true(get(&f, "/api/v1", "text/html") < 0);
    assert_int_equal(f.status.code, 406);
    fixture_done(&f);
}

TEST(root_lists_the_paths)
{
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(get(&f, "/index.html", ""), 0);
    assert_int_equal(get(&f, "/", ""), 0);
    const struct json *paths = json_get(f.body, STR("paths"));
    static const char *const expected[] = {
        "/api", "/api/v1", "/apis", "/apis/example.org/v2beta1", "/healthz", "/version"};
    for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
        bool is_there = false;
        JSON_FOR_EACH_ITEM (paths, item)
            is_there = is_there || str_is(json_str(item), expected[i]);
        assert_true(is_there);
    }
    for (size_t i = 1; i < paths->n; i++)
        assert_true(str_cmp(json_str(&paths->items[i - 1]), json_str(&paths->items[i])) < 0);
    fixture_done(&f);
}

TEST(version_is_that_of_a_kubernetes_release)
{
    static const char *const members[] = {"major",          "minor",        "emulationMajor",
                                          "emulationMinor", "gitVersion",   "minCompatibilityMajor",
                                          "gitCommit",      "gitTreeState", "minCompatibilityMinor",
                                          "buildDate",      "goVersion",    "compiler",
                                          "platform"};
    ARENA_AUTO a = arena_new();
    struct status st;
    status_init(&st, a);
    struct document_reply reply;
    struct document_request q = {.method = HTTP_GET, .path = STR("/version")};
    assert_int_equal(release_get(&q, &reply, &st), 0);
    const struct json *body = json_parse_quick(a, reply.body.s);
    assert_int_equal(json_count(body), N_ELEMENTS(members));
    for (size_t i = 0; i < N_ELEMENTS(members); i++)
        assert_true(json_is(json_get(body, str_of(members[i])), JSON_STRING));
    assert_true(str_starts_with(json_get_str(body, STR("gitVersion")), STR("v1.36.0+seth-")));
    q.accept = STR("text/plain");
    assert_true(release_get(&q, &reply, &st) < 0);
    assert_int_equal(st.code, 406);
    q.method = HTTP_POST;
    assert_true(release_get(&q, &reply, &st) < 0);
    assert_int_equal(st.code, 405);
}
