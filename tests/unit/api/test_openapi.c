/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi.h"

#include <zlib.h>

#include "gnostic.h"
#include "test.h"
#include "thing.h"

#define V2_PROTOBUF "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define V3_PROTOBUF "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
#define CONVENTIONS \
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
#define OBJECT_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

struct fixture {
    struct arena *a;
    struct registry *registry;
    struct openapi *openapi;
    struct document_reply reply;
};

static void fixture_init(struct fixture *f)
{
    f->a = arena_new();
    f->registry = thing_registry();
    f->openapi = openapi_new(f->registry);
    f->reply = (struct document_reply){0};
}

static void fixture_done(struct fixture *f)
{
    slice_unref(f->reply.body);
    openapi_unref(f->openapi);
    registry_unref(f->registry);
    arena_free(f->a);
}

static void ask(struct fixture *f, const struct document_request *q)
{
    slice_unref(f->reply.body);
    f->reply = (struct document_reply){0};
    assert_true(openapi_get(f->a, f->openapi, q, &f->reply));
}

static void get(struct fixture *f, const char *path, const char *accept)
{
    ask(f, &(struct document_request){
               .method = HTTP_GET, .path = str_of(path), .accept = str_of(accept)});
}

static const struct json *get_json(struct fixture *f, const char *path)
{
    get(f, path, "");
    assert_int_equal(f->reply.status, 200);
    const struct json *v = json_parse_quick(f->a, f->reply.body.s);
    assert_non_null(v);
    return v;
}

static void assert_json(struct arena *a, const struct json *v, const char *expected)
{
    assert_non_null(v);
    const struct json *e = json_parse_quick(a, str_of(expected));
    assert_non_null(e);
    if (!json_equal(v, e))
        fail_msg("got %.*s", STR_ARG(json_text(a, v)));
}

static const struct json *parameter(const struct json *operation, const char *name)
{
    JSON_FOR_EACH_ITEM (json_get(operation, STR("parameters")), p) {
        if (str_is(json_get_str(p, STR("name")), name))
            return p;
    }
    return NULL;
}

/* ---- serving ------------------------------------------------------------------------------ */

TEST(index_names_every_document_with_its_hash)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *index = get_json(&f, "/openapi/v3");
    assert_str(f.reply.content_type, "text/plain; charset=utf-8");
    const struct json *paths = json_get(index, STR("paths"));
    static const char *const expected[] = {"api",
                                           "api/v1",
                                           "apis",
                                           "apis/coordination.k8s.io",
                                           "apis/coordination.k8s.io/v1",
                                           "apis/example.org/v1",
                                           "apis/example.org/v1alpha1",
                                           "apis/apiextensions.k8s.io/v1",
                                           "version"};
    for (size_t i = 0; i < N_ELEMENTS(expected); i++) {
        const struct str url =
            json_get_str(json_get(paths, str_of(expected[i])), STR("serverRelativeURL"));
        const struct str prefix = arena_printf(f.a, "/openapi/v3/%s?hash=", expected[i]);
        assert_true(str_starts_with(url, prefix));
        assert_int_equal(url.n, prefix.n + 128);
    }
    JSON_FOR_EACH_MEMBER (paths, m) {
        struct str url = json_get_str(&m->value, STR("serverRelativeURL"));
        const size_t mark = (size_t) str_find(url, '?');
        ask(&f, &(struct document_request){.method = HTTP_GET,
                                           .path = str_sub(url, 0, mark),
                                           .query = str_from(url, mark + 1),
                                           .now_s = 0});
        assert_int_equal(f.reply.status, 200);
        assert_str(f.reply.cache_control, "public, immutable");
        assert_str(f.reply.expires, "Fri, 01 Jan 1971 00:00:00 GMT");
        assert_true(f.reply.vary_accept);
    }
    fixture_done(&f);
}

