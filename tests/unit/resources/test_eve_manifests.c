/* SPDX-License-Identifier: Apache-2.0 */
/* Our kinds are plain definitions: what a cluster would say to them, and what they have in common.
 */
#include "test.h"

#include "../schema/device.h"
#include "kinds/kinds.h"
#include "resources/customresourcedefinition.h"

#define N_KINDS 14

/* A rule that a cluster enforces and a hook of ours. */
static void on_warning(struct hook_context *h, struct str text)
{
    (void) h;
    assert_true(str_ends_with(text, STR("stored and served but not enforced yet")));
}

/* Calls fn with each of our manifests. */
static void each(void (*fn)(struct arena *a, const char *path, struct json *crd))
{
    size_t n = 0;
    for (size_t i = 0; i < n_kinds_manifests; i++) {
        ARENA_AUTO a = arena_new();
        if (!str_starts_with(str_of(kinds_manifests[i].path), STR("eve.lfedge.org/")))
            continue;
        fn(a, kinds_manifests[i].path, json_parse_quick(a, kinds_manifests[i].json));
        n++;
    }
    assert_int_equal(n, N_KINDS);
}

static const struct json *version_of(const struct json *crd)
{
    const struct json *versions = json_at(crd, "spec", "versions", NULL);
    assert_int_equal(json_count(versions), 1);
    return &versions->items[0];
}

static void check_accepted(struct arena *a, const char *path, struct json *crd)
{
    const struct kind_hooks *hooks = &customresourcedefinition_hooks;
    struct hook_context h = {
        .arena = a, .operation = WRITE_CREATE, .subresource = STR(""), .warn = on_warning};
    struct causes c;
    causes_init(&c, a);
    hooks->set_defaults(&h, crd);
    hooks->prepare(&h, NULL, crd);
    hooks->validate(&h, crd, &c);
    if (c.n)
        fail_msg("%s: %.*s", path, STR_ARG(causes_text(a, &c)));
}

TEST(a_cluster_would_take_them)
{
    each(check_accepted);
}

static void check_form(struct arena *a, const char *path, struct json *crd)
{
    const struct json *version = version_of(crd), *names = json_at(crd, "spec", "names", NULL);
    const struct json *columns = json_get(version, STR("additionalPrinterColumns"));
    (void) a;
    assert_int_equal(json_count(crd), 4); /* nothing that only we understand */
    assert_str(json_get_str(version, STR("name")), "v1beta1");
    assert_str(json_str(json_at(crd, "spec", "scope", NULL)), "Namespaced");
    assert_int_equal(json_count(json_get(names, STR("shortNames"))), 1);
    assert_str(json_str(&json_get(names, STR("categories"))->items[0]), "eve");
    if (!json_is(json_at(version, "subresources", "status", NULL), JSON_OBJECT))
        fail_msg("%s: no status", path);
    assert_true(json_count(columns) > 1);
    assert_str(json_get_str(&columns->items[columns->n - 1], STR("name")), "Age");
    for (size_t i = 0; i + 1 < columns->n; i++)
        if (!json_get_str(&columns->items[i], STR("description")).n)
            fail_msg("%s: a column without description", path);
}

TEST(they_have_one_form)
{
    each(check_form);
}

static void check_described(const char *path, struct str name, const struct json *schema)
{
    if (!json_get_str(schema, STR("description")).n)
        fail_msg("%s: %.*s has no description", path, STR_ARG(name));
    JSON_FOR_EACH_MEMBER (json_get(schema, STR("properties")), m)
        check_described(path, json_str(&m->key), &m->value);
    const struct json *items = json_get(schema, STR("items"));
    if (json_get(items, STR("properties")))
        check_described(path, name, items);
}

static void check_fields(struct arena *a, const char *path, struct json *crd)
{
    (void) a;
    check_described(path, STR("the kind"),
                    json_at(version_of(crd), "schema", "openAPIV3Schema", NULL));
}

TEST(every_field_says_what_it_is)
{
    each(check_fields);
}

static struct json *schema_of(struct arena *a, const char *wanted)
{
    for (size_t i = 0; i < n_kinds_manifests; i++)
        if (str_is(str_of(kinds_manifests[i].path), wanted)) {
            const struct json *crd = json_parse_quick(a, kinds_manifests[i].json);
            return json_at(version_of(crd), "schema", "openAPIV3Schema", "properties", "spec",
                           NULL);
        }
    fail_msg("no %s", wanted);
    return NULL;
}

TEST(templates_are_applications)
{
    static const char *const paths[] = {"eve.lfedge.org/applicationdeployments.yaml",
                                        "eve.lfedge.org/applicationdaemonsets.yaml",
                                        "eve.lfedge.org/applicationstatefulsets.yaml"};
    ARENA_AUTO a = arena_new();
    const struct json *application = schema_of(a, "eve.lfedge.org/applications.yaml");
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        const struct json *template =
            json_at(schema_of(a, paths[i]), "properties", "template", "properties", "spec", NULL);
        if (!template || !json_identical(application, template))
            fail_msg("%s: its template is no Application", paths[i]);
    }
}