TEST(other_hash_is_sent_to_the_current_one)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *index = get_json(&f, "/openapi/v3");
    ask(&f, &(struct document_request){.method = HTTP_GET,
                                       .path = STR("/openapi/v3/api/v1"),
                                       .query = STR("hash=0123456789ABCDEF")});
    assert_int_equal(f.reply.status, 301);
    assert_int_equal(f.reply.body.s.n, 0);
    assert_true(str_eq(f.reply.location,
                       json_str(json_at(index, "paths", "api/v1", "serverRelativeURL", NULL))));
    fixture_done(&f);
}

TEST(unchanged_document_is_not_sent_again)
{
    static const char *const paths[] = {"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"};
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        get(&f, paths[i], "");
        assert_int_equal(f.reply.etag.n, 130);
        ask(&f, &(struct document_request){
                    .method = HTTP_GET, .path = str_of(paths[i]), .if_none_match = f.reply.etag});
        assert_int_equal(f.reply.status, 304);
        assert_int_equal(f.reply.body.s.n, 0);
    }
    fixture_done(&f);
}

TEST(encodings_are_chosen_by_accept)
{
    static const struct {
        const char *path, *accept;
        int status;
        const char *content_type;
    } cases[] = {
        {"/openapi/v2", "", 200, "application/json"},
        {"/openapi/v2", "application/json", 200, "application/json"},
        {"/openapi/v2", "*/*", 200, "application/json"},
        {"/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200,
         V2_PROTOBUF},
        {"/openapi/v2", V2_PROTOBUF, 200, V2_PROTOBUF},
        {"/openapi/v2", V3_PROTOBUF, 406, ""},
        {"/openapi/v3/apis/coordination.k8s.io/v1",
         "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", 200, V3_PROTOBUF},
        {"/openapi/v3/apis/coordination.k8s.io/v1", V3_PROTOBUF ",application/json;q=0.5", 200,
         V3_PROTOBUF},
        {"/openapi/v3/apis/coordination.k8s.io/v1", "text/plain", 406, ""},
        {"/openapi/v3/apis/nope.example.org/v1", "", 404, ""},
        {"/openapi/v3/", "", 404, ""},
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        get(&f, cases[i].path, cases[i].accept);
        assert_int_equal(f.reply.status, cases[i].status);
        assert_str(f.reply.content_type, cases[i].content_type);
        assert_int_equal(f.reply.body.s.n > 0, cases[i].status == 200);
    }
    struct document_reply none;
    assert_false(
        openapi_get(f.a, f.openapi, &(struct document_request){.path = STR("/openapi/v4")}, &none));
    fixture_done(&f);
}

TEST(gzip_is_what_is_kept)
{
    struct fixture f;
    fixture_init(&f);
    get(&f, "/openapi/v3/api/v1", "");
    assert_false(f.reply.is_gzip);
    const struct str plain = arena_str(f.a, f.reply.body.s);
    ask(&f, &(struct document_request){.method = HTTP_GET,
                                       .path = STR("/openapi/v3/api/v1"),
                                       .accept_encoding = STR("gzip")});
    assert_true(f.reply.is_gzip);
    assert_true(f.reply.body.s.n < plain.n / 8);
    char *text = arena_alloc(f.a, plain.n);
    z_stream z = {.next_in = (unsigned char *) f.reply.body.s.p,
                  .avail_in = (uInt) f.reply.body.s.n,
                  .next_out = (unsigned char *) text,
                  .avail_out = (uInt) plain.n};
    assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    (void) inflateEnd(&z);
    assert_memory_equal(text, plain.p, plain.n);
    fixture_done(&f);
}

/* ---- v3 ----------------------------------------------------------------------------------- */

#define THINGS "/apis/example.org/v1/namespaces/{namespace}/things"

TEST(custom_operations_are_named_as_recorded)
{
    static const struct {
        const char *path, *method, *id, *description, *action;
    } cases[] = {
        {THINGS, "get", "listExampleOrgV1NamespacedThing", "list objects of kind Thing", "list"},
        {THINGS, "post", "createExampleOrgV1NamespacedThing", "create a Thing", "post"},
        {THINGS, "delete", "deleteExampleOrgV1CollectionNamespacedThing",
         "delete collection of Thing", "deletecollection"},
        {THINGS "/{name}", "get", "readExampleOrgV1NamespacedThing", "read the specified Thing",
         "get"},
        {THINGS "/{name}", "delete", "deleteExampleOrgV1NamespacedThing", "delete a Thing",
         "delete"},
        {THINGS "/{name}", "patch", "patchExampleOrgV1NamespacedThing",
         "partially update the specified Thing", "patch"},
        {THINGS "/{name}/scale", "put", "replaceExampleOrgV1NamespacedThingScale",
         "replace scale of the specified Thing", "put"},
        {THINGS "/{name}/status", "patch", "patchExampleOrgV1NamespacedThingStatus",
         "partially update status of the specified Thing", "patch"},
        {"/apis/example.org/v1/things", "get", "listExampleOrgV1ThingForAllNamespaces",
         "list objects of kind Thing", "list"},
    };
    struct fixture f;
    fixture_init(&f);
    const struct json *document = get_json(&f, "/openapi/v3/apis/example.org/v1");
    assert_json(f.a, json_get(document, STR("info")),
                "{\"title\":\"Kubernetes CRD Swagger\",\"version\":\"v0.1.0\"}");
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct json *o = json_at(document, "paths", cases[i].path, cases[i].method, NULL);
        assert_str(json_get_str(o, STR("operationId")), cases[i].id);
        assert_str(json_get_str(o, STR("description")), cases[i].description);
        assert_str(json_get_str(o, STR("x-kubernetes-action")), cases[i].action);
        assert_json(f.a, json_get(o, STR("tags")), "[\"exampleOrg_v1\"]");
        assert_json(f.a, json_get(o, STR("x-kubernetes-group-version-kind")),
                    "{\"group\":\"example.org\",\"version\":\"v1\",\"kind\":\"Thing\"}");
    }
    fixture_done(&f);
}

TEST(patch_tells_what_kubectl_looks_for)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *document = get_json(&f, "/openapi/v3/apis/example.org/v1");
    const struct json *o = json_at(document, "paths", THINGS "/{name}", "patch", NULL);
    static const char *const names[] = {"dryRun", "fieldManager", "fieldValidation", "force"};
    assert_int_equal(json_count(json_get(o, STR("parameters"))), N_ELEMENTS(names));
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        assert_str(json_get_str(parameter(o, names[i]), STR("in")), "query");
    assert_json(f.a, json_get(parameter(o, "force"), STR("schema")),
                "{\"type\":\"boolean\",\"uniqueItems\":true}");
    assert_json(f.a, json_get(o, STR("requestBody")),
                "{\"content\":{\"application/apply-patch+yaml\":{\"schema\":{\"$ref\":\"#/"
                "components/schemas/"
                "io.k8s.apimachinery.pkg.apis.meta.v1.Patch\"}},\"application/"
                "json-patch+json\":{\"schema\":{\"$ref\":"
                "\"#/components/schemas/"
                "io.k8s.apimachinery.pkg.apis.meta.v1.Patch\"}},\"application/merge-patch+json\":"
                "{\"schema\":{\"$ref\":\"#/components/schemas/"
                "io.k8s.apimachinery.pkg.apis.meta.v1.Patch\"}}},"
                "\"required\":true}");
    assert_json(
        f.a, json_get(o, STR("responses")),
        "{\"200\":{\"description\":\"OK\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
        "\"#/components/schemas/org.example.v1.Thing\"}},\"application/"
        "yaml\":{\"schema\":{\"$ref\":"
        "\"#/components/schemas/"
        "org.example.v1.Thing\"}}}},\"401\":{\"description\":\"Unauthorized\"}}");
    /* What all operations of a path take stands at the path. */
    const struct json *path = json_at(document, "paths", THINGS "/{name}", NULL);
    assert_non_null(parameter(path, "name"));
    assert_non_null(parameter(path, "namespace"));
    assert_non_null(parameter(path, "pretty"));
    fixture_done(&f);
}

TEST(custom_schema_is_shown_as_recorded)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *document = get_json(&f, "/openapi/v3/apis/example.org/v1");
    const struct json *thing =
        json_at(document, "components", "schemas", "org.example.v1.Thing", NULL);
    assert_str(json_get_str(thing, STR("description")), "A thing.");
    assert_json(f.a, json_get(thing, STR("x-kubernetes-group-version-kind")),
                "[{\"group\":\"example.org\",\"kind\":\"Thing\",\"version\":\"v1\"}]");
    assert_json(f.a, json_at(thing, "properties", "metadata", NULL),
                "{\"description\":\"Standard object's metadata. More info: " CONVENTIONS
                "#metadata\",\"allOf\":[{\"$ref\":\"#/components/schemas/" OBJECT_META "\"}]}");
    const struct json *spec = json_at(thing, "properties", "spec", "properties", NULL);
    assert_json(f.a, json_get(spec, STR("any")),
                "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}");
    assert_json(f.a, json_get(spec, STR("port")),
                "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"x-kubernetes-int-or-"
                "string\":true}");
    assert_json(f.a, json_get(spec, STR("mode")),
                "{\"type\":\"string\",\"default\":\"a\",\"enum\":[\"a\",\"b\"]}");
    assert_true(json_get_bool(json_get(spec, STR("note")), STR("nullable"), false));
    assert_json(f.a, json_at(spec, "template", "required", NULL), "[\"kind\",\"apiVersion\"]");
    assert_non_null(json_at(spec, "template", "properties", "metadata", NULL));

    const struct json *list =
        json_at(document, "components", "schemas", "org.example.v1.ThingList", NULL);
    assert_str(json_get_str(list, STR("description")), "ThingList is a list of Thing");
    assert_json(f.a, json_at(list, "properties", "items", NULL),
                "{\"description\":\"List of things. More info: " CONVENTIONS
                "\",\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/"
                "org.example.v1.Thing\"}}");
    fixture_done(&f);
}

TEST(native_parts_are_definitions_of_their_own)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *document = get_json(&f, "/openapi/v3/apis/coordination.k8s.io/v1");
    const struct json *schemas = json_at(document, "components", "schemas", NULL);
    const struct json *spec =
        json_at(schemas, "io.k8s.api.coordination.v1.Lease", "properties", "spec", NULL);
    assert_json(f.a, json_get(spec, STR("allOf")),
                "[{\"$ref\":\"#/components/schemas/io.k8s.api.coordination.v1.LeaseSpec\"}]");
    assert_json(f.a, json_get(spec, STR("default")), "{}");
    const struct json *lease_spec = json_get(schemas, STR("io.k8s.api.coordination.v1.LeaseSpec"));
    assert_json(
        f.a, json_at(lease_spec, "properties", "renewTime", "allOf", NULL),
        "[{\"$ref\":\"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime\"}]");
    /* In Go these are pointers; the document does not say so. */
    assert_null(json_at(lease_spec, "properties", "holderIdentity", "nullable", NULL));
    assert_json(
        f.a,
        json_at(schemas, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
                "x-kubernetes-group-version-kind", NULL),
        "[{\"group\":\"coordination.k8s.io\",\"kind\":\"DeleteOptions\",\"version\":\"v1\"}]");
    const struct json *patch =
        json_at(document, "paths",
                "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}", "patch", NULL);
    assert_str(json_get_str(patch, STR("operationId")), "patchCoordinationV1NamespacedLease");
    assert_non_null(
        json_at(patch, "requestBody", "content", "application/strategic-merge-patch+json", NULL));
    assert_non_null(json_at(patch, "responses", "201", NULL));
    fixture_done(&f);
}

/* ---- v2 ----------------------------------------------------------------------------------- */

TEST(shared_parameters_have_their_recorded_names)
{
    static const char expected[] =
        "[{\"$ref\":\"#/parameters/allowWatchBookmarks-HC2hJt-J\"},{\"$ref\":\"#/parameters/"
        "continue-QfD61s0i\"},"
        "{\"$ref\":\"#/parameters/fieldSelector-xIcQKXFG\"},{\"$ref\":\"#/parameters/"
        "labelSelector-5Zw57w4C\"},"
        "{\"$ref\":\"#/parameters/limit-1NfNmdNH\"},{\"$ref\":\"#/parameters/pretty-tJGM1-ng\"},"
        "{\"$ref\":\"#/parameters/resourceVersion-5WAnf1kx\"},{\"$ref\":\"#/parameters/"
        "resourceVersionMatch-t8XhRHeC\"},"
        "{\"$ref\":\"#/parameters/sendInitialEvents-rLXlEK_k\"},{\"$ref\":\"#/parameters/"
        "shardSelector-Kgyki_3_\"},"
        "{\"$ref\":\"#/parameters/timeoutSeconds-yvYezaOC\"},{\"$ref\":\"#/parameters/"
        "watch-XNNPZGbK\"}]";
    struct fixture f;
    fixture_init(&f);
    const struct json *document = get_json(&f, "/openapi/v2");
    assert_json(f.a, json_at(document, "paths", "/apis/example.org/v1/things", "parameters", NULL),
                expected);
    const struct json *patch = json_at(document, "paths", THINGS "/{name}", "patch", NULL);
    assert_non_null(parameter(patch, "fieldValidation"));
    assert_non_null(parameter(patch, "dryRun"));
    fixture_done(&f);
}

TEST(v2_schema_leaves_out_what_kubectl_cannot_read)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *definitions = json_get(get_json(&f, "/openapi/v2"), STR("definitions"));
    const struct json *thing = json_get(definitions, STR("org.example.v1.Thing"));
    const struct json *spec = json_at(thing, "properties", "spec", NULL);
    assert_json(f.a, json_get(spec, STR("required")), "[\"size\"]");
    const struct json *properties = json_get(spec, STR("properties"));
    assert_json(f.a, json_get(properties, STR("any")),
                "{\"x-kubernetes-preserve-unknown-fields\":true}");
    assert_json(f.a, json_get(properties, STR("port")), "{\"x-kubernetes-int-or-string\":true}");
    assert_json(f.a, json_get(properties, STR("mode")),
                "{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}");
    assert_json(f.a, json_get(properties, STR("note")),
                "{\"maxLength\":300,\"pattern\":\"^[a-z]*$\"}");
    assert_null(json_at(properties, "choice", "oneOf", NULL));
    assert_json(f.a, json_at(thing, "properties", "metadata", NULL),
                "{\"description\":\"Standard object's metadata. More info: " CONVENTIONS
                "#metadata\",\"$ref\":\"#/definitions/" OBJECT_META "\"}");
    assert_json(f.a, json_get(definitions, STR("org.example.v2beta1.Thing")),
                "{\"type\":\"object\",\"x-kubernetes-group-version-kind\":[{\"group\":\"example."
                "org\",\"kind\":\"Thing\","
                "\"version\":\"v2beta1\"}]}");
    const struct json *owners =
        json_at(definitions, OBJECT_META, "properties", "ownerReferences", NULL);
    assert_str(json_get_str(owners, STR("x-kubernetes-patch-merge-key")), "uid");
    assert_str(json_get_str(owners, STR("x-kubernetes-patch-strategy")), "merge");
    assert_json(f.a,
                json_at(definitions, "io.k8s.apimachinery.pkg.api.resource.Quantity", "type", NULL),
                "\"string\"");
    fixture_done(&f);
}

/* ---- all documents ------------------------------------------------------------------------ */

/* Every $ref leads somewhere, and nothing of our own keywords is shown. */
static void check_references(const struct json *v, const struct json *definitions,
                             const struct json *parameters)
{
    JSON_FOR_EACH_ITEM (v, item)
        check_references(item, definitions, parameters);
    JSON_FOR_EACH_MEMBER (v, m) {
        const struct str key = json_str(&m->key);
        assert_false(str_starts_with(key, STR("x-seth")));
        if (str_is(key, "$ref") && m->value.type == JSON_STRING) {
            const struct str to = json_str(&m->value);
            const struct str name = str_from(to, (size_t) str_find_last(to, '/') + 1);
            if (!json_get(str_starts_with(to, STR("#/parameters/")) ? parameters : definitions,
                          name))
                fail_msg("dangling reference %.*s", STR_ARG(to));
        }
        check_references(&m->value, definitions, parameters);
    }
}

TEST(every_reference_leads_somewhere)
{
    struct fixture f;
    fixture_init(&f);
    const struct json *v2 = get_json(&f, "/openapi/v2");
    check_references(v2, json_get(v2, STR("definitions")), json_get(v2, STR("parameters")));
    const struct json *index = get_json(&f, "/openapi/v3");
    JSON_FOR_EACH_MEMBER (json_get(index, STR("paths")), m) {
        const struct str path = arena_printf(f.a, "/openapi/v3/%.*s", STR_ARG(json_str(&m->key)));
        const struct json *v3 = get_json(&f, path.p);
        check_references(v3, json_at(v3, "components", "schemas", NULL), NULL);
    }
    fixture_done(&f);
}

/* Fails with the place of the first difference. Zeros and objects as defaults have no form in
 * gnostic's messages. */
static void compare(const struct json *json, const struct json *decoded, const char *at)
{
    assert_non_null(json);
    JSON_FOR_EACH_MEMBER (json, m) {
        const struct json *other = json_get(decoded, json_str(&m->key));
        const bool is_zero =
            json_is_number(&m->value) && json_equal(&m->value, &(struct json){.type = JSON_INT});
        if (!other && !is_zero)
            fail_msg("%s lost %.*s", at, STR_ARG(json_str(&m->key)));
        if (other)
            compare(&m->value, other, m->key.s);
    }
    JSON_FOR_EACH_MEMBER (decoded, m) {
        if (!json_get(json, json_str(&m->key)))
            fail_msg("%s gained %.*s", at, STR_ARG(json_str(&m->key)));
    }
    if (json->type != JSON_OBJECT && !json_equal(json, decoded))
        fail_msg("%s differs", at);
}

TEST(protobuf_says_what_the_json_says)
{
    static const char *const paths[] = {
        "/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/example.org/v1",
        "/openapi/v3/apis/coordination.k8s.io/v1", "/openapi/v3/version"};
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        const bool is_v2 = i == 0;
        const struct json *document = get_json(&f, paths[i]);
        const struct str etag = f.reply.etag;
        get(&f, paths[i], is_v2 ? V2_PROTOBUF : V3_PROTOBUF);
        assert_true(str_eq(f.reply.etag, etag));
        const struct json decoded =
            gnostic_decode(f.a, is_v2 ? gnostic_v2 : gnostic_v3, f.reply.body.s);
        compare(document, &decoded, paths[i]);
    }
    fixture_done(&f);
}

TEST(documents_are_built_once)
{
    struct fixture f;
    fixture_init(&f);
    const struct document_request q = {
        .method = HTTP_GET, .path = STR("/openapi/v2"), .accept_encoding = STR("gzip")};
    ask(&f, &q);
    const char *first = f.reply.body.s.p;
    ask(&f, &q);
    assert_ptr_equal(f.reply.body.s.p, first);
    fixture_done(&f);
}
